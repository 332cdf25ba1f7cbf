//! Resolved encoding forms: opcodes, roles, modifier sets, generations and features as indices,
//! fields as bit ranges.
//!
//! The rows are those of `encoding/*.ron`. A form that does not resolve is reported and omitted, so
//! every form in the model is complete.

use super::form_syntax::{self as syntax, Bits, GroupedArg};
use super::ori::{Ori, RoleSpec};
use super::targets::Targets;
use crate::report::Report;
use crate::rows::encoding::{AliasRow, FormRow, SpecialRow};
use crate::source::{Row, Sources};

/// How the guard predicate of a form is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardKind {
    Vector,
    Uniform,
    None,
}

/// A modifier field of a form.
#[derive(Clone, Debug)]
pub struct ModField {
    pub set: usize,
    /// `None` if the opcode bits imply the value.
    pub bits: Option<Bits>,
    /// Index into the set's codes, if the form has only this value.
    pub only: Option<usize>,
    /// Index of the argument after which it is printed; `None`: after the mnemonic.
    pub arg: Option<usize>,
}

/// In [`ModField::arg`]: printed after the bracket that ends with the operand.
const BEHIND: usize = 0x40;

/// An operand field of a form.
#[derive(Clone, Debug)]
pub struct ArgField {
    pub arg: GroupedArg,
    /// Index in the opcode's roles; `None` for a literal word.
    pub role: Option<usize>,
    /// The value that an absent operand stands for: number and `!`.
    pub absent: Option<(u64, bool)>,
}

/// A resolved form; opcodes, generations and features are indices.
pub struct Form {
    pub row: Row<FormRow>,
    pub op: usize,
    pub text: String,
    pub generations: Vec<usize>,
    pub feature: Option<usize>,
    pub guard: GuardKind,
    /// Bits that identify the form, opcode included: (mask, value).
    pub fixed: (u128, u128),
    pub must: (u128, u128),
    /// Bits that are never all set; 0 for none.
    pub apart: u128,
    pub mods: Vec<ModField>,
    pub args: Vec<ArgField>,
}

/// One condition of an alias: an operand's (or modifier's) value.
#[derive(Clone, Debug)]
pub enum Condition {
    /// Role index, required value (`!` flag for predicates).
    Value(usize, u64, bool),
    /// An immediate that is a power of two.
    PowerOfTwo(usize),
    Immediate(usize),
    /// Neither a uniform register nor a constant addressed by one.
    Vector(usize),
    /// Set's kind and value index.
    Modifier(usize, usize),
}

/// A resolved alias.
pub struct Alias {
    pub row: Row<AliasRow>,
    pub op: usize,
    pub generations: Vec<usize>,
    pub conditions: Vec<Condition>,
}

/// All forms, aliases and special registers.
pub struct Encoding {
    pub forms: Vec<Form>,
    pub aliases: Vec<Alias>,
    /// Row, generations, feature.
    pub specials: Vec<(Row<SpecialRow>, Vec<usize>, Option<usize>)>,
    /// The form rows as read, for the laws that need no resolved names.
    pub sources: Vec<(String, crate::source::At)>,
}

impl Encoding {
    /// Reads the rows and resolves their names; errors go to `report`.
    pub fn load(sources: &mut Sources, targets: &Targets, ori: &Ori, report: &mut Report) -> Encoding {
        let rows: Vec<Row<FormRow>> = sources.folder("encoding", &["modifiers.ron", "aliases.ron"], report);
        let alias_rows: Vec<Row<AliasRow>> = sources.rows("encoding/aliases.ron", report);
        let special_rows: Vec<Row<SpecialRow>> = sources.rows("special_registers.ron", report);
        let mut evidence: Vec<_> = rows.iter().map(|r| (r.src.clone(), r.at)).collect();
        evidence.extend(alias_rows.iter().map(|r| (r.src.clone(), r.at)));
        evidence.extend(special_rows.iter().map(|r| (r.src.clone(), r.at)));
        let mut forms: Vec<Form> = rows.into_iter().filter_map(|row| form(row, targets, ori, report)).collect();
        // A stable sort: within an opcode, table order decides which form the encoder tries first.
        forms.sort_by_key(|f| f.op);
        let aliases = alias_rows.into_iter().filter_map(|row| alias(row, targets, ori, report)).collect();
        let specials = special_rows
            .into_iter()
            .map(|row| {
                let on = generations(&row.on, targets, |m| report.at("names", m, row.at));
                let feature = targets.features.iter().position(|f| f.name == row.only_if);
                if feature.is_none() && !row.only_if.is_empty() {
                    report.at("names", format!("no feature is called `{}`", row.only_if), row.at);
                }
                (row, on, feature)
            })
            .collect();
        Encoding { forms, aliases, specials, sources: evidence }
    }
}

/// Indices of the generations that `on` names; a wrong name is passed to `complain`.
pub fn generations(on: &str, targets: &Targets, mut complain: impl FnMut(String)) -> Vec<usize> {
    if on == "all" {
        return (0..targets.generations.len()).collect();
    }
    let mut list = Vec::new();
    for word in on.split_whitespace() {
        let (from, to) = word.split_once("..").unwrap_or((word, word));
        let to = if to.is_empty() { targets.generations.last().map_or("", |g| g.name.as_str()) } else { to };
        match (targets.generation(from), targets.generation(to)) {
            (Some(a), Some(b)) if a <= b => list.extend(a..=b),
            _ => complain(format!("`{word}` is not a generation or a range of generations")),
        }
    }
    list
}

fn form(row: Row<FormRow>, targets: &Targets, ori: &Ori, report: &mut Report) -> Option<Form> {
    let before = report.errors.len();
    let complain = |law: &'static str, message: String, report: &mut Report| {
        report.at(law, format!("{}: {message}", row.op), row.at);
    };
    let Some(op) = ori.op(&row.op) else {
        complain("names", format!("no opcode is called `{}`", row.op), report);
        return None;
    };
    let mut messages = Vec::new();
    let generations = generations(&row.on, targets, |m| messages.push(m));
    let feature =
        if row.only_if.is_empty() { None } else { targets.features.iter().position(|f| f.name == row.only_if) };
    if feature.is_none() && !row.only_if.is_empty() {
        messages.push(format!("no feature is called `{}`", row.only_if));
    }
    if !row.alias_of.is_empty() && ori.op(&row.alias_of).is_none() {
        messages.push(format!("no opcode is called `{}`", row.alias_of));
    }
    let guard = match row.guard.as_str() {
        "" => GuardKind::Vector,
        "u" => GuardKind::Uniform,
        "none" => GuardKind::None,
        other => {
            messages.push(format!("guard `{other}` is not u or none"));
            GuardKind::Vector
        }
    };
    messages.into_iter().for_each(|m| complain("names", m, report));
    let (mut fixed, must) = (constants(&row.fix, &row, report), constants(&row.must, &row, report));
    let apart = apart(&row, report);
    fixed = (fixed.0 | 0xfff, fixed.1 | u128::from(row.code));
    if row.code > 0xfff {
        complain("form", format!("code {:#x} does not fit 12 bits", row.code), report);
    }
    let mut mods: Vec<ModField> =
        row.mods.split_whitespace().filter_map(|w| modifier(w, None, ori, &row, report)).collect();
    let args = arguments(&row, ori, op, &mut mods, report);
    for field in &mods {
        if let (Some(bits), Some(only)) = (&field.bits, field.only) {
            fixed.0 |= bits.mask();
            fixed.1 |= bits.place(u128::from(ori.sets[field.set].codes[only].0));
        }
    }
    let text = if row.text.is_empty() { ori.ops[op].row.text.clone() } else { row.text.clone() };
    (report.errors.len() == before).then_some(Form {
        row,
        op,
        text,
        generations,
        feature,
        guard,
        fixed,
        must,
        apart,
        mods,
        args,
    })
}

/// Parses `LO..HI=VALUE` or `BIT=VALUE` words as (mask, value).
fn constants(text: &str, row: &Row<FormRow>, report: &mut Report) -> (u128, u128) {
    let mut sum = (0u128, 0u128);
    for word in text.split_whitespace() {
        let parsed = word.split_once('=').and_then(|(at, value)| Some((syntax::bits(at)?, syntax::number(value)?)));
        match parsed {
            Some((bits, value)) if bits.fits(value.into()) => {
                sum.0 |= bits.mask();
                sum.1 |= bits.place(value.into());
            }
            Some(_) => report.at("form", format!("{}: the value of `{word}` does not fit its bits", row.op), row.at),
            None => report.at("form", format!("{}: `{word}` is not BITS=VALUE", row.op), row.at),
        }
    }
    sum
}

/// Parses the bits of `apart` as a mask: none, or at least two.
fn apart(row: &Row<FormRow>, report: &mut Report) -> u128 {
    let bits: Option<Vec<u32>> = row.apart.split_whitespace().map(|word| word.parse().ok()).collect();
    let bits = bits.filter(|bits| bits.len() != 1 && bits.iter().all(|bit| *bit < 128));
    if bits.is_none() {
        report.at("form", format!("{}: `{}` are not two or more bits", row.op, row.apart), row.at);
    }
    bits.unwrap_or_default().iter().fold(0, |mask, bit| mask | 1 << bit)
}

/// Parses `set@BITS`, `set=TEXT@BITS` or `set=TEXT`.
fn modifier(word: &str, arg: Option<usize>, ori: &Ori, row: &Row<FormRow>, report: &mut Report) -> Option<ModField> {
    let (head, at) = word.split_once('@').map_or((word, None), |(h, a)| (h, Some(a)));
    let (name, only) = head.split_once('=').map_or((head, None), |(n, t)| (n, Some(t)));
    let mut complain = |law: &'static str, message: String| {
        report.at(law, format!("{}: {message}", row.op), row.at);
        None
    };
    let Some(set) = ori.sets.iter().position(|s| s.name == name) else {
        return complain("names", format!("no set of modifiers is called `{name}`"));
    };
    let values = &ori.kinds[ori.sets[set].kind].values;
    let only = match only {
        None => None,
        Some(text) => match ori.sets[set].codes.iter().position(|c| values[c.1] == text) {
            Some(code) => Some(code),
            None => return complain("names", format!("set `{name}` has no value `{text}`")),
        },
    };
    let bits = match at.map(syntax::bits) {
        None if only.is_none() => return complain("form", format!("`{word}` says neither bits nor a value")),
        None => None,
        Some(None) => return complain("form", format!("`{word}` is not SET@BITS")),
        Some(bits) => bits,
    };
    if let Some(bits) = &bits
        && let Some((code, _)) = ori.sets[set].codes.iter().find(|c| !bits.fits(c.0.into()))
    {
        return complain(
            "width",
            format!("set `{name}` has the code {code}, which does not fit the {} bits of `{word}`", bits.width()),
        );
    }
    Some(ModField { set, bits, only, arg })
}

fn arguments(row: &Row<FormRow>, ori: &Ori, op: usize, mods: &mut Vec<ModField>, report: &mut Report) -> Vec<ArgField> {
    let parsed = match syntax::args(&row.args) {
        Ok(parsed) => parsed,
        Err(message) => {
            report.at("form", format!("{}: {message}", row.op), row.at);
            return Vec::new();
        }
    };
    let roles = &ori.ops[op].roles;
    let mut args = Vec::new();
    for arg in parsed {
        let role = roles.iter().position(|r| r.name == arg.role);
        if role.is_none() && !["lit", "word"].contains(&arg.kind.as_str()) {
            report.at("names", format!("{}: the opcode has no role `{}`", row.op, arg.role), row.at);
        }
        for suffix in &arg.suffixes {
            mods.extend(modifier(suffix, Some(args.len()), ori, row, report));
        }
        for suffix in &arg.behind {
            mods.extend(modifier(suffix, Some(args.len() | BEHIND), ori, row, report));
        }
        let shown = arg.elide.filter(|e| e.0 != syntax::NEVER_PRINTED);
        let absent = shown.or_else(|| role.and_then(|r| default(&roles[r], &arg.kind))).filter(|_| !arg.kept);
        args.push(ArgField { arg, role, absent });
    }
    args
}

/// Whether fields of a kind hold a number: a zero is then a number, not the null register of the
/// role's default.
pub fn is_number(kind: &str) -> bool {
    matches!(kind, "I" | "S" | "F" | "H" | "G" | "FH" | "FG" | "D")
}

/// The value of a role's default in a field of a kind.
fn default(role: &RoleSpec, kind: &str) -> Option<(u64, bool)> {
    match role.default.as_deref()? {
        // A form that does not take the null register has nothing to assume.
        _ if matches!(kind, "RN" | "URN") => None,
        "PT" => Some((7, false)),
        "!PT" => Some((7, true)),
        _ => Some((if matches!(kind, "R" | "RR" | "U" | "X") { 255 } else { 0 }, false)),
    }
}

fn alias(row: Row<AliasRow>, targets: &Targets, ori: &Ori, report: &mut Report) -> Option<Alias> {
    let mut messages = Vec::new();
    let generations = generations(&row.on, targets, |m| messages.push(m));
    let Some(op) = ori.op(&row.op) else {
        report.at("names", format!("no opcode is called `{}`", row.op), row.at);
        return None;
    };
    let mut conditions = Vec::new();
    for word in row.when.split_whitespace() {
        match condition(word, ori, op) {
            Some(condition) => conditions.push(condition),
            None => messages.push(format!("{}: `{word}` is not a condition on a role or modifier of it", row.op)),
        }
    }
    let good = messages.is_empty();
    messages.into_iter().for_each(|m| report.at("alias", m, row.at));
    good.then_some(Alias { row, op, generations, conditions })
}

fn condition(word: &str, ori: &Ori, op: usize) -> Option<Condition> {
    let (name, value) = word.split_once('=')?;
    if let Some(role) = ori.ops[op].roles.iter().position(|r| r.name == name) {
        return Some(match value {
            "pow2" => Condition::PowerOfTwo(role),
            "imm" => Condition::Immediate(role),
            "vector" => Condition::Vector(role),
            _ => {
                let (value, not) = syntax::value(value)?;
                Condition::Value(role, value, not)
            }
        });
    }
    let kind = ori.kinds.iter().position(|k| k.name == name)?;
    Some(Condition::Modifier(kind, ori.kinds[kind].values.iter().position(|v| v == value)?))
}
