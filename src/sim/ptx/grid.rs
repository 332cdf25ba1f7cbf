//! Runs the blocks of a launch one thread at a time, in a deterministic and fair order.
//!
//! The order depends only on the launch. A runnable thread runs again after finitely many
//! instructions of the other threads, and a state in which no thread can run is reported as a
//! deadlock. Every fault during the run carries its line and its thread.

use super::barrier::{self, BARRIERS, Named};
use super::cluster::{self, Peer};
use super::layout;
use super::mbarrier::Waits;
use super::memory::put;
use super::program::Act;
use super::resolve;
use super::state::{Block, Env, LANES, Scene, Stop, Thread, Wait, Warp};
use super::warp::{Collective, How, Lanes, Memory, lanes_of};
use super::watch::{Findings, PATTERNS, Seen, lack, lacking, pattern_for};
use crate::cubin::line_table::SourceLine;
use crate::ptx::ast::Module;
use crate::sim::fault::{Fault, Kind, Place};
use crate::sim::launch::ArgValue;
use crate::sim::memory::{Global, store};
use crate::sim::ops::clusters::Clusters;
use crate::sim::ops::tensor_memory::Tensor;
use crate::sim::report::Report;
use crate::sim::run::{Shape, check_cluster};
use crate::tables::ptx::Space;
use cranelift_entity::EntityRef;

/// Instructions that a thread executes before another one gets its turn.
const SHARE: u64 = 2048;
/// Default limit on the instructions of all threads; a launch that reaches it is abandoned.
pub const STEP_LIMIT: u64 = 1 << 33;

/// Results of a launch other than the buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Executed instructions, counted per thread.
    pub instructions: u64,
    /// The text that the kernel printed.
    pub printed: Vec<u8>,
    /// Errors that did not stop the run.
    pub reports: Vec<Report>,
    /// Findings that are not errors, such as benign races.
    pub notes: Vec<Report>,
}

/// Runs a kernel of a module and updates the buffers among `args`.
///
/// # Errors
///
/// A launch that does not fit the kernel, or the fault that stopped it.
pub fn run(module: &Module, kernel: &str, shape: Shape, args: &mut [ArgValue]) -> Result<Outcome, Fault> {
    let (outcome, done) = run_within(module, kernel, shape, args, STEP_LIMIT);
    done.map(|()| outcome)
}

/// Like [`run`], with a limit on the instructions of all threads. The outcome is returned even if
/// the launch faults.
pub fn run_within(
    module: &Module,
    kernel: &str,
    shape: Shape,
    args: &mut [ArgValue],
    step_limit: u64,
) -> (Outcome, Result<(), Fault>) {
    let mut outcome = Outcome::default();
    let done = launch(module, kernel, shape, args, (step_limit, None), &mut outcome);
    (outcome, done)
}

/// Like [`run`], with an observer that sees each thread before each instruction.
///
/// # Errors
///
/// As [`run`].
pub fn run_inspected(
    module: &Module,
    kernel: &str,
    shape: Shape,
    args: &mut [ArgValue],
    inspect: fn(&Stop<'_>),
) -> Result<(), Fault> {
    launch(module, kernel, shape, args, (STEP_LIMIT, Some(inspect)), &mut Outcome::default())
}

fn launch(
    module: &Module,
    kernel: &str,
    shape: Shape,
    args: &mut [ArgValue],
    (step_limit, inspect): (u64, Option<fn(&Stop<'_>)>),
    outcome: &mut Outcome,
) -> Result<(), Fault> {
    let found = module.functions.iter().find(|(_, f)| f.is_entry && f.name == kernel && f.body.is_some());
    let Some((id, function)) = found else { return Err(Fault::new(format!("the module has no kernel {kernel}"))) };
    check_shape(function, shape)?;
    let cluster = function.directives.required_cluster.unwrap_or([1; 3]);
    check_cluster(shape.grid, cluster)?;
    let mut global = Global::default();
    let layout = layout::build(module, id, shape.smem, args, &mut global)?;
    let program = resolve::build(module, &layout);
    let asks = |inst: &super::program::Inst| matches!(inst.act, Act::Cancel(_));
    let asked = program.functions.iter().flat_map(|f| &f.insts).any(asks);
    let env = Env {
        program,
        grid: shape.grid,
        block: shape.block,
        cluster,
        explicit_cluster: function.directives.explicit_cluster || cluster != [1; 3],
        shared: layout.shared,
        reserved: layout.reserved,
        dynamic: shape.smem,
        constants: layout.constants,
        step_limit,
        inspect,
        params: layout.params,
    };
    let mut launch = Launch {
        env: &env,
        kernel: id.index(),
        global,
        outcome: Outcome::default(),
        findings: Findings::default(),
        waits: Waits::default(),
        peers: Vec::new(),
        clusters: Clusters::new(shape.grid, cluster, asked),
    };
    let done = launch.run();
    *outcome = launch.outcome;
    (outcome.reports, outcome.notes) = (launch.findings.reports, launch.findings.notes);
    done?;
    for (arg, base) in args.iter_mut().zip(layout.buffers) {
        if let (Some(bytes), Some(base)) = (arg.buffer_mut(), base) {
            bytes.copy_from_slice(launch.global.bytes_at(base).unwrap_or_default());
        }
    }
    Ok(())
}

/// The instructions of a module that the interpreter does not implement: line, and name with types.
pub fn refusals(module: &Module) -> Vec<(u32, String)> {
    let mut global = Global::default();
    let layout = layout::of_module(module, &mut global);
    let program = resolve::build(module, &layout);
    let insts = program.functions.iter().flat_map(|f| &f.insts);
    let refused = insts.filter_map(|inst| match &inst.act {
        Act::Refused(reason) => Some((inst.pos.line, reason.clone())),
        _ => None,
    });
    refused.collect()
}

fn check_shape(function: &crate::ptx::ast::Function, shape: Shape) -> Result<(), Fault> {
    if shape.grid.contains(&0) || shape.block.contains(&0) {
        return Err(Fault::new("a grid and a block have at least one of each"));
    }
    let threads = shape.block.iter().try_fold(1u32, |n, d| n.checked_mul(*d)).unwrap_or(u32::MAX);
    if threads > 1024 {
        return Err(Fault::new(format!("{threads} threads in a block; at most 1024 fit")));
    }
    match function.directives.required_threads {
        Some(required) if required != shape.block => {
            Err(Fault::new(format!("the kernel requires blocks of {required:?} threads and gets {:?}", shape.block)))
        }
        _ => Ok(()),
    }
}

struct Launch<'e> {
    env: &'e Env,
    kernel: usize,
    global: Global,
    outcome: Outcome,
    findings: Findings,
    waits: Waits,
    peers: Vec<Peer>,
    /// Those that have not begun.
    clusters: Clusters,
}

impl Launch<'_> {
    fn run(&mut self) -> Result<(), Fault> {
        let mut resident: Vec<Vec<Block>> = Vec::new();
        loop {
            resident.retain(|cluster| !cluster.iter().all(cluster::is_over));
            while let Some(first) = self.clusters.begin(resident.len()) {
                resident.push((0..self.clusters.size()).map(|rank| self.start(first, rank)).collect());
            }
            if resident.is_empty() {
                return Ok(());
            }
            let mut moved = false;
            for blocks in &mut resident {
                for at in 0..blocks.len() {
                    cluster::lend(&mut self.peers, blocks, at);
                    moved |= self.turn(&mut blocks[at])?;
                    cluster::take_back(&mut self.peers, blocks, at);
                }
                let released = cluster::settle(blocks);
                moved |= released;
                self.waits.busy |= released;
            }
            if !moved || self.waits.round() {
                return Err(self.deadlock(&resident));
            }
        }
    }

    fn start(&self, first: [u32; 3], rank: u32) -> Block {
        let id = self.clusters.block(first, rank);
        let [bx, by, bz] = self.env.block;
        let threads = bx * by * bz;
        let kernel = &self.env.program.functions[self.kernel];
        let thread = |index: u32| Thread {
            cells: vec![0; kernel.cells as usize],
            lacks: vec![u64::MAX; kernel.cells as usize],
            function: self.kernel,
            memory: vec![0; kernel.frame as usize],
            memory_lacks: vec![u8::MAX; kernel.frame as usize],
            id: [index % bx, index / bx % by, index / bx / by],
            lane: index % LANES as u32,
            warp: index / LANES as u32,
            ..Thread::default()
        };
        let warp = |index: u32| {
            let first = index * LANES as u32;
            let threads = (first..threads.min(first + LANES as u32)).map(thread).collect();
            Warp { threads }
        };
        Block {
            id,
            rank,
            shared: vec![0; self.env.shared as usize],
            warps: (0..threads.div_ceil(LANES as u32)).map(warp).collect(),
            barriers: vec![Named::default(); BARRIERS],
            seen: Seen::new(threads.div_ceil(LANES as u32) as usize),
            tensor: Tensor::default(),
        }
    }

    /// Lets each thread of a block run for its share. Returns whether anything progressed.
    fn turn(&mut self, block: &mut Block) -> Result<bool, Fault> {
        let mut moved = false;
        for warp in 0..block.warps.len() {
            moved |= self.turn_of_warp(block, warp)?;
        }
        moved |= barrier::advance(block).map_err(|found| {
            let (warp, lane, fault) = *found;
            let thread = &block.warps[warp].threads[lane];
            placed(self.env, fault, thread, block.id)
        })?;
        Ok(moved)
    }

    /// Runs the threads of a warp until each has ended, waits for another warp, or has used up its
    /// share.
    fn turn_of_warp(&mut self, block: &mut Block, warp: usize) -> Result<bool, Fault> {
        let mut left = [SHARE; LANES];
        let mut moved = false;
        for thread in block.warps[warp].threads.iter_mut().filter(|t| matches!(t.wait, Wait::Poll(_))) {
            thread.wait = Wait::Nothing;
        }
        loop {
            for (lane, left) in left.iter_mut().enumerate().take(block.warps[warp].threads.len()) {
                let ran = self.with(block, warp, lane, |scene, thread| scene.run(thread, *left))?;
                *left -= ran;
                moved |= ran != 0;
                self.waits.busy |= ran != 0 && !matches!(block.warps[warp].threads[lane].wait, Wait::Poll(_));
            }
            let met = self.meet(block, warp)? || self.company(block, warp)?;
            moved |= met;
            let running =
                block.warps[warp].threads.iter().zip(left).any(|(t, left)| t.wait == Wait::Nothing && left > 0);
            if !met || !running {
                return Ok(moved);
            }
        }
    }

    /// Runs `f` on one thread and its view of the launch; a fault gets the thread's position.
    fn with<T>(
        &mut self,
        block: &mut Block,
        warp: usize,
        lane: usize,
        f: impl FnOnce(&mut Scene, &mut Thread) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let Block { id, rank, shared, warps, seen, tensor, .. } = block;
        let thread = &mut warps[warp].threads[lane];
        let mut scene = Scene {
            env: self.env,
            global: &mut self.global,
            shared,
            tensor,
            block: *id,
            rank: *rank,
            peers: &mut self.peers,
            clusters: &mut self.clusters,
            steps: self.outcome.instructions,
            printed: &mut self.outcome.printed,
            seen,
            findings: &mut self.findings,
            waits: &mut self.waits,
        };
        let result = f(&mut scene, thread);
        let steps = scene.steps;
        self.outcome.instructions = steps;
        result.map_err(|fault| placed(self.env, fault, thread, *id))
    }

    /// Executes the warp operations whose lanes have all arrived. Returns whether there was one.
    fn meet(&mut self, block: &mut Block, warp: usize) -> Result<bool, Fault> {
        let mut met = false;
        for lane in 0..block.warps[warp].threads.len() {
            let threads = &block.warps[warp].threads;
            let Wait::Lanes { mask, .. } = threads[lane].wait else { continue };
            let wait = threads[lane].wait;
            let live = |n: &usize| threads.get(*n).is_some_and(|t| t.wait != Wait::Ended);
            let active = lanes_of(mask).filter(live).fold(0u32, |bits, n| bits | 1 << n);
            if lanes_of(active).all(|n| threads[n].wait == wait) {
                self.execute(block, warp, active)?;
                met = true;
            }
        }
        Ok(met)
    }

    /// Executes an operation of the converged lanes (such as `activemask`) once no other thread of
    /// the warp can reach it. Returns whether there was one.
    fn company(&mut self, block: &mut Block, warp: usize) -> Result<bool, Fault> {
        let threads = &block.warps[warp].threads;
        let waiting = threads.iter().filter(|t| t.wait == Wait::Company).map(|t| (t.function, t.pc));
        let Some(first) = waiting.min() else { return Ok(false) };
        let here = |t: &Thread| t.wait == Wait::Company && (t.function, t.pc) == first;
        let active = threads.iter().enumerate().filter(|(_, t)| here(t)).fold(0u32, |bits, (n, _)| bits | 1 << n);
        self.execute(block, warp, active)?;
        Ok(true)
    }

    fn execute(&mut self, block: &mut Block, warp: usize, active: u32) -> Result<(), Fault> {
        let env = self.env;
        let at = |t: &Thread| match &env.program.functions[t.function].insts[t.pc].act {
            Act::Collective(c) => Some(&**c),
            _ => None,
        };
        let operations: Vec<(usize, &Collective)> =
            lanes_of(active).filter_map(|lane| Some((lane, at(&block.warps[warp].threads[lane])?))).collect();
        let Some((_, first)) = operations.first() else { return Ok(()) };
        let mut lanes = Lanes {
            active,
            src: vec![[0; LANES]; first.src.len()],
            out: vec![[0; LANES]; first.dst.len().max(2)],
            at: vec![(Space::Global, 0); LANES],
            warp,
        };
        let mut lacks = vec![[0; LANES]; first.src.len()];
        for (lane, c) in &operations {
            self.with(block, warp, *lane, |scene, thread| {
                for ((row, lacks), src) in lanes.src.iter_mut().zip(&mut lacks).zip(&c.src) {
                    (row[*lane], lacks[*lane]) = (scene.value(thread, src), lacking(thread, src));
                }
                if let Some(address) = &c.address {
                    scene.decide(thread, "the address of a load or store", &address.base);
                    lanes.at[*lane] = scene.locate(thread, address);
                }
                Ok(())
            })?;
        }
        let mut dirty = lacks.iter().flatten().any(|bits| *bits != 0);
        let given = lanes.src.clone();
        match &first.how {
            How::Together(together) => together(&mut lanes),
            How::InTensor(f) => {
                let mut tensor = std::mem::take(&mut block.tensor);
                let done = f(&mut lanes, &mut tensor, &mut Lookout { launch: self, block, warp, dirty });
                block.tensor = tensor;
                done.map_err(|fault| {
                    let thread = &block.warps[warp].threads[operations[0].0];
                    if fault.place.is_some() { fault } else { placed(env, fault, thread, block.id) }
                })?;
            }
            How::WithMemory(f) => {
                let mut lookout = Lookout { launch: self, block, warp, dirty };
                let done = f(&mut lanes, &mut lookout);
                dirty = lookout.dirty;
                done.map_err(|fault| {
                    let lane = fault.lane.map_or(operations[0].0, |lane| lane as usize);
                    let thread = block.warps[warp].threads.get(lane).filter(|_| fault.place.is_none());
                    thread.map_or(fault.clone(), |thread| placed(env, fault.clone(), thread, block.id))
                })?;
            }
        }
        if matches!(first.how, How::InTensor(_)) {
            dirty = false;
        }
        let open = if dirty { self.open_results(block, warp, &first.how, &lanes, &given, &lacks) } else { Vec::new() };
        for (lane, c) in operations {
            let thread = &mut block.warps[warp].threads[lane];
            c.dst.iter().zip(&lanes.out).for_each(|(sink, row)| put(thread, *sink, row[lane]));
            c.dst.iter().zip(&open).for_each(|(sink, row)| lack(thread, *sink, row[lane]));
            thread.wait = Wait::Nothing;
            thread.pc += 1;
        }
        Ok(())
    }

    /// Which bits of the results depend on undefined bits of sources or memory, found by trying
    /// patterns. Undefined bits that were stored are marked in shadow memory.
    fn open_results(
        &mut self,
        block: &mut Block,
        warp: usize,
        how: &How,
        lanes: &Lanes,
        given: &[[u64; LANES]],
        lacks: &[[u64; LANES]],
    ) -> Vec<[u64; LANES]> {
        let mut found = vec![[0; LANES]; lanes.out.len()];
        let mut first: Option<(Vec<[u64; LANES]>, Vec<Stored>)> = None;
        let mut left: Vec<u64> = Vec::new();
        // `match` and comparisons change their result only at specific values, so the values of the
        // other lanes are tried too.
        let defined = lanes_of(lanes.active).filter(|lane| lacks.first().is_some_and(|row| row[*lane] == 0)).take(8);
        let numbers = defined.filter_map(|lane| Some((given.first()?[lane], true)));
        let patterns: Vec<(u64, bool)> = PATTERNS.into_iter().map(|p| (p, false)).chain(numbers).collect();
        for (pattern, plain) in patterns {
            let mut trial = Lanes { src: given.to_vec(), out: vec![[0; LANES]; lanes.out.len()], ..lanes.clone() };
            for (i, (row, lacks)) in trial.src.iter_mut().zip(lacks).enumerate() {
                for (lane, (value, lacks)) in row.iter_mut().zip(lacks).enumerate() {
                    let fill = if plain { pattern } else { pattern_for(pattern, i + lane) };
                    *value = *value & !lacks | fill & lacks;
                }
            }
            let mut trials = Trial { launch: self, block, warp, pattern, stored: Vec::new() };
            match how {
                How::Together(together) => together(&mut trial),
                How::WithMemory(f) if f(&mut trial, &mut trials).is_err() => return found,
                How::WithMemory(_) | How::InTensor(_) => {}
            }
            let stored = trials.stored;
            let (out, before) = first.get_or_insert_with(|| (trial.out.clone(), stored.clone()));
            for (found, (now, then)) in
                found.iter_mut().flatten().zip(trial.out.iter().flatten().zip(out.iter().flatten()))
            {
                *found |= now ^ then;
            }
            left.resize(stored.len(), 0);
            for (left, (now, then)) in left.iter_mut().zip(stored.iter().zip(before)) {
                *left |= now.3 ^ then.3;
            }
        }
        let stored = first.map_or(Vec::new(), |(_, stored)| stored);
        for ((lane, at, width, _), open) in stored.into_iter().zip(left).filter(|(_, open)| *open != 0) {
            // The same bytes have been written already, so this cannot fault.
            let _ = self.with(block, warp, lane, |scene, thread| {
                scene.lack_at(thread, at, width, open);
                Ok(())
            });
        }
        found
    }

    fn deadlock(&self, clusters: &[Vec<Block>]) -> Fault {
        let (mut waits, mut first) = (Vec::new(), None);
        let threads = clusters
            .iter()
            .flatten()
            .flat_map(|b| b.warps.iter().flat_map(|w| &w.threads).map(|thread| (b.id, thread)));
        for (block, thread) in threads {
            let asked = usize::from(matches!(thread.wait, Wait::Poll(_)));
            let line = self.env.program.functions[thread.function].insts[thread.pc - asked].pos.line;
            let what = match thread.wait {
                Wait::Ended => continue,
                Wait::Nothing | Wait::Company => "nothing".to_string(),
                Wait::Lanes { mask, .. } => format!("lanes {mask:#010x}"),
                Wait::Poll(at) => format!("the end of a phase of the mbarrier at shared address {at:#x}"),
                Wait::Barrier(arrival) => format!("its warp at barrier {}", arrival.number),
                Wait::Block(arrival) => format!("barrier {}", arrival.number),
                Wait::Cluster => "the barrier of the cluster".to_string(),
            };
            first.get_or_insert((block, thread));
            waits.push(format!("{what} (line {line})"));
        }
        crate::sorted::sort(&mut waits);
        waits.dedup();
        waits.truncate(8);
        let text = format!("deadlock: no thread can run; threads wait for {}", waits.join(", "));
        let fault = Fault::of(Kind::Deadlock, text);
        match first {
            Some((block, thread)) => placed(self.env, fault, thread, block),
            None => fault,
        }
    }
}

/// Memory as the lanes of a warp access it.
struct Lookout<'l, 'e> {
    launch: &'l mut Launch<'e>,
    block: &'l mut Block,
    warp: usize,
    /// Whether the operation involves undefined bits.
    dirty: bool,
}

/// A store of a trial execution: lane, address, bytes, value.
type Stored = (usize, (Space, u64), u64, u64);

/// Memory during a trial execution: undefined bits read as a pattern, stores are only recorded.
struct Trial<'l, 'e> {
    launch: &'l mut Launch<'e>,
    block: &'l mut Block,
    warp: usize,
    pattern: u64,
    stored: Vec<Stored>,
}

impl Memory for Trial<'_, '_> {
    fn read(&mut self, lane: usize, at: (Space, u64), width: u64) -> Result<u64, Fault> {
        let pattern = self.pattern;
        self.launch.with(self.block, self.warp, lane, |scene, thread| {
            let value = scene.load(thread, at, width)?;
            let lacks = scene.open_at(thread, at, width);
            Ok(value & !lacks | pattern & lacks)
        })
    }

    fn write(&mut self, lane: usize, at: (Space, u64), width: u64, value: u64) -> Result<(), Fault> {
        self.stored.push((lane, at, width, value));
        Ok(())
    }
}

impl Memory for Lookout<'_, '_> {
    fn read(&mut self, lane: usize, at: (Space, u64), width: u64) -> Result<u64, Fault> {
        let (value, lacks) = self.launch.with(self.block, self.warp, lane, |scene, thread| {
            let value = scene.load(thread, at, width)?;
            Ok((value, scene.read(thread, at, width)))
        })?;
        self.dirty |= lacks != 0;
        Ok(value)
    }

    fn write(&mut self, lane: usize, at: (Space, u64), width: u64, value: u64) -> Result<(), Fault> {
        self.launch.with(self.block, self.warp, lane, |scene, thread| {
            scene.written(thread, at, width, value, 0);
            store(scene.bytes(thread, at, width, true)?, value);
            Ok(())
        })
    }
}

/// Adds the source line and the thread's position to a fault.
pub fn placed(env: &Env, fault: Fault, thread: &Thread, block: [u32; 3]) -> Fault {
    let function = &env.program.functions[thread.function];
    let line = function.insts.get(thread.pc).map_or(0, |inst| inst.pos.line);
    let ([bx, by, bz], [tx, ty, tz]) = (block, thread.id);
    let text = format!("line {line} of {}, block ({bx},{by},{bz}), thread ({tx},{ty},{tz})", function.name);
    Fault {
        what: format!("{} at {text}", fault.what),
        lane: Some(thread.lane),
        place: Some(Place { block, warp: thread.warp, pc: None }),
        source: Some(SourceLine { file: String::new(), line }),
        ..fault
    }
}
