//! Forms of the newer families: which targets take each, and in which words the others refuse it.
//!
//! The input is `../shared/facts/modern`, where it is present: `forms.csv` says which of twenty
//! targets ptxas 13.0.88 takes each form for and what it says on the others, and `probes` has a
//! kernel for each form that some target takes. `tests/cases/legality/modern.txt` has the other
//! kernels, and the forms that differ, with the reason. Each form takes one target in turn, with
//! `SASSAFRAS_ORACLE=all` all of them.

use crate::csv::rows;
use crate::forms::folder;
use sassafras::compile::{Options, compile};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const TARGETS: [&str; 20] = [
    "75", "80", "86", "89", "90", "90a", "100", "100a", "100f", "103", "103a", "103f", "110", "110a", "110f", "120",
    "120a", "120f", "121", "121a",
];

/// A form, with the targets that take it and what is said on the others.
struct Form {
    family: String,
    name: String,
    accepted: Vec<String>,
    refused: BTreeMap<String, String>,
}

fn facts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/facts/modern")
}

fn forms(text: &str) -> Vec<Form> {
    let form = |row: Vec<String>| {
        let words = |text: &str| text.split_whitespace().map(str::to_string).collect::<Vec<_>>();
        let said = row[5].split('[').filter_map(|part| part.split_once("] "));
        let said = said.flat_map(|(targets, text)| {
            let text = text.trim_end_matches(" | ").to_string();
            words(targets).into_iter().map(move |target| (target, text.clone())).collect::<Vec<_>>()
        });
        Form { family: row[0].clone(), name: row[1].clone(), accepted: words(&row[4]), refused: said.collect() }
    };
    rows(text).into_iter().skip(1).map(form).collect()
}

/// The kernels of the probes, by family and form: what precedes them in their file, and they.
fn probes() -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(facts().join("probes")).unwrap() {
        let path = entry.unwrap().path();
        let family =
            path.file_name().unwrap().to_string_lossy().split('.').next().unwrap().replace("mma_sync", "mma.sync");
        let text = std::fs::read_to_string(&path).unwrap();
        let mut parts = text.split("// form: ");
        let head = parts.next().unwrap_or_default().to_string();
        for (name, body) in parts.filter_map(|part| part.split_once('\n')) {
            found.entry((family.clone(), name.trim().to_string())).or_insert_with(|| head.clone() + body);
        }
    }
    found
}

/// The forms that differ, and the modules of those without a probe.
fn listed() -> (Vec<String>, BTreeMap<String, String>) {
    let text = std::fs::read_to_string(folder().join("modern.txt")).unwrap();
    let (mut differing, mut modules) = (Vec::new(), BTreeMap::new());
    for line in text.lines().filter(|line| !line.starts_with("//")) {
        if let Some((name, reason)) = line.strip_prefix("- ").and_then(|line| line.split_once(" // ")) {
            assert!(!reason.is_empty(), "{name} says why");
            differing.push(name.to_string());
            continue;
        }
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, directives, parameters, body] = columns[..] else { panic!("{line}") };
        let comma = if parameters.is_empty() { "" } else { ", " };
        let module = format!(
            ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 a{comma}{parameters}) {directives}\n\
             {{\n.reg .b64 %p; .reg .b32 %r<4>; .reg .f32 %f<4>;\nld.param.u64 %p, [a];\n{body}\nret;\n}}\n"
        );
        modules.insert(name.to_string(), module);
    }
    (differing, modules)
}

/// A message without the name of its target.
fn general(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in text.split("sm_").enumerate() {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        out += if i == 0 { part } else { "sm_" };
        out += if i == 0 { "" } else { rest };
    }
    out
}

/// What is wrong with what we say of a form on a target.
fn wrong(form: &Form, module: &str, target: &str) -> Option<String> {
    let own = module.lines().find_map(|line| line.strip_prefix(".target ")).unwrap_or_default();
    let own = own.split([',', ' ']).next().unwrap_or_default();
    let text = module.replacen(own, &format!("sm_{target}"), 1);
    let said = compile(&text, &Options::new(&format!("sm_{target}"))).err();
    let name = format!("sm_{target} {} {}", form.family, form.name);
    match (form.accepted.iter().any(|accepted| accepted == target), said) {
        (true, None) => None,
        (true, Some(said)) => Some(format!("{name} is refused: {}", said.first().map_or("", |d| &d.message))),
        (false, None) => Some(format!("{name} is accepted")),
        (false, Some(said)) => {
            let theirs = general(form.refused.get(target).map_or("?", |text| text.trim_end_matches('…')));
            let same = said.iter().any(|d| general(&d.message).starts_with(&theirs));
            (!same).then(|| format!("{name}: {theirs:?}, ours: {:?}", said.first().map_or("", |d| &d.message)))
        }
    }
}

#[test]
fn forms_of_the_newer_families_are_taken_and_refused_as_by_ptxas() {
    let Ok(text) = std::fs::read_to_string(facts().join("forms.csv")) else {
        println!("skipped: ../shared/facts/modern is missing");
        return;
    };
    let (forms, probes, (differing, others)) = (forms(&text), probes(), listed());
    let all = std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all");
    let (mut findings, mut cells, mut different) = (Vec::new(), 0, 0);
    for (i, form) in forms.iter().enumerate() {
        let key = (form.family.clone(), form.name.clone());
        // Some forms stand in the file of another family.
        let elsewhere = || probes.iter().find(|((_, name), _)| *name == form.name).map(|(_, module)| module);
        let module = probes.get(&key).or_else(elsewhere).or_else(|| others.get(&form.name));
        let module = module.unwrap_or_else(|| panic!("no kernel has {} {}", form.family, form.name));
        let listed = differing.contains(&form.name);
        for target in TARGETS.into_iter().enumerate().filter(|(t, _)| all || i % TARGETS.len() == *t).map(|(_, t)| t) {
            let found = wrong(form, module, target);
            cells += 1;
            different += usize::from(listed);
            match (found, listed) {
                (Some(_), true) | (None, false) => {}
                (Some(finding), false) => findings.push(finding),
                (None, true) => findings.push(format!("sm_{target} {} is listed and does not differ", form.name)),
            }
        }
    }
    println!("{} forms, {cells} cells, {different} of them listed as different", forms.len());
    assert!(findings.is_empty(), "{} cells differ:\n{}", findings.len(), findings.join("\n"));
}
