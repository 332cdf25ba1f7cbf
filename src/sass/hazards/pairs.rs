//! Distances between instructions that name no register in common (`latency/pairs.ron`).
//!
//! Each block begins without a distance.

use super::Fault;
use super::step::Observer;
use crate::sass::inst::Inst;
use crate::tables::latency::{Latency, MOST_PAIRS};

/// Cycles since the last first instruction of each pair in a block, if there is one.
#[derive(Default)]
pub struct Ages([Option<u16>; MOST_PAIRS]);

impl Ages {
    /// Checks an instruction and passes its stall.
    pub fn step(&mut self, latency: &'static Latency, at: usize, inst: &Inst, observer: &mut impl Observer) {
        let [first, second] = latency.pairs_of(inst.op, |role| !inst.arg(role).is_none());
        for (i, pair) in latency.each_pair(second) {
            let needed = u16::from(pair.cycles);
            if let Some(age) = self.0[i].filter(|age| *age < needed) {
                observer.fault(at, Fault::Apart { needed, age });
            }
        }
        latency.each_pair(first).for_each(|(i, _)| self.0[i] = Some(0));
        for age in self.0.iter_mut().flatten() {
            *age = age.saturating_add(inst.ctrl.stall.into());
        }
    }
}
