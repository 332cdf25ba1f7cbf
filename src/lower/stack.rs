//! Memory from the stack: `alloca`, `stacksave`, `stackrestore`.
//!
//! Input: sizes and alignments. Output: a register that says how far the stack has grown below the frame, and addresses in
//! local memory. Invariant: what is taken lies below the stack pointer, where a function that calls nothing has no other use
//! of the memory; a function that also calls is refused.

use super::builder::{Builder, Lowered, Refusal};
use super::logic::LUT_AND;
use crate::ori::Operand;
use crate::ptx::ast::{self, Constant, OperandKind, Statement};
use crate::tables::ptx::Op as PtxOp;
use crate::tables::{Op, Role};

/// Alignment of what is taken where none is written, in bytes. Source: what ptxas 13.0.88 rounds to.
const DEFAULT_ALIGN: u64 = 8;

impl Builder<'_> {
    /// The end of the stack: the stack pointer, until something is taken.
    fn stack_end(&mut self, inst: &ast::Instruction) -> Lowered<Operand> {
        let calls = |s: &Statement| matches!(s, Statement::Instruction(i) if i.op == PtxOp::Call);
        if self.source.body.iter().flatten().any(calls) {
            let message = format!("'{}' in a function that calls is not implemented", inst.op.name());
            return Err(Refusal::At(inst.pos, message));
        }
        if self.stack_end.is_null() {
            self.stack_end = self.temp();
            let (d, sp) = (self.stack_end, self.stack_pointer());
            self.put_first(Op::MOV, &[], &[(Role::D, d), (Role::A, sp)]);
        }
        Ok(self.stack_end)
    }

    /// `alloca`
    pub fn alloca(&mut self, inst: &ast::Instruction) -> Lowered {
        let end = self.stack_end(inst)?;
        let align = match inst.operands.get(2).map(|o| &o.kind) {
            Some(OperandKind::Constant(Constant::Int { bits, .. })) if bits.is_power_of_two() => *bits,
            None => DEFAULT_ALIGN,
            _ => return Err(Refusal::NotBuilt),
        };
        let done = self.f.new_block();
        let guard = self.skip_unless_guarded(done);
        let size = self.source_words(&inst.operands[1], inst.types[0])?[0];
        let (size, below) = (self.in_reg(size), self.temp());
        self.add(below, end, size.negated());
        let mask = self.imm((align as u32).wrapping_neg());
        self.lop3(end, below, mask, Operand::zero(), LUT_AND);
        let d = self.dest(&inst.operands[0])?;
        self.local_address(d, end);
        self.enter(done);
        self.guard = guard;
        Ok(())
    }

    /// `stacksave`
    pub fn stack_save(&mut self, inst: &ast::Instruction) -> Lowered {
        let end = self.stack_end(inst)?;
        let d = self.dest(&inst.operands[0])?;
        self.local_address(d, end);
        Ok(())
    }

    /// `stackrestore`
    pub fn stack_restore(&mut self, inst: &ast::Instruction) -> Lowered {
        let end = self.stack_end(inst)?;
        let done = self.f.new_block();
        let guard = self.skip_unless_guarded(done);
        let value = self.source_words(&inst.operands[0], inst.types[0])?[0];
        self.copy(end, value);
        self.enter(done);
        self.guard = guard;
        Ok(())
    }

    /// An address of 32 bits into a register of 32 or 64.
    fn local_address(&mut self, d: Operand, low: Operand) {
        match self.words_of(d).as_slice() {
            [d_lo, d_hi] => {
                let (d_lo, d_hi) = (*d_lo, *d_hi);
                self.copy(d_lo, low);
                self.copy(d_hi, Operand::zero());
            }
            _ => self.copy(d, low),
        }
    }
}
