//! Compares each lowering with that of ptxas, on the simulator.
//!
//! The input is `tests/cases/lowering/forms.txt`, one instruction form per line. Each becomes a
//! kernel with blocks of 32 threads, the first with edge values, the others with random ones. Our
//! cubin and that of ptxas for the same PTX run on the simulator, and all memory they write must be
//! equal bit for bit. The PTX interpreter executes the same text and must leave the same memory, up
//! to the ISA's error bounds (`support/judge.rs`). A form that the simulator or the interpreter
//! does not support has no anchor; `unanchored.txt` lists these with the reason. A missing line and
//! an obsolete one are both failures (`SASSAFRAS_BLESS=1` writes the list of a full run), and so is
//! any other fault. Without ptxas the test says so and stops.
//!
//! `SASSAFRAS_ORACLE=all` runs each form with 1,024 random rows at -O0 and -O3,
//! `SASSAFRAS_ORACLE=levels` with 96 at both; the default is 96, with -O0 on one target only.
//! `SASSAFRAS_CASE=a,b` selects the forms that contain one of the texts, `SASSAFRAS_SM=90,100`
//! these targets; `SASSAFRAS_KEEP=FOLDER` keeps the modules there.

use crate::judge;
use crate::lowering_support;
use crate::lowering_support::forms::{Form, RESULTS, STRIDE, THREADS, folder, forms, module};
use sassafras::compile::{Options, compile};
use sassafras::cubin::{self, Cubin};
use sassafras::sim::fault::Fault;
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{How, Shape, decode, run_decoded};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One target of each generation, and the one with 64-bit integer opcodes.
const TARGETS: [&str; 5] = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"];
/// Targets with an instruction set of their own; their few forms run at both levels.
const OWN: [&str; 2] = ["sm_100a", "sm_120a"];
/// Number of forms compiled together.
const CHUNK: usize = 50;
/// Blocks: one with edge values, the others random.
const BLOCKS: usize = 4;
const BLOCKS_ALL: usize = 33;

/// The findings of a run.
#[derive(Default)]
struct Found {
    wrong: Vec<String>,
    /// By run (`sm_90 -O3 FORM`, `sm_90 ptx FORM`): the reason for a missing anchor; empty if there
    /// is one.
    anchors: BTreeMap<String, String>,
    /// Forms without results to compare.
    executed: BTreeSet<String>,
}

/// Some forms on one target, at some levels.
struct Job<'a> {
    target: &'static str,
    levels: &'static [u8],
    forms: Vec<(usize, &'a Form)>,
}

/// Shared state of all jobs.
struct Bench {
    ptxas: PathBuf,
    input: Vec<u8>,
    shape: Shape,
}

impl Bench {
    /// Runs a form's kernel; with timing, a premature read is a fault. Code of ptxas runs without
    /// timing, because the latency tables may be more conservative; that is tested in
    /// tests/kernels/simulate_ptxas.rs and tests/sass/hazards.rs.
    fn execute(&self, cubin: &Cubin, kernel: usize, timed: bool) -> Result<Vec<u8>, Fault> {
        let mut values = [ArgValue::Buffer { bytes: self.input.clone(), writable: true }];
        let (name, how) = (format!("k{kernel}"), How { timed, ..How::default() });
        let code = decode(cubin, &name)?;
        run_decoded(cubin, &name, self.shape, &mut values, &code, how)?.clean()?;
        match values {
            [ArgValue::Buffer { bytes, .. }] => Ok(bytes),
            _ => Err(Fault::new("the buffer is gone")),
        }
    }

    fn ptxas(&self, target: &str, level: u8, source: &str) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let (ptx, cubin) = (dir.path().join("k.ptx"), dir.path().join("k.cubin"));
        std::fs::write(&ptx, source).unwrap();
        let mut command = Command::new(&self.ptxas);
        let output = command.args(["-arch", target, &format!("-O{level}")]).arg(&ptx).arg("-o").arg(&cubin).output();
        let output = output.unwrap();
        if let Some(folder) = std::env::var_os("SASSAFRAS_KEEP") {
            let name = format!("{target}-O{level}-{}", source.len());
            std::fs::write(Path::new(&folder).join(name + ".ptx"), source).unwrap();
        }
        assert!(output.status.success(), "ptxas -arch {target}: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::read(&cubin).unwrap()
    }

    fn job(&self, job: &Job, found: &mut Found) {
        let source = module(job.target, &job.forms);
        let parsed = judge::parsed(&source);
        let judged: Vec<Result<Vec<u8>, Fault>> = job
            .forms
            .iter()
            .map(|(number, form)| match form.compared {
                true => parsed
                    .as_ref()
                    .map_err(Clone::clone)
                    .and_then(|parsed| judge::interpret(parsed, &format!("k{number}"), self.shape, &self.input)),
                false => Ok(Vec::new()),
            })
            .collect();
        for level in job.levels {
            self.level(job, *level, &source, &judged, found);
        }
    }

    fn level(&self, job: &Job, level: u8, source: &str, judged: &[Result<Vec<u8>, Fault>], found: &mut Found) {
        let options = Options { verify_ir: true, opt_level: level, ..Options::new(job.target) };
        let ours = match compile(source, &options) {
            Ok(output) => cubin::read(&output.cubin).expect("our cubin is read"),
            Err(diagnostics) => {
                return found.wrong.push(diagnostics.iter().map(|d| d.render(job.target, source)).collect());
            }
        };
        let theirs = cubin::read(&self.ptxas(job.target, level, source)).expect("ptxas's cubin is read");
        for ((number, form), third) in job.forms.iter().zip(judged) {
            let how = format!("{} -O{level} {}", job.target, form.text);
            let mine = match self.execute(&ours, *number, true) {
                Ok(bytes) => bytes,
                Err(fault) => {
                    found.wrong.push(format!("{how}: {fault}"));
                    continue;
                }
            };
            if !form.compared {
                found.executed.insert(form.text.clone());
                continue;
            }
            interpreter(job.target, form, &how, &mine, third, found);
            match self.execute(&theirs, *number, false) {
                Err(fault) if fault.is_refused() => drop(found.anchors.insert(how, reason(&fault))),
                Err(fault) => found.wrong.push(format!("{how}: ptxas's cubin: {fault}")),
                Ok(bytes) if bytes == mine => drop(found.anchors.insert(how, String::new())),
                Ok(_) if form.ptxas_wrong => drop(found.anchors.insert(how, "ptxas is wrong".to_string())),
                Ok(bytes) => found.wrong.push(format!("{how}: {}", first_difference(&mine, &bytes))),
            }
        }
    }
}

/// Compares our result with the interpreter.
fn interpreter(target: &str, form: &Form, how: &str, mine: &[u8], third: &Result<Vec<u8>, Fault>, found: &mut Found) {
    let anchor = format!("{target} ptx {}", form.text);
    match third.as_ref().map(|bytes| judge::difference(&form.text, STRIDE, RESULTS, mine, bytes)) {
        Ok(Some(difference)) if form.interpreted => found.wrong.push(format!("{how}: {difference}")),
        Ok(_) => drop(found.anchors.insert(anchor, String::new())),
        Err(fault) if fault.is_refused() => drop(found.anchors.insert(anchor, reason(fault))),
        Err(fault) => found.wrong.push(format!("{how}: the interpreter: {fault}")),
    }
}

/// The message of a refusal without the instruction's word and position.
fn reason(fault: &Fault) -> String {
    let text = fault.what.split(" at line ").next().unwrap_or_default();
    let named = text.strip_prefix("invalid instruction ").and_then(|rest| rest.split_once(": "));
    named.map_or(text, |(_, why)| why).to_string()
}

fn first_difference(mine: &[u8], theirs: &[u8]) -> String {
    let at = (0..mine.len()).find(|i| theirs[*i] != mine[*i]).unwrap_or(0);
    let (thread, byte) = (at / STRIDE, at % STRIDE / 4 * 4);
    let row = thread * STRIDE;
    let words = |b: &[u8]| b[row + byte..][..8].iter().rev().map(|x| format!("{x:02x}")).collect::<String>();
    let inputs: String =
        mine[row..][..104].chunks(4).map(|w| format!(" {:x}", u32::from_le_bytes(w.try_into().unwrap()))).collect();
    format!("thread {thread} byte {byte}: {} and not {} (of{inputs})", words(mine), words(theirs))
}

/// The words of a list in an environment variable.
fn chosen(name: &str) -> Vec<String> {
    std::env::var(name).map_or(Vec::new(), |list| list.split(',').map(str::to_string).collect())
}

fn jobs<'a>(forms: &'a [Form], all: bool) -> Vec<Job<'a>> {
    let (texts, targets) = (chosen("SASSAFRAS_CASE"), chosen("SASSAFRAS_SM"));
    let taken = |form: &Form| texts.is_empty() || texts.iter().any(|text| form.text.contains(text));
    let numbered: Vec<(usize, &Form)> = forms.iter().enumerate().filter(|(_, form)| taken(form)).collect();
    let mut jobs = Vec::new();
    for (t, target) in TARGETS.into_iter().chain(OWN).enumerate() {
        if !targets.is_empty() && !targets.iter().any(|sm| target.trim_end_matches('a') == format!("sm_{sm}")) {
            continue;
        }
        for (c, chunk) in numbered.chunks(CHUNK).enumerate() {
            let levels: &[u8] = if all || t >= TARGETS.len() || c % TARGETS.len() == t { &[0, 3] } else { &[3] };
            let forms: Vec<_> = chunk.iter().filter(|(_, form)| form.on(target)).copied().collect();
            if !forms.is_empty() {
                jobs.push(Job { target, levels, forms });
            }
        }
    }
    jobs
}

fn found(bench: &Bench, jobs: &[Job]) -> Found {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Found::default()));
    let work = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut own = Found::default();
            bench.job(job, &mut own);
            let mut all = found.lock().unwrap();
            all.wrong.extend(own.wrong);
            all.anchors.extend(own.anchors);
            all.executed.extend(own.executed);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    found.into_inner().unwrap()
}

/// Compares the list with the findings; a full run must use every line.
fn check_list(found: &Found, full: bool) {
    let path = folder().join("unanchored.txt");
    let missing: BTreeMap<&String, &String> = found.anchors.iter().filter(|(_, why)| !why.is_empty()).collect();
    let now: BTreeSet<String> = missing.iter().map(|(how, why)| format!("{how} // {why}")).collect();
    if full && std::env::var_os("SASSAFRAS_BLESS").is_some() {
        std::fs::write(&path, now.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let listed: BTreeSet<String> = text.lines().map(str::to_string).collect();
    let new: Vec<&String> = now.difference(&listed).collect();
    assert!(new.is_empty(), "without an anchor, and not listed:\n{new:#?}");
    let ran = |line: &&String| line.split_once(" // ").is_none_or(|(how, _)| full || found.anchors.contains_key(how));
    let stale: Vec<&String> = listed.difference(&now).filter(ran).collect();
    assert!(stale.is_empty(), "listed, and not found:\n{stale:#?}");
}

fn count(found: &Found, forms: &[Form], blocks: usize) {
    let texts = |some: &dyn Fn(&str) -> bool| {
        let ways = found.anchors.iter().filter(|(_, why)| some(why.as_str()));
        let text = |how: &String| how.splitn(3, ' ').nth(2).unwrap_or_default().to_string();
        ways.map(|(how, _)| text(how)).collect::<BTreeSet<String>>()
    };
    let (any, missing) = (texts(&|_| true), texts(&|why| !why.is_empty()));
    println!(
        "{} forms in the list; {} are executed only, having no result to compare",
        forms.len(),
        found.executed.len()
    );
    println!(
        "{} compared on {} rows each, {} of them everywhere",
        any.len(),
        blocks * THREADS,
        any.len() - missing.len()
    );
    let way = |ptx: bool| {
        let some = found.anchors.iter().filter(|(how, _)| how.contains(" ptx ") == ptx);
        (some.clone().count(), some.filter(|(_, why)| !why.is_empty()).count())
    };
    let ((machine, refused), (interpreter, lacking)) = (way(false), way(true));
    println!("ptxas's cubins: {machine} runs, {refused} refused; the interpreter: {interpreter}, {lacking} refused");
}

#[test]
fn lowerings_agree_with_ptxas() {
    let ptxas = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/vendor/ptxas");
    if !ptxas.exists() {
        println!("skipped: target/vendor/ptxas is missing");
        return;
    }
    let forms = forms();
    assert!(forms.len() > 1000);
    let asked = std::env::var("SASSAFRAS_ORACLE").unwrap_or_default();
    let all = asked == "all" || asked == "levels";
    let blocks = if asked == "all" { BLOCKS_ALL } else { BLOCKS };
    let input = lowering_support::values::inputs(blocks, THREADS, STRIDE);
    let shape = Shape { grid: [blocks as u32, 1, 1], block: [THREADS as u32, 1, 1], smem: 0 };
    let found = found(&Bench { ptxas, input, shape }, &jobs(&forms, all));
    count(&found, &forms, blocks);
    if std::env::var_os("SASSAFRAS_SHOW").is_some() {
        found.anchors.iter().filter(|(_, why)| !why.is_empty()).for_each(|(how, why)| println!("{how} // {why}"));
    }
    let narrowed = ["SASSAFRAS_CASE", "SASSAFRAS_SM"].iter().any(|name| std::env::var_os(name).is_some());
    assert!(found.wrong.is_empty(), "{} forms differ:\n{}", found.wrong.len(), found.wrong.join("\n"));
    check_list(&found, all && !narrowed);
}
