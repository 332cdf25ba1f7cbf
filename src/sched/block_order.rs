//! The order of a block with one aim: region after region, from its end to its beginning. What is
//! fixed stays between them.

use super::list_scheduler::is_fixed;
use super::pressure_scheduler::Scratch;
use super::region::{Aim, Region};
use super::sweep::{Limit, Peaks, Sweep};
use crate::analysis::def_use::sets_stack_pointer;
use crate::ori::liveness::Liveness;
use crate::ori::{Block, Function, InstId, VReg};
use crate::tables::Prop;

/// Registers up to which those of arguments and results are free until a call and behind it.
const FEW: u32 = 32;
/// Instructions between two that are fixed; more are left in their order.
const LONGEST: usize = 20_000;
/// Regions of a block that are kept for the next order.
const MOST_REGIONS: usize = 64;

/// An order, with what lives at once in it where each register counted for itself.
pub type Swept = (Vec<InstId>, Option<Peaks>);

/// The order of a block with this aim.
pub fn lowest(function: &Function, block: Block, live: &Liveness, scratch: &mut Scratch, aim: Aim) -> Swept {
    lowest_below(function, block, live, scratch, aim, None).unwrap_or_default()
}

/// The order of a block with this aim; `None` as soon as it is seen to cost no less than the limit.
pub fn lowest_below(
    function: &Function,
    block: Block,
    live: &Liveness,
    scratch: &mut Scratch,
    aim: Aim,
    limit: Option<Limit>,
) -> Option<Swept> {
    let insts = &function[block];
    let mut out = Vec::with_capacity(insts.len());
    let Scratch { live: registers, work, groups, regions, .. } = scratch;
    regions.retain(|region| region.block == block);
    work.begin();
    let mut sweep = Sweep::start(function, block, live, registers, aim.quads);
    let (mut end, last) = (insts.len(), function.first_terminator(block));
    while end > 0 {
        let fixed = |at: &usize| stays(function, insts[*at]) && (*at >= last || !aim.passes(function, insts[*at]));
        let start = (0..end).rev().find(fixed).map_or(0, |at| at + 1);
        let product = |at: usize| insts.get(at).is_some_and(|inst| is_group_product(function, *inst));
        // Accumulators of asynchronous products stay where they are from one product to the next.
        if end - start > LONGEST || product(end) || start > 0 && product(start - 1) {
            insts[start..end].iter().rev().for_each(|inst| sweep.pass(*inst));
            out.extend(insts[start..end].iter().rev());
        } else if start < end {
            let known = regions.iter().position(|region| region.is(start..end, aim));
            let known = known.unwrap_or_else(|| {
                // A long block has many.
                regions.truncate(MOST_REGIONS - 1);
                regions.push(Region::new(&sweep, block, start..end, aim, groups));
                regions.len() - 1
            });
            if !regions[known].fill(&mut sweep, aim, work, &mut out, limit) {
                return None;
            }
        } else {
            work.asked.general = work.asked.general.max(sweep.now.general);
        }
        if start > 0 {
            sweep.pass(insts[start - 1]);
            out.push(insts[start - 1]);
        }
        end = start.saturating_sub(1);
    }
    out.reverse();
    let swept = sweep.finish();
    Some((out, Some(swept).filter(|_| !aim.quads)))
}

fn is_group_product(function: &Function, inst: InstId) -> bool {
    function[inst].op.has(Prop::GroupProduct)
}

fn stays(function: &Function, inst: InstId) -> bool {
    let begins = function[inst].op.has(Prop::BeginsBlock);
    let fixed = begins || is_group_product(function, inst) || is_fixed(function, inst);
    fixed || sets_stack_pointer(function, inst) || hands_over(function, inst)
}

/// Whether an instruction copies an argument or a result to or from the register that the
/// convention gives it, in a function with so few registers that this one is needed elsewhere.
fn hands_over(function: &Function, inst: InstId) -> bool {
    let few = function.attributes().max_registers.is_some_and(|most| most <= FEW);
    let mut fixed = false;
    let mut note = |reg: VReg| fixed |= function[reg].fixed.is_some();
    if few && function[inst].op.has(Prop::Copies) {
        function.for_each_use(inst, &mut note);
        function.for_each_def(inst, &mut note);
    }
    fixed
}
