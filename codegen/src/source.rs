//! Loads the RON tables row by row.
//!
//! Each file under the tables folder is one list with one row per line. A row remembers its file
//! and byte range, so that later errors can show it. A row that does not parse is reported and
//! skipped; the other rows are still read, so that one run shows all errors.

use crate::report::Report;
use ron::value::RawValue;
use serde::de::DeserializeOwned;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Index of a file in [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// Position of a row: file and byte range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct At {
    pub file: FileId,
    pub start: u32,
    pub len: u32,
}

/// A row and its position.
#[derive(Clone, Debug)]
pub struct Row<T> {
    pub data: T,
    pub at: At,
}

impl<T> Deref for Row<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.data
    }
}

/// One table file: its path relative to the tables folder, and its text.
pub struct SourceFile {
    pub path: String,
    pub text: String,
}

/// All table files read so far.
#[derive(Default)]
pub struct Sources {
    pub root: PathBuf,
    pub files: Vec<SourceFile>,
}

impl Sources {
    /// No files read yet; `root` is the tables folder.
    pub fn new(root: &Path) -> Self {
        Sources { root: root.to_path_buf(), files: Vec::new() }
    }

    /// Line and column (both from 1) of a byte offset in a file.
    pub fn line_col(&self, file: FileId, offset: u32) -> (usize, usize) {
        let before = &self.files[file.0 as usize].text[..offset as usize];
        let line = before.matches('\n').count() + 1;
        let col = before.len() - before.rfind('\n').map_or(0, |i| i + 1) + 1;
        (line, col)
    }

    /// Rows of one file. A missing file is an error.
    pub fn rows<T: DeserializeOwned>(&mut self, name: &str, report: &mut Report) -> Vec<Row<T>> {
        let path = self.root.join(name);
        match std::fs::read_to_string(&path) {
            Ok(text) => self.parse(name, text, report),
            Err(error) => {
                report.plain(format!("{name}: cannot read: {error}"));
                Vec::new()
            }
        }
    }

    /// Rows of every `.ron` file directly inside a folder except those named in `but`, sorted by
    /// file name.
    pub fn folder<T: DeserializeOwned>(&mut self, folder: &str, but: &[&str], report: &mut Report) -> Vec<Row<T>> {
        let mut names: Vec<String> = match std::fs::read_dir(self.root.join(folder)) {
            Ok(entries) => entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect(),
            Err(error) => {
                report.plain(format!("{folder}: cannot read: {error}"));
                return Vec::new();
            }
        };
        names.retain(|n| n.ends_with(".ron") && !but.contains(&n.as_str()));
        names.sort();
        names.iter().flat_map(|n| self.rows(&format!("{folder}/{n}"), report)).collect()
    }

    fn parse<T: DeserializeOwned>(&mut self, name: &str, text: String, report: &mut Report) -> Vec<Row<T>> {
        let file = FileId(self.files.len() as u32);
        self.files.push(SourceFile { path: name.to_string(), text });
        let text = self.files[file.0 as usize].text.as_str();
        let raw: Vec<&RawValue> = match ron::from_str(text) {
            Ok(raw) => raw,
            Err(error) => {
                let start = offset_of(text, error.span.start.line, error.span.start.col);
                report.at("syntax", error.code.to_string(), At { file, start, len: 1 });
                return Vec::new();
            }
        };
        let mut rows = Vec::with_capacity(raw.len());
        for value in raw {
            let row = value.get_ron();
            let trimmed = skip_blank(row);
            let start = (trimmed.as_ptr() as usize - text.as_ptr() as usize) as u32;
            let trimmed = trimmed.trim_end();
            match ron::from_str::<T>(trimmed) {
                Ok(data) => rows.push(Row { data, at: At { file, start, len: trimmed.len() as u32 } }),
                Err(error) => {
                    let inner = offset_of(trimmed, error.span.start.line, error.span.start.col);
                    report.at("row", error.code.to_string(), At { file, start: start + inner, len: 1 });
                }
            }
        }
        rows
    }
}

/// Byte offset of a line and column (both from 1, column in characters) in a text, clamped to its
/// end.
fn offset_of(text: &str, line: usize, col: usize) -> u32 {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = &text[start.min(text.len())..];
    let inner = rest.char_indices().nth(col.saturating_sub(1)).map_or(rest.len(), |(i, _)| i);
    (start + inner).min(text.len().saturating_sub(1)) as u32
}

/// The text without leading blanks and comments, which RON includes in the row after them.
fn skip_blank(mut text: &str) -> &str {
    loop {
        let next = text.trim_start();
        let next = if next.starts_with("//") { next.split_once('\n').map_or("", |(_, rest)| rest) } else { next };
        if next.len() == text.len() {
            return text;
        }
        text = next;
    }
}
