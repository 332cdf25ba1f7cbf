//! `tests/features.md`: every claim has one line, and every test that a line names exists.
//! `tests/found.md` likewise, and its cases contain what a line says of them.

use sassafras::tables::encoding::{FORMS, forms_of};
use sassafras::tables::legality::{Cell, Verdict};
use sassafras::tables::phases::State;
use sassafras::tables::targets::TARGETS;
use sassafras::tables::{Op, Pass, Phase, Target};
use std::collections::BTreeSet;
use std::path::Path;

/// Required claim numbers: prefix, first and last.
const CLAIMS: [(&str, u32, u32); 5] = [("S0-", 1, 51), ("S1-", 1, 42), ("S2-", 1, 24), ("S3-", 1, 50), ("S4-", 1, 26)];

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
        assert_tests_exist(root, claim, by);
        shown += 1;
    }
    let all = CLAIMS.iter().flat_map(|(prefix, from, to)| (*from..=*to).map(move |n| format!("{prefix}{n}")));
    assert_eq!(listed, all.collect::<BTreeSet<_>>());
    println!("{shown} lines with a test, {not} with a reason why not");
}

/// Fails unless the text is a file and its tests, each between backticks.
fn assert_tests_exist(root: &Path, claim: &str, by: &str) {
    let words: Vec<&str> = by.split('`').collect();
    let [_, file, _, tests @ ..] = &words[..] else { panic!("{claim}: `{by}` is no test") };
    let code = std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    assert!(tests.len() >= 2 && tests.len() % 2 == 0, "{claim}: `{by}` is no test");
    for test in tests.iter().step_by(2) {
        let place = code.find(&format!("fn {test}()")).unwrap_or_else(|| panic!("{file} has no test `{test}`"));
        assert!(code[..place].trim_end().ends_with("#[test]"), "{file}: `{test}` is no test");
    }
}

#[test]
fn what_real_programs_found_names_its_case_and_its_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("tests/found.md")).unwrap();
    let mut listed = BTreeSet::new();
    for line in text.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| what holds")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [holds, case, by] = cells[..] else { panic!("{line}") };
        assert!(holds.ends_with('.') && listed.insert(holds), "{holds}: no sentence of its own");
        let words: Vec<&str> = case.split('`').collect();
        let [_, file, _, word, _] = words[..] else { panic!("{holds}: `{case}` is no case") };
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert!(text.contains(word), "{holds}: {file} has no `{word}`");
        by.split("; ").for_each(|by| assert_tests_exist(root, holds, by));
    }
    assert!(listed.len() > 50, "only {} lines", listed.len());
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

/// The phases about uniform registers, whose work others do, or nobody.
#[test]
fn s0_3_the_phases_about_uniform_registers_have_their_names_and_places() {
    let phases = [
        (11, "ReplaceUniformsWithImm", 12, State::Elsewhere),
        (27, "AnalyzeUniformsForSpeculation", 30, State::Elsewhere),
        (74, "ConvertToUniformReg", 86, State::Elsewhere),
        (86, "InsertPseudoUseDefForConvUR", 101, State::None),
    ];
    for (number, name, order, state) in phases {
        let phase = Phase::ALL.into_iter().find(|p| p.info().seed.first() == Some(&number)).unwrap();
        assert_eq!((phase.name(), phase as u16, phase.info().state), (name, order, state));
    }
    let pass = Pass::by_name("uniform_registers").unwrap();
    assert_eq!(pass.info().phase.name(), "OriPropagateVaryingSecond");
}

/// Which targets have which opcodes of the uniform datapath.
#[test]
fn s0_6_s0_7_and_s0_49_uniform_opcodes_have_their_targets() {
    use Op::*;
    let on = |op: Op, target: &Target| FORMS[forms_of(op)].iter().any(|form| form.is_on(target));
    for target in TARGETS.iter().filter(|target| target.generation.is_some()) {
        assert!(target.sm >= 75);
        for op in [UIADD3, UIMAD, ULOP3, UISETP, USGXT, UPRMT, UPOPC, UBREV, UP2UR, UPLOP3, VOTEU, UMOV] {
            assert!(on(op, target), "{} on {}", op.name(), target.name);
        }
        for op in [UFADD, UFFMA, UFSEL, UFSETP] {
            assert_eq!(on(op, target), [120, 121].contains(&target.sm), "{} on {}", op.name(), target.name);
        }
        for op in [UTMALDG, UBLKCP] {
            assert_eq!(on(op, target), target.sm >= 90, "{} on {}", op.name(), target.name);
        }
    }
    for op in [UCLEA, UCVTA, ULEPC, UVIADD] {
        assert!(!op.info().built, "{}", op.name());
    }
}
