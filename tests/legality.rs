//! What each target accepts: forms of all PTX operations, one kernel each, on every target that is built.
//!
//! Input: `tests/cases/legality/forms.txt`, which has the incumbent's verdicts. Checked: we accept and refuse as it does, where a form is
//! compiled to its cubin; the forms that we refuse although they are legal are exactly those of `later.txt` (`SASSAFRAS_BLESS=1` writes it),
//! each refused by name. Where ptxas is there, the verdicts are its own (two targets by turns; all with `SASSAFRAS_ORACLE=all`).

#[allow(dead_code, reason = "this test disassembles nothing")]
#[path = "support/vendor.rs"]
mod vendor;

#[allow(dead_code, reason = "tests/matrix.rs reads the rest")]
#[path = "support/forms.rs"]
mod forms;

use forms::{Form, folder, forms};

use sassafras::compile::{Options, compile};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

/// Lines of a module before its kernels, each of which is one line.
const HEAD: usize = 3;

fn module(target: &str, kernels: &[(usize, &Form)]) -> String {
    let head = format!(".version 9.0\n.target sm_{target}\n.address_size 64\n");
    kernels.iter().fold(head, |text, (_, form)| text + &form.kernel)
}

/// Compiles the forms together, without those that were refused, until none is; what `told` says of each line goes to its form.
fn refused(target: &str, forms: &[Form], told: impl Fn(&str) -> BTreeMap<usize, String>) -> BTreeMap<usize, String> {
    let mut all = BTreeMap::new();
    loop {
        let left: Vec<(usize, &Form)> = forms.iter().enumerate().filter(|(i, _)| !all.contains_key(i)).collect();
        let messages = told(&module(target, &left));
        if messages.is_empty() {
            return all;
        }
        for (line, message) in messages {
            assert!(line > HEAD, "sm_{target}: {message}");
            all.insert(left[line - HEAD - 1].0, message);
        }
    }
}

fn by_us(target: &str, text: &str) -> BTreeMap<usize, String> {
    let Err(diagnostics) = compile(text, &Options::new(&format!("sm_{target}"))) else { return BTreeMap::new() };
    let first = |d: sassafras::diag::Diagnostic| (d.pos.map_or(0, |pos| pos.line as usize), d.message);
    diagnostics.into_iter().rev().filter(|d| d.pos.is_some()).map(first).collect()
}

/// Whether a refusal says that the operation is ours to build.
fn by_name(message: &str) -> bool {
    message.ends_with("is not supported yet") || message.ends_with("is not implemented")
}

#[test]
fn we_accept_and_refuse_as_the_incumbent() {
    let (targets, forms) = forms();
    let (mut later, mut wrong, mut cells) = (BTreeSet::new(), Vec::new(), 0);
    for (column, target) in targets.iter().enumerate() {
        let refused = refused(target, &forms, |text| by_us(target, text));
        for (i, form) in forms.iter().enumerate() {
            cells += 1;
            match (form.verdicts[column], refused.get(&i)) {
                ('X', None) => wrong.push(format!("sm_{target}: {} is accepted", form.name)),
                ('X', Some(_)) | (_, None) => {}
                (_, Some(message)) if !by_name(message) => wrong.push(format!("sm_{target}: {}: {message}", form.name)),
                (_, Some(message)) => drop(later.insert(format!("{}: {message}", form.name))),
            }
        }
    }
    println!(
        "{} forms on {} targets, {cells} verdicts; {} legal ones are refused by name",
        forms.len(),
        targets.len(),
        later.len()
    );
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    let path = folder().join("later.txt");
    let text = later.iter().map(|line| format!("{line}\n")).collect::<String>();
    if std::env::var_os("SASSAFRAS_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let listed = std::fs::read_to_string(&path).unwrap_or_default();
    let listed: BTreeSet<String> = listed.lines().map(str::to_string).collect();
    let new: Vec<&String> = later.difference(&listed).collect();
    let stale: Vec<&String> = listed.difference(&later).collect();
    assert!(new.is_empty() && stale.is_empty(), "refused although legal: {new:#?}\nlisted and not so: {stale:#?}");
}

/// The line of each error of ptxas.
fn by_ptxas(ptxas: &PathBuf, target: &str, text: &str) -> BTreeMap<usize, String> {
    let folder = tempfile::tempdir().unwrap();
    let (source, cubin) = (folder.path().join("k.ptx"), folder.path().join("k.cubin"));
    std::fs::write(&source, text).unwrap();
    let run =
        Command::new(ptxas).args(["-O0", "-arch", &format!("sm_{target}")]).arg(&source).arg("-o").arg(cubin).output();
    let run = run.unwrap();
    let text = String::from_utf8_lossy(&run.stderr).into_owned();
    let line = |l: &str| {
        let (_, rest) = l.split_once(", line ")?;
        let (number, message) = rest.split_once("; error   : ")?;
        Some((number.parse().ok()?, message.to_string()))
    };
    let found: BTreeMap<usize, String> = text.lines().filter_map(line).collect();
    assert!(run.status.success() || !found.is_empty(), "sm_{target}: {text}");
    found
}

#[test]
fn the_verdicts_are_the_incumbents() {
    let Some(ptxas) = vendor::tool("ptxas") else {
        println!("skipped: target/vendor/ptxas is missing");
        return;
    };
    let (targets, forms) = forms();
    let all = std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all");
    let mut wrong = Vec::new();
    for (column, target) in targets.iter().enumerate().filter(|(column, _)| all || column % 16 == 3) {
        let refused = refused(target, &forms, |text| by_ptxas(&ptxas, target, text));
        let differs = |(i, form): (usize, &Form)| {
            let differs = (form.verdicts[column] == 'X') != refused.contains_key(&i);
            differs.then(|| format!("sm_{target}: {}: {:?}", form.name, refused.get(&i)))
        };
        wrong.extend(forms.iter().enumerate().filter_map(differs));
    }
    assert!(wrong.is_empty(), "{} verdicts differ:\n{}", wrong.len(), wrong.join("\n"));
}
