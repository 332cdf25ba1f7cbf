//! Exchanges: other orders of the operands that mean the same, without a move.
//!
//! Input: an instruction and the exchanges of its recipe. Output: each order in turn, the given one first. Invariants: the results are the same bits; a
//! modifier of an operand goes with it; an order that a modifier of the instruction forbids is not given.

use crate::ori::exchange::{says_which, table_in_order};
use crate::ori::{Function, InstId, Operand};
use crate::tables::operands::{Exchange, RecipeInfo};
use crate::tables::{Mod, Role, value};

/// One order: what stands in the roles of an exchange, and whether both signs are turned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    how: Option<(Exchange, &'static [Role])>,
    /// For each role the place, among the roles, of the operand that comes there.
    from: Vec<usize>,
    signs: Option<&'static [Role]>,
}

const TWO: [[usize; 3]; 1] = [[1, 0, 2]];
const THREE: [[usize; 3]; 5] = [[1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0], [2, 0, 1]];

/// Comparisons and what they are between exchanged operands; all others stay what they are.
const MIRRORED: [(u8, u8); 4] = [
    (value::cmp::LT, value::cmp::GT),
    (value::cmp::LE, value::cmp::GE),
    (value::cmp::LTU, value::cmp::GTU),
    (value::cmp::LEU, value::cmp::GEU),
];

/// All orders of an instruction that mean the same, the one it has first.
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

/// Whether the instruction's modifiers allow it.
fn allowed(function: &Function, inst: InstId, how: Exchange) -> bool {
    let mods = &function.insts[inst].mods;
    // Halves are chosen by the place of the operand, and a comparison that goes on from a lower one by its result.
    let halves = [Mod::SwzA, Mod::SwzB].into_iter().any(|kind| mods.get(kind) != 0);
    let table = function.imm_value(function.arg(inst, Role::Lut)).is_some();
    // DSETP.MIN and DSETP.MAX say whether the first operand is the one.
    let chooses = [value::cmp::MIN, value::cmp::MAX].contains(&mods.get(Mod::Cmp));
    match how {
        Exchange::Mirror => mods.get(Mod::Ex) == 0 && !halves && !chooses,
        Exchange::Table => table,
        Exchange::Select => !function.arg(inst, Role::Pp).is_null(),
        Exchange::Swap => !halves && !says_which(function, inst),
        Exchange::Sign => !halves,
    }
}

/// Puts the operands of an instruction in an order.
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
            Exchange::Swap | Exchange::Sign => {}
        }
    }
    for role in order.signs.unwrap_or_default() {
        let operand = function.arg(inst, *role).negated();
        function.set_arg(inst, *role, operand);
    }
}

/// Gives a truth table the inputs in another order.
fn table(function: &mut Function, inst: InstId, from: &[usize]) {
    let old = function.imm_value(function.arg(inst, Role::Lut)).unwrap_or(0);
    let new = function.imm(table_in_order(old, from));
    function.set_arg(inst, Role::Lut, new);
}

fn mirror(function: &mut Function, inst: InstId) {
    let old = function.insts[inst].mods.get(Mod::Cmp);
    let pair = MIRRORED.iter().find(|(a, b)| old == *a || old == *b);
    if let Some((a, b)) = pair {
        function.insts[inst].mods.set(Mod::Cmp, if old == *a { *b } else { *a });
    }
}
