//! Executes the instructions of one group: the lanes of a warp that are at the same pc.
//!
//! The lanes of a group see each other's values as they were before the instruction. Another group
//! of the warp gets its turn where one waits, diverges, or jumps behind a YIELD: ptxas has a YIELD
//! in every loop that may wait for other lanes, at each level, and keeps values in uniform
//! registers over other loops even though the warp has diverged. Our own code does not, so jittered
//! runs let another group run at any jump.

use super::super::fault::{Fault, Kind, Place};
use super::super::memory::Global;
use super::super::ops::clusters::Clusters;
use super::access;
use super::block::{Arrival, Block};
use super::cluster::Peer;
use super::code::{Code, Dst, Exec, Pred, Special};
use super::control;
use super::matrix;
use super::mbarrier::{self, Waits};
use super::sanitizer::Watch;
use super::setup::Setup;
use super::stop::Stop;
use super::system;
use super::warp::{LANES, SQUARE, Warp, lanes_of};
use super::warp_ops;

/// The register RZ, which discards writes.
const RZ: u8 = 255;
/// Warps that a multiprocessor holds.
const WARP_SLOTS: u32 = 32;

/// The state that all blocks of a launch share.
pub struct Machine<'a> {
    /// The launch's constants.
    pub setup: &'a Setup,
    /// Global memory.
    pub global: &'a mut Global,
    /// The sanitizer, if it is on.
    pub watch: Option<Box<Watch>>,
    /// Who asks in vain for the end of a phase of an mbarrier.
    pub waits: Waits,
    /// The blocks of the cluster of the block that runs; none in a cluster of one.
    pub peers: Vec<Peer>,
    /// The clusters that have not begun.
    pub clusters: Clusters,
    /// Executed instructions, over all warps.
    pub steps: u64,
    /// Executed instructions, counted per lane.
    pub lane_steps: u64,
}

/// Where a group continues after an instruction.
#[derive(Clone, Copy)]
pub(super) enum Flow {
    Next,
    Jump(u32),
    /// The lanes' own pcs say where; the group no longer exists.
    Split,
}

/// The execution of one instruction by one group.
pub(super) struct Step<'a> {
    /// The instruction.
    pub code: &'a Code,
    /// The warp in its block.
    pub warp: usize,
    /// The index of the instruction.
    pub pc: u32,
    /// The lanes at this pc.
    pub group: u32,
    /// Lanes of the group whose guard is true.
    pub active: u32,
}

impl<'a> Machine<'a> {
    /// A launch in which nothing has begun.
    pub fn new(setup: &'a Setup, global: &'a mut Global, watch: Option<Box<Watch>>) -> Machine<'a> {
        let asked = setup.code.iter().any(|code| matches!(code.exec, Exec::Cancel { .. }));
        let clusters = Clusters::new(setup.grid, setup.cluster, asked);
        let (waits, peers) = (Waits::default(), Vec::new());
        Machine { setup, global, waits, steps: 0, lane_steps: 0, watch, peers, clusters }
    }
}

impl Machine<'_> {
    /// Runs the next group of a warp, or the one that has not given way, for `budget` instructions
    /// and on to a jump; returns the number of executed instructions.
    ///
    /// # Errors
    ///
    /// The fault of an instruction, or the launch's step limit.
    pub fn run(&mut self, block: &mut Block, warp: usize, budget: u64) -> Result<u64, Fault> {
        let w = &mut block.warps[warp];
        let held = std::mem::take(&mut w.held);
        let Some(group) = Some(held).filter(|held| *held != 0).or_else(|| w.next_group()) else { return Ok(0) };
        let anywhere = self.watch.as_ref().is_some_and(|watch| watch.jitter.is_some());
        let mut gives_way = anywhere;
        let mut pc = w.pc[w.last_lane as usize];
        let mut done = 0;
        self.waits.asked = false;
        loop {
            let flow = self.step(block, warp, pc, group)?;
            gives_way |= self.setup.code.get(pc as usize).is_some_and(|code| matches!(code.exec, Exec::Yield));
            done += 1;
            match flow {
                Flow::Next => pc += 1,
                Flow::Jump(target) => pc = target,
                Flow::Split => {
                    self.waits.busy |= !self.waits.asked;
                    return Ok(done);
                }
            }
            if !matches!(flow, Flow::Jump(_)) {
                continue;
            }
            if done >= budget || self.waits.asked {
                block.warps[warp].held = if gives_way || self.waits.asked { 0 } else { group };
                break;
            }
            gives_way = anywhere;
        }
        self.waits.busy |= !self.waits.asked;
        for lane in lanes_of(group) {
            block.warps[warp].pc[lane] = pc;
        }
        Ok(done)
    }

    fn step(&mut self, block: &mut Block, warp: usize, pc: u32, group: u32) -> Result<Flow, Fault> {
        let setup = self.setup;
        let place = Place { block: block.id, warp: warp as u32, pc: Some(u64::from(pc) * 16) };
        let Some(code) = setup.code.get(pc as usize) else {
            return Err(Fault::new("execution ran past the end of the code").at(place));
        };
        if let Some(inspect) = setup.inspect {
            for lane in lanes_of(group) {
                let thread = warp as u32 * LANES as u32 + lane as u32;
                let (pc, block, warp) = (u64::from(pc) * 16, block.id, &mut block.warps[warp]);
                inspect(&mut Stop { pc, block, thread, warp, lane });
            }
        }
        let w = &mut block.warps[warp];
        w.instructions += 1;
        self.steps += 1;
        let ghosts = if code.exec.is_access() { w.ghosts() } else { 0 };
        let all = group & !ghosts & w.pred(code.guard);
        let active = if code.acts_once() { all & all.wrapping_neg() } else { all };
        let step = Step { code, warp, pc, group, active };
        self.lane_steps += u64::from(step.active.count_ones());
        let placed = |fault: Fault| fault.among(step.active).among(group).at(place);
        if self.steps > setup.step_limit {
            let what = format!("gave up after {} instructions", setup.step_limit);
            return Err(placed(Fault::of(Kind::StepLimit, what)));
        }
        let Some(mut watch) = self.watch.take() else { return self.perform(block, &step).map_err(placed) };
        let done = watch.before(self, block, &step).and_then(|()| {
            let flow = self.perform(block, &step)?;
            watch.after(block, &step);
            Ok(flow)
        });
        self.watch = Some(watch);
        done.map_err(placed)
    }

    /// Executes the instruction unless its guard is false on all lanes.
    fn perform(&mut self, block: &mut Block, step: &Step) -> Result<Flow, Fault> {
        let uniform_branch = matches!(step.code.exec, Exec::Branch { .. });
        if step.active == 0 && !uniform_branch { Ok(Flow::Next) } else { self.execute(block, step) }
    }

    /// Executes an instruction, whatever its guard; also used for trial executions by the
    /// sanitizer.
    pub(super) fn execute(&mut self, block: &mut Block, s: &Step) -> Result<Flow, Fault> {
        let (code, active) = (s.code, s.active);
        let w = &mut block.warps[s.warp];
        match code.exec {
            Exec::Nop => {}
            Exec::Refuse(reason) => return Err(Fault::refused(self.setup.reasons[reason as usize].clone())),
            Exec::Alu(alu) => {
                let (pp, pq, pr) = (w.pred(code.pp), w.pred(code.pq), w.pred(code.pr));
                let lanes = lowest_if_uniform(code, active);
                let (a, b, c) = (w.gather(&code.a, lanes), w.gather(&code.b, lanes), w.gather(&code.c, lanes));
                arithmetic(w, code, lanes, |lane| {
                    let bit = |mask: u32| mask >> lane & 1 != 0;
                    let (a, b, c) = (a[lane], b[lane], c[lane]);
                    alu.eval(&super::alu::In { a, b, c, pp: bit(pp), pq: bit(pq), pr: bit(pr) })
                });
            }
            Exec::P2r { .. } | Exec::R2p { .. } | Exec::Up2ur { .. } => move_predicates(w, code, active),
            Exec::Special { which, wide } => {
                let steps = self.steps;
                for lane in lanes_of(lowest_if_uniform(code, active)) {
                    let at = (block.id, block.rank);
                    let value = special(self.setup, at, &block.warps[s.warp], which, lane, steps);
                    let w = &mut block.warps[s.warp];
                    w.set(code.d, 0, lane, value as u32);
                    if wide {
                        w.set(code.d, 1, lane, (value >> 32) as u32);
                    }
                }
            }
            Exec::Load { .. }
            | Exec::Store { .. }
            | Exec::LoadWide { .. }
            | Exec::StoreWide
            | Exec::CopyAsync { .. }
            | Exec::Atomic { .. }
            | Exec::LoadConst { .. } => {
                if code.desc.is_some_and(|first| w.is_lost(first)) {
                    return Err(Fault::new("a call has changed the descriptor"));
                }
                access::execute(self, block, s.warp, code, active)?;
            }
            Exec::Mbarrier(act) => mbarrier::execute(self, block, s.warp, code, active, act)?,
            Exec::Bulk(bulk) => super::bulk::execute(self, block, s.warp, code, active, bulk)?,
            Exec::Remote(remote) => super::cluster::execute(self, block, s.warp, code, active, remote)?,
            Exec::Cancel { all } => super::cluster::cancel(self, block, s.warp, code, active, all)?,
            Exec::ClusterArrive => super::cluster::arrive(block, s.warp, active)?,
            Exec::Tensor(tensor) => super::tensor::execute(self, block, s.warp, code, active, tensor)?,
            Exec::TensorMemory(act) => super::tensor_memory::execute(self, block, s.warp, code, active, act)?,
            Exec::Sample(read) => super::texture::sample(self, block, s.warp, code, active, read)?,
            Exec::Query(query) => super::texture::query(self, block, s.warp, code, active, query)?,
            Exec::Surface(access) => super::texture::surface(self, block, s.warp, code, active, access)?,
            Exec::Clear => super::bulk::clear(block, s.warp, code, active)?,
            Exec::PairMove { high, store } => {
                for lane in lanes_of(active) {
                    let half = usize::from(high);
                    let (given, kept) = (w.get(&code.a, lane) as u32, w.pair[half][lane]);
                    if store {
                        w.pair[half][lane] = given;
                    } else {
                        w.set(code.d, 0, lane, kept);
                    }
                }
            }
            Exec::InSpace { space, cluster } => {
                access::in_space(self.setup, block, s.warp, code, active, (space, cluster));
            }
            Exec::CodeAddress { offset } => {
                let address = self.setup.code_base + offset;
                for lane in lanes_of(active) {
                    w.set(code.d, 0, lane, address as u32);
                    w.set(code.d, 1, lane, (address >> 32) as u32);
                }
            }
            Exec::Bssy { bar } => control::enter_region(w, bar.into(), active),
            Exec::StateToReg { active: asks } => {
                for lane in lanes_of(active) {
                    w.set(code.d, 0, lane, control::state(w, lane, active, asks));
                }
            }
            Exec::StateFromReg { active: false } => {
                for lane in lanes_of(active) {
                    control::set_ended(w, lane, w.get(&code.a, lane) as u32);
                }
            }
            Exec::BarFromState { bar } => w.bars[usize::from(bar)] = [active; LANES],
            Exec::RegFromBar { bar, clear: false } if w.lends() => {
                lanes_of(active).for_each(|lane| w.set(code.d, 0, lane, w.bars[usize::from(bar)][lane]));
            }
            Exec::SquareAdd { signs } => warp_ops::add_in_squares(w, code, active, signs),
            Exec::SquareMove { lanes } => {
                for lane in lanes_of(active).filter(|lane| lanes >> (lane % SQUARE) & 1 != 0) {
                    w.set(code.d, 0, lane, w.get(&code.a, lane) as u32);
                }
            }
            Exec::BarFromReg { bar } => {
                control::resume_regions(w, bar.into(), active, |w, lane| w.get(&code.a, lane) as u32);
            }
            Exec::RegFromBar { bar, clear: true } if matches!(code.d, Dst::Nowhere | Dst::Reg(RZ)) => {
                control::empty(w, bar.into(), active);
            }
            Exec::BarFromBar { bar, from } => control::move_region(w, from.into(), bar.into(), active),
            Exec::RegFromBar { bar, clear } => {
                let masks = control::keep_region(w, bar.into(), active, clear);
                for lane in lanes_of(active) {
                    w.set(code.d, 0, lane, masks[lane]);
                }
            }
            Exec::BarrierResult => {
                let (gathered, all) = (w.gathered, if w.gathered != 0 { active } else { 0 });
                for lane in lanes_of(active) {
                    w.set(code.d, 0, lane, gathered);
                }
                w.set_pred(code.pu, active, all);
            }
            Exec::MaxRegisters { count, takes } => {
                let done = block.change_registers(s.warp, count, takes)?;
                // Who asks in vain lets the others run.
                self.waits.asked |= !done;
                block.warps[s.warp].set_pred(code.pu, active, if done { active } else { 0 });
            }
            Exec::Shuffle(_) | Exec::Vote(_) | Exec::Match { .. } | Exec::Redux(_) | Exec::Elect | Exec::Spread => {
                warp_ops::execute(w, code, active);
            }
            Exec::Scaled(scaled) => super::mma_scaled::execute(w, code, active, &scaled),
            Exec::Group(group) => super::group::execute(block, s.warp, code, active, &group)?,
            Exec::Product(..)
            | Exec::Quarters(_)
            | Exec::LoadMatrix { .. }
            | Exec::StoreMatrix { .. }
            | Exec::MoveMatrix => {
                matrix::execute(block, s.warp, code, active)?;
            }
            _ => return self.control(block, s),
        }
        Ok(Flow::Next)
    }

    fn control(&mut self, block: &mut Block, s: &Step) -> Result<Flow, Fault> {
        let w = &mut block.warps[s.warp];
        let mut held = s.active & w.pred(s.code.pp);
        if let Exec::Branch { uniform, .. } = s.code.exec {
            held = control::jumping(held, s.group, uniform);
        }
        match s.code.exec {
            Exec::BranchMask { target, diverged, all } => {
                let lane = s.active.trailing_zeros() as usize % LANES;
                let mask = if all { u32::MAX } else { w.get(&s.code.a, lane) as u32 };
                let together = mask & w.alive & !s.active == 0;
                return Ok(if together == diverged { Flow::Next } else { Flow::Jump(target) });
            }
            Exec::BranchAll { target } => {
                return Ok(if held == s.active { Flow::Jump(target) } else { Flow::Next });
            }
            Exec::BranchAny { target } => return Ok(if held == 0 { Flow::Next } else { Flow::Jump(target) }),
            Exec::Branch { target, .. } if held == s.group => return Ok(Flow::Jump(target)),
            Exec::Branch { .. } if held == 0 => return Ok(Flow::Next),
            Exec::Break { bar } if held != 0 => {
                control::leave_region(w, bar.into(), held);
                return Ok(Flow::Next);
            }
            _ => {}
        }
        for lane in lanes_of(s.group) {
            w.pc[lane] = s.pc + u32::from(held >> lane & 1 == 0);
        }
        match s.code.exec {
            Exec::Branch { target, .. } => lanes_of(held).for_each(|lane| w.pc[lane] = target),
            Exec::BranchIndirect { base, absolute } => self.indirect(w, s.code, held, base, absolute)?,
            Exec::Exit | Exec::Kill => {
                w.exit(held);
                control::settle(w);
                block.settle();
            }
            Exec::Trap => return Err(Fault::of(Kind::Trap, "trap").among(held)),
            Exec::Bsync { bar } => control::converge(w, bar.into(), held),
            Exec::WarpSync { all, apart } => {
                let a = &s.code.a;
                let mask = |w: &Warp, lane: usize| if all { !w.ended[lane] } else { w.get(a, lane) as u32 };
                control::warp_sync(w, held, apart, mask);
            }
            Exec::StateFromReg { .. } => {
                lanes_of(held).for_each(|lane| w.pc[lane] += 1);
                let mask = lanes_of(held).next().map_or(0, |lane| w.get(&s.code.a, lane) as u32);
                control::set_active(w, held, mask);
            }
            Exec::StateFromBar { bar, squares } => {
                lanes_of(held).for_each(|lane| w.pc[lane] += 1);
                let mask = lanes_of(held).next().map_or(0, |lane| w.bars[usize::from(bar)][lane]);
                if squares {
                    w.lend(held, mask).map_err(Fault::new)?;
                } else if !w.give_back() {
                    control::set_active(w, held, mask);
                }
            }
            Exec::EndCollective => {
                lanes_of(held).for_each(|lane| w.pc[lane] += 1);
                w.rejoin(held);
            }
            Exec::Yield => {
                lanes_of(held).for_each(|lane| w.pc[lane] += 1);
                control::yield_lanes(w, held);
            }
            Exec::ClusterWait => {
                lanes_of(held).for_each(|lane| w.pc[lane] = s.pc);
                super::cluster::wait(block, s.warp, held)?;
            }
            Exec::BlockBarrier { .. } => return self.block_barrier(block, s).map(|()| Flow::Split),
            // A BREAK or another predicated operation whose predicate is false on all lanes.
            _ => {}
        }
        Ok(Flow::Split)
    }

    fn indirect(&mut self, w: &mut Warp, code: &Code, lanes: u32, base: i64, absolute: bool) -> Result<(), Fault> {
        for lane in lanes_of(lanes) {
            let mut to = w.get(&code.a, lane).wrapping_add(base as u64);
            if let Some(name) = system::at(to).filter(|_| absolute) {
                to = system::call(self.global, w, lane, name)?;
            }
            let offset = if absolute { to.wrapping_sub(self.setup.code_base) } else { to };
            if offset % 16 != 0 || offset / 16 >= self.setup.code.len() as u64 {
                let what = format!("jump to {to:#x}, which is not in the code");
                return Err(Fault::new(what).on_lane(lane));
            }
            w.pc[lane] = (offset / 16) as u32;
        }
        Ok(())
    }

    fn block_barrier(&mut self, block: &mut Block, s: &Step) -> Result<(), Fault> {
        let Exec::BlockBarrier { arrive_only, gather, packed } = s.code.exec else { return Ok(()) };
        let w = &mut block.warps[s.warp];
        // The caller has advanced lanes with a false predicate; here the predicate is the vote, so
        // they are set back.
        lanes_of(s.active).for_each(|lane| w.pc[lane] = s.pc);
        let lane = s.active.trailing_zeros() as usize % LANES;
        let (barrier, count) = (w.get(&s.code.a, lane) as u32, w.get(&s.code.b, lane) as u32);
        let (barrier, count) = if packed { (barrier & 15, barrier >> 16 & 0xfff) } else { (barrier, count) };
        let votes = w.pred(s.code.pp);
        block.arrive(s.warp, Arrival { lanes: s.active, barrier, count, arrive_only, gather, votes })
    }
}

/// Restricts a uniform operation to the lowest lane.
pub fn lowest_if_uniform(code: &Code, active: u32) -> u32 {
    let uniform = matches!(code.d, Dst::UReg(_)) || code.pu.uniform || code.pv.uniform;
    if uniform { active & active.wrapping_neg() } else { active }
}

/// Computes the results of an operation whose lanes are independent.
fn arithmetic(w: &mut Warp, code: &Code, lanes: u32, eval: impl Fn(usize) -> super::alu::Out) {
    let (mut pu, mut pv) = (0, 0);
    for lane in lanes_of(lanes) {
        let out = eval(lane);
        w.set(code.d, 0, lane, out.d as u32);
        if code.words == 2 {
            w.set(code.d, 1, lane, (out.d >> 32) as u32);
        }
        pu |= u32::from(out.pu) << lane;
        pv |= u32::from(out.pv) << lane;
    }
    w.set_pred(code.pu, lanes, pu);
    w.set_pred(code.pv, lanes, pv);
}

fn move_predicates(w: &mut Warp, code: &Code, active: u32) {
    for lane in lanes_of(lowest_if_uniform(code, active)) {
        let (a, mask) = (w.get(&code.a, lane) as u32, w.get(&code.b, lane) as u32);
        match code.exec {
            Exec::R2p { byte } => {
                let bits = a >> (8 * byte);
                for index in (0..7).filter(|i| mask >> i & 1 != 0) {
                    let p = Pred { uniform: code.pu.uniform, index, not: false };
                    w.set_pred(p, 1 << lane, (bits >> index & 1) << lane);
                }
            }
            Exec::P2r { byte } => {
                let d = a & !(mask << (8 * byte)) | (w.pred_bits(lane) & mask) << (8 * byte);
                w.set(code.d, 0, lane, d);
            }
            Exec::Up2ur { byte } => {
                let d = a & !(mask << (8 * byte)) | (w.upred_bits() & mask) << (8 * byte);
                w.set(code.d, 0, lane, d);
            }
            _ => {}
        }
    }
}

fn special(setup: &Setup, (block, rank): ([u32; 3], u32), w: &Warp, which: Special, lane: usize, steps: u64) -> u64 {
    let bit = 1u32 << lane;
    let thread = w.index * LANES as u32 + lane as u32;
    let [x, y, _] = setup.block;
    let tid = [thread % x, thread / x % y, thread / x / y];
    let word = match which {
        Special::Zero | Special::SmId => 0,
        Special::CtaInCluster => rank,
        Special::LaneId => lane as u32,
        // The warp's number is in bits 8 to 14.
        Special::WarpId => w.index << 8,
        Special::Tid(i) => tid[usize::from(i % 3)],
        Special::TidPacked => tid[0] | tid[1] << 16 | tid[2] << 26,
        Special::Ctaid(i) => block[usize::from(i % 3)],
        Special::GridDim(i) => setup.grid[usize::from(i % 3)],
        Special::EqMask => bit,
        Special::LtMask => bit - 1,
        Special::LeMask => bit | (bit - 1),
        Special::GtMask => !(bit | (bit - 1)),
        Special::GeMask => !(bit - 1),
        Special::ClockLo => return steps,
        Special::ClockHi => (steps >> 32) as u32,
        Special::SharedWindowHigh => (setup.shared_window >> 32) as u32,
        Special::SharedSize => setup.shared_bytes as u32,
        // The number of resident warps is in bits 8 to 15.
        Special::WarpCount => WARP_SLOTS << 8,
    };
    word.into()
}
