//! Compares our cubins with ptxas's of the same text, each compiler's own code: records, sections,
//! symbols and relocations of every function.
//!
//! Texts that do not depend on where the code lies must be the same, each as often: of a record its
//! name and value, or for a list of places its length; of a section its name, type, flags and
//! alignment; of a symbol its name, binding, type, visibility and section; of a relocation its
//! section, symbol and type. `tests/oracle/records.txt` has the differences that are intended, each
//! with what the code must have for it and the reason; a row that nothing needs is a failure where
//! all inputs are there. Our lists of exits and of warp-wide operations must be complete.
//!
//! The input is the small kernels of the other judges of cubins on every target, `cases/exec` and,
//! where they are present, the probes of `../shared/facts/modern`. A file that names the target it
//! is for alone is compiled for that, a probe else for its own and a later one in turn, a case for
//! one in turn; with `SASSAFRAS_ORACLE=all` each for a target of every group and more.

mod facts;
mod rows;

use crate::cubin_support::{all_jobs, failures};
use crate::ptxas;
use crate::turns;
use crate::vendor::tool_of;
use facts::Facts;
use sassafras::compile::{Options, compile};
use sassafras::tables::Target;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// What one of the two files says and the other does not.
pub struct Difference {
    /// File, target and function.
    pub place: String,
    pub side: &'static str,
    pub what: String,
    /// How often each instruction stands in our code of the function, or of the file, and theirs.
    pub code: [BTreeMap<String, usize>; 2],
}

/// A text for a target.
struct Job {
    name: String,
    text: String,
    target: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The PTX files of a folder; none where it is missing.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "ptx"));
    paths.sort();
    paths
}

/// The jobs of a file: its own target if `alone` says so or no other takes it, else those in turn.
fn jobs_of(path: &Path, own_too: bool) -> Vec<Job> {
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let line = text.lines().find_map(|line| line.trim().strip_prefix(".target")).unwrap_or_default();
    let own = line.trim().split([',', ' ', '/']).next().unwrap_or_default().trim_start_matches("sm_").to_string();
    let number = |sm: &str| Target::by_name(&format!("sm_{sm}")).map_or(0, |target| target.sm);
    let alone = own.ends_with(['a', 'f']);
    let later = turns::of(path, |sm| !alone && number(sm) >= number(&own));
    let turn = turns::turn(path) / 6 % later.len().max(1);
    let mut targets: BTreeSet<String> =
        later.iter().enumerate().filter(|(i, _)| turns::all() || *i == turn).map(|(_, sm)| sm.to_string()).collect();
    if alone || own_too {
        targets.insert(own);
    }
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let job = |target| Job { name: name.clone(), text: text.clone(), target };
    targets.into_iter().map(job).collect()
}

fn probes() -> Vec<PathBuf> {
    files(&root().join("../shared/facts/modern/probes"))
}

fn jobs() -> Vec<Job> {
    let small = all_jobs().into_iter().map(|(target, (name, body))| Job {
        name: name.into(),
        text: format!(".version 9.0\n.target sm_{target}\n.address_size 64\n{body}"),
        target: target.into(),
    });
    let cases = files(&root().join("tests/cases/exec")).into_iter().flat_map(|path| jobs_of(&path, false));
    let probes = probes();
    small.chain(cases).chain(probes.into_iter().flat_map(|path| jobs_of(&path, true))).collect()
}

/// What the two files say differently; `None` if ptxas refuses the text or is missing.
fn differences(job: &Job) -> Result<Option<Vec<Difference>>, String> {
    // A text with debug information has no level.
    let is_debug = job.text.lines().any(|line| line.starts_with(".target") && line.contains("debug"));
    let arch = format!("-arch=sm_{}", job.target);
    let options = [arch.as_str(), "-O3"];
    let options = if is_debug { &options[..1] } else { &options };
    let Some(theirs) =
        tool_of("ptxas", &job.target).and_then(|program| ptxas::ask(&program, job.text.as_bytes(), options).cubin)
    else {
        return Ok(None);
    };
    let place = |function: &str| format!("{}.sm_{} {function}", job.name, job.target);
    let target = Target::by_name(&format!("sm_{}", job.target)).ok_or("no such target")?;
    let ours = match compile(&job.text, &Options::new(target.name)) {
        Ok(ours) => ours.cubin,
        Err(said) => {
            let what = format!("refused: {}", said.first().map_or("", |said| &said.message));
            return Ok(Some(vec![Difference { place: place(""), side: "ours", what, code: Default::default() }]));
        }
    };
    let said = [Facts::of(&ours, target)?, Facts::of(&theirs, target)?];
    complete(&said[0]).map_err(|e| format!("{}: {e}", place("")))?;
    let code = |function: &str, side: &Facts| {
        let mut all = BTreeMap::new();
        let own = side.code.iter().filter(|(name, _)| function.is_empty() || *name == function);
        own.flat_map(|(_, code)| code).for_each(|(name, count)| *all.entry(name.clone()).or_default() += count);
        all
    };
    let mut found = Vec::new();
    for (side, [these, those]) in [("ours", [&said[0], &said[1]]), ("theirs", [&said[1], &said[0]])] {
        let alone = these.said.iter().filter(|(fact, count)| those.said.get(fact).is_none_or(|other| *count > other));
        found.extend(alone.map(|((function, what), _)| Difference {
            place: place(function),
            side,
            what: what.clone(),
            code: [code(function, &said[0]), code(function, &said[1])],
        }));
    }
    Ok(Some(found))
}

/// Records of ours whose lists have to have all these instructions, together.
const LISTED: [(&[&str], &str); 2] = [
    (&["EXIT_INSTR_OFFSETS"], "EXIT"),
    (&["COOP_GROUP_INSTR_OFFSETS", "INT_WARP_WIDE_INSTR_OFFSETS"], "SHFL,VOTE,VOTEU,MATCH,REDUX,CREDUX,UCGABAR_ARV"),
];

/// Our lists have as many entries as the code has instructions that belong there.
fn complete(ours: &Facts) -> Result<(), String> {
    for ((function, code), (records, names)) in ours.code.iter().flat_map(|f| LISTED.iter().map(move |l| (f, l))) {
        let of = ours.said.keys().filter(|(of, _)| of == function).filter_map(|(_, text)| text.split_once(" x"));
        let listed: usize =
            of.filter(|(name, _)| records.contains(name)).filter_map(|(_, n)| n.parse::<usize>().ok()).sum();
        let there = rows::count(names, code);
        if listed != there {
            return Err(format!("{function}: {records:?} list {listed} of {there} instructions"));
        }
    }
    Ok(())
}

#[test]
fn cubins_say_what_ptxas_says() {
    if tool_of("ptxas", "90").is_none() {
        println!("skipped: target/vendor/ptxas is not installed");
        return;
    }
    let rows = rows::read(&std::fs::read_to_string(root().join("tests/oracle/records.txt")).unwrap());
    let (jobs, used, compared) = (jobs(), Mutex::new(BTreeSet::new()), Mutex::new(0));
    let mut wrong = failures(jobs.iter().collect(), |job| {
        let Some(found) = differences(job)? else { return Ok(()) };
        *compared.lock().unwrap() += 1;
        let explained = |difference: &Difference| rows.iter().position(|row| row.explains(difference));
        let (known, new): (Vec<_>, Vec<_>) = found.iter().partition(|d| explained(d).is_some());
        used.lock().unwrap().extend(known.into_iter().filter_map(explained));
        let new = new.iter().map(|d| format!("{} | {} | {}", d.side, d.what, d.place)).collect::<Vec<_>>();
        if new.is_empty() { Ok(()) } else { Err(new.join("\n")) }
    });
    let (used, compared) = (used.into_inner().unwrap(), compared.into_inner().unwrap());
    println!("{compared} of {} files compared, {} rows used", jobs.len(), used.len());
    let whole = !probes().is_empty() && tool_of("ptxas", "107").is_some() && std::env::var_os("SASSAFRAS_SM").is_none();
    let unused = rows.iter().enumerate().filter(|(i, row)| whole && (turns::all() || !row.rare) && !used.contains(i));
    wrong.extend(unused.map(|(_, row)| format!("nothing needs: {}", row.line)));
    assert!(wrong.is_empty(), "{} findings:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared * 10 >= jobs.len() * 8, "only {compared} of {} files are compared", jobs.len());
}
