//! Text cases of single phases: `tests/cases/phases/*.ori`, and that every pass has one.
//!
//! A case is a comment about its purpose, a line `# phases: NAME ...`, an Ori function, a line
//! `----`, and the exact function that the phases must produce. `SASSAFRAS_BLESS=1` rewrites the
//! last part; review it before committing.

use crate::cases;
use sassafras::ori::{Function, text, verify};
use sassafras::pass;
use sassafras::tables::{Pass, Phase};
use std::collections::BTreeSet;

/// The function of a case and its phases.
fn read(head: &str) -> Result<(Function, Vec<&str>), String> {
    let phases = cases::value(head, "phases")?;
    // Comments become empty lines, so that line numbers in messages match the file.
    let comments = head.lines().take_while(|l| l.starts_with('#')).map(|_| "\n");
    let body = head.lines().skip_while(|l| l.starts_with('#')).map(|l| format!("{l}\n"));
    let body = comments.map(str::to_string).chain(body).collect::<String>();
    let function = text::parse(&body).map_err(|e| e.to_string())?;
    let wrong = verify::verify(&function);
    if wrong.is_empty() { Ok((function, phases.split_whitespace().collect())) } else { Err(wrong.join("\n")) }
}

#[test]
fn phases_do_what_their_cases_say() {
    cases::all("phases", "--test lowering phases", |head| {
        let (mut function, phases) = read(head)?;
        for phase in phases {
            pass::run_one(&mut function, phase).map_err(|e| format!("{phase}: {e}\n{}", text::print(&function)))?;
        }
        Ok(text::print(&function))
    });
}

/// Passes that no case shows, and why.
const WITHOUT_A_CASE: [(&str, &str); 2] =
    [("check_input", "it only checks"), ("after_conversion", "it does what a host asks, as `legal_phases` shows")];

/// A pass that runs several times has its case once: `dce.2` is `dce`.
fn base(pass: Pass) -> &'static str {
    pass.name().split('.').next().unwrap_or_default()
}

/// The passes that a word of a case runs.
fn passes(word: &str) -> Vec<Pass> {
    let phase = Phase::ALL.into_iter().find(|phase| phase.name() == word);
    let of = |phase| Pass::ALL.into_iter().filter(|pass| pass.info().phase == phase).collect();
    Pass::by_name(word).map_or_else(|| phase.map_or(Vec::new(), of), |pass| vec![pass])
}

#[test]
fn every_pass_has_a_case_in_which_it_does_something() {
    let mut acted = BTreeSet::new();
    for (name, path) in cases::files("phases") {
        let source = std::fs::read_to_string(path).unwrap();
        let (mut function, phases) = read(cases::parts(&source).unwrap().0).unwrap();
        for pass in phases.into_iter().flat_map(passes) {
            let before = text::print(&function);
            pass::run_one(&mut function, pass.name()).unwrap_or_else(|e| panic!("{name}: {}: {e}", pass.name()));
            if text::print(&function) != before {
                acted.insert(base(pass));
            }
        }
    }
    let missing: BTreeSet<&str> = Pass::ALL.into_iter().map(base).filter(|pass| !acted.contains(pass)).collect();
    let listed: BTreeSet<&str> = WITHOUT_A_CASE.iter().map(|(pass, _)| *pass).collect();
    assert_eq!(missing, listed, "passes that change nothing in any case, and those of which that is known");
}
