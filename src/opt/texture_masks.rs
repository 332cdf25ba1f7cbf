//! Takes components that nothing reads out of the masks of textures (in GeneralOptimize).
//!
//! A read of a texture gives the components that its mask selects, the first two in one result and
//! the others in a second one; fewer components need fewer registers. Halves lie two in a register,
//! and a read under a guard leaves its old results as they are: both keep their masks.

use crate::analysis::PassCx;
use crate::ori::liveness::RegSet;
use crate::ori::{Function, InstId, Kind, Operand, VReg};
use crate::tables::{Mod, Op, Prop, Role};

/// Components of the first result.
const FIRST: usize = 2;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let function = &mut *cx.function;
    let reads = |function: &Function, inst: InstId| selects_components(function[inst].op);
    let all: Vec<InstId> = function.layout().iter().flat_map(|b| &function[*b]).copied().collect();
    if !all.iter().any(|inst| reads(function, *inst)) {
        cx.unchanged = true;
        return;
    }
    let mut read = RegSet::new(function.regs().len());
    for inst in &all {
        function.for_each_use(*inst, |reg| {
            read.insert(reg);
        });
    }
    for inst in all {
        if reads(function, inst) {
            shrink(function, inst, &read);
        }
    }
}

/// Whether an operation reads the components of a texture that its mask selects.
fn selects_components(op: Op) -> bool {
    op.has(Prop::ReadsMemory) && [Role::D2, Role::Mask].iter().all(|role| op.role_index(*role).is_some())
}

/// Leaves the components that are read, and one of them if none is.
fn shrink(function: &mut Function, inst: InstId, read: &RegSet) {
    let data = &function[inst];
    if !data.guard.is_null() || data.mods.get(Mod::TexHalf) != 0 {
        return;
    }
    let Some(mask) = function.imm_value(function.arg(inst, Role::Mask)) else { return };
    let mut results = registers(function, function.arg(inst, Role::D));
    results.extend(registers(function, function.arg(inst, Role::D2)));
    let components: Vec<usize> = (0..4).filter(|i| mask >> i & 1 == 1).collect();
    if components.len() != results.len() {
        return;
    }
    let wanted = |reg: VReg| read.contains(reg) || function[reg].phys.is_some();
    let all: Vec<(usize, VReg)> = components.into_iter().zip(results).collect();
    let mut kept: Vec<(usize, VReg)> = all.iter().copied().filter(|(_, reg)| wanted(*reg)).collect();
    if kept.is_empty() {
        kept.push(all[0]);
    }
    if kept.len() == all.len() {
        return;
    }
    let mask = kept.iter().fold(0, |mask, (i, _)| mask | 1 << i);
    let regs: Vec<VReg> = kept.into_iter().map(|(_, reg)| reg).collect();
    let (low, high) = regs.split_at(regs.len().min(FIRST));
    for (role, regs) in [(Role::D, low), (Role::D2, high)] {
        let operand = match regs {
            [] => Operand::zero(),
            [reg] => Operand::reg(*reg),
            _ => Operand::vector(function.vector(regs)),
        };
        function.set_arg(inst, role, operand);
    }
    let mask = function.imm(mask);
    function.set_arg(inst, Role::Mask, mask);
}

/// The registers of a result.
fn registers(function: &Function, operand: Operand) -> Vec<VReg> {
    match operand.kind() {
        Kind::Reg(reg) => vec![reg],
        Kind::Vector(vector) => function.vector_regs(vector).to_vec(),
        _ => Vec::new(),
    }
}
