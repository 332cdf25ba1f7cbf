//! Diagnostics: errors and warnings with source positions, and how they are printed.
//!
//! Input: what a front-end check has to say and where. Output: text in the form that users of the incumbent parse
//! (`FILE, line N; error   : …`), followed by the source line and a caret. Invariant: a diagnostic with a position
//! points into the text it was made from; lines and columns count from 1, columns in bytes.

use std::fmt::Write as _;

/// A place in a source text; line and column count from 1, the column in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pos {
    pub line: u32,
    pub col: u32,
}

/// How bad it is. `Fatal` is about the input as a whole (an unknown target), or about syntax: there the incumbent reads no
/// further, and we do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Warning,
    Error,
    Fatal,
}

/// One message about the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub pos: Option<Pos>,
    /// Which of several texts that are compiled together, from 0.
    pub file: u32,
    pub message: String,
}

impl Diagnostic {
    /// An error at a place in the source.
    pub fn error(pos: Pos, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Error, pos: Some(pos), file: 0, message: message.into() }
    }

    /// A warning at a place in the source.
    pub fn warning(pos: Pos, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, pos: Some(pos), file: 0, message: message.into() }
    }

    /// A warning about the input as a whole.
    pub fn note(message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, pos: None, file: 0, message: message.into() }
    }

    /// An error about the input as a whole.
    pub fn fatal(message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Fatal, pos: None, file: 0, message: message.into() }
    }

    /// An error of syntax at a place in the source.
    pub fn syntax(pos: Pos, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Fatal, ..Diagnostic::error(pos, message) }
    }

    /// The first line, in the incumbent's words: `FILE, line N; error   : …` with a position, `error   : …` without.
    pub fn line(&self, file: &str) -> String {
        self.line_of(file, self.severity)
    }

    fn line_of(&self, file: &str, severity: Severity) -> String {
        let word = match severity {
            Severity::Warning => "warning",
            Severity::Error => "error  ",
            Severity::Fatal => "fatal  ",
        };
        match self.pos {
            Some(pos) => format!("{file}, line {}; {word} : {}", pos.line, self.message),
            None => format!("{word} : {}", self.message),
        }
    }

    /// The text for a person: the first line, then the source line with a caret under the column.
    pub fn render(&self, file: &str, source: &str) -> String {
        let Some(pos) = self.pos else { return format!("sassafras {}\n", self.line(file)) };
        // Reading goes on behind an error of syntax: it is an error like any other.
        let severity = if self.severity == Severity::Fatal { Severity::Error } else { self.severity };
        let mut text = self.line_of(file, severity) + "\n";
        if let Some(line) = source.lines().nth((pos.line as usize).saturating_sub(1)) {
            let shown: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            let before = line.get(..(pos.col as usize).saturating_sub(1)).unwrap_or(line).chars().count();
            let _ = writeln!(
                text,
                "{:>5}:{} | {shown}\n{:margin$} | {:before$}^",
                pos.line,
                pos.col,
                "",
                "",
                margin = 6 + pos.col.to_string().len()
            );
        }
        text
    }
}
