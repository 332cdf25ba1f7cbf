//! Encodes an instruction into a 128-bit word.
//!
//! The first form in table order that fits is used; if none fits, the error names the operand that
//! failed in the closest form. Decoding the word gives the instruction back, with default operands
//! absent.

use super::field;
use super::inst::{Arg, ArgKind, Ctrl, Inst};
use crate::tables::encoding::{FORMS, Form, GuardForm, ModField, SETS, forms_of};
use crate::tables::ori::Width;
use crate::tables::regclass::Category;
use crate::tables::{GenerationInfo, Mod, Target};
use std::fmt;

/// Why an instruction cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError {
    pub message: String,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Encodes an instruction. Fails if no form of the target fits.
pub fn encode(target: &Target, inst: &Inst) -> Result<u128, EncodeError> {
    pick(target, inst).map(|(_, word)| word)
}

/// The form used for an instruction, and the word.
pub fn pick(target: &Target, inst: &Inst) -> Result<(&'static Form, u128), EncodeError> {
    find(target, inst).map_err(|why| EncodeError { message: message(target, inst, why) })
}

/// Whether the target encodes an instruction.
pub fn is_encodable(target: &Target, inst: &Inst) -> bool {
    find(target, inst).is_ok()
}

/// Why no form takes an instruction: the operand that failed in the closest one.
enum Refusal {
    /// The target has no encoder.
    Target,
    /// The opcode's category excludes the register file of the operand in this slot.
    Category(u8, char, &'static str),
    /// The target has no form of the opcode.
    Opcode,
    Operand(Misfit),
}

/// What of an instruction does not fit a form.
#[derive(Clone, Copy)]
enum Misfit {
    /// An operand, by slot.
    Field(u8, field::Misfit),
    /// An operand, by slot, for which the form has no field.
    Surplus(u8),
    Modifier(Mod, u8),
    Guard,
    GuardNumber(u8),
    GuardFile,
    Control(Ctrl),
    /// Each operand fits, but not with what the others have, such as two minus signs.
    Together,
}

fn find(target: &Target, inst: &Inst) -> Result<(&'static Form, u128), Refusal> {
    let Some(info) = target.info() else { return Err(Refusal::Target) };
    if let Some(why) = beyond_category(inst) {
        return Err(why);
    }
    let mut nearest: Option<(usize, Misfit)> = None;
    for form in FORMS[forms_of(inst.op)].iter().filter(|f| f.is_on(target)) {
        match fill(form, inst, info) {
            Ok(word) => return Ok((form, word)),
            Err((fitting, why)) if nearest.as_ref().is_none_or(|n| fitting > n.0) => nearest = Some((fitting, why)),
            Err(_) => {}
        }
    }
    Err(nearest.map_or(Refusal::Opcode, |(_, why)| Refusal::Operand(why)))
}

fn message(target: &Target, inst: &Inst, why: Refusal) -> String {
    let name = inst.op.name();
    let role = |slot: u8| inst.op.info().roles[usize::from(slot)].role.name();
    let none = format!("no form of {name} on {} takes", target.name);
    let part = match why {
        Refusal::Target => return format!("{} has no encoder", target.name),
        Refusal::Opcode => return format!("{name} has no encoding on {}", target.name),
        Refusal::Category(slot, file, files) => {
            let number = Category::of(inst.op).map_or(0, |category| category.category);
            let role = role(slot);
            return format!("{none} as `{role}` a register of file {file}: its category, {number}, has {files}");
        }
        Refusal::Operand(part) => part,
    };
    match part {
        Misfit::Field(slot, why) => format!("{none} as `{}` {why}", role(slot)),
        Misfit::Surplus(slot) => format!("{none} an operand `{}` together with the others", role(slot)),
        Misfit::Modifier(kind, value) => format!("{none} `{}` {}", kind.name(), shown(kind.text(value))),
        Misfit::Guard => format!("{none} a guard"),
        Misfit::GuardNumber(number) => format!("{none} the guard P{number}"),
        Misfit::GuardFile => format!("{none} a guard of the other register file"),
        Misfit::Together => format!("{none} these marks on its operands together"),
        Misfit::Control(ctrl) => format!("{none} the control field {ctrl:?}"),
    }
}

/// The operand whose register file the opcode's category excludes, if any. No form is tried
/// then.
fn beyond_category(inst: &Inst) -> Option<Refusal> {
    let category = Category::of(inst.op)?;
    category.files.iter().find_map(|(slot, files)| {
        let file = match inst.args[usize::from(*slot)].kind {
            ArgKind::Reg => 'R',
            ArgKind::UReg | ArgKind::UPred => 'U',
            ArgKind::Pred => 'P',
            ArgKind::Bar => 'B',
            _ => return None,
        };
        (!files.contains(file)).then_some(Refusal::Category(*slot, file, files))
    })
}

/// The word in one form, or the number of parts that fit and the first that does not.
fn fill(form: &Form, inst: &Inst, info: &GenerationInfo) -> Result<u128, (usize, Misfit)> {
    let mut word = form.fixed.1 | form.must.1;
    let (mut fitting, mut covered) = (0, 0u32);
    for field in form.args.iter().filter(|f| !f.is_only_printed()) {
        let slot = usize::from(field.slot);
        covered |= 1 << slot;
        let fail = |why| (fitting, Misfit::Field(field.slot, why));
        let given = &inst.args[slot];
        word |= match given.kind {
            ArgKind::None => {
                let assumed = field::absent(field).ok_or(field::Misfit::Nothing).map_err(fail)?;
                field::write(field, &assumed, info).map_err(fail)?
            }
            _ => field::write(field, given, info).map_err(fail)?,
        };
        fitting += 1;
    }
    for (slot, role) in inst.op.info().roles.iter().enumerate() {
        let arg = &inst.args[slot];
        // Zeros given for a fragment are not an absent one: the other form reads memory instead.
        let given = role.width == Width::Fragment && !arg.is_none();
        if covered >> slot & 1 == 0 && (given || !is_default(arg, role.absent)) {
            return Err((fitting, Misfit::Surplus(slot as u8)));
        }
    }
    word |= modifiers(form, inst).map_err(|why| (fitting, why))?;
    word |= guard(form, inst).map_err(|why| (fitting, why))?;
    word |= control(&inst.ctrl).map_err(|why| (fitting, why))?;
    if form.is_refused(word) {
        return Err((fitting, Misfit::Together));
    }
    Ok(word)
}

/// Whether an operand equals the default that its absence stands for.
pub fn is_default(arg: &Arg, absent: crate::tables::ori::Absent) -> bool {
    use crate::tables::ori::Absent;
    let plain = !arg.neg && !arg.abs && !arg.reuse;
    let pred = matches!(arg.kind, ArgKind::Pred | ArgKind::UPred) && arg.val == 7 && plain;
    match absent {
        _ if arg.is_none() => true,
        _ if arg.kind == ArgKind::UReg => false,
        Absent::Required => false,
        Absent::True => pred && !arg.not,
        Absent::False => pred && arg.not,
        Absent::Zero => plain && !arg.not && arg.val == if arg.kind == ArgKind::Imm { 0 } else { 255 },
    }
}

fn modifiers(form: &Form, inst: &Inst) -> Result<u128, Misfit> {
    for (kind, value) in inst.mods.iter() {
        if !form.mods.iter().any(|f| f.kind == kind) {
            return Err(Misfit::Modifier(kind, value));
        }
    }
    let mut word = 0;
    for field in form.mods {
        let value = inst.mods.get(field.kind);
        word |= modifier(field, value).ok_or(Misfit::Modifier(field.kind, value))?;
    }
    Ok(word)
}

fn shown(text: &str) -> String {
    if text.is_empty() { "absent".into() } else { format!(".{text}") }
}

fn modifier(field: &ModField, value: u8) -> Option<u128> {
    match field.only {
        // The modifier is part of the form's fixed bits.
        Some(only) => (only == value).then_some(0),
        None => SETS[usize::from(field.set)].iter().find(|c| c.1 == value).map(|c| field.bits.place(c.0.into())),
    }
}

fn guard(form: &Form, inst: &Inst) -> Result<u128, Misfit> {
    let guard = inst.guard;
    let always = guard.pred == 7 && !guard.not;
    let uniform = form.guard == GuardForm::Uniform;
    match form.guard {
        GuardForm::None if always => Ok(0),
        GuardForm::None => Err(Misfit::Guard),
        _ if guard.pred > 7 => Err(Misfit::GuardNumber(guard.pred)),
        _ if !always && guard.upred != uniform => Err(Misfit::GuardFile),
        _ => Ok(u128::from(guard.pred) << 12 | u128::from(guard.not) << 15),
    }
}

/// Encodes the control field at bits 105 to 121.
fn control(ctrl: &Ctrl) -> Result<u128, Misfit> {
    if ctrl.stall > 15 || ctrl.write_bar > 7 || ctrl.read_bar > 7 || ctrl.wait > 63 {
        return Err(Misfit::Control(*ctrl));
    }
    let field = u128::from(ctrl.stall)
        | u128::from(ctrl.stay) << 4
        | u128::from(ctrl.write_bar) << 5
        | u128::from(ctrl.read_bar) << 8
        | u128::from(ctrl.wait) << 11;
    Ok(field << 105)
}
