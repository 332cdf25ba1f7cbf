//! Distances between the instructions of a warp group, which name no register in common.
//!
//! Each block begins without a distance. Source: variants of a kernel of ptxas 13.0.88 on an H200:
//! a product one, two or four cycles behind WARPGROUP.ARRIVE, and WARPGROUP.DEPBAR one or two
//! cycles behind a product, gave wrong sums; six and three gave right ones.

use super::Fault;
use super::step::Observer;
use crate::sass::inst::Inst;
use crate::tables::{Op, Role};

/// Cycles from an arrival to a product, and from a product to the wait for it.
const ARRIVED: u16 = 6;
const ISSUED: u16 = 3;

/// Cycles since the last arrival and the last product of a block, if there is one.
#[derive(Default)]
pub struct Ages {
    arrival: Option<u16>,
    product: Option<u16>,
}

impl Ages {
    /// Checks an instruction and passes its stall.
    pub fn step(&mut self, at: usize, inst: &Inst, observer: &mut impl Observer) {
        let waits = inst.op == Op::WARPGROUP && !inst.arg(Role::A).is_none();
        let checked = match inst.op {
            Op::GMMA => self.arrival.map(|age| (age, ARRIVED)),
            _ if waits => self.product.map(|age| (age, ISSUED)),
            _ => None,
        };
        if let Some((age, needed)) = checked.filter(|(age, needed)| age < needed) {
            observer.fault(at, Fault::Group { needed, age });
        }
        match inst.op {
            Op::GMMA => self.product = Some(0),
            Op::WARPGROUP if !waits => self.arrival = Some(0),
            _ => {}
        }
        for age in [&mut self.arrival, &mut self.product].into_iter().flatten() {
            *age = age.saturating_add(inst.ctrl.stall.into());
        }
    }
}
