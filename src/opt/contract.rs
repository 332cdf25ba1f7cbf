//! Contraction (in GeneralOptimize): fuses a product and the sum that is its single use into FFMA,
//! DFMA or HFMA2.
//!
//! Both must be marked `contract`: the source writes no rounding, and the caller has not forbidden
//! it. The product must treat subnormals as the sum does, have its format and not saturate, so only
//! its rounding changes. The product is left for dead-code elimination.

use crate::analysis::PassCx;
use crate::ori::operand::Kind;
use crate::ori::{Function, InstId, Operand, VReg, table};
use crate::tables::{Mod, Op, Prop, Role};
use cranelift_entity::SecondaryMap;

/// Sign bit of an f32.
const SIGN: u64 = 1 << 31;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let function = &mut *cx.function;
    let insts: Vec<InstId> = function.layout().iter().flat_map(|b| function[*b].iter().copied()).collect();
    let is_free = |f: &Function, inst: InstId| f[inst].contract && f[inst].guard.is_null();
    if !insts.iter().any(|inst| is_free(function, *inst)) {
        cx.unchanged = true;
        return;
    }
    let mut product: SecondaryMap<VReg, Option<InstId>> = table(function.regs().len());
    let mut uses: SecondaryMap<VReg, u32> = table(function.regs().len());
    for inst in &insts {
        function.for_each_use(*inst, |reg| uses[reg] += 1);
        if is_free(function, *inst) && is_product(function[*inst].op) {
            function.for_each_def(*inst, |reg| product[reg] = Some(*inst));
        }
    }
    for sum in insts {
        let op = function[sum].op;
        let Some(fused) = op.info().fused.filter(|_| op.has(Prop::Adds)) else { continue };
        if is_free(function, sum)
            && let Some(args) = fuse(function, sum, Role::A, Role::B, &product, &uses)
                .or_else(|| fuse(function, sum, Role::B, Role::A, &product, &uses))
        {
            replace(function, sum, fused, args);
        }
    }
}

/// Whether an operation is a product that a sum may take in.
fn is_product(op: Op) -> bool {
    op.has(Prop::Multiplies) && op.info().fused.is_some()
}

/// The operands of the fused operation, if `role` of the sum is a product that can be fused.
fn fuse(
    function: &mut Function,
    sum: InstId,
    role: Role,
    other: Role,
    product: &SecondaryMap<VReg, Option<InstId>>,
    uses: &SecondaryMap<VReg, u32>,
) -> Option<[Operand; 3]> {
    let (p, c) = (function.arg(sum, role), function.arg(sum, other));
    let mut regs = Vec::new();
    function.for_each_reg(p, |reg| regs.push(reg));
    // The third operand has no absolute value. A second immediate costs a move, which is no more
    // than the sum.
    let known = regs.len() == 1 && matches!(c.kind(), Kind::Imm(_));
    if p.abs() || c.abs() || !(known || matches!(c.kind(), Kind::Reg(_) | Kind::Vector(_) | Kind::Zero)) {
        return None;
    }
    let mul = product[*regs.first()?]?;
    let mut defs = Vec::new();
    function.for_each_reg(function.arg(mul, Role::D), |reg| defs.push(reg));
    let same = |kind: Mod| function[mul].mods.get(kind) == function[sum].mods.get(kind);
    let alike = same(Mod::Ftz) && same(Mod::Packed) && !saturates(function, mul);
    if defs != regs || regs.iter().any(|reg| uses[*reg] != 1) || !alike {
        return None;
    }
    let (a, b) = (function.arg(mul, Role::A), function.arg(mul, Role::B));
    if a.abs() || b.abs() {
        return None;
    }
    let negative = p.neg() ^ a.neg() ^ b.neg();
    let b = match function.imm_value(b) {
        None if negative => b.plain().negated(),
        None => b.plain(),
        Some(_) if !negative => b,
        Some(_) if regs.len() > 1 || function[sum].op == Op::HADD2 => return None,
        Some(bits) => function.imm(bits ^ SIGN),
    };
    Some([a.plain(), b, c])
}

fn saturates(function: &Function, inst: InstId) -> bool {
    function[inst].mods.get(Mod::Sat) != 0
}

fn replace(function: &mut Function, sum: InstId, op: Op, [a, b, c]: [Operand; 3]) {
    let (d, data) = (function.arg(sum, Role::D), function[sum]);
    let new = function.make(op);
    for (role, operand) in [(Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)] {
        function.set_arg(new, role, operand);
    }
    (function[new].mods, function[new].line) = (data.mods, data.line);
    function[sum] = function[new];
}
