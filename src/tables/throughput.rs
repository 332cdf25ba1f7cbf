//! Issue costs per instruction, for the cycle estimate and the list scheduler. No control word and
//! no result of a program depends on them.
//!
//! Handwritten types over generated data; the rows are `latency/throughput.ron`. They are frozen:
//! `tests/sass/estimate.rs` checks their sum, so that the measure by which this compiler is
//! compared with another one does not change unnoticed.

use super::ori::{Mod, Op};
use super::{Mods, Target};

/// The cost of one instruction of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    pub pipe: Pipe,
    /// Issue interval in cycles on the pipe of one scheduler.
    pub cycles: u8,
    /// Usual latency of a scoreboarded result, in cycles.
    pub result: u16,
    /// Usual number of cycles until late sources have been read.
    pub read: u16,
}

/// Costs on a group of targets.
#[derive(Debug)]
pub struct Throughput {
    /// Row by opcode.
    base: &'static [u8],
    /// Exceptions: opcode, modifier, value, row.
    specials: &'static [(Op, Mod, u8, u8)],
}

impl Throughput {
    /// The costs on a target; `None` if its encoder is not implemented.
    pub fn of(target: &Target) -> Option<&'static Throughput> {
        let place = super::targets::TARGETS.binary_search_by_key(&target.column, |t| t.column).ok()?;
        THROUGHPUTS.get(usize::from(THROUGHPUT_OF_TARGET[place]))
    }

    /// The cost of an instruction.
    pub fn pace(&self, op: Op, mods: &Mods) -> Pace {
        let start = self.specials.partition_point(|s| (s.0 as u16) < op as u16);
        let of = self.specials[start..].iter().take_while(|s| s.0 == op);
        let special = of.into_iter().find(|(_, kind, value, _)| mods.get(*kind) == *value);
        PACES[usize::from(special.map_or(self.base[op.position()], |s| s.3))]
    }
}

include!(concat!(env!("OUT_DIR"), "/throughput.rs"));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::value;

    #[test]
    fn figures_of_the_programming_guide() {
        let of = |target: &str, op: Op, mods: &Mods| {
            Target::by_name(target).and_then(Throughput::of).unwrap().pace(op, mods)
        };
        let none = Mods::default();
        assert_eq!((of("sm_80", Op::FFMA, &none).cycles, of("sm_90", Op::FFMA, &none).cycles), (2, 1));
        assert_eq!((of("sm_80", Op::DFMA, &none).cycles, of("sm_89", Op::DFMA, &none).cycles), (4, 64));
        assert_eq!(of("sm_90", Op::MUFU, &none), Pace { pipe: Pipe::Xu, cycles: 8, result: 22, read: 12 });
        let wide = none.with(Mod::Size, value::size::_128);
        assert_eq!((of("sm_90", Op::LDG, &none).cycles, of("sm_90", Op::LDG, &wide).cycles), (4, 16));
    }
}
