//! Cubins that the incumbent made, read and written again; and files that are damaged.
//!
//! Input: small kernels for all 23 targets. Expected: the vendor's disassembler prints the same text for the file that went
//! through the model, reading it again gives the same model, and no damage makes the reader panic.

mod cubin_support;

use cubin_support::{KERNELS, TARGETS, compile, failures, show, tool};
use sassafras::cubin::{read, write};
use std::path::Path;

/// Reads and writes one file; the model must come out as it went in. Returns the new bytes.
fn round_trip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut cubin = read(bytes).map_err(|e| format!("cannot read: {e}"))?;
    let again = write(&cubin).map_err(|e| format!("cannot write: {e}"))?;
    let back = read(&again).map_err(|e| format!("cannot read what was written: {e}"))?;
    cubin.kept.capsule.clear();
    if back != cubin {
        return Err("reading what was written gives another model".into());
    }
    Ok(again)
}

/// The same, and nvdisasm prints the same text before and after.
fn same_text(bytes: &[u8], nvdisasm: &Path) -> Result<(), String> {
    let again = round_trip(bytes)?;
    let (before, after) = (show(nvdisasm, &["-c"], bytes)?, show(nvdisasm, &["-c"], &again)?);
    if before != after {
        return Err("nvdisasm -c prints another text".into());
    }
    Ok(())
}

/// Every kernel with every target through the model.
#[test]
fn incumbent_cubins_survive_the_model() {
    let Some(ptxas) = tool("ptxas") else { return };
    let jobs = TARGETS.iter().flat_map(|target| KERNELS.iter().map(move |kernel| (*target, *kernel)));
    let wrong = failures(jobs.collect(), |(target, (name, body))| {
        let result = compile(&ptxas, body, target, &[]).and_then(|bytes| round_trip(&bytes).map(drop));
        result.map_err(|e| format!("{name} sm_{target}: {e}"))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// All kernels in one module with every target, and each kernel with one target of each layout and reserved memory.
#[test]
fn the_disassembly_stays_the_same() {
    let (Some(ptxas), Some(nvdisasm)) = (tool("ptxas"), tool("nvdisasm")) else { return };
    let all: String = KERNELS.iter().map(|(_, body)| *body).collect();
    let mut jobs: Vec<_> = TARGETS.iter().map(|target| (*target, ("all", all.as_str()))).collect();
    jobs.extend(["75", "90", "110"].iter().flat_map(|target| KERNELS.iter().map(move |kernel| (*target, *kernel))));
    let wrong = failures(jobs, |(target, (name, body))| {
        let result = compile(&ptxas, body, target, &[]).and_then(|bytes| same_text(&bytes, &nvdisasm));
        result.map_err(|e| format!("{name} sm_{target}: {e}"))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Relocatable objects and debug information.
#[test]
fn objects_and_debug_information_survive() {
    let (Some(ptxas), Some(nvdisasm)) = (tool("ptxas"), tool("nvdisasm")) else { return };
    let options: [&[&str]; 4] = [&["-c"], &["-lineinfo"], &["-g"], &["-c", "-lineinfo"]];
    let mut jobs = Vec::new();
    for target in ["75", "89", "90", "120"] {
        for kernel in KERNELS.into_iter().filter(|(name, _)| ["plain", "shared", "globals", "calls"].contains(name)) {
            jobs.extend(options.iter().map(|options| (target, *options, kernel)));
        }
    }
    let wrong = failures(jobs, |(target, options, (name, body))| {
        let bytes = compile(&ptxas, body, target, options)?;
        same_text(&bytes, &nvdisasm).map_err(|e| format!("{name} sm_{target} {}: {e}", options.join(" ")))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
