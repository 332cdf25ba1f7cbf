//! Every launch on a card: what the interpreter computes is what the machine, our cubins at every level and the incumbent's give on the
//! card; how long the kernels take; and what the driver needs of a cubin.
//!
//! Input: tests/cases/{exec,corpus}/*.ron under the current folder, and the card of the CUDA driver, or of the library that
//! `SASSAFRAS_CUDA_DRIVER` names. Output: tables (`report`) on standard output, and in the file `SASSAFRAS_GPU_REPORT` if that is set: that
//! is how RESULTS.md is filled. Exit status: 0, all launches are right; 1, one went wrong, or none was run; 3, there is no card or no
//! driver, so that nothing was judged: that is no pass, and the first line says `skipped`. Under `cargo test`, where nobody asked for
//! a card, it says `skipped`, too, and then tries its own ways over a driver whose card is the machine (tests/gpu/machine_driver.rs; see
//! `paths`), if that was built, with exit status 0. The incumbent's cubins are made where target/vendor/ptxas is there. What is not run, a
//! module that is not there or one for other targets, has a line that says so.
//! Each case file runs in a process of its own: after an error of the card a process is lost, and a kernel that hangs is given up.
//! `SASSAFRAS_CASE` (a list; `loader` among them is the loader's experiment) narrows it. Run it from the repository's root; it needs
//! neither cargo nor a compiler.

mod case;
mod loader;
mod paths;
mod report;

use sassafras::gpu::Card;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// A case that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(120);
/// Exit status where nothing was judged.
const NO_CARD: u8 = 3;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["case", path] => case::run(Path::new(path)),
        ["loader", number] => loader::variant(number),
        _ => all(),
    }
}

/// The card that was asked for.
fn card() -> Result<Card, String> {
    match std::env::var_os("SASSAFRAS_CUDA_DRIVER") {
        Some(library) => Card::of_driver(Path::new(&library)),
        None => Card::first(),
    }
}

/// Whether a case is asked for by name, or none is.
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
            println!("skipped: no card, nothing was judged: {error}");
            let by_cargo = std::env::var_os("CARGO_MANIFEST_DIR").is_some();
            let asked = std::env::var_os("SASSAFRAS_CUDA_DRIVER").is_some();
            if by_cargo && !asked { paths::over_the_machine() } else { ExitCode::from(NO_CARD) }
        }
    }
}

/// Runs everything on the card, and writes the tables.
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

/// What a process of this program prints; a line of its own where it ends badly.
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
