//! `sassafras compare`: what the code of two cubins has in common, and what not.

use super::launch::{LaunchOptions, triple};
use crate::arrays::Each;
use crate::compare::{Code, Launch, Side, common, text};
use crate::cubin::{self, Cubin};
use crate::sim::launch::ArgValue;
use crate::sim::run::{How, Shape};
use crate::tables::ptx::Limit;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Options {
    /// A cubin, of this compiler or of ptxas
    a: PathBuf,
    /// The cubin to compare it with
    b: PathBuf,
    /// Compare this kernel or function alone, not all that both cubins have
    #[arg(long)]
    kernel: Option<String>,
    /// Show how many instructions of each opcode there are (with --peak, the default)
    #[arg(long)]
    opcodes: bool,
    /// Show where most registers are live, which ones, and what defined them
    #[arg(long)]
    peak: bool,
    /// Show the listings side by side, with the numbers of live registers: R, UR, P and UP
    #[arg(long)]
    listing: bool,
    /// Show only the figures of each function
    #[arg(long, conflicts_with_all = ["opcodes", "peak", "listing"])]
    summary: bool,
    /// Run both: blocks, X[,Y[,Z]]
    #[arg(long, value_parser = triple, requires_all = ["block", "kernel"])]
    grid: Option<[u32; 3]>,
    /// Threads of a block: X[,Y[,Z]]
    #[arg(long, value_parser = triple, requires = "grid")]
    block: Option<[u32; 3]>,
    #[command(flatten)]
    launch: LaunchOptions,
}

/// Prints the comparison. Exit status 1 if a launch was reported wrong, or left other results.
pub fn run(options: &Options) -> Result<ExitCode, String> {
    super::grant(Limit::LaunchMemory.bytes(|_| true));
    let bytes = [super::read(&options.a)?, super::read(&options.b)?];
    let names = [&options.a, &options.b].each(|path| path.display().to_string());
    let cubins = [parse(&options.a, &bytes[0])?, parse(&options.b, &bytes[1])?];
    let [a, b] = [Side::new(&names[0], &cubins[0])?, Side::new(&names[1], &cubins[1])?];
    let functions = match &options.kernel {
        Some(name) => vec![name.clone()],
        None => common(&a, &b)?,
    };
    let mut codes = Vec::new();
    for name in &functions {
        codes.push((name, a.code(name)?, b.code(name)?));
    }
    super::print(&format!("A: {} ({})\nB: {} ({})\n\n", a.name, a.target.name, b.name, b.target.name));
    codes.iter().for_each(|(name, a, b)| super::print(&text::figures(name, &a.figures(), &b.figures())));
    if !options.summary {
        codes.iter().for_each(|(name, a, b)| super::print(&options.parts(name, a, b)));
    }
    match (options.grid, options.block, &options.kernel) {
        (Some(grid), Some(block), Some(kernel)) => {
            let shape = Shape { grid, block, smem: options.launch.smem };
            options.launch([&a, &b], &bytes, kernel, shape)
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Cubin, String> {
    cubin::read(bytes).map_err(|error| format!("{}: {error}", path.display()))
}

impl Options {
    /// The chosen parts of one function.
    fn parts(&self, name: &str, a: &Code, b: &Code) -> String {
        let usual = !(self.opcodes || self.peak || self.listing);
        let mut parts = format!("\n{name}\n");
        if usual || self.opcodes {
            parts += &text::opcodes(a, b);
        }
        if usual || self.peak {
            parts += &text::peaks(a, b);
        }
        if self.listing {
            parts += &text::listing(a, b);
        }
        parts
    }

    /// Runs both and prints what that cost.
    fn launch(&self, sides: [&Side; 2], bytes: &[Vec<u8>; 2], kernel: &str, shape: Shape) -> Result<ExitCode, String> {
        let arguments: Vec<ArgValue> = self.launch.arguments()?.into_iter().map(|arg| arg.value).collect();
        let usual = How::default();
        let how = How {
            step_limit: self.launch.steps.unwrap_or(usual.step_limit),
            stack: self.launch.stack.unwrap_or(usual.stack),
            ..usual
        };
        let launch = Launch { shape, cluster: self.launch.cluster, arguments: &arguments, how };
        let a = launch.run(sides[0], &bytes[0], kernel)?;
        let b = launch.run(sides[1], &bytes[1], kernel)?;
        super::print(&format!("\n{}", text::launch(&a, &b)));
        let mut right = true;
        for (side, ran) in sides.iter().zip([&a, &b]) {
            for report in &ran.outcome.reports {
                super::tell(&format!("sassafras error   : {}: {report}\n", side.name));
                right = false;
            }
        }
        if let Some(argument) = a.differs(&b) {
            super::tell(&format!("sassafras error   : the results differ in argument {argument}\n"));
            right = false;
        }
        Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
