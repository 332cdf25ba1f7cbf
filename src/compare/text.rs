//! The parts of a comparison as text. `A` and `B` are the two cubins in the order of the command.

use super::align::{Item, align};
use super::{Code, Figures, Peak, Ran, UNKNOWN};
use crate::arrays::Each;
use crate::sass::flow::WORD;
use crate::sass::liveness::{Register, STACK_POINTER};
use crate::tables::latency::RegFile;
use std::fmt::Write;

/// The files whose peaks are shown, each by its name.
const FILES: [(RegFile, &str); 4] = [
    (RegFile::R, "registers"),
    (RegFile::UR, "uniform registers"),
    (RegFile::P, "predicates"),
    (RegFile::UP, "uniform predicates"),
];

/// Instructions that [`launch`] shows of each side.
const HOTTEST: usize = 10;
/// Definitions of a register that are shown.
const SHOWN: usize = 3;
/// Columns of the left side of a listing; longer lines make their row longer.
const LEFT: usize = 72;

/// The lines of figures of one function.
pub fn figures(name: &str, a: &Figures, b: &Figures) -> String {
    let rows = [
        ("registers", u64::from(a.registers), u64::from(b.registers)),
        ("frame bytes", a.frame.into(), b.frame.into()),
        ("local store bytes", a.stores.into(), b.stores.into()),
        ("local load bytes", a.loads.into(), b.loads.into()),
        ("instructions", a.instructions as u64, b.instructions as u64),
    ];
    let mut text = format!("{name}\n  {:<20}{:>10}{:>10}{:>10}\n", "", "A", "B", "A-B");
    rows.iter().for_each(|(what, a, b)| text += &row(what, *a, *b));
    text
}

fn row(what: &str, a: u64, b: u64) -> String {
    let difference = i128::from(a) - i128::from(b);
    let difference = if difference == 0 { "0".to_string() } else { format!("{difference:+}") };
    format!("  {what:<20}{a:>10}{b:>10}{difference:>10}\n")
}

/// The instructions by opcode, the largest differences first.
pub fn opcodes(a: &Code, b: &Code) -> String {
    let (a, b) = (a.opcodes(), b.opcodes());
    let names: crate::sorted::SortedSet<&str> = a.keys().chain(b.keys()).copied().collect();
    let count = |of: &crate::sorted::SortedMap<&str, usize>, name| of.get(name).copied().unwrap_or(0);
    let mut rows: Vec<(&str, usize, usize)> = names.iter().map(|n| (*n, count(&a, n), count(&b, n))).collect();
    crate::sorted::by_key(&mut rows, |(name, a, b)| (std::cmp::Reverse(a.abs_diff(*b)), *name));
    let mut text = format!("  {:<20}{:>10}{:>10}{:>10}\n", "opcode", "A", "B", "A-B");
    rows.iter().for_each(|(name, a, b)| text += &row(name, *a as u64, *b as u64));
    text
}

/// The peaks of both sides: where they are, which registers are occupied there, and which
/// instructions gave them their values.
pub fn peaks(a: &Code, b: &Code) -> String {
    let mut text = String::new();
    for (file, what) in FILES {
        for (side, code) in [("A", a), ("B", b)] {
            if let Some(peak) = code.peak(file) {
                peak_of(code, side, what, &peak, &mut text);
            }
        }
    }
    text
}

fn peak_of(code: &Code, side: &str, what: &str, peak: &Peak, text: &mut String) {
    let (count, offset) = (peak.count, peak.offset);
    let at = |offset: u64| format!("/*{offset:04x}*/ {}{}", code.text((offset / WORD) as usize), code.line(offset));
    let _ = writeln!(text, "  most {what} of {side}: {count} at {}", at(offset));
    for run in runs(&peak.registers) {
        let (first, last) = (run[0].0, run[run.len() - 1].0);
        let name = |(file, number): Register| format!("{file:?}{number}");
        let names = if first == last { name(first) } else { format!("{}-{}", name(first), last.1) };
        let from = &run[0].1;
        let mut listed: Vec<String> = from.iter().take(SHOWN).map(|offset| at(*offset)).collect();
        if from.len() > SHOWN {
            listed.push(format!("{} more", from.len() - SHOWN));
        }
        let listed = match listed.is_empty() {
            true if first == STACK_POINTER => "the stack pointer".to_string(),
            true => "not written before".to_string(),
            false => listed.join(", "),
        };
        let _ = writeln!(text, "    {names:<10} {listed}");
    }
}

/// Adjacent registers with the same definitions, together.
fn runs(registers: &[(Register, Vec<u64>)]) -> Vec<&[(Register, Vec<u64>)]> {
    registers.chunk_by(|a, b| a.0.1.checked_add(1) == Some(b.0.1) && a.1 == b.1).collect()
}

/// Both listings side by side, with the occupied registers beside each line: R, UR, P and UP.
pub fn listing(a: &Code, b: &Code) -> String {
    let items = |code: &Code| {
        let one = |at: usize| {
            let op = code.insts[at].as_ref().map_or(UNKNOWN, |inst| inst.op.info().text);
            (op, code.text(at))
        };
        (0..code.insts.len()).map(one).collect::<Vec<Item>>()
    };
    let (left, right) = (items(a), items(b));
    let (on_left, on_right) = (a.pressure(), b.pressure());
    let width = left.iter().map(|item| item.1.len() + 9).max().unwrap_or(0).min(LEFT);
    let heading = "  R UR  P UP";
    let mut text = format!("  {:<width$}{heading}    {:<width$}{heading}\n", "A", "B");
    for (l, r) in align(&left, &right) {
        let label = |code: &Code, at: Option<usize>| at.and_then(|at| code.labels.get(&at)).map(|l| format!("{l}:"));
        let labels = [label(a, l), label(b, r)];
        if labels.iter().any(Option::is_some) {
            let [l, r] = labels.each(Option::unwrap_or_default);
            let gap = width + heading.len();
            let _ = writeln!(text, "{}", format!("  {l:<gap$}    {r}").trim_end());
        }
        let left = half(&left, &on_left, l, width);
        let right = half(&right, &on_right, r, width);
        let mark = match (l, r) {
            (Some(_), Some(_)) => ' ',
            (Some(_), None) => '<',
            _ => '>',
        };
        let _ = writeln!(text, "{}", format!("  {left}  {mark} {right}").trim_end());
    }
    text
}

fn half(items: &[Item], pressure: &[[usize; 4]], at: Option<usize>, width: usize) -> String {
    let Some(at) = at else { return " ".repeat(width + 12) };
    let [r, ur, p, up] = pressure[at];
    let line = format!("/*{:04x}*/ {}", at * WORD as usize, items[at].1);
    format!("{line:<width$}{r:>3}{ur:>3}{p:>3}{up:>3}")
}

/// What a launch costs on each side, and the instructions with the most cycles.
pub fn launch(a: &Ran, b: &Ran) -> String {
    let mut text = format!("  {:<20}{:>10}{:>10}{:>10}\n", "launch", "A", "B", "A-B");
    let of = |ran: &Ran| {
        let cycles = ran.outcome.cycles.unwrap_or_default();
        [cycles.block, cycles.issue, cycles.pipe, ran.outcome.stats.instructions]
    };
    let names = ["cycles of a block", "  at least to issue", "  at least in a pipe", "executed"];
    names.iter().zip(of(a).into_iter().zip(of(b))).for_each(|(what, (a, b))| text += &row(what, a, b));
    for (side, ran) in [("A", a), ("B", b)] {
        let _ = writeln!(text, "  most cycles in {side}");
        for line in ran.hottest(HOTTEST) {
            let spent = &line.spent;
            let source = line.source.as_ref().map_or(String::new(), |line| format!(" [{line}]"));
            let (cycles, pc) = (spent.cycles(), line.index * WORD as u32);
            let _ = writeln!(text, "  {cycles:>10}  /*{pc:04x}*/ {}{source}", line.text);
        }
    }
    text
}
