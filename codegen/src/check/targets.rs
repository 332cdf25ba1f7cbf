//! Laws of targets: each of the columns 0 to 127 is used once, names are distinct, and parents,
//! generations and features resolve.

use crate::model::Model;
use crate::model::targets::{Term, terms};
use crate::report::Report;

/// Number of SM configurations in the legality matrix.
pub const COLUMNS: u32 = 128;

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    let t = &model.targets;
    for (i, row) in t.targets.iter().enumerate() {
        if row.col >= COLUMNS {
            report.at("targets", format!("{}: column {} is past the last, {}", row.name, row.col, COLUMNS - 1), row.at);
        }
        for other in &t.targets[..i] {
            let both = || vec![(other.at, "first".to_string()), (row.at, "again".to_string())];
            if other.name == row.name {
                report.rows("targets", format!("two targets are called `{}`", row.name), both());
            }
            if other.col == row.col && other.kind != "reserved" && row.kind != "reserved" {
                report.rows("targets", format!("column {} is taken twice", row.col), both());
            }
        }
        if !["real", "legacy", "reserved"].contains(&row.kind.as_str()) {
            report.at("targets", format!("{}: kind `{}` is not real, legacy or reserved", row.name, row.kind), row.at);
        }
        for parent in row.parents().filter(|parent| !t.targets.iter().any(|x| x.name == *parent)) {
            report.at("names", format!("{}: no target is called `{parent}`", row.name), row.at);
        }
        if let Some(generation) = &row.generation
            && t.generation(generation).is_none()
        {
            report.at("names", format!("{}: no generation is called `{generation}`", row.name), row.at);
        }
    }
    for row in &t.features {
        match terms(&row.on) {
            Err(word) => report.at("features", format!("{}: `{word}` is not a range of targets", row.name), row.at),
            Ok(terms) => {
                for term in terms {
                    if let Term::Named { name, .. } = term
                        && !t.targets.iter().any(|x| x.name == name)
                    {
                        report.at("names", format!("{}: no target is called `{name}`", row.name), row.at);
                    }
                }
            }
        }
    }
}
