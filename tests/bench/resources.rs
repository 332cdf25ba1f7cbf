//! Measures the cost of huge and hostile inputs at full size.
//!
//! `cargo bench --bench resources [-- [--program PATH] [--reduced] NAME…]`; without a name every
//! kind. It prints input size, memory with its limit, CPU time and outcome. The exit status is 1 if
//! a kind exceeded its memory or time limit, or ended other than with a cubin or an error.

#[path = "../support/resources_support/mod.rs"]
mod support;

use std::path::PathBuf;
use support::inputs::KINDS;
use support::{Cost, input, run};

/// Limit of CPU time per kind in seconds; a run that exceeds it is killed.
const SECONDS: f64 = 60.0;
const END: u64 = 120;

fn row(name: &str, cost: &Cost) -> bool {
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let first = cost.said.lines().next().unwrap_or("");
    let outcome = match (cost.status, cost.output) {
        (0, Some(bytes)) => format!("cubin of {:.1} MB", mb(bytes)),
        (status, _) => format!("status {status}: {}", first.chars().take(90).collect::<String>()),
    };
    let good = cost.memory <= cost.most_memory() && cost.cpu <= SECONDS && [0, 255].contains(&cost.status);
    println!(
        "{name:28} {:8.1} {:8.0} {:8.0} {:7.1}  {}{outcome}",
        mb(cost.input),
        mb(cost.memory),
        mb(cost.most_memory()),
        cost.cpu,
        if good { "" } else { "BAD " }
    );
    good
}

fn main() {
    let mut program = PathBuf::from(env!("CARGO_BIN_EXE_sassafras"));
    let (mut names, mut reduced) = (Vec::new(), false);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--program" => program = words.next().map(PathBuf::from).unwrap_or(program),
            "--reduced" => reduced = true,
            // An argument that cargo adds.
            "--bench" => {}
            _ => names.push(word),
        }
    }
    println!("{:28} {:>8} {:>8} {:>8} {:>7}", "kind", "MB", "memory", "limit", "s");
    let mut good = true;
    for kind in KINDS.iter().filter(|kind| names.is_empty() || names.iter().any(|name| name == kind.name)) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = input(kind, if reduced { kind.reduced } else { kind.full }, folder.path());
        let cubin = folder.path().join("k.cubin");
        good &= row(kind.name, &run(&program, kind.options(), &path, Some(&cubin), END));
    }
    if !good {
        std::process::exit(1);
    }
}
