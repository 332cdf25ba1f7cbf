//! Collects the errors of one run over the tables.
//!
//! cargo gets one line per error (`file:line:col: [law] message`); a reader also gets the source
//! line of every row involved, with a caret. Errors are sorted by their first row, whatever order
//! the laws ran in, so that two runs print the same.

use crate::source::{At, Sources};
use std::fmt::Write;

/// One error: the law that is violated, the message, and each row involved with its label.
#[derive(Debug)]
pub struct TableError {
    pub law: &'static str,
    pub message: String,
    pub rows: Vec<(At, String)>,
}

/// All errors of a run.
#[derive(Default, Debug)]
pub struct Report {
    pub errors: Vec<TableError>,
}

impl Report {
    /// An error about one row.
    pub fn at(&mut self, law: &'static str, message: impl Into<String>, at: At) {
        self.errors.push(TableError { law, message: message.into(), rows: vec![(at, String::new())] });
    }

    /// An error about several rows, each with its label.
    pub fn rows(&mut self, law: &'static str, message: impl Into<String>, rows: Vec<(At, String)>) {
        self.errors.push(TableError { law, message: message.into(), rows });
    }

    /// An error without a row (a missing file).
    pub fn plain(&mut self, message: impl Into<String>) {
        self.errors.push(TableError { law: "file", message: message.into(), rows: Vec::new() });
    }

    /// Drops errors that are probably consequences of others: about unknown names if some rows
    /// could not be read, and about the matrix or the backends if there are any others.
    pub fn without_consequences(&mut self) {
        if self.errors.iter().any(|e| ["syntax", "row", "file"].contains(&e.law)) {
            self.errors.retain(|e| e.law != "names" && e.law != "ptx" && e.law != "elf");
        }
        // Errors about missing or duplicate entries of these are often caused by another table.
        const LATE: [&str; 3] = ["legality", "regclass", "legal"];
        if self.errors.iter().any(|e| !LATE.contains(&e.law)) {
            self.errors.retain(|e| !LATE.contains(&e.law));
        }
    }

    /// Whether there is no error.
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
