//! Laws of phases: there are 159, in orders 0 to 158, and each says who does its work, or why
//! nobody does.
//!
//! A phase is `built` (passes run in it), its work is done `elsewhere`, there is `none`, or it is
//! `planned`, as a whole or in part. Whom a row names is a pass, or a step of `steps.ron`.

use crate::model::Model;
use crate::report::Report;
use crate::rows::phases::{PhaseRow, StepRow};
use crate::source::Row;
use std::path::Path;

/// Number of phases in the published pipeline.
pub const PHASES: usize = 159;

/// What a phase may be, in the order of `State` in the generated code.
pub const STATES: [&str; 4] = ["built", "elsewhere", "none", "planned"];

/// The root of the repository, where the files of steps are.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    if model.phases.len() != PHASES {
        report.plain(format!("phases.ron: {} phases, not {PHASES}", model.phases.len()));
    }
    for row in &model.phases {
        if usize::from(row.order) >= PHASES {
            report.at("phases", format!("{}: order {} is past the last, {}", row.name, row.order, PHASES - 1), row.at);
        }
        state(row, report);
        for name in row.by.split_whitespace() {
            if !model.passes.iter().any(|pass| pass.name == name) && !model.steps.iter().any(|step| step.name == name) {
                report.at("phases", format!("{}: no pass and no step is called `{name}`", row.name), row.at);
            }
        }
    }
    model.steps.iter().for_each(|step| check_step(step, model, report));
}

/// The columns that a state asks for.
fn state(row: &Row<PhaseRow>, report: &mut Report) {
    let [by, why] = [&row.by, &row.why].map(|column| !column.trim().is_empty());
    let wrong = match row.state.as_str() {
        "built" if by != why => Some("says who else does its work (by) with the reason (why), or neither"),
        "elsewhere" if !by => Some("says by whom its work is done (by)"),
        "elsewhere" if !why => Some("says where its work is done and why there (why)"),
        "none" if by => Some("has no work for the passes that it names (by)"),
        "none" if !why => Some("says why there is no work (why)"),
        "planned" if !why => Some("says what is missing (why)"),
        state if !STATES.contains(&state) => Some("is none of built, elsewhere, none, planned"),
        _ => None,
    };
    if let Some(what) = wrong {
        report.at("phases", format!("{}: a phase that is `{}` {what}", row.name, row.state), row.at);
    }
}

/// A step is no pass, has a file, and some phase names it.
fn check_step(step: &Row<StepRow>, model: &Model, report: &mut Report) {
    if let Some(pass) = model.passes.iter().find(|pass| pass.name == step.name) {
        let rows = vec![(step.at, "this step".to_string()), (pass.at, "the pass".to_string())];
        report.rows("phases", format!("{}: a pass has the name of this step", step.name), rows);
    }
    if !Path::new(ROOT).join(&step.file).is_file() {
        report.at("phases", format!("{}: there is no file `{}`", step.name, step.file), step.at);
    }
    if !model.phases.iter().any(|phase| phase.by.split_whitespace().any(|name| name == step.name)) {
        report.at("phases", format!("{}: no phase names this step", step.name), step.at);
    }
}
