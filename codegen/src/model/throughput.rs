//! Resolved issue costs: for every target one answer per opcode, with exceptions for some
//! modifiers.
//!
//! The rows are those of `latency/throughput.ron`. If several rows match a cell, the most specific
//! one applies; two of the same rank are an error, and so is an opcode without a row. Without
//! errors every target with an encoder has an answer for every opcode.

use super::memory::modifier;
use super::ori::Ori;
use super::targets::Targets;
use crate::report::Report;
use crate::rows::throughput::PaceRow;
use crate::source::{At, Row, Sources};

/// Costs of a group of targets, as indices of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// By opcode.
    pub base: Vec<usize>,
    /// By opcode: opcode, modifier kind and value, row.
    pub specials: Vec<(usize, (usize, usize), usize)>,
}

/// All costs.
pub struct Throughput {
    pub rows: Vec<Row<PaceRow>>,
    /// Names of the pipes, in the order of the rows.
    pub pipes: Vec<String>,
    pub groups: Vec<Costs>,
    /// The group of each target, by index; `None` without an encoder.
    pub of_target: Vec<Option<usize>>,
}

/// A row with the targets it applies to.
struct Spoken<'a> {
    position: usize,
    row: &'a Row<PaceRow>,
    /// Its opcodes, split once, since every opcode of every target is looked for in them.
    ops: Vec<&'a str>,
    columns: u128,
}

impl Throughput {
    /// Reads the rows and resolves their names; errors go to `report`.
    pub fn load(sources: &mut Sources, targets: &Targets, ori: &Ori, report: &mut Report) -> Throughput {
        let rows: Vec<Row<PaceRow>> = sources.rows("latency/throughput.ron", report);
        let mut pipes: Vec<String> = Vec::new();
        for row in &rows {
            if !pipes.contains(&row.pipe) {
                pipes.push(row.pipe.clone());
            }
            for word in row.ops.split_whitespace().filter(|w| *w != "*" && ori.op(w).is_none()) {
                report.at("names", format!("no opcode is called `{word}`"), row.at);
            }
            if !row.when.is_empty() && modifier(ori, &row.when).is_none() {
                report.at("names", format!("`{}` is not KIND=VALUE of known names", row.when), row.at);
            }
            if row.cycles == 0 {
                report.at("latency", "an instruction keeps its pipe for a cycle at least", row.at);
            }
        }
        let columns = |row: &Row<PaceRow>| if row.on == "*" { u128::MAX } else { targets.columns(&row.on) };
        let spoken = rows.iter().enumerate().map(|(position, row)| Spoken {
            position,
            row,
            ops: row.ops.split_whitespace().collect(),
            columns: columns(row),
        });
        let spoken: Vec<Spoken> = spoken.collect();
        let mut groups: Vec<Costs> = Vec::new();
        let mut of_target = vec![None; targets.targets.len()];
        for (position, target) in targets.built() {
            let on = spoken.iter().filter(|s| s.columns.checked_shr(target.col).unwrap_or(0) & 1 != 0);
            let costs = costs(&on.collect::<Vec<_>>(), ori, target.at, report);
            let known = groups.iter().position(|g| *g == costs);
            of_target[position] = Some(known.unwrap_or(groups.len()));
            if known.is_none() {
                groups.push(costs);
            }
        }
        Throughput { pipes, groups, of_target, rows }
    }
}

fn costs(spoken: &[&Spoken], ori: &Ori, target: At, report: &mut Report) -> Costs {
    let mut out = Costs::default();
    if spoken.is_empty() {
        report.at("latency", "no row says what instructions of this target cost their pipes".to_string(), target);
        out.base.resize(ori.ops.len(), 0);
        return out;
    }
    for op in 0..ori.ops.len() {
        let name = &ori.ops[op].row.op;
        let of: Vec<&&Spoken> = spoken.iter().filter(|s| s.ops.contains(&name.as_str())).collect();
        let plain: Vec<&Spoken> = of.iter().map(|s| **s).filter(|s| s.row.when.is_empty()).collect();
        let plain = if plain.is_empty() {
            spoken.iter().copied().filter(|s| s.row.ops == "*" && s.row.when.is_empty()).collect()
        } else {
            plain
        };
        out.base.push(one(&plain, name, target, report));
        let mut conditions: Vec<(usize, usize)> = of.iter().filter_map(|s| modifier(ori, &s.row.when)).collect();
        conditions.sort_unstable();
        conditions.dedup();
        for condition in conditions {
            let rows: Vec<&Spoken> =
                of.iter().map(|s| **s).filter(|s| modifier(ori, &s.row.when) == Some(condition)).collect();
            out.specials.push((op, condition, one(&rows, name, target, report)));
        }
    }
    out
}

/// The row that applies among those that match a cell: one that names targets outranks one that
/// does not.
fn one(rows: &[&Spoken], name: &str, target: At, report: &mut Report) -> usize {
    let named: Vec<&&Spoken> = rows.iter().filter(|s| s.row.on != "*").collect();
    let best = if named.is_empty() { rows.iter().collect() } else { named };
    match best.as_slice() {
        [] => report.at("latency", format!("no row says what {name} costs its pipe"), target),
        [_] => {}
        several => {
            let places: Vec<(At, String)> = several.iter().map(|s| (s.row.at, String::new())).collect();
            // Rows that conflict in one cell conflict on many targets; only the first is reported.
            if !report.errors.iter().any(|e| e.law == "latency" && e.rows == places) {
                report.rows("latency", format!("{} rows say what {name} costs its pipe", several.len()), places);
            }
        }
    }
    best.first().map_or(0, |s| s.position)
}
