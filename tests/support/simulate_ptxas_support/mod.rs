//! Shared by the tests of the simulator: NVIDIA's tools, launches, runs.
//!
//! It runs launch files under tests/cases/exec and returns the differences from the expected
//! values. Nothing is written outside a temporary folder and the build folder.

pub mod lift;
mod merge;

use super::ptxas;
pub use crate::vendor::wanted as tool;
use sassafras::cubin::{self, Cubin};
use sassafras::sim::launch::{Launch, LaunchFile};
use sassafras::sim::run::{How, Shape, decode, run_decoded};
use sassafras::tables::Target;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The launch files, sorted by name.
pub fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/exec");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "ron"));
    files.sort();
    files
}

fn output(tool: &Path, args: &[&str]) -> Result<String, String> {
    let output = Command::new(tool).args(args).output().map_err(|e| e.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout))),
    }
}

/// NVIDIA's programs.
#[derive(Clone)]
pub struct Tools {
    pub ptxas: PathBuf,
    pub nvdisasm: PathBuf,
    /// Those of 13.5, not of 13.0.
    pub newest: bool,
}

impl Tools {
    /// Those that know a target and a version: the newest for what PTX 9.0 does not have; `None`
    /// where they are not installed.
    pub fn of(sm: &str, module: &Path) -> Option<Tools> {
        let text = std::fs::read_to_string(module).unwrap_or_default();
        let later = text.lines().any(|l| l.strip_prefix(".version 9.").is_some_and(|minor| minor != "0"));
        let newest = later || Target::by_name(&format!("sm_{sm}")).is_some_and(|t| t.min_ptx > (9, 0));
        let place = |name: &str| if newest { format!("13.5/{name}") } else { name.to_string() };
        Some(Tools { ptxas: tool(&place("ptxas"))?, nvdisasm: tool(&place("nvdisasm"))?, newest })
    }
}

/// A cubin of ptxas and nvdisasm's output for it.
pub struct Made {
    pub cubin: Cubin,
    pub listing: String,
}

/// What ptxas is asked for.
pub struct Job {
    pub tools: Tools,
    pub ptx: PathBuf,
    pub sm: String,
    pub level: &'static str,
}

/// Where the listing of a file is kept: named by its text and by the ptxas.
fn kept(tools: &Tools, ptx: &Path, sm: &str, level: &str) -> Result<PathBuf, String> {
    let source = std::fs::read(ptx).map_err(|e| e.to_string())?;
    let ptxas = std::fs::metadata(&tools.ptxas).map_err(|e| e.to_string())?;
    let mut hasher = std::hash::DefaultHasher::new();
    (source, &tools.ptxas, ptxas.len(), ptxas.modified().ok()).hash(&mut hasher);
    let name = format!("listings/{:016x}{level}.sm_{sm}.sass", hasher.finish());
    Ok(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
}

/// Writes a file of the build folder under a temporary name and renames it, since another test may
/// look for it at the same time.
fn keep(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(bytes)?;
        file.persist(path).map(|_| ()).map_err(|e| e.error)
    };
    write().map_err(|e| e.to_string())
}

/// The cubin that ptxas makes of a file, kept in the build folder.
fn cubin_of(tools: &Tools, ptx: &Path, sm: &str, level: &str) -> Result<Vec<u8>, String> {
    ptxas::cubin(&tools.ptxas, &std::fs::read(ptx).map_err(|e| e.to_string())?, sm, level)
}

/// The output of nvdisasm for the bytes of a file. Its analysis of branches only adds remarks that
/// the parser drops, and takes a third of the time.
fn listing_of(tools: &Tools, bytes: &[u8]) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = folder.path().join("a.cubin");
    std::fs::write(&path, bytes).map_err(|e| e.to_string())?;
    output(&tools.nvdisasm, &["-c", "-ndf", &path.to_string_lossy()])
}

/// Compiles a PTX file with ptxas; a cubin of the same text is reused from the build folder.
pub fn compile(tools: &Tools, ptx: &Path, sm: &str, level: &str) -> Result<Made, String> {
    let bytes = cubin_of(tools, ptx, sm, level)?;
    let kept = kept(tools, ptx, sm, level)?;
    let listing = match std::fs::read_to_string(&kept) {
        Ok(listing) => listing,
        Err(_) => {
            let listing = listing_of(tools, &bytes)?;
            keep(&kept, listing.as_bytes())?;
            listing
        }
    };
    Ok(Made { cubin: cubin::read(&bytes).map_err(|e| format!("{e:?}"))?, listing })
}

/// The same without the listing.
#[allow(dead_code)] // Not every test that shares this file does without.
pub fn compile_alone(tools: &Tools, ptx: &Path, sm: &str, level: &str) -> Result<Cubin, String> {
    cubin::read(&cubin_of(tools, ptx, sm, level)?).map_err(|e| format!("{e:?}"))
}

/// Most cubins in one run of nvdisasm.
const BATCH: usize = 100;

/// Does the work of [`compile`] beforehand, with few runs of nvdisasm. What fails here is left to
/// [`compile`], which has the message.
pub fn prepare(jobs: &[Job]) {
    let missing = |job: &&Job| kept(&job.tools, &job.ptx, &job.sm, job.level).is_ok_and(|sass| !sass.exists());
    let jobs: Vec<&Job> = jobs.iter().filter(missing).collect();
    let made = each(&jobs, |job| cubin_of(&job.tools, &job.ptx, &job.sm, job.level).ok());
    let mut batches: std::collections::BTreeMap<_, Vec<_>> = std::collections::BTreeMap::new();
    for (job, cubin) in jobs.iter().zip(made) {
        if let Some(cubin) = cubin {
            batches.entry((&job.tools.nvdisasm, &job.sm)).or_default().push((*job, cubin));
        }
    }
    let batches: Vec<&[(&Job, Vec<u8>)]> = batches.values().flat_map(|batch| batch.chunks(BATCH)).collect();
    each(&batches, |batch| {
        let cubins: Vec<Vec<u8>> = batch.iter().map(|(_, cubin)| cubin.clone()).collect();
        let listing = merge::merge(&cubins).and_then(|whole| listing_of(&batch[0].0.tools, &whole).ok());
        let Some(listing) = listing else { return };
        for ((job, _), part) in batch.iter().zip(merge::parts(&listing, batch.len())) {
            if let Ok(sass) = kept(&job.tools, &job.ptx, &job.sm, job.level) {
                drop(keep(&sass, part.as_bytes()));
            }
        }
    });
}

/// Calls a function on every element, on a thread for each core; the results in their order.
pub fn each<J: Sync, T: Send>(jobs: &[J], f: impl Fn(&J) -> T + Sync) -> Vec<T> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(at) else { return };
                    let result = f(job);
                    done.lock().expect("no thread fails").push((at, result));
                }
            });
        }
    });
    let mut done: Vec<(usize, T)> = done.into_inner().expect("no thread fails");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The decoder of the cubin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoder {
    /// nvdisasm's output, parsed.
    Nvdisasm,
    /// Our tables.
    Tables,
}

/// Limit on the instructions of a launch, above all cases: code that is read wrongly may never end.
const STEPS: u64 = 1 << 27;

/// Runs all launches of a file. Returns the messages of those that fail.
pub fn check(file: &LaunchFile, sm: &str, made: &Made, decoder: Decoder) -> Vec<String> {
    let functions = lift::functions(&made.listing);
    let run = |launch: &Launch| -> Result<(), String> {
        let decoded = match decoder {
            Decoder::Nvdisasm => None,
            Decoder::Tables => Some(decode(&made.cubin, &launch.kernel).map_err(|fault| fault.to_string())?),
        };
        let code = decoded.as_ref().or(functions.get(&launch.kernel)).ok_or("the listing lacks the kernel")?;
        let mut args = launch.arg_values();
        // nvdisasm's output has no control fields.
        let how = How { timed: decoder == Decoder::Tables, step_limit: STEPS, ..How::default() };
        let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
        let outcome = run_decoded(&made.cubin, &launch.kernel, shape, &mut args, code, how);
        let reports = outcome.map_err(|fault| fault.to_string())?.reports;
        if let Some(report) = reports.iter().find(|report| report.fault.is_refused()).or(reports.first()) {
            return Err(if report.fault.is_refused() { report.fault.to_string() } else { report.to_string() });
        }
        launch.check(&args).map_err(|all| {
            let shown: Vec<String> = all.iter().take(3).map(|d| d.to_string()).collect();
            format!("{} differences: {}", all.len(), shown.join("; "))
        })
    };
    let target = format!("sm_{sm}");
    let launches = file.launches.iter().filter(|l| l.wants(&target));
    launches.filter_map(|l| run(l).err().map(|why| format!("{}: {why}", l.kernel))).collect()
}
