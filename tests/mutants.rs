//! The machine as a judge: cubins that were made slightly wrong are found out.
//!
//! Input: the kernels under tests/cases/exec, compiled by us and, where it is installed, by the incumbent, at -O0 and -O3; changes of one
//! instruction that the launch executes. A mutant is flagged when the machine reports something or the numbers differ, in the plain run or
//! in one of twenty jittered ones. Printed for each kind: how many were flagged, how many only the static checker of schedules flags, and
//! how many nobody can tell from the original.
//! Checked: the unchanged programs are flagged by no run; of each kind at least the share stated below is flagged.

#[allow(dead_code, reason = "this test compiles and does not compare")]
#[path = "machine_support/mod.rs"]
mod machine_support;
#[path = "fuzz/random.rs"]
mod random;

use machine_support::{Tools, cases, tool};
use random::Random;
use sassafras::cubin::{self, Cubin};
use sassafras::sass::{self, ArgKind, Inst, hazards};
use sassafras::sim::launch::{Launch, LaunchFile};
use sassafras::sim::run::{How, Shape, decode, run_decoded, target_of};
use sassafras::tables::{Op, Target};

/// Mutants of each kind.
const EACH: usize = 100;
/// Jittered runs of a mutant that the plain run does not flag.
const RUNS: u64 = 20;
const TARGETS: [&str; 3] = ["90", "80", "120"];
/// Instructions of all warps after which a mutant is given up, which is a report.
const STEPS: u64 = 3_000_000;
/// Longest plain run of a kernel that takes part, in instructions of all warps.
const SHORT: u64 = 4_000;

/// What is done to one word; and of a hundred how many must be flagged at least. The others make no difference: the incumbent at -O0 waits
/// for everything, and a warp whose lanes stay together needs no convergence.
const KINDS: [(&str, usize); 6] = [
    ("clear a wait bit", 10),
    ("shorten a stall", 30),
    ("swap two write barriers", 60),
    ("change a register by one", 75),
    ("flip a bit of an immediate", 75),
    ("drop a WARPSYNC or BSYNC", 3),
];

struct Program {
    name: String,
    cubin: Cubin,
    target: &'static Target,
    launch: Launch,
    /// Place of the kernel among the functions.
    function: usize,
    /// Instructions of the kernel that the launch executes.
    executed: Vec<usize>,
}

impl Program {
    fn word(&self, index: usize) -> u128 {
        let bytes = &self.cubin.functions[self.function].code[16 * index..16 * index + 16];
        bytes.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte))
    }

    fn inst(&self, index: usize) -> Option<Inst> {
        sass::decode(self.target, self.word(index)).ok()
    }

    /// The same with other words in some places.
    fn with(&self, words: &[(usize, u128)]) -> Cubin {
        let mut cubin = self.cubin.clone();
        for (index, word) in words {
            cubin.functions[self.function].code[16 * index..16 * index + 16].copy_from_slice(&word.to_le_bytes());
        }
        cubin
    }

    /// Whether the static checker of schedules says more of a mutant than of the program.
    fn statically(&self, words: &[(usize, u128)]) -> bool {
        let count = |cubin: &Cubin| hazards::check(cubin).map_or(0, |reports| reports.len());
        count(&self.with(words)) > count(&self.cubin)
    }

    /// What is wrong with a run, and the instructions that it executed; nothing where all is right.
    fn judge(&self, cubin: &Cubin, jitter: Option<u64>) -> (Option<String>, Vec<u64>) {
        let how = How { jitter, step_limit: STEPS, ..How::default() };
        let mut args = self.launch.arg_values();
        let shape = Shape { grid: self.launch.grid, block: self.launch.block, smem: self.launch.smem };
        let code = match decode(cubin, &self.launch.kernel) {
            Ok(code) => code,
            Err(fault) => return (Some(fault.to_string()), Vec::new()),
        };
        match run_decoded(cubin, &self.launch.kernel, shape, &mut args, &code, how) {
            Err(fault) => (Some(fault.to_string()), Vec::new()),
            Ok(outcome) => {
                let report = outcome.reports.first().map(ToString::to_string);
                let differs = || self.launch.check(&args).err().map(|all| format!("{} differences", all.len()));
                (report.or_else(differs), outcome.executed)
            }
        }
    }
}

fn set_bits(word: u128, low: u32, width: u32, value: u128) -> u128 {
    let mask = ((1 << width) - 1) << low;
    word & !mask | value << low & mask
}

/// The words of a mutant of a kind, made at or near one instruction; `None` where it has nothing to change.
fn mutate(p: &Program, kind: usize, index: usize, random: &mut Random) -> Option<Vec<(usize, u128)>> {
    let word = p.word(index);
    let inst = p.inst(index)?;
    let encoded = |inst: &Inst| Some(vec![(index, sass::encode(p.target, inst).ok()?)]);
    match kind {
        0 => {
            let set: Vec<u32> = (116..122).filter(|bit| word >> bit & 1 != 0).collect();
            let bit = *set.get(random.below(set.len()))?;
            Some(vec![(index, word & !(1 << bit))])
        }
        1 if inst.ctrl.stall > 1 => {
            let stall = 1 + random.below(usize::from(inst.ctrl.stall) - 1) as u128;
            Some(vec![(index, set_bits(word, 105, 4, stall))])
        }
        2 if inst.ctrl.write_bar != 7 => {
            let other = |i: &usize| p.inst(*i).is_some_and(|o| ![7, inst.ctrl.write_bar].contains(&o.ctrl.write_bar));
            let others: Vec<usize> = p.executed.iter().copied().filter(other).collect();
            let second = *others.get(random.below(others.len()))?;
            let bar = p.inst(second)?.ctrl.write_bar;
            let swapped = set_bits(p.word(second), 110, 3, inst.ctrl.write_bar.into());
            Some(vec![(index, set_bits(word, 110, 3, bar.into())), (second, swapped)])
        }
        3 | 4 => {
            let wanted = if kind == 3 { ArgKind::Reg } else { ArgKind::Imm };
            let fits = |i: &usize| inst.args[*i].kind == wanted && (kind == 4 || inst.args[*i].val < 250);
            let places: Vec<usize> = (0..inst.args.len()).filter(fits).collect();
            let place = *places.get(random.below(places.len()))?;
            let mut changed = inst;
            match kind {
                3 => changed.args[place].val ^= 1,
                _ => changed.args[place].val ^= 1 << random.below(16),
            }
            let words = encoded(&changed)?;
            (words[0].1 != word).then_some(words)
        }
        5 if matches!(inst.op, Op::WARPSYNC | Op::BSYNC) => {
            let mut nop = Inst::new(Op::NOP);
            nop.ctrl = inst.ctrl;
            encoded(&nop)
        }
        _ => None,
    }
}

/// Programs of all cases, by both compilers.
fn programs() -> Vec<Program> {
    let tools = tool("ptxas").zip(tool("nvdisasm")).map(|(ptxas, nvdisasm)| Tools { ptxas, nvdisasm });
    let mut all = Vec::new();
    for (number, path) in cases().into_iter().enumerate() {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(file) = LaunchFile::load(&path) else { continue };
        let sm = TARGETS[number % TARGETS.len()];
        let target = format!("sm_{sm}");
        let Some(launch) = file.launches.iter().find(|l| l.wants(&target)).filter(|_| file.allows(&target)) else {
            continue;
        };
        let source = std::fs::read_to_string(&file.module).unwrap_or_default();
        for level in [0u8, 3] {
            let options = sassafras::compile::Options {
                opt_level: level,
                fmad: false,
                ..sassafras::compile::Options::new(&target)
            };
            let ours = sassafras::compile::compile(&source, &options).ok().and_then(|o| cubin::read(&o.cubin).ok());
            let theirs = tools.as_ref().and_then(|tools| {
                machine_support::compile(tools, &file.module, sm, &format!("-O{level}")).ok().map(|made| made.cubin)
            });
            for (who, cubin) in [("ours", ours), ("incumbent", theirs)] {
                all.extend(cubin.and_then(|cubin| program(format!("{name} {target} -O{level} {who}"), cubin, launch)));
            }
        }
    }
    all
}

/// A program that runs clean, and what it executes.
fn program(name: String, cubin: Cubin, launch: &Launch) -> Option<Program> {
    let target = target_of(&cubin).ok()?;
    let function = cubin.functions.iter().position(|f| f.name == launch.kernel)?;
    let mut p = Program { name, cubin, target, launch: launch.clone(), function, executed: Vec::new() };
    let (wrong, executed) = p.judge(&p.cubin, None);
    let length = p.cubin.functions[function].code.len() / 16;
    p.executed = (0..length).filter(|i| executed.get(*i).is_some_and(|count| *count > 0)).collect();
    let short = executed.iter().sum::<u64>() <= SHORT;
    (wrong.is_none() && short && !p.executed.is_empty()).then_some(p)
}

/// Whether a mutant is flagged, and how.
fn flagged(p: &Program, cubin: &Cubin) -> Option<String> {
    let jittered = |seed| p.judge(cubin, Some(seed)).0;
    p.judge(cubin, None).0.or_else(|| (0..RUNS).find_map(jittered))
}

#[test]
fn mutants_are_found_out() {
    let programs = programs();
    println!("{} programs", programs.len());
    assert!(programs.len() >= 20, "too few programs run clean");
    let of = |kind: usize| {
        let mut random = Random::new(kind as u64 + 1);
        let (mut made, mut found, mut missed) = (0, 0, Vec::new());
        for _ in 0..200 * EACH {
            let p = &programs[random.below(programs.len())];
            let index = p.executed[random.below(p.executed.len())];
            let Some(words) = mutate(p, kind, index, &mut random) else { continue };
            made += 1;
            match flagged(p, &p.with(&words)) {
                Some(_) => found += 1,
                None => missed.push((p.statically(&words), format!("{} pc {:#x}", p.name, 16 * index))),
            }
            if made == EACH {
                break;
            }
        }
        (made, found, missed)
    };
    let counts: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..KINDS.len()).map(|kind| scope.spawn(move || of(kind))).collect();
        threads.into_iter().map(|t| t.join().expect("no panic")).collect()
    });
    let mut wrong = Vec::new();
    for ((kind, share), (made, found, missed)) in KINDS.iter().zip(counts) {
        let alone = missed.iter().filter(|(flagged, _)| *flagged).count();
        let none = missed.len() - alone;
        println!(
            "{kind}: {found} of {made} flagged; {alone} by the static checker alone, {none} by nobody: they make no difference"
        );
        if std::env::var_os("SASSAFRAS_SHOW").is_some() {
            missed.iter().for_each(|(alone, name)| println!("    {name}{}", if *alone { " (static)" } else { "" }));
        }
        // What the static checker flags alone lies on a path that the launch does not take, or is a stall that is merely unwise.
        if made < EACH || found * 100 < share * made || 10 * alone > found + alone {
            wrong.push(format!("{kind}: {found} of {made}"));
        }
    }
    assert!(wrong.is_empty(), "too few are flagged: {}", wrong.join(", "));
}

/// No seed makes a right program look wrong.
#[test]
fn right_programs_stay_right_under_jitter() {
    let mut wrong = Vec::new();
    for (number, p) in programs().iter().enumerate() {
        let seeds = [number as u64, 1000 + number as u64];
        wrong.extend(
            seeds
                .into_iter()
                .filter_map(|seed| Some(format!("{} seed {seed}: {}", p.name, p.judge(&p.cubin, Some(seed)).0?))),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
