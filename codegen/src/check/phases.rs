//! Laws of phases: there are 159, in orders 0 to 158, each `built` or `planned`.

use crate::model::Model;
use crate::report::Report;

/// Number of phases in the published pipeline.
pub const PHASES: usize = 159;

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    if model.phases.len() != PHASES {
        report.plain(format!("phases.ron: {} phases, not {PHASES}", model.phases.len()));
    }
    for row in &model.phases {
        if usize::from(row.order) >= PHASES {
            report.at("phases", format!("{}: order {} is past the last, {}", row.name, row.order, PHASES - 1), row.at);
        }
        if !["built", "planned"].contains(&row.state.as_str()) {
            report.at("phases", format!("{}: state `{}` is not built or planned", row.name, row.state), row.at);
        }
    }
}
