//! `tests/features.md`: every claim has one line, and every test that a line names exists.

use sassafras::tables::legality::{Cell, Verdict};
use sassafras::tables::targets::TARGETS;
use std::collections::BTreeSet;
use std::path::Path;

/// Required claim numbers: prefix, first and last.
const CLAIMS: [(&str, u32, u32); 2] = [("S3-", 1, 50), ("S1-", 36, 42)];

#[test]
fn every_claim_names_its_test_or_its_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("tests/features.md")).unwrap();
    let mut listed = BTreeSet::new();
    let (mut shown, mut not) = (0, 0);
    for line in text.lines().filter(|l| l.starts_with("| S")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [claim, holds, by] = cells[..] else { panic!("{line}") };
        let (first, last) = claim.split_once(" to ").unwrap_or((claim, claim));
        let (prefix, from) = first.split_at(3);
        let numbers = from.parse().unwrap()..=last[3..].parse::<u32>().unwrap();
        numbers.for_each(|n| assert!(listed.insert(format!("{prefix}{n}")), "{prefix}{n} has two lines"));
        if holds == "no" {
            not += 1;
            assert!(by.len() > 20 && by.ends_with('.'), "{claim}: no reason");
            continue;
        }
        let words: Vec<&str> = by.split('`').collect();
        // A file and its tests, each between backticks.
        let [_, file, _, tests @ ..] = &words[..] else { panic!("{claim}: `{by}` is no test") };
        let code = std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert!(tests.len() >= 2 && tests.len() % 2 == 0, "{claim}: `{by}` is no test");
        for test in tests.iter().step_by(2) {
            let place = code.find(&format!("fn {test}()")).unwrap_or_else(|| panic!("{file} has no test `{test}`"));
            assert!(code[..place].trim_end().ends_with("#[test]"), "{file}: `{test}` is no test");
        }
        shown += 1;
    }
    let all = CLAIMS.iter().flat_map(|(prefix, from, to)| (*from..=*to).map(move |n| format!("{prefix}{n}")));
    assert_eq!(listed, all.collect::<BTreeSet<_>>());
    println!("{shown} lines with a test, {not} with a reason why not");
}

/// Proved by the rows of the matrix, which also cover targets that are not implemented.
#[test]
fn s3_31_dot_products_are_native_from_sm_61_but_for_sm_62() {
    let mut seen = BTreeSet::new();
    for target in TARGETS.iter().filter(|target| target.real) {
        for operation in ["dp4a", "dp2a"] {
            let verdict = Cell::named(operation, target).unwrap().verdict();
            let right = match target.sm {
                ..=60 => matches!(verdict, Verdict::Illegal),
                62 => matches!(verdict, Verdict::Handler { .. }),
                _ => matches!(verdict, Verdict::Native),
            };
            assert!(right, "{operation} on {}: {verdict:?}", target.name);
        }
        seen.insert(target.sm);
    }
    assert!([50, 52, 60, 61, 62, 70, 75, 80, 90, 100, 120].iter().all(|sm| seen.contains(sm)), "{seen:?}");
}
