//! The estimate of cycles is frozen: its rows, and the model that reads them.
//!
//! Input: tables/latency/throughput.ron, and the source text of what makes cycles of its rows (`MODEL`). Checked: the sum over the rows,
//! without comments, their sources and blanks, and the sum over the model's lines, without comments, blanks and its unit tests, are the ones
//! that stand here. The estimate compares this compiler with another one, so neither may follow what our code happens to be good
//! at. Whoever changes a row or the model writes the new sum here and says in the commit what it was fitted to; code of ours is no such thing.
//!
//! Chosen first from the CUDA programming guide, whitepapers and public microbenchmarks; fitted to the stalls between independent
//! instructions of one pipe in the incumbent's -O3 cubins of the corpus for sm_75, 80, 89, 90, 100 and 120, before any cycle of ours was
//! compared with theirs.

use std::path::Path;

/// Sum of the rows: FNV-1a of 64 bits.
const FROZEN: u64 = 0x54cb_979e_6cd8_ef5f;

/// The model: how instructions are issued once more in the order of time, and how an instruction finds its row.
const MODEL: [&str; 2] = ["src/sim/sass/watch/cost.rs", "src/tables/throughput.rs"];

/// Sum of the model's code, in that order.
const FROZEN_MODEL: u64 = 0x7717_1570_35af_86f0;

const START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a over what is not blank.
fn add(sum: u64, text: &str) -> u64 {
    let bytes = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
    bytes.fold(sum, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn sum(text: &str) -> u64 {
    let rows = text.lines().map(str::trim).filter(|line| line.starts_with('('));
    rows.map(|row| row.split(", src:").next().unwrap_or_default()).fold(START, add)
}

/// Goes on with a sum over the code of a file: no line of comment, nothing from its unit tests on.
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
