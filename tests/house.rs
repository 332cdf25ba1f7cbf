//! The laws of the house that a machine can check: who may import whom, no SM number outside the tables, no path of a
//! machine, files that a person can read.

use std::path::{Path, PathBuf};

/// For each room what it may import. A room may always import itself.
const IMPORTS: [(&str, &[&str]); 26] = [
    ("tables", &[]),
    ("diag", &[]),
    ("ptx", &["tables", "diag"]),
    ("ori", &["tables"]),
    // The cubin's model is plain data; lowering fills the launch facts in.
    ("lower", &["ptx", "ori", "tables", "diag", "cubin"]),
    ("analysis", &["ori", "tables"]),
    ("legal", &["analysis", "ori", "tables"]),
    ("helper", &["diag", "legal", "lower", "ori", "pass", "pipeline", "ptx", "tables"]),
    ("opt", &["analysis", "ori", "tables"]),
    ("alloc", &["analysis", "ori", "tables"]),
    ("sched", &["analysis", "ori", "tables"]),
    ("uniform", &["analysis", "tables", "sched"]),
    ("cubin", &["tables"]),
    ("sass", &["tables", "cubin"]),
    // The generated dispatcher names every folder that holds passes.
    ("pass", &["analysis", "legal", "ori", "pipeline", "tables"]),
    ("pipeline", &["ori", "sass", "tables"]),
    ("bisect", &["compile", "pass", "sim", "tables"]),
    ("sim", &["tables", "diag", "ptx", "sass", "cubin"]),
    ("assemble", &["alloc", "cubin", "lower", "pipeline", "tables"]),
    (
        "compile",
        &[
            "assemble",
            "cubin",
            "diag",
            "helper",
            "legal",
            "lower",
            "ori",
            "pass",
            "pipeline",
            "ptx",
            "remarks",
            "source_lines",
            "tables",
        ],
    ),
    ("remarks", &["diag", "lower", "ptx", "tables"]),
    ("source_lines", &["cubin", "diag", "ptx", "tables"]),
    ("gpu", &["cubin", "sim", "tables"]),
    ("cli", &["bisect", "compile", "cubin", "diag", "gpu", "helper", "pass", "sass", "sim", "tables"]),
    // The program's own, beside the library.
    ("memory", &[]),
    ("lib", &[]),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, extension: &str, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, extension, out);
        } else if path.extension().is_some_and(|e| e == extension) {
            out.push(path);
        }
    }
}

fn sources() -> Vec<(String, String)> {
    let mut paths = Vec::new();
    files(&root().join("src"), "rs", &mut paths);
    let name = |p: &Path| p.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
    paths.iter().map(|p| (name(p), std::fs::read_to_string(p).unwrap())).collect()
}

/// Whether a file holds nothing but unit tests.
fn is_test(name: &str) -> bool {
    name.contains("tests")
}

/// The part of a file before its unit tests, without comments.
fn code(text: &str) -> String {
    let body = text.split("#[cfg(test)]").next().unwrap_or("");
    body.lines().map(|l| l.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

#[test]
fn rooms_import_only_what_they_may() {
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        let room = name.trim_start_matches("src/").split(['/', '.']).next().unwrap().to_string();
        if room == "main" {
            continue;
        }
        let Some((_, allowed)) = IMPORTS.iter().find(|r| r.0 == room) else {
            wrong.push(format!("{name}: `{room}` is no room of the house"));
            continue;
        };
        for (_, rest) in code(&text).match_indices("crate::").map(|(i, m)| (i, code(&text)[i + m.len()..].to_string()))
        {
            let other: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            if !other.is_empty() && other != room && !allowed.contains(&other.as_str()) {
                wrong.push(format!("{name}: imports `{other}`"));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_sm_number_in_code() {
    let mut wrong = Vec::new();
    for (name, text) in sources().into_iter().filter(|s| !is_test(&s.0)) {
        for (number, line) in code(&text).lines().enumerate() {
            let squeezed: String = line.chars().filter(|c| !c.is_whitespace()).collect();
            let compared = ["sm>=", "sm<=", "sm==", "sm<", "sm>", ".sm!="].iter().any(|op| {
                squeezed.find(op).is_some_and(|i| squeezed[i + op.len()..].starts_with(|c: char| c.is_ascii_digit()))
            });
            let named =
                squeezed.match_indices("sm_").any(|(i, _)| squeezed[i + 3..].starts_with(|c: char| c.is_ascii_digit()));
            if compared || named {
                wrong.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "an SM number in code, where a feature should be asked:\n{}", wrong.join("\n"));
}

#[test]
fn files_stay_readable() {
    let long: Vec<String> = sources()
        .iter()
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines > 1000)
        .map(|(name, lines)| format!("{name}: {lines} lines"))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
    let headless: Vec<String> =
        sources().iter().filter(|(_, text)| !text.starts_with("//!")).map(|(name, _)| name.clone()).collect();
    assert!(headless.is_empty(), "without a header that says what the file is for: {headless:?}");
}

#[test]
fn planned_rows_do_not_grow() {
    let mut paths = Vec::new();
    files(&root().join("tables"), "ron", &mut paths);
    let counts: Vec<String> = paths
        .iter()
        .map(|p| (p, std::fs::read_to_string(p).unwrap().matches("state: \"planned\"").count()))
        .filter(|(_, n)| *n > 0)
        .map(|(p, n)| format!("{} {n}", p.strip_prefix(root().join("tables")).unwrap().display()))
        .collect();
    let snapshot = std::fs::read_to_string(root().join("tests/planned.txt")).unwrap();
    let now = counts.join("\n") + "\n";
    assert_eq!(now, snapshot, "tests/planned.txt must name these numbers; they may only fall");
}
