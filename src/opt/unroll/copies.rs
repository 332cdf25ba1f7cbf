//! The copies of a loop's body, and the branches between them.

use super::counter::{self, Counter};
use super::{FACTOR, HALF, MOST_WHOLE, Shape};
use crate::arrays::Each;
use crate::ori::cfg::Cfg;
use crate::ori::{Block, File, Function, InstId, Operand, VReg};
use crate::tables::{Mod, Op, Role, value};

/// New blocks of one loop, in layout order; all stand before its header.
struct Copies<'a> {
    function: &'a mut Function,
    shape: &'a Shape,
    /// The branches at the end of the latch.
    branches: [InstId; 2],
    new: Vec<Block>,
    /// An instruction that copies go without.
    left_out: Option<InstId>,
}

/// Unrolls a loop, and notes its new blocks, each with the block before which it is to be placed.
pub fn unroll(function: &mut Function, cfg: &Cfg, shape: &Shape, counter: &Counter, placed: &mut Vec<(Block, Block)>) {
    let iterations = counter::iterations(function, cfg, shape, counter);
    let outside: Vec<Block> = cfg.preds[shape.header].iter().copied().filter(|b| *b != shape.latch).collect();
    let terminators = &function[shape.latch][function.first_terminator(shape.latch)..];
    let branches = [terminators[0], terminators[1]];
    let mut copies = Copies { function, shape, branches, new: Vec::new(), left_out: None };
    let start = match iterations {
        Some(count) if count as usize * shape.size <= MOST_WHOLE => copies.whole(count),
        _ if shape.size > shape.limit => return,
        Some(count) => copies.counted(count),
        None => {
            let Some(start) = copies.uncounted(counter) else { return };
            start
        }
    };
    let new = copies.new;
    outside.into_iter().for_each(|block| function.redirect(block, shape.header, start));
    placed.extend(new.into_iter().map(|block| (shape.header, block)));
}

impl Copies<'_> {
    fn block(&mut self) -> Block {
        let block = self.function.new_unplaced_block(Vec::new());
        self.new.push(block);
        block
    }

    /// Appends bodies to a block; returns the block at their end, which has no branch yet.
    fn bodies(&mut self, count: u32, start: Block) -> Block {
        let mut end = start;
        for _ in 0..count {
            end = self.body(end);
        }
        end
    }

    fn body(&mut self, start: Block) -> Block {
        let shape = self.shape;
        let mut names = vec![(shape.header, start)];
        for block in shape.blocks.iter().filter(|block| **block != shape.header) {
            names.push((*block, self.block()));
        }
        for (from, to) in &names {
            for inst in self.function[*from].clone() {
                if self.branches.contains(&inst) || self.left_out == Some(inst) {
                    continue;
                }
                let copy = self.function.copy_inst(inst);
                self.function[*to].push(copy);
            }
            for (old, new) in &names {
                self.function.redirect(*to, *old, *new);
            }
        }
        names.last().map_or(start, |(_, end)| *end)
    }

    /// Ends a block as the latch ends, with another block in the header's place.
    fn ask(&mut self, end: Block, again: Block) {
        let header = self.shape.header;
        for branch in self.branches {
            let copy = self.function.copy_inst(branch);
            self.function[end].push(copy);
        }
        self.function.redirect(end, header, again);
    }

    fn jump(&mut self, end: Block, to: Block) {
        let branch = self.function.make(Op::BRA);
        self.function.set_arg(branch, Role::Target, Operand::label(to));
        self.function[branch].line = self.function[self.branches[0]].line;
        self.function[end].push(branch);
    }

    /// All iterations, one behind the other.
    fn whole(&mut self, count: u32) -> Block {
        let start = self.block();
        let end = self.bodies(count, start);
        self.jump(end, self.shape.exit);
        start
    }

    /// What is left over, then turns of [`FACTOR`] iterations.
    fn counted(&mut self, count: u32) -> Block {
        let turn = |copies: &mut Self| {
            let turn = copies.block();
            let end = copies.bodies(FACTOR, turn);
            copies.ask(end, turn);
            turn
        };
        if count.is_multiple_of(FACTOR) {
            return turn(self);
        }
        let start = self.block();
        let end = self.bodies(count % FACTOR, start);
        let turn = turn(self);
        self.jump(end, turn);
        start
    }

    /// Turns of [`FACTOR`] iterations while so many are certain, then [`HALF`], then the loop as it
    /// was: a counter that passes the largest word goes on, so nothing bounds what is left.
    ///
    /// Lanes that leave the turns in different iterations wait for each other in front of what is
    /// left, and again behind the half: there the loop's condition is asked, which holds from the
    /// start for those that come from outside.
    fn uncounted(&mut self, counter: &Counter) -> Option<Block> {
        let distance = counter.distance(FACTOR)?;
        let start = self.block();
        let turn = self.block();
        self.set(start, counter.result);
        let (certain, limit) = self.certain(start, counter, distance)?;
        // Nobody reads the comparison in the turn; what follows the turn makes it anew.
        self.left_out = counter.compare;
        let end = self.bodies(FACTOR, turn);
        self.left_out = None;
        let rest = self.block();
        let last = self.block();
        self.branch_if(start, certain, turn, last);
        let again = self.compare(end, counter, limit, Operand::NULL);
        self.branch_if(end, again, turn, rest);
        if let Some(compare) = counter.compare {
            let compare = self.function.copy_inst(compare);
            self.function[rest].push(compare);
        }
        self.jump(rest, last);
        let half = counter.distance(HALF).and_then(|distance| self.certain(last, counter, distance));
        let Some((certain, _)) = half else {
            self.ask(last, self.shape.header);
            return Some(start);
        };
        let pair = self.block();
        let end = self.bodies(HALF, pair);
        let one = self.block();
        self.branch_if(last, certain, pair, one);
        self.jump(end, one);
        self.ask(one, self.shape.header);
        Some(start)
    }

    /// Appends a predicate's constant value.
    fn set(&mut self, block: Block, (reg, value): (VReg, bool)) {
        let inst = self.function.make(Op::PLOP3);
        let [lut, none] = [if value { 0x80 } else { 0 }, 0].each(|table| self.function.imm(table));
        let inputs = [Role::Pa, Role::Pb, Role::Pc].each(|role| (role, Operand::zero()));
        let tables = [(Role::Pu, Operand::reg(reg)), (Role::Lut, lut), (Role::Lut2, none)];
        inputs.into_iter().chain(tables).for_each(|(role, operand)| self.function.set_arg(inst, role, operand));
        self.append(block, inst);
    }

    /// Appends to a block whether the bound is so far from the counter, and the word beyond which
    /// the counter must not be; `None` if no bound is.
    fn certain(&mut self, block: Block, counter: &Counter, distance: u32) -> Option<(Operand, Operand)> {
        let up = counter.step > 0;
        let (least, most) =
            if counter.orders_signed() { (i64::from(i32::MIN), i64::from(i32::MAX)) } else { (0, i64::from(u32::MAX)) };
        let nearest = if up { least + i64::from(distance) } else { most - i64::from(distance) };
        let added = if up { -i64::from(distance) } else { i64::from(distance) };
        if let Some(bound) = self.function.word_value(counter.bound) {
            let bound = if least < 0 { i64::from(bound as i32) } else { i64::from(bound) };
            let limit = bound + added;
            if limit < least || limit > most {
                return None;
            }
            let limit = self.function.imm(u64::from(limit as u32));
            return Some((self.compare(block, counter, limit, Operand::NULL), limit));
        }
        let nearest = self.function.imm(u64::from(nearest as u32));
        let cmp = if up { value::cmp::GE } else { value::cmp::LE };
        let far = match distance {
            0 => Operand::NULL,
            _ => self.test(block, cmp, least < 0, (counter.bound, nearest), Operand::NULL),
        };
        let limit = Operand::reg(self.function.new_reg(File::R));
        let added = self.function.imm(u64::from(added as u32));
        let sum = self.function.make(Op::IADD3);
        for (role, operand) in
            [(Role::D, limit), (Role::A, counter.bound), (Role::B, added), (Role::C, Operand::zero())]
        {
            self.function.set_arg(sum, role, operand);
        }
        self.append(block, sum);
        Some((self.compare(block, counter, limit, far), limit))
    }

    /// Appends the comparison of the counter with the word beyond which it must not be.
    fn compare(&mut self, block: Block, counter: &Counter, limit: Operand, and: Operand) -> Operand {
        let cmp = if counter.step > 0 { value::cmp::LT } else { value::cmp::GT };
        self.test(block, cmp, counter.orders_signed(), (Operand::reg(counter.reg), limit), and)
    }

    /// Appends a comparison of two words, both it and `and` to hold.
    fn test(&mut self, block: Block, cmp: u8, signed: bool, (a, b): (Operand, Operand), and: Operand) -> Operand {
        let result = Operand::reg(self.function.new_reg(File::P));
        let inst = self.function.make(Op::ISETP);
        let sign = if signed { value::sign::NONE } else { value::sign::U32 };
        let mods = &mut self.function[inst].mods;
        mods.set(Mod::Cmp, cmp);
        mods.set(Mod::Sign, sign);
        for (role, operand) in [(Role::Pu, result), (Role::A, a), (Role::B, b), (Role::Pp, and)] {
            self.function.set_arg(inst, role, operand);
        }
        self.append(block, inst);
        result
    }

    fn branch_if(&mut self, block: Block, guard: Operand, yes: Block, no: Block) {
        self.jump(block, yes);
        if let Some(branch) = self.function[block].last().copied() {
            self.function[branch].guard = guard;
        }
        self.jump(block, no);
    }

    fn append(&mut self, block: Block, inst: InstId) {
        self.function[inst].line = self.function[self.branches[0]].line;
        self.function[block].push(inst);
    }
}
