//! Law: each of the 128 bits of an encoding form is claimed exactly once, and no operand has two
//! fields.
//!
//! Opcode (0 to 11), guard (12 to 15), constants, modifiers, operands and reserved bits fill 0 to
//! 104; 105 to 127 are the control field, of which 122 to 125 are reuse bits of operands or zero.

use crate::model::Model;
use crate::model::encoding::{Form, GuardKind};
use crate::model::form_syntax::{Bits, constant_bits};
use crate::report::Report;

const CONTROL: u128 = u128::MAX << 105;
const REUSE: u128 = 0b1111 << 122;

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    for form in &model.encoding.forms {
        roles_once(form, report);
        let mut taken = CONTROL & !REUSE;
        for (name, mask) in claims(form, model) {
            let twice = taken & mask;
            if twice != 0 {
                let message = format!("{}: bits {} of {name} are taken twice", form.row.op, ranges(twice));
                report.at("bits", message, form.row.at);
            }
            taken |= mask;
        }
        // A reuse bit that belongs to no operand is zero.
        if taken | REUSE != u128::MAX {
            let message = format!("{}: nothing says what bits {} hold", form.row.op, ranges(!taken & !REUSE));
            report.at("bits", message, form.row.at);
        }
    }
}

/// An operand has one field; only a constant may have two, its bank and its offset.
fn roles_once(form: &Form, report: &mut Report) {
    // `UN` prints the contents of another field again.
    for (i, field) in form.args.iter().enumerate().filter(|(_, f)| f.role.is_some() && f.arg.kind != "UN") {
        let parts = |a: &str, b: &str| matches!((a, b), ("K", "O") | ("O", "K"));
        let again = form.args[..i]
            .iter()
            .any(|f| f.role == field.role && f.arg.kind != "UN" && !parts(&f.arg.kind, &field.arg.kind));
        if again {
            let message = format!("{}: the operand `{}` stands in two fields", form.row.op, field.arg.role);
            report.at("bits", message, form.row.at);
        }
    }
}

/// Every part of a form with its bits.
pub fn claims(form: &Form, model: &Model) -> Vec<(String, u128)> {
    let mut list = vec![("the opcode".to_string(), 0xfffu128)];
    if form.guard != GuardKind::None {
        list.push(("the guard".into(), 0xf000));
    }
    let only: u128 = form
        .mods
        .iter()
        .filter(|m| m.only.is_some())
        .filter_map(|m| m.bits.as_ref())
        .map(Bits::mask)
        .fold(0, |a, b| a | b);
    list.push(("fix".into(), form.fixed.0 & !0xfff & !only));
    list.push(("must".into(), form.must.0));
    for field in &form.mods {
        let mask = field.bits.as_ref().map_or(0, Bits::mask);
        list.push((format!("the modifier `{}`", model.ori.sets[field.set].name), mask));
    }
    for field in &form.args {
        let arg = &field.arg;
        let mut mask = arg.bits.as_ref().map_or(0, Bits::mask);
        if let Some((offset, bank)) = constant_bits(&arg.kind) {
            mask |= offset.mask() | bank.mask();
        }
        for bit in [arg.neg, arg.abs, arg.complement, arg.not, arg.reuse].into_iter().flatten() {
            mask |= 1 << bit;
        }
        list.push((format!("the operand `{}`", arg.role), mask));
    }
    list
}

/// Prints a set of bits as `3..5 9`.
pub fn ranges(mask: u128) -> String {
    let mut words = Vec::new();
    let mut bit = 0;
    while bit < 128 {
        if mask >> bit & 1 == 0 {
            bit += 1;
            continue;
        }
        let start = bit;
        while bit < 128 && mask >> bit & 1 != 0 {
            bit += 1;
        }
        words.push(if bit - start == 1 { start.to_string() } else { format!("{start}..{}", bit - 1) });
    }
    words.join(" ")
}
