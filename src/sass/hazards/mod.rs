//! A static checker of finished code: every instruction must wait for the registers that it reads
//! and overwrites.
//!
//! It works on cubins of this compiler and of ptxas and knows nothing about how the code was
//! scheduled. [`flow`](super::flow) rebuilds the control-flow graph from the bytes; a forward
//! dataflow analysis carries the accesses in flight (`state`), joined conservatively over all paths
//! including back edges; `step` judges each instruction by the latency tables. A fixed-latency
//! result is ready after its cycles; a scoreboarded result is ready after a wait for its
//! scoreboard, which counts down to zero only when all instructions that set it are done. Each
//! report names the two instructions, the register and what is missing.
//!
//! The analysis is per thread: values that one lane leaves to another in a uniform register are
//! judged as if one lane ran alone.

mod pairs;
mod state;
mod step;

use super::effects::Slot;
use super::flow::{Block, Flow, WORD};
use super::reuse::{self, Cache, Stale};
use super::{Inst, decode, pick, text};
use crate::cubin::line_table::{LineTable, SourceLine};
use crate::cubin::{Cubin, Function};
use crate::sorted::SortedSet;
use crate::tables::encoding::Form;
use crate::tables::latency::{Latency, Needed, RegFile};
use crate::tables::{Op, Target};
use serde::Serialize;
use state::State;
use step::{Known, NONE, Observer, Silent, step};

/// The kind of dependence between two accesses to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    ReadAfterWrite,
    WriteAfterWrite,
    WriteAfterRead,
}

/// Two instructions that access the same register, the first possibly still in flight. Positions
/// count instructions from the start of the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependence {
    pub kind: Kind,
    pub file: RegFile,
    pub register: u8,
    /// Position of the first instruction.
    pub first: usize,
    pub first_slot: Slot,
    /// Position of the second instruction.
    pub second: usize,
    pub second_slot: Slot,
    /// The first is scoreboarded: it is done after a wait for one of `boards`, not after a number
    /// of cycles.
    pub announced: bool,
    pub boards: u8,
    /// Cycles between the two on the shortest path, if the first has a fixed latency.
    pub age: u8,
    /// What the latency tables require between the two.
    pub needed: Needed,
}

impl Dependence {
    /// Whether the second issues too early.
    pub fn is_hazard(&self) -> bool {
        match self.needed {
            Needed::Scoreboard => true,
            Needed::Cycles(n) => !self.announced && self.age < n,
        }
    }
}

/// A violation within control fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The stall is below the opcode's minimum.
    Stall { least: u8 },
    /// No yield with a stall outside the range that allows it.
    Stay,
    /// A branch sets a scoreboard.
    ControlSets,
    /// The next instruction waits for a scoreboard that this one sets, with a stall of only one
    /// cycle.
    TooSoon { board: u8 },
    /// Scoreboards still in flight at a call or a return.
    InFlight { boards: u8 },
    /// Reads that no scoreboard announces may be in flight at a call, and the callee may overwrite
    /// what they read.
    Unannounced,
    /// A result is not ready for every reader where a callee begins whose code is elsewhere.
    Unready,
    /// A product of a warp group waits for an access to its general registers that was in flight
    /// where the warp arrived.
    WaitsBehindArrival { boards: u8 },
    /// Fewer cycles than required from another instruction, which names no register in common.
    Apart { needed: u16, age: u16 },
    /// The word does not decode.
    Undecoded,
}

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Report {
    pub function: String,
    /// Byte offset and text of the instruction that issues too early.
    pub offset: u64,
    pub instruction: String,
    /// Byte offset and text of the instruction that it should have waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<(u64, String)>,
    /// Source lines of both, if the cubin has line tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier_source: Option<SourceLine>,
    /// The register concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub register: Option<String>,
    pub message: String,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line = |source: &Option<SourceLine>| source.as_ref().map_or(String::new(), |line| format!(" [{line}]"));
        let place = line(&self.source);
        write!(f, "{}+{:#06x}{place}: {} ({})", self.function, self.offset, self.message, self.instruction)?;
        match &self.earlier {
            Some((offset, text)) => write!(f, " after +{offset:#06x}{} ({text})", line(&self.earlier_source)),
            None => Ok(()),
        }
    }
}

/// The analysis of one section, at its fixpoint.
pub struct Analysis<'a> {
    target: &'static Target,
    latency: &'static Latency,
    function: &'a Function,
    insts: Vec<Option<Known>>,
    flow: Flow,
    /// In-flight state at the start of each block.
    starts: Vec<State>,
}

/// All violations in a cubin, ordered by function and offset. Fails if the target is unknown.
pub fn check(cubin: &Cubin) -> Result<Vec<Report>, String> {
    check_by(cubin, Latency::demanded)
}

/// The same with the larger distances that this compiler's scheduler keeps, for our own cubins.
pub fn check_kept(cubin: &Cubin) -> Result<Vec<Report>, String> {
    check_by(cubin, Latency::of)
}

/// Selects one of the two latency tables of a target.
type Rows = fn(&Target) -> Option<&'static Latency>;

fn check_by(cubin: &Cubin, rows: Rows) -> Result<Vec<Report>, String> {
    let target = target_of(cubin)?;
    let mut reports = Vec::new();
    for function in &cubin.functions {
        reports.extend(Analysis::by(target, function, rows)?.reports());
    }
    if !reports.is_empty() {
        let lines = LineTable::of(cubin);
        for report in &mut reports {
            report.source = lines.at(&report.function, report.offset);
            report.earlier_source = report.earlier.as_ref().and_then(|(offset, _)| lines.at(&report.function, *offset));
        }
    }
    Ok(reports)
}

/// The target of a cubin.
pub fn target_of(cubin: &Cubin) -> Result<&'static Target, String> {
    let name = format!("sm_{}{}", cubin.sm, if cubin.accelerator { "a" } else { "" });
    Target::by_name(&name).ok_or_else(|| format!("the cubin is for {name}, which is no target"))
}

impl<'a> Analysis<'a> {
    /// Decodes a section and runs the dataflow to its fixpoint.
    pub fn new(target: &'static Target, function: &'a Function) -> Result<Analysis<'a>, String> {
        Analysis::by(target, function, Latency::demanded)
    }

    fn by(target: &'static Target, function: &'a Function, rows: Rows) -> Result<Analysis<'a>, String> {
        let latency = rows(target).ok_or_else(|| format!("{} has no decoder yet", target.name))?;
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0u128, |word, byte| word << 8 | u128::from(*byte));
        let decoded: Vec<Option<Inst>> =
            function.code.chunks(WORD as usize).map(|bytes| decode(target, word(bytes)).ok()).collect();
        let flow = Flow::new(function, &decoded);
        let insts = decoded.iter().map(|inst| inst.as_ref().map(|i| Known::new(latency, i))).collect();
        let starts = vec![State::default(); flow.blocks.len()];
        let mut analysis = Analysis { target, latency, function, insts, flow, starts };
        analysis.fixpoint();
        Ok(analysis)
    }

    /// The instruction at a position.
    pub fn inst(&self, at: usize) -> Option<&Inst> {
        self.insts.get(at)?.as_ref().map(|k| &k.inst)
    }

    /// Number of instructions.
    pub fn len(&self) -> usize {
        self.insts.len()
    }

    /// Whether there is no code.
    pub fn is_empty(&self) -> bool {
        self.insts.is_empty()
    }

    fn fixpoint(&mut self) {
        let mut work: SortedSet<usize> = (0..self.flow.blocks.len()).collect();
        while let Some(number) = work.pop_first() {
            let mut state = self.starts[number].clone();
            self.run(number, &mut state, &mut Silent);
            for succ in self.flow.blocks[number].succs.clone() {
                if self.starts[succ].join(&state) {
                    work.insert(succ);
                }
            }
        }
    }

    fn run(&self, number: usize, state: &mut State, observer: &mut impl Observer) {
        let block = &self.flow.blocks[number];
        let mut ages = pairs::Ages::default();
        for at in block.start..block.end {
            match &self.insts[at] {
                Some(known) => {
                    ages.step(self.latency, at, &known.inst, observer);
                    step(self.latency, at, known, state, observer);
                }
                None => {
                    observer.fault(at, Fault::Undecoded);
                    *state = State::default();
                }
            }
        }
    }

    /// Calls `each` with every dependence, in the order of the second instruction.
    pub fn dependences(&self, each: impl FnMut(Dependence)) {
        struct All<F>(F);
        impl<F: FnMut(Dependence)> Observer for All<F> {
            fn dependence(&mut self, dependence: Dependence) {
                (self.0)(dependence);
            }
            fn fault(&mut self, _: usize, _: Fault) {}
        }
        let mut all = All(each);
        for number in 0..self.flow.blocks.len() {
            self.run(number, &mut self.starts[number].clone(), &mut all);
        }
    }

    /// All violations in the section.
    pub fn reports(&self) -> Vec<Report> {
        let mut found = Found { analysis: self, reports: Vec::new() };
        for number in 0..self.flow.blocks.len() {
            self.run(number, &mut self.starts[number].clone(), &mut found);
        }
        for at in 0..self.insts.len().saturating_sub(1) {
            if let (Some(first), Some(second)) = (self.inst(at), self.inst(at + 1)) {
                let set = [first.ctrl.write_bar, first.ctrl.read_bar];
                let early = first.ctrl.stall == 1;
                let waits = |b: &&u8| early && **b != NONE && second.ctrl.wait >> **b & 1 != 0;
                set.iter().filter(waits).for_each(|b| found.fault(at, Fault::TooSoon { board: *b }));
            }
        }
        self.stale(|at, stale| {
            let text = format!("R{} is read as it was kept for reuse at +{:#06x}", stale.register, stale.kept * 16);
            let mut report = self.report(at, text + ", and has been written since");
            report.earlier = Some((u64::from(stale.written) * WORD, self.text(stale.written as usize)));
            report.register = Some(format!("R{}", stale.register));
            found.reports.push(report);
        });
        crate::sorted::sort(&mut found.reports);
        found.reports.dedup();
        found.reports
    }

    /// The instructions of each block with their forms; empty if none is marked for reuse and `all`
    /// is false.
    fn forms(&self, all: bool) -> Vec<(usize, Vec<(&'static Form, Inst)>)> {
        let marked = |known: &Known| known.inst.args.iter().any(|arg| arg.reuse);
        if !all && !self.insts.iter().flatten().any(marked) {
            return Vec::new();
        }
        let one = |known: &Option<Known>| {
            let inst = known.as_ref().map_or_else(|| Inst::new(Op::NOP), |known| known.inst);
            pick(self.target, &inst).ok().map(|(form, _)| (form, inst))
        };
        let block = |b: &Block| Some((b.start, self.insts[b.start..b.end].iter().map(one).collect::<Option<_>>()?));
        self.flow.blocks.iter().filter_map(block).collect()
    }

    /// Calls `f` with each read of a stale value from the reuse cache, within a block.
    fn stale(&self, mut f: impl FnMut(usize, Stale)) {
        for (start, block) in self.forms(false) {
            let mut cache = Cache::default();
            for (at, (form, inst)) in (start..).zip(&block) {
                let operands = reuse::operands(form, inst);
                cache.step(&operands, reuse::written(inst), (at as u32, 1), |stale| f(at, stale));
            }
        }
    }

    /// For each instruction, the slots that are marked for reuse and those that this compiler would
    /// mark under the same control fields.
    pub fn reuse(&self) -> Vec<(usize, u8, u8)> {
        let marks = |(form, inst): &(&Form, Inst)| {
            reuse::operands(form, inst).iter().filter(|o| o.kept).fold(0u8, |mask, o| mask | 1 << o.slot)
        };
        let of = |(start, block): (usize, Vec<_>)| {
            let wanted = reuse::wanted(&block);
            let both = block.iter().map(marks).zip(wanted);
            both.enumerate().map(|(i, (set, wanted))| (start + i, set, wanted)).collect::<Vec<_>>()
        };
        self.forms(true).into_iter().flat_map(of).collect()
    }

    fn text(&self, at: usize) -> String {
        self.inst(at).map_or("no instruction".into(), |inst| text(self.target, inst, at as u64 * WORD, None))
    }

    fn report(&self, at: usize, message: String) -> Report {
        Report {
            function: self.function.name.clone(),
            offset: at as u64 * WORD,
            instruction: self.text(at),
            earlier: None,
            source: None,
            earlier_source: None,
            register: None,
            message,
        }
    }
}

struct Found<'a> {
    analysis: &'a Analysis<'a>,
    reports: Vec<Report>,
}

impl Observer for Found<'_> {
    fn dependence(&mut self, d: Dependence) {
        if !d.is_hazard() {
            return;
        }
        let register = format!("{:?}{}", d.file, d.register);
        let verb = match d.kind {
            Kind::ReadAfterWrite => "is read before it is written",
            Kind::WriteAfterWrite => "is written before the write that came first",
            Kind::WriteAfterRead => "is written before it is read",
        };
        let how = match d.needed {
            Needed::Cycles(n) => format!("{} cycles, {n} needed", d.age),
            Needed::Scoreboard if d.boards == 0 => "nothing announces it".to_string(),
            Needed::Scoreboard => {
                let boards: Vec<String> =
                    (0..6).filter(|b| d.boards >> b & 1 != 0).map(|b: u8| b.to_string()).collect();
                format!("scoreboard {} is not waited for", boards.join(" or "))
            }
        };
        let mut report = self.analysis.report(d.second, format!("{register} {verb}: {how}"));
        report.earlier = Some((d.first as u64 * WORD, self.analysis.text(d.first)));
        report.register = Some(register);
        self.reports.push(report);
    }

    fn fault(&mut self, at: usize, fault: Fault) {
        let message = match fault {
            Fault::Stall { least } => format!("a stall below {least}"),
            Fault::Stay => "`stay` with a stall that it does not go with".to_string(),
            Fault::ControlSets => "a branch that sets a scoreboard".to_string(),
            Fault::WaitsBehindArrival { boards } => {
                format!("a product waits behind its arrival for the scoreboards {boards:#04x} of its general registers")
            }
            Fault::Apart { needed, age } => {
                format!("{age} cycles behind what it must keep its distance from, {needed} are required")
            }
            Fault::TooSoon { board } => format!("scoreboard {board} is waited for one cycle after it is set"),
            Fault::Unannounced => "reads without a scoreboard may be in flight at a call".to_string(),
            Fault::Unready => "a result that a callee might read too early".to_string(),
            Fault::InFlight { boards } => {
                let list: Vec<String> = (0..6).filter(|b| boards >> b & 1 != 0).map(|b: u8| b.to_string()).collect();
                format!("scoreboard {} in flight where control leaves the function", list.join(" and "))
            }
            Fault::Undecoded => "a word that is no instruction".to_string(),
        };
        let report = self.analysis.report(at, message);
        self.reports.push(report);
    }
}
