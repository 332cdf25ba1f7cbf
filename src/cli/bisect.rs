//! `sassafras bisect`: finds the first pass after which a kernel computes a wrong result.

use super::launch::triple;
use crate::bisect::{Launch, Verdict, bisect};
use crate::compile;
use crate::sim::launch::parse_command_arg;
use crate::sim::run::Shape;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Options {
    /// A PTX file
    file: PathBuf,
    /// Name of the kernel
    #[arg(long)]
    kernel: String,
    /// Target to compile for (also -arch=)
    #[arg(long = "gpu-name", default_value = crate::tables::Target::lowest_built().name)]
    gpu_name: String,
    /// Blocks: X[,Y[,Z]]
    #[arg(long, value_parser = triple)]
    grid: [u32; 3],
    /// Threads of a block: X[,Y[,Z]]
    #[arg(long, value_parser = triple)]
    block: [u32; 3],
    /// Bytes of dynamic shared memory
    #[arg(long, default_value_t = 0)]
    smem: u32,
    /// Arguments in order, as `sassafras run` takes them; no buffer is written to a file
    #[arg(long = "arg", allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Exit status 0 if the result is right, 1 if not.
pub fn run(options: &Options) -> Result<ExitCode, String> {
    let source = super::read(&options.file)?;
    let parsed = options.args.iter().map(|a| parse_command_arg(a).map(|arg| arg.value));
    let arguments = parsed.collect::<Result<Vec<_>, _>>()?;
    let shape = Shape { grid: options.grid, block: options.block, smem: options.smem };
    let launch = Launch { source: &source, kernel: &options.kernel, shape, arguments: &arguments };
    let verdict = bisect(&launch, &compile::Options::new(&options.gpu_name))?;
    let (text, code) = match verdict {
        Verdict::Right => ("the result is the interpreter's with all passes".to_string(), ExitCode::SUCCESS),
        Verdict::Always => {
            let text = "the result differs with no optional pass: lowering, or a pass that every level runs";
            (text.to_string(), ExitCode::FAILURE)
        }
        Verdict::Pass(pass) => {
            let phase = pass.info().phase.name();
            (format!("the result differs first after {} (phase {phase})", pass.name()), ExitCode::FAILURE)
        }
    };
    super::print(&format!("{text}\n"));
    Ok(code)
}
