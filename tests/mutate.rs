//! Mutated PTX: the whole compiler gives a cubin or an error, without a panic, in bounded time and
//! memory.
//!
//! `SASSAFRAS_MUTATIONS` is the number of mutations (a few by default), `SASSAFRAS_SEED` the first
//! seed. A failing seed is printed; with `SASSAFRAS_MUTATIONS=1 SASSAFRAS_SEED=N SASSAFRAS_SHOW=1`
//! its text is printed too.
//!
//! A process of its own, because its allocator counts what the process holds, and its panic hook is
//! the process's.

#[path = "fuzz/mutations.rs"]
mod mutations;
#[path = "fuzz/random.rs"]
mod random;

use mutations::mutate;
use random::Random;
use sassafras::tables::Target;
use sassafras::tables::targets::TARGETS;
use sassafras::{Diagnostic, Options, compile};
use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Time budget if no number is given.
const SHARE: Duration = Duration::from_secs(8);
/// Largest seed text in bytes.
const MAX_TEXT: u64 = 40_000;
/// Memory limit of one compilation.
const MAX_BYTES: usize = 1 << 30;
/// Time limit of one compilation, on a busy host.
const MAX_TIME: Duration = Duration::from_secs(60);

/// Counts the allocated memory and its maximum.
struct Counting;
static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(held, Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn ptx_files(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            ptx_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "ptx") && path.metadata().is_ok_and(|m| m.len() <= MAX_TEXT) {
            out.push(path);
        }
    }
}

/// Valid texts: our own twice as often as those of the corpus, if that is present.
fn texts() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut own, mut corpus) = (Vec::new(), Vec::new());
    ptx_files(&root.join("tests/cases/exec"), &mut own);
    ptx_files(&root.join("tests/corpus"), &mut own);
    ptx_files(&root.join("../shared/corpus"), &mut corpus);
    let read = |paths: &[PathBuf]| -> Vec<String> {
        paths.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect()
    };
    let (own, mut all) = (read(&own), read(&corpus));
    assert!(!own.is_empty());
    let times = (2 * all.len()).div_ceil(own.len()).max(1);
    (0..times).for_each(|_| all.extend(own.iter().cloned()));
    all
}

/// Options chosen by a seed: a target, of every other seed the one that the text names, since the
/// newest families are of one target; a level, a register limit.
fn options(seed: u64, text: &str) -> Options {
    let mut random = Random::new(!seed);
    let targets: Vec<&str> = TARGETS.iter().filter(|t| t.real && t.generation.is_some()).map(|t| t.name).collect();
    let chosen = random.pick(&targets);
    let named = text.lines().find_map(|line| line.trim().strip_prefix(".target "));
    let named =
        named.and_then(|line| line.split([',', ' ', '/']).next()).filter(|name| Target::by_name(name).is_some());
    let mut options = Options::new(named.filter(|_| seed.is_multiple_of(2)).unwrap_or(chosen));
    options.opt_level = random.below(4) as u8;
    options.max_registers = [None, None, Some(24), Some(32), Some(64)][random.below(5)];
    options
}

/// Whether an error came from code generation, as something unsupported.
fn late(message: &str) -> bool {
    // The second: one instruction needs more registers than the limit, for which ptxas also rejects
    // the file.
    message.contains("not implemented") || message.contains("registers at one instruction")
}

/// The outcome of a text.
#[derive(Default)]
struct Tally {
    tried: u64,
    compiled: u64,
    /// Reached code generation: compiled, or rejected there.
    reached: u64,
}

impl Tally {
    fn add(&mut self, seed: u64, text: &str) -> Result<(), String> {
        let base = HELD.load(Relaxed);
        MOST.store(base, Relaxed);
        let result = catch_unwind(AssertUnwindSafe(|| compile(text, &options(seed, text))));
        let bytes = MOST.load(Relaxed).saturating_sub(base);
        if bytes > MAX_BYTES {
            return Err(format!("seed {seed}: {bytes} bytes held"));
        }
        self.tried += 1;
        match result {
            Err(panic) => {
                let said = panic.downcast_ref::<String>().map(String::as_str);
                let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("panic");
                return Err(format!("seed {seed}: {said}"));
            }
            Ok(Ok(output)) if output.cubin.starts_with(b"\x7fELF") => {
                self.compiled += 1;
                self.reached += 1;
            }
            Ok(Ok(_)) => return Err(format!("seed {seed}: neither a cubin nor an error")),
            Ok(Err(diagnostics)) => {
                if diagnostics.is_empty() {
                    return Err(format!("seed {seed}: refused without a word"));
                }
                // A verifier error is a compiler bug.
                let ours = |d: &&Diagnostic| d.pos.is_none() && d.message.contains(": ") && !late(&d.message);
                if let Some(d) = diagnostics.iter().find(ours) {
                    return Err(format!("seed {seed}: {}", d.message));
                }
                self.reached += u64::from(diagnostics.iter().all(|d| late(&d.message)));
            }
        }
        Ok(())
    }
}

/// Ends the process if one seed takes too long, because a thread cannot be stopped.
fn watch(current: &'static AtomicU64) {
    std::thread::spawn(move || {
        let (mut seed, mut since) = (current.load(Relaxed), Instant::now());
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let now = current.load(Relaxed);
            if now != seed {
                (seed, since) = (now, Instant::now());
            } else if since.elapsed() > MAX_TIME && seed != u64::MAX {
                eprintln!("seed {seed}: takes longer than {MAX_TIME:?}");
                std::process::exit(1);
            }
        }
    });
}

#[test]
fn mutated_texts_give_a_cubin_or_an_error() {
    static CURRENT: AtomicU64 = AtomicU64::new(u64::MAX);
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let (first, count) = (number("SASSAFRAS_SEED").unwrap_or(1), number("SASSAFRAS_MUTATIONS"));
    let texts = texts();
    let started = Instant::now();
    let (mut tally, mut failures) = (Tally::default(), Vec::new());
    watch(&CURRENT);
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|l| format!("{}:{}", l.file(), l.line())).unwrap_or_default();
        eprintln!("panic at {place} with seed {}", CURRENT.load(Relaxed));
    }));
    for seed in first.. {
        let done = seed - first;
        if count.map_or(started.elapsed() > SHARE, |count| done >= count) {
            break;
        }
        CURRENT.store(seed, Relaxed);
        let text = mutate(seed, &texts);
        if std::env::var("SASSAFRAS_SHOW").is_ok() {
            eprintln!("{text}\n{:?}", options(seed, &text));
        }
        if let Err(message) = tally.add(seed, &text) {
            eprintln!("{message}");
            failures.push(message);
        }
        if done > 0 && done.is_multiple_of(10_000) {
            eprintln!("{done} tried, {} reached code generation, {} failed", tally.reached, failures.len());
        }
    }
    CURRENT.store(u64::MAX, Relaxed);
    _ = std::panic::take_hook();
    let Tally { tried, compiled, reached } = tally;
    println!("{tried} mutations of {} texts: {reached} reached code generation, {compiled} compiled", texts.len());
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    assert!(reached * 5 >= tried, "only {reached} of {tried} reached code generation");
}
