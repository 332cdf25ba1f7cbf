//! What the tests of cubins share: targets, small kernels, the vendor's tools.
//!
//! Input: names of kernels and targets. Output: cubins made by the incumbent and texts of its tools, or `None` where the
//! tools are not installed. Invariant: every call works in a folder of its own, which is gone afterwards.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Every target that the incumbent builds from sm_75 on.
pub const TARGETS: [&str; 23] = [
    "75", "80", "86", "87", "88", "89", "90", "90a", "100", "100a", "100f", "103", "103a", "103f", "110", "110a",
    "110f", "120", "120a", "120f", "121", "121a", "121f",
];

/// Small kernels by subject; the header is added for each target.
pub const KERNELS: [(&str, &str); 12] = [
    ("plain", include_str!("plain.ptx")),
    ("noparam", ".visible .entry k() { ret; }"),
    ("params", include_str!("params.ptx")),
    ("shared", include_str!("shared.ptx")),
    ("dynamic", include_str!("dynamic.ptx")),
    ("local", include_str!("local.ptx")),
    ("globals", include_str!("globals.ptx")),
    ("branches", include_str!("branches.ptx")),
    ("warp", include_str!("warp.ptx")),
    ("bounds", include_str!("bounds.ptx")),
    ("calls", include_str!("calls.ptx")),
    ("two", include_str!("two.ptx")),
];

/// A tool of the vendor; `None`, with a line on the console, where it is not installed.
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/vendor").join(name);
    if !path.exists() {
        println!("skipped: target/vendor/{name} is not installed");
        return None;
    }
    Some(path)
}

/// Standard output of a tool; a failure is the tool's own message.
pub fn run(tool: &Path, args: &[&str]) -> Result<String, String> {
    let output = Command::new(tool).args(args).output().map_err(|e| e.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// The incumbent's cubin of a kernel for a target, with more options.
pub fn compile(ptxas: &Path, body: &str, target: &str, options: &[&str]) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (source, output) = (folder.path().join("in.ptx"), folder.path().join("out.cubin"));
    let text = format!(".version 9.0\n.target sm_{target}\n.address_size 64\n{body}");
    std::fs::write(&source, text).map_err(|e| e.to_string())?;
    let arch = format!("-arch=sm_{target}");
    let mut args = vec![arch.as_str(), source.to_str().unwrap_or_default(), "-o", output.to_str().unwrap_or_default()];
    args.extend(options);
    run(ptxas, &args)?;
    std::fs::read(&output).map_err(|e| e.to_string())
}

/// What a tool says about a cubin; the file's name is replaced by `FILE`.
pub fn show(tool: &Path, args: &[&str], cubin: &[u8]) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = folder.path().join("a.cubin");
    std::fs::write(&path, cubin).map_err(|e| e.to_string())?;
    let path = path.to_str().unwrap_or_default();
    let mut all = args.to_vec();
    all.push(path);
    let text = run(tool, &all).map_err(|e| e.replace(path, "FILE"))?;
    Ok(text.replace(path, "FILE"))
}

/// SM number of a target's name, and whether it is an accelerator target.
pub fn sm(target: &str) -> (u32, bool) {
    let digits = target.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    (digits.parse().unwrap_or_default(), target.ends_with('a'))
}

/// Runs a check over all jobs on two threads; the failures, sorted.
pub fn failures<J: Sync + Send + Copy>(jobs: Vec<J>, check: impl Fn(J) -> Result<(), String> + Sync) -> Vec<String> {
    let half = jobs.len().div_ceil(2).max(1);
    let part = |jobs: &[J]| jobs.iter().filter_map(|job| check(*job).err()).collect::<Vec<_>>();
    let mut wrong: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> = jobs.chunks(half).map(|jobs| scope.spawn(|| part(jobs))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_else(|_| vec!["a check panicked".into()])).collect()
    });
    wrong.sort();
    wrong
}
