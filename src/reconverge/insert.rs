//! Inserts reconvergence (phase OriDoSyncronization): BSSY, BSYNC, WARPSYNC and YIELD.
//!
//! Runs on a function out of SSA form without these. Emits the convergence regions that `regions`
//! planned, WARPSYNC before convergent operations in blocks that are not proved convergent, and
//! YIELD in loops that may wait for another lane. Lanes that call functions of the driver together
//! meet again before the next instruction that wants them together. A BSYNC is in a block of its
//! own directly before its reconvergence point in the layout, and the BSSY names that reconvergence
//! point. No SYNCMASK remains.

use super::calls;
use crate::analysis::PassCx;
use crate::analysis::divergence::{ALL_LANES, asks_for_all, is_meeting};
use crate::analysis::reconvergence::{Enrol, Group, Plan};
use crate::analysis::regions::{is_chosen_uniform, is_numbered_uniform};
use crate::analysis::spin_loops::waits;
use crate::ori::cfg::{BlockSet, Cfg};
use crate::ori::{Block, File, Function, InstId, Operand, VReg};
use crate::sorted::SortedMap;
use crate::tables::registers::Callee;
use crate::tables::{Feature, Mod, Op, Prop, Role, value};
use cranelift_entity::SecondaryMap;
use std::rc::Rc;

/// Runs the pass.
pub fn run(cx: &mut PassCx) -> Result<(), String> {
    if calls::hold(cx) {
        cx.invalidate(&[]);
    }
    let (cfg, plan) = planned(cx);
    let function = &mut *cx.function;
    check_uniform(function, &plan)?;
    check_numbered(function, &plan)?;
    warp_syncs(function, &plan);
    yields(function, &cfg, &plan);
    let exits = exits(function);
    let mut placed: Vec<(Block, Block)> = Vec::new();
    for group in &plan.groups {
        let barrier = function.new_reg(File::B);
        hold_to_the_exits(function, group, &exits, barrier);
        for place in &group.enrol {
            let block = match *place {
                Enrol::Branch(block) => block,
                Enrol::Entry(block) => outside(group, block).first().copied().unwrap_or(block),
            };
            let bssy = region_inst(function, Op::BSSY, barrier);
            function.set_arg(bssy, Role::Target, Operand::label(group.meet));
            insert_before_branch(function, block, bssy);
        }
        let bsync = region_inst(function, Op::BSYNC, barrier);
        let bra = branch(function, group.meet);
        let wait = function.new_unplaced_block(vec![bsync, bra]);
        placed.push((group.meet, wait));
        for pred in &group.waiting {
            function.redirect(*pred, group.meet, wait);
        }
    }
    function.place_before(&placed);
    Ok(())
}

/// A uniform register that the allocator will choose is one per warp: what writes it stands where
/// all living lanes are together or the others wait, or behind a place in its block where they
/// meet, and before a call that parts them.
fn check_uniform(function: &Function, plan: &Plan) -> Result<(), String> {
    for block in function.layout().iter().filter(|b| plan.varying.interleaved.contains(**b)) {
        let mut together = !plan.varying.entered.contains(*block);
        for inst in &function[*block] {
            together &= !function.callee(*inst).is_some_and(Callee::parts_lanes);
            together |= asks_for_all(function, *inst);
            if writes_uniform(function, *inst) && !together {
                let op = function[*inst].op.name();
                return Err(format!("broken invariant: {op} writes a uniform register where lanes may be apart"));
            }
        }
    }
    Ok(())
}

/// What lanes hand over in a uniform register with a number, where they may be apart, is read in
/// the same block: at any jump others may take their turn, or join them.
fn check_numbered(function: &Function, plan: &Plan) -> Result<(), String> {
    let interleaved = || function.layout().iter().filter(|b| plan.varying.interleaved.contains(**b));
    let handed_over = |inst: &InstId| function[*inst].op.has(Prop::HandsOver);
    let mut numbered: Vec<VReg> = Vec::new();
    for inst in interleaved().flat_map(|block| &function[*block]).filter(|inst| handed_over(inst)) {
        function.for_each_def(*inst, |reg| numbered.extend(is_numbered_uniform(function, reg).then_some(reg)));
    }
    numbered.sort_unstable();
    for block in interleaved().filter(|_| !numbered.is_empty()) {
        let mut written: Vec<VReg> = Vec::new();
        for inst in &function[*block] {
            let mut lost = false;
            function.for_each_use(*inst, |reg| lost |= numbered.binary_search(&reg).is_ok() && !written.contains(&reg));
            if lost {
                let op = function[*inst].op.name();
                return Err(format!(
                    "broken invariant: {op} reads a uniform register that other lanes may have written"
                ));
            }
            if function.callee(*inst).is_some_and(Callee::parts_lanes) {
                written.clear();
            }
            function.for_each_def(*inst, |reg| written.push(reg));
        }
    }
    Ok(())
}

/// Whether an instruction writes a uniform register that the allocator will choose.
pub(super) fn writes_uniform(function: &Function, inst: InstId) -> bool {
    let mut shared = false;
    function.for_each_def(inst, |reg| shared |= is_chosen_uniform(function, reg));
    shared
}

/// The EXIT and RET instructions of each block.
fn exits(function: &Function) -> SecondaryMap<Block, Vec<InstId>> {
    let mut exits: SecondaryMap<Block, Vec<InstId>> = SecondaryMap::new();
    for block in function.layout() {
        let ends = |i: &&InstId| function[**i].op.has(Prop::Leaves);
        exits[*block].extend(function[*block].iter().filter(ends));
    }
    exits
}

/// Keeps a region's barrier live up to the exits within it: a lane that exits leaves the barrier to
/// the others, and until they are done the register must not be reused.
fn hold_to_the_exits(function: &mut Function, group: &Group, exits: &SecondaryMap<Block, Vec<InstId>>, barrier: VReg) {
    for inst in group.region.iter().flat_map(|b| &exits[*b]) {
        function.add_extra_use(*inst, Operand::reg(barrier));
    }
}

/// The plan. Creates a block for each cycle entry that needs one, in which all lanes from outside
/// the cycle execute the BSSY.
fn planned(cx: &mut PassCx) -> (Rc<Cfg>, Rc<Plan>) {
    loop {
        let (cfg, plan) = (cx.cfg(), cx.regions());
        let function = &mut *cx.function;
        let mut missing: SortedMap<Block, &[Block]> = SortedMap::new();
        for (block, from) in plan.groups.iter().flat_map(|g| &g.outside) {
            if from.len() != 1 || cfg.succs[from[0]].len() != 1 {
                missing.entry(*block).or_insert(from);
            }
        }
        if missing.is_empty() {
            return (cfg, plan);
        }
        let mut placed: Vec<(Block, Block)> = Vec::new();
        for (block, from) in missing {
            let bra = branch(function, block);
            let landing = function.new_unplaced_block(vec![bra]);
            placed.push((block, landing));
            from.iter().for_each(|pred| function.redirect(*pred, block, landing));
        }
        function.place_before(&placed);
        cx.invalidate(&[]);
    }
}

/// Predecessors of a cycle's entry from outside the cycle.
fn outside(group: &Group, entry: Block) -> &[Block] {
    group.outside.iter().find(|o| o.0 == entry).map_or(&[], |o| &o.1)
}

pub(super) fn region_inst(function: &mut Function, op: Op, barrier: VReg) -> InstId {
    let inst = function.make(op);
    function.set_arg(inst, Role::B, Operand::reg(barrier));
    if function.target().has(Feature::BranchReconvergent) {
        function[inst].mods.set(Mod::Reconvergent, value::reconvergent::RECONVERGENT);
    }
    inst
}

pub(super) fn branch(function: &mut Function, target: Block) -> InstId {
    let bra = function.make(Op::BRA);
    function.set_arg(bra, Role::Target, Operand::label(target));
    bra
}

fn insert_before_branch(function: &mut Function, block: Block, inst: InstId) {
    let at = function.first_terminator(block);
    function[block].insert(at, inst);
}

/// Replaces SYNCMASK by WARPSYNC in blocks that are not proved convergent, and inserts WARPSYNC
/// before block barriers there. In convergent blocks only the memory order of an ordered SYNCMASK
/// (`bar.warp.sync`) remains: the next access is not reordered with those before it.
fn warp_syncs(function: &mut Function, plan: &Plan) {
    for block in function.layout().to_vec() {
        let mut lanes = Together::at_start(!plan.varying.divergent.contains(block));
        let mut out = Vec::with_capacity(function[block].len());
        let mut met = false;
        for inst in function[block].clone() {
            let op = function[inst].op;
            let mask = match op {
                Op::SYNCMASK => Some(function.arg(inst, Role::A)),
                op if op.has(Prop::WholeWarp) => Some(function.imm(ALL_LANES)),
                _ => None,
            };
            if let Some(mask) = mask.filter(|mask| lanes.must_meet(function, inst, *mask)) {
                warp_sync(function, inst, mask, &mut out);
            }
            lanes.behind(function, inst, mask);
            if op == Op::SYNCMASK {
                met |= function[inst].ordered;
                continue;
            }
            if met && (op.has(Prop::ReadsMemory) || op.has(Prop::WritesMemory)) {
                function[inst].ordered = true;
                met = false;
            }
            out.push(inst);
        }
        function[block] = out;
    }
}

/// What is known of the lanes of a warp at a place in a block.
struct Together {
    /// All living lanes are there.
    all: bool,
    /// All lanes that come there run together, but lanes elsewhere may wait for them to meet.
    here: bool,
}

impl Together {
    fn at_start(all: bool) -> Together {
        Together { all, here: all }
    }

    /// Whether lanes must meet before an instruction that asks for the lanes of a mask. An ordered
    /// one (`bar.warp.sync`) also meets lanes at another place.
    fn must_meet(&self, function: &Function, inst: InstId, mask: Operand) -> bool {
        let elsewhere = function[inst].ordered || function.imm_value(mask) != Some(ALL_LANES);
        !self.all && (elsewhere || !self.here)
    }

    fn behind(&mut self, function: &Function, inst: InstId, mask: Option<Operand>) {
        if function.callee(inst).is_some_and(Callee::parts_lanes) {
            *self = Together::at_start(false);
        }
        let full = mask.is_some_and(|mask| function.imm_value(mask) == Some(ALL_LANES));
        if full && function[inst].guard.is_null() {
            self.here = true;
            self.all |= is_meeting(function, inst);
        }
    }
}

/// Emits a WARPSYNC with the guard and the source line of the instruction that needs it. Targets
/// with `WARPSYNC.ALL` have no form with an immediate mask, so any other constant goes through a
/// register.
fn warp_sync(function: &mut Function, before: InstId, mask: Operand, out: &mut Vec<InstId>) {
    let data = function[before];
    let sync = function.make(Op::WARPSYNC);
    (function[sync].line, function[sync].guard) = (data.line, data.guard);
    match function.imm_value(mask) {
        Some(ALL_LANES) if function.target().has(Feature::WarpsyncAll) => {
            function[sync].mods.set(Mod::All, value::all::ALL);
        }
        Some(_) if function.target().has(Feature::WarpsyncAll) => {
            let reg = Operand::reg(function.new_reg(File::R));
            let mov = function.make(Op::MOV);
            function.set_arg(mov, Role::D, reg);
            function.set_arg(mov, Role::A, mask);
            function[mov].line = data.line;
            function.set_arg(sync, Role::A, reg);
            out.push(mov);
        }
        _ => function.set_arg(sync, Role::A, mask),
    }
    out.push(sync);
}

/// The blocks of the loop that a backward branch closes: those from which control comes to it
/// without passing its head.
fn loop_of(cfg: &Cfg, head: Block, branch: Block, limit: usize) -> Vec<Block> {
    let mut set = BlockSet::new(limit);
    set.insert(head);
    let mut members = vec![head];
    let mut work = vec![branch];
    while let Some(block) = work.pop() {
        if set.insert(block) {
            members.push(block);
            work.extend(&cfg.preds[block]);
        }
    }
    members
}

/// Inserts YIELD before each backward branch of a loop that may wait for another lane, but not in
/// a region: lanes that yield are not waited for.
fn yields(function: &mut Function, cfg: &Cfg, plan: &Plan) {
    let mut held = BlockSet::new(function.block_limit());
    plan.groups.iter().flat_map(|group| &group.region).for_each(|block| {
        held.insert(*block);
    });
    for block in cfg.rpo.iter().filter(|b| plan.spinning.contains(**b) && !held.contains(**b)) {
        let back = |head: &&Block| cfg.number[**head] <= cfg.number[*block];
        let spins = |head: &Block| waits(function, cfg, &loop_of(cfg, *head, *block, function.block_limit()));
        if cfg.succs[*block].iter().filter(back).any(spins) {
            let inst = function.make(Op::YIELD);
            insert_before_branch(function, *block, inst);
        }
    }
}
