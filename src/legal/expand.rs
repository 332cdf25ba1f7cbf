//! Expands pseudo-operations into instructions: walks a function and dispatches each operation to
//! its expansion.
//!
//! A block is split where an expansion branches; new blocks follow the block they come from, and
//! slow paths go behind all other blocks. Expansions are not written in SSA form; if the function
//! is in SSA form, the new registers and the results are converted afterwards. A guarded operation
//! becomes a branch around its expansion.

use crate::arrays::Each;
use crate::ori::liveness::RegSet;
use crate::ori::mods::*;
use crate::ori::{Block, Code, Function, InstId, Kind, Operand, VReg, ssa};
use crate::tables::{Family, Mod, Op, Role, value};
use cranelift_entity::{EntityRef, SecondaryMap};

/// Expands the operations for which `wanted` is true; returns whether there were any.
pub fn run(function: &mut Function, wanted: impl Fn(&Function, InstId) -> bool) -> bool {
    let any = function.layout().iter().flat_map(|b| &function[*b]).any(|inst| wanted(function, *inst));
    if !any {
        return false;
    }
    let first_new = function.regs().len();
    let f = std::mem::replace(function, Function::new("", function.target()));
    let ssa = f.is_ssa();
    let entry = f.entry();
    let mut code = Code { f, block: entry, guard: Operand::NULL, line: 0, visible: 0, cold: Vec::new() };
    let mut ends: SecondaryMap<Block, Option<Block>> = SecondaryMap::new();
    let mut results: Vec<VReg> = Vec::new();
    for block in code.f.take_blocks(0) {
        code.f.place_blocks([block]);
        code.block = block;
        for inst in std::mem::take(&mut code.f[block]) {
            if wanted(&code.f, inst) {
                code.f.for_each_def(inst, |reg| results.push(reg));
                operation(&mut code, inst, ssa);
            } else {
                let at = code.block;
                code.f.append(at, inst);
            }
        }
        ends[block] = Some(code.block).filter(|end| *end != block);
    }
    let cold = std::mem::take(&mut code.cold);
    code.f.retain_blocks(|block| !cold.contains(block));
    code.f.place_blocks(cold);
    *function = code.f;
    if ssa {
        rename_predecessors(function, &ends);
        let mut are_results = RegSet::new(function.regs().len());
        results.into_iter().for_each(|reg| {
            are_results.insert(reg);
        });
        ssa::repair(function, |reg| reg.index() >= first_new || are_results.contains(reg));
    }
    true
}

/// Expands one operation of a function that is not in SSA form; returns the block that now has the
/// instructions after it.
pub fn one(function: &mut Function, block: Block, at: usize) -> Block {
    let f = std::mem::replace(function, Function::new("", function.target()));
    let mut code = Code { f, block, guard: Operand::NULL, line: 0, visible: 0, cold: Vec::new() };
    let behind: Vec<InstId> = code.f[block].drain(at..).collect();
    let place = code.f.layout().iter().position(|b| *b == block).map_or(code.f.layout().len(), |place| place + 1);
    let after = code.f.take_blocks(place);
    operation(&mut code, behind[0], false);
    let end = code.block;
    code.f[end].extend_from_slice(&behind[1..]);
    let cold = std::mem::take(&mut code.cold);
    code.f.retain_blocks(|block| !cold.contains(block));
    code.f.place_blocks(after);
    code.f.place_blocks(cold);
    *function = code.f;
    end
}

/// Renames the predecessors in PHIs to the blocks in which they now end.
fn rename_predecessors(function: &mut Function, ends: &SecondaryMap<Block, Option<Block>>) {
    for block in function.layout().to_vec() {
        for i in 0..function[block].len() {
            let inst = function[block][i];
            if function[inst].op != Op::PHI {
                break;
            }
            for operand in function.args_mut(inst) {
                if let Kind::Label(from) = operand.kind()
                    && let Some(end) = ends[from]
                {
                    *operand = Operand::label(end);
                }
            }
        }
    }
}

/// Expands one operation, guard included.
fn operation(code: &mut Code, inst: InstId, ssa: bool) {
    let data = code.f[inst];
    code.line = data.line;
    let d = code.f.arg(inst, Role::D);
    let done = (!data.guard.is_null()).then(|| {
        if let (true, Some(old)) = (ssa, code.f.olds(inst).first().copied()) {
            code.copy_value(d, old);
        }
        let [done, go] = [(); 2].each(|()| code.f.new_block());
        code.branch_if(data.guard.inverted(), done, go);
        done
    });
    // Outside SSA form the destination may also be a source, so the result goes through a fresh
    // register.
    let to = if ssa || d == Operand::zero() {
        d
    } else if d.as_vector().is_some() {
        code.temp_pair()
    } else {
        code.temp()
    };
    write(code, inst, to);
    code.copy_value(d, to);
    if let Some(done) = done {
        code.enter(done);
    }
}

fn write(code: &mut Code, inst: InstId, d: Operand) {
    let arg = |code: &Code, role| code.f.arg(inst, role);
    match Family::of(code.f[inst].op) {
        Some(Family::Division) => quotient(code, inst, d),
        Some(Family::Atomics) => atomic(code, inst, d),
        Some(Family::Policies) => {
            let [a, b, c, e] = [Role::A, Role::B, Role::C, Role::E].each(|role| arg(code, role));
            if code.f[inst].op == Op::POLICY_RANGE {
                code.policy_of_range(d, a, [b, c], e);
            } else {
                code.policy_of_fraction(d, a, b);
            }
        }
        None => {}
    }
}

/// Expands an atomic operation. One without an expansion stays, and SetAfterLegalization refuses
/// it.
fn atomic(code: &mut Code, inst: InstId, d: Operand) {
    if !code.atomic(inst, d) {
        let block = code.block;
        code.f.append(block, inst);
    }
}

/// Expands divisions, remainders and roots.
fn quotient(code: &mut Code, inst: InstId, d: Operand) {
    let data = code.f[inst];
    let [a, b] = [Role::A, Role::B].each(|role| code.f.arg(inst, role));
    let [a, b] = [a, b].each(|operand| code.in_reg(operand));
    let signed = data.mods.get(Mod::Sign) == value::sign::NONE;
    let ftz = data.mods.get(Mod::Ftz) == value::ftz::FTZ;
    let rounding = [RM, RP, RZ].into_iter().find(|(kind, value)| data.mods.get(*kind) == *value);
    match data.op {
        Op::IDIV => code.divide_words(d, a, b, signed, false),
        Op::IREM => code.divide_words(d, a, b, signed, true),
        Op::IDIV_16 => code.divide_shorts(d, a, b, signed, false),
        Op::IREM_16 => code.divide_shorts(d, a, b, signed, true),
        Op::IDIV_64 => code.divide_longs(d, a, b, signed, false),
        Op::IREM_64 => code.divide_longs(d, a, b, signed, true),
        Op::FDIV => code.quotient_f32(d, a, b, rounding, ftz),
        Op::FRCP => code.reciprocal_f32(d, a, rounding, ftz),
        Op::FDIV_FULL => code.full_quotient(d, a, b, ftz),
        Op::DDIV => code.quotient_f64(d, a, b, rounding),
        Op::DRCP => code.reciprocal_f64(d, a, rounding),
        Op::FSQRT => code.root_f32(d, a, rounding, ftz),
        Op::DSQRT => code.root_f64(d, a, rounding),
        Op::DRSQRT => {
            let result = code.refined_reciprocal_root(a);
            code.copy_value(d, result);
        }
        _ => {}
    }
}
