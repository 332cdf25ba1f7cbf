//! Loads the RON tables row by row.
//!
//! Each file under the tables folder is one list with one row per line. A row remembers its file
//! and byte range, so that later errors can show it. A row that does not parse is reported and
//! skipped; the other rows are still read, so that one run shows all errors.

use crate::report::Report;
use ron::error::SpannedError;
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

    /// The text of a row.
    fn text(&self, at: At) -> &str {
        &self.files[at.file.0 as usize].text[at.start as usize..][..at.len as usize]
    }

    /// Rows of one file. A missing file is an error.
    pub fn rows<T: DeserializeOwned>(&mut self, name: &str, report: &mut Report) -> Vec<Row<T>> {
        let places = self.places(name, report);
        let mut rows = Vec::with_capacity(places.len());
        for at in places {
            match ron::from_str::<T>(self.text(at)) {
                Ok(data) => rows.push(Row { data, at }),
                Err(error) => self.wrong_row(at, &error, report),
            }
        }
        rows
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

    /// Places of the rows of one file. What is not compiled for each type of row stands here.
    fn places(&mut self, name: &str, report: &mut Report) -> Vec<At> {
        let text = match std::fs::read_to_string(self.root.join(name)) {
            Ok(text) => text,
            Err(error) => {
                report.plain(format!("{name}: cannot read: {error}"));
                return Vec::new();
            }
        };
        let file = FileId(self.files.len() as u32);
        self.files.push(SourceFile { path: name.to_string(), text });
        let text = self.files[file.0 as usize].text.as_str();
        let place = |value: &&RawValue| {
            let trimmed = skip_blank(value.get_ron());
            let start = (trimmed.as_ptr() as usize - text.as_ptr() as usize) as u32;
            At { file, start, len: trimmed.trim_end().len() as u32 }
        };
        match ron::from_str::<Vec<&RawValue>>(text) {
            Ok(raw) => raw.iter().map(place).collect(),
            Err(error) => {
                let start = offset_of(text, error.span.start.line, error.span.start.col);
                report.at("syntax", error.code.to_string(), At { file, start, len: 1 });
                Vec::new()
            }
        }
    }

    fn wrong_row(&self, at: At, error: &SpannedError, report: &mut Report) {
        let inner = offset_of(self.text(at), error.span.start.line, error.span.start.col);
        report.at("row", error.code.to_string(), At { start: at.start + inner, len: 1, ..at });
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
