//! Collected errors of one run over the tables.
//!
//! Input: complaints with the rows involved. Output: for cargo one line each (`file:line:col: [law] message`), for a
//! person the same with a picture of every row involved and a caret. Invariant: errors are printed in the order of
//! their first row, whatever order the laws ran in, so that two runs print the same.

use crate::source::{At, Sources};
use std::fmt::Write;

/// One complaint: the law it breaks, what is wrong, and each row involved with its part in it.
#[derive(Debug)]
pub struct TableError {
    pub law: &'static str,
    pub message: String,
    pub rows: Vec<(At, String)>,
}

/// All complaints of a run.
#[derive(Default, Debug)]
pub struct Report {
    pub errors: Vec<TableError>,
}

impl Report {
    /// A complaint about one row.
    pub fn at(&mut self, law: &'static str, message: impl Into<String>, at: At) {
        self.errors.push(TableError { law, message: message.into(), rows: vec![(at, String::new())] });
    }

    /// A complaint about several rows, each with its label.
    pub fn rows(&mut self, law: &'static str, message: impl Into<String>, rows: Vec<(At, String)>) {
        self.errors.push(TableError { law, message: message.into(), rows });
    }

    /// A complaint that has no row (a missing file).
    pub fn plain(&mut self, message: impl Into<String>) {
        self.errors.push(TableError { law: "file", message: message.into(), rows: Vec::new() });
    }

    /// Drops complaints about names that are not there, if rows are missing because they could not be read: the rows are the
    /// cause, and the names come back with them.
    pub fn without_consequences(&mut self) {
        if self.errors.iter().any(|e| ["syntax", "row", "file"].contains(&e.law)) {
            self.errors.retain(|e| e.law != "names" && e.law != "ptx" && e.law != "elf");
        }
        // What the matrix or the backends lack, or have twice, is often another table's error.
        const LATE: [&str; 3] = ["legality", "regclass", "legal"];
        if self.errors.iter().any(|e| !LATE.contains(&e.law)) {
            self.errors.retain(|e| !LATE.contains(&e.law));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// All errors as text: one line each, followed by the rows with carets when `pictures` is set.
    pub fn render(&self, sources: &Sources, pictures: bool) -> String {
        let mut sorted: Vec<&TableError> = self.errors.iter().collect();
        sorted.sort_by_key(|e| (e.rows.first().map(|r| r.0), e.law, e.message.clone()));
        let mut text = String::new();
        for error in sorted {
            let places: Vec<String> = error.rows.iter().map(|(at, _)| place(sources, *at)).collect();
            let first = places.first().map_or(String::new(), |p| format!("{p}: "));
            let _ = write!(text, "{first}[{}] {}", error.law, error.message);
            if places.len() > 1 {
                let _ = write!(text, " (and {})", places[1..].join(", "));
            }
            text.push('\n');
            if pictures {
                for (at, label) in &error.rows {
                    picture(sources, *at, label, &mut text);
                }
            }
        }
        text
    }
}

fn place(sources: &Sources, at: At) -> String {
    let (line, col) = sources.line_col(at.file, at.start);
    format!("{}:{line}:{col}", sources.files[at.file.0 as usize].path)
}

fn picture(sources: &Sources, at: At, label: &str, text: &mut String) {
    let (line, col) = sources.line_col(at.file, at.start);
    let source = sources.files[at.file.0 as usize].text.lines().nth(line - 1).unwrap_or("");
    let _ = writeln!(text, "{line:>5} | {source}");
    let caret = format!("      | {:width$}^ {label}", "", width = col - 1);
    let _ = writeln!(text, "{}", caret.trim_end());
}
