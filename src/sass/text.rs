//! Prints an instruction as nvdisasm does, without the control field.
//!
//! The result is one line without a semicolon. Parsing the line gives the instruction back except
//! for the control field.

use super::encode::pick;
use super::field;
use super::float;
use super::inst::{Arg, ArgKind, Guard, Inst};
use super::parse::parse;
use crate::tables::encoding::{
    ALIASES, Alias, ArgField, BEHIND, Condition, Form, Kind, NEVER_PRINTED, SETS, special_text,
};
use crate::tables::{Generation, Target};
use std::fmt::Write;

/// Label names: the text for an absolute byte address, if it has a label.
pub type Labels<'a> = &'a dyn Fn(u64) -> Option<String>;

/// Prints an instruction at a byte address. If it cannot be encoded, prints the opcode and the
/// reason.
pub fn text(target: &Target, inst: &Inst, address: u64, labels: Option<Labels>) -> String {
    match pick(target, inst) {
        Ok((form, _)) => print(target, form, inst, address, labels),
        Err(error) => format!("{} ({error})", inst.op.name()),
    }
}

/// Prints an instruction in a given form.
pub fn print(target: &Target, form: &Form, inst: &Inst, address: u64, labels: Option<Labels>) -> String {
    let Some(generation) = target.generation else { return String::new() };
    let mut out = guard(&inst.guard);
    out.push_str(form.text);
    if let Some(alias) = alias(generation, inst).filter(|a| !a.word.is_empty()) {
        let _ = write!(out, ".{}", alias.word);
    }
    suffixes(form, 255, inst, &mut out);
    let printer = Printer { target, form, inst, address, labels };
    printer.operands(&mut out);
    out
}

/// Notes on what nvdisasm does not print: ` &ROLE=VALUE` for an operand and ` &.KIND=VALUE` for a
/// modifier, as `parse` expects them after the line. Examples are the descriptor of global memory
/// on some generations, the payload of a NaN, which of two predicates is meant, and the width of an
/// RZ in an address.
pub fn hidden(target: &Target, inst: &Inst) -> String {
    let mut out = String::new();
    let Ok((form, _)) = pick(target, inst) else { return out };
    let fields: Vec<&ArgField> = form.args.iter().filter(|f| !f.is_only_printed()).collect();
    for field in fields.iter().filter(|f| f.elide.is_some_and(|e| e.0 == NEVER_PRINTED)) {
        note(field, inst, &mut out);
    }
    let line = print(target, form, inst, 0, None);
    if let Ok(read) = parse(target, &format!("{line}{out}"), 0, None) {
        let differs = |f: &&&ArgField| read.args[usize::from(f.slot)] != inst.args[usize::from(f.slot)];
        let wrong: Vec<&&ArgField> = fields.iter().filter(differs).collect();
        wrong.into_iter().for_each(|field| note(field, inst, &mut out));
        for field in form.mods.iter().filter(|m| read.mods.get(m.kind) != inst.mods.get(m.kind)) {
            let text = field.kind.text(inst.mods.get(field.kind));
            let _ = write!(out, " &.{}={}", field.kind.name(), if text.is_empty() { "-" } else { text });
        }
    }
    out
}

fn note(field: &ArgField, inst: &Inst, out: &mut String) {
    let given = inst.args[usize::from(field.slot)];
    let arg = if given.is_none() { field::absent(field).unwrap_or(given) } else { given };
    let (not, role) = (if arg.not { "!" } else { "" }, inst.op.info().roles[usize::from(field.slot)].role);
    let _ = write!(out, " &{}={not}", role.name());
    let _ = match field.kind {
        Kind::Reg => register(out, "R", arg.val, 255, "RZ"),
        Kind::UReg => register(out, "UR", arg.val, 255, "URZ"),
        Kind::Pred => register(out, "P", arg.val, 7, "PT"),
        Kind::UPred | Kind::InvertedUPred => register(out, "UP", arg.val, 7, "UPT"),
        _ => write!(out, "{:#x}", arg.val),
    };
}

fn guard(guard: &Guard) -> String {
    if guard.pred == 7 && !guard.not {
        return String::new();
    }
    let (not, file) = (if guard.not { "!" } else { "" }, if guard.upred { "UP" } else { "P" });
    match guard.pred {
        7 => format!("@{not}{file}T "),
        n => format!("@{not}{file}{n} "),
    }
}

/// The alias that nvdisasm prints for an instruction, if any.
pub fn alias(generation: Generation, inst: &Inst) -> Option<&'static Alias> {
    ALIASES
        .iter()
        .find(|a| a.op == inst.op && a.on >> (generation as u8) & 1 != 0 && a.when.iter().all(|c| condition(c, inst)))
}

fn condition(condition: &Condition, inst: &Inst) -> bool {
    match *condition {
        Condition::Value(slot, value, not) => {
            let arg = inst.args[usize::from(slot)];
            // 255 stands for RZ, any other number for an immediate; for predicates, 7 is PT.
            let kind = match arg.kind {
                ArgKind::Reg | ArgKind::UReg => value == 255,
                ArgKind::Imm => value != 255,
                _ => matches!(arg.kind, ArgKind::Pred | ArgKind::UPred),
            };
            kind && arg.val == value && arg.not == not
        }
        Condition::PowerOfTwo(slot) => {
            let arg = inst.args[usize::from(slot)];
            arg.kind == ArgKind::Imm && (arg.val as i64) > 1 && arg.val.is_power_of_two()
        }
        Condition::Vector(slot) => !matches!(inst.args[usize::from(slot)].kind, ArgKind::UReg | ArgKind::Bindless),
        Condition::Immediate(slot) => inst.args[usize::from(slot)].kind == ArgKind::Imm,
        Condition::Modifier(kind, value) => inst.mods.get(kind) == value,
    }
}

/// Prints the modifiers of one operand, or of the mnemonic (255).
fn suffixes(form: &Form, arg: u8, inst: &Inst, out: &mut String) {
    for field in form.mods.iter().filter(|m| m.arg == arg) {
        let value = inst.mods.get(field.kind);
        let code = SETS[usize::from(field.set)].iter().find(|c| c.1 == value);
        let text = code.map_or(field.kind.text(value), |c| c.2);
        if !text.is_empty() {
            let _ = write!(out, ".{text}");
        }
    }
}

struct Printer<'a> {
    target: &'a Target,
    form: &'a Form,
    inst: &'a Inst,
    address: u64,
    labels: Option<Labels<'a>>,
}

impl Printer<'_> {
    fn operands(&self, out: &mut String) {
        let mut first = true;
        let mut at = 0;
        while at < self.form.args.len() {
            let group = self.form.args[at].group;
            let end = match group {
                0 => at + 1,
                _ => at + self.form.args[at..].iter().take_while(|a| a.group == group).count(),
            };
            if group == 0 && self.is_elided(at) {
                at = end;
                continue;
            }
            out.push_str(if first { " " } else { self.form.args[at].join });
            first = false;
            if group == 0 {
                self.operand(at, out)
            } else {
                self.bracket(at..end, out)
            }
            at = end;
        }
    }

    fn bracket(&self, parts: std::ops::Range<usize>, out: &mut String) {
        out.push_str(self.form.args[parts.start].open);
        let uniform = parts.clone().any(|i| self.form.args[i].kind == Kind::UReg);
        // A scaled RZ keeps its scale only if a uniform register is added to it.
        let shown: Vec<usize> =
            parts.clone().filter(|i| !self.is_elided(*i) || uniform && self.is_scaled(*i)).collect();
        if shown.is_empty() {
            let zero = &self.form.args[parts.start];
            self.value(zero, &self.arg(zero), out);
        }
        let based = shown.iter().any(|i| self.form.args[*i].kind == Kind::Reg);
        for (i, part) in shown.iter().enumerate() {
            if i > 0 {
                out.push('+');
            }
            match &self.form.args[*part] {
                // An offset that stands alone is an address and has no sign.
                field if field.kind == Kind::Signed && shown.len() == 1 || field.kind == Kind::Unbased && !based => {
                    let mask = u64::MAX >> (64 - field.bits.width());
                    let _ = write!(out, "{:#x}", self.arg(field).val & mask);
                }
                _ => self.operand(*part, out),
            }
        }
        out.push(']');
        suffixes(self.form, (parts.end - 1) as u8 | BEHIND, self.inst, out);
    }

    /// The text of a modifier that is printed as an operand.
    fn word(&self, i: usize) -> &'static str {
        let Some(field) = self.form.mods.iter().find(|m| usize::from(m.arg) == i) else { return "" };
        let value = self.inst.mods.get(field.kind);
        SETS[usize::from(field.set)].iter().find(|c| c.1 == value).map_or(field.kind.text(value), |c| c.2)
    }

    /// The operand of a field, or its default if absent.
    fn arg(&self, field: &ArgField) -> Arg {
        if matches!(field.kind, Kind::Literal | Kind::Word) {
            return Arg::default();
        }
        let given = self.inst.args[usize::from(field.slot)];
        if given.is_none() { field::absent(field).unwrap_or(given) } else { given }
    }

    fn is_elided(&self, i: usize) -> bool {
        let field = &self.form.args[i];
        if field.kind == Kind::Word {
            return self.word(i).is_empty();
        }
        let arg = self.arg(field);
        let plain = !arg.neg && !arg.abs && !arg.reuse;
        field.elide.is_some_and(|(value, not)| value == NEVER_PRINTED || plain && arg.val == value && arg.not == not)
    }

    /// Whether an operand has an optional suffix.
    fn is_scaled(&self, i: usize) -> bool {
        self.form.mods.iter().filter(|m| usize::from(m.arg) == i).any(|field| {
            let codes = SETS[usize::from(field.set)];
            let value = self.inst.mods.get(field.kind);
            codes.iter().any(|c| c.2.is_empty()) && codes.iter().any(|c| c.1 == value && !c.2.is_empty())
        })
    }

    fn operand(&self, i: usize, out: &mut String) {
        let field = &self.form.args[i];
        if field.kind == Kind::Literal {
            out.push_str(field.literal);
            return;
        }
        if field.kind == Kind::Word {
            out.push_str(self.word(i));
            return;
        }
        let arg = self.arg(field);
        let bare = field.kind == Kind::Bank;
        if arg.neg && !bare {
            out.push('-');
        }
        if arg.not && !bare {
            out.push(if field.not != 255 { '!' } else { '~' });
        }
        let abs = arg.abs && !bare;
        if abs {
            out.push('|');
        }
        self.value(field, &arg, out);
        let inside = suffix_inside(field.kind);
        if inside {
            suffixes(self.form, i as u8, self.inst, out);
        }
        if abs {
            out.push('|');
        }
        if arg.reuse {
            out.push_str(".reuse");
        }
        out.push_str(field.literal);
        // Behind a word in place of a number nvdisasm leaves a blank.
        if field.kind == Kind::Float && out.ends_with(['N', 'F']) && self.form.mods.iter().any(|m| m.arg == i as u8) {
            out.push(' ');
        }
        if !inside {
            suffixes(self.form, i as u8, self.inst, out);
        }
    }

    fn value(&self, field: &ArgField, arg: &Arg, out: &mut String) {
        let _ = match field.kind {
            Kind::Reg | Kind::Inside | Kind::Nonzero => register(out, "R", arg.val, 255, "RZ"),
            Kind::UReg | Kind::NonzeroUReg => register(out, "UR", arg.val, 255, "URZ"),
            Kind::Pred => register(out, "P", arg.val, 7, "PT"),
            Kind::UPred | Kind::InvertedUPred => register(out, "UP", arg.val, 7, "UPT"),
            Kind::Following => register(out, "UR", (arg.val + 1).min(255), 255, "URZ"),
            Kind::Bar => write!(out, "B{}", arg.val),
            Kind::Hex => write!(out, "{:#x}", arg.val),
            Kind::Decimal => write!(out, "{}", arg.val),
            Kind::Signed | Kind::Displacement | Kind::Unbased | Kind::Offset => signed(out, arg.val),
            Kind::Float | Kind::Double | Kind::Halves | Kind::Brains | Kind::Half | Kind::Brain => {
                out.write_str(&float::print(field.kind, arg.val))
            }
            Kind::Special => match special_text(self.target, arg.val as u8) {
                Some(text) => out.write_str(text),
                None => write!(out, "SR{}", arg.val),
            },
            Kind::Bank => write!(out, "{:#x}", arg.bank),
            Kind::Const => {
                let _ = write!(out, "c[{:#x}][", arg.bank);
                let _ = signed(out, arg.val);
                out.write_char(']')
            }
            Kind::Bindless => {
                let _ = out.write_str("cx[");
                let _ = register(out, "UR", arg.bank.into(), 255, "URZ");
                let _ = out.write_str("][");
                let _ = signed(out, arg.val);
                out.write_char(']')
            }
            Kind::Label => self.label(arg.val, out),
            Kind::Distance => signed(out, arg.val),
            Kind::Twice => {
                let _ = register(out, "R", arg.val, 255, "RZ");
                let _ = out.write_str(", ");
                register(out, "R", arg.val, 255, "RZ")
            }
            Kind::Scoreboard => write!(out, "SB{}", arg.val),
            Kind::Mask => {
                let members: Vec<String> =
                    (0..64).rev().filter(|i| arg.val >> i & 1 != 0).map(|i| i.to_string()).collect();
                write!(out, "{{{}}}", members.join(","))
            }
            Kind::Literal | Kind::Word => Ok(()),
        };
    }

    fn label(&self, distance: u64, out: &mut String) -> std::fmt::Result {
        let to = self.address.wrapping_add(16).wrapping_add(distance);
        match self.labels.and_then(|labels| labels(to)) {
            Some(name) => write!(out, "`({name})"),
            None => signed(out, to),
        }
    }
}

/// Whether an operand's modifiers are printed inside the bars of `| |`. Vector registers do so only
/// if the row says so.
pub fn suffix_inside(kind: Kind) -> bool {
    matches!(kind, Kind::Inside | Kind::UReg | Kind::Const | Kind::Bindless)
}

fn register(out: &mut String, file: &str, number: u64, zero: u64, zero_text: &str) -> std::fmt::Result {
    if number == zero { out.write_str(zero_text) } else { write!(out, "{file}{number}") }
}

fn signed(out: &mut String, value: u64) -> std::fmt::Result {
    match value as i64 {
        v if v < 0 => write!(out, "-{:#x}", v.unsigned_abs()),
        v => write!(out, "{v:#x}"),
    }
}
