//! Compares the interpreter's memory after a program with that of our cubins.
//!
//! The input is a program, how to compile and run it, the contents of its buffer. The result is the
//! first difference, if any. All bytes are compared bit for bit, except the payloads of 64-bit NaNs
//! and the results in slots, which have error bounds. The simulator must report nothing. For some
//! programs, also the static checker must report nothing, words must survive decoding and printing,
//! and the IR must survive its text form after every phase.

use super::arguments::{self, Argument};
use super::pool::Judged;
use super::tree::{LOST, Program, RESULTS, SLOTS, STRIDE};
use crate::judge;
use crate::random::Random;
use sassafras::compile::{Options, compile};
use sassafras::sim::launch::ArgValue;
use sassafras::sim::ptx;
use sassafras::sim::run::{How, Shape, run_as};
use sassafras::tables::{Pass, Tunable};

/// Doubles among the results: first byte and how many.
const DOUBLES: (usize, usize) = (RESULTS + 144, 6);
/// A form's row in the buffer as its judge knows it: bytes, offset of the results, offset of its
/// first f32.
const FORM_ROW: (usize, usize) = (448, 160);
/// The compiler's message when one instruction (a matrix multiplication) needs more registers than
/// the limit allows.
const TOO_MANY: &str = "registers at one instruction";
/// Bytes of stack: the spilled values of a crowd, and what `alloca` takes.
const ROOM: u32 = 0x1000;
/// Instruction limit of one of our programs.
const STEPS: u64 = 1 << 24;

/// Targets, with weights.
pub const TARGETS: [&str; 22] = [
    "sm_75", "sm_75", "sm_80", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90", "sm_90", "sm_90a", "sm_90a", "sm_100",
    "sm_100", "sm_100a", "sm_100a", "sm_103a", "sm_107a", "sm_110a", "sm_120", "sm_120", "sm_120a", "sm_121",
];

/// One way of compiling and running.
#[derive(Clone, Debug)]
pub struct Way {
    pub options: Options,
    pub jitter: Option<u64>,
    /// Whether words, control fields and texts are checked as well.
    pub checked: bool,
}

/// One comparison: a target, and how to compile for it.
#[derive(Clone, Debug)]
pub struct Case {
    pub target: &'static str,
    pub ways: Vec<Way>,
}

/// The case of a seed.
pub fn case(seed: u64) -> Case {
    let mut random = Random::new(seed ^ 0x5eed);
    let target = TARGETS[random.below(TARGETS.len())];
    let plain = Options { fmad: false, verify_ir: true, ..Options::new(target) };
    let limit = Some([24, 32, 40, 64][random.below(4)]);
    let way = |options: Options| Way { options, jitter: None, checked: false };
    // One of three ways to compile; every third program uses two.
    let all = [
        way(plain.clone()),
        way(Options { max_registers: limit, ..plain.clone() }),
        way(Options { opt_level: random.below(3) as u8, ..plain }),
    ];
    let first = random.below(3);
    let count = if random.below(3) == 0 { 2 } else { 1 };
    let mut ways: Vec<Way> = (0..count).map(|n| all[(first + n) % 3].clone()).collect();
    let last = ways.len() - 1;
    ways[last].jitter = (random.below(4) == 0).then_some(seed);
    if random.below(8) == 0 {
        let one = random.below(ways.len());
        ways[one].checked = true;
        ways[one].options.verify_ir = true;
    }
    let one = random.below(ways.len());
    vary(&mut ways[one].options, &mut random);
    Case { target, ways }
}

/// Of eight programs one gets other values of tunables, and one does without some optional passes.
fn vary(options: &mut Options, random: &mut Random) {
    match random.below(8) {
        0 => {
            for tunable in Tunable::ALL {
                let tried = tunable.info().tried;
                if random.below(2) == 0 {
                    options.tuning = options.tuning.with(tunable, tried[random.below(tried.len())]);
                }
            }
        }
        1 => {
            let optional = Pass::ALL.into_iter().filter(|pass| pass.info().optional);
            options.passes.disabled = optional.filter(|_| random.below(6) == 0).collect();
        }
        _ => {}
    }
}

/// How a program is compiled, as the command line says it.
fn command(options: &Options) -> String {
    let Options { target, opt_level, max_registers, tuning, passes, .. } = options;
    let disabled: Vec<&str> = passes.disabled.iter().map(|pass| pass.name()).collect();
    let more = if disabled.is_empty() { String::new() } else { format!(" --disable-pass {}", disabled.join(",")) };
    let tuned = tuning.to_string().replace(' ', ",");
    let tuned = if tuned.is_empty() { tuned } else { format!(" --tune {tuned}") };
    format!("-arch {target} -O{opt_level} --maxrregcount {max_registers:?}{tuned}{more}")
}

/// Initial contents of a buffer.
pub fn input(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(!seed);
    let mut buffer = vec![0u8; bytes];
    let edges = [0, 1, 2, 31, 32, 0x7f, 0x80, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x3f80_0000, 0x3c00_3c00];
    for row in buffer.chunks_mut(STRIDE) {
        // Results start as zeros.
        let end = RESULTS.min(row.len());
        for word in row[..end].chunks_mut(4) {
            let random_word = random.below(1 << 16) as u32 | (random.below(1 << 16) as u32) << 16;
            let value = match random.below(4) {
                0 => edges[random.below(edges.len())],
                1 => random_word >> random.below(32),
                // A float close to 1.
                2 => random_word & 0x83ff_ffff | 0x3c00_0000,
                _ => random_word,
            };
            word.copy_from_slice(&value.to_le_bytes());
        }
    }
    buffer
}

/// What a program is started with.
struct Start<'i> {
    shape: Shape,
    input: &'i [u8],
    arguments: Vec<Argument>,
}

impl Start<'_> {
    fn new<'i>(program: &Program, input: &'i [u8]) -> Start<'i> {
        let shape = Shape { grid: [program.blocks() as u32, 1, 1], block: [program.threads as u32, 1, 1], smem: 0 };
        Start { shape, input, arguments: program.arguments() }
    }

    fn values(&self) -> Vec<ArgValue> {
        let buffer = ArgValue::Buffer { bytes: self.input.to_vec(), writable: true };
        std::iter::once(buffer).chain(arguments::values(&self.arguments)).collect()
    }
}

/// The memory that a run leaves: the buffer, and then those of the other arguments.
fn memory(values: &[ArgValue]) -> Vec<u8> {
    values.iter().filter_map(ArgValue::buffer).flat_map(|(bytes, _)| bytes.iter().copied()).collect()
}

/// The memory that the interpreter leaves.
pub fn interpreted(program: &Program, target: &str, input: &[u8]) -> Result<Vec<u8>, String> {
    interpreted_text(&program.text(target, true), &Start::new(program, input))
}

fn interpreted_text(text: &str, start: &Start) -> Result<Vec<u8>, String> {
    let (module, diagnostics) = ptx::parse(text.as_bytes());
    let module = module.ok_or_else(|| format!("the program: {}", diagnostics[0].render("k.ptx", text)))?;
    let mut values = start.values();
    ptx::run(&module, "k", start.shape, &mut values).map_err(|fault| format!("the interpreter: {fault}"))?;
    Ok(memory(&values))
}

/// Whether a limit on registers is refused as ptxas refuses it, or as is listed among our limits.
fn needs_more(text: &str, message: &str) -> bool {
    (text.contains("mma") || text.contains("tcgen05")) && message.contains(TOO_MANY)
}

/// Compiles and runs a program in one way; `None` if it needs too many registers, for which ptxas
/// rejects it too.
pub fn executed(program: &Program, way: &Way, input: &[u8]) -> Result<Option<Vec<u8>>, String> {
    executed_text(&program.text(way.options.target.as_str(), false), way, &Start::new(program, input))
}

fn executed_text(text: &str, way: &Way, start: &Start) -> Result<Option<Vec<u8>>, String> {
    let max_registers = way.options.max_registers;
    let how = format!("{} jitter {:?}", command(&way.options), way.jitter);
    let output = match compile(text, &way.options) {
        Ok(output) => output,
        Err(d) if max_registers.is_some() && needs_more(text, &d[0].message) => return Ok(None),
        Err(d) => return Err(format!("{how}: {}", d[0].render("k.ptx", text))),
    };
    if way.checked {
        super::checks::cubin(&output.cubin).map_err(|why| format!("{how}: {why}"))?;
    }
    let mut values = start.values();
    let run = How { jitter: way.jitter, step_limit: STEPS, stack: ROOM, ..How::default() };
    let outcome =
        run_as(&output.cubin, "k", start.shape, &mut values, run).map_err(|fault| format!("{how}: {fault}"))?;
    if let Some(report) = outcome.reports.first() {
        return Err(format!("{how}: {} ({})", report.fault, report.instruction));
    }
    Ok(Some(memory(&values)))
}

/// The first failure and its way of compiling; or the number of ways that needed too many
/// registers.
pub fn judged(program: &Program, case: &Case, input: &[u8]) -> Result<usize, (usize, String)> {
    let texts = [program.text(case.target, true), program.text(case.target, false)];
    judged_texts(program, &texts, case, input)
}

/// The same for given texts, for the interpreter and for the compiler.
pub fn judged_texts(
    program: &Program,
    texts: &[String; 2],
    case: &Case,
    input: &[u8],
) -> Result<usize, (usize, String)> {
    let start = Start::new(program, input);
    let right = interpreted_text(&texts[0], &start).map_err(|why| (0, why))?;
    let mut refused = 0;
    for (n, way) in case.ways.iter().enumerate() {
        let Some(mine) = executed_text(&texts[1], way, &start).map_err(|why| (n, why))? else {
            refused += 1;
            continue;
        };
        if let Some(difference) = difference(program, way, &mine, &right) {
            return Err((n, format!("{}: {difference}", command(&way.options))));
        }
    }
    Ok(refused)
}

/// The first position where memory differs by more than is allowed.
pub fn difference(program: &Program, way: &Way, mine: &[u8], right: &[u8]) -> Option<String> {
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..][..8].try_into().unwrap());
    let is_nan = |bytes: &[u8], at: usize| f64::from_bits(word(bytes, at)).is_nan();
    let rows = STRIDE * program.rows();
    let skipped = |row: usize| LOST.contains(&row) || row >= SLOTS.0;
    for at in (0..mine.len()).step_by(8).filter(|at| *at >= rows || !skipped(at % STRIDE)) {
        let row = at % STRIDE;
        let double = (DOUBLES.0..DOUBLES.0 + 8 * DOUBLES.1).contains(&row);
        if word(mine, at) != word(right, at) && !(double && is_nan(mine, at) && is_nan(right, at)) {
            return Some(format!(
                "thread {} byte {row}: {:016x} and not {:016x}",
                at / STRIDE,
                word(mine, at),
                word(right, at)
            ));
        }
    }
    let bound = |slot: &&(usize, &super::tree::Slot)| slot.1.judged == Judged::Bound && way.jitter.is_none();
    let slots: Vec<(usize, &super::tree::Slot)> = program.slots.iter().enumerate().collect();
    slots.iter().filter(bound).find_map(|(n, slot)| {
        let rows = |bytes: &[u8]| -> Vec<u8> {
            bytes[..rows].chunks(STRIDE).flat_map(|row| form_row(&row[SLOTS.0 + SLOTS.1 * n..][..SLOTS.1])).collect()
        };
        let wrong = judge::difference(&slot.form, FORM_ROW.0, FORM_ROW.1, &rows(mine), &rows(right))?;
        Some(format!("slot {n}, {}: {wrong}", slot.form))
    })
}

/// A result slot in a form's row.
fn form_row(slot: &[u8]) -> Vec<u8> {
    let mut row = vec![0; FORM_ROW.0];
    row[FORM_ROW.1..FORM_ROW.1 + SLOTS.1].copy_from_slice(slot);
    // The form's first f32, stored after its results.
    row[40..44].copy_from_slice(&slot[SLOTS.1 - 8..SLOTS.1 - 4]);
    row
}
