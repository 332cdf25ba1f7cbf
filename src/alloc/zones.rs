//! Where a function that changes its number of registers (`setmaxnreg`) may use which of them.
//!
//! A zone is a range of points with a number of registers. Where paths join, the least holds. An
//! instruction that gives registers ends them for itself and what follows in its block; one that
//! takes them has them only behind its block, since it may have to ask again.

use super::EXTRA_REGISTERS;
use super::ranges::Range;
use crate::ori::Function;
use crate::ori::register_changes::{Change, at_starts};

/// A range of points and the number of registers that may be used there.
#[derive(Clone, Copy, Debug)]
pub struct Zone {
    pub points: Range,
    pub registers: u32,
}

/// The zones of a function, in order, of one that changes its number of registers; else none.
pub fn zones(function: &Function) -> Vec<Zone> {
    let Some(entry) = function.attributes().entry_registers else { return Vec::new() };
    let starts = at_starts(function, entry);
    let (mut zones, mut first) = (Vec::new(), 0u32);
    for block in function.layout() {
        let mut now = starts[*block].unwrap_or(entry);
        let mut from = 2 * first;
        for (inst, at) in function[*block].iter().zip(first..) {
            if let Some(Change { count, takes: false }) = Change::of(function, *inst) {
                zones.push(Zone { points: (from, 2 * at), registers: now });
                (from, now) = (2 * at, count);
            }
        }
        first += function[*block].len() as u32;
        zones.push(Zone { points: (from, 2 * first), registers: now });
    }
    zones.retain(|zone| zone.points.0 < zone.points.1);
    join(&mut zones);
    zones.iter_mut().for_each(|zone| zone.registers = zone.registers.saturating_sub(EXTRA_REGISTERS));
    zones
}

/// Joins neighbours with the same number: there are as few zones as changes, not as many as blocks,
/// since each range of a value asks for its zones.
fn join(zones: &mut Vec<Zone>) {
    zones.dedup_by(|next, zone| {
        let same = next.registers == zone.registers && next.points.0 == zone.points.1;
        if same {
            zone.points.1 = next.points.1;
        }
        same
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_of_one_number_are_one() {
        let of = |points, registers| Zone { points, registers };
        let mut zones = vec![of((0, 4), 40), of((4, 6), 40), of((6, 10), 232), of((12, 14), 232), of((14, 20), 232)];
        join(&mut zones);
        let found: Vec<_> = zones.iter().map(|zone| (zone.points, zone.registers)).collect();
        assert_eq!(found, [((0, 6), 40), ((6, 10), 232), ((12, 20), 232)]);
    }
}
