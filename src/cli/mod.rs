//! The command line.
//!
//! `sassafras [OPTIONS] FILE.ptx` compiles, with the incumbent's options as `options` lists them; `sassafras disasm`, `helpers`, `run` and `targets` are our
//! own. Exit status: 0 done, 255 the input or the options were refused, 1 a run ended with a report.

mod arguments;
mod bisect;
mod check;
mod compile;
mod disasm;
mod helpers;
mod options;
mod passes;
mod report;
mod run;
mod spelling;
mod targets;

use crate::tables::ptx::Limit;
use clap::{Parser, Subcommand};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Exit status for refused input, as the incumbent's.
pub const REFUSED: u8 = 255;

/// Most bytes that the program may have in use, by what it has read so far. Its allocator holds to that.
pub static MEMORY: AtomicU64 = AtomicU64::new(u64::MAX);

/// What a build that checks itself after every phase may take for each byte of one that does not.
const CHECKED: u64 = if cfg!(debug_assertions) { 4 } else { 1 };

/// Whether messages are ptxas's alone.
static COMPAT: AtomicBool = AtomicBool::new(false);

/// What is said where there is no more memory, in ptxas's words.
pub fn no_memory() -> &'static str {
    if COMPAT.load(Relaxed) {
        "ptxas fatal   : Memory allocation failure\n"
    } else {
        "sassafras fatal   : Memory allocation failure\n"
    }
}

/// Allows what a limit says besides what is allowed already.
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
    /// Print the machine code of a cubin
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

/// clap's message; asking for help or the version is no refusal.
fn refused_options(error: &clap::Error) -> ExitCode {
    // Nothing can be done where the terminal itself is gone.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS }
}

/// Prints to standard output. A reader that has gone away (`| head`) is no error of ours.
fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Prints to standard error, likewise.
fn tell(text: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Reads a whole file; the message names it.
fn read(path: &std::path::Path) -> Result<Vec<u8>, String> {
    let bytes = std::fs::File::open(path).and_then(|mut file| {
        let length = file.metadata().map_or(0, |data| data.len());
        read_all(&mut file, length)
    });
    bytes.map_err(|e| format!("Could not open input file '{}': {e}", path.display()))
}

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// Reads everything, and allows the memory that so much input entitles to. `length` is what is known beforehand. Of what is longer than any
/// input may be only so much that it is seen to be.
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

/// Writes a file beside its place and renames it there, so that no half of one is ever seen. A link keeps pointing
/// where it points, and what is no regular file (a device, a pipe) is written into: renaming over it would take it away.
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
        // The part may not exist; there is nothing more to say than the first error.
        let _ = std::fs::remove_file(&part);
        refused()
    })
}

/// Writes into what is there already; a reader that has gone away is no error, as with standard output.
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
