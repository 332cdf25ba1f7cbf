//! Runs the text cases of a folder, and reports all that fail.

use std::path::Path;

/// The line between what a case gives and what it expects.
pub const MARK: &str = "----\n";

/// Runs `case` on each file of a folder under `tests/cases`.
pub fn all(folder: &str, case: impl Fn(&Path) -> Result<(), String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(folder);
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    assert!(!names.is_empty(), "no cases under {}", folder.display());
    let failures: Vec<String> = names.iter().filter_map(|path| case(path).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
