//! Every instruction that the front end accepts is compiled, or rejected by name with its position.

use super::forms::{instructions, mistyped};
use super::{kernel, parse};
use crate::diag::{Diagnostic, Severity};
use crate::{Options, compile};

/// Number of instructions compiled together as long as nothing fails.
const BATCH: usize = 25;

/// The messages about a kernel of some instructions that is rejected.
fn refusal(target: &str, lines: &[&str]) -> Option<Vec<Diagnostic>> {
    let text = kernel("9.0", target, &format!("L: T: .branchtargets L;\n{}", lines.join("\n")));
    let mut options = Options::new(target);
    options.opt_level = 0;
    options.verify_ir = true;
    compile(&text, &options).err()
}

/// Whether the front end accepts an instruction, and its addresses are not those of a program that
/// would need 32-bit addresses.
fn taken(target: &str, line: &str) -> bool {
    let (module, diags) = parse(&kernel("9.0", target, &format!("L: T: .branchtargets L;\n{line}")));
    let narrow = module.is_some_and(|module| module.narrow_address.is_some());
    !narrow && !diags.iter().any(|d| d.severity != Severity::Warning)
}

/// Compiles every accepted instruction for a target.
fn what_is_taken_is_compiled(target: &str) {
    let mut lines = mistyped();
    lines.extend(instructions());
    let taken: Vec<&str> = lines.iter().map(String::as_str).filter(|line| taken(target, line)).collect();
    println!("{target}: {} instructions", taken.len());
    let fault = |line: &&str| {
        let told = |d: &Diagnostic| d.pos.is_some() && d.message.ends_with("is not implemented");
        let diags = refusal(target, &[line])?;
        (!diags.iter().any(told)).then(|| format!("{target} {line}   {}", diags[0].message))
    };
    let stopped = |batch: &&[&str]| refusal(target, batch).is_some();
    let faults: Vec<String> =
        taken.chunks(BATCH).filter(stopped).flat_map(|batch| batch.iter().filter_map(fault)).collect();
    let all = std::env::var("SASSAFRAS_SHOW").is_ok();
    let shown = &faults[..if all { faults.len() } else { faults.len().min(40) }];
    assert!(faults.is_empty(), "{} are not compiled:\n{}", faults.len(), shown.join("\n"));
}

// A test of each target, so that they run at once.

#[test]
fn what_sm_75_takes_is_compiled() {
    what_is_taken_is_compiled("sm_75");
}

#[test]
fn what_sm_90_takes_is_compiled() {
    what_is_taken_is_compiled("sm_90");
}

#[test]
fn what_sm_100a_takes_is_compiled() {
    what_is_taken_is_compiled("sm_100a");
}
