//! Phase OriDoSyncronization: puts the lanes of a warp together where the program needs them together.
//!
//! Input: a function out of SSA, without BSSY, BSYNC, WARPSYNC and YIELD. Output: the same with convergence regions (by
//! `regions`), WARPSYNC before convergent operations in blocks that are not proved convergent, and YIELD in loops that may
//! wait for another lane. Invariants: a BSYNC stands in a block of its own directly before its meeting block in the
//! layout, and the BSSY names that meeting block; SYNCMASK is gone.

use super::regions::{Enrol, Group, Plan, plan};
use crate::ori::cfg::Cfg;
use crate::ori::{Block, File, Function, InstId, Kind, Operand};
use crate::tables::{Feature, Mod, Op, Prop, Role, value};

/// Every lane of a warp.
const ALL_LANES: u64 = 0xffff_ffff;

pub fn run(function: &mut Function) {
    let (cfg, plan) = planned(function);
    warp_syncs(function, &plan);
    yields(function, &cfg, &plan);
    for group in &plan.groups {
        let barrier = function.new_reg(File::B);
        hold_to_the_exits(function, group, barrier);
        for place in &group.enrol {
            let block = match *place {
                Enrol::Branch(block) => block,
                Enrol::Entry(block) => outside(&cfg, group.meet, block).first().copied().unwrap_or(block),
            };
            let bssy = region_inst(function, Op::BSSY, barrier);
            function.set_arg(bssy, Role::Target, Operand::label(group.meet));
            insert_before_branch(function, block, bssy);
        }
        let bsync = region_inst(function, Op::BSYNC, barrier);
        let bra = branch(function, group.meet);
        let wait = function.new_block_before(group.meet);
        function.blocks[wait] = vec![bsync, bra];
        for pred in &group.waiting {
            redirect(function, *pred, group.meet, wait);
        }
    }
}

/// A lane that exits inside a region leaves its barrier to the others: until then nothing else may use the register.
fn hold_to_the_exits(function: &mut Function, group: &Group, barrier: crate::ori::VReg) {
    for block in function.layout.clone().into_iter().filter(|b| group.region.contains(*b)) {
        for inst in function.blocks[block].clone() {
            if matches!(function.insts[inst].op, Op::EXIT | Op::RET) {
                function.add_extra_use(inst, Operand::reg(barrier));
            }
        }
    }
}

/// The plan, after giving each cycle entry that needs one a block in which all lanes from outside enrol.
fn planned(function: &mut Function) -> (Cfg, Plan) {
    loop {
        let cfg = Cfg::new(function);
        let plan = plan(function, &cfg);
        let missing =
            plan.groups.iter().flat_map(|g| g.enrol.iter().map(move |e| (g.meet, *e))).find_map(|(meet, e)| {
                let Enrol::Entry(block) = e else { return None };
                let from = outside(&cfg, meet, block);
                (from.len() != 1 || cfg.succs[from[0]].len() != 1).then_some((block, from))
            });
        let Some((block, from)) = missing else { return (cfg, plan) };
        let bra = branch(function, block);
        let landing = function.new_block_before(block);
        function.append(landing, bra);
        from.iter().for_each(|pred| redirect(function, *pred, block, landing));
    }
}

/// Predecessors of a cycle's entry that are outside the cycle.
fn outside(cfg: &Cfg, meet: Block, entry: Block) -> Vec<Block> {
    let others: Vec<Block> = cfg.rpo.iter().copied().filter(|b| *b != meet).collect();
    let cycles = crate::ori::cfg::cycles_among(cfg, &others);
    let members = cycles.of[entry].map(|c| &cycles.members[c as usize]);
    cfg.preds[entry].iter().copied().filter(|p| !members.is_some_and(|m| m.contains(p))).collect()
}

fn region_inst(function: &mut Function, op: Op, barrier: crate::ori::VReg) -> InstId {
    let inst = function.make(op);
    function.set_arg(inst, Role::B, Operand::reg(barrier));
    if function.target.has(Feature::BranchReconvergent) {
        function.insts[inst].mods.set(Mod::Reconvergent, value::reconvergent::RECONVERGENT);
    }
    inst
}

fn branch(function: &mut Function, target: Block) -> InstId {
    let bra = function.make(Op::BRA);
    function.set_arg(bra, Role::Target, Operand::label(target));
    bra
}

/// Position of the first of the branches that end a block.
fn branch_position(function: &Function, block: Block) -> usize {
    let insts = &function.blocks[block];
    let tail = insts.iter().rev().take_while(|i| function.insts[**i].op.has(Prop::Terminator)).count();
    insts.len() - tail
}

fn insert_before_branch(function: &mut Function, block: Block, inst: InstId) {
    let at = branch_position(function, block);
    function.blocks[block].insert(at, inst);
}

/// Makes the branches of `block` that go to `old` go to `new`.
fn redirect(function: &mut Function, block: Block, old: Block, new: Block) {
    for inst in function.blocks[block].clone() {
        if !function.insts[inst].op.has(Prop::Control) {
            continue;
        }
        for operand in function.args_mut(inst) {
            if operand.kind() == Kind::Label(old) {
                *operand = Operand::label(new);
            }
        }
    }
}

/// Replaces SYNCMASK by WARPSYNC in blocks that are not proved convergent, and puts WARPSYNC before block barriers there.
fn warp_syncs(function: &mut Function, plan: &Plan) {
    for block in function.layout.clone() {
        let divergent = plan.varying.divergent.contains(block);
        let mut out = Vec::with_capacity(function.blocks[block].len());
        for inst in function.blocks[block].clone() {
            let op = function.insts[inst].op;
            let mask = match op {
                Op::SYNCMASK => Some(function.arg(inst, Role::A)),
                Op::BAR => Some(function.imm(ALL_LANES)),
                _ => None,
            };
            if let Some(mask) = mask.filter(|_| divergent) {
                warp_sync(function, inst, mask, &mut out);
            }
            if op != Op::SYNCMASK {
                out.push(inst);
            }
        }
        function.blocks[block] = out;
    }
}

/// WARPSYNC of a mask, in the guard and at the line of the instruction that needs it. Where there is `WARPSYNC.ALL`, there is
/// none with an immediate mask: another constant goes through a register.
fn warp_sync(function: &mut Function, before: InstId, mask: Operand, out: &mut Vec<InstId>) {
    let data = function.insts[before];
    let sync = function.make(Op::WARPSYNC);
    (function.insts[sync].line, function.insts[sync].guard) = (data.line, data.guard);
    match function.imm_value(mask) {
        Some(ALL_LANES) if function.target.has(Feature::WarpsyncAll) => {
            function.insts[sync].mods.set(Mod::All, value::all::ALL);
        }
        Some(_) if function.target.has(Feature::WarpsyncAll) => {
            let reg = Operand::reg(function.new_reg(File::R));
            let mov = function.make(Op::MOV);
            function.set_arg(mov, Role::D, reg);
            function.set_arg(mov, Role::A, mask);
            function.insts[mov].line = data.line;
            function.set_arg(sync, Role::A, reg);
            out.push(mov);
        }
        _ => function.set_arg(sync, Role::A, mask),
    }
    out.push(sync);
}

/// Puts YIELD before each backward branch of a loop that may wait for another lane.
fn yields(function: &mut Function, cfg: &Cfg, plan: &Plan) {
    for block in &cfg.rpo {
        let back = cfg.succs[*block].iter().any(|s| cfg.number[*s] <= cfg.number[*block]);
        if back && plan.spinning.contains(*block) {
            let inst = function.make(Op::YIELD);
            insert_before_branch(function, *block, inst);
        }
    }
}
