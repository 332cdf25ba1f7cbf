//! Folds operand modifiers (absolute value, negation, complement) of immediates into their values.
//!
//! The encoding forms of the opcode tell what kind of number a position holds. The value that the
//! instruction reads does not change.

use crate::ori::{Function, InstId, Kind, Operand};
use crate::tables::encoding::{ArgField, FORMS, Kind as Field, forms_of};
use crate::tables::ori::{Class, Width};
use crate::tables::{Mod, Role};

/// The kind of number that an immediate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Integer,
    /// One or more floats of `bits` bits, each with a sign bit on top.
    Float {
        bits: u32,
    },
}

/// Folds the modifiers of every immediate operand of an instruction whose kind of number is known.
pub(super) fn fold(function: &mut Function, inst: InstId) {
    for (at, role) in function[inst].op.info().roles.iter().enumerate() {
        let operand = function.args(inst)[at];
        let (Kind::Imm(_), Class::Reg | Class::Uniform) = (operand.kind(), role.class) else { continue };
        if operand == operand.plain() || !takes_modifiers(function, inst, at, operand) {
            continue;
        }
        let Some(number) = number(function, inst, at) else { continue };
        let bits = function.imm_value(operand).unwrap_or(0);
        // Negating zero produces a carry, which a plain zero does not.
        let carry = [Role::Pu, Role::Pv].into_iter().any(|role| !function.arg(inst, role).is_null());
        if operand.neg() && bits as u32 == 0 && carry {
            continue;
        }
        // With `.XORSIGN`, the sign that an absolute value removes contributes to the result.
        let xorsign = function[inst].mods.get(Mod::Xorsign) != 0;
        if xorsign && operand.abs() && value(number, bits, false, [true, false, false]) != Some(bits) {
            continue;
        }
        let wide = role.width == Width::Words(2);
        let Some(bits) = value(number, bits, wide, [operand.abs(), operand.neg(), operand.not()]) else { continue };
        let folded = function.imm(bits);
        function.args_mut(inst)[at] = folded;
    }
}

/// The value with absolute value, negation and complement applied, in this order; `None` if the
/// kind of number has no such modifier.
fn value(number: Number, bits: u64, wide: bool, [abs, neg, not]: [bool; 3]) -> Option<u64> {
    let mask = if wide { u64::MAX } else { u64::from(u32::MAX) };
    let value = match number {
        Number::Integer if abs => return None,
        Number::Integer if neg => bits.wrapping_neg(),
        Number::Integer => bits,
        Number::Float { .. } if not => return None,
        Number::Float { bits: part } => {
            let signs = (0..64 / part).fold(0u64, |signs, at| signs | 1 << (part * (at + 1) - 1));
            let bits = if abs { bits & !signs } else { bits };
            if neg { bits ^ signs } else { bits }
        }
    };
    Some(if not { !value } else { value } & mask)
}

/// The kind of number that the forms of an opcode take at a position; `None` if no form takes an
/// immediate there.
fn number(function: &Function, inst: InstId, at: usize) -> Option<Number> {
    fields(function, inst, at).find_map(|field| match field.kind {
        Field::Float => Some(Number::Float { bits: 32 }),
        Field::Double => Some(Number::Float { bits: 64 }),
        Field::Halves | Field::Brains => Some(Number::Float { bits: 16 }),
        Field::Signed | Field::Hex | Field::Decimal => Some(Number::Integer),
        _ => None,
    })
}

/// Whether register operands at this position can have these modifiers, so that their meaning is
/// known.
fn takes_modifiers(function: &Function, inst: InstId, at: usize, operand: Operand) -> bool {
    let has = |bit: u8| bit != 255;
    fields(function, inst, at).any(|field| {
        (!operand.neg() || has(field.neg))
            && (!operand.abs() || has(field.abs))
            && (!operand.not() || has(field.complement) || has(field.not))
    })
}

fn fields(function: &Function, inst: InstId, at: usize) -> impl Iterator<Item = &'static ArgField> {
    let forms = FORMS[forms_of(function[inst].op)].iter().flat_map(|form| form.args);
    forms.filter(move |field| usize::from(field.slot) == at)
}
