//! `sassafras targets`: what can be compiled for.

use crate::tables::targets::TARGETS;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Options {}

/// One line per target that has an encoder: name, generation, lowest PTX version.
pub fn targets(_options: &Options) -> Result<ExitCode, String> {
    for target in TARGETS.iter().filter(|t| t.real) {
        if let Some(generation) = target.generation {
            let (major, minor) = target.min_ptx;
            super::print(&format!("{:<8} encoder {:<6} PTX {major}.{minor}\n", target.name, generation.name()));
        }
    }
    Ok(ExitCode::SUCCESS)
}
