//! Compares our compiler with ptxas on real PTX: CPU time, code size, registers and spills.
//!
//! The input is `.ptx` files (`cargo bench --bench ptxas -- [--runs N] [--only TEXT] [--files]
//! [FOLDER…]`; without a folder, the corpus beside the project and the kernels of the tests), each
//! for its own target. It prints per folder and in total, over the files that both compile, our
//! total over theirs, and the share that each compiles. CPU time is user and system time of the
//! whole process at -O3, the minimum of N runs (default three), with the two compilers alternating.

use sassafras::{cubin, sass, tables::Op, tables::Target};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One compiler's result for one file.
#[derive(Clone, Copy, Default)]
struct Made {
    /// CPU time in seconds.
    cpu: f64,
    /// Number of instructions, with NOPs except those that pad a function to its alignment.
    instructions: usize,
    nops: usize,
    /// Sum over the functions.
    registers: u64,
    /// Bytes of spill stores and loads.
    spills: u64,
}

struct Options {
    runs: usize,
    only: Option<String>,
    files: bool,
    folders: Vec<PathBuf>,
}

fn options() -> Options {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut options = Options { runs: 3, only: None, files: false, folders: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--runs" => options.runs = words.next().and_then(|n| n.parse().ok()).unwrap_or(3).max(1),
            "--only" => options.only = words.next(),
            "--files" => options.files = true,
            // An argument that cargo adds.
            "--bench" => {}
            _ => options.folders.push(word.into()),
        }
    }
    if options.folders.is_empty() {
        let corpus = root.join("../shared/corpus");
        options.folders = vec![root.join("tests/cases/exec"), root.join("tests/corpus")];
        options.folders.extend(["cuda", "llvm", "numba", "production", "triton"].map(|f| corpus.join(f)));
    }
    options
}

/// CPU seconds of all children so far.
fn children() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a rusage, which the call fills in.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Runs a compiler once. Returns its CPU time and its output, or `None` if it rejects the file.
fn once(compiler: &Path, target: &str, source: &Path, cubin: &Path) -> Option<(f64, String)> {
    let before = children();
    let mut command = Command::new(compiler);
    command.arg(format!("-arch={target}")).args(["-O3", "-v"]).arg(source).arg("-o").arg(cubin);
    let output = command.stdin(Stdio::null()).output().ok()?;
    let cpu = children() - before;
    output.status.success().then(|| (cpu, String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// The sum of the numbers before a text.
fn sum_before(log: &str, behind: &str) -> u64 {
    let parts: Vec<&str> = log.split(behind).collect();
    let number = |part: &&str| part.split(' ').next_back().and_then(|n| n.parse::<u64>().ok());
    parts[..parts.len() - 1].iter().filter_map(number).sum()
}

/// Size of the code, without the padding after the last branch to itself.
fn size(cubin: &Path, made: &mut Made) -> Option<()> {
    let cubin = cubin::read(&std::fs::read(cubin).ok()?).ok()?;
    let name = format!("sm_{}{}", cubin.sm, if cubin.accelerator { "a" } else { "" });
    let target = Target::by_name(&name)?;
    for function in &cubin.functions {
        let words = function.code.chunks_exact(16).map(|w| u128::from_le_bytes(w.try_into().unwrap_or_default()));
        let nops: Vec<bool> = words.map(|w| sass::decode(target, w).is_ok_and(|inst| inst.op == Op::NOP)).collect();
        let used = nops.len() - nops.iter().rev().take_while(|nop| **nop).count();
        made.instructions += used;
        made.nops += nops[..used].iter().filter(|nop| **nop).count();
    }
    Some(())
}

fn measure(compiler: &Path, target: &str, source: &Path, runs: usize, folder: &Path) -> Option<Made> {
    let cubin = folder.join("bench.cubin");
    let mut made = Made { cpu: f64::INFINITY, ..Made::default() };
    let mut log = String::new();
    for _ in 0..runs {
        let (cpu, text) = once(compiler, target, source, &cubin)?;
        made.cpu = made.cpu.min(cpu);
        log = text;
    }
    made.registers = sum_before(&log, " registers");
    made.spills = sum_before(&log, " bytes spill");
    size(&cubin, &mut made)?;
    Some(made)
}

/// The target that a file names.
fn target_of(source: &Path) -> Option<String> {
    let text = std::fs::read_to_string(source).ok()?;
    let line = text.lines().find_map(|l| l.trim().strip_prefix(".target"))?;
    Some(line.trim().split([',', ' ', '/']).next()?.to_string())
}

/// Sums over the files of a folder.
#[derive(Default)]
struct Sum {
    files: usize,
    by_us: usize,
    by_them: usize,
    both: usize,
    ours: Made,
    theirs: Made,
}

impl Sum {
    fn add(&mut self, ours: Option<Made>, theirs: Option<Made>) {
        self.files += 1;
        self.by_us += usize::from(ours.is_some());
        self.by_them += usize::from(theirs.is_some());
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            self.both += 1;
            add(&mut self.ours, ours);
            add(&mut self.theirs, theirs);
        }
    }

    fn join(&mut self, other: &Sum) {
        self.files += other.files;
        self.by_us += other.by_us;
        self.by_them += other.by_them;
        self.both += other.both;
        add(&mut self.ours, other.ours);
        add(&mut self.theirs, other.theirs);
    }

    fn print(&self, label: &str) {
        let (us, them) = (self.ours, self.theirs);
        println!(
            "{label:<24} {:>4} of {:>4} files ({:>3} theirs)  CPU {:>8.3}s / {:>8.3}s = {:.3}  instructions {:>7} / {:>7} = {:.2}  \
             NOPs {} / {}  registers {} / {} = {:.2}  spill bytes {} / {}",
            self.by_us,
            self.files,
            self.by_them,
            us.cpu,
            them.cpu,
            us.cpu / them.cpu,
            us.instructions,
            them.instructions,
            us.instructions as f64 / them.instructions as f64,
            us.nops,
            them.nops,
            us.registers,
            them.registers,
            us.registers as f64 / them.registers as f64,
            us.spills,
            them.spills,
        );
    }
}

fn add(sum: &mut Made, more: Made) {
    sum.cpu += more.cpu;
    sum.instructions += more.instructions;
    sum.nops += more.nops;
    sum.registers += more.registers;
    sum.spills += more.spills;
}

fn sources(folder: &Path, only: Option<&str>) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "ptx"));
    paths.retain(|p| only.is_none_or(|text| p.to_string_lossy().contains(text)));
    paths.sort();
    paths
}

fn main() {
    let options = options();
    let theirs = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/vendor/ptxas");
    if !theirs.exists() {
        println!("skipped: target/vendor/ptxas is missing");
        return;
    }
    let ours = Path::new(env!("CARGO_BIN_EXE_sassafras"));
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let mut all = Sum::default();
    for folder in &options.folders {
        let mut sum = Sum::default();
        for source in sources(folder, options.only.as_deref()) {
            let Some(target) = target_of(&source) else { continue };
            let us = measure(ours, &target, &source, options.runs, scratch.path());
            let them = measure(&theirs, &target, &source, options.runs, scratch.path());
            let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if options.files {
                let mut one = Sum::default();
                one.add(us, them);
                one.print(&name);
            }
            sum.add(us, them);
        }
        sum.print(&folder.file_name().unwrap_or_default().to_string_lossy());
        all.join(&sum);
    }
    all.print("all");
}
