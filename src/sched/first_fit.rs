//! Estimates how many general registers a block needs in an order: what lives at once, and what is
//! lost where aligned pairs and quads find only scattered registers free.
//!
//! Every value goes to the lowest registers that are free when it begins, a tuple when its first
//! one does. What lives through the block without being touched takes no part in it.

use crate::ori::liveness::Liveness;
use crate::ori::{Block, File, Function, InstId, VReg, table};
use cranelift_entity::SecondaryMap;

/// Registers of a tuple at most; wider ones leave gaps that are wide too.
const WIDEST: usize = 4;

/// From where to where a register lives within a block: instructions from 1 on.
#[derive(Clone, Copy, Default)]
struct Span {
    start: u32,
    end: u32,
}

/// Tables of the function that all orders use in turn.
pub struct FirstFit {
    /// The tuple that a register belongs to.
    tuple: SecondaryMap<VReg, u32>,
    /// Registers of each tuple, and whether it has a place; the first one stands for no tuple.
    tuples: Vec<(Vec<VReg>, bool)>,
    /// Where a register lives; an end of 0 is nowhere.
    span: SecondaryMap<VReg, Span>,
    /// What begins in the block at hand.
    values: [Vec<(u32, VReg)>; 2],
    /// The physical registers that are taken, by their bits.
    taken: Vec<u64>,
    /// For each instruction the first register that is free from then on, from 1, and for each
    /// register the next one of the same instruction.
    freed: Vec<u32>,
    next: Vec<u32>,
}

impl FirstFit {
    /// For the blocks of a function.
    pub fn new(function: &Function) -> FirstFit {
        let regs = function.regs().len();
        let mut fit = FirstFit {
            tuple: table(regs),
            tuples: vec![Default::default()],
            span: table(regs),
            values: Default::default(),
            taken: Vec::new(),
            freed: Vec::new(),
            next: Vec::new(),
        };
        for inst in function.layout().iter().flat_map(|block| &function[*block]) {
            for operand in function.args(*inst) {
                let Some(regs) = operand.as_vector().map(|vector| function.vector_regs(vector)) else { continue };
                if regs.len() <= WIDEST && regs.iter().all(|reg| fit.is_free(function, *reg)) {
                    let number = fit.tuples.len() as u32;
                    regs.iter().for_each(|reg| fit.tuple[*reg] = number);
                    fit.tuples.push((regs.to_vec(), false));
                }
            }
        }
        fit
    }

    fn is_free(&self, function: &Function, reg: VReg) -> bool {
        function[reg].file == File::R && self.tuple[reg] == 0
    }

    /// Registers that a block needs in this order.
    pub fn registers(&mut self, function: &Function, block: Block, live: &Liveness, order: &[InstId]) -> i32 {
        let last = order.len() as u32 + 1;
        // What lives at the beginning, and what begins later, in order but for one instruction's.
        let ([mut before, mut touched], mut through) = (std::mem::take(&mut self.values), 0);
        let general = |reg: VReg| function[reg].file == File::R;
        for (at, inst) in order.iter().enumerate() {
            let at = at as u32 + 1;
            let mut note = |reg: VReg, start: u32| {
                if general(reg) {
                    let span = &mut self.span[reg];
                    if span.end == 0 {
                        span.start = start;
                        if start == 0 { &mut before } else { &mut touched }.push((start, reg));
                    }
                    span.end = at;
                }
            };
            // What is read before it is written lives at the beginning.
            function.for_each_use(*inst, |reg| note(reg, 0));
            function.for_each_def(*inst, |reg| note(reg, at));
        }
        for reg in &live.live[block] {
            match self.span[*reg].end {
                0 => through += i32::from(general(*reg)),
                _ => self.span[*reg].end = last,
            }
        }
        before.sort_unstable();
        before.append(&mut touched);
        before.chunk_by_mut(|a, b| a.0 == b.0).for_each(|same| same.sort_unstable());
        let most = self.place(&before, last);
        for (_, reg) in before.drain(..) {
            self.span[reg] = Span::default();
            self.tuples[self.tuple[reg] as usize].1 = false;
        }
        self.values = [before, touched];
        most + through
    }

    /// Places registers, by their beginnings, none of which is behind `last`; one more than the
    /// highest.
    fn place(&mut self, values: &[(u32, VReg)], last: u32) -> i32 {
        self.taken.clear();
        self.freed.clear();
        self.freed.resize(last as usize + 1, 0);
        self.next.clear();
        let (mut most, mut now) = (0, 0);
        for (start, reg) in values {
            let single = [*reg];
            let regs: &[VReg] = match (self.tuple[*reg], &mut self.tuples[self.tuple[*reg] as usize]) {
                (0, _) => &single,
                (_, (_, true)) => continue,
                (_, (regs, placed)) => {
                    *placed = true;
                    regs
                }
            };
            while now <= *start {
                release(&mut self.taken, &self.next, self.freed[now as usize]);
                now += 1;
            }
            let base = lowest(&self.taken, regs.len());
            if self.next.len() < base + regs.len() {
                self.next.resize(base + regs.len(), 0);
                self.taken.resize(self.next.len().div_ceil(64), 0);
            }
            for (at, reg) in regs.iter().enumerate().filter(|(_, reg)| self.span[**reg].end > *start) {
                let (at, end) = (base + at, self.span[*reg].end as usize);
                self.taken[at / 64] |= 1 << (at % 64);
                self.next[at] = std::mem::replace(&mut self.freed[end], at as u32 + 1);
            }
            most = most.max(base + regs.len());
        }
        most as i32
    }
}

/// Takes a list of registers off those that are taken.
fn release(taken: &mut [u64], next: &[u32], first: u32) {
    let mut reg = first;
    while reg != 0 {
        let at = reg as usize - 1;
        taken[at / 64] &= !(1 << (at % 64));
        reg = next[at];
    }
}

/// The lowest of so many registers that are free, at a multiple of their number or of 4.
fn lowest(taken: &[u64], width: usize) -> usize {
    for (word, taken) in taken.iter().enumerate() {
        let free = match width {
            1 => !taken,
            2 => !(taken | taken >> 1) & 0x5555_5555_5555_5555,
            3 => !(taken | taken >> 1 | taken >> 2) & 0x1111_1111_1111_1111,
            _ => !(taken | taken >> 1 | taken >> 2 | taken >> 3) & 0x1111_1111_1111_1111,
        };
        if free != 0 {
            return 64 * word + free.trailing_zeros() as usize;
        }
    }
    64 * taken.len()
}
