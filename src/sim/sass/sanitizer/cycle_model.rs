//! Estimates the cycles that a block takes on a multiprocessor of its own.
//!
//! The model replays the instructions of each warp in time order. Its input is the executed
//! instructions, the barriers at which warps met, and the throughput of each instruction's pipe
//! (`latency/throughput.ron`). Each warp belongs to one of four schedulers. A scheduler issues one
//! instruction per cycle, from the warp that can go first and has the lowest number. A warp
//! continues after its stall count and after the scoreboards that it waits for, and a pipe accepts
//! an instruction when it has finished the previous one. A scoreboarded result takes its typical
//! time, and a group of copies as long as its last copy. The estimate affects no result or report,
//! and jitter does not change it.

use crate::sass::Inst;
use crate::tables::throughput::{Pace, Pipe, Throughput};
use crate::tables::{Mod, Op, Prop, Role};
use std::collections::BTreeMap;

/// Scoreboards of a warp.
const BOARDS: usize = 6;
/// Schedulers of a multiprocessor.
const SCHEDULERS: usize = 4;
/// Most recorded instructions of a block; the estimate is scaled up for those beyond.
const KEPT: u64 = 1 << 20;
/// Flag of a barrier meeting among the recorded instructions.
const MEETING: u32 = 1 << 31;

/// An estimate of a block's cost on a multiprocessor of its own, in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Cycles {
    /// Cycles of the slowest block.
    pub block: u64,
    /// Lower bound: instructions that the busiest scheduler issues.
    pub issue: u64,
    /// Lower bound: cycles of the busiest pipe of a scheduler.
    pub pipe: u64,
}

/// The timing of one instruction.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    stall: u8,
    wait: u8,
    write_bar: u8,
    read_bar: u8,
    pace: Pace,
    /// DEPBAR: how many groups of copies may still be in flight.
    under_way: Option<usize>,
    /// Whether it is an asynchronous copy.
    copies: bool,
    /// Whether it closes a group of copies.
    closes: bool,
}

impl Cost {
    /// The timing of a decoded instruction.
    pub fn of(inst: &Inst, throughput: &Throughput) -> Cost {
        let depends = inst.op == Op::DEPBAR;
        let mask = if depends { inst.arg(Role::Mask).val as u8 & 63 } else { 0 };
        Cost {
            stall: inst.ctrl.stall,
            wait: inst.ctrl.wait | mask,
            write_bar: inst.ctrl.write_bar,
            read_bar: inst.ctrl.read_bar,
            pace: throughput.pace(inst.op, &inst.mods),
            under_way: (depends && inst.modifier(Mod::Le) != 0).then(|| inst.arg(Role::N).val as usize),
            copies: inst.op == Op::LDGSTS,
            closes: inst.op.has(Prop::CopyGroup),
        }
    }
}

/// Where the cycles of an instruction's warps went, in sum over the warps of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Spent {
    /// Instructions issued, one for each warp that reached it.
    pub issued: u64,
    /// Cycles of the stall field after the first.
    pub stall: u64,
    /// Cycles that it waited for scoreboards, copies, and at barriers for other warps.
    pub wait: u64,
    /// Cycles that it waited for its pipe and for the scheduler.
    pub pipe: u64,
    /// The part of `wait` by the index of the instruction that set the last scoreboard.
    pub producers: BTreeMap<u32, u64>,
}

impl Spent {
    /// All cycles.
    pub fn cycles(&self) -> u64 {
        self.issued + self.stall + self.wait + self.pipe
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Spent) {
        self.issued += other.issued;
        self.stall += other.stall;
        self.wait += other.wait;
        self.pipe += other.pipe;
        other.producers.iter().for_each(|(by, cycles)| *self.producers.entry(*by).or_default() += cycles);
    }
}

/// The instructions that the warps of a block executed.
#[derive(Clone, Debug)]
pub struct Course {
    /// For each warp the instructions, by index, and meetings, by number.
    warps: Vec<Vec<u32>>,
    /// The number of warps in each meeting.
    meetings: Vec<u32>,
    kept: u64,
    /// Instructions that were not recorded.
    left: u64,
}

impl Course {
    /// A block of `warps` warps that is about to start.
    pub fn new(warps: usize) -> Course {
        Course { warps: vec![Vec::new(); warps], meetings: Vec::new(), kept: 0, left: 0 }
    }

    /// Records an instruction of a warp.
    pub fn issue(&mut self, warp: usize, pc: u32) {
        if self.kept < KEPT {
            self.warps[warp].push(pc);
            self.kept += 1;
        } else {
            self.left += 1;
        }
    }

    /// Records that warps continue together after a barrier.
    pub fn meet(&mut self, warps: impl Iterator<Item = usize>) {
        if self.kept >= KEPT {
            return;
        }
        let number = self.meetings.len() as u32;
        let mut count = 0;
        for warp in warps {
            self.warps[warp].push(MEETING | number);
            count += 1;
        }
        self.meetings.push(count);
    }

    /// Replays the block and estimates its cycles.
    pub fn cycles(&self, costs: &[Option<Cost>]) -> Cycles {
        self.profiled(costs, &mut |_, _| {})
    }

    /// The same; `spent` is called with what is to be added to an instruction, by index.
    pub fn profiled(&self, costs: &[Option<Cost>], spent: &mut dyn FnMut(u32, Spent)) -> Cycles {
        let mut replay = Replay::new(self, costs, spent);
        (0..self.warps.len()).for_each(|warp| replay.advance(warp));
        while let Some((warp, cycle)) = replay.next() {
            replay.issue(warp, cycle);
        }
        let all = replay.cycles();
        let scaled = |n: u64| (u128::from(n) * u128::from(self.kept + self.left) / u128::from(self.kept.max(1))) as u64;
        Cycles { block: scaled(all.block), issue: scaled(all.issue), pipe: scaled(all.pipe) }
    }
}

/// The replay state of a warp.
#[derive(Clone, Debug, Default)]
struct Run {
    at: usize,
    /// Cycle at which its stall is over.
    ready: u64,
    /// Cycle at which its next instruction may issue; `None` while it waits for others, and at its
    /// end.
    due: Option<u64>,
    met: [u64; BOARDS],
    /// The instruction that set each scoreboard last.
    by: [u32; BOARDS],
    /// When the copies so far are complete.
    copied: u64,
    /// When each group of copies is complete.
    groups: Vec<u64>,
}

/// The replay state of a scheduler.
#[derive(Clone, Copy, Debug, Default)]
struct Scheduler {
    free: u64,
    issued: u64,
    pipes: [u64; Pipe::ALL.len()],
    busy: [u64; Pipe::ALL.len()],
}

struct Replay<'a> {
    course: &'a Course,
    costs: &'a [Option<Cost>],
    spent: &'a mut dyn FnMut(u32, Spent),
    runs: Vec<Run>,
    schedulers: [Scheduler; SCHEDULERS],
    /// For each meeting the warps that have arrived, and the latest arrival.
    waiting: Vec<(Vec<usize>, u64)>,
}

impl Replay<'_> {
    fn new<'a>(course: &'a Course, costs: &'a [Option<Cost>], spent: &'a mut dyn FnMut(u32, Spent)) -> Replay<'a> {
        Replay {
            course,
            costs,
            spent,
            runs: vec![Run::default(); course.warps.len()],
            schedulers: [Scheduler::default(); SCHEDULERS],
            waiting: vec![(Vec::new(), 0); course.meetings.len()],
        }
    }

    /// The next instruction of a warp, unless it is at its end.
    fn cost(&self, warp: usize) -> Option<Cost> {
        let word = self.course.warps[warp].get(self.runs[warp].at)?;
        self.costs[*word as usize]
    }

    /// Computes when the next instruction of a warp may issue; a meeting that becomes complete also
    /// advances the other warps.
    fn advance(&mut self, warp: usize) {
        let mut work = vec![warp];
        while let Some(warp) = work.pop() {
            let run = &mut self.runs[warp];
            run.due = None;
            let Some(word) = self.course.warps[warp].get(run.at) else { continue };
            if word & MEETING == 0 {
                let Some(cost) = self.costs[*word as usize] else { continue };
                run.due = Some(run.due(&cost));
                continue;
            }
            run.at += 1;
            let number = (word & !MEETING) as usize;
            let (there, last) = &mut self.waiting[number];
            there.push(warp);
            *last = (*last).max(run.ready);
            if there.len() as u32 == self.course.meetings[number] {
                let last = *last;
                for warp in std::mem::take(there) {
                    let run = &mut self.runs[warp];
                    if run.at > 1 {
                        let before = self.course.warps[warp][run.at - 2];
                        let wait = last - run.ready;
                        (self.spent)(before, Spent { wait, ..Spent::default() });
                    }
                    run.ready = last;
                    work.push(warp);
                }
            }
        }
    }

    /// The warp that can issue first, and the cycle.
    fn next(&self) -> Option<(usize, u64)> {
        let mut best: Option<(usize, u64)> = None;
        for (warp, run) in self.runs.iter().enumerate() {
            let Some(due) = run.due else { continue };
            if best.is_some_and(|b| b.1 <= due) {
                continue;
            }
            let Some(cost) = self.cost(warp) else { continue };
            let scheduler = &self.schedulers[warp % SCHEDULERS];
            let cycle = due.max(scheduler.free).max(scheduler.pipes[cost.pace.pipe as usize]);
            if best.is_none_or(|b| cycle < b.1) {
                best = Some((warp, cycle));
            }
        }
        best
    }

    fn issue(&mut self, warp: usize, cycle: u64) {
        let Some(cost) = self.cost(warp) else { return };
        let (pace, pipe) = (cost.pace, cost.pace.pipe as usize);
        let scheduler = &mut self.schedulers[warp % SCHEDULERS];
        scheduler.free = cycle + 1;
        scheduler.issued += 1;
        scheduler.pipes[pipe] = cycle + u64::from(pace.cycles);
        scheduler.busy[pipe] += u64::from(pace.cycles);
        let run = &mut self.runs[warp];
        let pc = self.course.warps[warp][run.at];
        (self.spent)(pc, run.spent(&cost, cycle));
        run.at += 1;
        run.ready = cycle + u64::from(cost.stall.max(1));
        run.settle(&cost, cycle, pc);
        self.advance(warp);
    }

    fn cycles(&self) -> Cycles {
        let of = |f: fn(&Scheduler) -> u64| self.schedulers.iter().map(f).max().unwrap_or(0);
        Cycles {
            block: self.runs.iter().map(|run| run.ready).max().unwrap_or(0),
            issue: of(|s| s.issued),
            pipe: of(|s| s.busy.iter().copied().max().unwrap_or(0)),
        }
    }
}

impl Run {
    /// When an instruction may issue, as far as its own warp is concerned.
    fn due(&self, cost: &Cost) -> u64 {
        let boards = (0..BOARDS).filter(|board| cost.wait >> board & 1 != 0).map(|board| self.met[board]);
        let due = boards.fold(self.ready, u64::max);
        let open = cost.under_way.and_then(|left| self.groups.len().checked_sub(left + 1));
        open.map_or(due, |last| due.max(self.groups[last]))
    }

    /// Where the cycles of an instruction that issues now went.
    fn spent(&self, cost: &Cost, cycle: u64) -> Spent {
        let due = self.due(cost);
        let wait = due - self.ready;
        let last = (0..BOARDS).find(|board| cost.wait >> board & 1 != 0 && self.met[*board] == due);
        let producers = last.filter(|_| wait > 0).map(|board| (self.by[board], wait)).into_iter().collect();
        Spent { issued: 1, stall: u64::from(cost.stall.max(1)) - 1, wait, pipe: cycle - due, producers }
    }

    /// Records what instruction `pc` leaves in flight.
    fn settle(&mut self, cost: &Cost, cycle: u64, pc: u32) {
        let pace = cost.pace;
        if cost.copies {
            self.copied = self.copied.max(cycle + u64::from(pace.result));
        }
        if cost.closes {
            self.groups.push(self.copied);
            return;
        }
        for (board, after) in [(cost.read_bar, pace.read), (cost.write_bar, pace.result)] {
            let Some(met) = self.met.get_mut(usize::from(board)) else { continue };
            if cycle + u64::from(after) >= *met {
                (*met, self.by[usize::from(board)]) = (cycle + u64::from(after), pc);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(pipe: Pipe, cycles: u8, stall: u8) -> Option<Cost> {
        let pace = Pace { pipe, cycles, result: 30, read: 10 };
        let none = 7;
        Some(Cost {
            stall,
            wait: 0,
            write_bar: none,
            read_bar: none,
            pace,
            under_way: None,
            copies: false,
            closes: false,
        })
    }

    fn run(warps: &[&[u32]], costs: &[Option<Cost>]) -> Cycles {
        let mut course = Course::new(warps.len());
        warps.iter().enumerate().for_each(|(w, pcs)| pcs.iter().for_each(|pc| course.issue(w, *pc)));
        course.cycles(costs)
    }

    #[test]
    fn stalls_pipes_and_scoreboards_count() {
        let fast = cost(Pipe::Alu, 1, 4);
        let slow = cost(Pipe::Xu, 8, 1);
        assert_eq!(run(&[&[0, 0, 0]], &[fast]).block, 12);
        // A busy pipe delays the next instruction; an instruction of another pipe issues beside it.
        assert_eq!(run(&[&[0, 0]], &[slow]).block, 9);
        assert_eq!(run(&[&[0, 1]], &[slow, cost(Pipe::Alu, 2, 1)]).block, 2);
        let load = slow.map(|c| Cost { write_bar: 0, ..c });
        let user = fast.map(|c| Cost { wait: 1, ..c });
        assert_eq!(run(&[&[0, 1]], &[load, user]).block, 34);
    }

    #[test]
    fn warps_of_one_scheduler_share_it_and_those_of_four_do_not() {
        let fast = cost(Pipe::Alu, 1, 4);
        let five: [&[u32]; 5] = [&[0; 8]; 5];
        assert_eq!(run(&five[..4], &[fast]).block, 32);
        // The fifth warp fills the stalls of the first.
        let cycles = run(&five, &[fast]);
        assert_eq!((cycles.block, cycles.issue), (33, 16));
        let busy = cost(Pipe::Xu, 8, 1);
        let cycles = run(&five, &[busy]);
        assert_eq!((cycles.block, cycles.pipe), (121, 128));
    }

    #[test]
    fn a_meeting_waits_for_the_last_one() {
        let mut course = Course::new(2);
        course.issue(0, 0);
        (0..4).for_each(|_| course.issue(1, 0));
        course.meet(0..2);
        course.issue(0, 0);
        assert_eq!(course.cycles(&[cost(Pipe::Alu, 1, 5)]).block, 25);
    }

    #[test]
    fn every_cycle_of_a_warp_is_spent_on_one_of_its_instructions() {
        let load = cost(Pipe::Mio, 8, 1).map(|c| Cost { write_bar: 0, ..c });
        let user = cost(Pipe::Alu, 1, 4).map(|c| Cost { wait: 1, ..c });
        let mut course = Course::new(2);
        (0..2).for_each(|warp| [0, 0, 1].into_iter().for_each(|pc| course.issue(warp, pc)));
        course.issue(1, 1);
        course.meet(0..2);
        course.issue(0, 1);
        let mut spent = vec![Spent::default(); 2];
        let cycles = course.profiled(&[load, user], &mut |pc, more| spent[pc as usize].add(&more));
        // Of warp 0: two loads, 8 cycles of a busy pipe between them, a wait for the second one,
        // and the barrier, at which warp 1 arrives four cycles later.
        assert_eq!(cycles.block, 9 + 30 - 1 + 4 + 4 + 4);
        let waited: u64 = spent.iter().map(|s| s.producers.values().sum::<u64>()).sum();
        assert_eq!((spent[0].issued, spent[0].pipe, spent[1].issued), (4, 14, 4));
        assert_eq!(waited, 2 * 29);
        assert_eq!(spent.iter().map(Spent::cycles).sum::<u64>(), cycles.block + 46);
    }
}
