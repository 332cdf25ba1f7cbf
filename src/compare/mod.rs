//! Compares the code of two cubins, function by function: resources, opcodes, pressure, listing,
//! and what a launch costs.
//!
//! The cubins may come from this compiler or from ptxas, and may be for different targets. What is
//! compared is read from the bytes alone; live registers are those of [`liveness`](crate::sass::
//! liveness). [`text`] writes the parts as text.

mod align;
mod launch;
pub mod text;

pub use launch::{Launch, Ran};

use crate::arrays::Each;
use crate::cubin::line_table::LineTable;
use crate::cubin::{Cubin, Function};
use crate::sass::flow::WORD;
use crate::sass::liveness::{Liveness, Register};
use crate::sass::{self, Inst, decode};
use crate::sorted::SortedMap;
use crate::tables::latency::RegFile;
use crate::tables::{Mod, Op, Role, Says, Target};

/// One of the two cubins.
pub struct Side<'a> {
    /// Its name in messages: the path of the file.
    pub name: &'a str,
    pub cubin: &'a Cubin,
    pub target: &'static Target,
    lines: LineTable,
}

/// A function of a cubin, decoded.
pub struct Code<'a> {
    side: &'a Side<'a>,
    function: &'a Function,
    insts: Vec<Option<Inst>>,
    live: Liveness,
    /// Names of branch targets by index of the instruction.
    labels: SortedMap<usize, String>,
}

/// The figures of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Registers as the ELF file states them.
    pub registers: u32,
    /// Bytes of the stack frame, as the ELF file states them.
    pub frame: u32,
    /// Bytes that its stores to local memory write and its loads read, each counted once: spills,
    /// and variables of the program.
    pub stores: u32,
    pub loads: u32,
    /// Instructions without NOPs.
    pub instructions: usize,
}

/// The place where most registers of a file are occupied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peak {
    /// Byte offset of the instruction.
    pub offset: u64,
    pub count: usize,
    /// The registers, each with the byte offsets of the instructions that its value may come from.
    pub registers: Vec<(Register, Vec<u64>)>,
}

impl<'a> Side<'a> {
    /// Prepares a cubin for comparison.
    ///
    /// # Errors
    ///
    /// A cubin for an architecture that is no target, or has no decoder.
    pub fn new(name: &'a str, cubin: &'a Cubin) -> Result<Side<'a>, String> {
        let target = sass::hazards::target_of(cubin).map_err(|message| format!("{name}: {message}"))?;
        if target.generation.is_none() {
            return Err(format!("{name}: {} has no decoder yet", target.name));
        }
        Ok(Side { name, cubin, target, lines: LineTable::of(cubin) })
    }

    /// Decodes a function.
    ///
    /// # Errors
    ///
    /// A function that the cubin does not have.
    pub fn code(&'a self, function: &str) -> Result<Code<'a>, String> {
        let found = self.cubin.function(function);
        let function = found.ok_or_else(|| format!("{}: the cubin has no function {function}", self.name))?;
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0u128, |word, byte| word << 8 | u128::from(*byte));
        let decoded = |bytes: &[u8]| decode(self.target, word(bytes)).ok();
        let insts: Vec<Option<Inst>> = function.code.chunks(WORD as usize).map(decoded).collect();
        let live = Liveness::new(function, &insts);
        let labels = labels(function, &insts);
        Ok(Code { side: self, function, insts, live, labels })
    }
}

/// The names of functions that both cubins have, in the order of the first.
///
/// # Errors
///
/// None at all.
pub fn common(a: &Side, b: &Side) -> Result<Vec<String>, String> {
    let names = a.cubin.functions.iter().map(|function| function.name.clone());
    let both: Vec<String> = names.filter(|name| b.cubin.function(name).is_some()).collect();
    if both.is_empty() {
        return Err(format!("{} and {} have no function in common", a.name, b.name));
    }
    Ok(both)
}

impl Code<'_> {
    /// The figures of the function.
    pub fn figures(&self) -> Figures {
        let mut figures =
            Figures { registers: self.function.registers, frame: self.function.stack.frame, ..Figures::default() };
        for inst in &self.insts {
            figures.instructions += usize::from(inst.as_ref().is_none_or(|inst| inst.op != Op::NOP));
            let Some(inst) = inst else { continue };
            match inst.op {
                Op::STL => figures.stores += local_bytes(inst, Role::B),
                Op::LDL => figures.loads += local_bytes(inst, Role::D),
                _ => {}
            }
        }
        figures
    }

    /// How many instructions of each opcode there are, without NOPs.
    pub fn opcodes(&self) -> SortedMap<&'static str, usize> {
        let mut counts = SortedMap::new();
        for inst in &self.insts {
            match inst {
                Some(inst) if inst.op == Op::NOP => {}
                Some(inst) => *counts.entry(inst.op.info().text).or_default() += 1,
                None => *counts.entry(UNKNOWN).or_default() += 1,
            }
        }
        counts
    }

    /// Where most registers of a file are occupied; `None` if none ever is.
    pub fn peak(&self, file: RegFile) -> Option<Peak> {
        let (at, count) = self.live.peak(file)?;
        let offset = |at: usize| at as u64 * WORD;
        let of_file = self.live.occupied(at).registers().filter(|register| register.0 == file);
        let from = |r: Register| (r, self.live.definitions(at, r).into_iter().map(offset).collect());
        Some(Peak { offset: offset(at), count, registers: of_file.map(from).collect() })
    }

    /// The numbers of occupied registers of each file at each instruction.
    pub fn pressure(&self) -> Vec<[usize; 4]> {
        let files = [RegFile::R, RegFile::UR, RegFile::P, RegFile::UP];
        (0..self.insts.len()).map(|at| files.each(|file| self.live.occupied(at).count(file))).collect()
    }

    /// An instruction as text.
    fn text(&self, at: usize) -> String {
        let named = |offset: u64| self.labels.get(&((offset / WORD) as usize)).cloned();
        match self.insts.get(at) {
            Some(Some(inst)) => sass::text(self.side.target, inst, at as u64 * WORD, Some(&named)),
            _ => UNKNOWN.to_string(),
        }
    }

    /// The source line of an instruction in brackets, if the cubin has line tables.
    fn line(&self, offset: u64) -> String {
        let line = self.side.lines.at(&self.function.name, offset);
        line.map_or(String::new(), |line| format!(" [{line}]"))
    }
}

/// How a word that does not decode is shown.
const UNKNOWN: &str = "unknown word";

/// Bytes that an access to local memory moves.
fn local_bytes(inst: &Inst, role: Role) -> u32 {
    match Mod::Size.says(Says::Bytes, inst.modifier(Mod::Size)) {
        part @ 1..4 => part.into(),
        _ => {
            let role = inst.op.info().roles.iter().find(|r| r.role == role);
            role.map_or(0, |role| u32::from(sass::widths::width(inst, role)) * 4)
        }
    }
}

/// Names of branch targets and of functions inside the section, by index.
fn labels(function: &Function, insts: &[Option<Inst>]) -> SortedMap<usize, String> {
    let mut labels: SortedMap<usize, String> = SortedMap::new();
    let inner = function.labels.iter().map(|label| ((label.offset / WORD) as usize, label.name.clone()));
    labels.extend(inner);
    let mut targets = Vec::new();
    for (at, inst) in insts.iter().enumerate() {
        let Some(inst) = inst else { continue };
        let distances = inst.args.iter().filter(|arg| arg.kind == sass::ArgKind::Label).map(|arg| arg.val);
        targets.extend(distances.map(|distance| (at as u64 * WORD + WORD).wrapping_add(distance)));
    }
    let listed = function.sites.indirect_branches.iter().flat_map(|branch| &branch.targets);
    targets.extend(listed.map(|target| u64::from(*target)));
    targets.retain(|target| target % WORD == 0 && ((target / WORD) as usize) < insts.len());
    targets.sort_unstable();
    targets.dedup();
    for (number, target) in targets.into_iter().enumerate() {
        labels.entry((target / WORD) as usize).or_insert_with(|| format!(".L_{number}"));
    }
    labels
}
