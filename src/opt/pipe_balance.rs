//! Pipe balance: a move or a sum becomes a product where the pipe of products is free sooner, or is
//! free and has less to do in the block: other warps wait for the same pipes.
//!
//! IMAD adds a register to zero times zero, or to one times another, and issues beside what takes
//! integers, so that both pipes of a scheduler work. Runs in the order in which a block issues; the
//! result and its latency stay as they are. ptxas writes IMAD.MOV and IMAD.IADD for the same
//! reason.

use crate::analysis::PassCx;
use crate::analysis::def_use::Fits;
use crate::arrays::Each;
use crate::ori::{Block, File, Function, InstId, Kind, Operand};
use crate::tables::throughput::{Pipe, Throughput};
use crate::tables::{Mods, Op, Role};
use smallvec::SmallVec;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let (function, fits): (_, Fits) = (&mut *cx.function, &cx.encoder.encodes);
    let Some(throughput) = Throughput::of(function.target()) else { return };
    for block in function.layout().to_vec() {
        balance(function, block, throughput, fits);
    }
}

fn balance(function: &mut Function, block: Block, throughput: &Throughput, fits: Fits) {
    let product = throughput.pace(Op::IMAD, &Mods::default());
    let cost = |function: &Function, inst: InstId| {
        let data = &function[inst];
        let pace = throughput.pace(data.op, &data.mods);
        (pace.pipe as usize, u64::from(pace.cycles))
    };
    let insts = std::mem::take(&mut function[block]);
    // What each pipe has to do, when it takes the next instruction, and when the next one issues.
    let (mut work, mut free, mut now) = ([0u64; Pipe::ALL.len()], [0u64; Pipe::ALL.len()], 0);
    for inst in &insts {
        let (pipe, cycles) = cost(function, *inst);
        work[pipe] += cycles;
    }
    let (other, more) = (product.pipe as usize, u64::from(product.cycles));
    for inst in &insts {
        let (mut pipe, mut cycles) = cost(function, *inst);
        let idle = free[other] <= now && work[other] + more < work[pipe];
        if pipe != other
            && (idle || free[pipe].max(now) > free[other].max(now))
            && becomes_product(function, *inst, fits)
        {
            work[pipe] -= cycles;
            work[other] += more;
            (pipe, cycles) = (other, more);
        }
        let start = free[pipe].max(now);
        free[pipe] = start + cycles;
        now = start + 1;
    }
    function[block] = insts;
}

/// Makes an instruction the product that does the same, if the target has it.
fn becomes_product(function: &mut Function, inst: InstId, fits: Fits) -> bool {
    let Some(args) = product(function, inst) else { return false };
    let (old, operands) = (function[inst], SmallVec::<[Operand; 10]>::from_slice(function.args(inst)));
    function.remake(inst, Op::IMAD);
    function[inst].guard = old.guard;
    args.into_iter().for_each(|(role, operand)| function.set_arg(inst, role, operand));
    let fit = fits(function, inst);
    if !fit {
        function[inst] = old;
        function.args_mut(inst).copy_from_slice(&operands);
    }
    fit
}

/// The operands of the product that does what an instruction does.
fn product(function: &mut Function, inst: InstId) -> Option<[(Role, Operand); 4]> {
    let [d, first, second] = [Role::D, Role::A, Role::B].each(|role| function.arg(inst, role));
    let d = d.as_reg().filter(|reg| function[*reg].file == File::R)?;
    let (a, b, c) = match function[inst].op {
        Op::MOV if first == first.plain() => (Operand::zero(), Operand::zero(), first),
        Op::IADD3 if is_plain_sum(function, inst) => (first, function.imm(1), second),
        _ => return None,
    };
    Some([(Role::D, Operand::reg(d)), (Role::A, a), (Role::B, b), (Role::C, c)])
}

/// Whether a sum has two registers, no third term and no carry.
fn is_plain_sum(function: &Function, inst: InstId) -> bool {
    let arg = |role| function.arg(inst, role);
    let carries = [Role::Pu, Role::Pv, Role::Pp, Role::Pq];
    let general = |operand: Operand| {
        operand == operand.plain() && operand.as_reg().is_some_and(|reg| function[reg].file == File::R)
    };
    function[inst].mods == Mods::default()
        && carries.into_iter().all(|role| arg(role).is_null())
        && general(arg(Role::A))
        && general(arg(Role::B))
        && arg(Role::C).kind() == Kind::Zero
}
