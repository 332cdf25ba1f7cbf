//! Every launch on a GPU: the interpreter, the simulator, our cubins at every level and ptxas's on
//! the GPU give the same values. It also measures the kernels' times and what the driver requires
//! of a cubin. Standard error has each row as soon as it is known.
//!
//! The input is tests/cases/{exec,corpus}/*.ron under the current folder, or the `*.ron` of the
//! folders in `SASSAFRAS_GPU_CASES` (a list; programs_c and random_programs write such folders if
//! `SASSAFRAS_LAUNCHES` names one), and the GPU of the CUDA driver, or of the library that
//! `SASSAFRAS_CUDA_DRIVER` names. The output is tables (`report`) on standard output, and in the
//! file `SASSAFRAS_GPU_REPORT` if set; RESULTS.md is made that way. Launches that are not run,
//! because a module is missing or for other targets, have a line that says so. Exit status: 0, all
//! launches are right or as ptxas's; 1, a launch failed or none was run; 3, there is no GPU or no
//! driver, so nothing was judged: that is not a pass, and the first line says `skipped`.
//!
//! Under `cargo test` without a GPU it prints `skipped` too, and then tests itself with a driver
//! whose GPU is the simulator (tests/gpu/machine_driver.rs; see `paths`), if that was built, with
//! exit status 0. ptxas's cubins are made if target/vendor/ptxas exists. The case files run in
//! processes of their own, a few files each, because a process is lost after a GPU error, and a
//! hanging kernel is killed; what is behind it runs in another one. There is a process per core, or
//! `SASSAFRAS_GPU_JOBS`; with `SASSAFRAS_GPU_TIMES=0` nothing is timed.
//! `SASSAFRAS_CASE` (a list; `loader` selects the loader's experiment) narrows the run. Run it from
//! the repository's root; it needs neither cargo nor a compiler.

mod case;
mod loader;
mod paths;
mod report;

use sassafras::gpu::Card;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Seconds that a case may take, unless `SASSAFRAS_GPU_PATIENCE` says otherwise.
const PATIENCE: u64 = 60;
/// Exit status if nothing was judged.
const NO_CARD: u8 = 3;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["cases", known, ..] => case::run(&args[2..], known.parse().unwrap()),
        ["loader", case, number] => loader::variant(case, number),
        _ => all(),
    }
}

/// The requested GPU.
fn card() -> Result<Card, String> {
    match std::env::var_os("SASSAFRAS_CUDA_DRIVER") {
        Some(library) => Card::of_driver(Path::new(&library)),
        None => Card::first(),
    }
}

/// Whether a case is selected by name, or no names are given.
fn wanted(name: &str) -> bool {
    std::env::var("SASSAFRAS_CASE").map_or(true, |list| list.split(',').any(|wanted| wanted == name))
}

fn cases() -> Vec<PathBuf> {
    let own = || ["exec", "corpus"].map(|name| Path::new("tests/cases").join(name)).to_vec();
    let folders = std::env::var("SASSAFRAS_GPU_CASES");
    let folders = folders.map_or_else(|_| own(), |list| list.split(',').map(PathBuf::from).collect());
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten());
    let mut paths: Vec<PathBuf> = files.map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "ron"));
    paths.retain(|p| wanted(&p.file_stem().unwrap().to_string_lossy()));
    paths.sort();
    paths
}

fn all() -> ExitCode {
    match card() {
        Ok(card) => judge(card),
        Err(error) => {
            println!("skipped: no GPU, nothing was judged: {error}");
            let by_cargo = std::env::var_os("CARGO_MANIFEST_DIR").is_some();
            let asked = std::env::var_os("SASSAFRAS_CUDA_DRIVER").is_some();
            if by_cargo && !asked { paths::over_the_machine() } else { ExitCode::from(NO_CARD) }
        }
    }
}

/// Runs everything on the GPU and writes the tables.
fn judge(card: Card) -> ExitCode {
    let (major, minor) = card.capability;
    let name = format!("{}, capability {major}.{minor}, driver {}", card.name, card.driver);
    // The context stays until the end: the first one on a GPU is made slowly.
    let parts = if wanted("loader") { loader::experiment(|args| child(args).0) } else { String::new() };
    eprint!("{parts}");
    let rows = rows(&cases());
    let counts = report::Counts::of(&rows);
    let text = report::results(&name, &rows, &parts);
    print!("{text}");
    if let Some(file) = std::env::var_os("SASSAFRAS_GPU_REPORT") {
        std::fs::write(file, &text).unwrap();
    }
    drop(card);
    if counts.wrong == 0 && counts.right > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Case files that a process runs.
const GROUP: usize = 8;

/// The rows of all cases, in their order.
fn rows(cases: &[PathBuf]) -> Vec<String> {
    let groups: Vec<&[PathBuf]> = cases.chunks(GROUP).collect();
    parallel(&groups, |group| group_rows(group)).concat()
}

/// Applies `make` to all items, one per core at a time. Returns the results in the items' order.
fn parallel<T: Sync, R: Send>(items: &[T], make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = std::env::var("SASSAFRAS_GPU_JOBS").ok().and_then(|text| text.parse().ok());
    let cores = cores.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
    let (next, all) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..cores.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let made = make(item);
                    all.lock().unwrap().insert(at, made);
                }
            });
        }
    });
    all.into_inner().unwrap().into_values().collect()
}

/// The rows of a group. A process that is lost at a cubin is followed by one that goes on behind
/// it.
fn group_rows(group: &[PathBuf]) -> Vec<String> {
    // The case, and how many of its rows are known.
    let (mut from, mut known, mut rows) = (0, 0, Vec::new());
    while from < group.len() {
        let number = known.to_string();
        let paths = group[from..].iter().map(|path| path.to_str().unwrap());
        let args: Vec<&str> = ["cases", &number].into_iter().chain(paths).collect();
        let start = Instant::now();
        let (text, end) = child(&args);
        let seconds = start.elapsed().as_secs_f32();
        eprintln!("{text}process of {} in {seconds:.1} s: {end:?}", args[2]);
        let (mut done, mut partial) = (0, 0);
        for line in text.lines() {
            if line.starts_with(case::DONE) {
                (done, partial) = (done + 1, 0);
            } else {
                rows.push(line.to_string());
                partial += 1;
            }
        }
        known = if done == 0 { known + partial } else { partial };
        from += done;
        if from == group.len() {
            break;
        }
        let lost = end.as_ref() == Some(&format!("ended with exit status: {}", case::LOST));
        if !lost {
            // The cubin at which it hangs or breaks has this row.
            let name = group[from].display().to_string();
            let end = end.unwrap_or_else(|| "gave no result".to_string());
            rows.push(report::row([&name, "-", "-", "-", &end, "-", "-", "-"]).trim_end().to_string());
        }
        // A case that a process begins with and gets nowhere in is left.
        (from, known) = if done + partial == 0 { (from + 1, 0) } else { (from, known + usize::from(!lost)) };
    }
    rows
}

/// The output of a child process of this program, and how it failed.
fn child(args: &[&str]) -> (String, Option<String>) {
    let mut process = Command::new(std::env::current_exe().unwrap());
    let mut process = process.args(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = process.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        _ = std::io::Read::read_to_string(&mut output, &mut text);
        text
    });
    let patience = std::env::var("SASSAFRAS_GPU_PATIENCE").ok().and_then(|text| text.parse().ok());
    let patience = Duration::from_secs(patience.unwrap_or(PATIENCE)) * args.len() as u32;
    let start = Instant::now();
    let end = loop {
        match process.try_wait().unwrap() {
            Some(status) if status.success() => break None,
            Some(status) => break Some(format!("ended with {status}")),
            None if start.elapsed() > patience => {
                _ = process.kill();
                _ = process.wait();
                break Some("was given up".to_string());
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    (reader.join().unwrap(), end)
}
