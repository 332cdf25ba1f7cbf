//! The text of a profile: where the cycles of a launch's slowest block went.
//!
//! The columns are sums over the warps of the block: all cycles, instructions issued, cycles of
//! stall fields, of waiting for scoreboards and barriers, and of waiting for a pipe or the
//! scheduler. Waits name the instruction that set the scoreboard.

use crate::sim::run::{Profiled, Spent};
use std::collections::BTreeMap;

/// The heading of every profile.
const HEADING: &str = "    cycles    issued     stall      wait      pipe";

/// One line for each instruction, in the order of the code.
pub fn by_instruction(profile: &[Profiled]) -> String {
    let mut text = format!("{HEADING}  instruction\n");
    for line in profile {
        let producers = line.spent.producers.iter().map(|(by, cycles)| format!(" {:04x}: {cycles}", by * 16));
        let waits: String = producers.collect();
        let waits = if waits.is_empty() { waits } else { format!("  // waits for{waits}") };
        text += &format!("{}  /*{:04x}*/ {}{waits}\n", columns(&line.spent), line.index * 16, line.text);
    }
    text
}

/// One line for each source line, the dearest first; without line tables, a single line.
pub fn by_line(profile: &[Profiled]) -> String {
    let mut lines: BTreeMap<String, Spent> = BTreeMap::new();
    for line in profile {
        let source = line.source.as_ref().map_or("no source line".to_string(), ToString::to_string);
        lines.entry(source).or_default().add(&line.spent);
    }
    let mut lines: Vec<(String, Spent)> = lines.into_iter().collect();
    lines.sort_by_key(|(_, spent)| std::cmp::Reverse(spent.cycles()));
    let line = |(source, spent): &(String, Spent)| format!("{}  {source}\n", columns(spent));
    format!("{HEADING}  source line\n") + &lines.iter().map(line).collect::<String>()
}

fn columns(spent: &Spent) -> String {
    let Spent { issued, stall, wait, pipe, .. } = spent;
    format!("{:10}{issued:10}{stall:10}{wait:10}{pipe:10}", spent.cycles())
}
