//! Damaged cubins: the reader, the simulator and the disassembler give an answer for any bytes.
//!
//! The input is our cubins of a few exec cases, some of each of the newer families, with bytes
//! changed, removed or repeated at random positions, more often in their tables than in their code.
//! Reading, disassembling and running them must end without a panic within an instruction limit.
//! `SASSAFRAS_MUTATIONS` is the number, `SASSAFRAS_SEED` the first seed.

use crate::random::Random;
use sassafras::compile::{Options, compile};
use sassafras::cubin;
use sassafras::sim::launch::LaunchFile;
use sassafras::sim::run::{How, Shape, run_as};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Cases, each with a target.
const CASES: [(&str, &str); 16] = [
    ("saxpy", "sm_75"),
    ("bitonic", "sm_90"),
    ("calls_indirect", "sm_120"),
    ("local_array", "sm_80"),
    ("const_array", "sm_107"),
    ("mbarriers", "sm_86"),
    ("bulk_copies", "sm_100"),
    ("clusters_async", "sm_103"),
    ("clusters_several", "sm_90"),
    ("tensors", "sm_110"),
    ("surfaces", "sm_89"),
    ("textures", "sm_121"),
    ("multimem", "sm_90"),
    ("group_products", "sm_90a"),
    ("max_registers", "sm_90a"),
    ("tensor_memory_wait", "sm_100a"),
];
/// Instruction limit of a launch.
const STEPS: u64 = 20_000;

struct Sample {
    bytes: Vec<u8>,
    launch: sassafras::sim::launch::Launch,
}

fn samples() -> Vec<Sample> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut samples = Vec::new();
    for (case, target) in CASES {
        let file = LaunchFile::load(&root.join(format!("tests/cases/exec/{case}.ron"))).unwrap();
        let text = std::fs::read_to_string(&file.module).unwrap();
        let output = compile(&text, &Options::new(target)).unwrap();
        samples.push(Sample { bytes: output.cubin, launch: file.launches.into_iter().next().unwrap() });
    }
    samples
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        let end = bytes.len().max(1);
        // Tables are at both ends, code in the middle.
        let at = match random.below(3) {
            0 => random.below(end.min(0x400)),
            1 => end - 1 - random.below(end.min(0x400)),
            _ => random.below(end),
        };
        match random.below(6) {
            0 => _ = bytes.drain(at..(at + 1 + random.below(16)).min(end)),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            2 => bytes.truncate(at),
            3 => {
                let piece = bytes[at..(at + 1 + random.below(32)).min(end)].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => bytes[at] ^= 1 << random.below(8),
        }
        if bytes.is_empty() {
            return;
        }
    }
}

/// Everything that reads a cubin.
fn take(bytes: &[u8], sample: &Sample) {
    let Ok(cubin) = cubin::read(bytes) else { return };
    _ = cubin::write(&cubin);
    _ = (sassafras::sass::listing::text(&cubin), sassafras::sass::listing::json(&cubin), cubin::listing(bytes));
    let launch = &sample.launch;
    let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
    let how = How { step_limit: STEPS, ..How::default() };
    _ = run_as(bytes, &launch.kernel, shape, &mut launch.arg_values(), how);
}

#[test]
fn damaged_cubins_get_an_answer() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let (count, seed) = (number("SASSAFRAS_MUTATIONS").unwrap_or(3000), number("SASSAFRAS_SEED").unwrap_or(0));
    let samples = samples();
    let (mut failures, mut ran) = (Vec::new(), 0);
    for seed in seed..seed + count {
        let sample = &samples[seed as usize % samples.len()];
        let mut random = Random::new(seed);
        let mut bytes = sample.bytes.clone();
        damage(&mut bytes, &mut random);
        ran += u64::from(cubin::read(&bytes).is_ok());
        if catch_unwind(AssertUnwindSafe(|| take(&bytes, sample))).is_err() {
            failures.push(seed);
        }
    }
    println!("{ran} of {count} are still read");
    assert!(failures.is_empty(), "{} panicked: seeds {:?}", failures.len(), &failures[..failures.len().min(20)]);
    assert!(ran * 5 > count, "only {ran} of {count} are still read");
}

#[test]
fn a_cubin_that_does_not_say_where_parameters_begin_is_told() {
    for sample in samples() {
        let mut cubin = cubin::read(&sample.bytes).unwrap();
        let target = sassafras::sim::run::target_of(&cubin).unwrap();
        cubin.functions.iter_mut().for_each(|function| function.param_base = 0);
        let launch = &sample.launch;
        let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
        let bytes = cubin::write(&cubin).unwrap();
        let ran = run_as(&bytes, &launch.kernel, shape, &mut launch.arg_values(), How::default());
        // If parameters are copied to a separate window, any address is valid for the window, and
        // only the values are wrong.
        match ran {
            Err(fault) => assert!(fault.what.contains("begin at 0x0"), "{}: {fault}", target.name),
            Ok(_) => assert_eq!(target.info().unwrap().param_window_at, 0, "{}", target.name),
        }
    }
}
