//! Dynamic stack allocation: `alloca`, `stacksave`, `stackrestore`.
//!
//! A register tracks the end of the stack, which grows downwards from the frame; allocated memory
//! lies between it and the stack pointer. The stack pointer itself moves only during a call: it is
//! lowered below the allocated memory, so that the callee's frame follows the stack arguments and
//! the saved stack pointer. This holds for every callee: a function of the module, a function
//! pointer, or a function of the driver.

use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::ori::Operand;
use crate::ori::build::int::LUT_AND;
use crate::ptx::ast::{self, Constant, OperandKind, Statement};
use crate::tables::ptx::Op as PtxOp;
use crate::tables::{Op, Role};

/// Alignment of an `alloca` that states none, in bytes. Source: what ptxas 13.0.88 rounds to.
const DEFAULT_ALIGN: u64 = 8;
/// Alignment of the lowered stack pointer in a call, in bytes.
const CALL_ALIGN: u64 = 16;

impl Builder<'_> {
    /// Whether the function contains an `alloca`.
    fn takes_memory(&self) -> bool {
        let takes = |s: &Statement| matches!(s, Statement::Instruction(i) if i.op == PtxOp::Alloca);
        *self.takes_memory.get_or_init(|| self.source.body.iter().flatten().any(takes))
    }

    /// Returns the lowered stack pointer for a call with `bytes` of stack arguments, and the offset
    /// at which the old stack pointer is saved; `None` if the stack pointer does not move.
    pub fn call_frame(&mut self, bytes: u64) -> Option<(Operand, u64)> {
        if !self.takes_memory() {
            return None;
        }
        let (end, saved) = (self.end_of_stack(), bytes.next_multiple_of(CALL_ALIGN));
        let (below, frame) = (self.temp(), self.temp());
        let amount = self.imm(((saved + CALL_ALIGN) as u32).wrapping_neg());
        self.add(below, end, amount);
        let mask = self.imm((CALL_ALIGN as u32).wrapping_neg());
        self.lop3(frame, below, mask, Operand::zero(), LUT_AND);
        let (offset, sp) = (self.literal(saved as i64), self.stack_pointer());
        self.put(Op::STL, &[], &[(Role::A, frame), (Role::Off, offset), (Role::B, sp)]);
        Some((frame, saved))
    }

    /// The end of the stack: the stack pointer until the first `alloca`.
    fn end_of_stack(&mut self) -> Operand {
        if self.stack_end.is_null() {
            self.stack_end = self.temp();
            let (d, sp) = (self.stack_end, self.stack_pointer());
            self.put_first(Op::MOV, &[], &[(Role::D, d), (Role::A, sp)]);
        }
        self.stack_end
    }

    /// `alloca`
    pub fn alloca(&mut self, inst: &ast::Instruction) -> Lowered {
        let end = self.end_of_stack();
        let align = match inst.operands.get(2).map(|o| &o.kind) {
            Some(OperandKind::Constant(Constant::Int { bits, .. })) if bits.is_power_of_two() => *bits,
            None => DEFAULT_ALIGN,
            _ => return Err(Refusal::NotBuilt),
        };
        let done = self.f.new_block();
        let guard = self.skip_unless_guarded(done);
        let size = self.source_words(&inst.operands[1], inst.types[0])?[0];
        let (less, below) = (self.negative(size), self.temp());
        self.add(below, end, less);
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
        let end = self.end_of_stack();
        let d = self.dest(&inst.operands[0])?;
        self.local_address(d, end);
        Ok(())
    }

    /// `stackrestore`
    pub fn stack_restore(&mut self, inst: &ast::Instruction) -> Lowered {
        let end = self.end_of_stack();
        let done = self.f.new_block();
        let guard = self.skip_unless_guarded(done);
        let value = self.source_words(&inst.operands[0], inst.types[0])?[0];
        self.copy(end, value);
        self.enter(done);
        self.guard = guard;
        Ok(())
    }

    /// Writes a 32-bit local address to a register of 32 or 64 bits.
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
