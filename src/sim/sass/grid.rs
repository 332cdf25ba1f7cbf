//! Runs the blocks of a grid, in turn and fairly.
//!
//! Input: a launch and global memory. Output: changed memory, or a fault. Invariant: the order depends on nothing but
//! the launch; every resident block, warp and group of lanes runs again after finitely many instructions of the others;
//! a state in which nothing can run is reported as a deadlock.

use super::super::fault::{Fault, Kind, Place};
use super::super::memory::Global;
use super::block::Block;
use super::exec::Machine;
use super::setup::Setup;
use super::warp::{LANES, Wait, Warp, lanes_of};
use super::watch::jitter::Jitter;
use super::watch::{Seen, Watch};

/// Blocks that are resident together.
const RESIDENT: usize = 64;
/// Instructions that a group executes before another one has its turn.
const SLICE: u64 = 256;

/// What a launch cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Instructions, counted once per group of lanes.
    pub instructions: u64,
    /// Instructions, counted once per lane whose guard holds.
    pub lane_instructions: u64,
}

/// Runs a launch to its end, unwatched.
pub fn run(setup: &Setup, global: &mut Global) -> Result<Stats, Fault> {
    to_the_end(&mut Machine { setup, global, steps: 0, lane_steps: 0, watch: None })
}

/// Runs a launch to its end or to a fault; what the watch found comes back beside it.
pub fn run_watched(setup: &Setup, global: &mut Global, watch: Watch) -> (Result<Stats, Fault>, Watch) {
    let mut machine = Machine { setup, global, steps: 0, lane_steps: 0, watch: Some(Box::new(watch)) };
    let done = to_the_end(&mut machine);
    (done, machine.watch.map_or_else(Watch::default, |watch| *watch))
}

fn to_the_end(machine: &mut Machine) -> Result<Stats, Fault> {
    let setup = machine.setup;
    let total: u64 = setup.grid.iter().map(|n| u64::from(*n)).product();
    let mut next = 0;
    let mut resident: Vec<Block> = Vec::new();
    loop {
        if let Some(watch) = &mut machine.watch {
            resident
                .iter()
                .filter(|block| block.done())
                .filter_map(|b| b.seen.as_ref())
                .for_each(|seen| watch.ended(seen));
        }
        resident.retain(|block| !block.done());
        while resident.len() < RESIDENT && next < total {
            let mut block = start(setup, next, machine.watch.is_some());
            if let Some(jitter) = jitter(machine) {
                jitter.fill(&mut block);
            }
            resident.push(block);
            next += 1;
        }
        if resident.is_empty() {
            return Ok(Stats { instructions: machine.steps, lane_instructions: machine.lane_steps });
        }
        let mut ran = 0;
        for block in &mut resident {
            for warp in 0..block.warps.len() {
                let budget = jitter(machine).map_or(SLICE, |jitter| jitter.turn(SLICE));
                ran += machine.run(block, warp, budget)?;
            }
        }
        if ran == 0 {
            return Err(deadlock(&resident));
        }
        if machine.steps > setup.step_limit {
            return Err(Fault::of(Kind::StepLimit, format!("gave up after {} instructions", machine.steps)));
        }
    }
}

fn jitter<'m>(machine: &'m mut Machine) -> Option<&'m mut Jitter> {
    machine.watch.as_mut()?.jitter.as_mut()
}

fn start(setup: &Setup, number: u64, watched: bool) -> Block {
    let [gx, gy, _] = setup.grid.map(u64::from);
    let id = [number % gx, number / gx % gy, number / gx / gy].map(|n| n as u32);
    let threads = setup.block.iter().product::<u32>() as usize;
    let warps = (0..threads.div_ceil(LANES)).map(|index| {
        let count = (threads - index * LANES).min(LANES);
        let lanes = u32::MAX >> (LANES - count);
        Warp::new(index as u32, lanes, setup.registers, setup.local_bytes)
    });
    let mut block = Block::new(id, warps.collect(), setup.shared_bytes);
    block.seen = watched.then(|| Box::new(Seen::new(setup, block.warps.len())));
    block
}

fn deadlock(blocks: &[Block]) -> Fault {
    let stuck = blocks.iter().find_map(|block| block.warps.iter().find(|w| w.alive != 0).map(|warp| (block, warp)));
    let Some((block, warp)) = stuck else { return Fault::of(Kind::Deadlock, "deadlock") };
    let lane = warp.alive.trailing_zeros() as usize;
    let mut waits: Vec<String> = lanes_of(warp.alive)
        .map(|lane| {
            let what = match warp.wait[lane] {
                Wait::Nothing => "nothing".to_string(),
                Wait::Converge(bar) => {
                    format!("lanes {:#010x} at B{bar}", warp.bars[usize::from(bar)][lane] & warp.alive)
                }
                Wait::Warp(mask) => format!("lanes {:#010x} at a warp barrier", mask & warp.alive),
                Wait::Block(bar) => format!("block barrier {bar}"),
            };
            format!("{what} (pc {:#x})", u64::from(warp.pc[lane]) * 16)
        })
        .collect();
    waits.sort();
    waits.dedup();
    let place = Place { block: block.id, warp: warp.index, pc: u64::from(warp.pc[lane]) * 16 };
    Fault::of(Kind::Deadlock, format!("deadlock: no lane can run; lanes wait for {}", waits.join(", "))).at(place)
}
