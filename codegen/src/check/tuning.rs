//! Laws of tunables: each belongs to a pass, has a name of its own and a sentence, and nothing is
//! tried twice, nor what it is anyway.

use super::unique::distinct;
use crate::model::Model;
use crate::report::Report;
use std::collections::BTreeSet;

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    distinct("tunable", model.tunables.iter().map(|row| (row.name.clone(), row.at)), report);
    for row in &model.tunables {
        if !model.passes.iter().any(|pass| pass.name == row.pass) {
            report.at("tunables", format!("{}: no pass is called `{}`", row.name, row.pass), row.at);
        }
        if row.what.trim().is_empty() {
            report.at("tunables", format!("{}: does not say what it decides", row.name), row.at);
        }
        let mut seen = BTreeSet::from([row.default]);
        for value in row.tried.iter().filter(|value| !seen.insert(**value)) {
            report.at("tunables", format!("{}: tried: {value} again, or the default", row.name), row.at);
        }
    }
}
