//! Emits `encoding.rs`: the forms as one static array sorted by opcode, decode buckets per
//! generation, forms by mnemonic, modifier sets, aliases and special registers. Each row is on one
//! line, so that the file can be compared with the tables.

use super::shared::Shared;
use super::{bytes, camel, phf_map, pretty};
use crate::model::Model;
use crate::model::encoding::{ArgField, Condition, Form, GuardKind, ModField, is_number};
use crate::model::form_syntax::{Bits, NEVER_PRINTED, constant_bits};
use quote::quote;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The text of the generated file.
pub fn emit(model: &Model) -> String {
    let mut text = String::new();
    sets(model, &mut text);
    forms(model, &mut text);
    buckets(model, &mut text);
    mnemonics(model, &mut text);
    aliases(model, &mut text);
    specials(model, &mut text);
    text
}

fn sets(model: &Model, text: &mut String) {
    let sets = &model.ori.sets;
    let _ = writeln!(
        text,
        "/// Sets of modifier codes: (bits, value, printed word).\npub static SETS: [&[(u8, u8, &str)]; {}] = [",
        sets.len()
    );
    for set in sets {
        let codes = set.codes.iter().zip(&set.texts);
        let codes: Vec<String> = codes.map(|((bits, value), text)| format!("({bits}, {value}, {text:?})")).collect();
        let _ = writeln!(text, "    &[{}],", codes.join(", "));
    }
    text.push_str("];\n");
}

fn forms(model: &Model, text: &mut String) {
    let forms = &model.encoding.forms;
    let mut fields = Fields::new();
    let rows: Vec<String> = forms.iter().map(|form| one(form, model, &mut fields)).collect();
    for part in [&fields.args, &fields.arg_lists, &fields.mods, &fields.mod_lists] {
        text.push_str(&part.items());
    }
    let _ = writeln!(
        text,
        "/// Every form, sorted by opcode, then in table order.\npub static FORMS: [Form; {}] = [\n    {}\n];",
        rows.len(),
        rows.join(",\n    ")
    );
    let count = model.ori.ops.len();
    let mut ends = vec![0usize; count + 1];
    forms.iter().for_each(|f| ends[f.op + 1] += 1);
    (0..count).for_each(|i| ends[i + 1] += ends[i]);
    let _ = writeln!(text, "/// Forms of each opcode: from this position to the next one's.");
    let _ = writeln!(text, "pub(crate) static FORMS_OF_OP: [u16; {}] = {ends:?};", count + 1);
}

fn on(generations: &[usize]) -> u8 {
    generations.iter().fold(0, |mask, g| mask | 1 << g)
}

/// The operand and modifier fields of all forms, and the lists of them.
struct Fields {
    args: Shared,
    arg_lists: Shared,
    mods: Shared,
    mod_lists: Shared,
}

impl Fields {
    fn new() -> Fields {
        Fields {
            args: Shared::new("ARG_", "ArgField"),
            arg_lists: Shared::new("ARGS_", "&[ArgField]"),
            mods: Shared::new("MOD_", "ModField"),
            mod_lists: Shared::new("MODS_", "&[ModField]"),
        }
    }
}

fn one(form: &Form, model: &Model, fields: &mut Fields) -> String {
    let feature = feature(form.feature, model);
    let guard = match form.guard {
        GuardKind::Vector => "Vector",
        GuardKind::Uniform => "Uniform",
        GuardKind::None => "None",
    };
    let mods: Vec<String> = form.mods.iter().map(|m| fields.mods.name(modifier(m, model))).collect();
    let args: Vec<String> = form.args.iter().map(|a| fields.args.name(arg(a, form, model))).collect();
    format!(
        "Form {{ op: Op::{}, text: {:?}, on: {}, feature: {feature}, guard: GuardForm::{guard}, fixed: ({:#x}, {:#x}), must: ({:#x}, {:#x}), apart: {:#x}, alias: {}, mods: {}, args: {} }}",
        model.ori.ops[form.op].row.op,
        form.text,
        on(&form.generations),
        form.fixed.0,
        form.fixed.1,
        form.must.0,
        form.must.1,
        form.apart,
        !form.row.alias_of.is_empty(),
        fields.mod_lists.list(&mods),
        fields.arg_lists.list(&args)
    )
}

fn feature(feature: Option<usize>, model: &Model) -> String {
    feature.map_or("None".into(), |f| format!("Some(Feature::{})", camel(&model.targets.features[f].name)))
}

fn bits(bits: Option<&Bits>) -> String {
    let Some(bits) = bits else { return "NO_BITS".into() };
    let mut pieces = bits.pieces.clone();
    pieces.resize(3, (0, 0));
    format!("Bits {{ pieces: [{:?}, {:?}, {:?}], shift: {} }}", pieces[0], pieces[1], pieces[2], bits.shift)
}

fn modifier(field: &ModField, model: &Model) -> String {
    let set = &model.ori.sets[field.set];
    let only = field.only.map_or("None".into(), |code| format!("Some({})", set.codes[code].1));
    format!(
        "ModField {{ kind: Mod::{}, set: {}, bits: {}, only: {only}, arg: {} }}",
        camel(&model.ori.kinds[set.kind].name),
        field.set,
        bits(field.bits.as_ref()),
        field.arg.map_or(255, |a| a)
    )
}

fn arg(field: &ArgField, form: &Form, model: &Model) -> String {
    let (arg, roles) = (&field.arg, &model.ori.ops[form.op].roles);
    let constant = constant_bits(&arg.kind);
    let kind = match arg.kind.as_str() {
        "R" => "Reg",
        "U" => "UReg",
        "P" => "Pred",
        "UP" => "UPred",
        "UQ" => "InvertedUPred",
        "UN" => "Following",
        "URN" => "NonzeroUReg",
        "word" => "Word",
        "B" => "Bar",
        "I" => "Hex",
        "S" => "Signed",
        "SD" => "Displacement",
        "SU" => "Unbased",
        "N" => "Decimal",
        "F" => "Float",
        "H" => "Halves",
        "G" => "Brains",
        "FH" => "Half",
        "FG" => "Brain",
        "D" => "Double",
        "L" => "Label",
        "SR" => "Special",
        "RN" => "Nonzero",
        "RH" => "Inside",
        "RR" => "Twice",
        "SB" => "Scoreboard",
        "M" => "Mask",
        "REL" => "Distance",
        "C" => "Const",
        "X" => "Bindless",
        "K" => "Bank",
        "O" => "Offset",
        _ => "Literal",
    };
    let bit = |b: Option<u8>| b.unwrap_or(255);
    // A uniform register that is always printed stays in the instruction: `[R0+URZ]` differs from
    // `[R0]`.
    let kept = arg.kept || arg.kind == "U" && arg.elide.is_none_or(|e| e.0 == NEVER_PRINTED);
    // A numeric zero is not the null register either: the forms differ.
    let number = |r: usize| is_number(&arg.kind) && roles[r].default.as_deref() == Some("RZ");
    let optional = !kept && field.role.is_some_and(|r| roles[r].default.is_some() && !number(r));
    format!(
        "ArgField {{ slot: {}, kind: Kind::{kind}, bits: {}, bank: {}, neg: {}, abs: {}, complement: {}, not: {}, reuse: {}, elide: {:?}, absent: {:?}, optional: {optional}, literal: {:?}, group: {}, open: {:?}, join: {:?} }}",
        field.role.unwrap_or(255),
        bits(constant.as_ref().map(|c| &c.0).or(arg.bits.as_ref())),
        bits(constant.as_ref().map(|c| &c.1)),
        bit(arg.neg),
        bit(arg.abs),
        bit(arg.complement),
        bit(arg.not),
        bit(arg.reuse),
        arg.elide,
        field.absent,
        arg.literal,
        arg.group,
        arg.open,
        arg.join
    )
}

/// The forms of each generation by their 12 opcode bits: those of `code` in generation `g` are
/// `CANDIDATES[BUCKETS[g][code]..BUCKETS[g][code + 1]]`.
fn buckets(model: &Model, text: &mut String) {
    let generations = model.targets.generations.len();
    let mut candidates: Vec<usize> = Vec::new();
    let mut starts = String::new();
    for generation in 0..generations {
        let mut by_code: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (i, form) in model.encoding.forms.iter().enumerate().filter(|(_, f)| f.generations.contains(&generation)) {
            by_code.entry(form.row.code).or_default().push(i);
        }
        let mut line = Vec::with_capacity(2 * 4097);
        for code in 0..=4096u16 {
            line.extend((candidates.len() as u16).to_le_bytes());
            candidates.extend(by_code.remove(&code).unwrap_or_default());
        }
        let _ = writeln!(starts, "    Numbers16({}),", bytes(&line));
    }
    let _ = writeln!(text, "pub(crate) static BUCKETS: [Numbers16; {generations}] = [\n{starts}];");
    // The bytes above hold 16 bits of each position: more candidates do not build.
    let _ = writeln!(text, "const _: u16 = {};", candidates.len());
    let _ = writeln!(text, "pub(crate) static CANDIDATES: [u16; {}] = {candidates:?};", candidates.len());
}

/// Forms by the first word of their mnemonic.
fn mnemonics(model: &Model, text: &mut String) {
    let mut words: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, form) in model.encoding.forms.iter().enumerate() {
        words.entry(form.text.split('.').next().unwrap_or("")).or_default().push(i);
    }
    let entries: Vec<_> = words.into_iter().map(|(word, list)| (word.to_string(), format!("&{list:?}"))).collect();
    let map = phf_map("FORMS_BY_WORD", "Forms by the first word of their mnemonic.", quote!(&'static [u16]), &entries);
    text.push_str(&pretty(map));
}

fn aliases(model: &Model, text: &mut String) {
    let aliases = &model.encoding.aliases;
    let _ = writeln!(text, "pub static ALIASES: [Alias; {}] = [", aliases.len());
    for alias in aliases {
        let conditions: Vec<String> = alias
            .conditions
            .iter()
            .map(|c| match c {
                Condition::Value(slot, value, not) => format!("Condition::Value({slot}, {value}, {not})"),
                Condition::PowerOfTwo(slot) => format!("Condition::PowerOfTwo({slot})"),
                Condition::Immediate(slot) => format!("Condition::Immediate({slot})"),
                Condition::Vector(slot) => format!("Condition::Vector({slot})"),
                Condition::Modifier(kind, value) => {
                    format!("Condition::Modifier(Mod::{}, {value})", camel(&model.ori.kinds[*kind].name))
                }
            })
            .collect();
        let _ = writeln!(
            text,
            "    Alias {{ op: Op::{}, on: {}, word: {:?}, when: &[{}] }},",
            model.ori.ops[alias.op].row.op,
            on(&alias.generations),
            alias.row.word,
            conditions.join(", ")
        );
    }
    text.push_str("];\n");
}

fn specials(model: &Model, text: &mut String) {
    let rows = &model.encoding.specials;
    let _ = writeln!(
        text,
        "/// Special registers: number, generations, feature, text, whether it counts.\npub static SPECIALS: [(u8, u8, Option<Feature>, &str, bool); {}] = [",
        rows.len()
    );
    for (row, generations, feature) in rows {
        let feature = self::feature(*feature, model);
        let _ = writeln!(text, "    ({}, {}, {feature}, {:?}, {}),", row.num, on(generations), row.text, row.counts);
    }
    text.push_str("];\n");
    let uniform: Vec<u8> = rows.iter().filter(|(row, ..)| row.uniform).map(|(row, ..)| row.num).collect();
    let _ = writeln!(text, "/// Special registers that are the same in all lanes of a warp.");
    let _ = writeln!(text, "pub static UNIFORM_SPECIALS: [u8; {}] = {uniform:?};", uniform.len());
    let kept: Vec<u8> = rows.iter().filter(|(row, ..)| row.keeps).map(|(row, ..)| row.num).collect();
    let _ = writeln!(text, "/// Special registers that keep their value while a thread runs.");
    let _ = writeln!(text, "pub static KEPT_SPECIALS: [u8; {}] = {kept:?};", kept.len());
    let bits: Vec<(u8, u32)> = rows.iter().filter_map(|(row, ..)| Some((row.num, row.row_bits?))).collect();
    let _ = writeln!(text, "/// Bits of special registers that may differ in a warp in one row of its block.");
    let _ = writeln!(text, "pub static ROW_BITS: [(u8, u32); {}] = {bits:?};", bits.len());
    text.push_str("/// Numbers of special registers as constants.\npub mod sr {\n");
    for (row, ..) in rows {
        let name = super::constant(row.text.strip_prefix("SR_").unwrap_or(&row.text));
        let _ = writeln!(text, "    pub const {name}: u32 = {};", row.num);
    }
    text.push_str("}\n");
}
