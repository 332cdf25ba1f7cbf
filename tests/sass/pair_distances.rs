//! Instructions that must keep a distance although they name no register in common
//! (`tables/latency/pairs.ron`): with a stall between them shortened below it, the checker and the
//! simulator each report it, and neither does before.

use sassafras::compile::{Options, compile};
use sassafras::cubin::{self, Cubin};
use sassafras::sass::hazards::{self, target_of};
use sassafras::sass::{Inst, decode};
use sassafras::sim::launch::{Launch, LaunchFile};
use sassafras::sim::run::{How, Shape, decode as decode_kernel, run_decoded};
use sassafras::tables::latency::Latency;
use std::path::Path;

/// Where the stall stands in a word, and its width in bits.
const STALL: (u32, u32) = (105, 4);

fn cases() -> LaunchFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/exec/group_products.ron");
    LaunchFile::load(&path).expect("a launch file")
}

fn insts(cubin: &Cubin, function: usize) -> Vec<Inst> {
    let target = target_of(cubin).expect("a target");
    let words = cubin.functions[function].code.chunks_exact(16);
    words.map(|w| decode(target, u128::from_le_bytes(w.try_into().unwrap())).unwrap()).collect()
}

/// The cubin with another stall of one instruction.
fn with_stall(cubin: &Cubin, function: usize, at: usize, stall: u8) -> Cubin {
    let mut changed = cubin.clone();
    let bytes = &mut changed.functions[function].code[16 * at..16 * at + 16];
    let word = u128::from_le_bytes(bytes.try_into().unwrap());
    let mask = ((1u128 << STALL.1) - 1) << STALL.0;
    bytes.copy_from_slice(&(word & !mask | u128::from(stall) << STALL.0).to_le_bytes());
    changed
}

/// The reports of a launch.
fn simulated(cubin: &Cubin, launch: &Launch) -> Vec<String> {
    let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
    let code = decode_kernel(cubin, &launch.kernel).expect("a kernel");
    let mut args = launch.arg_values();
    let outcome = run_decoded(cubin, &launch.kernel, shape, &mut args, &code, How::default()).expect("a run");
    outcome.reports.iter().map(ToString::to_string).collect()
}

#[test]
fn a_stall_below_the_distance_of_a_pair_is_reported() {
    let file = cases();
    let source = std::fs::read_to_string(&file.module).expect("the module");
    let target = sassafras::tables::Target::by_name("sm_90a").expect("the target");
    let latency = Latency::demanded(target).expect("its latencies");
    let launch = file.launches.iter().find(|launch| launch.wants("sm_90a")).expect("a launch");
    let made = compile(&source, &Options::new("sm_90a")).expect("a cubin");
    let cubin = cubin::read(&made.cubin).expect("our cubin");
    let function = cubin.functions.iter().position(|f| f.name == launch.kernel).expect("the kernel");
    assert!(simulated(&cubin, launch).is_empty() && hazards::check(&cubin).unwrap().is_empty());
    let insts = insts(&cubin, function);
    let sides = |inst: &Inst| latency.pairs_of(inst.op, |role| !inst.arg(role).is_none());
    for (number, pair) in latency.pairs.iter().enumerate() {
        let is = |at: usize, side: usize| insts.get(at).is_some_and(|inst| sides(inst)[side] >> number & 1 != 0);
        let at = (0..insts.len()).find(|at| is(*at, 0) && is(at + 1, 1)).expect("the two side by side");
        let changed = with_stall(&cubin, function, at, pair.cycles - 1);
        let needed = format!("{} are", pair.cycles);
        let of_checker = hazards::check(&changed).unwrap();
        assert!(of_checker.iter().any(|report| report.message.contains(&needed)), "{pair:?}: {of_checker:?}");
        let of_simulator = simulated(&changed, launch);
        assert!(of_simulator.iter().any(|report| report.contains(&needed)), "{pair:?}: {of_simulator:?}");
    }
}
