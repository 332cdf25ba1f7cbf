//! `sassafras run`: one kernel of a cubin, or of a PTX file that is compiled first, on the CPU.

use crate::diag::Diagnostic;
use crate::sim::fault::Fault;
use crate::sim::launch::{ArgValue, CommandArg, parse_command_arg, write_results};
use crate::sim::run::{Shape, run as run_kernel};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Options {
    /// A cubin, or a PTX file
    file: PathBuf,
    /// Name of the kernel
    #[arg(long)]
    kernel: String,
    /// Target to compile a PTX file for (also -arch=)
    #[arg(long = "gpu-name", default_value = crate::tables::Target::lowest_built().name)]
    gpu_name: String,
    /// What executes it: the machine (sass), or the interpreter of the source text (ptx)
    #[arg(long, default_value = "sass", value_parser = ["sass", "ptx"])]
    engine: String,
    /// Blocks: X[,Y[,Z]]
    #[arg(long, value_parser = triple)]
    grid: [u32; 3],
    /// Threads of a block: X[,Y[,Z]]
    #[arg(long, value_parser = triple)]
    block: [u32; 3],
    /// Bytes of dynamic shared memory
    #[arg(long, default_value_t = 0)]
    smem: u32,
    /// Arguments in order: u32:5 f32:2.5 in:PATH out:PATH:BYTES inout:PATH[:OUT] …
    #[arg(long = "arg", allow_hyphen_values = true)]
    args: Vec<String>,
}

fn triple(text: &str) -> Result<[u32; 3], String> {
    let mut out = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("more than three sizes".into());
    }
    for (slot, part) in out.iter_mut().zip(parts) {
        *slot = part.parse().ok().filter(|n| *n > 0).ok_or_else(|| format!("`{part}` is not a size"))?;
    }
    Ok(out)
}

/// Runs and writes the results; a fault of the program is exit status 1 and writes nothing.
pub fn run(options: &Options) -> Result<ExitCode, String> {
    let mut bytes = super::read(&options.file)?;
    let is_cubin = bytes.starts_with(b"\x7fELF");
    let interpreted = options.engine == "ptx";
    if interpreted && is_cubin {
        return Err("--engine ptx executes PTX, and this is a cubin".into());
    }
    if !is_cubin && !interpreted {
        bytes = compiled(&bytes, options)?;
    }
    let args: Vec<CommandArg> = options.args.iter().map(|a| parse_command_arg(a)).collect::<Result<_, _>>()?;
    let mut values: Vec<ArgValue> = args.iter().map(|a| a.value.clone()).collect();
    let shape = Shape { grid: options.grid, block: options.block, smem: options.smem };
    let ran = if interpreted {
        interpret(&bytes, shape, &mut values, options)?
    } else {
        run_kernel(&bytes, &options.kernel, shape, &mut values).map(|_| ())
    };
    match ran {
        Ok(()) => {
            write_results(&args, &values)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(fault) => {
            eprintln!("sassafras error   : {fault}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Runs the source text; what the kernel prints goes to standard output.
fn interpret(
    source: &[u8],
    shape: Shape,
    values: &mut [ArgValue],
    options: &Options,
) -> Result<Result<(), Fault>, String> {
    let (module, diagnostics) = crate::sim::ptx::parse(source);
    show(&diagnostics, source, options);
    let module = module.ok_or("Ptx assembly aborted due to errors")?;
    Ok(crate::sim::ptx::run(&module, &options.kernel, shape, values).and_then(|outcome| {
        let printed = std::io::stdout().write_all(&outcome.printed);
        printed.map_err(|error| Fault::new(format!("cannot print: {error}")))
    }))
}

fn show(diagnostics: &[Diagnostic], source: &[u8], options: &Options) {
    let text = String::from_utf8_lossy(source);
    let name = options.file.display().to_string();
    diagnostics.iter().for_each(|d| eprint!("{}", d.render(&name, &text)));
}

fn compiled(source: &[u8], options: &Options) -> Result<Vec<u8>, String> {
    let wanted = crate::compile::Options::new(&options.gpu_name);
    crate::compile::compile_bytes(source, &wanted).map(|o| o.cubin).map_err(|diagnostics| {
        show(&diagnostics, source, options);
        "Ptx assembly aborted due to errors".to_string()
    })
}
