//! Output of the options `--dump-before`, `--dump-after` and `--dump-phases`, and the statistics
//! for `--time-passes` and `--print-phases`.

use super::Event;
use crate::ori::{Function, text};
use crate::tables::{Pass, Phase};
use std::time::Duration;

/// Names of passes or phases at which to print the function; `all` means every pass.
#[derive(Clone, Debug, Default)]
pub struct DumpOptions {
    /// Passes or phases to print the function before.
    pub before: Vec<String>,
    /// Passes or phases to print the function after.
    pub after: Vec<String>,
    /// Names of phases only; `all` means every implemented phase.
    pub phases: Vec<String>,
}

/// Statistics of one pass over all functions of a compilation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassRecord {
    /// Number of functions it ran on.
    pub functions: u32,
    /// Total time.
    pub elapsed: Duration,
    /// Number of instructions of these functions, before and after it.
    pub before: u64,
    /// Instructions of these functions after the pass.
    pub after: u64,
}

/// Collects dumps and records.
pub struct Recorder<'a> {
    options: &'a DumpOptions,
    /// Printed functions, each with a heading, in order.
    pub dumps: Vec<String>,
    /// Indexed by [`Pass`].
    pub records: Vec<PassRecord>,
}

impl<'a> Recorder<'a> {
    /// An empty recorder.
    pub fn new(options: &'a DumpOptions) -> Recorder<'a> {
        Recorder { options, dumps: Vec::new(), records: vec![PassRecord::default(); Pass::ALL.len()] }
    }

    /// Adds what another one has recorded, after what is here.
    pub fn join(&mut self, other: Recorder) {
        self.dumps.extend(other.dumps);
        for (record, more) in self.records.iter_mut().zip(other.records) {
            record.functions += more.functions;
            record.elapsed += more.elapsed;
            record.before += more.before;
            record.after += more.after;
        }
    }

    /// Records an event of the pass manager.
    pub fn note(&mut self, event: Event) {
        match event {
            Event::Before(pass, function) => {
                self.records[pass as usize].before += count(function);
                let first = passes_of(pass.info().phase).next() == Some(pass);
                if let Some(name) = wanted(&self.options.before, pass, first) {
                    self.dumps.push(format!("# before {name}\n{}", text::print(function)));
                }
            }
            Event::After(pass, function, elapsed) => {
                let record = &mut self.records[pass as usize];
                record.functions += 1;
                record.elapsed += elapsed;
                record.after += count(function);
                let last = passes_of(pass.info().phase).last() == Some(pass);
                if let Some(name) = wanted(&self.options.after, pass, last) {
                    self.dumps.push(format!("# after {name}\n{}", text::print(function)));
                }
            }
            Event::AfterPhase(phase, function) => {
                if self.options.phases.iter().any(|name| name == phase.name() || name == "all") {
                    self.dumps.push(format!("# after {}\n{}", phase.name(), text::print(function)));
                }
            }
        }
    }
}

/// The name under which a dump at a pass was requested; a phase means its first or last pass.
fn wanted(names: &[String], pass: Pass, at_end: bool) -> Option<&'static str> {
    if names.iter().any(|name| name == pass.name() || name == "all") {
        return Some(pass.name());
    }
    let phase = pass.info().phase.name();
    names.iter().any(|name| at_end && name == phase).then_some(phase)
}

/// The passes of a phase, in order.
pub fn passes_of(phase: Phase) -> impl Iterator<Item = Pass> {
    Pass::ALL.into_iter().filter(move |pass| pass.info().phase == phase)
}

fn count(function: &Function) -> u64 {
    function.layout().iter().map(|block| function[*block].len() as u64).sum()
}
