//! Diagnostics: errors and warnings with source positions, and how they are printed.
//!
//! The first line has the form that users of ptxas parse (`FILE, line N; error   : …`); the source
//! line and a caret follow. A position is inside the text that was compiled; lines and columns
//! count from 1, columns in bytes.

use std::fmt::Write as _;

/// A position in a source text; line and column count from 1, the column in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pos {
    /// From 1.
    pub line: u32,
    /// In bytes, from 1.
    pub col: u32,
}

/// The severity. `Fatal` concerns the whole input (an unknown target) or syntax: ptxas stops there,
/// this compiler continues. `Info` never becomes an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Info,
    Warning,
    Error,
    Fatal,
}

/// Largest number of characters of a source line that are shown.
const SHOWN: usize = 160;

/// One message about the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// `None`: about the input as a whole.
    pub pos: Option<Pos>,
    /// Index of the input among several that are compiled together.
    pub file: u32,
    pub message: String,
}

impl Diagnostic {
    /// An error at a source position.
    pub fn error(pos: Pos, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Error, pos: Some(pos), file: 0, message: message.into() }
    }

    /// A warning at a source position.
    pub fn warning(pos: Pos, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, pos: Some(pos), file: 0, message: message.into() }
    }

    /// A warning about the input as a whole.
    pub fn note(message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, pos: None, file: 0, message: message.into() }
    }

    /// What costs speed, without a position.
    pub fn info(message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Info, pos: None, file: 0, message: message.into() }
    }

    /// An error about the input as a whole.
    pub fn fatal(message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Fatal, pos: None, file: 0, message: message.into() }
    }

    /// A syntax error at a source position.
    pub fn syntax(pos: Pos, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Fatal, ..Diagnostic::error(pos, message) }
    }

    /// The first line in the form of ptxas: `FILE, line N; error   : …` with a position, `error   :
    /// …` without.
    pub fn line(&self, file: &str) -> String {
        self.line_of(file, self.severity)
    }

    fn line_of(&self, file: &str, severity: Severity) -> String {
        let word = match severity {
            Severity::Info => "info   ",
            Severity::Warning => "warning",
            Severity::Error => "error  ",
            Severity::Fatal => "fatal  ",
        };
        match self.pos {
            Some(pos) => format!("{file}, line {}; {word} : {}", pos.line, self.message),
            None => format!("{word} : {}", self.message),
        }
    }

    /// The text for a reader: the first line, then the source line with a caret under the column.
    pub fn render(&self, file: &str, source: &str) -> String {
        let Some(pos) = self.pos else { return format!("sassafras {}\n", self.line(file)) };
        // Parsing continues after a syntax error, so it is shown as an ordinary error.
        let severity = if self.severity == Severity::Fatal { Severity::Error } else { self.severity };
        let mut text = self.line_of(file, severity) + "\n";
        if let Some(line) = source.lines().nth((pos.line as usize).saturating_sub(1)) {
            let column = line.get(..(pos.col as usize).saturating_sub(1)).unwrap_or(line).chars().count();
            // A long line is cut to the part around the column.
            let first = if line.chars().count() > SHOWN { column.saturating_sub(SHOWN / 2) } else { 0 };
            let part = line.chars().skip(first).take(SHOWN);
            let shown: String = part.map(|c| if c.is_control() { ' ' } else { c }).collect();
            let before = column - first;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_column() {
        let said = |col, source: &str| Diagnostic::error(Pos { line: 1, col }, "x").render("f", source);
        assert_eq!(said(3, "ab\tcd"), "f, line 1; error   : x\n    1:3 | ab cd\n        |   ^\n");
        let long = format!("{}here{}", "é".repeat(1000), "z".repeat(1000));
        let text = said(2001, &long);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() < 2 * SHOWN), "{text}");
        let at = lines[2].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[1].chars().skip(at).take(4).collect::<String>(), "here");
    }
}
