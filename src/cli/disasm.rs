//! `sassafras disasm`: prints the SASS code of a cubin, of this compiler or of ptxas.

use crate::cubin;
use crate::sass::listing;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Options {
    /// A cubin
    file: PathBuf,
    /// One JSON object: per function offset, word, text, and the word that the text assembles to
    #[arg(long)]
    json: bool,
}

/// Prints the listing.
pub fn disasm(options: &Options) -> Result<ExitCode, String> {
    let bytes = super::read(&options.file)?;
    let cubin = cubin::read(&bytes).map_err(|e| format!("{}: {e}", options.file.display()))?;
    if options.json {
        super::print(&(listing::json(&cubin)? + "\n"));
    } else {
        super::print(&listing::text(&cubin)?);
    }
    Ok(ExitCode::SUCCESS)
}
