//! The order of modifiers: each form with its modifiers and types in many orders, and with a modifier twice.
//!
//! Checked: we take and refuse each as the incumbent does, where it is installed; and, with or without it, as
//! `tests/oracle/modifier_orders.txt` has it, one line per target and operation: how many were asked, how many are
//! taken, and a sum of which. `SASSAFRAS_BLESS=1` writes the incumbent's verdicts there.

use super::forms::{Choice, instruction, least, ordered, texts, type_lists};
use super::oracle::{ptxas, refused, refused_here};
use crate::tables::ptx::{FORMS, Form, MODIFIER_BY_TEXT, Op};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Version and target; the first has the operations that are gone in the second.
const FILES: [(&str, &str); 2] = [("6.3", "sm_75"), ("9.0", "sm_100a")];
/// Up to so many words each order is tried; of more, each that moves one word, and the reverse.
const ALL_ORDERS: usize = 4;
/// Lists of types tried of a form.
const TYPE_LISTS: usize = 4;
/// Instructions that the incumbent reads at once.
const CHUNK: usize = 20_000;

/// The least and the fullest choice of modifiers of a form, and those that differ from one of them in one group.
fn choices(form: &Form) -> Vec<Choice> {
    let full: Choice = form.rules.iter().filter_map(|r| texts(r.mask).next().map(|i| (r.group, i))).collect();
    let mut out = vec![least(form), full];
    for base in [out[0].clone(), out[1].clone()] {
        for rule in form.rules {
            let others = || base.iter().copied().filter(|(group, _)| *group != rule.group);
            out.extend(texts(rule.mask).map(|i| others().chain([(rule.group, i)]).collect()));
        }
    }
    out
}

/// Orders of words, the given one among them.
fn orders<'a>(words: &[&'a str]) -> BTreeSet<Vec<&'a str>> {
    if words.len() > ALL_ORDERS {
        let moved = |from: usize, to: usize| {
            let mut order = words.to_vec();
            let word = order.remove(from);
            order.insert(to, word);
            order
        };
        let places = || 0..words.len();
        let moves = places().flat_map(|from| places().map(move |to| (from, to)));
        return moves.map(|(from, to)| moved(from, to)).chain([words.iter().rev().copied().collect()]).collect();
    }
    let Some((first, rest)) = words.split_first() else { return BTreeSet::from([Vec::new()]) };
    let shorter = orders(rest);
    let longer = shorter.iter().flat_map(|order| {
        (0..=order.len()).map(move |place| {
            let mut longer = order.clone();
            longer.insert(place, *first);
            longer
        })
    });
    longer.collect()
}

/// An instruction with its words in other orders, and with one modifier once more at the end.
fn variants(line: &str) -> Vec<String> {
    let (name, operands) = line.split_once([' ', ';']).unwrap();
    let mut words = name.split('.');
    let base = words.next().unwrap();
    let words: Vec<&str> = words.collect();
    let doubled = words.iter().filter(|word| MODIFIER_BY_TEXT.contains_key(**word));
    let doubled = doubled.map(|word| words.iter().copied().chain([*word]).collect());
    let all = orders(&words).into_iter().chain(doubled);
    let name = |order: Vec<&str>| std::iter::once(base).chain(order).collect::<Vec<_>>().join(".");
    all.map(|order| format!("{} {operands}{}", name(order), if operands.ends_with(';') { "" } else { ";" })).collect()
}

/// Every instruction that is asked about, with its operation: variants of those that we take as the manual orders them.
fn instructions(version: &str, target: &str) -> BTreeMap<String, &'static str> {
    let mut lines: BTreeMap<String, &'static str> = BTreeMap::new();
    for form in FORMS.iter().filter(|form| form.op != Op::Call) {
        for types in type_lists(form).iter().take(TYPE_LISTS) {
            let made = |choice| (instruction(form, types, &ordered(form.op, choice)), form.op.name());
            lines.extend(choices(form).into_iter().map(made));
        }
    }
    let texts: Vec<String> = lines.keys().cloned().collect();
    let refused = refused_here(version, target, &texts);
    let taken = lines.iter().zip(refused).filter(|(_, refused)| refused.is_none());
    taken.flat_map(|((line, op), _)| variants(line).into_iter().map(|variant| (variant, *op))).collect()
}

/// For each operation how many instructions are asked about, how many are taken, and a sum of which.
fn summary(target: &str, lines: &BTreeMap<String, &'static str>, refused: &[bool]) -> Vec<String> {
    let mut all: BTreeMap<&str, (u32, u32, u64)> = BTreeMap::new();
    for ((line, op), refused) in lines.iter().zip(refused) {
        let entry = all.entry(op).or_default();
        *entry = (entry.0 + 1, entry.1 + u32::from(!refused), entry.2);
        let bytes = line.bytes().chain([u8::from(*refused)]);
        entry.2 = bytes.fold(entry.2, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    }
    all.iter().map(|(op, (asked, taken, sum))| format!("{target} {op} {asked} {taken} {sum:016x}")).collect()
}

#[test]
fn orders_of_modifiers_agree_with_the_incumbent() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/modifier_orders.txt");
    let (mut snapshot, mut wrong) = (Vec::new(), Vec::new());
    for (version, target) in FILES {
        let lines = instructions(version, target);
        let texts: Vec<String> = lines.keys().cloned().collect();
        let ours: Vec<bool> = refused_here(version, target, &texts).iter().map(Option::is_some).collect();
        let Some(tool) = ptxas() else {
            snapshot.extend(summary(target, &lines, &ours));
            continue;
        };
        let theirs = texts.chunks(CHUNK).flat_map(|chunk| refused(&tool, version, target, chunk));
        let theirs: Vec<bool> = theirs.map(|message| message.is_some()).collect();
        let differ = texts.iter().zip(theirs.iter().zip(&ours)).filter(|(_, (theirs, ours))| theirs != ours);
        wrong.extend(differ.map(|(line, (theirs, _))| format!("{target} {line}  the incumbent refuses it: {theirs}")));
        println!("{target}: {} instructions", texts.len());
        snapshot.extend(summary(target, &lines, &theirs));
    }
    assert!(wrong.is_empty(), "{} verdicts differ:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    let snapshot = snapshot.join("\n") + "\n";
    if std::env::var("SASSAFRAS_BLESS").is_ok() && ptxas().is_some() {
        std::fs::write(&path, &snapshot).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap_or_default();
    let differ: Vec<&str> = snapshot.lines().filter(|line| !recorded.lines().any(|old| old == *line)).collect();
    assert!(differ.is_empty() && snapshot.len() == recorded.len(), "not as recorded:\n{}", differ.join("\n"));
}
