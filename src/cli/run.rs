//! `sassafras run`: runs one kernel of a cubin, or of a PTX file after compiling it, on the CPU or
//! a GPU.

use super::launch::{LaunchOptions, triple};
use crate::cubin::line_table::SourceLine;
use crate::diag::Diagnostic;
use crate::gpu::{Card, check_arguments};
use crate::sim::launch::{ArgValue, write_results};
use crate::sim::ptx;
use crate::sim::report::Report;
use crate::sim::run::{Cycles, How, Outcome, Shape, run_in_clusters};
use crate::sorted::SortedMap;
use crate::tables::ptx::Limit;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// What the help says of arguments.
const ARGUMENTS: &str = "Arguments of the kernel:
  u32:5 s32:-1 u64:7 s64:-7 f32:2.5 f64:2.5     numbers
  in:PATH out:PATH:BYTES inout:PATH[:OUT]       buffers
  struct:u64:7,f32:2.5,pad:4,at:0:16            a structure by value; at:0:16 is the address of byte
                                                16 of argument 0
  memory:in:PATH                                a buffer that is no parameter, before what points to it
  texture:PATH,f32,2d,sizes=64x32               a texture by handle; surface: and sampler: likewise
Exit status 0: no report but notes.";

#[derive(clap::Args)]
#[command(after_help = ARGUMENTS)]
pub struct Options {
    /// A cubin, or a PTX file
    file: PathBuf,
    /// Name of the kernel
    #[arg(long)]
    kernel: String,
    /// Target to compile a PTX file for (also -arch=)
    #[arg(long = "gpu-name", default_value = crate::tables::Target::lowest_built().name)]
    gpu_name: String,
    /// Compile a PTX file for a host that patches constants, as FILE says (also of the compiler)
    #[arg(long)]
    shader_info: Option<PathBuf>,
    /// What executes it: the simulator (sass), the interpreter of the source text (ptx), or a GPU
    /// through the CUDA driver (gpu)
    #[arg(long, default_value = "sass", value_parser = ["sass", "ptx", "gpu"])]
    engine: String,
    /// Blocks: X[,Y[,Z]]
    #[arg(long, value_parser = triple)]
    grid: [u32; 3],
    /// Threads of a block: X[,Y[,Z]]
    #[arg(long, value_parser = triple)]
    block: [u32; 3],
    #[command(flatten)]
    launch: LaunchOptions,
    /// Write opcode counts, cycles and reports as JSON to standard output
    #[arg(long)]
    json: bool,
    /// Write where the cycles of the slowest block went, by instruction, to standard output (with
    /// --json, into the object)
    #[arg(long)]
    profile: bool,
    /// Add up the cycles of every block in a profile
    #[arg(long)]
    every_block: bool,
    /// The same by source line
    #[arg(long)]
    lines: bool,
    /// Write each instruction to standard error as it is executed
    #[arg(long)]
    trace: bool,
    /// Vary by a seed what a program cannot count on
    #[arg(long)]
    jitter: Option<u64>,
    /// Execute without time: schedules are not judged
    #[arg(long)]
    untimed: bool,
}

impl Options {
    fn how(&self) -> How {
        let trace: Option<fn(&str)> = if self.trace { Some(|line| super::tell(&format!("{line}\n"))) } else { None };
        let usual = How::default();
        let step_limit = self.launch.steps.unwrap_or(usual.step_limit);
        let profile = self.profile || self.lines;
        How {
            timed: !self.untimed,
            jitter: self.jitter,
            trace,
            step_limit,
            profile,
            every_block: self.every_block,
            stack: self.launch.stack.unwrap_or(usual.stack),
            ..usual
        }
    }

    /// An option that has no effect with the chosen engine, which is an error.
    fn in_vain(&self) -> Option<&'static str> {
        if self.untimed && (self.profile || self.lines) {
            return Some("--untimed beside a profile");
        }
        if self.every_block && !self.profile && !self.lines {
            return Some("--every-block without a profile");
        }
        let of_the_machine = [
            ("--trace", self.trace),
            ("--jitter", self.jitter.is_some()),
            ("--untimed", self.untimed),
            ("--profile", self.profile),
            ("--lines", self.lines),
            ("--stack", self.launch.stack.is_some()),
        ];
        let not_of_a_card = [
            ("--json", self.json),
            ("--steps", self.launch.steps.is_some()),
            ("--cluster", self.launch.cluster.is_some()),
        ];
        let (sass, gpu) = (self.engine == "sass", self.engine == "gpu");
        let mut in_vain = of_the_machine.into_iter().filter(|_| !sass).chain(not_of_a_card.into_iter().filter(|_| gpu));
        in_vain.find(|(_, given)| *given).map(|(name, _)| name)
    }
}

/// Runs the kernel and writes the results. Any report other than a note gives exit status 1; no
/// results are written if the run was aborted.
pub fn run(options: &Options) -> Result<ExitCode, String> {
    super::grant(Limit::LaunchMemory.bytes(|_| true));
    let mut bytes = super::read(&options.file)?;
    let is_cubin = bytes.starts_with(b"\x7fELF");
    let interpreted = options.engine == "ptx";
    if let Some(name) = options.in_vain() {
        return Err(format!("--engine {} knows no {name}", options.engine));
    }
    if interpreted && is_cubin {
        return Err("--engine ptx executes PTX, and this is a cubin".into());
    }
    let card = if options.engine == "gpu" { Some(Card::first()?) } else { None };
    if !is_cubin && !interpreted {
        let target = card.as_ref().map_or(Ok(options.gpu_name.clone()), |card| target_of(card, &bytes))?;
        bytes = compiled(&bytes, &target, options)?;
    }
    let args = options.launch.arguments()?;
    let mut values: Vec<ArgValue> = args.iter().map(|a| a.value.clone()).collect();
    let shape = Shape { grid: options.grid, block: options.block, smem: options.launch.smem };
    if let Some(card) = card {
        check_arguments(&bytes, &options.kernel, &values)?;
        card.run(&bytes, &options.kernel, shape, &mut values, 0)?;
        write_results(&args, &values)?;
        return Ok(ExitCode::SUCCESS);
    }
    let ran = if interpreted {
        Ok(interpret(&bytes, shape, &mut values, options)?)
    } else {
        run_in_clusters(&bytes, &options.kernel, shape, options.launch.cluster, &mut values, options.how())
    };
    let outcome = match ran {
        Ok(outcome) => outcome,
        Err(fault) => {
            super::tell(&format!("sassafras error   : {fault}\n"));
            if options.json {
                let outcome = Outcome { reports: vec![Report::of(fault)], ..Outcome::default() };
                super::print(&json(&options.kernel, &outcome)?);
            }
            return Ok(ExitCode::FAILURE);
        }
    };
    outcome.reports.iter().for_each(|report| super::tell(&format!("sassafras error   : {report}\n")));
    outcome.notes.iter().for_each(|note| super::tell(&format!("sassafras note    : {note}\n")));
    if outcome.ended {
        write_results(&args, &values)?;
    }
    if options.profile && !options.json {
        super::print(&super::profile::by_instruction(&outcome.profile));
    }
    if options.lines && !options.json {
        super::print(&super::profile::by_line(&outcome.profile));
    }
    if options.json {
        super::print(&json(&options.kernel, &outcome)?);
    } else if !interpreted {
        super::tell(&format!("sassafras info    : {}\n", outcome.summary()));
    }
    Ok(if outcome.reports.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(serde::Serialize)]
struct Written<'a> {
    kernel: &'a str,
    /// Whether the kernel ran to its end.
    ended: bool,
    /// Counted once per group of lanes (`instructions`), and once per lane.
    instructions: u64,
    lane_instructions: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<Cycles>,
    opcodes: &'a SortedMap<&'static str, u64>,
    reports: Vec<WrittenReport<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    profile: Vec<super::profile::Line<'a>>,
}

#[derive(serde::Serialize)]
struct WrittenReport<'a> {
    /// `error`, or `note` for reports that do not change the exit status.
    severity: &'static str,
    kind: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instruction: &'a str,
    pc: Option<u64>,
    /// The source line, if the cubin has line tables; without a file name, a line of the PTX text.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a SourceLine>,
    block: Option<[u32; 3]>,
    warp: Option<u32>,
    lane: Option<u32>,
    address: Option<u64>,
    count: u64,
}

fn json(kernel: &str, outcome: &Outcome) -> Result<String, String> {
    let errors = outcome.reports.iter().map(|report| written_report("error", report));
    let notes = outcome.notes.iter().map(|note| written_report("note", note));
    let written = Written {
        kernel,
        ended: outcome.ended,
        instructions: outcome.stats.instructions,
        lane_instructions: outcome.stats.lane_instructions,
        cycles: outcome.cycles,
        opcodes: &outcome.counts,
        reports: errors.chain(notes).collect(),
        profile: outcome.profile.iter().map(super::profile::Line::of).collect(),
    };
    let text = serde_json::to_string_pretty(&written).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

fn written_report<'r>(severity: &'static str, r: &'r Report) -> WrittenReport<'r> {
    WrittenReport {
        severity,
        kind: r.fault.kind.name(),
        message: &r.fault.what,
        instruction: &r.instruction,
        pc: r.fault.place.and_then(|place| place.pc),
        source: r.fault.source.as_ref(),
        block: r.fault.place.map(|place| place.block),
        warp: r.fault.place.map(|place| place.warp),
        lane: r.fault.lane,
        address: r.fault.address,
        count: r.count,
    }
}

/// Runs the PTX source; the kernel's output goes to standard output. Each thread counts as a group
/// of its own.
fn interpret(source: &[u8], shape: Shape, values: &mut [ArgValue], options: &Options) -> Result<Outcome, String> {
    let (module, diagnostics) = ptx::parse(source);
    show(&diagnostics, source, options);
    let mut module = module.ok_or("Ptx assembly aborted due to errors")?;
    let named = module.functions.values_mut().filter(|f| f.name == options.kernel);
    if let Some(cluster) = options.launch.cluster {
        named.for_each(|f| Arc::make_mut(&mut f.directives).required_cluster = Some(cluster));
    }
    let limit = options.launch.steps.unwrap_or(ptx::STEP_LIMIT);
    let (ran, done) = ptx::run_within(&module, &options.kernel, shape, values, limit);
    let printed = std::io::stdout().write_all(&ran.printed);
    printed.map_err(|error| format!("cannot print: {error}"))?;
    let mut outcome = Outcome { ended: done.is_ok(), ..Outcome::default() };
    (outcome.stats.instructions, outcome.stats.lane_instructions) = (ran.instructions, ran.instructions);
    let text = String::from_utf8_lossy(source);
    let ended = done.err().map(Report::of);
    outcome.reports = ran.reports.into_iter().chain(ended).map(|report| with_line(report, &text)).collect();
    outcome.notes = ran.notes.into_iter().map(|note| with_line(note, &text)).collect();
    Ok(outcome)
}

/// A report about PTX source: the instruction is its source line.
fn with_line(report: Report, text: &str) -> Report {
    let line = report.fault.source.as_ref().and_then(|at| text.lines().nth((at.line as usize).checked_sub(1)?));
    Report { instruction: line.unwrap_or_default().trim().to_string(), ..report }
}

fn show(diagnostics: &[Diagnostic], source: &[u8], options: &Options) {
    let text = String::from_utf8_lossy(source);
    let name = options.file.display().to_string();
    diagnostics.iter().for_each(|d| super::tell(&d.render(&name, &text)));
}

/// The target that makes a PTX text run on a GPU.
fn target_of(card: &Card, source: &[u8]) -> Result<String, String> {
    let (major, minor) = card.capability;
    let target = card.target_for(&String::from_utf8_lossy(source));
    target
        .map(|t| t.name.to_string())
        .ok_or_else(|| format!("{} has capability {major}.{minor}, which is no target", card.name))
}

fn compiled(source: &[u8], target: &str, options: &Options) -> Result<Vec<u8>, String> {
    let shader_info = options.shader_info.as_deref().map(super::compile::shader_info).transpose()?;
    let wanted = crate::compile::Options { line_info: true, shader_info, ..crate::compile::Options::new(target) };
    crate::compile::compile_bytes(source, &wanted).map(|o| o.cubin).map_err(|diagnostics| {
        show(&diagnostics, source, options);
        "Ptx assembly aborted due to errors".to_string()
    })
}
