//! The instruction builder: a function under construction, with an insertion block and a current
//! guard.
//!
//! Lowering builds whole functions with it, legalization the expansions of single operations. Its
//! output is not in SSA form. A guarded instruction keeps its guard if it writes a visible
//! register, accesses memory or is convergent; otherwise it is emitted unguarded.

use super::mods::M;
use super::{Block, File, Function, InstId, Kind, Operand};
use crate::arrays::Each;
use crate::tables::{Feature, Op, Prop, Role};
use cranelift_entity::EntityRef;

/// A function under construction.
pub struct Code {
    /// The function.
    pub f: Function,
    /// Block that new instructions are appended to.
    pub block: Block,
    /// Guard of new instructions.
    pub guard: Operand,
    /// Source line of new instructions.
    pub line: u32,
    /// Registers below this number are visible outside: instructions that write them keep the
    /// guard.
    pub visible: usize,
    /// Rarely executed blocks, to be laid out behind all others.
    pub cold: Vec<Block>,
}

impl Code {
    /// Whether the target has a feature.
    pub fn has(&self, feature: Feature) -> bool {
        self.f.target().has(feature)
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

    /// An immediate that is part of the instruction (an offset, a truth table); zero stays an
    /// immediate.
    pub fn literal(&mut self, value: i64) -> Operand {
        self.f.imm(value as u64)
    }

    /// The low and the high word of a 64-bit operand.
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

    /// A 32-bit operand in a register: an immediate is moved there.
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

    /// Writes both words of a pair.
    pub fn copy_words(&mut self, pair: Operand, words: [Operand; 2]) {
        for (d, a) in self.words(pair).into_iter().zip(words) {
            self.copy(d, a);
        }
    }

    /// A fresh tuple of 32-bit registers, and its registers.
    pub fn temp_vector(&mut self, len: usize) -> (Operand, Vec<Operand>) {
        let vector = self.f.new_vector(File::R, len);
        let regs = self.f.vector_regs(vector).iter().map(|r| Operand::reg(*r)).collect();
        (Operand::vector(vector), regs)
    }

    /// Appends an instruction to the current block; roles that are not listed stay absent.
    pub fn put(&mut self, op: Op, mods: &[M], args: &[(Role, Operand)]) -> InstId {
        let inst = self.build(op, mods, args);
        self.f[inst].line = self.line;
        if self.needs_guard(inst) {
            self.f[inst].guard = self.guard;
        }
        let block = self.block;
        self.f.append(block, inst);
        inst
    }

    /// As `put`, under a predicate: if it is false, the destinations keep their values.
    pub fn put_if(&mut self, p: Operand, op: Op, mods: &[M], args: &[(Role, Operand)]) -> InstId {
        let inst = self.put(op, mods, args);
        self.f[inst].guard = p;
        inst
    }

    /// Creates an instruction without appending it to a block.
    pub fn build(&mut self, op: Op, mods: &[M], args: &[(Role, Operand)]) -> InstId {
        let inst = self.f.make(op);
        for (kind, value) in mods {
            self.f[inst].mods.set(*kind, *value);
        }
        for (role, operand) in args {
            self.f.set_arg(inst, *role, *operand);
        }
        inst
    }

    /// Whether an instruction must keep the current guard.
    pub fn needs_guard(&self, inst: InstId) -> bool {
        if self.guard.is_null() {
            return false;
        }
        let op = self.f[inst].op;
        let effects = [Prop::SideEffect, Prop::ReadsMemory, Prop::WritesMemory, Prop::Convergent];
        let mut visible = effects.into_iter().any(|p| op.has(p));
        self.f.for_each_def(inst, |reg| visible |= reg.index() < self.visible);
        visible
    }

    /// Copies one word, or writes a constant. Under a guard the copy is a MOV, because it may leave
    /// the old value.
    #[inline]
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

    /// Whether the current block is terminated.
    #[inline]
    pub fn is_closed(&self) -> bool {
        let last = self.f[self.block].last();
        last.is_some_and(|inst| {
            let data = &self.f[*inst];
            data.op.has(Prop::Terminator) && data.guard.is_null()
        })
    }

    /// Terminates the current block and continues in `block`, which is laid out next.
    pub fn enter(&mut self, block: Block) {
        if !self.is_closed() {
            self.jump(block);
        }
        self.start(block);
    }

    /// Continues in `block`, which is moved to the end of the layout.
    pub fn start(&mut self, block: Block) {
        self.f.move_to_end(block);
        self.block = block;
    }

    /// Appends an unguarded branch.
    pub fn jump(&mut self, to: Block) {
        let guard = std::mem::replace(&mut self.guard, Operand::NULL);
        self.put(Op::BRA, &[], &[(Role::Target, Operand::label(to))]);
        self.guard = guard;
    }

    /// Ends the current block with a branch to `yes` if `p` is true, and continues in `no`.
    pub fn branch_if(&mut self, p: Operand, yes: Block, no: Block) {
        let guard = std::mem::replace(&mut self.guard, p);
        self.put(Op::BRA, &[], &[(Role::Target, Operand::label(yes))]);
        self.jump(no);
        self.start(no);
        self.guard = guard;
    }

    /// Ends the current block with a branch to `end`, and continues in `next`.
    pub fn enter_after(&mut self, end: Block, next: Block) {
        self.jump(end);
        self.start(next);
    }

    /// Under a guard, branches to `skip` if it is false, and clears the guard. Returns the old
    /// guard for the caller to restore.
    pub fn skip_unless_guarded(&mut self, skip: Block) -> Operand {
        let guard = std::mem::replace(&mut self.guard, Operand::NULL);
        if !guard.is_null() {
            let body = self.f.new_block();
            self.branch_if(guard.inverted(), skip, body);
        }
        guard
    }

    /// Emits the rare path for `p` true and the common path for `p` false, which join behind both.
    /// The rare path is laid out behind everything else.
    pub fn either(&mut self, p: Operand, seldom: impl FnOnce(&mut Code), often: impl FnOnce(&mut Code)) {
        let [yes, no, done] = [(); 3].each(|()| self.f.new_block());
        self.branch_if(p, yes, no);
        often(self);
        self.enter_after(done, yes);
        let (first, before) = (self.f.layout().len() - 1, self.cold.len());
        seldom(self);
        // What is cold inside is among these blocks.
        self.cold.truncate(before);
        self.cold.extend_from_slice(&self.f.layout()[first..]);
        self.enter(done);
    }
}
