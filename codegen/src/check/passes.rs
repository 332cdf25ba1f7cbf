//! Laws of passes: each pass has a phase and each implemented phase a pass; the order satisfies
//! `requires` and `after`; all words are known.

use super::phases::STATES;
use crate::model::Model;
use crate::report::Report;
use crate::rows::passes::PassRow;
use crate::source::Row;
use std::collections::BTreeSet;

/// Analyses that the pass manager caches, in the order of `Analysis` in the generated code.
pub const ANALYSES: [&str; 7] = ["cfg", "dominators", "post_dominators", "loops", "liveness", "def_use", "divergence"];

/// When a pass runs.
pub const WHEN: [&str; 4] = ["always", "optimised", "scheduled", "unscheduled"];

/// The implemented phase without a pass: it encodes the finished function.
const ENCODING: &str = "FormatCodeList";

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut holds: BTreeSet<&str> = BTreeSet::new();
    let mut order = 0;
    for row in &model.passes {
        words(row, report);
        match model.phases.iter().find(|phase| phase.name == row.phase) {
            None => report.at("passes", format!("{}: no phase is called `{}`", row.name, row.phase), row.at),
            Some(phase) if phase.state != "built" && STATES.contains(&phase.state.as_str()) => {
                let rows = vec![(row.at, "this pass".to_string()), (phase.at, "its phase".to_string())];
                let text = format!("{}: phase `{}` is not built, and runs no pass", row.name, row.phase);
                report.rows("passes", text, rows);
            }
            Some(phase) if phase.order < order => {
                let text = format!("{}: stands behind a pass of a later phase than `{}`", row.name, row.phase);
                report.at("passes", text, row.at);
            }
            Some(phase) => order = phase.order,
        }
        for (name, reason) in &row.after {
            if !seen.contains(name.as_str()) {
                report.at(
                    "passes",
                    format!("{}: must run after `{name}`, which does not run before it", row.name),
                    row.at,
                );
            }
            if reason.trim().is_empty() {
                report.at("passes", format!("{}: no reason why it runs after `{name}`", row.name), row.at);
            }
        }
        for need in row.requires.split_whitespace().filter(|need| !holds.contains(need)) {
            report.at("passes", format!("{}: requires `{need}`, which does not hold there", row.name), row.at);
        }
        seen.insert(&row.name);
        holds.extend(row.makes.split_whitespace());
        row.destroys.split_whitespace().for_each(|gone| {
            holds.remove(gone);
        });
    }
    for phase in model.phases.iter().filter(|phase| phase.state == "built" && phase.name != ENCODING) {
        if !model.passes.iter().any(|row| row.phase == phase.name) {
            report.at("passes", format!("{}: a built phase that runs no pass", phase.name), phase.at);
        }
    }
}

/// Checks the words of one row.
fn words(row: &Row<PassRow>, report: &mut Report) {
    if !WHEN.contains(&row.when.as_str()) {
        report.at("passes", format!("{}: `{}` is none of {}", row.name, row.when, WHEN.join(", ")), row.at);
    }
    for name in row.preserves.split_whitespace().filter(|name| *name != "all" && !ANALYSES.contains(name)) {
        let known = ANALYSES.join(", ");
        report.at("passes", format!("{}: `{name}` is no analysis; there are {known}, or all", row.name), row.at);
    }
    let path = row.run.strip_suffix("(cx)").or(row.run.strip_suffix("(cx, options)")).unwrap_or("");
    if path.is_empty() || !path.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c)) {
        let text = format!("{}: `{}` is neither `path(cx)` nor `path(cx, options)`", row.name, row.run);
        report.at("passes", text, row.at);
    }
    if row.optional && row.makes.split_whitespace().next().is_some() {
        let text = format!("{}: optional, and makes `{}`, which later passes may require", row.name, row.makes);
        report.at("passes", text, row.at);
    }
}
