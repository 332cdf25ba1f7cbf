//! Compares our listing of a cubin with the output of nvdisasm.
//!
//! Labels are replaced by byte offsets, so that texts compare equal whatever the labels' names are.

use super::vendor;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The PTX files of the executed cases and of the corpus, sorted.
pub fn sources() -> Vec<PathBuf> {
    let folder = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
        std::fs::read_dir(path).expect("a folder of the tests").map(|e| e.expect("an entry").path())
    };
    let mut list: Vec<_> = folder("cases/exec").chain(folder("corpus")).collect();
    list.retain(|p| p.extension().is_some_and(|e| e == "ptx"));
    list.sort();
    list
}

/// Whether a file is for a target or an earlier one. Files of PTX that 13.0.88 does not read have
/// words that its nvdisasm does not know; of the targets that it knows, `oracle_words` has them,
/// beside 13.5.
pub fn is_for(source: &Path, sm: &str) -> bool {
    use sassafras::tables::Target;
    let text = std::fs::read_to_string(source).expect("a PTX file");
    let newest = Target::by_name(&format!("sm_{sm}")).is_some_and(|target| target.min_ptx > (9, 0));
    if !newest && text.lines().any(|l| l.strip_prefix(".version 9.").is_some_and(|minor| minor != "0")) {
        return false;
    }
    let own = text.lines().find_map(|l| l.trim().strip_prefix(".target")).unwrap_or_default();
    let own = own.trim().split([',', ' ', '/']).next().unwrap_or_default();
    let number = |name: &str| Target::by_name(name).map_or(0, |t| t.sm);
    // An architecture-specific file runs only on its own target.
    !own.ends_with(['a', 'f']) && number(own) <= number(&format!("sm_{sm}"))
}

/// One instruction of our listing.
pub struct Line {
    pub offset: u64,
    pub word: u128,
    /// The target of a branch as a byte offset.
    pub text: String,
    /// Why the word does not decode or survive the round trip; empty if it does.
    pub error: String,
}

/// The parts of a listing in JSON that are compared.
#[derive(Deserialize)]
struct File {
    functions: Vec<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    labels: BTreeMap<u64, String>,
    instructions: Vec<Instruction>,
}

#[derive(Deserialize)]
struct Instruction {
    offset: u64,
    word: String,
    text: String,
    reencoded: Option<String>,
    error: Option<String>,
}

/// Our listing of a cubin, by function.
pub fn ours(bytes: &[u8]) -> Result<BTreeMap<String, Vec<Line>>, String> {
    let cubin = sassafras::cubin::read(bytes).map_err(|e| e.to_string())?;
    let json = sassafras::sass::listing::json(&cubin)?;
    let file: File = serde_json::from_str(&json).map_err(|e| e.to_string())?;
    file.functions.into_iter().map(|f| function(f).ok_or_else(|| "a word is none".to_string())).collect()
}

fn function(function: Function) -> Option<(String, Vec<Line>)> {
    let labels: BTreeMap<&str, u64> = function.labels.iter().map(|(at, name)| (name.as_str(), *at)).collect();
    let line = |line: &Instruction| {
        let error = match (&line.reencoded, &line.error) {
            (Some(again), None) if *again == line.word => String::new(),
            (Some(again), None) => format!("assembles to {again}"),
            (_, error) => format!("does not assemble: {}", error.as_deref().unwrap_or_default()),
        };
        let word = u128::from_str_radix(line.word.strip_prefix("0x")?, 16).ok()?;
        Some(Line { offset: line.offset, word, text: without_labels(&line.text, &labels), error })
    };
    let lines = function.instructions.iter().map(line).collect::<Option<_>>()?;
    Some((function.name, lines))
}

/// The output of `nvdisasm -c` for a cubin, by function: offset and text of each instruction.
pub fn theirs(path: &Path, sm: &str) -> Result<BTreeMap<String, Vec<(u64, String)>>, String> {
    let tool = vendor::tool_of("nvdisasm", sm).ok_or("no nvdisasm")?;
    let run = Command::new(tool).arg("-c").arg(path).output().map_err(|e| e.to_string())?;
    if !run.status.success() || !run.stderr.is_empty() {
        return Err(format!("nvdisasm: {}", String::from_utf8_lossy(&run.stderr)));
    }
    let output = String::from_utf8_lossy(&run.stdout).into_owned();
    let sections = output.split("\n.text.").skip(1).filter_map(|part| part.split_once(":\n"));
    Ok(sections.map(|(name, body)| (name.to_string(), section(name, body))).collect())
}

fn section(name: &str, body: &str) -> Vec<(u64, String)> {
    let mut labels = BTreeMap::from([(name, 0)]);
    let (mut lines, mut end) = (Vec::new(), 0);
    for line in body.lines() {
        if let Some(label) = line.strip_suffix(':').filter(|l| !l.starts_with(char::is_whitespace)) {
            labels.insert(label, end);
        }
        let Some((at, text)) = line.trim_start().strip_prefix("/*").and_then(|l| l.split_once("*/")) else { continue };
        let Ok(at) = u64::from_str_radix(at, 16) else { continue };
        // The possible targets of a BRX follow the instruction.
        let text = text.split_once("(*").map_or(text, |(text, _)| text);
        lines.push((at, vendor::normal(text.trim().trim_end_matches(';'))));
        end = at + 16;
    }
    lines.iter().map(|(at, text)| (*at, without_labels(text, &labels))).collect()
}

/// Replaces each label in a text by its byte offset, and a symbol that the driver defines by the
/// zero that stands in the word; an unknown label stays.
fn without_labels(text: &str, labels: &BTreeMap<&str, u64>) -> String {
    let text = vendor::normal(text);
    let Some((before, rest)) = text.split_once("`(") else { return text };
    let Some((name, after)) = rest.split_once(')') else { return text };
    match labels.get(name) {
        Some(at) => format!("{before}{at:#x}{after}"),
        None if name.ends_with("refDescSize") => format!("{before}0x0{after}"),
        None => text,
    }
}

/// Differences by target and mnemonic, with the first of each.
#[derive(Default)]
pub struct Wrong {
    list: BTreeMap<String, (usize, String)>,
}

impl Wrong {
    pub fn add(&mut self, sm: &str, text: &str, what: String) {
        let mnemonic = text.split_whitespace().find(|w| !w.starts_with('@')).unwrap_or("nothing");
        let entry = self.list.entry(format!("{} sm_{sm}", mnemonic.trim_end_matches(';'))).or_insert((0, what));
        entry.0 += 1;
    }

    /// These and others of another target.
    pub fn with(mut self, other: Wrong) -> Wrong {
        self.list.extend(other.list);
        self
    }

    /// Fails unless the differences are those of a list, with lines `MNEMONIC sm_N`, for which the
    /// tables have no row yet; a `whole` run must find every line.
    #[allow(dead_code)] // One of the tests that share this file asks for it.
    pub fn report_except(mut self, list: &Path, whole: bool) {
        let known = std::fs::read_to_string(list).expect("the list");
        let known: Vec<&str> = known.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).collect();
        if std::env::var("SASSAFRAS_BLESS").is_ok() {
            self.list.keys().for_each(|key| println!("{key}"));
        }
        let gone: Vec<_> = known.iter().filter(|key| whole && !self.list.contains_key(**key)).collect();
        assert!(gone.is_empty(), "in the list, and agree now: {gone:?}");
        self.list.retain(|key, _| !known.contains(&key.as_str()));
        self.report();
    }

    /// Fails if there are any differences.
    pub fn report(self) {
        for (key, (count, first)) in &self.list {
            println!("{key}: {count}, first {first}");
        }
        assert!(self.list.is_empty(), "{} mnemonics and targets disagree", self.list.len());
    }
}

/// Our text with a branch target relocated to the word's address in a batch, if nvdisasm's text has
/// that target.
pub fn moved(line: &Line, theirs: &str, at: u64) -> String {
    let Some((before, target)) = line.text.rsplit_once(' ') else { return line.text.clone() };
    let target = target.strip_prefix("0x").and_then(|t| u64::from_str_radix(t, 16).ok());
    let Some(target) = target else { return line.text.clone() };
    let there = target.wrapping_add(at).wrapping_sub(line.offset) as i64;
    let sign = if there < 0 { "-" } else { "" };
    let there = format!("{before} {sign}{:#x}", there.unsigned_abs());
    if there == theirs { there } else { line.text.clone() }
}
