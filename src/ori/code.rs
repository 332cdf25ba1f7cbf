//! Code being written: a function, the block where instructions go, and the guard they carry.
//!
//! Input: calls. Output: instructions, not in SSA form. Lowering writes a whole function with it, legalization what an operation becomes. Invariant: under a
//! guard, an instruction carries the guard if it writes a visible register, touches memory or is convergent, and is unguarded otherwise.

use super::mods::M;
use super::{Block, File, Function, InstId, Kind, Operand};
use crate::tables::{Feature, Op, Prop, Role};
use cranelift_entity::EntityRef;

/// A function that is being written.
pub struct Code {
    pub f: Function,
    /// Where instructions go.
    pub block: Block,
    /// Guard of what is being written.
    pub guard: Operand,
    /// Its line.
    pub line: u32,
    /// Registers below this number are seen by others: what writes them keeps the guard.
    pub visible: usize,
    /// Blocks that are seldom run, to be laid out behind all others.
    pub cold: Vec<Block>,
}

impl Code {
    pub fn has(&self, feature: Feature) -> bool {
        self.f.target.has(feature)
    }

    /// A fresh 32-bit register.
    pub fn temp(&mut self) -> Operand {
        Operand::reg(self.f.new_reg(File::R))
    }

    /// A fresh 64-bit register pair.
    pub fn temp_pair(&mut self) -> Operand {
        Operand::vector(self.f.new_vector(File::R, 2))
    }

    /// A fresh predicate.
    pub fn temp_pred(&mut self) -> Operand {
        Operand::reg(self.f.new_reg(File::P))
    }

    /// A 32-bit constant: an immediate, or RZ for zero.
    pub fn imm(&mut self, value: u32) -> Operand {
        if value == 0 { Operand::zero() } else { self.f.imm(value.into()) }
    }

    /// A number that is part of the instruction (an offset, a truth table), zero included.
    pub fn literal(&mut self, value: i64) -> Operand {
        self.f.imm(value as u64)
    }

    /// Low and high word of a 64-bit operand.
    pub fn words(&mut self, value: Operand) -> [Operand; 2] {
        match value.kind() {
            Kind::Vector(vector) => {
                let regs = self.f.vector_regs(vector);
                [Operand::reg(regs[0]), Operand::reg(regs[1])]
            }
            Kind::Imm(_) => {
                let bits = self.f.imm_value(value).unwrap_or(0);
                [self.imm(bits as u32), self.imm((bits >> 32) as u32)]
            }
            _ => [value, value],
        }
    }

    /// The value of a constant operand; RZ counts as zero.
    pub fn constant(&self, value: Operand) -> Option<u64> {
        match value.kind() {
            Kind::Zero => Some(0),
            _ => self.f.imm_value(value),
        }
    }

    /// A 32-bit operand in a register: an immediate goes through MOV.
    pub fn in_reg(&mut self, value: Operand) -> Operand {
        if self.f.imm_value(value).is_none() {
            return value;
        }
        let temp = self.temp();
        self.put(Op::MOV, &[], &[(Role::D, temp), (Role::A, value)]);
        temp
    }

    /// A 64-bit operand in a register pair; zero stays RZ.
    pub fn in_pair(&mut self, value: Operand) -> Operand {
        if self.f.imm_value(value).is_none() {
            return value;
        }
        let words = self.words(value);
        self.pair_of(words)
    }

    /// A fresh pair with copies of two words.
    pub fn pair_of(&mut self, words: [Operand; 2]) -> Operand {
        let pair = self.temp_pair();
        self.copy_words(pair, words);
        pair
    }

    /// Both words of a pair.
    pub fn copy_words(&mut self, pair: Operand, words: [Operand; 2]) {
        for (d, a) in self.words(pair).into_iter().zip(words) {
            self.copy(d, a);
        }
    }

    /// A fresh vector of 32-bit registers.
    pub fn temp_vector(&mut self, len: usize) -> (Operand, Vec<Operand>) {
        let vector = self.f.new_vector(File::R, len);
        let regs = self.f.vector_regs(vector).iter().map(|r| Operand::reg(*r)).collect();
        (Operand::vector(vector), regs)
    }

    /// Appends an instruction with these modifiers and operands, the rest being absent, to the current block.
    pub fn put(&mut self, op: Op, mods: &[M], args: &[(Role, Operand)]) -> InstId {
        let inst = self.build(op, mods, args);
        self.f.insts[inst].line = self.line;
        if self.needs_guard(inst) {
            self.f.insts[inst].guard = self.guard;
        }
        let block = self.block;
        self.f.append(block, inst);
        inst
    }

    /// The same under a predicate: where that is false, what the instruction writes keeps its value.
    pub fn put_if(&mut self, p: Operand, op: Op, mods: &[M], args: &[(Role, Operand)]) -> InstId {
        let inst = self.put(op, mods, args);
        self.f.insts[inst].guard = p;
        inst
    }

    pub fn build(&mut self, op: Op, mods: &[M], args: &[(Role, Operand)]) -> InstId {
        let inst = self.f.make(op);
        for (kind, value) in mods {
            self.f.insts[inst].mods.set(*kind, *value);
        }
        for (role, operand) in args {
            self.f.set_arg(inst, *role, *operand);
        }
        inst
    }

    pub fn needs_guard(&self, inst: InstId) -> bool {
        if self.guard.is_null() {
            return false;
        }
        let op = self.f.insts[inst].op;
        let effects = [Prop::SideEffect, Prop::ReadsMemory, Prop::WritesMemory, Prop::Convergent];
        let mut visible = effects.into_iter().any(|p| op.has(p));
        self.f.for_each_def(inst, |reg| visible |= reg.index() < self.visible);
        visible
    }

    /// Copies one word, or writes a constant. A copy under a guard is a MOV: it may leave the old value.
    pub fn copy(&mut self, d: Operand, a: Operand) {
        let op = if self.guard.is_null() && a == a.plain() && a.as_reg().is_some() { Op::COPY } else { Op::MOV };
        if d != a {
            self.put(op, &[], &[(Role::D, d), (Role::A, a)]);
        }
    }

    /// Copies 32 or 64 bits.
    pub fn copy_value(&mut self, d: Operand, a: Operand) {
        match d.kind() {
            Kind::Vector(_) => {
                let words = self.words(a);
                self.copy_words(d, words);
            }
            _ => self.copy(d, a),
        }
    }

    /// Whether the current block has its end.
    pub fn is_closed(&self) -> bool {
        let last = self.f.blocks[self.block].last();
        last.is_some_and(|inst| {
            let data = &self.f.insts[*inst];
            data.op.has(Prop::Terminator) && data.guard.is_null()
        })
    }

    /// Ends the current block and goes on in another, laid out next.
    pub fn enter(&mut self, block: Block) {
        if !self.is_closed() {
            self.jump(block);
        }
        self.start(block);
    }

    pub fn start(&mut self, block: Block) {
        // Most blocks were made shortly before.
        if let Some(at) = self.f.layout.iter().rposition(|b| *b == block) {
            self.f.layout.remove(at);
        }
        self.f.layout.push(block);
        self.block = block;
    }

    /// An unguarded branch.
    pub fn jump(&mut self, to: Block) {
        let guard = std::mem::replace(&mut self.guard, Operand::NULL);
        self.put(Op::BRA, &[], &[(Role::Target, Operand::label(to))]);
        self.guard = guard;
    }

    /// Ends the current block with a branch on a predicate, and goes on in the block where it is false.
    pub fn branch_if(&mut self, p: Operand, yes: Block, no: Block) {
        let guard = std::mem::replace(&mut self.guard, p);
        self.put(Op::BRA, &[], &[(Role::Target, Operand::label(yes))]);
        self.jump(no);
        self.start(no);
        self.guard = guard;
    }

    /// Ends the current block with a branch to `end`, and goes on in another one.
    pub fn enter_after(&mut self, end: Block, next: Block) {
        self.jump(end);
        self.start(next);
    }

    /// Under a guard, goes to `skip` where it is false; what follows is not guarded. Returns the guard, to be put back.
    pub fn skip_unless_guarded(&mut self, skip: Block) -> Operand {
        let guard = std::mem::replace(&mut self.guard, Operand::NULL);
        if !guard.is_null() {
            let body = self.f.new_block();
            self.branch_if(guard.inverted(), skip, body);
        }
        guard
    }

    /// Where a predicate holds, which is seldom, does one thing, elsewhere another; both go on behind it. The first is laid out behind everything else.
    pub fn either(&mut self, p: Operand, seldom: impl FnOnce(&mut Code), often: impl FnOnce(&mut Code)) {
        let [yes, no, done] = [(); 3].map(|()| self.f.new_block());
        self.branch_if(p, yes, no);
        often(self);
        self.enter_after(done, yes);
        let first = self.f.layout.len() - 1;
        seldom(self);
        self.cold.extend_from_slice(&self.f.layout[first..]);
        self.enter(done);
    }
}
