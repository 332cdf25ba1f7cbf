//! The programs for mutation: small kernels by both compilers, each with a launch that runs without
//! a report.
//!
//! It reads tests/cases/exec, each for one target of all that the tables know, which its number and
//! the seed (`SASSAFRAS_SEED`) choose, and returns the programs, and the number that is excluded
//! with the reasons. Ours must compile and run without a report; any other outcome is an error.
//! Cubins of ptxas that the simulator is known not to run cleanly are excluded, by name in the
//! output.

use super::Random;
use super::simulate_ptxas_support::{self, Tools, cases, each, tool};
use sassafras::cubin::{self, Cubin};
use sassafras::sass::{self, Inst, hazards};
use sassafras::sim::launch::{Launch, LaunchFile};
use sassafras::sim::run::{How, Shape, decode, run_decoded, target_of};
use sassafras::tables::Target;
use sassafras::tables::targets::TARGETS;
use std::collections::BTreeMap;

/// Instruction limit of a mutant (all warps together), fifty times that of its program: a mutant
/// that exceeds it does not end, which is a report.
const STEPS: u64 = 50 * SHORT;
/// Instruction limit of the plain run of a kernel that takes part (all warps together).
const SHORT: u64 = 4_000;

/// The targets that we compile for, as in `90a`.
fn targets() -> Vec<&'static str> {
    let built = TARGETS.iter().filter(|target| target.real && target.generation.is_some());
    built.filter_map(|target| target.name.strip_prefix("sm_")).collect()
}

fn seed() -> u64 {
    std::env::var("SASSAFRAS_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

pub struct Program {
    pub name: String,
    pub cubin: Cubin,
    pub target: &'static Target,
    launch: Launch,
    /// Index of the kernel among the functions.
    function: usize,
    /// Instructions of the kernel that the launch executes.
    pub executed: Vec<usize>,
    /// Number of reports of the static checker about it.
    reported: usize,
}

/// The result of a run.
pub struct Judged {
    /// Values differ from the expected ones, or the launch did not end.
    pub differs: Option<String>,
    pub report: Option<String>,
    executed: Vec<u64>,
}

impl Program {
    /// A word of the kernel.
    pub fn word(&self, index: usize) -> u128 {
        let bytes = &self.cubin.functions[self.function].code[16 * index..16 * index + 16];
        bytes.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte))
    }

    pub fn inst(&self, index: usize) -> Option<Inst> {
        sass::decode(self.target, self.word(index)).ok()
    }

    /// The instructions with some words replaced; `None` for those not executed or undecodable.
    pub fn insts(&self, words: &[(usize, u128)]) -> Vec<Option<Inst>> {
        let length = self.cubin.functions[self.function].code.len() / 16;
        let mut all = vec![None; length];
        for at in &self.executed {
            let changed = words.iter().find(|w| w.0 == *at).map_or_else(|| self.word(*at), |w| w.1);
            all[*at] = sass::decode(self.target, changed).ok();
        }
        all
    }

    /// The program with some words replaced.
    pub fn with(&self, words: &[(usize, u128)]) -> Cubin {
        let mut cubin = self.cubin.clone();
        for (index, word) in words {
            cubin.functions[self.function].code[16 * index..16 * index + 16].copy_from_slice(&word.to_le_bytes());
        }
        cubin
    }

    /// Whether the static checker reports more about a mutant than about the program.
    pub fn statically(&self, mutant: &Cubin) -> bool {
        hazards::check(mutant).map_or(0, |reports| reports.len()) > self.reported
    }

    /// Runs a cubin of this program; an error of the launch counts as a difference.
    pub fn judge(&self, cubin: &Cubin, jitter: Option<u64>) -> Judged {
        let how = How { jitter, step_limit: STEPS, ..How::default() };
        let mut args = self.launch.arg_values();
        let shape = Shape { grid: self.launch.grid, block: self.launch.block, smem: self.launch.smem };
        let ran = decode(cubin, &self.launch.kernel)
            .and_then(|code| run_decoded(cubin, &self.launch.kernel, shape, &mut args, &code, how));
        match ran {
            Err(fault) => {
                let text = Some(fault.to_string());
                Judged { differs: text.clone(), report: text, executed: Vec::new() }
            }
            Ok(outcome) => {
                let report = outcome.reports.first().map(ToString::to_string);
                let differs = match self.launch.check(&args) {
                    Err(all) => Some(format!("{} differences", all.len())),
                    Ok(()) if !outcome.ended => Some("no end".to_string()),
                    Ok(()) => None,
                };
                Judged { differs, report, executed: outcome.executed }
            }
        }
    }
}

/// The programs, and those excluded with the reasons.
#[derive(Default)]
pub struct Programs {
    pub all: Vec<Program>,
    pub left_out: BTreeMap<&'static str, Vec<String>>,
    /// Our programs that do not compile, or run with a report.
    pub wrong: Vec<String>,
}

impl Programs {
    /// Prepares all cases with both compilers.
    pub fn of_cases() -> Programs {
        let tools = tool("ptxas").is_some();
        let cases: Vec<_> = cases().into_iter().enumerate().collect();
        let found = each(&cases, |(number, path)| {
            let mut own = Programs::default();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            match LaunchFile::load(path) {
                Ok(file) => own.case(&name, *number, &file, tools),
                Err(error) => own.wrong.push(format!("{name}: {error}")),
            }
            own
        });
        let mut programs = Programs::default();
        for own in found {
            programs.all.extend(own.all);
            programs.wrong.extend(own.wrong);
            own.left_out.into_iter().for_each(|(why, names)| programs.left_out.entry(why).or_default().extend(names));
        }
        programs
    }

    fn case(&mut self, name: &str, number: usize, file: &LaunchFile, tools: bool) {
        let fits = |sm: &&str| {
            let target = format!("sm_{sm}");
            file.allows(&target) && file.launches.iter().any(|l| l.wants(&target))
        };
        let targets = targets();
        let first = Random::new(seed() << 32 | number as u64).below(targets.len());
        let mut turns = (0..targets.len()).map(|i| targets[(first + i) % targets.len()]);
        let Some(sm) = turns.find(fits) else {
            return self.left_out.entry("no launch on any target").or_default().push(name.to_string());
        };
        let target = format!("sm_{sm}");
        let launch = file.launches.iter().find(|l| l.wants(&target)).expect("it fits");
        let source = std::fs::read_to_string(&file.module).unwrap_or_default();
        for level in [0u8, 3] {
            let options = sassafras::compile::Options {
                opt_level: level,
                fmad: false,
                ..sassafras::compile::Options::new(&target)
            };
            let name = format!("{name} {target} -O{level}");
            match sassafras::compile::compile(&source, &options) {
                Ok(made) => self.add(format!("{name} ours"), cubin::read(&made.cubin), launch),
                Err(errors) => self.wrong.push(format!("{name} ours: {:?}", errors.first().map(|e| &e.message))),
            }
            if tools && let Some(tools) = &Tools::of(sm, &file.module) {
                match simulate_ptxas_support::compile_alone(tools, &file.module, sm, &format!("-O{level}")) {
                    Ok(cubin) => self.add::<String>(format!("{name} ptxas"), Ok(cubin), launch),
                    Err(error) => self.wrong.push(format!("{name} ptxas: {error}")),
                }
            }
        }
    }

    fn add<E: std::fmt::Debug>(&mut self, name: String, cubin: Result<Cubin, E>, launch: &Launch) {
        let made = match cubin {
            Ok(cubin) => program(name.clone(), cubin, launch),
            Err(error) => Err(format!("{error:?}")),
        };
        match made {
            Ok(program) if program.executed.is_empty() => {
                self.left_out.entry("longer than a short run").or_default().push(name)
            }
            Ok(program) => self.all.push(program),
            Err(why) if name.ends_with("ours") => self.wrong.push(format!("{name}: {why}")),
            Err(why) => self.left_out.entry("ptxas's, with a report").or_default().push(format!("{name}: {why}")),
        }
    }
}

/// A program that runs cleanly, and the instructions it executes; `None` if it is too long.
fn program(name: String, cubin: Cubin, launch: &Launch) -> Result<Program, String> {
    let target = target_of(&cubin).map_err(|fault| fault.to_string())?;
    let function = cubin.functions.iter().position(|f| f.name == launch.kernel).ok_or("no such kernel")?;
    let reported = hazards::check(&cubin)?.len();
    let launch = launch.clone();
    let mut p = Program { name, cubin, target, launch, function, executed: Vec::new(), reported };
    let run = p.judge(&p.cubin, None);
    if let Some(why) = run.report.or(run.differs) {
        return Err(why);
    }
    let length = p.cubin.functions[function].code.len() / 16;
    if run.executed.iter().sum::<u64>() <= SHORT {
        p.executed = (0..length).filter(|i| run.executed.get(*i).is_some_and(|count| *count > 0)).collect();
    }
    Ok(p)
}
