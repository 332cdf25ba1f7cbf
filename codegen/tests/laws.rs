//! One wrong table per law: `tests/bad/*.txt`.
//!
//! The first line of a case (`# …`) names the law that it violates. Edits of the real tables follow
//! (`file`, `find`, `put`: the first occurrence is replaced), then a line `----` and the exact
//! report: every error of the run, with the rows involved and carets. Line numbers are printed as
//! N, because unrelated rows may be added above; columns are exact. `SASSAFRAS_BLESS=1` rewrites
//! the report; review it before committing.

#[path = "../../tests/support/diff.rs"]
mod diff;

use std::path::{Path, PathBuf};

const MARK: &str = "----\n";

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Replaces line numbers in `file.ron:LINE:COL` and before ` | ` by N.
fn without_line_numbers(report: &str) -> String {
    let mut out = String::new();
    for line in report.lines() {
        if let Some((number, rest)) = line.split_once(" | ")
            && number.trim().parse::<u32>().is_ok()
        {
            out += &format!("    N | {rest}\n");
            continue;
        }
        let mut rest = line;
        while let Some(at) = rest.find(".ron:") {
            let (before, after) = rest.split_at(at + ".ron:".len());
            let digits = after.chars().take_while(char::is_ascii_digit).count();
            out += before;
            out += if digits > 0 { "N" } else { "" };
            rest = &after[digits..];
        }
        out += rest;
        out.push('\n');
    }
    out
}

/// Applies the edits of a case to a copy of the tables.
fn edit(head: &str, tables: &Path) -> Result<(), String> {
    let (mut file, mut find) = (None, None);
    for line in head.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
        let (key, value) = line.split_once(": ").ok_or_else(|| format!("`{line}` is not KEY: VALUE"))?;
        let value = value.replace("\\n", "\n");
        match key {
            "file" => file = Some(tables.join(value)),
            "find" => find = Some(value),
            "put" => {
                let (Some(path), Some(find)) = (&file, find.take()) else {
                    return Err("put without file and find".into());
                };
                let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
                if !text.contains(&find) {
                    return Err(format!("{} has no {find}", path.display()));
                }
                std::fs::write(path, text.replacen(&find, &value, 1)).map_err(|e| e.to_string())?;
            }
            _ => return Err(format!("unknown key `{key}`")),
        }
    }
    Ok(())
}

fn case(path: &Path, real: &Path, scratch: &Path) -> Result<(), String> {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let source = std::fs::read_to_string(path).map_err(|e| format!("{name}: {e}"))?;
    let (head, expected) = source.split_once(MARK).ok_or_else(|| format!("{name}: no line ----"))?;
    let tables = scratch.join(&name);
    copy(real, &tables);
    edit(head, &tables).map_err(|e| format!("{name}: {e}"))?;
    let report = match sassafras_codegen::generate(&tables) {
        Ok(_) => return Err(format!("{name}: no law is broken")),
        Err(failure) => without_line_numbers(&failure.pictures),
    };
    if std::env::var_os("SASSAFRAS_BLESS").is_some() {
        return std::fs::write(path, format!("{head}{MARK}{report}")).map_err(|e| format!("{name}: {e}"));
    }
    diff::compared(&name, expected, &report, "cargo test -p sassafras-codegen --test laws")
}

#[test]
fn each_law_reports_the_rows_that_break_it() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let scratch = std::env::temp_dir().join(format!("sassafras-laws-{}", std::process::id()));
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(here.join("tests/bad")).unwrap().map(|e| e.unwrap().path()).collect();
    cases.sort();
    assert!(!cases.is_empty());
    let real = here.join("../tables");
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let judge = |some: &[PathBuf]| some.iter().filter_map(|c| case(c, &real, &scratch).err()).collect::<Vec<_>>();
    let judge = &judge;
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> =
            cases.chunks(cases.len().div_ceil(threads)).map(|some| scope.spawn(move || judge(some))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    std::fs::remove_dir_all(&scratch).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
