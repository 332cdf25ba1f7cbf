//! The command line.
//!
//! `sassafras [OPTIONS] FILE.ptx` compiles, with the options of ptxas (`options`); `bisect`,
//! `check`, `compare`, `disasm`, `helpers`, `run` and `targets` are commands of this program. Exit
//! status: 0 success, 255 input or options rejected, 1 a run or a check reported errors.

mod arguments;
mod bisect;
mod check;
mod compare;
mod compile;
mod disasm;
mod helpers;
mod jobserver;
mod launch;
mod options;
mod passes;
mod profile;
mod report;
mod run;
mod spelling;
mod targets;

use crate::tables::ptx::Limit;
pub use crate::threads::SEVERAL;
use clap::{Parser, Subcommand};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Exit status for rejected input, that of ptxas.
pub const REFUSED: u8 = 255;

/// Limit on the memory that the program may use, in bytes, by the size of its input so far. The
/// allocator enforces it.
pub static MEMORY: AtomicU64 = AtomicU64::new(u64::MAX);

/// Memory factor of a debug build, which verifies every phase.
const CHECKED: u64 = if cfg!(debug_assertions) { 4 } else { 1 };

/// Whether messages have exactly the form of ptxas.
static COMPAT: AtomicBool = AtomicBool::new(false);

/// The message of ptxas for memory exhaustion.
pub fn no_memory() -> &'static str {
    if COMPAT.load(Relaxed) {
        "ptxas fatal   : Memory allocation failure\n"
    } else {
        "sassafras fatal   : Memory allocation failure\n"
    }
}

/// Raises the memory limit.
fn grant(bytes: u64) {
    MEMORY.store(MEMORY.load(Relaxed).saturating_add(bytes.saturating_mul(CHECKED)), Relaxed);
}

#[derive(Parser)]
#[command(name = "sassafras", about = "Our own commands; without one of them, compile (see sassafras --help)")]
struct Own {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Find the first pass after which a kernel computes something else
    Bisect(bisect::Options),
    /// Check the control words of cubins
    Check(check::Options),
    /// Compare the code of two cubins: registers, opcodes, pressure, listings, cycles of a launch
    Compare(compare::Options),
    /// Print the SASS code of a cubin
    Disasm(disasm::Options),
    /// List the helpers, or print one with its body and its code
    Helpers(helpers::Options),
    /// Run a kernel of a cubin or of a PTX file on the CPU
    Run(run::Options),
    /// List the targets
    Targets(targets::Options),
}

/// Runs the command line; the first argument is the program's name.
pub fn main(args: Vec<String>) -> ExitCode {
    MEMORY.store(Limit::Memory.bytes(|_| true).saturating_mul(CHECKED), Relaxed);
    if !args.get(1).is_some_and(|a| options::COMMANDS.contains(&a.as_str())) {
        return compile::compile(&args);
    }
    let outcome = match Own::try_parse_from(spelling::normalise(args)) {
        Ok(own) => match own.command {
            Command::Bisect(options) => bisect::run(&options),
            Command::Check(options) => check::check(&options),
            Command::Compare(options) => compare::run(&options),
            Command::Disasm(options) => disasm::disasm(&options),
            Command::Helpers(options) => helpers::helpers(&options),
            Command::Run(options) => run::run(&options),
            Command::Targets(options) => targets::targets(&options),
        },
        Err(error) => return refused_options(&error),
    };
    match outcome {
        Ok(code) => code,
        Err(message) => {
            tell(&format!("sassafras fatal   : {message}\n"));
            ExitCode::from(REFUSED)
        }
    }
}

/// Prints clap's message. A request for help or the version is not an error.
fn refused_options(error: &clap::Error) -> ExitCode {
    // There is nothing to do if the terminal is closed.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS }
}

/// Prints to standard output. A closed pipe (`| head`) is not an error.
fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Prints to standard error; a closed pipe is not an error.
fn tell(text: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Reads a whole file. The error names it.
fn read(path: &std::path::Path) -> Result<Vec<u8>, String> {
    let bytes = std::fs::File::open(path).and_then(|mut file| {
        let length = file.metadata().map_or(0, |data| data.len());
        read_all(&mut file, length)
    });
    bytes.map_err(|e| format!("Could not open input file '{}': {e}", path.display()))
}

/// Bytes per read.
const PIECE: usize = 1 << 20;

/// Reads everything and raises the memory limit accordingly. `length` is the expected size. Input
/// beyond the size limit is read only far enough to detect that.
fn read_all(from: &mut dyn std::io::Read, length: u64) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let (most, share) = (Limit::Source.bytes(|_| true) + 1, Limit::MemoryPerByte.bytes(|_| true));
    grant(length.min(most).saturating_mul(share));
    let mut granted = length;
    let mut bytes = Vec::with_capacity(length.min(most) as usize + 1);
    while (bytes.len() as u64) < most {
        let piece = (PIECE as u64).min(most - bytes.len() as u64);
        let read = (&mut *from).take(piece).read_to_end(&mut bytes)?;
        let more = (bytes.len() as u64).saturating_sub(granted);
        grant(more.saturating_mul(share));
        granted += more;
        if read == 0 {
            break;
        }
    }
    Ok(bytes)
}

/// Writes a file under a temporary name and renames it, so that no partial file is ever visible. A
/// symbolic link is followed. A device or pipe is written directly, since renaming would replace
/// it.
fn write(path: &std::path::Path, bytes: &[u8]) -> Result<(), String> {
    let refused = || format!("Output file '{}' could not be opened", path.display());
    let place = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    if place.metadata().is_ok_and(|old| !old.is_file()) {
        return write_into(&place, bytes).map_err(|_| refused());
    }
    let mut beside = std::ffi::OsString::from(".");
    beside.push(place.file_name().ok_or_else(refused)?);
    beside.push(format!(".{}.part", std::process::id()));
    let part = place.with_file_name(beside);
    let result = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, &place));
    result.map_err(|_| {
        // The temporary file may not exist; only the first error is reported.
        let _ = std::fs::remove_file(&part);
        refused()
    })
}

/// Writes into an existing file, device or pipe; a closed pipe is not an error, as for standard
/// output.
fn write_into(place: &std::path::Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::{ErrorKind, Write};
    let mut file = std::fs::OpenOptions::new().write(true).open(place)?;
    match file.write_all(bytes) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn own_commands_are_those_of_clap() {
        let own = Own::command();
        let names: Vec<&str> = own.get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(names, options::COMMANDS);
        assert!(options::help().contains(&names.join(", ")));
    }
}
