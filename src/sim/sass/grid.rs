//! Runs the blocks of a grid in a deterministic and fair order.
//!
//! The order depends only on the launch (and the jitter seed). Every resident block, warp and group
//! of lanes runs again after finitely many instructions of the others, and a state in which no lane
//! can run is reported as a deadlock.

use super::super::fault::{Fault, Kind, Place};
use super::super::memory::Global;
use super::block::Block;
use super::cluster;
use super::code::{Code, Dst, Exec};
use super::exec::Machine;
use super::mbarrier::Act;
use super::sanitizer::jitter::Jitter;
use super::sanitizer::{Seen, Watch};
use super::setup::Setup;
use super::warp::{LANES, Wait, Warp, lanes_of};

/// Instructions that a group executes before another one gets its turn.
const SLICE: u64 = 256;

/// Instruction counts of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Instructions, counted once per group of lanes.
    pub instructions: u64,
    /// Instructions, counted once per lane whose guard is true.
    pub lane_instructions: u64,
}

impl Stats {
    fn of(machine: &Machine) -> Stats {
        Stats { instructions: machine.steps, lane_instructions: machine.lane_steps }
    }
}

/// Runs a launch to its end without the sanitizer.
///
/// # Errors
///
/// The fault that stopped the launch.
pub fn run(setup: &Setup, global: &mut Global) -> Result<Stats, Fault> {
    let mut machine = Machine::new(setup, global, None);
    to_the_end(&mut machine).map(|()| Stats::of(&machine))
}

/// Runs a launch with the sanitizer to its end or to a fault; returns the counts and findings in
/// either case.
pub fn run_watched(setup: &Setup, global: &mut Global, mut watch: Watch) -> (Result<(), Fault>, Stats, Watch) {
    let by_atomics = |code: &Code| matches!(code.exec, Exec::Mbarrier(Act::ArriveOld { .. }));
    watch.arrives_by_atomics = setup.code.iter().any(by_atomics);
    let watch = Some(Box::new(watch));
    let mut machine = Machine::new(setup, global, watch);
    let done = to_the_end(&mut machine);
    let stats = Stats::of(&machine);
    (done, stats, machine.watch.map_or_else(Watch::default, |watch| *watch))
}

fn to_the_end(machine: &mut Machine) -> Result<(), Fault> {
    let setup = machine.setup;
    let mut resident: Vec<Vec<Block>> = Vec::new();
    loop {
        if let Some(watch) = &mut machine.watch {
            let ended = resident.iter().filter(|cluster| cluster.iter().all(Block::done)).flatten();
            ended.filter_map(|b| b.seen.as_ref()).for_each(|seen| watch.ended(seen));
        }
        resident.retain(|cluster| !cluster.iter().all(Block::done));
        while let Some(first) = machine.clusters.begin(resident.len()) {
            resident.push((0..machine.clusters.size()).map(|rank| started(machine, first, rank)).collect());
        }
        if resident.is_empty() {
            return Ok(());
        }
        let mut ran = 0;
        for cluster in &mut resident {
            ran += turn(machine, cluster)?;
        }
        if ran == 0 {
            return Err(deadlock(&setup.code, &resident));
        }
        machine.waits.round()?;
    }
}

/// Runs each warp of a cluster for a while; how many instructions, and releases, there were.
fn turn(machine: &mut Machine, cluster: &mut [Block]) -> Result<u64, Fault> {
    let mut ran = 0;
    for at in 0..cluster.len() {
        cluster::lend(machine, cluster, at);
        for warp in 0..cluster[at].warps.len() {
            let budget = jitter(machine).map_or(SLICE, |jitter| jitter.turn(SLICE));
            ran += machine.run(&mut cluster[at], warp, budget)?;
        }
        cluster::take_back(machine, cluster, at);
    }
    let released = cluster::settle(cluster);
    machine.waits.moved |= released;
    Ok(ran + u64::from(released))
}

/// A block of a cluster that is about to start.
fn started(machine: &mut Machine, first: [u32; 3], rank: u32) -> Block {
    let setup = machine.setup;
    let mut block = start(setup, machine.clusters.block(first, rank), rank, machine.watch.is_some());
    if let Some(jitter) = jitter(machine) {
        jitter.fill(&mut block);
    }
    if let Some((at, pair)) = setup.tensor {
        prepare_allocation(&mut block, at, pair);
    }
    if let Some(register) = setup.zeroed {
        block.warps.iter_mut().for_each(|warp| warp.set(Dst::UReg(register), 0, 0, 0));
    }
    block
}

fn jitter<'m>(machine: &'m mut Machine) -> Option<&'m mut Jitter> {
    machine.watch.as_mut()?.jitter.as_mut()
}

/// What runs before a kernel that allocates tensor memory: nothing is allocated yet. Pairs of
/// blocks have a barrier of one arrival besides, and the parity of its next phase. The block of the
/// lower rank sends first, so it has nothing to wait for.
fn prepare_allocation(block: &mut Block, at: usize, pair: bool) {
    let mut kept = [0; 32];
    if pair {
        kept[8..16].copy_from_slice(&crate::sim::ops::mbarrier::Barrier::new(1).word().to_le_bytes());
        kept[16] = u8::from(block.rank & 1 == 0);
    }
    if let Some(to) = block.shared.get_mut(at..at + kept.len()) {
        to.copy_from_slice(&kept);
    }
}

fn start(setup: &Setup, id: [u32; 3], rank: u32, watched: bool) -> Block {
    let threads = setup.block.iter().product::<u32>() as usize;
    let warps = (0..threads.div_ceil(LANES)).map(|index| {
        let count = (threads - index * LANES).min(LANES);
        let lanes = u32::MAX >> (LANES - count);
        let mut warp = Warp::new(index as u32, lanes, setup.registers, setup.local_bytes);
        warp.limit = setup.entry_registers.unwrap_or(warp.limit);
        warp
    });
    let mut block = Block::new(id, warps.collect(), setup.shared_bytes);
    block.reserved = setup.reserved_bytes;
    block.rank = rank;
    block.seen = watched.then(|| Box::new(Seen::new(setup, block.warps.len())));
    block
}

/// Lanes of a warp that wait for the same thing at the same place.
struct Waiting {
    pc: u32,
    wait: Wait,
    lanes: u32,
}

impl Waiting {
    /// The waiting groups of a warp, by their lowest lanes.
    fn of(warp: &Warp) -> Vec<Waiting> {
        let mut groups: Vec<Waiting> = Vec::new();
        for lane in lanes_of(warp.alive) {
            let (pc, wait) = (warp.pc[lane], warp.wait[lane]);
            match groups.iter_mut().find(|group| (group.pc, group.wait) == (pc, wait)) {
                Some(group) => group.lanes |= 1 << lane,
                None => groups.push(Waiting { pc, wait, lanes: 1 << lane }),
            }
        }
        groups
    }

    /// Describes who waits, where, and for whom.
    fn text(&self, warp: &Warp) -> String {
        let missing = |awaited: u32| awaited & warp.alive & !self.lanes;
        let what = match self.wait {
            Wait::Nothing => "nothing".to_string(),
            Wait::Converge(bar) => {
                let of = &warp.bars[usize::from(bar)];
                let awaited = lanes_of(self.lanes).fold(0, |mask, lane| mask | of[lane]);
                format!("lanes {:#010x} at B{bar}", missing(awaited))
            }
            Wait::Warp(mask, _) => format!("lanes {:#010x} at a warp barrier", missing(mask)),
            Wait::Block(bar) => format!("block barrier {bar}"),
            Wait::Off(by) => format!("lanes {by:#010x}, which switched them off"),
            Wait::Cluster => "the barrier of the cluster".to_string(),
        };
        format!("lanes {:#010x} at pc {:#x} wait for {what}", self.lanes, u64::from(self.pc) * 16)
    }

    /// The block barrier behind the warp barrier at which these lanes wait, if there is one. ptxas
    /// implements a barrier that needs whole warps as a warp barrier followed by a block barrier.
    fn before_a_barrier(&self, code: &[Code]) -> Option<u32> {
        let Wait::Warp(..) = self.wait else { return None };
        let behind = code.iter().zip(0u32..).skip(self.pc as usize + 1);
        let mut rest =
            behind.skip_while(|(code, _)| matches!(code.exec, Exec::Alu(_) | Exec::Nop | Exec::Special { .. }));
        rest.next().filter(|(code, _)| matches!(code.exec, Exec::BlockBarrier { .. })).map(|(_, pc)| pc)
    }
}

/// Explains why no lane can run: a block barrier that the rest of a warp does not reach, or another
/// deadlock.
fn deadlock(code: &[Code], clusters: &[Vec<Block>]) -> Fault {
    let stuck: Vec<(&Block, &Warp, Vec<Waiting>)> = clusters
        .iter()
        .flatten()
        .flat_map(|block| block.warps.iter().map(move |warp| (block, warp)))
        .filter(|(_, warp)| warp.alive != 0)
        .map(|(block, warp)| (block, warp, Waiting::of(warp)))
        .collect();
    let place =
        |block: &Block, warp: &Warp, pc: u32| Place { block: block.id, warp: warp.index, pc: Some(u64::from(pc) * 16) };
    let list = |warp: &Warp, groups: &[Waiting]| groups.iter().map(|g| g.text(warp)).collect::<Vec<_>>().join(", ");
    for (block, warp, groups) in &stuck {
        let split = groups.iter().filter(|group| group.lanes != warp.alive);
        if let Some((group, pc)) = split.filter_map(|group| Some((group, group.before_a_barrier(code)?))).next() {
            let missing = warp.alive & !group.lanes;
            let what = format!("lanes {missing:#010x} of the warp do not reach the barrier together with the others");
            let what = format!("{what}: {}", list(warp, groups));
            return Fault::of(Kind::DivergentBarrier, what).among(group.lanes).at(place(block, warp, pc));
        }
    }
    let Some((block, warp, groups)) = stuck.first() else { return Fault::of(Kind::Deadlock, "deadlock") };
    let what = format!("deadlock: no lane can run; {}", list(warp, groups));
    Fault::of(Kind::Deadlock, what).among(groups[0].lanes).at(place(block, warp, groups[0].pc))
}
