//! Commutation: other operand orders of an instruction with the same result, which need no move.
//!
//! Lists every order that the exchanges of the instruction's recipe allow, the present one first.
//! The results are the same bits. An operand modifier moves with its operand. Orders that a
//! modifier of the instruction excludes are not listed.
//!
//! A uniform register that is the whole address goes to the operand for one beside it: what is
//! accessed is their sum, and RZ adds nothing. A pair stays, since that operand is one register.

use crate::ori::commute::{mirrored, says_which, table_in_order};
use crate::ori::{File, Function, InstId, Operand};
use crate::tables::operands::{Exchange, RecipeInfo};
use crate::tables::{Mod, Role, value};

/// One order: the permutation of the exchanged roles, and whether the signs of two operands are
/// flipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    how: Option<(Exchange, &'static [Role])>,
    /// For each role, the index among the roles of its new operand.
    from: Vec<usize>,
    signs: Option<&'static [Role]>,
}

const TWO: [[usize; 3]; 1] = [[1, 0, 2]];
const THREE: [[usize; 3]; 5] = [[1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0], [2, 0, 1]];

/// All equivalent orders of an instruction, the present one first.
pub(super) fn orders(function: &Function, inst: InstId, recipe: &RecipeInfo) -> Vec<Order> {
    let mut orders = vec![Order::default()];
    let absent = |role| function.arg(inst, role).is_null();
    for (how, roles) in recipe.exchanges.iter().filter(|e| e.0 != Exchange::Sign && allowed(function, inst, e.0)) {
        let carry = [Role::Pu, Role::Pv].into_iter().any(|role| !absent(role));
        let all: &[[usize; 3]] = if roles.len() == 3 && (*how == Exchange::Table || !carry) { &THREE } else { &TWO };
        orders.extend(all.iter().map(|from| Order {
            how: Some((*how, roles)),
            from: from[..roles.len()].to_vec(),
            signs: None,
        }));
    }
    let signs = recipe.exchanges.iter().find(|e| e.0 == Exchange::Sign).map(|e| e.1);
    if signs.is_some() {
        let turned: Vec<Order> = orders.iter().map(|order| Order { signs, ..order.clone() }).collect();
        orders.extend(turned);
    }
    orders
}

/// Whether the modifiers of the instruction allow an exchange.
fn allowed(function: &Function, inst: InstId, how: Exchange) -> bool {
    let mods = &function[inst].mods;
    // A half is selected by the position of the operand, and an extended comparison depends on the
    // comparison of the low words.
    let halves = [Mod::SwzA, Mod::SwzB].into_iter().any(|kind| mods.get(kind) != 0);
    let table = function.imm_value(function.arg(inst, Role::Lut)).is_some();
    // DSETP.MIN and DSETP.MAX return whether the first operand is the result.
    let chooses = [value::cmp::MIN, value::cmp::MAX].contains(&mods.get(Mod::Cmp));
    match how {
        Exchange::Mirror => mods.get(Mod::Ex) == 0 && !halves && !chooses,
        Exchange::Table => table,
        Exchange::Select => !function.arg(inst, Role::Pp).is_null(),
        Exchange::Swap => !halves && !says_which(function, inst),
        Exchange::Sign => !halves,
        Exchange::Base => has_uniform_base(function, inst),
    }
}

/// Whether the register of an address is a uniform one, and there is none beside it.
fn has_uniform_base(function: &Function, inst: InstId) -> bool {
    let (base, beside) = (function.arg(inst, Role::A), function.arg(inst, Role::Ub));
    let uniform = base.as_reg().is_some_and(|reg| function[reg].file == File::UR);
    uniform && base == base.plain() && beside.is_null()
}

/// Reorders the operands of an instruction.
pub(super) fn apply(function: &mut Function, inst: InstId, order: &Order) {
    if let Some((how, roles)) = order.how {
        let given: Vec<Operand> = roles.iter().map(|role| function.arg(inst, *role)).collect();
        for (role, from) in roles.iter().zip(&order.from) {
            function.set_arg(inst, *role, given[*from]);
        }
        match how {
            Exchange::Table => table(function, inst, &order.from),
            Exchange::Mirror => mirror(function, inst),
            Exchange::Select => {
                let pp = function.arg(inst, Role::Pp).inverted();
                function.set_arg(inst, Role::Pp, pp);
            }
            // What is no register of an address is RZ.
            Exchange::Base => function.set_arg(inst, roles[0], Operand::zero()),
            Exchange::Swap | Exchange::Sign => {}
        }
    }
    for role in order.signs.unwrap_or_default() {
        let operand = function.arg(inst, *role).negated();
        function.set_arg(inst, *role, operand);
    }
}

/// Permutes the inputs of a truth table.
fn table(function: &mut Function, inst: InstId, from: &[usize]) {
    let old = function.imm_value(function.arg(inst, Role::Lut)).unwrap_or(0);
    let new = function.imm(table_in_order(old, from));
    function.set_arg(inst, Role::Lut, new);
}

fn mirror(function: &mut Function, inst: InstId) {
    let mods = &mut function[inst].mods;
    mods.set(Mod::Cmp, mirrored(mods.get(Mod::Cmp)));
}
