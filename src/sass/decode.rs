//! Decodes a 128-bit word into an instruction.
//!
//! A word that decodes encodes to itself. Operands equal to their role's default are absent, so
//! that equal meanings are equal values.

use super::field;
use super::inst::{Ctrl, Guard, Inst};
use crate::tables::encoding::{FORMS, Form, GuardForm, Kind, SETS, candidates};
use crate::tables::{GenerationInfo, Target};
use std::fmt;

/// Why a word is not a valid instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    pub message: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Decodes a word. Fails if no form of the target matches.
pub fn decode(target: &Target, word: u128) -> Result<Inst, DecodeError> {
    decode_form(target, word).map(|(_, inst)| inst)
}

/// Decodes a word; also returns the form that matched.
pub fn decode_form(target: &Target, word: u128) -> Result<(&'static Form, Inst), DecodeError> {
    let fail = |message: String| DecodeError { message: format!("{word:032x}: {message}") };
    let (Some(generation), Some(info)) = (target.generation, target.info()) else {
        return Err(fail(format!("{} has no decoder", target.name)));
    };
    let mut forms = candidates(generation, word)
        .iter()
        .map(|i| &FORMS[usize::from(*i)])
        .filter(|f| word & f.fixed.0 == f.fixed.1 && !f.alias && f.is_on(target))
        .peekable();
    if forms.peek().is_none() {
        return Err(fail(format!("no opcode of {} has the bits {:#05x}", target.name, word & 0xfff)));
    }
    // Forms with the same fixed bits differ in the values of a modifier; the form whose values
    // match is taken.
    let mut why = String::new();
    for form in forms {
        match fields(form, word, info) {
            Ok(inst) => return Ok((form, inst)),
            Err(message) => why = format!("{}: {message}", form.op.name()),
        }
    }
    Err(fail(why))
}

/// Decodes every field of a form.
fn fields(form: &Form, word: u128, info: &GenerationInfo) -> Result<Inst, String> {
    if word & form.must.0 != form.must.1 {
        let wrong = (word ^ form.must.1) & form.must.0;
        return Err(format!("bit {} is not {}", wrong.trailing_zeros(), form.must.1 >> wrong.trailing_zeros() & 1));
    }
    if form.is_refused(word) {
        return Err(format!("the GPU refuses bits {} together", bits(form.apart)));
    }
    let mut inst = Inst::new(form.op);
    modifiers(form, word, &mut inst)?;
    operands(form, word, info, &mut inst)?;
    if form.guard != GuardForm::None {
        let (pred, not) = ((word >> 12 & 7) as u8, word >> 15 & 1 != 0);
        inst.guard = Guard { pred, not, upred: form.guard == GuardForm::Uniform && (pred != 7 || not) };
    }
    inst.ctrl = control(word);
    if word >> 126 != 0 || word & !reuse_mask(form) & 15 << 122 != 0 {
        return Err("a reuse bit or a bit above it is set".into());
    }
    Ok(inst)
}

/// The numbers of the bits of a mask.
fn bits(mask: u128) -> String {
    let set: Vec<String> = (0..128).filter(|bit| mask >> bit & 1 != 0).map(|bit| bit.to_string()).collect();
    set.join(" and ")
}

/// The reuse bits of a form: those of its operands, and those that are never printed.
fn reuse_mask(form: &Form) -> u128 {
    let mods = form.mods.iter().fold(0, |mask, m| mask | m.bits.place(u64::MAX));
    form.args.iter().filter(|a| a.reuse != 255).fold(mods, |mask, a| mask | 1 << a.reuse)
}

fn modifiers(form: &Form, word: u128, inst: &mut Inst) -> Result<(), String> {
    for field in form.mods {
        let value = match field.only {
            Some(only) => only,
            None => {
                let bits = field.bits.read(word);
                let code = SETS[usize::from(field.set)].iter().find(|c| u64::from(c.0) == bits);
                code.ok_or_else(|| format!("`{}` has no value for the bits {bits}", field.kind.name()))?.1
            }
        };
        inst.mods.set(field.kind, value);
    }
    Ok(())
}

fn operands(form: &Form, word: u128, info: &GenerationInfo, inst: &mut Inst) -> Result<(), String> {
    for field in form.args.iter().filter(|f| !f.is_only_printed()) {
        let mut arg = field::read(field, word, info)?;
        let slot = &mut inst.args[usize::from(field.slot)];
        match field.kind {
            // A constant in two fields: both parts go to one operand.
            Kind::Bank => arg = super::Arg { bank: arg.bank, ..merge(*slot) },
            Kind::Offset => arg.bank = slot.bank,
            _ => {}
        }
        if !(field.optional && field::absent(field) == Some(arg)) {
            *slot = arg;
        }
    }
    Ok(())
}

fn merge(slot: super::Arg) -> super::Arg {
    super::Arg { kind: super::ArgKind::Const, ..slot }
}

/// Decodes the control field of a word.
pub fn control(word: u128) -> Ctrl {
    let field = (word >> 105) as u32;
    Ctrl {
        stall: (field & 15) as u8,
        stay: field >> 4 & 1 != 0,
        write_bar: (field >> 5 & 7) as u8,
        read_bar: (field >> 8 & 7) as u8,
        wait: (field >> 11 & 63) as u8,
    }
}
