//! Invalid PTX under `tests/cases/bad`, one kind of error per file.
//!
//! Each NAME.ptx must give exit status 255, no output file, and exactly the messages of NAME.txt
//! (`SASSAFRAS_BLESS=1` rewrites them). If ptxas is installed, it must report the same lines,
//! except for the files that `differences.txt` lists with the reason.

use crate::diff;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/bad")
}

/// Names of the cases, without extension.
fn cases() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let paths = entries.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "ptx"));
    let mut names: Vec<String> = paths.map(|p| p.file_stem().unwrap().to_str().unwrap().to_string()).collect();
    names.sort();
    names
}

/// The target: that of a comment at the start, or the file's own if it is implemented.
fn arch(source: &str) -> String {
    if let Some(rest) = source.strip_prefix("// -arch=") {
        return rest.lines().next().unwrap().to_string();
    }
    let own = source.split(".target ").nth(1).and_then(|rest| rest.split(['\n', ',', ' ']).next()).unwrap_or("");
    let built = sassafras::tables::Target::by_name(own).is_some_and(|target| target.generation.is_some());
    if built { own.to_string() } else { "sm_90".to_string() }
}

/// Runs a compiler on a case. The output goes into a new folder, which must stay empty.
fn run(tool: &Path, name: &str, more: &[&str]) -> Output {
    let source = String::from_utf8_lossy(&std::fs::read(folder().join(format!("{name}.ptx"))).unwrap()).into_owned();
    let out = tempfile::tempdir().unwrap();
    let output = Command::new(tool)
        .arg(format!("-arch={}", arch(&source)))
        .args(more)
        .arg(format!("{name}.ptx"))
        .arg("-o")
        .arg(out.path().join("k.cubin"))
        .current_dir(folder())
        .output()
        .unwrap();
    assert!(
        std::fs::read_dir(out.path()).unwrap().next().is_none() || output.status.success(),
        "{name}: a file is left"
    );
    output
}

fn sassafras() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_sassafras"))
}

#[test]
fn messages_are_as_expected() {
    let bless = std::env::var("SASSAFRAS_BLESS").is_ok();
    let mut wrong = Vec::new();
    let names = cases();
    assert!(names.len() >= 100, "{} cases", names.len());
    for name in names {
        let output = run(&sassafras(), &name, &[]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(255), "{name}: {said}");
        assert!(output.stdout.is_empty(), "{name}");
        let path = folder().join(format!("{name}.txt"));
        if bless {
            std::fs::write(&path, &said).unwrap();
            continue;
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        wrong.extend(diff::compared(&name, &expected, &said, "cargo test --test tool bad").err());
    }
    assert!(wrong.is_empty(), "{} cases say something else:\n{}", wrong.len(), wrong.join("\n"));
}

/// Lines with errors, in order, and whether the last error is fatal: ptxas stops there.
fn lines(said: &str) -> (Vec<u32>, bool) {
    let mut out = Vec::new();
    let mut fatal = false;
    for line in said.lines() {
        let Some((number, rest)) = line.split_once(", line ").and_then(|(_, rest)| rest.split_once(';')) else {
            continue;
        };
        if rest.starts_with(" error") || rest.starts_with(" fatal") {
            out.push(number.parse().unwrap());
            fatal |= rest.starts_with(" fatal");
        }
    }
    (out, fatal)
}

#[test]
fn the_ptxas_names_the_same_lines() {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/vendor/ptxas");
    if !tool.exists() {
        println!("skipped: no ptxas at target/vendor");
        return;
    }
    let listed = std::fs::read_to_string(folder().join("differences.txt")).unwrap();
    let listed: BTreeSet<&str> =
        listed.lines().filter_map(|line| line.split_once(": ").map(|(name, _)| name)).collect();
    let mut differ = Vec::new();
    let mut same_words = 0;
    let names = cases();
    for name in &names {
        let theirs = run(&tool, name, &[]);
        let ours = run(&sassafras(), name, &["--ptxas-compat"]);
        let (theirs_said, ours_said) =
            (String::from_utf8_lossy(&theirs.stderr), String::from_utf8_lossy(&ours.stderr).into_owned());
        same_words += u32::from(theirs_said.lines().next() == ours_said.lines().next());
        let ((want, fatal), (have, _)) = (lines(&theirs_said), lines(&ours_said));
        let sets = |lines: &[u32]| lines.iter().copied().collect::<BTreeSet<u32>>();
        // After a fatal error of ptxas, this compiler continues.
        let good = if fatal { sets(&have).is_superset(&sets(&want)) } else { sets(&have) == sets(&want) };
        if !good || theirs.status.success() {
            differ.push((name.as_str(), format!("{name}:\n  theirs: {theirs_said}  ours: {ours_said}")));
        }
    }
    println!("{} cases, {} differ, {same_words} with the same first line word for word", names.len(), differ.len());
    let new: Vec<&str> =
        differ.iter().filter(|(name, _)| !listed.contains(name)).map(|(_, text)| text.as_str()).collect();
    assert!(new.is_empty(), "{} differences that are not listed:\n{}", new.len(), new.join("\n"));
    let gone: Vec<&&str> = listed.iter().filter(|name| !differ.iter().any(|(n, _)| n == *name)).collect();
    assert!(gone.is_empty(), "listed, but the same: {gone:?}");
}

/// The reader of the messages may close the pipe early (`| head`); the exit status stays the same.
#[test]
fn a_reader_that_goes_away_is_no_error_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("k.ptx");
    let body =
        "a_name_of_no_instruction_at_all_so_that_the_messages_do_not_fit_into_one_pipe r1, r2, r3;\n".repeat(600);
    std::fs::write(&source, format!(".version 8.0\n.target sm_90\n.visible .entry k() {{\n{body}}}\n")).unwrap();
    let mut compiler = Command::new(sassafras());
    compiler.arg("-arch=sm_90").arg(&source).arg("-o").arg(folder.path().join("k.cubin"));
    let mut child = compiler.stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(255));
}
