//! The cycle estimate is frozen: its rows, and the model that reads them.
//!
//! The input is tables/latency/throughput.ron, and the source text of the code that computes cycles
//! from its rows (`MODEL`). The checksum of the rows (without comments, sources and blanks) and
//! that of the model (without comments, blanks and unit tests) must equal those recorded here. The
//! estimate compares this compiler with another one, so neither may be adjusted to our own code. A
//! change of a row or the model records the new checksum here, and the commit says what it was
//! fitted to.
//!
//! The values were first chosen from the CUDA programming guide, whitepapers and public
//! microbenchmarks, then fitted to the stalls between independent instructions of one pipe in
//! ptxas's -O3 cubins of the corpus for sm_75, 80, 89, 90, 100 and 120, before any cycle count of
//! ours was compared with theirs.

use std::path::Path;

/// Checksum of the rows: 64-bit FNV-1a.
const FROZEN: u64 = 0xe16e_9fd4_5033_eb2c;

/// The model: the in-order issue simulation, and the lookup of an instruction's row.
const MODEL: [&str; 2] = ["src/sim/sass/sanitizer/cycle_model.rs", "src/tables/throughput.rs"];

/// Checksum of the model's code, in that order.
const FROZEN_MODEL: u64 = 0x6197_5c98_ffd0_aff9;

const START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a over all non-blank characters.
fn add(sum: u64, text: &str) -> u64 {
    let bytes = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
    bytes.fold(sum, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn sum(text: &str) -> u64 {
    let rows = text.lines().map(str::trim).filter(|line| line.starts_with('('));
    rows.map(|row| row.split(", src:").next().unwrap_or_default()).fold(START, add)
}

/// Continues a checksum over the code of a file, without comment lines and unit tests.
fn code(start: u64, text: &str) -> u64 {
    let lines = text.lines().map(str::trim).take_while(|line| *line != "#[cfg(test)]");
    lines.filter(|line| !line.starts_with("//")).fold(start, add)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn rows_of_the_estimate_are_the_frozen_ones() {
    let now = sum(&read("tables/latency/throughput.ron"));
    assert_eq!(now, FROZEN, "rows of the estimate have changed: their sum is {now:#018x}; see the head of this file");
}

#[test]
fn the_model_of_the_estimate_is_the_frozen_one() {
    let now = MODEL.iter().fold(START, |sum, path| code(sum, &read(path)));
    assert_eq!(
        now, FROZEN_MODEL,
        "the model of the estimate has changed: its sum is {now:#018x}; see the head of this file"
    );
}

#[test]
fn a_changed_row_changes_the_sum_and_a_changed_source_does_not() {
    let row = r#"  (on: "*", ops: "IADD3", pipe: "alu", cycles: 2, src: "a"),"#;
    assert_ne!(sum(row), sum(&row.replace("cycles: 2", "cycles: 1")));
    assert_eq!(sum(row), sum(&row.replace("\"a\"", "\"b\"")));
}

#[test]
fn changed_code_changes_the_sum_and_changed_words_do_not() {
    let model = "/// Words.\nfn of() -> u64 {\n    4\n}\n#[cfg(test)]\nmod tests {}\n";
    let of = |text: &str| code(START, text);
    assert_ne!(of(model), of(&model.replace('4', "5")));
    assert_eq!(of(model), of(&model.replace("Words", "Others").replace("tests {", "tests { use super::*;")));
}
