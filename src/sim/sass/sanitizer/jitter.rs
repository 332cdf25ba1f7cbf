//! Varies by a seed everything that a program must not rely on: contents of unwritten registers and
//! memory, scheduling, and the last place of approximate results.
//!
//! The same seed gives the same run, and no variation violates the ISA.

use super::super::super::ops::format::F32;
use super::super::super::ops::mufu::{self, Function};
use super::super::alu::Alu;
use super::super::block::Block;
use super::super::code::{Code, Dst, Exec};
use super::super::warp::lanes_of;

/// A pseudo-random generator and its options.
#[derive(Clone, Copy, Debug)]
pub struct Jitter {
    seed: u64,
    state: u64,
    /// Whether approximate results vary.
    noise: bool,
    /// The alternative result of the approximate function in execution, by lane.
    other: [u32; 32],
}

impl Jitter {
    /// A generator with this seed; approximate results vary.
    pub fn new(seed: u64) -> Jitter {
        Jitter { seed, state: seed, noise: true, other: [0; 32] }
    }

    /// Sets whether approximate results vary.
    pub fn noisy(self, noise: bool) -> Jitter {
        Jitter { noise, ..self }
    }

    /// The next number (SplitMix64, Steele et al. 2014).
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// The length of a turn in instructions: often short, at most `longest`.
    pub fn turn(&mut self, longest: u64) -> u64 {
        let most = 1 << (self.draw() % 9);
        1 + self.draw() % longest.min(most)
    }

    /// Fills the registers and memory of a block that is about to start.
    pub fn fill(&mut self, block: &mut Block) {
        for warp in &mut block.warps {
            warp.fill(|| self.draw() as u32);
            warp.local.iter_mut().for_each(|byte| *byte = self.draw() as u8);
        }
        block.shared.iter_mut().for_each(|byte| *byte = self.draw() as u8);
    }

    /// Before an approximate function on f32: computes its alternative results.
    pub fn look(&mut self, block: &Block, warp: usize, code: &Code, active: u32) {
        let Some((function, _)) = self.approximates(code) else { return };
        for lane in lanes_of(active) {
            self.other[lane] = mufu::other_side(function, block.warps[warp].get(&code.a, lane));
        }
    }

    /// After the function: replaces results by the neighbour on the other side of the true value.
    pub fn approximate(&mut self, block: &mut Block, warp: usize, code: &Code, active: u32) {
        let Some((function, register)) = self.approximates(code) else { return };
        let w = &mut block.warps[warp];
        for lane in lanes_of(active) {
            let bits = w.reg(register.into(), lane);
            let exponent = bits >> 23 & 0xff;
            // Zeros, powers of two, infinities and their neighbours are exact and stay.
            let moves = exponent > 1 && exponent < 254 && bits & 0x7f_ffff != 0 && bits & 0x7f_ffff != 0x7f_ffff;
            if moves && self.takes_other(function, bits) {
                w.set_reg(register.into(), lane, self.other[lane]);
            }
        }
    }

    /// Whether a result lies on the other side. The same number gives the same answer on all lanes
    /// and at all times, as on a GPU.
    fn takes_other(&self, function: Function, bits: u32) -> bool {
        Jitter::new(self.seed ^ u64::from(bits) << 8 ^ function as u64).draw() & 1 != 0
    }

    fn approximates(&self, code: &Code) -> Option<(Function, u8)> {
        match (code.exec, code.d) {
            // A saturated result is not changed afterwards.
            (Exec::Alu(Alu::Mufu(function, F32, false, _)), Dst::Reg(register)) if self.noise => {
                Some((function, register))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_lies_on_one_side_for_a_seed() {
        let (mut drawn, other) = (Jitter::new(7), Jitter::new(8));
        let sides = |j: &Jitter| (1..200).map(|bits| j.takes_other(Function::Rcp, bits)).collect::<Vec<_>>();
        let before = sides(&drawn);
        drawn.draw();
        assert_eq!(before, sides(&drawn));
        assert_ne!(before, sides(&other));
        assert!((60..140).contains(&before.iter().filter(|side| **side).count()));
    }

    #[test]
    fn a_seed_is_a_sequence() {
        let (mut a, mut b, mut c) = (Jitter::new(7), Jitter::new(7), Jitter::new(8));
        let of = |j: &mut Jitter| (0..4).map(|_| j.draw()).collect::<Vec<_>>();
        let first = of(&mut a);
        assert_eq!(first, of(&mut b));
        assert_ne!(first, of(&mut c));
        assert!((0..1000).all(|_| (1..=256).contains(&a.turn(256))));
    }
}
