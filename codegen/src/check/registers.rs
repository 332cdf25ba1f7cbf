//! Laws of callee-saved registers: the file exists, a run is not empty, and no register is in two
//! rows of one kind of function.

use crate::model::Model;
use crate::report::Report;

const FILES: [&str; 6] = ["R", "UR", "P", "UP", "B", "UB"];

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    for (i, row) in model.registers.iter().enumerate() {
        if !FILES.contains(&row.file.as_str()) {
            report.at("registers", format!("`{}` is no register file", row.file), row.at);
        }
        if row.first > row.last {
            report.at("registers", format!("{}{} to {}{} is empty", row.file, row.first, row.file, row.last), row.at);
        }
        let earlier = &model.registers[..i];
        if earlier.iter().any(|e| e.by == row.by && e.file == row.file && e.first <= row.last && row.first <= e.last) {
            report.at(
                "registers",
                format!("a register of {}{} to {} has a row already", row.file, row.first, row.last),
                row.at,
            );
        }
    }
}
