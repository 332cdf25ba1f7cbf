//! Every launch on a card: our cubins and the incumbent's give what the interpreter computes; how long they take; and what the driver
//! needs of a cubin.
//!
//! Input: tests/cases/{exec,corpus}/*.ron under the current folder, and the card of the CUDA driver, or of the library that
//! `SASSAFRAS_CUDA_DRIVER` names. Output: a table on standard output, and in the file `SASSAFRAS_GPU_REPORT` if that is set;
//! exit status 1 if a launch went wrong. Without a driver it says `skipped` and runs a few cases over the machine's own driver
//! (tests/gpu/machine_driver.rs) if that was built. The incumbent's cubins are made where target/vendor/ptxas is there.
//! Each case file runs in a process of its own: after an error of the card a process is lost, and a kernel that hangs is given up.
//! `SASSAFRAS_CASE` (a list) narrows it. Run it from the repository's root; it needs neither cargo nor a compiler.

mod loader;

use sassafras::compile::{Options, compile};
use sassafras::gpu::Card;
use sassafras::sim;
use sassafras::sim::launch::{Launch, LaunchFile};
use sassafras::sim::run::Shape;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Runs of a kernel for its time.
const REPEATS: usize = 20;
/// A case that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(120);
/// The cases that the machine's own driver runs.
const SAMPLE: &str = "saxpy,bitonic,grid3d,large_parameters";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["case", path] => case(Path::new(path)),
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

fn cases() -> Vec<PathBuf> {
    let folders = ["exec", "corpus"].map(|name| Path::new("tests/cases").join(name));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten());
    let mut paths: Vec<PathBuf> = files.map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "ron"));
    let wanted = std::env::var("SASSAFRAS_CASE").ok();
    let name = |p: &PathBuf| p.file_stem().unwrap().to_string_lossy().into_owned();
    paths.retain(|p| wanted.as_ref().is_none_or(|list| list.split(',').any(|w| w == name(p))));
    paths.sort();
    paths
}

fn all() -> ExitCode {
    let card = match card() {
        Ok(card) => card,
        Err(error) => {
            println!("skipped: {error}");
            return on_the_machine();
        }
    };
    let (major, minor) = card.capability;
    let mut report = format!("{}, capability {major}.{minor}, driver {}\n", card.name, card.driver);
    drop(card);
    let (mut right, mut wrong) = (0, 0);
    for path in cases() {
        let lines = child(&["case", path.to_str().unwrap()]);
        for line in lines.lines() {
            let good = line.split('\t').nth(3) == Some("right");
            *(if good { &mut right } else { &mut wrong }) += 1;
            report += &format!("{line}\n");
        }
    }
    if std::env::var_os("SASSAFRAS_CASE").is_none() {
        report += &loader::experiment(child);
    }
    report += &format!("{right} right, {wrong} wrong\n");
    print!("{report}");
    if let Some(file) = std::env::var_os("SASSAFRAS_GPU_REPORT") {
        std::fs::write(file, &report).unwrap();
    }
    if wrong == 0 && right > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One case over the driver that executes on the machine: the way of the arguments, without a card.
fn on_the_machine() -> ExitCode {
    let own = std::env::current_exe().unwrap();
    let library = own.parent().and_then(Path::parent).map(|p| p.join("examples/libmachine_driver.so"));
    let Some(library) = library.filter(|l| l.exists()) else {
        println!("skipped: examples/libmachine_driver.so is not built");
        return ExitCode::SUCCESS;
    };
    let status = Command::new(own)
        .env("SASSAFRAS_CUDA_DRIVER", library)
        .env("SASSAFRAS_CASE", std::env::var("SASSAFRAS_CASE").unwrap_or(SAMPLE.into()))
        .status();
    if status.is_ok_and(|s| s.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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
    end.map_or(text.clone(), |end| format!("{text}{}\t-\t-\t{end}\n", args.join(" ")))
}

/// All launches of a description: a line each for our cubins at both ends and for the incumbent's.
fn case(path: &Path) -> ExitCode {
    let card = card().unwrap();
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let file = LaunchFile::load(path).unwrap();
    let Ok(text) = std::fs::read_to_string(&file.module) else { return ExitCode::SUCCESS };
    let Some(target) = card.target_for(&text).filter(|t| file.allows(t.name)) else { return ExitCode::SUCCESS };
    for launch in file.launches.iter().filter(|l| l.wants(target.name)) {
        let source = launch.source(&text).unwrap();
        let expected = expected(launch, &source);
        for (how, cubin) in cubins(&source, target.name) {
            let said = cubin.and_then(|cubin| {
                let expected = expected.as_ref().map_err(Clone::clone)?;
                on(&card, &cubin, launch, expected)
            });
            let (said, time) = said.map_or_else(|e| (e, String::new()), |ms| ("right".into(), format!("{:.4}", ms)));
            println!("{name}\t{}\t{how}\t{said}\t{time}", launch.kernel);
        }
    }
    ExitCode::SUCCESS
}

/// The launch with the interpreter's numbers where it asks for them.
fn expected(launch: &Launch, source: &str) -> Result<Launch, String> {
    let (module, _) = sim::ptx::parse(source.as_bytes());
    let module = module.ok_or("the interpreter does not read it")?;
    let mut values = launch.arg_values();
    let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
    match sim::ptx::run(&module, &launch.kernel, shape, &mut values) {
        Ok(_) => Ok(launch.expecting(&values)),
        Err(fault) => Err(format!("interpreter: {fault}")),
    }
}

type Made = Result<Vec<u8>, String>;

/// The cubins to run, by how they were made.
fn cubins(source: &str, target: &str) -> Vec<(&'static str, Made)> {
    let ours = |opt_level| {
        let options = Options { opt_level, fmad: false, ..Options::new(target) };
        let error = |all: Vec<sassafras::Diagnostic>| all.into_iter().map(|d| d.message).collect::<Vec<_>>().join("; ");
        compile(source, &options).map(|o| o.cubin).map_err(error)
    };
    let mut all = vec![("ours -O0", ours(0)), ("ours -O3", ours(3))];
    let ptxas = Path::new("target/vendor/ptxas");
    if ptxas.exists() {
        all.push(("incumbent -O3", incumbent(ptxas, source, target)));
    }
    all
}

fn incumbent(ptxas: &Path, source: &str, target: &str) -> Made {
    let folder = std::env::temp_dir().join(format!("sassafras-gpu-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let (from, to) = (folder.join("k.ptx"), folder.join("k.cubin"));
    std::fs::write(&from, source).map_err(|e| e.to_string())?;
    let output = Command::new(ptxas).args(["-arch", target, "--fmad=false"]).arg(from).arg("-o").arg(&to).output();
    let output = output.map_err(|e| e.to_string())?;
    let made = if output.status.success() {
        std::fs::read(&to).map_err(|e| e.to_string())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).replace(['\n', '\t'], " "))
    };
    _ = std::fs::remove_dir_all(folder);
    made
}

/// Runs it; the median of its times in milliseconds, or what is wrong.
fn on(card: &Card, cubin: &[u8], launch: &Launch, expected: &Launch) -> Result<f32, String> {
    let mut values = launch.arg_values();
    let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
    // What the cubin states is the loader's business here, not ours.
    let mut times = card.run(cubin, &launch.kernel, shape, &mut values, REPEATS)?;
    expected.check(&values).map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    times.sort_by(f32::total_cmp);
    Ok(times[REPEATS / 2])
}
