//! Coverage statistics of a run of random programs.
//!
//! Over programs that agree, it counts forms of `forms.txt`, rows of `tables/ptx/forms`, full
//! opcodes, and block terminators. Programs are of PTX 9.0, so rows of later versions are not asked
//! for; others that programs do not contain are listed with reasons in
//! `tests/fuzz/rows_not_hit.txt`.

use sassafras::ptx::ast::Statement;
use sassafras::sim::ptx;
use sassafras::tables::ptx::{FORMS, Form, ScalarType};
use std::collections::{BTreeMap, BTreeSet};

/// Number of programs from which on every row must be covered.
pub const ENOUGH: u64 = 100_000;
/// The PTX version of programs.
pub const VERSION: (u32, u32) = (9, 0);
/// Required number of occurrences.
pub const LEAST: usize = 20;

/// The counts of a run.
#[derive(Default)]
pub struct Coverage {
    /// By index of a form in its list.
    pub forms: BTreeMap<usize, usize>,
    pub rows: BTreeMap<u16, usize>,
    pub opcodes: BTreeMap<String, usize>,
    pub ends: BTreeMap<&'static str, usize>,
}

impl Coverage {
    /// Counts a program that agrees.
    pub fn add(&mut self, text: &str, taken: &[usize]) {
        taken.iter().for_each(|form| *self.forms.entry(*form).or_default() += 1);
        let (Some(module), _) = ptx::parse(text.as_bytes()) else { return };
        for statement in module.functions.values().filter_map(|f| f.body.as_ref()).flatten() {
            let Statement::Instruction(inst) = statement else { continue };
            *self.rows.entry(inst.row.0).or_default() += 1;
        }
        for line in text.split(['\n', ';', '{', '}']) {
            let mut words = line.split_whitespace().skip_while(|w| w.starts_with('@') || w.ends_with(':'));
            let Some(op) = words.next().filter(|w| w.starts_with(|c: char| c.is_ascii_lowercase())) else { continue };
            *self.opcodes.entry(op.to_string()).or_default() += 1;
            let guarded = line.trim_start().starts_with('@');
            let end = match (op, guarded) {
                ("bra", true) => "bra under a guard",
                ("bra", false) => "bra",
                ("brx.idx", _) => "brx.idx",
                ("ret", true) => "ret under a guard",
                ("ret", false) => "ret",
                ("exit", _) => "exit under a guard",
                ("call", _) if line.contains("shape") => "call by a pointer",
                ("call", _) => "call",
                _ => continue,
            };
            *self.ends.entry(end).or_default() += 1;
        }
    }

    /// The counts as a few lines of text.
    pub fn print(&self, list: &[crate::lowering_support::forms::Form]) {
        let (forms, rows) = (list.len(), FORMS.len());
        let least = |n: &usize| *n >= LEAST;
        let (some, often) = (self.forms.len(), self.forms.values().filter(|n| least(n)).count());
        println!("forms: {some} of {forms} hit, {often} at least {LEAST} times");
        let (some, often) = (self.rows.len(), self.rows.values().filter(|n| least(n)).count());
        println!("rows of tables/ptx/forms: {some} of {rows} hit, {often} at least {LEAST} times");
        println!("opcodes with modifiers and types: {} different", self.opcodes.len());
        let ends: Vec<String> = self.ends.iter().map(|(end, n)| format!("{end} {n}")).collect();
        println!("ends of blocks: {}", ends.join(", "));
        if std::env::var_os("SASSAFRAS_SHOW").is_some() {
            self.opcodes.iter().for_each(|(op, n)| println!("    {n:8} {op}"));
            let forms = list.iter().enumerate().filter(|(n, _)| !self.forms.contains_key(n));
            forms.for_each(|(_, form)| println!("    not hit: form {}", form.text));
            let rows = FORMS.iter().enumerate().filter(|(n, _)| !self.rows.contains_key(&(*n as u16)));
            rows.for_each(|(_, row)| println!("    not hit: row {}", row_text(row)));
        }
    }
}

/// A row of the instruction forms as text.
fn row_text(form: &Form) -> String {
    let mut text = form.op.name().to_string();
    for rule in form.rules {
        let texts = rule.group.info().texts;
        let some: Vec<&str> = (0..texts.len()).filter(|i| rule.mask >> i & 1 == 1).map(|i| texts[i]).collect();
        let shown = if some.len() > 6 { format!("{}…{}", some[0], some.len()) } else { some.join("|") };
        text += &format!(" {shown}{}", if rule.required { "" } else { "?" });
    }
    for types in form.types {
        let some: Vec<&str> = ScalarType::ALL.iter().filter(|ty| types & ty.bit() != 0).map(|ty| ty.name()).collect();
        text += &format!(" .{}", some.join("|"));
    }
    text
}

impl Coverage {
    /// In a long run, the rows that were rarely covered must be those of the list.
    /// `SASSAFRAS_BLESS=1` prints the missing ones.
    pub fn judge(&self, forms: &[crate::lowering_support::forms::Form], programs: u64) {
        if programs < ENOUGH {
            return;
        }
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/rows_not_hit.txt");
        let list = std::fs::read_to_string(path).unwrap_or_default();
        let known: BTreeSet<&str> = list
            .lines()
            .filter(|l| !l.starts_with('#'))
            .filter_map(|l| l.split_once(" // "))
            .map(|(row, _)| row)
            .collect();
        let mut rare = BTreeSet::new();
        for (number, form) in forms.iter().enumerate().filter(|(n, _)| self.forms.get(n).is_none_or(|n| *n < LEAST)) {
            rare.insert((format!("form {}", form.text), self.forms.get(&number).copied().unwrap_or(0)));
        }
        for (number, form) in FORMS.iter().enumerate().filter(|(_, form)| form.needs.ptx <= VERSION) {
            let hit = self.rows.get(&(number as u16)).copied().unwrap_or(0);
            if hit < LEAST {
                rare.insert((format!("row {}", row_text(form)), hit));
            }
        }
        let new: Vec<_> = rare.iter().filter(|(row, _)| !known.contains(row.as_str())).collect();
        let stale: Vec<_> = known.iter().filter(|row| !rare.iter().any(|(rare, _)| rare == *row)).collect();
        assert!(new.is_empty() && stale.is_empty(), "rarely hit and not listed: {new:#?}\nlisted and hit: {stale:#?}");
    }
}
