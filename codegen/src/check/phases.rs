//! Laws of phases: 159 of them, in orders 0 to 158, and each property that a built phase requires holds when it runs.

use crate::model::Model;
use crate::report::Report;
use std::collections::BTreeSet;

/// Number of phases in the published pipeline.
pub const PHASES: usize = 159;

pub fn check(model: &Model, report: &mut Report) {
    let mut rows: Vec<_> = model.phases.iter().collect();
    rows.sort_by_key(|r| r.order);
    if rows.len() != PHASES {
        report.plain(format!("phases.ron: {} phases, not {PHASES}", rows.len()));
    }
    let mut holds: BTreeSet<&str> = BTreeSet::new();
    for row in rows {
        if usize::from(row.order) >= PHASES {
            report.at("phases", format!("{}: order {} is past the last, {}", row.name, row.order, PHASES - 1), row.at);
        }
        match row.state.as_str() {
            "planned" => continue,
            "built" => {}
            other => report.at("phases", format!("{}: state `{other}` is not built or planned", row.name), row.at),
        }
        for need in row.requires.split_whitespace().filter(|need| !holds.contains(need)) {
            report.at("phases", format!("{}: requires `{need}`, which does not hold there", row.name), row.at);
        }
        holds.extend(row.makes.split_whitespace());
        row.destroys.split_whitespace().for_each(|gone| {
            holds.remove(gone);
        });
    }
}
