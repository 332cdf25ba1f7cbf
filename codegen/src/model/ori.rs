//! Resolved opcodes with their operand roles and properties, and the modifier kinds.

use crate::report::Report;
use crate::rows::ori::{ModifierRow, OpRow, PropertyRow, ValueRow};
use crate::source::{At, Row, Sources};
use std::collections::{BTreeMap, BTreeSet};

/// One operand role, parsed from `NAME DIRECTION CLASS [WIDTH] [?DEFAULT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleSpec {
    pub name: String,
    pub direction: char,
    pub class: char,
    /// A number of 32-bit words, or the name of a width rule.
    pub width: String,
    pub default: Option<String>,
}

/// An opcode with its roles parsed; `props` are indices.
pub struct Op {
    pub row: Row<OpRow>,
    pub roles: Vec<RoleSpec>,
    pub props: Vec<usize>,
}

/// A modifier kind and its values, in order of first mention; the first is the default.
pub struct ModKind {
    pub name: String,
    pub values: Vec<String>,
}

/// One encoding of a modifier kind: the value of each bit pattern.
pub struct ModSet {
    pub name: String,
    pub kind: usize,
    pub at: At,
    /// (bits, index into the kind's values)
    pub codes: Vec<(u64, usize)>,
    /// The text of each code; empty if nothing is printed.
    pub texts: Vec<String>,
    pub src: String,
}

/// All opcodes, properties, roles and modifiers.
pub struct Ori {
    pub ops: Vec<Op>,
    pub properties: Vec<Row<PropertyRow>>,
    /// Names of all roles, sorted.
    pub roles: Vec<String>,
    pub kinds: Vec<ModKind>,
    pub sets: Vec<ModSet>,
    /// What values of modifiers mean.
    pub meanings: Vec<Row<ValueRow>>,
}

impl Ori {
    /// Reads the rows and resolves their names; errors go to `report`.
    pub fn load(sources: &mut Sources, report: &mut Report) -> Ori {
        let properties: Vec<Row<PropertyRow>> = sources.rows("ori/properties.ron", report);
        let mut ops = Vec::new();
        for row in sources.folder::<OpRow>("ori", &["properties.ron", "recipes.ron", "moves.ron", "values.ron"], report)
        {
            let roles = row.roles.split_whitespace().filter_map(|w| role(w, &row, report)).collect();
            let mut props = Vec::new();
            for name in row.props.split_whitespace() {
                match properties.iter().position(|p| p.name == name) {
                    Some(p) => props.push(p),
                    None => report.at("names", format!("{}: no property is called `{name}`", row.op), row.at),
                }
            }
            ops.push(Op { row, roles, props });
        }
        ops.sort_by_key(|op| op.row.num);
        let mut roles: Vec<String> = ops.iter().flat_map(|o| o.roles.iter().map(|r| r.name.clone())).collect();
        roles.sort();
        roles.dedup();
        let (kinds, sets) = modifiers(sources.rows("encoding/modifiers.ron", report), report);
        let meanings = sources.rows("ori/values.ron", report);
        Ori { ops, properties, roles, kinds, sets, meanings }
    }

    /// What is asked of the values of modifiers, sorted.
    pub fn questions(&self) -> Vec<&str> {
        let asked: BTreeSet<&str> = self.meanings.iter().map(|row| row.says.as_str()).collect();
        asked.into_iter().collect()
    }

    /// Whether an opcode has the property of this name.
    pub fn has(&self, op: &Op, name: &str) -> bool {
        op.props.iter().any(|p| self.properties[*p].name == name)
    }

    /// Index of an opcode by name.
    pub fn op(&self, name: &str) -> Option<usize> {
        self.ops.iter().position(|o| o.row.op == name)
    }
}

fn role(word: &str, row: &Row<OpRow>, report: &mut Report) -> Option<RoleSpec> {
    let (body, default) = match word.split_once('?') {
        Some((body, default)) => (body, Some(default.to_string())),
        None => (word, None),
    };
    let parsed = body.find(['>', '<', '=']).and_then(|i| {
        let class = body[i + 1..].chars().next().filter(|c| "rupbils".contains(*c))?;
        let width = body[i + 2..].trim_start_matches(':');
        let width = if width.is_empty() { "1" } else { width };
        Some(RoleSpec {
            name: body[..i].to_string(),
            direction: body.as_bytes()[i] as char,
            class,
            width: width.to_string(),
            default,
        })
    });
    if parsed.is_none() {
        report.at(
            "role",
            format!("{}: `{word}` is not NAME, one of > < =, and a class of r u p b i l s", row.op),
            row.at,
        );
    }
    parsed
}

fn modifiers(rows: Vec<Row<ModifierRow>>, report: &mut Report) -> (Vec<ModKind>, Vec<ModSet>) {
    let mut kinds: Vec<ModKind> = Vec::new();
    let mut sets: Vec<ModSet> = Vec::new();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    for row in &rows {
        let kind = *index.entry(row.kind.clone()).or_insert_with(|| {
            kinds.push(ModKind { name: row.kind.clone(), values: Vec::new() });
            kinds.len() - 1
        });
        if let Some(other) = sets.iter().find(|s| s.name == row.set) {
            let both = vec![(other.at, "first".into()), (row.at, "again".into())];
            report.rows("modifiers", format!("two sets are called `{}`", row.set), both);
        }
        let mut codes: Vec<(u64, usize)> = Vec::new();
        let mut texts = Vec::new();
        for word in row.values.split_whitespace() {
            let Some((bits, text)) = word.split_once('=').and_then(|(b, t)| Some((b.parse::<u64>().ok()?, t))) else {
                report.at("modifiers", format!("`{word}` is not BITS=TEXT"), row.at);
                continue;
            };
            if codes.iter().any(|c| c.0 == bits) {
                report.at("modifiers", format!("set `{}` gives the bits {bits} twice", row.set), row.at);
            }
            let (text, printed) = text.split_once('/').unwrap_or((text, text));
            let values = &mut kinds[kind].values;
            let value = values.iter().position(|v| v == text).unwrap_or_else(|| {
                values.push(text.to_string());
                values.len() - 1
            });
            codes.push((bits, value));
            texts.push(if printed == "-" { String::new() } else { printed.to_string() });
        }
        sets.push(ModSet { name: row.set.clone(), kind, at: row.at, codes, texts, src: row.src.clone() });
    }
    (kinds, sets)
}
