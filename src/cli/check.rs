//! `sassafras check`: checks that every instruction of a cubin waits for the registers it reads and
//! overwrites.

use crate::cubin;
use crate::sass::hazards;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Options {
    /// Cubins, ours or ptxas's
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// One JSON list for each file: function, offset, instruction, earlier, their lines of the
    /// source, register, message
    #[arg(long)]
    json: bool,
}

/// Prints all violations. Exit status 1 if there are any.
pub fn check(options: &Options) -> Result<ExitCode, String> {
    let mut clean = true;
    for file in &options.files {
        let bytes = super::read(file)?;
        let cubin = cubin::read(&bytes).map_err(|e| format!("{}: {e}", file.display()))?;
        let reports = hazards::check(&cubin)?;
        clean &= reports.is_empty();
        if options.json {
            super::print(&(serde_json::to_string_pretty(&reports).map_err(|e| e.to_string())? + "\n"));
        } else {
            super::print(&reports.iter().map(|r| format!("{r}\n")).collect::<String>());
        }
    }
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
