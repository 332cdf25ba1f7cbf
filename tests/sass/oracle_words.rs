//! Decodes and prints every distinct instruction word of ptxas, over the corpus and our own files.
//!
//! The input is PTX files (`../shared/corpus`, if present, for the targets of its manifest at -O3
//! and for its own at -O0; `tests/cases/words`, `tests/cases/exec` and `tests/corpus`), each
//! compiled by ptxas once; its distinct words and nvdisasm's texts of them are kept in
//! `target/oracle_words`. With the control field ignored, each word must decode, print as nvdisasm
//! prints it, and be parsed back from that text. For each target, the test prints the share of
//! words and of classes (mnemonic, modifiers and operand shapes) that pass each of the three.
//! `tests/oracle/words_not_yet.txt` lists exactly what is missing.
//!
//! By default each file is compiled for one of its targets in rotation, every other file of the
//! corpus as the judge `hazards` has it compiled; `SASSAFRAS_ORACLE=all` takes all of them, and
//! each file for all later targets besides; `SASSAFRAS_SM=90,90a` selects targets,
//! `SASSAFRAS_CASE=TEXT` the files whose name contains it. A second test does the same with ptxas
//! and nvdisasm 13.5, of our own files alone by default, and with `words_newest_not_yet.txt`.

use crate::gathered::{Release, STANDARD, gather, hash};
use crate::vendor;
use sassafras::sass;
use sassafras::tables::Target;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Number of words per run of nvdisasm.
const BATCH: usize = 60_000;

/// The stage that a word reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Reached {
    Nothing,
    Decodes,
    Prints,
    Returns,
}

/// Statistics of one target, by class: words at each stage, and the first that falls short.
#[derive(Default)]
struct Class {
    words: [usize; 4],
    short: Option<String>,
}

/// The texts of nvdisasm for some words, cached in a file named by a hash of them.
fn texts(release: Release, words: &[u128], sm: &str) -> Vec<Option<String>> {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let path = release.folder().join(format!("sm_{sm}.{:016x}.texts", hash(&bytes)));
    if let Ok(kept) = std::fs::read_to_string(&path) {
        return kept.lines().map(|l| (!l.is_empty()).then(|| l.to_string())).collect();
    }
    let list = vendor::disassemble_with(&release.tool("nvdisasm").expect("nvdisasm"), words, sm);
    let lines: Vec<&str> = list.iter().map(|t| t.as_deref().unwrap_or("")).collect();
    let part = path.with_extension(format!("{}", std::process::id()));
    std::fs::write(&part, lines.join("\n") + "\n").expect("the texts kept");
    std::fs::rename(&part, &path).expect("the texts in place");
    list
}

/// The stage that a word at an address reaches, and the error.
fn judge(target: &Target, word: u128, at: u64, theirs: &str) -> (Reached, String) {
    let inst = match sass::decode(target, word) {
        Ok(inst) => inst,
        Err(error) => return (Reached::Nothing, error.message),
    };
    let ours = sass::text(target, &inst, at, None);
    if vendor::normal(&ours) != theirs {
        return (Reached::Decodes, format!("prints {ours}"));
    }
    let whole = ours + &sass::hidden(target, &inst);
    let again = sass::parse(target, &whole, at, None).map_err(|e| e.message);
    match again.and_then(|i| sass::encode(target, &sass::Inst { ctrl: inst.ctrl, ..i }).map_err(|e| e.message)) {
        Ok(again) if again == word => (Reached::Returns, String::new()),
        Ok(again) => (Reached::Prints, format!("comes back as {again:032x}")),
        Err(message) => (Reached::Prints, message),
    }
}

/// The class of a text: its mnemonic with all modifiers, and its operands without their numbers.
fn class(text: &str) -> String {
    let text = text.strip_prefix('@').and_then(|t| t.split_once(' ')).map_or(text, |(_, rest)| rest);
    let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
    let shapes: Vec<String> = operands.split(", ").map(shape).collect();
    format!("{mnemonic} {}", shapes.join(" ")).trim_end().replace(".reuse", "")
}

/// An operand without its numbers: a register's file, `I` for a number, `SR` for a special
/// register.
fn shape(operand: &str) -> String {
    let mut out = String::new();
    let mut rest = operand.trim_start_matches(['+', '-', '~', '!']);
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len()).max(1);
        let (token, after) = rest.split_at(end);
        rest = after;
        let file = ["UR", "UP", "SR", "R", "P", "B", "SB"].into_iter().find(|file| {
            let number = token.strip_prefix(file).unwrap_or("x");
            *file == "SR" && token.starts_with(file) || number == "Z" || number == "T" || number.parse::<u8>().is_ok()
        });
        match file {
            Some(file) => out += file,
            // `R2.64`
            None if out.ends_with('.') => out += token,
            None if first.is_ascii_digit() || ["INF", "QNAN", "SNAN"].contains(&token) => {
                out.push('I');
                // `1.5`, `-3.0e-5`
                let digits = |c: char| c.is_ascii_digit() || c == '.';
                rest = rest.trim_start_matches(digits);
                if let Some(exponent) = rest.strip_prefix(['e']) {
                    rest = exponent.trim_start_matches(['+', '-']).trim_start_matches(digits);
                }
            }
            None if "-~!".contains(first) => {}
            None => out += token,
        }
    }
    out
}

fn measure(release: Release, sm: &str, words: &BTreeSet<u128>) -> BTreeMap<String, Class> {
    let target = Target::by_name(&format!("sm_{sm}")).expect("a target of the tables");
    let words: Vec<u128> = words.iter().copied().collect();
    let mut classes: BTreeMap<String, Class> = BTreeMap::new();
    for part in words.chunks(BATCH) {
        for (i, (word, theirs)) in part.iter().zip(texts(release, part, sm)).enumerate() {
            let Some(theirs) = theirs else {
                classes.entry("(refused by nvdisasm)".into()).or_default().words[0] += 1;
                continue;
            };
            let (reached, why) = judge(target, *word, i as u64 * 16, &theirs);
            let class = classes.entry(class(&theirs)).or_default();
            class.words[reached as usize] += 1;
            if reached != Reached::Returns && class.short.is_none() {
                class.short = Some(format!("{word:032x} {theirs}: {why}"));
            }
        }
    }
    classes
}

/// `99.98 % of 12345`, never rounded up.
fn share(part: usize, whole: usize) -> String {
    let percent = (part as f64 * 1e4 / whole.max(1) as f64).floor() / 100.0;
    format!("{percent:.2} % of {whole}")
}

fn print(sm: &str, classes: &BTreeMap<String, Class>) {
    let all: usize = classes.values().flat_map(|c| c.words).sum();
    let mut line = format!("sm_{sm}:");
    for (stage, name) in [(1, "decode"), (2, "print"), (3, "come back")] {
        let words: usize = classes.values().map(|c| c.words[stage..].iter().sum::<usize>()).sum();
        let whole = classes.values().filter(|c| c.words[..stage].iter().all(|n| *n == 0)).count();
        line += &format!(" {name}: words {}, classes {};", share(words, all), share(whole, classes.len()));
    }
    println!("{line}");
}

#[test]
fn every_word_of_ptxas_is_known() {
    every_word_is_known(Release::First, "words_not_yet.txt");
}

#[test]
fn every_word_of_the_newest_ptxas_is_known() {
    every_word_is_known(Release::Newest, "words_newest_not_yet.txt");
}

/// Measures the words of a release, and compares what is missing with a list of `tests/oracle`.
fn every_word_is_known(release: Release, list: &str) {
    if release.tool("ptxas").is_none() || release.tool("nvdisasm").is_none() {
        println!("skipped: no ptxas or nvdisasm in target/vendor");
        return;
    }
    let all = std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all");
    let mut missing = BTreeMap::new();
    for (sm, words) in gather(release, all) {
        let classes = measure(release, &sm, &words);
        print(&sm, &classes);
        for (name, class) in classes {
            if let Some(short) = class.short {
                missing.insert(format!("{name} // sm_{sm}"), (class.words, short));
            }
        }
    }
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(list);
    let known = std::fs::read_to_string(list).expect("the list of what is missing");
    let known: BTreeSet<&str> = known.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    if std::env::var("SASSAFRAS_BLESS").is_ok() {
        missing.keys().for_each(|key| println!("BLESS {key}"));
    }
    let whole = all && std::env::var("SASSAFRAS_SM").is_err() && std::env::var("SASSAFRAS_CASE").is_err();
    let stale: Vec<_> = known.iter().filter(|k| whole && !missing.contains_key(**k)).collect();
    assert!(stale.is_empty(), "in the list, and known now: {stale:?}");
    missing.retain(|key, _| !known.contains(key.as_str()));
    for (key, (words, short)) in &missing {
        println!("{key}: {words:?} {short}");
    }
    assert!(missing.is_empty(), "{} classes of ptxas's are not known", missing.len());
}

#[test]
fn words_are_kept_with_one_control_field() {
    assert_eq!(STANDARD >> 105 & 15, 2, "a stall that goes with reuse bits");
    assert_eq!(STANDARD >> 110 & 63, 63, "no scoreboards, as branches want it");
}

#[test]
fn classes_leave_numbers_out() {
    assert_eq!(class("@!P0 IMAD.WIDE R2, R3, -0x4, R8"), "IMAD.WIDE R R I R");
    assert_eq!(class("LDG.E R0, desc[UR4][R2.64+-0x10]"), "LDG.E R desc[UR][R.64+I]");
    assert_eq!(class("S2R R0, SR_TID.X"), "S2R R SR.X");
    assert_eq!(class("EXIT"), "EXIT");
    assert_eq!(class("@P1 FADD R0, R1.reuse, -1.5e-10"), "FADD R R I");
    assert_eq!(class("MOV R0, +INF"), "MOV R I");
}
