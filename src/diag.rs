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

/// How bad it is. `Fatal` has no position of its own (a missing file, an unknown target).
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
    pub message: String,
}

impl Diagnostic {
    /// An error at a place in the source.
    pub fn error(pos: Pos, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Error, pos: Some(pos), message: message.into() }
    }

    /// A warning at a place in the source.
    pub fn warning(pos: Pos, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, pos: Some(pos), message: message.into() }
    }

    /// An error about the input as a whole.
    pub fn fatal(message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Fatal, pos: None, message: message.into() }
    }

    /// The text for a person: the incumbent's first line, then the source line with a caret under the column.
    pub fn render(&self, file: &str, source: &str) -> String {
        let word = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error  ",
            Severity::Fatal => return format!("sassafras fatal   : {}\n", self.message),
        };
        let Some(pos) = self.pos else { return format!("sassafras {word} : {}\n", self.message) };
        let mut text = format!("{file}, line {}; {word} : {}\n", pos.line, self.message);
        if let Some(line) = source.lines().nth(pos.line as usize - 1) {
            let shown: String = line.chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
            let before = line.get(..(pos.col as usize).saturating_sub(1)).unwrap_or(line).chars().count();
            let _ = writeln!(text, "{:>5} | {shown}\n      | {:before$}^", pos.line, "");
        }
        text
    }
}
