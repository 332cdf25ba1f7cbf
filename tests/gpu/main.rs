//! Every launch on a GPU: the interpreter, the simulator, our cubins at every level and ptxas's on
//! the GPU give the same values. It also measures the kernels' times and what the driver requires
//! of a cubin.
//!
//! The input is tests/cases/{exec,corpus}/*.ron under the current folder, and the GPU of the CUDA
//! driver, or of the library that `SASSAFRAS_CUDA_DRIVER` names. The output is tables (`report`) on
//! standard output, and in the file `SASSAFRAS_GPU_REPORT` if set; RESULTS.md is made that way.
//! Launches that are not run, because a module is missing or for other targets, have a line that
//! says so. Exit status: 0, all launches are right; 1, a launch failed or none was run; 3, there is
//! no GPU or no driver, so nothing was judged: that is not a pass, and the first line says
//! `skipped`.
//!
//! Under `cargo test` without a GPU it prints `skipped` too, and then tests itself with a driver
//! whose GPU is the simulator (tests/gpu/machine_driver.rs; see `paths`), if that was built, with
//! exit status 0. ptxas's cubins are made if target/vendor/ptxas exists. Each case file runs in a
//! separate process, because a process is lost after a GPU error, and a hanging kernel is killed.
//! `SASSAFRAS_CASE` (a list; `loader` selects the loader's experiment) narrows the run. Run it from
//! the repository's root; it needs neither cargo nor a compiler.

mod case;
mod loader;
mod paths;
mod report;

use sassafras::gpu::Card;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Time limit of a case.
const PATIENCE: Duration = Duration::from_secs(120);
/// Exit status if nothing was judged.
const NO_CARD: u8 = 3;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["case", path] => case::run(Path::new(path)),
        ["loader", number] => loader::variant(number),
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
    let folders = ["exec", "corpus"].map(|name| Path::new("tests/cases").join(name));
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
    drop(card);
    let rows: Vec<String> = cases()
        .iter()
        .flat_map(|p| child(&["case", p.to_str().unwrap()]).lines().map(String::from).collect::<Vec<_>>())
        .collect();
    let parts = if wanted("loader") { loader::experiment(child) } else { String::new() };
    let counts = report::Counts::of(&rows);
    let text = report::results(&name, &rows, &parts);
    print!("{text}");
    if let Some(file) = std::env::var_os("SASSAFRAS_GPU_REPORT") {
        std::fs::write(file, &text).unwrap();
    }
    if counts.wrong == 0 && counts.right > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The output of a child process of this program, with an extra line if it failed.
fn child(args: &[&str]) -> String {
    let mut process = Command::new(std::env::current_exe().unwrap());
    let mut process = process.args(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = process.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        _ = std::io::Read::read_to_string(&mut output, &mut text);
        text
    });
    let start = Instant::now();
    let end = loop {
        match process.try_wait().unwrap() {
            Some(status) if status.success() => break None,
            Some(status) => break Some(format!("ended with {status}")),
            None if start.elapsed() > PATIENCE => {
                _ = process.kill();
                _ = process.wait();
                break Some("was given up".to_string());
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let text = reader.join().unwrap();
    end.map_or(text.clone(), |end| text + &report::row([&args.join(" "), "-", "-", "-", &end, "-", "-", "-"]))
}
