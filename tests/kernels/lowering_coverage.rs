//! Measures which instruction forms of the corpus are tested against ptxas.
//!
//! A form is a full opcode as written: name, modifiers and types.
//! `tests/cases/lowering/corpus_forms.txt` lists the forms of all files of the corpus, each with
//! its part; if the corpus is present, the list must match its files (`SASSAFRAS_BLESS=1` rewrites
//! it). The forms that no line of `forms.txt`, no kernel of `tests/cases/exec` and no launched
//! kernel of the corpus executes must be exactly those of `missing_forms.txt`; the numbers are
//! printed. An unimplemented family is one that the compiler rejects by name.

use crate::slice;
use sassafras::sim::launch::LaunchFile;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Prefixes or parts of the forms of unimplemented families.
const LATER: [(&str, &str); 18] = [
    ("mbarrier.", "mbarrier"),
    (".mbarrier", "mbarrier"),
    ("cp.async.bulk", "bulk copies"),
    ("cp.reduce.async", "bulk copies"),
    ("::cluster", "clusters"),
    (".cluster", "clusters"),
    ("mapa.", "clusters"),
    ("getctarank.", "clusters"),
    ("griddepcontrol.", "clusters"),
    ("tcgen05.", "tcgen05"),
    (".kind::", "block-scaled formats"),
    (".block_scale", "block-scaled formats"),
    ("e2m1", "block-scaled formats"),
    ("e2m3", "block-scaled formats"),
    ("e3m2", "block-scaled formats"),
    ("ue8m0", "block-scaled formats"),
    ("b6x16", "block-scaled formats"),
    ("b4x16", "block-scaled formats"),
];

/// Opcodes without a modifier.
const PLAIN: [&str; 7] = ["bra", "brkpt", "call", "exit", "pmevent", "ret", "trap"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cases(name: &str) -> PathBuf {
    root().join("tests/cases/lowering").join(name)
}

/// The family of a form, if it is unimplemented.
fn later(form: &str) -> Option<&'static str> {
    let fits =
        |part: &str| form.starts_with(part) || part.starts_with(['.', ':', 'b', 'e', 'u']) && form.contains(part);
    LATER.iter().find(|(part, _)| fits(part)).map(|(_, family)| *family)
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

/// The forms of the corpus; `None` if it is not present.
fn corpus() -> Option<BTreeSet<String>> {
    let folder = root().join("../shared/corpus");
    let folders = ["cuda", "triton", "llvm", "numba"].map(|name| folder.join(name));
    let texts: Vec<PathBuf> = folders.iter().flat_map(|folder| files(folder, "ptx")).collect();
    let all = texts.iter().flat_map(|path| forms_of(&String::from_utf8_lossy(&std::fs::read(path).unwrap()))).collect();
    (!texts.is_empty()).then_some(all)
}

/// Compares a list with its file, or rewrites the file if requested.
fn listed(name: &str, head: &str, now: &BTreeSet<String>) {
    let text = now.iter().fold(head.to_string(), |text, line| text + line + "\n");
    if std::env::var_os("SASSAFRAS_BLESS").is_some() {
        std::fs::write(cases(name), &text).unwrap();
    }
    let old = std::fs::read_to_string(cases(name)).unwrap_or_default();
    let old: BTreeSet<String> = old.lines().filter(|l| !l.starts_with("//")).map(str::to_string).collect();
    let (new, gone): (Vec<_>, Vec<_>) = (now.difference(&old).collect(), old.difference(now).collect());
    assert!(new.is_empty() && gone.is_empty(), "{name}: not listed: {new:#?}\nlisted and not so: {gone:#?}");
}

#[test]
fn forms_of_the_corpus_are_executed() {
    if let Some(found) = corpus() {
        listed(
            "corpus_forms.txt",
            "// The full opcodes in the files of the corpus, made by tests/kernels/lowering_coverage.rs.\n",
            &found,
        );
    }
    let list = std::fs::read_to_string(cases("corpus_forms.txt")).unwrap();
    let forms: BTreeSet<String> = list.lines().filter(|l| !l.starts_with("//")).map(str::to_string).collect();
    let executed = executed();
    let covered = |form: &String| executed.values().any(|some| some.contains(form));
    let (mut families, mut missing) = (BTreeMap::<&str, usize>::new(), BTreeSet::new());
    for form in forms.iter().filter(|form| !covered(form)) {
        match later(form) {
            Some(family) => {
                *families.entry(family).or_default() += 1;
                missing.insert(format!("{form} // later: {family}"));
            }
            None => drop(missing.insert(form.clone())),
        }
    }
    let later_forms = families.values().sum::<usize>();
    let open = missing.len() - later_forms;
    println!("{} of {} forms of the corpus are executed", forms.len() - missing.len(), forms.len());
    for (by, some) in &executed {
        println!("    {} by {by}", forms.intersection(some).count());
    }
    println!("{later_forms} are of later families: {families:?}; {open} others are not executed");
    println!("(the corpus says 1,087 of itself and of what is held back, without the rule by which it counted)");
    let head = "// Forms of the corpus that nothing executes, made by tests/kernels/lowering_coverage.rs; those of later families are refused by name.\n";
    // Kernels of the corpus outside the repository count if they are present.
    if corpus().is_some() {
        listed("missing_forms.txt", head, &missing);
    }
}
