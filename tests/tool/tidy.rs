//! The rules of the repository that a test can check: permitted imports between modules, no SM
//! number outside the tables, no absolute path of a developer's machine, readable file sizes.

use std::path::{Path, PathBuf};

/// For each folder of `src/`, the folders it may import. A folder may always import itself.
const IMPORTS: [(&str, &[&str]); 34] = [
    ("tables", &[]),
    ("diag", &[]),
    ("ptx", &["tables", "diag"]),
    ("ori", &["tables"]),
    // The cubin's model is plain data, into which lowering writes the launch facts.
    ("lower", &["ptx", "ori", "tables", "diag", "cubin"]),
    ("analysis", &["ori", "tables"]),
    ("legal", &["analysis", "ori", "tables"]),
    ("interprocedural", &["analysis", "legal", "lower", "ori", "tables", "threads"]),
    ("helper", &["alloc", "diag", "interprocedural", "legal", "lower", "ori", "pass", "pipeline", "ptx", "tables"]),
    ("opt", &["analysis", "ori", "tables"]),
    ("alloc", &["analysis", "ori", "tables"]),
    ("group", &["analysis", "ori", "tables"]),
    ("reconverge", &["analysis", "ori", "tables"]),
    ("sched", &["analysis", "ori", "tables"]),
    ("control", &["analysis", "ori", "sched", "tables"]),
    ("uniform", &["analysis", "legal", "ori", "tables"]),
    ("cubin", &["tables"]),
    ("sass", &["tables", "cubin"]),
    // The generated dispatcher names every folder that has passes.
    ("pass", &["analysis", "legal", "ori", "pipeline", "tables"]),
    ("pipeline", &["ori", "sass", "tables"]),
    ("bisect", &["compile", "pass", "sim", "tables"]),
    ("compare", &["cubin", "sass", "sim", "tables"]),
    ("sim", &["tables", "diag", "ptx", "sass", "cubin"]),
    ("kernel_image", &["alloc", "cubin", "lower", "pipeline", "tables"]),
    (
        "compile",
        &[
            "kernel_image",
            "cubin",
            "debug",
            "diag",
            "helper",
            "interprocedural",
            "legal",
            "lower",
            "ori",
            "pass",
            "pipeline",
            "ptx",
            "references",
            "warnings",
            "source_lines",
            "tables",
            "threads",
        ],
    ),
    ("references", &["cubin", "ptx", "tables"]),
    ("threads", &[]),
    ("warnings", &["diag", "lower", "ptx", "tables"]),
    ("source_lines", &["cubin", "diag", "ptx", "tables"]),
    ("debug", &["cubin", "diag", "lower", "pipeline", "ptx", "tables"]),
    ("gpu", &["cubin", "sim", "tables"]),
    (
        "cli",
        &[
            "bisect", "compare", "compile", "cubin", "debug", "diag", "gpu", "helper", "pass", "sass", "sim", "tables",
            "threads",
        ],
    ),
    // Parts of the program, not of the library.
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

/// Whether a file has only unit tests.
fn is_test(name: &str) -> bool {
    name.contains("tests")
}

/// The part of a file before its unit tests, without comments.
fn code(text: &str) -> String {
    let body = text.split("#[cfg(test)]").next().unwrap_or("");
    body.lines().map(|l| l.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

#[test]
fn folders_import_only_what_they_may() {
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        let folder = name.trim_start_matches("src/").split(['/', '.']).next().unwrap().to_string();
        if folder == "main" || folder == "bin" {
            continue;
        }
        let Some((_, allowed)) = IMPORTS.iter().find(|r| r.0 == folder) else {
            wrong.push(format!("{name}: `{folder}` is no folder of the layout"));
            continue;
        };
        for (_, rest) in code(&text).match_indices("crate::").map(|(i, m)| (i, code(&text)[i + m.len()..].to_string()))
        {
            let other: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            if !other.is_empty() && other != folder && !allowed.contains(&other.as_str()) {
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

/// Words with a standard term in their place: (word, term).
const OLD_WORDS: [(&str, &str); 6] = [
    ("incumbent", "ptxas"),
    ("the vendor", "NVIDIA, or the tool by its name"),
    ("the machine", "the simulator"),
    ("the card", "the GPU"),
    ("of the house", "of the repository"),
    ("//! Input: ", "a header of plain sentences, without a fixed form"),
];

#[test]
fn standard_terms_only() {
    let mut wrong = Vec::new();
    let mut paths = Vec::new();
    for (folder, extension) in [("src", "rs"), ("tests", "rs"), ("codegen", "rs"), ("tables", "ron"), ("tests", "md")] {
        files(&root().join(folder), extension, &mut paths);
    }
    for path in
        paths.iter().filter(|p| !p.ends_with("tests/tool/tidy.rs") && !p.starts_with(root().join("codegen/target")))
    {
        let text = std::fs::read_to_string(path).unwrap();
        for (number, line) in text.lines().enumerate() {
            for (word, term) in OLD_WORDS.iter().filter(|w| line.contains(w.0)) {
                wrong.push(format!("{}:{}: `{word}`: write {term}", path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn comment_lines_have_at_most_100_columns() {
    let mut paths = Vec::new();
    ["src", "tests", "codegen/src", "codegen/tests"].iter().for_each(|f| files(&root().join(f), "rs", &mut paths));
    let mut long = Vec::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        // A line without a space cannot be wrapped.
        let wide = |line: &str| {
            let text = line.trim_start();
            text.starts_with("//") && line.chars().count() > 100 && text.matches(' ').count() > 1
        };
        long.extend(
            text.lines().enumerate().filter(|(_, l)| wide(l)).map(|(n, _)| format!("{}:{}", path.display(), n + 1)),
        );
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn every_variable_of_the_tests_is_on_their_page() {
    let mut paths = Vec::new();
    ["tests", "src", "codegen/tests"].iter().for_each(|f| files(&root().join(f), "rs", &mut paths));
    let page = std::fs::read_to_string(root().join("tests/README.md")).unwrap();
    let mut missing = std::collections::BTreeSet::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        for quoted in text.split('"').filter(|s| s.starts_with("SASSAFRAS_")) {
            let name: String = quoted.chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').collect();
            // A driver of our own reads it from the test that starts it.
            if !name.ends_with('_') && name != "SASSAFRAS_DRIVER_FLIPS" && !page.contains(&format!("`{name}=")) {
                missing.insert(name);
            }
        }
    }
    assert!(missing.is_empty(), "not in tests/README.md: {missing:?}");
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
