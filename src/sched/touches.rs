//! The registers of each instruction of a region, and by how much those that live would change if
//! it came next, which is so until one of its registers begins or ends.

use super::sweep::{Live, Peaks, Sweep};
use crate::ori::{File, Function, InstId, VReg, table};
use cranelift_entity::SecondaryMap;

/// When each register began to live, on a clock that goes on from one order to the next.
pub struct Began {
    at: SecondaryMap<VReg, u32>,
    clock: u32,
    /// The clock when the order at hand was begun.
    start: u32,
}

impl Began {
    /// For the registers of a function.
    pub fn new(function: &Function) -> Began {
        Began { at: table(function.regs().len()), clock: 0, start: 0 }
    }

    /// Nothing has begun.
    pub fn forget(&mut self) {
        self.start = self.clock;
    }

    /// Notes a register that lives now; whether it did not before.
    fn note(&mut self, reg: VReg) -> bool {
        let new = self.at[reg] <= self.start;
        if new {
            self.at[reg] = self.clock;
        }
        new
    }

    /// How late a register began to live; 0 if it has not.
    fn age(&self, reg: VReg) -> u32 {
        self.at[reg].saturating_sub(self.start)
    }
}

/// A register of an instruction.
#[derive(Clone, Copy)]
pub struct Touch {
    pub reg: VReg,
    /// The number of the group of registers that change together.
    group: u32,
    file: File,
    pub reads: bool,
    writes: bool,
    /// Whether it is written whatever the guard says.
    pub ends: bool,
}

/// The registers of the instructions of a region.
pub struct Touches {
    /// Where the registers of each instruction begin, and the end of the last one's.
    first: Vec<u32>,
    all: Vec<Touch>,
    /// Where the instructions of each group begin, and the end of the last one's.
    first_user: Vec<u32>,
    users: Vec<u32>,
}

/// A table that all regions use in turn: the numbers of groups, from 1 on, and of registers.
pub struct Groups(pub Vec<u32>);

impl Groups {
    /// For the groups of these registers.
    pub fn new(live: &Live) -> Groups {
        Groups(vec![0; live.groups()])
    }
}

impl Touch {
    /// Whether it is a general register.
    pub fn is_general(&self) -> bool {
        self.file == File::R
    }
}

impl Touches {
    /// The registers of these instructions.
    pub fn new(function: &Function, insts: &[InstId], live: &Live, groups: &mut Groups) -> Touches {
        let mut first: Vec<u32> = Vec::with_capacity(insts.len() + 1);
        let mut all: Vec<Touch> = Vec::with_capacity(4 * insts.len());
        for inst in insts {
            let start = all.len();
            first.push(start as u32);
            let whole = function[*inst].guard.is_null();
            let touch = |reg: VReg, writes: bool| {
                let file = function[reg].file;
                Touch { reg, group: 0, file, reads: !writes, writes, ends: writes && whole }
            };
            function.for_each_def(*inst, |reg| all.push(touch(reg, true)));
            function.for_each_use(*inst, |reg| match all[start..].iter_mut().find(|touch| touch.reg == reg) {
                Some(touch) => touch.reads = true,
                None => all.push(touch(reg, false)),
            });
        }
        first.push(all.len() as u32);
        let mut first_user = vec![0u32];
        for touch in &mut all {
            let number = &mut groups.0[live.group(touch.reg)];
            if *number == 0 {
                *number = first_user.len() as u32;
                first_user.push(0);
            }
            touch.group = *number - 1;
            first_user[touch.group as usize + 1] += 1;
        }
        all.iter().for_each(|touch| groups.0[live.group(touch.reg)] = 0);
        for group in 1..first_user.len() {
            first_user[group] += first_user[group - 1];
        }
        let mut next = first_user.clone();
        let mut users = vec![0; all.len()];
        for (at, bounds) in first.windows(2).enumerate() {
            for touch in &all[bounds[0] as usize..bounds[1] as usize] {
                users[next[touch.group as usize] as usize] = at as u32;
                next[touch.group as usize] += 1;
            }
        }
        Touches { first, all, first_user, users }
    }

    /// The registers of an instruction.
    pub fn of(&self, at: u32) -> &[Touch] {
        &self.all[self.first[at as usize] as usize..self.first[at as usize + 1] as usize]
    }

    /// What an instruction would change if it came next, and how late the first of its results
    /// began to live.
    pub fn change(&self, sweep: &Sweep, began: &Began, at: u32) -> (Peaks, u32) {
        if !sweep.counts_quads() {
            let mut peaks = Peaks::default();
            let age = self.each_change(sweep, began, at, |touch, by| peaks.count(touch.file, by));
            return (peaks, age);
        }
        let mut change = sweep.change();
        let age = self.each_change(sweep, began, at, |touch, by| change.note(sweep, touch.reg, touch.file, by));
        (change.of(sweep), age)
    }

    /// Calls `note` for each register of an instruction that would begin, by 1, or end, by -1, and
    /// for some that would do neither, by 0; how late the first of its results began to live.
    #[inline]
    fn each_change(&self, sweep: &Sweep, began: &Began, at: u32, mut note: impl FnMut(&Touch, i32)) -> u32 {
        let mut age = 0;
        for touch in self.of(at) {
            let by = i32::from(touch.reads) - i32::from(sweep.contains(touch.reg));
            if touch.ends || touch.reads && by > 0 {
                note(touch, by);
            }
            if touch.writes {
                age = age.max(began.age(touch.reg));
            }
        }
        age
    }

    /// Goes over an instruction, from the end to the beginning. `stale` gets those whose changes
    /// are others now, some of them several times.
    pub fn pass(&self, sweep: &mut Sweep, began: &mut Began, at: u32, mut stale: impl FnMut(u32)) {
        began.clock += 1;
        let mut changed = |touch: &Touch| {
            let group = touch.group as usize;
            let users = &self.users[self.first_user[group] as usize..self.first_user[group + 1] as usize];
            users.iter().for_each(|user| stale(*user));
        };
        for touch in self.of(at).iter().filter(|touch| touch.ends && !touch.reads) {
            if sweep.end(touch.reg) {
                changed(touch);
            }
        }
        for touch in self.of(at).iter().filter(|touch| touch.reads) {
            if sweep.begin(touch.reg) | began.note(touch.reg) {
                changed(touch);
            }
        }
        sweep.step();
    }
}
