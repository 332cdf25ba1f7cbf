//! Runs one kernel of a cubin: sets up what the driver would, then simulates it.
//!
//! Constant bank 0 holds exactly what the target's tables say that a launch provides. Every buffer
//! is an allocation of its own with gaps around it, and the addresses of code and of the shared and
//! local windows overlap no buffer. Arguments are updated in place.

use super::fault::Fault;
use super::launch::{ArgValue, place};
use super::link::{CODE_BASE, CodeImage, place_variables};
use super::memory::Global;
use super::ops::texture::DESCRIPTION;
use super::patches;
use super::report::Report;
use super::sass::grid::{self, Stats};
use super::sass::predecode::{Lifted, predecode_all};
use super::sass::sanitizer::cycle_model::Cost;
pub use super::sass::sanitizer::cycle_model::{Cycles, Spent};
use super::sass::sanitizer::jitter::Jitter;
use super::sass::sanitizer::timing::Timing;
use super::sass::sanitizer::{Note, Watch};
use super::sass::setup::{Banks, Setup};
use super::sass::stop::Stop;
use super::sass::words::Words;
use crate::cubin::line_table::{LineTable, SourceLine};
use crate::cubin::patches::PatchTable;
use crate::cubin::{self, Cubin, Function};
use crate::sass;
use crate::sass::reuse::operands;
use crate::sorted::SortedMap;
use crate::tables::elf::RelocRow;
use crate::tables::encoding::special_text;
use crate::tables::latency::Latency;
use crate::tables::memory::{SPECIAL, SpecialFrom};
use crate::tables::ptx::SpecialRegister;
use crate::tables::throughput::Throughput;
use crate::tables::{Feature, Generation, GenerationInfo, Role, Target};
use std::cell::OnceCell;

/// Generic address of the shared window.
const SHARED_WINDOW: u64 = 0x7fa0 << 32;
/// Generic address of the local window.
const LOCAL_WINDOW: u64 = 0x7fb0 << 32;
/// Local memory of a lane for nested calls, in addition to the size that the cubin states, in
/// bytes.
const CALL_STACK: u32 = 0x1000;
/// Least stack of a lane in bytes, whatever the cubin states: the driver's default limit.
const STACK: u32 = 0x400;
/// The uniform register that is zero on kernel entry, on targets that have one.
const ENTRY_FLAG: u8 = 2;
/// Default limit on the instructions of all warps.
const STEP_LIMIT: u64 = 1 << 32;

/// Most blocks of a cluster, more than any GPU starts unasked.
const MOST_OF_CLUSTER: u32 = 16;

/// Most bytes of shared memory in a block, more than any GPU has.
const MOST_SHARED: u64 = 1 << 20;
/// Most bytes of local memory of a thread: the limit of the programming model.
const MOST_LOCAL: u64 = 512 << 10;
/// Most bytes of a module's variables that the simulator accepts.
const MOST_GLOBAL: u64 = 1 << 32;
/// Tables of descriptions: of textures, samplers and surfaces.
const DESCRIPTION_TABLES: u32 = 3;
/// How the sizes of descriptions are called where samplers have their own.
const SAMPLERS_APART: &str = ".nv.independent.";

/// Most bytes of constants, and of a kernel's branch tables: two banks.
const MOST_CONSTANT: u64 = 128 << 10;

/// The launch configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks in the grid, by axis.
    pub grid: [u32; 3],
    /// Threads in a block, by axis.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub smem: u32,
}

/// The target that a cubin was compiled for.
///
/// # Errors
///
/// An architecture without a row in the table of targets.
pub fn target_of(cubin: &Cubin) -> Result<&'static Target, Fault> {
    let name = format!("sm_{}{}", cubin.sm, if cubin.accelerator { "a" } else { "" });
    Target::by_name(&name).ok_or_else(|| Fault::new(format!("the cubin is for {name}, which is no target")))
}

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Whether the sanitizer checks undefined values, races, barriers and registers.
    pub watched: bool,
    /// Whether the sanitizer also models time and reports hazards: a result that is read or
    /// overwritten too early.
    pub timed: bool,
    /// A seed that varies everything a program must not rely on; needs the sanitizer.
    pub jitter: Option<u64>,
    /// Whether jitter also varies the last place of approximate functions.
    pub noise: bool,
    /// Receives a line for each executed instruction; needs the sanitizer.
    pub trace: Option<fn(&str)>,
    /// Sees each lane before each instruction, as a debugger that stops there does.
    pub inspect: Option<fn(&mut Stop<'_>)>,
    /// Limit on the instructions of all warps.
    pub step_limit: u64,
    /// Whether the outcome says where the cycles of the slowest block went; needs time.
    pub profile: bool,
    /// Whether the profile is of every block, not of the slowest one.
    pub every_block: bool,
    /// Bytes of stack that a thread has if its kernel states no larger frame, which `alloca` and
    /// recursion take from: what `cudaLimitStackSize` is for the driver.
    pub stack: u32,
}

impl Default for How {
    fn default() -> How {
        let step_limit = STEP_LIMIT;
        How {
            watched: true,
            timed: true,
            jitter: None,
            noise: true,
            trace: None,
            inspect: None,
            step_limit,
            profile: false,
            every_block: false,
            stack: STACK,
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Whether the program ran to its end.
    pub ended: bool,
    /// Instruction counts.
    pub stats: Stats,
    /// The cost estimate, if time was modelled.
    pub cycles: Option<Cycles>,
    /// What the program did wrong; a fault that stopped the run is the last one.
    pub reports: Vec<Report>,
    /// Findings that are not errors.
    pub notes: Vec<Report>,
    /// How often each instruction was executed, once per group of lanes, by instruction index.
    pub executed: Vec<u64>,
    /// How often each opcode was executed, once per group of lanes.
    pub counts: SortedMap<&'static str, u64>,
    /// Where the cycles of the slowest block, or of every block, went: what the warps issued, in
    /// order.
    pub profile: Vec<Profiled>,
}

/// An instruction in a profile.
#[derive(Clone, Debug)]
pub struct Profiled {
    /// Index in the linked code.
    pub index: u32,
    pub text: String,
    pub spent: Spent,
    /// How often the launch executed it, once per group of lanes.
    pub executed: u64,
    /// Its source line, if the cubin has line tables.
    pub source: Option<SourceLine>,
}

impl Outcome {
    /// The instruction counts and the cost in one line.
    pub fn summary(&self) -> String {
        let run = format!("{} instructions, {} of lanes", self.stats.instructions, self.stats.lane_instructions);
        match self.cycles {
            Some(Cycles { block, issue, pipe }) => {
                format!("{run}; about {block} cycles a block (issue {issue}, pipe {pipe})")
            }
            None => run,
        }
    }

    /// The statistics, or the first report as an error.
    pub fn clean(self) -> Result<Stats, Fault> {
        self.reports.into_iter().next().map_or(Ok(self.stats), |report| Err(report.fault))
    }
}

/// Runs a kernel of a cubin with default options and turns any report into an error.
///
/// # Errors
///
/// An invalid cubin or launch, or what the program did wrong.
pub fn run(bytes: &[u8], kernel: &str, shape: Shape, args: &mut [ArgValue]) -> Result<Stats, Fault> {
    run_as(bytes, kernel, shape, args, How::default())?.clean()
}

/// Runs a kernel of a cubin with options. What the program does wrong is in the outcome.
///
/// # Errors
///
/// An invalid cubin or launch.
pub fn run_as(bytes: &[u8], kernel: &str, shape: Shape, args: &mut [ArgValue], how: How) -> Result<Outcome, Fault> {
    run_in_clusters(bytes, kernel, shape, None, args, how)
}

/// The same with clusters of a size that the launch determines, if it does.
///
/// # Errors
///
/// An invalid cubin or launch.
pub fn run_in_clusters(
    bytes: &[u8],
    kernel: &str,
    shape: Shape,
    cluster: Option<[u32; 3]>,
    args: &mut [ArgValue],
    how: How,
) -> Result<Outcome, Fault> {
    let mut cubin = cubin::read(bytes).map_err(|error| Fault::new(error.to_string()))?;
    let named = cubin.functions.iter_mut().filter(|function| function.name == kernel);
    named.for_each(|function| function.launch.cluster = cluster.or(function.launch.cluster));
    let code = decode(&cubin, kernel)?;
    run_decoded(&cubin, kernel, shape, args, &code, how)
}

/// Decodes the code of a kernel and of all functions that it may call; an invalid word is an error
/// in its place.
///
/// # Errors
///
/// An unknown target or kernel.
pub fn decode(cubin: &Cubin, kernel: &str) -> Result<Vec<Result<Lifted, String>>, Fault> {
    let target = target_of(cubin)?;
    let Some(function) = cubin.function(kernel) else {
        return Err(Fault::new(format!("the cubin has no kernel {kernel}")));
    };
    Ok(CodeImage::of(cubin, function).bytes.chunks_exact(16).map(|bytes| lift(target, bytes)).collect())
}

/// Decodes one instruction.
fn lift(target: &'static Target, bytes: &[u8]) -> Result<Lifted, String> {
    let word = bytes.iter().rev().fold(0u128, |word, byte| word << 8 | u128::from(*byte));
    let inst = sass::decode(target, word).map_err(|error| format!("invalid instruction {error}"))?;
    let number = inst.arg(Role::S).val as u8;
    let special = special_text(target, number);
    Ok(Lifted { words: Words::of(&inst), special: special.unwrap_or_default().to_string(), inst })
}

/// Runs a kernel whose instructions have been decoded by [`decode`].
///
/// `code` has one entry per 16 bytes of the linked code; an invalid word faults when it is reached.
///
/// # Errors
///
/// An invalid launch. What the program does wrong is in the outcome.
pub fn run_decoded(
    cubin: &Cubin,
    kernel: &str,
    shape: Shape,
    args: &mut [ArgValue],
    code: &[Result<Lifted, String>],
    how: How,
) -> Result<Outcome, Fault> {
    let Some(function) = cubin.function(kernel).filter(|f| f.kernel) else {
        return Err(Fault::new(format!("the cubin has no kernel {kernel}")));
    };
    let target = target_of(cubin)?;
    let (Some(info), Some(generation)) = (target.info(), target.generation) else {
        return Err(Fault::new(format!("the encoding of {} is not built", target.name)));
    };
    check_shape(function, shape)?;
    let cluster = function.launch.cluster.unwrap_or([1; 3]);
    check_cluster(shape.grid, cluster)?;
    check_room(cubin, function, info, shape, how.stack)?;
    let mut global = Global::default();
    let changes = function.launch.reconfigures;
    let held = registers(cubin, function) as usize;
    let mut setup = Setup {
        grid: shape.grid,
        block: shape.block,
        cluster,
        registers: if changes { 256 } else { (held + 8).min(256) },
        // A warp is given whole units.
        entry_registers: changes.then_some(held.next_multiple_of(info.reg_unit as usize) as u16),
        zeroed: target.has(Feature::EntryFlagInUniformRegister).then_some(ENTRY_FLAG),
        shared_bytes: shared_bytes(function, info, shape.smem),
        reserved_bytes: info.shared_base as usize,
        tensor: tensor_at(target, function),
        local_bytes: local_bytes(cubin, function, how.stack) as usize,
        shared_window: SHARED_WINDOW,
        local_window: LOCAL_WINDOW,
        code_base: CODE_BASE,
        step_limit: how.step_limit,
        inspect: how.inspect,
        ..Setup::default()
    };
    let explicit = function.launch.explicit_cluster || !setup.is_alone();
    driver_constants(&mut setup, (info, generation), shape, explicit);
    let buffers = place_arguments(&mut setup.banks, &mut global, function, args)?;
    let mut linked = cubin.functions.iter().flat_map(|function| &function.code_relocs);
    let apart = linked.any(|reloc| reloc.symbol.starts_with(SAMPLERS_APART));
    place_descriptions(&mut setup.banks, &mut global, info, apart)?;
    let image = CodeImage::of(cubin, function);
    let symbols = place_variables(&mut setup.banks, &mut global, cubin, function, &image)?;
    patch(&mut setup.banks, cubin, function, shape)?;
    window_constants(&mut setup.banks, &mut global, info, symbols.constants(), function)?;
    let changed = symbols.relocated_code(&image);
    let linked: Vec<_>;
    let code = if changed.is_empty() {
        code
    } else {
        let lifted = |(i, old): (usize, &Result<Lifted, String>)| match changed.get(&(i as u64 * 16)) {
            Some(bytes) => lift(target, bytes),
            None => old.clone(),
        };
        linked = code.iter().enumerate().map(lifted).collect();
        &linked
    };
    (setup.code, setup.reasons) = predecode_all(&setup.banks, code);
    let declared = if changes { 256 } else { held };
    let lines = OnceCell::new();
    let line_of = |pc: u64| {
        let (function, offset) = image.place(pc)?;
        lines.get_or_init(|| LineTable::of(cubin)).at(function, offset)
    };
    let outcome = watched(&setup, &mut global, (target, code), declared, how, &line_of);
    for (arg, base) in args.iter_mut().zip(buffers) {
        if let (Some(bytes), Some(base)) = (arg.buffer_mut(), base) {
            bytes.copy_from_slice(global.bytes_at(base).unwrap_or_default());
        }
    }
    Ok(outcome)
}

/// Simulates a prepared launch and completes the findings with disassembly and source lines.
fn watched(
    setup: &Setup,
    global: &mut Global,
    (target, code): (&'static Target, &[Result<Lifted, String>]),
    declared: usize,
    how: How,
    line_of: &dyn Fn(u64) -> Option<SourceLine>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let done = if how.watched {
        let mut notes: Vec<Note> = setup.code.iter().map(|code| Note::of(code, declared)).collect();
        if how.trace.is_some() {
            for (i, (note, lifted)) in notes.iter_mut().zip(code).enumerate() {
                let pc = i as u64 * 16;
                note.text = lifted.as_ref().map_or(String::new(), |l| sass::text(target, &l.inst, pc, None));
                note.text += &line_of(pc).map_or(String::new(), |line| format!(" // {line}"));
            }
        }
        let latency = Latency::demanded(target).filter(|_| how.timed);
        let marked = |l: &Lifted| l.inst.args.iter().any(|arg| arg.reuse);
        let reuses = code.iter().flatten().any(marked);
        if let Some(latency) = latency {
            for (note, lifted) in notes.iter_mut().zip(code) {
                note.timing = lifted.as_ref().ok().map(|lifted| Timing::of(&lifted.inst, latency));
                if let (true, Some(timing), Ok(lifted)) = (reuses, &mut note.timing, lifted) {
                    let form = sass::pick(target, &lifted.inst).ok();
                    timing.reuse = form.map_or_else(Default::default, |(form, _)| operands(form, &lifted.inst));
                }
            }
        }
        let mut watch = Watch::new(notes, how.trace, latency);
        if let Some(throughput) = Throughput::of(target).filter(|_| how.timed) {
            let cost = |lifted: &Result<Lifted, String>| lifted.as_ref().ok().map(|l| Cost::of(&l.inst, throughput));
            watch.costs = code.iter().map(cost).collect();
        }
        watch.profile = how.profile.then(Vec::new);
        watch.every_block = how.every_block;
        watch.jitter = how.jitter.map(|seed| Jitter::new(seed).noisy(how.noise));
        let (done, stats, mut watch) = grid::run_watched(setup, global, watch);
        outcome.stats = stats;
        outcome.cycles = latency.map(|_| watch.cycles);
        let spent = watch.profile.take().unwrap_or_default();
        outcome.profile = profiled(spent, &watch.counts, (target, code), line_of);
        (outcome.reports, outcome.notes, outcome.executed) = watch.into_reports();
        for (lifted, count) in code.iter().zip(&outcome.executed).filter(|(_, count)| **count > 0) {
            if let Ok(lifted) = lifted {
                *outcome.counts.entry(lifted.inst.op.info().text).or_default() += count;
            }
        }
        done
    } else {
        grid::run(setup, global).map(|stats| outcome.stats = stats)
    };
    match done {
        Ok(()) => outcome.ended = true,
        Err(fault) => outcome.reports.push(Report::of(fault)),
    }
    for report in outcome.reports.iter_mut().chain(&mut outcome.notes) {
        let Some(pc) = report.fault.place.and_then(|place| place.pc) else { continue };
        let lifted = code.get(pc as usize / 16).and_then(|lifted| lifted.as_ref().ok());
        report.instruction = lifted.map_or(String::new(), |lifted| sass::text(target, &lifted.inst, pc, None));
        report.fault.source = line_of(pc);
    }
    outcome
}

/// The instructions of a profile that were issued.
fn profiled(
    all: Vec<Spent>,
    executed: &[u64],
    (target, code): (&'static Target, &[Result<Lifted, String>]),
    line_of: &dyn Fn(u64) -> Option<SourceLine>,
) -> Vec<Profiled> {
    let issued = (0u32..).zip(all).filter(|(_, spent)| spent.issued > 0);
    let line = |(index, spent): (u32, Spent)| {
        let pc = u64::from(index) * 16;
        let text = code[index as usize].as_ref().map_or(String::new(), |l| sass::text(target, &l.inst, pc, None));
        Profiled { index, text, spent, executed: executed[index as usize], source: line_of(pc) }
    };
    issued.map(line).collect()
}

fn check_shape(function: &Function, shape: Shape) -> Result<(), Fault> {
    if shape.grid.contains(&0) || shape.block.contains(&0) {
        return Err(Fault::new("a grid and a block have at least one of each"));
    }
    let threads = shape.block.iter().try_fold(1u32, |n, d| n.checked_mul(*d)).unwrap_or(u32::MAX);
    if threads > 1024 {
        return Err(Fault::new(format!("{threads} threads in a block; at most 1024 fit")));
    }
    match function.launch.required_threads {
        Some(required) if required != shape.block => {
            Err(Fault::new(format!("the kernel requires blocks of {required:?} threads and gets {:?}", shape.block)))
        }
        _ => Ok(()),
    }
}

/// Fills the words of constant banks that a host computes before the launch.
fn patch(banks: &mut Banks, cubin: &Cubin, function: &Function, shape: Shape) -> Result<(), Fault> {
    let Some(table) = PatchTable::of(cubin, &function.name).map_err(Fault::new)? else { return Ok(()) };
    let mut parameters = vec![0; function.param_bytes as usize];
    for param in &function.params {
        for at in u32::from(param.offset)..u32::from(param.offset) + u32::from(param.size) {
            let byte = banks.slice(0, function.param_base + at, 1)?[0];
            *parameters
                .get_mut(at as usize)
                .ok_or_else(|| Fault::new("a parameter lies outside of the parameters"))? = byte;
        }
    }
    let inputs = patches::Inputs { parameters: &parameters, sizes: patches::sizes(shape) };
    for (offset, word) in patches::words(&table, &inputs) {
        banks.put(table.bank, offset, &word.to_le_bytes());
    }
    Ok(())
}

/// Refuses sizes that no GPU supports before anything is allocated.
fn check_room(
    cubin: &Cubin,
    function: &Function,
    info: &GenerationInfo,
    shape: Shape,
    stack: u32,
) -> Result<(), Fault> {
    let image = |image: &Option<cubin::Image>| image.as_ref().map_or(0, |image| image.size);
    let rooms = [
        ("shared memory", shared_bytes(function, info, shape.smem) as u64, MOST_SHARED),
        ("local memory of a thread", local_bytes(cubin, function, stack).into(), MOST_LOCAL),
        ("variables", image(&cubin.global).saturating_add(image(&cubin.global_init)), MOST_GLOBAL),
        ("constants", image(&cubin.constant3).saturating_add(image(&cubin.constant4)), MOST_CONSTANT),
        ("branch tables", image(&function.constant2), MOST_CONSTANT),
    ];
    match rooms.iter().find(|(_, bytes, most)| bytes > most) {
        Some((what, bytes, most)) => Err(Fault::new(format!("{bytes} bytes of {what}; at most {most} are there"))),
        None => Ok(()),
    }
}

fn shared_bytes(function: &Function, info: &GenerationInfo, dynamic: u32) -> usize {
    let fixed = function.shared.map_or(u64::from(info.shared_base), |s| s.size);
    (fixed as usize).saturating_add(dynamic as usize)
}

/// The top of the stack is a multiple of 16 bytes, as ptxas expects. It is none of 32, so that code
/// which expects more is found out.
const STACK_UNIT: u32 = 16;

/// Registers of a lane: the maximum over the kernel and all functions that it may call.
fn registers(cubin: &Cubin, function: &Function) -> u32 {
    let behind = cubin.functions.iter().filter(|f| !f.kernel).map(|f| f.registers);
    behind.max().unwrap_or(0).max(function.registers)
}

fn local_bytes(cubin: &Cubin, function: &Function, least: u32) -> u32 {
    // All ones is how a linker states that the size is unknown.
    let min = function.stack.min.filter(|bytes| *bytes != u32::MAX).unwrap_or(0);
    let stated = min.max(function.stack.frame);
    // The sizes in a cubin include neither recursion nor indirect calls.
    let has_functions = !function.labels.is_empty() && function.stack.call_return.is_some();
    let calls = has_functions || cubin.functions.iter().any(|f| !f.kernel);
    let stack = stated.max(least).checked_next_multiple_of(STACK_UNIT).unwrap_or(stated);
    stack.saturating_add(if calls { CALL_STACK } else { 0 }) | STACK_UNIT
}

/// Checks that the grid has whole clusters.
///
/// # Errors
///
/// One that has not, or a cluster of more blocks than fit.
pub fn check_cluster(grid: [u32; 3], cluster: [u32; 3]) -> Result<(), Fault> {
    if cluster.contains(&0) || cluster.iter().any(|n| *n > MOST_OF_CLUSTER) {
        return Err(Fault::new(format!("a cluster of {cluster:?} blocks")));
    }
    if cluster.iter().product::<u32>() > MOST_OF_CLUSTER {
        return Err(Fault::new(format!("a cluster of {cluster:?} blocks; at most {MOST_OF_CLUSTER} fit")));
    }
    if grid.iter().zip(cluster).any(|(blocks, each)| !blocks.is_multiple_of(each)) {
        return Err(Fault::new(format!("a grid of {grid:?} blocks has no whole number of clusters of {cluster:?}")));
    }
    Ok(())
}

/// The axis of a register of three.
fn axis(register: SpecialRegister) -> usize {
    usize::from(register.name().as_bytes().last().map_or(0, |last| last.saturating_sub(b'x'))).min(2)
}

/// Launch parameters that the driver provides.
fn launch_number(register: SpecialRegister, shape: Shape, cluster: [u32; 3]) -> Option<u32> {
    Some(match register {
        SpecialRegister::DynamicSmemSize => shape.smem,
        SpecialRegister::ClusterNctaidX | SpecialRegister::ClusterNctaidY | SpecialRegister::ClusterNctaidZ => {
            cluster[axis(register)]
        }
        SpecialRegister::ClusterNctarank => cluster.iter().product(),
        SpecialRegister::NclusteridX | SpecialRegister::NclusteridY | SpecialRegister::NclusteridZ => {
            shape.grid[axis(register)] / cluster[axis(register)]
        }
        _ => return None,
    })
}

fn driver_constants(
    setup: &mut Setup,
    (info, generation): (&GenerationInfo, Generation),
    shape: Shape,
    explicit: bool,
) {
    let (cluster, stack_top) = (setup.cluster, setup.local_bytes as u32);
    let banks = &mut setup.banks;
    for i in 0..3 {
        banks.put(0, info.ntid + 4 * i, &shape.block[i as usize].to_le_bytes());
        banks.put(0, info.nctaid + 4 * i, &shape.grid[i as usize].to_le_bytes());
    }
    for home in SPECIAL.iter().filter(|home| home.on >> generation as u8 & 1 != 0) {
        match home.from {
            SpecialFrom::Word | SpecialFrom::Cga if let Some(number) = launch_number(home.register, shape, cluster) => {
                banks.put(0, home.at, &number.to_le_bytes());
            }
            SpecialFrom::Flag => banks.put(0, home.at, &u32::from(explicit).to_le_bytes()),
            // Values that a program must not rely on.
            SpecialFrom::Word | SpecialFrom::Cga | SpecialFrom::Less | SpecialFrom::Most | SpecialFrom::MostCga
                if banks.slice(0, home.at, 4).is_err() =>
            {
                banks.put(0, home.at, &[0; 4]);
            }
            // One domain of all processors.
            SpecialFrom::Nibble => banks.put(0, home.at, &[0; 128]),
            SpecialFrom::Pair => banks.put(0, home.at, &[0; 8]),
            SpecialFrom::Quotient => {
                // Whoever multiplies by it and cuts the fraction off divides.
                let each = cluster[axis(home.register)] as f32;
                let inverse = if each == 1.0 { 1.0 } else { (1.0 / each).next_up() };
                banks.put(0, home.at, &inverse.to_le_bytes());
            }
            _ => {}
        }
    }
    if let Some(at) = info.alias_flag {
        banks.put(0, at, &0u32.to_le_bytes());
    }
    banks.put(0, info.stack_top, &stack_top.to_le_bytes());
    banks.put(0, info.local_window, &LOCAL_WINDOW.to_le_bytes());
    if let Some(at) = info.global_desc {
        // The simulator gives descriptors no meaning; zero is harmless if one is added to an
        // address.
        banks.put(0, at, &0u64.to_le_bytes());
    }
    if let Some(at) = info.shared_window {
        banks.put(0, at, &SHARED_WINDOW.to_le_bytes());
    }
}

/// Largest alignment of a parameter that a program relies on: that of a tensor map.
const PARAM_ALIGN: u32 = 64;

/// Fills the words of bank 0 that have what references name.
fn bind_references(banks: &mut Banks, function: &Function, bound: &[(String, u64)]) -> Result<(), Fault> {
    let mut words: SortedMap<u64, [u8; 4]> = SortedMap::new();
    for reloc in &function.references {
        let handle = bound.iter().find(|(name, _)| *name == reloc.symbol).map(|(_, handle)| *handle as u32);
        let unbound = || Fault::new(format!("no texture is bound to {}", reloc.symbol));
        let row = RelocRow::of(reloc.kind).ok_or_else(unbound)?;
        row.apply(words.entry(reloc.offset).or_default(), 0, handle.ok_or_else(unbound)?.into());
    }
    words.into_iter().for_each(|(at, word)| banks.put(0, at as u32, &word));
    Ok(())
}

/// Places the driver's descriptions of textures, samplers and surfaces, each by the number in its
/// handle, if a launch has any.
fn place_descriptions(banks: &mut Banks, global: &mut Global, info: &GenerationInfo, apart: bool) -> Result<(), Fault> {
    let count = global.textures().len() as u32;
    if count == 0 {
        return Ok(());
    }
    let mut table = vec![0; DESCRIPTION];
    for number in 1..=count {
        table.extend(global.texture(number, None)?.description(apart));
    }
    let base = global.allocate("descriptions of textures", table, false).to_le_bytes();
    for i in 0..DESCRIPTION_TABLES {
        banks.put(0, info.image_tables + 8 * i, &base);
    }
    Ok(())
}

/// Provides the generic windows of constants (whose copy is at `constants`) and of parameters:
/// read-only copies in global memory.
fn window_constants(
    banks: &mut Banks,
    global: &mut Global,
    info: &GenerationInfo,
    constants: u64,
    function: &Function,
) -> Result<(), Fault> {
    if function.param_base < info.param_window_at {
        let (name, at) = (&function.name, function.param_base);
        return Err(Fault::new(format!(
            "the parameters of {name} begin at {at:#x} of constant bank 0, before their window"
        )));
    }
    banks.put(0, info.const_window, &constants.to_le_bytes());
    let bytes = function.params.iter().map(|p| u32::from(p.offset) + u32::from(p.size)).max().unwrap_or(0);
    // An address has the alignment of the offset in the bank.
    let before = function.param_base % PARAM_ALIGN;
    let mut image = vec![0; (before + bytes) as usize];
    for param in &function.params {
        let (at, size) = (usize::from(param.offset), usize::from(param.size));
        for (i, byte) in image[before as usize + at..][..size].iter_mut().enumerate() {
            *byte = banks.slice(0, function.param_base + (at + i) as u32, 1)?[0];
        }
    }
    let base = global.allocate("parameters", image, false) + u64::from(before);
    let window = base.wrapping_sub(u64::from(function.param_base - info.param_window_at));
    banks.put(0, info.param_window, &window.to_le_bytes());
    let last = bytes.max(1) - 1;
    match info.param_window_at {
        0 => banks.put(0, info.param_end, &(function.param_base + last).to_le_bytes()),
        _ => banks.put(0, info.param_end, &(base + u64::from(last)).to_le_bytes()),
    }
    Ok(())
}

/// Writes the arguments to the parameter area; returns the address of each buffer.
fn place_arguments(
    banks: &mut Banks,
    global: &mut Global,
    function: &Function,
    args: &[ArgValue],
) -> Result<Vec<Option<u64>>, Fault> {
    let allocate =
        |i: usize, bytes: &[u8], writable| Ok(global.allocate(&format!("argument {i}"), bytes.to_vec(), writable));
    let placed = place(args, allocate).map_err(Fault::new)?;
    let (has, gets) = (function.params.len(), placed.parameters.len());
    if has != gets {
        return Err(Fault::new(format!("{} has {has} parameters and gets {gets} arguments", function.name)));
    }
    for (i, (bytes, param)) in placed.parameters.iter().zip(&function.params).enumerate() {
        if bytes.len() != usize::from(param.size) {
            let (size, given) = (param.size, bytes.len());
            return Err(Fault::new(format!("parameter {i} of {} has {size} bytes, not {given}", function.name)));
        }
        banks.put(0, function.param_base + u32::from(param.offset), bytes);
    }
    global.name_textures(placed.textures);
    bind_references(banks, function, &placed.references)?;
    Ok(placed.buffers)
}

/// Where a block keeps what it allocates of tensor memory, and whether in pairs, if it allocates.
fn tensor_at(target: &Target, function: &Function) -> Option<(usize, bool)> {
    let (_, at) = crate::tables::elf::ElfTarget::of_sm(target.sm)?.tensor_partition()?;
    function.tensor.allocates.then_some((at as usize, function.tensor.pair))
}
