//! Huge and hostile inputs at reduced sizes: each compiles or is rejected, in bounded memory and
//! time, without an abort.
//!
//! The full sizes are those of `cargo bench --bench resources`. `SASSAFRAS_CASE=name` runs one
//! kind.

use crate::resources_support::inputs::KINDS;
use crate::resources_support::{Cost, input, run};
use sassafras::compile::{Options, compile};
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{How, Shape, run_as};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// CPU time limit in seconds for a reduced size, in a build with little optimisation.
const SECONDS: u64 = 60;
/// Limit of the output about an invalid input, in bytes.
const MOST_SAID: usize = 1 << 20;

fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_sassafras").into()
}

/// The error of a run, whose input must compile or must be rejected.
fn wrong(cost: &Cost, compiles: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let expected = if compiles { 0 } else { 255 };
    if cost.status != expected {
        let said: String = cost.said.chars().take(300).collect();
        wrong.push(format!("status {} and not {expected}: {said}", cost.status));
    }
    if cost.memory > cost.most_memory() {
        wrong.push(format!("{} bytes of memory for an input of {}", cost.memory, cost.input));
    }
    if cost.status != 0 && !["error", "fatal"].iter().any(|word| cost.said.contains(word)) {
        wrong.push("nothing is said".into());
    }
    if cost.said.len() > MOST_SAID {
        wrong.push(format!("{} bytes are said", cost.said.len()));
    }
    if cost.left > 0 {
        wrong.push(format!("{} files are left", cost.left));
    }
    if cost.output.is_some() != (cost.status == 0) {
        wrong.push("a cubin where there was an error, or none where there was none".into());
    }
    wrong
}

#[test]
fn every_kind_ends_within_its_bounds() {
    let only = std::env::var("SASSAFRAS_CASE").ok();
    let kinds: Vec<_> = KINDS.iter().filter(|k| only.as_ref().is_none_or(|only| only == k.name)).collect();
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(|| {
                while let Some(kind) = kinds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let folder = tempfile::tempdir().unwrap();
                    let path = input(kind, kind.reduced, folder.path());
                    let cubin = folder.path().join("k.cubin");
                    let cost = run(&program(), kind.options(), &path, Some(&cubin), SECONDS);
                    let wrong = wrong(&cost, kind.compiles);
                    all.lock().unwrap().extend(wrong.iter().map(|w| format!("{}: {w}", kind.name)));
                }
            });
        }
    });
    let all = all.into_inner().unwrap();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

/// A small cubin.
fn cubin(folder: &Path) -> Vec<u8> {
    let (ptx, cubin) = (folder.join("good.ptx"), folder.join("good.cubin"));
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";
    std::fs::write(&ptx, text).unwrap();
    assert_eq!(run(&program(), &["-arch=sm_80"], &ptx, Some(&cubin), SECONDS).status, 0);
    std::fs::read(&cubin).unwrap()
}

fn put(bytes: &mut [u8], at: usize, value: u64, width: usize) {
    bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
}

/// Damaged copies: sections with sizes beyond the file, tables at wrong offsets, sections that all
/// cover the whole file.
fn damaged(good: &[u8]) -> Vec<(String, Vec<u8>)> {
    let table = u64::from_le_bytes(good[40..48].try_into().unwrap()) as usize;
    let count = usize::from(u16::from_le_bytes(good[60..62].try_into().unwrap()));
    let mut all = Vec::new();
    for section in 1..count {
        let header = table + 64 * section;
        for (what, at) in [("offset", 24), ("size", 32), ("alignment", 48), ("entry", 56)] {
            for value in [u64::MAX, 1 << 63, 1 << 40, 1 << 32, good.len() as u64 * 1000] {
                let mut bytes = good.to_vec();
                put(&mut bytes, header + at, value, 8);
                all.push((format!("{what} {value:#x} of section {section}"), bytes));
            }
        }
    }
    for (what, at, width) in [("place of the table", 40, 8), ("number of sections", 60, 2), ("names", 62, 2)] {
        let mut bytes = good.to_vec();
        put(&mut bytes, at, u64::MAX, width);
        all.push((what.to_string(), bytes));
    }
    // Sixty thousand headers that share one section of a megabyte.
    let mut bytes = good.to_vec();
    bytes.resize(bytes.len().next_multiple_of(64) + 1_000_000, 1);
    let (place, length, headers) = (bytes.len(), good.len(), 60_000);
    let first = good[table..table + 64 * count].to_vec();
    bytes.extend(first);
    for _ in count..headers {
        let mut header = good[table + 64..table + 128].to_vec();
        put(&mut header, 4, 1, 4);
        put(&mut header, 24, length as u64, 8);
        put(&mut header, 32, 1_000_000, 8);
        bytes.extend(header);
    }
    put(&mut bytes, 40, place as u64, 8);
    put(&mut bytes, 60, headers as u64, 2);
    all.push(("one section many times".into(), bytes));
    all
}

#[test]
fn damaged_cubins_are_refused_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let good = cubin(folder.path());
    let path = folder.path().join("bad.cubin");
    let (mut all, mut refused) = (Vec::new(), 0);
    for (number, (what, bytes)) in damaged(&good).into_iter().enumerate() {
        std::fs::write(&path, bytes).unwrap();
        let words: &[&str] = match number % 3 {
            0 => &["disasm"],
            1 => &["check"],
            _ => &["run", "--kernel", "k", "--grid", "1", "--block", "1"],
        };
        let cost = run(&program(), words, &path, None, SECONDS);
        refused += usize::from(cost.status == 255);
        let bounded = cost.memory <= cost.most_memory() && cost.said.len() <= MOST_SAID;
        if ![0, 1, 255].contains(&cost.status) || !bounded {
            all.push(format!("{what}: {words:?} ended with {} in {} bytes: {}", cost.status, cost.memory, cost.said));
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
    assert!(refused > 20, "only {refused} are refused");
}

#[test]
fn what_runs_out_of_memory_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.ptx");
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.global .b8 s[1099511627776] = {1};\n";
    std::fs::write(&path, text).unwrap();
    for (words, said) in [
        (&["-arch=sm_80"][..], "sassafras fatal   : Memory allocation failure\n"),
        (&["-arch=sm_80", "--ptxas-compat"][..], "ptxas fatal   : Memory allocation failure\n"),
    ] {
        let cost = run(&program(), words, &path, Some(&folder.path().join("large.cubin")), SECONDS);
        assert_eq!((cost.status, cost.said.as_str(), cost.output), (255, said, None));
    }
}

/// CPU time of this thread, so that other processes do not count.
fn seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec, which the call fills in.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A long loop over local memory, whose loads are in flight for hundreds of cycles: what the
/// simulator remembers of them must not grow with the run.
#[test]
fn time_costs_the_simulator_no_more_than_execution_times_three() {
    let source = include_str!("../bench/lz.ptx");
    let run = |level, timed| {
        let options = Options { opt_level: level, ..Options::new("sm_90") };
        let output = compile(source, &options).expect("compiles");
        let mut args = [ArgValue::Buffer { bytes: vec![0; 1024], writable: true }];
        let start = seconds();
        let shape = Shape { grid: [1; 3], block: [64, 1, 1], smem: 0 };
        let how = How { timed, ..How::default() };
        let outcome = run_as(&output.cubin, "kern", shape, &mut args, how).expect("runs");
        assert!(outcome.reports.is_empty(), "{:?}", outcome.reports);
        seconds() - start
    };
    let [plain, timed, unoptimised] = [(3, false), (3, true), (0, true)].map(|(level, timed)| run(level, timed));
    println!("-O3 without time {plain:.2} s, with it {timed:.2} s, -O0 with it {unoptimised:.2} s");
    assert!(timed < 4.0 * plain && timed < 1.5 * unoptimised, "{plain} {timed} {unoptimised}");
}
