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
    /// From when on a physical register is free.
    free: Vec<u32>,
}

impl FirstFit {
    /// For the blocks of a function.
    pub fn new(function: &Function) -> FirstFit {
        let regs = function.regs.len();
        let mut fit =
            FirstFit { tuple: table(regs), tuples: vec![Default::default()], span: table(regs), free: Vec::new() };
        for inst in function.layout.iter().flat_map(|block| &function.blocks[*block]) {
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
        function.regs[reg].file == File::R && self.tuple[reg] == 0
    }

    /// Registers that a block needs in this order.
    pub fn registers(&mut self, function: &Function, block: Block, live: &Liveness, order: &[InstId]) -> i32 {
        let last = order.len() as u32 + 1;
        let (mut touched, mut through) = (Vec::new(), 0);
        let general = |reg: VReg| function.regs[reg].file == File::R;
        for (at, inst) in order.iter().enumerate() {
            let at = at as u32 + 1;
            let mut note = |reg: VReg, start: u32| {
                if general(reg) {
                    let span = &mut self.span[reg];
                    if span.end == 0 {
                        span.start = start;
                        touched.push(reg);
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
        let most = self.place(&touched);
        for reg in touched {
            self.span[reg] = Span::default();
            self.tuples[self.tuple[reg] as usize].1 = false;
        }
        most + through
    }

    /// Places registers; one more than the highest.
    fn place(&mut self, touched: &[VReg]) -> i32 {
        let mut values: Vec<(u32, VReg)> = touched.iter().map(|reg| (self.span[*reg].start, *reg)).collect();
        values.sort_unstable();
        self.free.clear();
        let mut most = 0;
        for (start, reg) in values {
            let single = [reg];
            let regs: &[VReg] = match (self.tuple[reg], &mut self.tuples[self.tuple[reg] as usize]) {
                (0, _) => &single,
                (_, (_, true)) => continue,
                (_, (regs, placed)) => {
                    *placed = true;
                    regs
                }
            };
            let (width, step) = (regs.len(), regs.len().next_power_of_two());
            let free = |at: usize| self.free.get(at).is_none_or(|from| *from <= start);
            let base = (0..).step_by(step).find(|base| (*base..base + width).all(free)).unwrap_or(0);
            if self.free.len() < base + width {
                self.free.resize(base + width, 0);
            }
            for (at, reg) in regs.iter().enumerate() {
                self.free[base + at] = self.span[*reg].end.max(self.free[base + at]);
            }
            most = most.max(base + width);
        }
        most as i32
    }
}
