//! A profile as text or JSON: where the cycles of a launch's slowest block, or of all, went.
//!
//! The columns are how often the whole launch executed the instruction, and sums over the warps of
//! the block or blocks: all cycles, instructions issued, cycles of stall fields, of waiting for
//! scoreboards and barriers, and of waiting for a pipe or the scheduler. Waits name the instruction
//! or the line that set the scoreboard.

use crate::cubin::line_table::SourceLine;
use crate::sim::run::{Profiled, Spent};
use crate::sorted::SortedMap;
use serde::Serialize;

/// The heading of every profile.
const HEADING: &str = "  executed    cycles    issued     stall      wait      pipe";

/// Bytes of an instruction.
const WORD: u32 = 16;

/// An instruction of a profile in JSON.
#[derive(Serialize)]
pub struct Line<'a> {
    pc: u32,
    instruction: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a SourceLine>,
    executed: u64,
    cycles: u64,
    issued: u64,
    stall: u64,
    wait: u64,
    pipe: u64,
    /// The part of `wait` by the instruction that set the last scoreboard.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits: Vec<Waited>,
}

#[derive(Serialize)]
struct Waited {
    pc: u32,
    cycles: u64,
}

impl Line<'_> {
    /// What is written of an instruction.
    pub fn of(line: &Profiled) -> Line<'_> {
        let Spent { issued, stall, wait, pipe, .. } = line.spent;
        let waited = |(by, cycles): (&u32, &u64)| Waited { pc: by * WORD, cycles: *cycles };
        Line {
            pc: line.index * WORD,
            instruction: &line.text,
            source: line.source.as_ref(),
            executed: line.executed,
            cycles: line.spent.cycles(),
            issued,
            stall,
            wait,
            pipe,
            waits: line.spent.producers.iter().map(waited).collect(),
        }
    }
}

/// One line for each instruction, in the order of the code.
pub fn by_instruction(profile: &[Profiled]) -> String {
    let mut text = format!("{HEADING}  instruction\n");
    for line in profile {
        let producers = line.spent.producers.iter().map(|(by, cycles)| format!(" {:04x}: {cycles}", by * WORD));
        let waits = waits(producers.collect());
        text +=
            &format!("{}  /*{:04x}*/ {}{waits}\n", columns(line.executed, &line.spent), line.index * WORD, line.text);
    }
    text
}

/// One line for each source line, the dearest first; without line tables, a single line.
pub fn by_line(profile: &[Profiled]) -> String {
    let name = |line: &Profiled| line.source.as_ref().map_or("no source line".to_string(), ToString::to_string);
    let names: SortedMap<u32, String> = profile.iter().map(|line| (line.index, name(line))).collect();
    let mut lines: SortedMap<&str, (u64, Spent, SortedMap<&str, u64>)> = SortedMap::new();
    for line in profile {
        let (executed, spent, waits) = lines.entry(&names[&line.index]).or_default();
        *executed += line.executed;
        spent.add(&line.spent);
        for (by, cycles) in &line.spent.producers {
            *waits.entry(names.get(by).map_or("no source line", String::as_str)).or_default() += cycles;
        }
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    crate::sorted::by_key(&mut lines, |(_, (_, spent, _))| std::cmp::Reverse(spent.cycles()));
    let mut text = format!("{HEADING}  source line\n");
    for (source, (executed, spent, by)) in &lines {
        let waits = waits(by.iter().map(|(line, cycles)| format!(" {line}: {cycles}")).collect());
        text += &format!("{}  {source}{waits}\n", columns(*executed, spent));
    }
    text
}

/// The waits of a line behind its text.
fn waits(list: Vec<String>) -> String {
    if list.is_empty() { String::new() } else { format!("  // waits for{}", list.join(",")) }
}

fn columns(executed: u64, spent: &Spent) -> String {
    let Spent { issued, stall, wait, pipe, .. } = spent;
    format!("{executed:10}{:10}{issued:10}{stall:10}{wait:10}{pipe:10}", spent.cycles())
}
