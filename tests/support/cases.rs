//! Runs the text cases of a folder, and reports all that fail.
//!
//! A case is a file: lines `# KEY: VALUE` and the input, a line `----`, and exactly what must come
//! out. `SASSAFRAS_CASE=NAME[,NAME]` runs these files alone, `SASSAFRAS_BLESS=1` writes what comes
//! out into them.

use crate::diff;
use std::path::{Path, PathBuf};

/// The line between what a case gives and what it expects.
const MARK: &str = "----\n";

/// The files of a folder under `tests/cases`, with their names.
pub fn files(folder: &str) -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(folder);
    let paths = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path());
    let mut files: Vec<_> =
        paths.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path)).collect();
    files.sort();
    assert!(!files.is_empty(), "no cases under {}", folder.display());
    files
}

/// The value of a line `# KEY: VALUE` at the start of a case.
pub fn value<'a>(head: &'a str, key: &str) -> Result<&'a str, String> {
    let value = |line: &'a str| line.strip_prefix("# ")?.strip_prefix(key)?.strip_prefix(": ");
    head.lines().find_map(value).ok_or_else(|| format!("no line `# {key}: …`"))
}

/// What stands above the line `----`, and what stands below it.
pub fn parts(source: &str) -> Result<(&str, &str), String> {
    source.split_once(MARK).ok_or_else(|| "no line ----".to_string())
}

/// Runs `case` on what each file of a folder has above the line, and compares the result with what
/// it has below. `judge` are the words by which cargo runs this judge alone.
pub fn all(folder: &str, judge: &str, case: impl Fn(&str) -> Result<String, String>) {
    let asked = std::env::var("SASSAFRAS_CASE").ok();
    let wanted = |name: &str| {
        let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
        asked.as_ref().is_none_or(|list| list.split(',').any(|one| one == stem || one == name))
    };
    let one = |(name, path): &(String, PathBuf)| -> Result<(), String> {
        let source = std::fs::read_to_string(path).map_err(|e| format!("{name}: {e}"))?;
        let (head, expected) = parts(&source).map_err(|e| format!("{name}: {e}"))?;
        let got = case(head).map_err(|e| format!("{name}: {e}"))?;
        if std::env::var_os("SASSAFRAS_BLESS").is_some() {
            return std::fs::write(path, format!("{head}{MARK}{got}")).map_err(|e| format!("{name}: {e}"));
        }
        diff::compared(name, expected, &got, &format!("SASSAFRAS_CASE={name} cargo test {judge}"))
    };
    let failures: Vec<String> =
        files(folder).iter().filter(|(name, _)| wanted(name)).filter_map(|f| one(f).err()).collect();
    assert!(failures.is_empty(), "{} cases fail:\n{}", failures.len(), failures.join("\n\n"));
}
