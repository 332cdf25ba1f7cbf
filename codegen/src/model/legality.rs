//! The legality matrix: 236 operations by 128 SM configurations, resolved from rules.
//!
//! The rows are those of `legality/operations.ron`, `instructions.ron`, `recipes.ron`, and rules in
//! one file per family. The laws `legality` and `names` check that ids are the indices of the rows;
//! that every cell of a real column has exactly one rule, whose verdict names existing opcodes and
//! recipes; that every variant of a recipe is used; and that other columns have no rule.

use super::instructions::{Pattern, Wording, patterns, wordings};
use super::ori::Ori;
use super::targets::{Targets, terms};
use crate::report::Report;
use crate::rows::legality::{InstructionRow, OperationRow, RecipeRow, RuleRow};
use crate::source::{At, Row, Sources};
use std::collections::BTreeSet;

/// Columns of the matrix.
pub const COLUMNS: usize = 128;

/// The decoded contents of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// One instruction with one of these opcodes, depending on the form; empty if the target has no
    /// encoder.
    Native(Vec<usize>),
    /// Recipe (by index), and its variant: the operation's index in the recipe's list.
    Inline(usize, usize),
    /// The same for a recipe of kind `handler`.
    Handler(usize, usize),
    /// Rejected with the first wording that fits.
    Illegal(Vec<Wording>),
}

/// A rule with its operations and columns resolved.
pub struct Rule {
    pub row: Row<RuleRow>,
    /// Operations by index, each with its verdict.
    pub ops: Vec<(usize, Verdict)>,
    /// The columns that the rule applies to, one bit each.
    pub columns: u128,
}

/// The matrix and the tables it is resolved from.
#[derive(Default)]
pub struct Legality {
    pub operations: Vec<Row<OperationRow>>,
    pub instructions: Vec<Row<InstructionRow>>,
    /// The patterns of instructions that belong to an operation: row, operation by index, pattern;
    /// in the order of the operations.
    pub patterns: Vec<(usize, usize, Pattern)>,
    pub recipes: Vec<Row<RecipeRow>>,
    pub rules: Vec<Rule>,
    /// The rule of each operation and column, by index; `None` if the column is not real.
    pub cells: Vec<Vec<Option<usize>>>,
}

const NOT_RULES: [&str; 3] = ["operations.ron", "instructions.ron", "recipes.ron"];

impl Legality {
    /// Reads the rows and resolves their names; errors go to `report`.
    pub fn load(sources: &mut Sources, targets: &Targets, ori: &Ori, report: &mut Report) -> Legality {
        let mut legality = Legality {
            operations: sources.rows("legality/operations.ron", report),
            instructions: sources.rows("legality/instructions.ron", report),
            recipes: sources.rows("legality/recipes.ron", report),
            ..Legality::default()
        };
        for row in sources.folder::<RuleRow>("legality", &NOT_RULES, report) {
            if let Some(bad) = terms(&row.on).err() {
                report.at("names", format!("`{bad}` is no term of targets"), row.at);
            }
            let (mut ops, mut wrong) = (Vec::new(), BTreeSet::new());
            for name in row.ops.split_whitespace() {
                let found = legality.operation(name).ok_or_else(|| format!("no operation is called `{name}`"));
                match found.and_then(|op| Ok((op, legality.verdict(&row, op, ori)?))) {
                    Ok(entry) => ops.push(entry),
                    // A wrong verdict fails for each operation; it is reported once.
                    Err(message) if wrong.insert(message.clone()) => report.at("names", message, row.at),
                    Err(_) => {}
                }
            }
            let columns = targets.columns(&row.on);
            legality.rules.push(Rule { row, ops, columns });
        }
        legality.fill(report);
        legality.read_instructions(report);
        legality
    }

    /// The patterns of the rows of `instructions.ron`.
    fn read_instructions(&mut self, report: &mut Report) {
        for (number, row) in self.instructions.iter().enumerate() {
            let op = self.operation(&row.op).ok_or_else(|| format!("no operation is called `{}`", row.op));
            match op.and_then(|op| Ok((op, patterns(&row.instructions)?))) {
                Ok((op, read)) => self.patterns.extend(read.into_iter().map(|pattern| (number, op, pattern))),
                Err(message) => report.at("names", message, row.at),
            }
        }
        self.patterns.sort_by_key(|p| p.1);
    }

    fn operation(&self, name: &str) -> Option<usize> {
        self.operations.iter().position(|o| o.op == name)
    }

    /// Parses `native OPCODE …`, `inline RECIPE`, `handler RECIPE` or `illegal WORDING` for an
    /// operation.
    fn verdict(&self, row: &RuleRow, op: usize, ori: &Ori) -> Result<Verdict, String> {
        let (kind, rest) = row.verdict.split_once(' ').unwrap_or((&row.verdict, ""));
        match kind {
            "native" => {
                let opcode = |name: &str| ori.op(name).ok_or_else(|| format!("no opcode is called `{name}`"));
                rest.split_whitespace().map(opcode).collect::<Result<_, _>>().map(Verdict::Native)
            }
            "inline" | "handler" => {
                let recipe = self.recipes.iter().position(|r| r.name == rest && r.kind == kind);
                let recipe = recipe.ok_or_else(|| format!("no {kind} recipe is called `{rest}`"))?;
                let name = &self.operations[op].op;
                let variant = self.recipes[recipe].ops.split_whitespace().position(|o| o == name);
                let variant = variant.ok_or_else(|| format!("the recipe `{rest}` has no variant `{name}`"))?;
                Ok(if kind == "inline" { Verdict::Inline(recipe, variant) } else { Verdict::Handler(recipe, variant) })
            }
            "illegal" => wordings(rest).map(Verdict::Illegal),
            _ => Err(format!("`{kind}` is none of native, inline, handler, illegal")),
        }
    }

    /// Assigns each cell its rule; a second rule for a cell is an error that shows both.
    fn fill(&mut self, report: &mut Report) {
        self.cells = vec![vec![None; COLUMNS]; self.operations.len()];
        let mut twice: Vec<(usize, usize, usize)> = Vec::new();
        for (number, rule) in self.rules.iter().enumerate() {
            for ((op, _), column) in rule.ops.iter().flat_map(|op| (0..COLUMNS).map(move |c| (op, c))) {
                if rule.columns >> column & 1 == 0 {
                    continue;
                }
                match self.cells[*op][column].replace(number) {
                    Some(other) if !twice.iter().any(|t| (t.0, t.1, t.2) == (*op, other, number)) => {
                        twice.push((*op, other, number));
                    }
                    _ => {}
                }
            }
        }
        for (op, first, second) in twice {
            let message = format!("`{}` has two rules on the same target", self.operations[op].op);
            let rows = [(first, "one"), (second, "other")].map(|(r, label)| (self.rules[r].row.at, label.to_string()));
            report.rows("legality", message, rows.to_vec());
        }
    }

    /// The verdict of a rule for an operation.
    pub fn said(&self, rule: usize, op: usize) -> Option<&Verdict> {
        self.rules[rule].ops.iter().find(|o| o.0 == op).map(|o| &o.1)
    }

    /// Source and position of every row.
    pub fn evidence(&self) -> Vec<(&str, At)> {
        let mut all: Vec<(&str, At)> = self.operations.iter().map(|r| (r.src.as_str(), r.at)).collect();
        all.extend(self.instructions.iter().map(|r| (r.src.as_str(), r.at)));
        all.extend(self.recipes.iter().map(|r| (r.src.as_str(), r.at)));
        all.extend(self.rules.iter().map(|r| (r.row.src.as_str(), r.row.at)));
        all
    }
}
