//! Exchanges the operands of comparisons of two words, both at once, so that a value that is the
//! same in all lanes stands second, where an instruction takes it in a uniform register.
//!
//! A comparison of one word is exchanged where it is encoded; that of the high words is not alone,
//! for it depends on that of the low ones.

use crate::analysis::def_use::DefUse;
use crate::analysis::divergence::Varying;
use crate::ori::commute::mirrored;
use crate::ori::{Function, InstId, Kind, VReg};
use crate::tables::{Mod, Op, Role, value};

/// Exchanges where the first operand may be in the uniform file and the second one may not, or is
/// zero.
pub fn exchange(function: &mut Function, lanes: &Varying) {
    let is_high = |inst: &InstId| function[*inst].op == Op::ISETP && function[*inst].mods.get(Mod::Ex) == value::ex::EX;
    let found: Vec<InstId> = function.layout().iter().flat_map(|b| &function[*b]).copied().filter(is_high).collect();
    if found.is_empty() {
        return;
    }
    let def_use = DefUse::new(function);
    for high in found {
        let Some(carry) = function.arg(high, Role::Pq).as_reg().filter(|carry| def_use.uses(*carry) == 1) else {
            continue;
        };
        let Some(low) = def_use.definition(carry) else { continue };
        let single = function[low].op == Op::ISETP && function[low].mods.get(Mod::Ex) != value::ex::EX;
        let made = function.arg(low, Role::Pu).as_reg() == Some(carry) && function.arg(low, Role::Pv).is_null();
        if single && made && [low, high].iter().all(|inst| gains(function, lanes, &def_use, *inst)) {
            [low, high].into_iter().for_each(|inst| turn(function, inst));
        }
    }
}

/// Whether a word may be in the uniform file, and what it is compared with need not stand second.
fn gains(function: &Function, lanes: &Varying, def_use: &DefUse, inst: InstId) -> bool {
    let (a, b) = (function.arg(inst, Role::A), function.arg(inst, Role::B));
    let may_move = |reg: VReg| {
        let op = def_use.definition(reg).map(|maker| function[maker].op);
        !lanes.regs.contains(reg) && op.is_some_and(|op| op == Op::PHI || !op.info().uniform.is_empty())
    };
    let first = match b.kind() {
        Kind::Reg(reg) => !may_move(reg),
        kind => kind == Kind::Zero,
    };
    a.as_reg().is_some_and(may_move) && first && a == a.plain() && b == b.plain()
}

fn turn(function: &mut Function, inst: InstId) {
    let (a, b) = (function.arg(inst, Role::A), function.arg(inst, Role::B));
    function.set_arg(inst, Role::A, b);
    function.set_arg(inst, Role::B, a);
    let mods = &mut function[inst].mods;
    mods.set(Mod::Cmp, mirrored(mods.get(Mod::Cmp)));
}
