//! Measures which instruction forms are tested against ptxas.
//!
//! A form is a full opcode as written: name, modifiers and types.
//! `tests/cases/lowering/corpus_forms.txt` lists those of all files of the corpus,
//! `modern_forms.txt` those of the newer families as the probes beside the project have them; where
//! either folder is present, its list must match its files (`SASSAFRAS_BLESS=1` rewrites it). The
//! forms that no line of `forms.txt`, no kernel of `tests/cases/exec` and no launched kernel of
//! `tests/cases/corpus` executes must be exactly those of `missing_forms.txt`, each with a reason,
//! and few; the numbers are printed.

use crate::slice;
use sassafras::sim::launch::LaunchFile;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One in this many forms of the newer families may lack an executed case.
const ONE_IN: usize = 20;

/// Opcodes without a modifier.
const PLAIN: [&str; 7] = ["bra", "brkpt", "call", "exit", "pmevent", "ret", "trap"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cases(name: &str) -> PathBuf {
    root().join("tests/cases/lowering").join(name)
}

/// A text without comments.
fn bare(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        out += before;
        rest = after.split_once("*/").map_or("", |(_, behind)| behind);
    }
    out += rest;
    out.lines().map(|line| line.split("//").next().unwrap_or_default()).fold(String::new(), |all, l| all + l + "\n")
}

/// The full opcodes of a text's statements.
fn forms_of(text: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    for statement in bare(text).split([';', '{', '}']) {
        let mut words = statement.split_whitespace().skip_while(|w| w.ends_with(':') || w.starts_with('@'));
        let Some(word) = words.next() else { continue };
        let spelt = word.chars().all(|c| c.is_ascii_alphanumeric() || "._:".contains(c));
        let named = word.starts_with(|c: char| c.is_ascii_lowercase());
        if spelt && named && (word.contains('.') || PLAIN.contains(&word)) {
            forms.insert(word.to_string());
        }
    }
    forms
}

/// The executed texts: what executes them, and their forms.
fn executed() -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut all: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
    let lines = std::fs::read_to_string(cases("forms.txt")).unwrap();
    for line in lines.lines().filter(|line| !line.starts_with("//")) {
        let text = line.split(" // ").next().unwrap_or_default();
        let text = text.strip_prefix('[').and_then(|t| t.split_once("] ")).map_or(text, |(_, text)| text);
        all.entry("forms.txt").or_default().extend(forms_of(text));
    }
    for path in files(&root().join("tests/cases/exec"), "ptx") {
        all.entry("executed kernels").or_default().extend(forms_of(&std::fs::read_to_string(path).unwrap()));
    }
    for path in files(&root().join("tests/cases/corpus"), "ron") {
        let file = LaunchFile::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let Ok(module) = std::fs::read_to_string(&file.module) else { continue };
        for launch in file.launches {
            let Ok(source) = launch.source(&slice::slice(&module, &launch.kernel)) else { continue };
            all.entry("launched kernels of the corpus").or_default().extend(forms_of(&source));
        }
    }
    all
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == extension));
    paths.sort();
    paths
}

/// The forms of the PTX files in some folders; `None` if there are none.
fn forms_in(folders: &[PathBuf]) -> Option<BTreeSet<String>> {
    let texts: Vec<PathBuf> = folders.iter().flat_map(|folder| files(folder, "ptx")).collect();
    let all = texts.iter().flat_map(|path| forms_of(&String::from_utf8_lossy(&std::fs::read(path).unwrap()))).collect();
    (!texts.is_empty()).then_some(all)
}

/// The lines of a list that are no comments.
fn lines_of(name: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(cases(name)).unwrap_or_default();
    text.lines().filter(|line| !line.starts_with("//")).map(str::to_string).collect()
}

/// Compares a list with its file, or rewrites the file if requested.
fn listed(name: &str, head: &str, now: &BTreeSet<String>) {
    if std::env::var_os("SASSAFRAS_BLESS").is_some() {
        let text = now.iter().fold(format!("// {head}\n"), |text, line| text + line + "\n");
        std::fs::write(cases(name), &text).unwrap();
    }
    let old = lines_of(name);
    let (new, gone): (Vec<_>, Vec<_>) = (now.difference(&old).collect(), old.difference(now).collect());
    assert!(new.is_empty() && gone.is_empty(), "{name}: not listed: {new:#?}\nlisted and not so: {gone:#?}");
}

/// The forms of a list, which is first compared with the files that it is made of.
fn forms(name: &str, head: &str, folders: &[PathBuf]) -> BTreeSet<String> {
    if let Some(found) = forms_in(folders) {
        listed(name, head, &found);
    }
    lines_of(name)
}

/// Most rows of the table of the newer families have no form that lacks a case; the others are
/// those of `missing_forms.txt`.
fn rows_are_executed(path: &Path, lacking: &BTreeSet<String>) {
    let Ok(text) = std::fs::read_to_string(path) else { return };
    // Columns: family, form, two targets, those that take it, and last the instructions.
    let rows = crate::csv::rows(&text).into_iter().skip(1).filter(|row| !row[4].is_empty());
    let (open, executed): (Vec<_>, Vec<_>) =
        rows.partition(|row| row.last().is_some_and(|text| !forms_of(text).is_disjoint(lacking)));
    let all = open.len() + executed.len();
    println!("{} of {all} rows of forms.csv are executed", executed.len());
    let names: Vec<&String> = open.iter().map(|row| &row[1]).collect();
    assert!(open.len() * ONE_IN <= all, "{} of {all} rows lack a case: {names:#?}", open.len());
}

#[test]
fn forms_are_executed() {
    let shared = root().join("../shared");
    let corpus = ["cuda", "triton", "llvm", "numba"].map(|name| shared.join("corpus").join(name));
    let made = "made by tests/kernels/lowering_coverage.rs";
    let old = forms("corpus_forms.txt", &format!("The full opcodes in the files of the corpus, {made}."), &corpus);
    let head = format!("The full opcodes in the probes of the newer families, {made}.");
    let modern = forms("modern_forms.txt", &head, &[shared.join("facts/modern/probes")]);
    let executed = executed();
    let missing = |forms: &BTreeSet<String>| -> BTreeSet<String> {
        forms.iter().filter(|form| !executed.values().any(|some| some.contains(*form))).cloned().collect()
    };
    for (what, forms) in [("the corpus", &old), ("the newer families", &modern)] {
        println!("{} of {} forms of {what} are executed", forms.len() - missing(forms).len(), forms.len());
        for (by, some) in &executed {
            println!("    {} by {by}", forms.intersection(some).count());
        }
    }
    let lacking = missing(&modern);
    assert!(
        lacking.len() * ONE_IN <= modern.len(),
        "{} of {} forms lack a case: {lacking:#?}",
        lacking.len(),
        modern.len()
    );
    rows_are_executed(&shared.join("facts/modern/forms.csv"), &lacking);
    // Kernels of the corpus outside the repository count if they are present.
    if forms_in(&corpus).is_some() {
        let all = &missing(&old) | &lacking;
        let reasons: BTreeMap<String, String> = lines_of("missing_forms.txt")
            .iter()
            .map(|line| line.split_once(" // ").unwrap_or((line, "")))
            .map(|(form, reason)| (form.to_string(), reason.to_string()))
            .collect();
        let bare: Vec<&String> = all.iter().filter(|form| reasons.get(*form).is_none_or(String::is_empty)).collect();
        let stale: Vec<&String> = reasons.keys().filter(|form| !all.contains(*form)).collect();
        assert!(bare.is_empty() && stale.is_empty(), "without a reason: {bare:#?}\nlisted and executed: {stale:#?}");
    }
}
