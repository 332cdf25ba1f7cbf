//! Which instructions each target accepts: forms of all PTX operations, one kernel each, on every
//! implemented target.
//!
//! The input is `tests/cases/legality/forms.txt`, which records the verdicts of ptxas. We must
//! accept and reject the same forms, where acceptance means compilation to a cubin; the legal forms
//! that we reject must be exactly those of `later.txt` (`SASSAFRAS_BLESS=1` rewrites it), each by
//! name. `probes.txt` has statements under older versions, and under `.target`s that differ from
//! the compiled one. If ptxas is installed, its verdicts are checked too (two targets in rotation;
//! all with `SASSAFRAS_ORACLE=all`).

use crate::forms::{Form, folder, forms, version};
use crate::vendor;

use sassafras::compile::{Options, compile};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

/// Lines of a module before its kernels; each kernel is one line.
const HEAD: usize = 3;

fn head(version: &str, target: &str) -> String {
    format!(".version {version}\n.target {target}\n.address_size 64\n")
}

fn module(target: &str, kernels: &[(usize, &Form)]) -> String {
    kernels
        .iter()
        .fold(head(version(&format!("sm_{target}")), &format!("sm_{target}")), |text, (_, form)| text + &form.kernel)
}

/// Compiles the forms together, without rejected ones, until no more are rejected. `told` maps the
/// messages about a line to its form.
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

/// Whether a message says that the operation is unsupported by us.
fn by_name(message: &str) -> bool {
    message.ends_with("is not supported yet") || message.ends_with("is not implemented")
}

#[test]
fn we_accept_and_refuse_as_ptxas() {
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

/// Statements under versions and targets other than the newest and their own, with the verdicts of
/// ptxas.
struct Probes {
    /// `.version`, `.target` and `-arch`.
    configurations: Vec<[String; 3]>,
    /// For each statement one letter per configuration: A accepted, X rejected; a accepted only by
    /// ptxas, x only by us.
    statements: Vec<(String, Vec<char>)>,
}

fn probes() -> Probes {
    let text = std::fs::read_to_string(folder().join("probes.txt")).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with("//"));
    let configuration = |word: &str| {
        let parts: Vec<&str> = word.split(':').collect();
        [parts[0], parts[1], parts[2]].map(str::to_string)
    };
    let configurations: Vec<[String; 3]> = lines.next().unwrap().split(' ').map(configuration).collect();
    let statement = |line: &str| {
        let columns: Vec<&str> = line.splitn(2, " | ").collect();
        (columns[1].split(" // ").next().unwrap().to_string(), columns[0].chars().collect::<Vec<char>>())
    };
    let statements: Vec<(String, Vec<char>)> = lines.map(statement).collect();
    assert!(statements.iter().all(|(text, letters)| letters.len() == configurations.len() && !text.is_empty()));
    Probes { configurations, statements }
}

/// A kernel around a statement, in one line.
fn probe_kernel(number: usize, statement: &str) -> String {
    format!(
        ".visible .entry k{number}(.param .u64 pa) {{ .reg .b64 %a,%b,%l<20>; .reg .b32 %r<40>; .reg .b16 %h<20>; .reg .f32 %f<20>; \
         .reg .f64 %d<20>; .reg .pred %p<8>; .reg .b8 %q<4>; .shared .align 16 .b8 sh[1024]; {statement} ret; }}\n"
    )
}

#[test]
fn versions_and_parents_are_judged_as_by_ptxas() {
    let Probes { configurations, statements } = probes();
    let mut wrong = Vec::new();
    for (column, [version, target, arch]) in configurations.iter().enumerate() {
        for (i, (statement, letters)) in statements.iter().enumerate() {
            let refusal = compile(&(head(version, target) + &probe_kernel(i, statement)), &Options::new(arch));
            let message = refusal.err().map(|errors| errors[0].message.clone());
            // A rejection as unsupported says nothing about the target.
            let (accepted, named) = (message.is_none(), message.as_ref().is_some_and(|message| by_name(message)));
            let fits = match letters[column] {
                'A' => accepted || named,
                'X' => !accepted,
                'a' => !accepted && !named,
                'x' => accepted,
                _ => false,
            };
            if !fits {
                wrong.push(format!("{version} {target} for {arch}: `{statement}` is {}: {message:?}", letters[column]));
            }
        }
    }
    println!("{} statements under {} versions and targets", statements.len(), configurations.len());
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_verdicts_on_versions_and_parents_are_ptxas() {
    let Some(ptxas) = vendor::tool("ptxas") else {
        println!("skipped: target/vendor/ptxas is missing");
        return;
    };
    let Probes { configurations, statements } = probes();
    let all = std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all");
    let mut wrong = Vec::new();
    for (column, [version, target, arch]) in configurations.iter().enumerate().filter(|(i, _)| all || i % 8 == 3) {
        let expected: BTreeSet<usize> =
            (0..statements.len()).filter(|i| matches!(statements[*i].1[column], 'X' | 'x')).collect();
        // All accepted forms pass together; each of the others is compiled alone.
        let kernels =
            (0..statements.len()).filter(|i| !expected.contains(i)).map(|i| probe_kernel(i, &statements[i].0));
        let good = kernels.fold(head(version, target), |text, kernel| text + &kernel);
        if expected.len() < statements.len() && !by_ptxas(&ptxas, arch, &good).is_empty() {
            wrong.push(format!(
                "{version} {target} for {arch}: one that is accepted is not: {:?}",
                by_ptxas(&ptxas, arch, &good)
            ));
        }
        for i in expected {
            if by_ptxas(&ptxas, arch, &(head(version, target) + &probe_kernel(i, &statements[i].0))).is_empty() {
                wrong.push(format!("{version} {target} for {arch}: `{}` is accepted", statements[i].0));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// The line of each error of ptxas.
fn by_ptxas(ptxas: &PathBuf, arch: &str, text: &str) -> BTreeMap<usize, String> {
    let folder = tempfile::tempdir().unwrap();
    let (source, cubin) = (folder.path().join("k.ptx"), folder.path().join("k.cubin"));
    std::fs::write(&source, text).unwrap();
    let run = Command::new(ptxas).args(["-O0", "-arch", arch]).arg(&source).arg("-o").arg(cubin).output();
    let run = run.unwrap();
    let text = String::from_utf8_lossy(&run.stderr).into_owned();
    let line = |l: &str| {
        let (_, rest) = l.split_once(", line ")?;
        let (number, message) = rest.split_once("; error   : ")?;
        Some((number.parse().ok()?, message.to_string()))
    };
    let found: BTreeMap<usize, String> = text.lines().filter_map(line).collect();
    // A target that does not fit is rejected without a line number.
    if !run.status.success() && found.is_empty() { BTreeMap::from([(0, text)]) } else { found }
}

#[test]
fn the_verdicts_are_ptxas() {
    if vendor::tool("ptxas").is_none() {
        println!("skipped: target/vendor/ptxas is missing");
        return;
    }
    let (targets, forms) = forms();
    let all = std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all");
    let mut wrong = Vec::new();
    for (column, target) in targets.iter().enumerate().filter(|(column, _)| all || column % 16 == 3) {
        let Some(ptxas) = vendor::tool_of("ptxas", target) else { continue };
        let refused = refused(target, &forms, |text| by_ptxas(&ptxas, &format!("sm_{target}"), text));
        let differs = |(i, form): (usize, &Form)| {
            let differs = (form.verdicts[column] == 'X') != refused.contains_key(&i);
            differs.then(|| format!("sm_{target}: {}: {:?}", form.name, refused.get(&i)))
        };
        wrong.extend(forms.iter().enumerate().filter_map(differs));
    }
    assert!(wrong.is_empty(), "{} verdicts differ:\n{}", wrong.len(), wrong.join("\n"));
}
