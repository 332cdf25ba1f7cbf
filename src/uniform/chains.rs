//! Which values are worth a move out of the uniform file for what is computed there for them.
//!
//! What is computed for a value costs no more in the uniform file than in the general one, and its
//! registers there are spared; the move is one instruction more. It is made where at least
//! [`CHAIN`] times as many (in loops [`IN_LOOPS`]) are in the set for the value: the condition of a
//! loop behind its counters, a sum behind the products of a block's numbers. Each counts as often
//! as it is executed, but not more often than the move: turns of a loop before it spare no more
//! registers than one. What is computed for a source that is moved too is counted for that one: the
//! value can be made of it in the general file.

use super::candidates::{Candidates, WORTH};
use super::twins::Twin;
use crate::legal::operands;
use crate::ori::{File, Function, InstId, VReg};
use smallvec::SmallVec;

/// Instructions of the set before a value for which one move out of it is not too much.
const CHAIN: f64 = 4.0;

/// The same in a loop, where a short one would have much of its time in the move.
const IN_LOOPS: f64 = 8.0;

impl Candidates {
    /// Whether so much of the set is computed for a value that it stays there for one move out of
    /// it. A comparison that takes uniform registers in the general file is made there instead,
    /// unless others of the set read it.
    pub(super) fn is_behind_a_chain(&mut self, function: &mut Function, value: VReg) -> bool {
        let Some((maker, _)) = self.definition[value].filter(|of| self.has(function, of.0)) else { return false };
        let often = self.twins.often(maker);
        let least = often * if often > 1.0 { IN_LOOPS } else { CHAIN };
        let (mut sum, mut seen, mut work) = (0.0, SmallVec::<[InstId; 16]>::from_slice(&[maker]), vec![maker]);
        while let Some(inst) = work.pop().filter(|_| sum < least && seen.len() < WORTH) {
            let mut sources = false;
            function.for_each_use(inst, |reg| {
                let within = self.set.contains(reg) && self.twins.of(reg) != Twin::Out;
                let source = self.definition[reg].map(|of| of.0).filter(|_| within);
                if let Some(source) = source.filter(|source| !seen.contains(source) && self.has(function, *source)) {
                    seen.push(source);
                    work.push(source);
                }
                sources = true;
            });
            // A constant costs as much in either file.
            sum += if sources { self.twins.often(inst).min(often) } else { 0.0 };
        }
        let (leaves, encodes) = (function[value].file == File::P, self.encodes);
        sum >= least
            && operands::moves_out(function, value, &encodes, &self.trial)
            && !(leaves && self.may_leave(function, maker))
    }

    /// Whether an instruction of the set could leave it alone: no other there reads what it makes,
    /// and it takes its sources in the uniform file.
    fn may_leave(&mut self, function: &mut Function, inst: InstId) -> bool {
        let mut alone = true;
        function.for_each_def(inst, |reg| {
            alone &= !self.readers(reg).iter().any(|reader| self.has(function, *reader));
        });
        alone && {
            let general = self.choose(function, inst).general;
            general.iter().all(|reg| self.is_in_both(function, *reg))
        }
    }
}
