//! Ties the accumulator of a wgmma product: it stays in one register tuple from the first product
//! to the wait.
//!
//! Each product gets one tuple as input and output, with copies before it that coalescing removes.
//! `factors` keeps what the products read. A uniform predicate made from a constant one is replaced
//! by it.

use super::{factors, has_products};
use crate::analysis::PassCx;
use crate::ori::{Function, InstId, Operand, VReg, destruct};
use crate::sorted::SortedMap;
use crate::tables::{Op, Role};

/// Ties sums and keeps factors.
pub fn run(cx: &mut PassCx) {
    if !has_products(cx.function) {
        cx.unchanged = true;
        return;
    }
    let cfg = cx.cfg();
    let function = &mut *cx.function;
    known_predicates(function);
    tie(function);
    factors::run(function, &cfg);
}

fn products(function: &Function) -> Vec<InstId> {
    let all = function.layout().iter().flat_map(|block| &function[*block]);
    all.copied().filter(|inst| function[*inst].op == Op::GMMA).collect()
}

/// VOTEU of PT for the sake of products alone: PT itself.
fn known_predicates(function: &mut Function) {
    let mut votes: SortedMap<VReg, (InstId, u32)> = SortedMap::new();
    let mut defined: SortedMap<VReg, u32> = SortedMap::new();
    for block in function.layout().to_vec() {
        for inst in function[block].clone() {
            if function[inst].op == Op::VOTEU
                && function.arg(inst, Role::Pp) == Operand::always()
                && let Some(reg) = function.arg(inst, Role::Pu).as_reg()
            {
                votes.insert(reg, (inst, 0));
            }
            function.for_each_def(inst, |reg| *defined.entry(reg).or_default() += 1);
            function.for_each_use(inst, |reg| {
                if let Some(vote) = votes.get_mut(&reg) {
                    vote.1 += 1;
                }
            });
        }
    }
    votes.retain(|reg, _| defined.get(reg) == Some(&1));
    for inst in products(function) {
        if let Some(vote) = function.arg(inst, Role::Pp).as_reg().and_then(|reg| votes.get_mut(&reg)) {
            vote.1 = vote.1.saturating_sub(1);
            function.set_arg(inst, Role::Pp, Operand::always());
        }
    }
    let dead: Vec<InstId> = votes.values().filter(|vote| vote.1 == 0).map(|vote| vote.0).collect();
    for block in function.layout().to_vec() {
        function[block].retain(|inst| !dead.contains(inst));
    }
}

pub(super) fn regs(function: &Function, inst: InstId, role: Role) -> Vec<VReg> {
    let mut out = Vec::new();
    function.for_each_reg(function.arg(inst, role), |reg| out.push(reg));
    out
}

/// One vector for what is added to and what is given.
fn tie(function: &mut Function) {
    for block in function.layout().to_vec() {
        let mut out = Vec::with_capacity(function[block].len());
        for inst in std::mem::take(&mut function[block]) {
            if function[inst].op == Op::GMMA {
                let (d, c) = (regs(function, inst, Role::D), regs(function, inst, Role::C));
                if !d.is_empty() && d.len() == c.len() && d != c {
                    let pairs: Vec<(VReg, VReg)> = d.iter().copied().zip(c).collect();
                    let line = function[inst].line;
                    let copies = destruct::parallel_copy(function, &pairs);
                    copies.iter().for_each(|copy| function[*copy].line = line);
                    out.extend(copies);
                    let sum = function.vector(&d);
                    function.set_arg(inst, Role::C, Operand::vector(sum));
                }
            }
            out.push(inst);
        }
        function[block] = out;
    }
}
