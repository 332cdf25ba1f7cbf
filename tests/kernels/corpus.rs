//! Real PTX: every file of the corpus compiles for every target of its manifest, or uses an
//! unimplemented family, which `tests/corpus_later.txt` lists per file.
//!
//! The input is `../shared/corpus` with its `manifest.json`, if present. The manifest does not know
//! the newest target: files of its relatives are compiled for it besides, with the target that they
//! name raised if they are of one architecture alone. The IR verifier and the allocation checker
//! must find no error; a file may be rejected only because of instructions of the listed families;
//! our listing must equal nvdisasm's (each distinct word of all files once, in batches). By default
//! each file is compiled for one of its targets in rotation; `SASSAFRAS_CORPUS=all` takes all
//! targets, `SASSAFRAS_CASE=TEXT` the files whose name contains it, `SASSAFRAS_BLESS=1` rewrites
//! the list.

use crate::listed;
use crate::manifest::figures;
use crate::vendor;
use sassafras::compile::{Options, compile};
use sassafras::diag::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Prefixes of the instruction names of unimplemented families.
const LATER: [&str; 6] = [
    "cp.async.bulk.tensor.shared::cluster.global",
    "cp.async.bulk.prefetch.tensor",
    "cp.async.bulk.shared::cluster.global",
    "tcgen05",
    "st.async",
    "red.async",
];

/// Whether an instruction belongs to an unimplemented family; block-scaled formats are recognised
/// in the middle of the name.
fn is_later(name: &str) -> bool {
    name.contains(".kind::") || LATER.iter().any(|family| format!("{name} ").starts_with(family))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file and a target to compile it for.
pub struct Job {
    pub path: PathBuf,
    /// Folder and file name, as in the list.
    pub name: String,
    pub target: String,
    /// The target that the file names is raised to `target`.
    pub raised: bool,
}

/// The target that the manifest does not know.
const NEWEST: &str = "sm_107";

/// A file that it does not compile: the target has no `.kind::i8`, as ptxas 13.5.37 says, too.
const NOT_FOR_NEWEST: [&str; 1] = ["22_blackwell.sm_100a"];

/// Its job for a file of a target: none if the target came later or is no relative.
fn newest(own: &str, path: &Path, name: &str) -> Option<Job> {
    let known = sassafras::tables::Target::by_name(own)?;
    let suffix = own.trim_start_matches(|c: char| !c.is_ascii_digit()).trim_start_matches(|c: char| c.is_ascii_digit());
    let relative = ["sm_100", "sm_103"].iter().any(|base| own.starts_with(base));
    let fits = if suffix.is_empty() { known.sm <= 107 } else { relative };
    let job = || Job {
        path: path.to_path_buf(),
        name: name.to_string(),
        target: format!("{NEWEST}{suffix}"),
        raised: !suffix.is_empty(),
    };
    (fits && !NOT_FOR_NEWEST.iter().any(|other| name.contains(other))).then(job)
}

/// The text of a job's file.
fn text(job: &Job) -> std::io::Result<String> {
    let text = std::fs::read_to_string(&job.path)?;
    let line = |line: &str| match line.trim_start() {
        l if l.starts_with(".version") => ".version 9.4".to_string(),
        l if l.starts_with(".target") => format!(".target {}", job.target),
        _ => line.to_string(),
    };
    Ok(if job.raised { text.lines().map(line).collect::<Vec<_>>().join("\n") } else { text })
}

fn jobs() -> Vec<Job> {
    let corpus = root().join("../shared/corpus");
    let Ok(manifest) = std::fs::read_to_string(corpus.join("manifest.json")) else {
        println!("skipped: no corpus beside the project");
        return Vec::new();
    };
    let all = std::env::var("SASSAFRAS_CORPUS").is_ok_and(|v| v == "all");
    let only = std::env::var("SASSAFRAS_CASE").unwrap_or_default();
    let manifest: BTreeMap<String, serde_json::Value> = serde_json::from_str(&manifest).expect("a manifest");
    let mut jobs = Vec::new();
    for (i, (name, about)) in manifest.into_iter().enumerate().filter(|(_, (name, _))| name.contains(&only)) {
        let targets: Vec<&String> = figures(&about).keys().collect();
        let own = about["target"].as_str().unwrap_or_default();
        jobs.extend(newest(own, &corpus.join(&name), &name).filter(|_| all || i % 4 == 0));
        for (t, target) in targets.iter().enumerate() {
            if all || t == i % targets.len() {
                let (path, name, target) = (corpus.join(&name), name.clone(), target.to_string());
                jobs.push(Job { path, name, target, raised: false });
            }
        }
    }
    jobs
}

/// The outcome of a job.
enum Outcome {
    Cubin(Vec<u8>),
    /// Names of unsupported instructions.
    Later(BTreeSet<String>),
    Wrong(String),
}

fn outcome(job: &Job) -> Outcome {
    let Ok(source) = text(job) else { return Outcome::Wrong("cannot be read".into()) };
    let options = Options { verify_ir: true, ..Options::new(&job.target) };
    match std::panic::catch_unwind(|| compile(&source, &options)) {
        Ok(Ok(output)) => Outcome::Cubin(output.cubin),
        Ok(Err(errors)) => refused(&errors),
        Err(_) => Outcome::Wrong("panics".into()),
    }
}

fn refused(errors: &[Diagnostic]) -> Outcome {
    let mut names = BTreeSet::new();
    for error in errors {
        let name = error.message.strip_prefix("Instruction '").and_then(|m| m.split_once("' is not "));
        match name {
            Some((name, _)) if is_later(name) => {
                names.insert(name.to_string());
            }
            _ => return Outcome::Wrong(format!("line {}: {}", error.pos.map_or(0, |p| p.line), error.message)),
        }
    }
    Outcome::Later(names)
}

/// Runs every job, with one thread per core.
fn outcomes(jobs: &[Job]) -> Vec<(&Job, Outcome)> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = outcome(job);
                    done.lock().expect("no thread fails").push((job, outcome));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no thread fails");
    done.sort_by(|a, b| (&a.0.name, &a.0.target).cmp(&(&b.0.name, &b.0.target)));
    done
}

#[test]
fn real_files_compile_and_print() {
    let jobs = jobs();
    if jobs.is_empty() {
        return;
    }
    let (mut wrong, mut later, mut cubins) = (Vec::new(), BTreeMap::new(), Vec::new());
    let mut count = [0; 2];
    for (job, outcome) in outcomes(&jobs) {
        match outcome {
            Outcome::Cubin(bytes) => {
                count[0] += 1;
                cubins.push((job, bytes));
            }
            Outcome::Later(names) => {
                count[1] += 1;
                later.insert(job.name.clone(), names);
            }
            Outcome::Wrong(why) => wrong.push(format!("{} {}: {why}", job.name, job.target)),
        }
    }
    println!("{} compiled, {} of later families, {} wrong", count[0], count[1], wrong.len());
    wrong.extend(against_the_list(&later, &cubins));
    assert!(wrong.is_empty(), "{} files:\n{}", wrong.len(), wrong.join("\n"));
    prints_as_nvdisasm(&cubins);
}

/// Files whose rejection is not listed, and listed files that compile.
fn against_the_list(later: &BTreeMap<String, BTreeSet<String>>, cubins: &[(&Job, Vec<u8>)]) -> Vec<String> {
    let path = root().join("tests/corpus_later.txt");
    let line = |(name, ops): (&String, &BTreeSet<String>)| {
        format!("{name}: {}\n", ops.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
    };
    let now: BTreeSet<String> = later.iter().map(line).collect();
    if std::env::var("SASSAFRAS_BLESS").is_ok() {
        std::fs::write(&path, now.iter().map(String::as_str).collect::<String>()).expect("the list written");
        return Vec::new();
    }
    let listed = std::fs::read_to_string(&path).unwrap_or_default();
    let listed: BTreeSet<String> = listed.lines().map(|l| format!("{l}\n")).collect();
    let unknown = now.difference(&listed).map(|l| format!("not in the list: {l}"));
    let built = |l: &&String| cubins.iter().any(|(job, _)| l.starts_with(&format!("{}:", job.name)));
    unknown.chain(listed.iter().filter(built).map(|l| format!("in the list, and compiles: {l}"))).collect()
}

/// Each distinct instruction of each target, without control bits, compared with nvdisasm.
pub fn prints_as_nvdisasm(cubins: &[(&Job, Vec<u8>)]) {
    if vendor::tool("nvdisasm").is_none() {
        println!("skipped: no nvdisasm in target/vendor");
        return;
    }
    const CONTROL: u128 = !(((1 << 23) - 1) << 105);
    let mut wrong = listed::Wrong::default();
    let mut by_target: BTreeMap<&str, BTreeMap<u128, (String, listed::Line)>> = BTreeMap::new();
    for (job, bytes) in cubins {
        match listed::ours(bytes) {
            Ok(functions) => {
                let target = job.target.trim_start_matches("sm_").trim_end_matches(['a', 'f']);
                let words = by_target.entry(target).or_default();
                for line in functions.into_values().flatten() {
                    words.entry(line.word & CONTROL).or_insert((job.name.clone(), line));
                }
            }
            Err(error) => wrong.add(&job.target, "file", format!("{}: {error}", job.name)),
        }
    }
    for (sm, lines) in by_target {
        let words: Vec<u128> = lines.values().map(|l| l.1.word).collect();
        println!("sm_{sm}: {} distinct instructions", words.len());
        for ((at, (name, line)), theirs) in lines.into_values().enumerate().zip(vendor::disassemble(&words, sm)) {
            let theirs = theirs.unwrap_or_else(|| "(refused)".into());
            let ours = listed::moved(&line, &theirs, at as u64 * 16);
            if ours != theirs || !line.error.is_empty() {
                let what = format!("{name}\n  ours   {ours}\n  theirs {theirs}\n  {}", line.error);
                wrong.add(sm, &theirs, what);
            }
        }
    }
    wrong.report();
}
