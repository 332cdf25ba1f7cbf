//! Compiling, with the incumbent's options.

use crate::compile::{self, Output};
use crate::diag::{Diagnostic, Severity};
use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Compile PTX to a cubin.
#[derive(Parser)]
#[command(
    name = "sassafras",
    version,
    about = "Compiles PTX to SASS. Own commands: disasm, run, targets (each with --help)"
)]
pub struct Options {
    /// The PTX file
    file: PathBuf,
    /// Target, such as sm_90 (also -arch=sm_90)
    #[arg(long = "gpu-name", default_value = crate::tables::Target::lowest_built().name)]
    gpu_name: String,
    /// The cubin to write
    #[arg(short = 'o', long = "output-file", default_value = "elf.o")]
    output: PathBuf,
    /// Print registers, stack and constant memory of each function
    #[arg(short = 'v', long = "verbose")]
    verbose: bool,
    /// Optimisation level, 0 to 3
    #[arg(short = 'O', long = "opt-level", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=3))]
    opt_level: u8,
    /// 64-bit addresses, the only kind
    #[arg(long = "machine64")]
    machine64: bool,
    /// Say nothing about warnings
    #[arg(short = 'w', long = "disable-warnings")]
    disable_warnings: bool,
    /// Run the verifier after every phase
    #[arg(long = "verify-ir")]
    verify_ir: bool,
    /// Print the function after these phases (comma-separated names, or `all`)
    #[arg(long = "dump-phases", value_delimiter = ',')]
    dump_phases: Vec<String>,
}

/// Compiles and writes the cubin, or prints why not.
pub fn compile(options: &Options) -> Result<ExitCode, String> {
    let source = super::read(&options.file)?;
    let wanted = compile::Options {
        target: options.gpu_name.clone(),
        opt_level: options.opt_level,
        verify_ir: options.verify_ir,
        dump_phases: options.dump_phases.clone(),
    };
    match compile::compile_bytes(&source, &wanted) {
        Ok(output) => {
            let shown = output.diagnostics.iter().filter(|_| !options.disable_warnings);
            report(shown, &options.file, &source);
            output.dumps.iter().for_each(|dump| super::print(&format!("{dump}\n")));
            if options.verbose {
                eprint!("{}", resources(&output, &options.gpu_name));
            }
            super::write(&options.output, &output.cubin)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(diagnostics) => {
            report(diagnostics.iter(), &options.file, &source);
            if diagnostics.iter().all(|d| d.severity != Severity::Fatal) {
                eprintln!("sassafras fatal   : Ptx assembly aborted due to errors");
            }
            Ok(ExitCode::from(super::REFUSED))
        }
    }
}

fn report<'a>(diagnostics: impl Iterator<Item = &'a Diagnostic>, file: &Path, source: &[u8]) {
    let name = format!("sassafras {}", file.display());
    let text = String::from_utf8_lossy(source);
    for diagnostic in diagnostics {
        eprint!("{}", diagnostic.render(&name, &text));
    }
}

/// The resource lines of `-v`.
fn resources(output: &Output, target: &str) -> String {
    let mut text = format!("sassafras info    : {} bytes gmem\n", output.global_bytes);
    for f in &output.functions {
        text += &format!("sassafras info    : Compiling entry function '{}' for '{target}'\n", f.name);
        text += &format!("sassafras info    : Function properties for {}\n", f.name);
        text += &format!("    {} bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n", f.stack_bytes);
        let barriers = if f.barriers > 0 { format!(", used {} barriers", f.barriers) } else { String::new() };
        let shared = if f.shared_bytes > 0 { format!(", {} bytes smem", f.shared_bytes) } else { String::new() };
        text += &format!(
            "sassafras info    : Used {} registers{barriers}{shared}, {} bytes cmem[0]\n",
            f.registers, f.constant_bytes
        );
    }
    text
}
