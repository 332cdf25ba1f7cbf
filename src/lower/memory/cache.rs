//! Cache control: `prefetch prefetchu applypriority discard createpolicy`, and `isspacep`.
//!
//! Emits CCTL and CCTLL, and one pseudo-operation for each policy, which MidExpansion expands
//! (`src/legal/policy.rs`). A policy is an opaque number for the program; its bits are those that
//! ptxas makes.

use super::address::{Place, Window};
use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast::{self, OperandKind};
use crate::tables::choices;
use crate::tables::ptx::{Op as PtxOp, PolicyRest, PrefetchLevel, ScalarType, Space};
use crate::tables::{Op, Role};

/// High word of a policy: its form; the priorities are in the bits below.
const FRACTION: u32 = 0x1000_0000;
const RANGE: u32 = 0x1800_0000;
/// The bit for a secondary priority of `evict_first`.
const REST_FIRST: u32 = 0x0100_0000;

/// The bits of the primary and secondary priorities of a policy.
fn priorities(inst: &ast::Instruction) -> u32 {
    let primary = choices::policy(inst.op).unwrap_or(0);
    let rest = if inst.mods.policy_rest == Some(PolicyRest::L2EvictFirst) { REST_FIRST } else { 0 };
    primary | rest
}

impl Builder<'_> {
    /// `prefetch` and `prefetchu`
    pub fn prefetch(&mut self, inst: &ast::Instruction) -> Lowered {
        let place = self.place(&inst.operands[0], inst.mods.space)?;
        let what = match inst.mods.prefetch_level {
            // Of a piece of a line, too: a hint, whatever is fetched around it.
            Some(PrefetchLevel::L1) => CCTL_PF1,
            _ if inst.mods.valid_address => CCTL_PF1,
            Some(PrefetchLevel::L2EvictLast) => CCTL_PML2,
            _ => CCTL_PF2,
        };
        self.line(what, place)
    }

    /// `applypriority` and `discard`, of 128 bytes.
    pub fn line_control(&mut self, inst: &ast::Instruction) -> Lowered {
        if self.constant_operand(&inst.operands[1])? != 128 {
            let pos = inst.operands[1].pos;
            return Err(Refusal::At(pos, "The size of a cache line is 128".to_string()));
        }
        let place = self.place(&inst.operands[0], inst.mods.space)?;
        self.line(if inst.op == PtxOp::Discard { CCTL_RML2 } else { CCTL_DML2 }, place)
    }

    fn line(&mut self, what: M, place: Place) -> Lowered {
        let offset = self.literal(place.offset);
        let args = [(Role::A, place.base), (Role::Off, offset)];
        match place.window {
            Window::Global | Window::Generic => self.put(Op::CCTL, &[E, what], &args),
            Window::Local => self.put(Op::CCTLL, &[what], &args),
            _ => return Err(Refusal::NotBuilt),
        };
        Ok(())
    }

    /// `createpolicy.fractional`
    pub fn policy_of_fraction(&mut self, inst: &ast::Instruction) -> Lowered {
        let d = self.dest(&inst.operands[0])?;
        let fraction = match inst.operands.get(1) {
            Some(operand) => self.source(operand, ScalarType::F32)?,
            None => self.f.imm(f32::to_bits(1.0).into()),
        };
        let base = self.imm(FRACTION | priorities(inst));
        self.put(Op::POLICY_FRACTION, &[], &[(Role::D, d), (Role::A, fraction), (Role::B, base)]);
        Ok(())
    }

    /// `createpolicy.range`
    pub fn policy_of_range(&mut self, inst: &ast::Instruction) -> Lowered {
        let place = self.place(&inst.operands[1], Some(Space::Global))?;
        let start = if place.offset == 0 { place.base } else { self.add_offset(place.base, place.offset) };
        let primary = self.source_reg(&inst.operands[2], ScalarType::U32)?;
        let total = self.source_reg(&inst.operands[3], ScalarType::U32)?;
        let d = self.dest(&inst.operands[0])?;
        let base = self.imm(RANGE | priorities(inst));
        let args = [(Role::D, d), (Role::A, start), (Role::B, primary), (Role::C, total), (Role::E, base)];
        self.put(Op::POLICY_RANGE, &[], &args);
        Ok(())
    }

    /// `createpolicy.cvt`: the bits of an access property are those of the policy.
    pub fn policy_of_property(&mut self, inst: &ast::Instruction) -> Lowered {
        let (d, a) = (self.dest(&inst.operands[0])?, self.source(&inst.operands[1], ScalarType::B64)?);
        self.copy_value(d, a);
        Ok(())
    }

    /// `isspacep`
    pub fn is_space(&mut self, inst: &ast::Instruction) -> Lowered {
        let a = match inst.operands[1].kind {
            OperandKind::Register(used) if self.source.registers[used.register].ty.bits() == 32 => {
                let low = self.source_reg(&inst.operands[1], ScalarType::U32)?;
                self.pair_of([low, Operand::zero()])
            }
            _ => self.source_pair(&inst.operands[1], ScalarType::U64)?,
        };
        let p = self.dest(&inst.operands[0])?;
        match inst.mods.space {
            Some(Space::Shared | Space::SharedCta) => self.query_space(p, QSPC_SHARED, a),
            Some(Space::SharedCluster) => self.query_space(p, QSPC_CLUSTER, a),
            Some(Space::Local) => self.query_space(p, QSPC_LOCAL, a),
            Some(Space::Const) => self.is_constant(p, a),
            // A device function tests for the parameters of its kernel, whose end is a launch
            // constant.
            Some(Space::Param | Space::ParamEntry) if !self.layout.is_entry() => self.in_parameters(p, a),
            Some(Space::Param | Space::ParamEntry) => {
                let from = self.layout.param_base.wrapping_sub(self.info.param_window_at);
                let bytes = self.layout.param_bytes;
                self.in_window(p, a, (self.info.param_window, from, bytes));
            }
            Some(Space::Global) => {
                let (mapped, constant) = (self.temp_pred(), self.temp_pred());
                self.query_space(mapped, QSPC_GLOBAL, a);
                self.is_constant(constant, a);
                // mapped and not constant
                self.plop3(p, [mapped, constant, Operand::always()], 0xf0 & !0xcc);
            }
            _ => return Err(Refusal::NotBuilt),
        }
        Ok(())
    }

    fn in_parameters(&mut self, p: Operand, a: Operand) {
        let info = self.info;
        let base = self.code.window_base(info.param_window);
        let from = info.param_base.wrapping_sub(info.param_window_at);
        let start = [self.imm(from), Operand::zero()];
        let last = match info.param_window_at {
            0 => {
                let [end, _] = self.code.window_base(info.param_end);
                [end, Operand::zero()]
            }
            _ => {
                let (end, from_base) = (self.code.window_base(info.param_end), self.temp_pair());
                let words = self.words(from_base);
                self.add_long(words, end, base, true);
                words
            }
        };
        let a = self.words(a);
        let [past, distance, reach] =
            [self.temp_pair(), self.temp_pair(), self.temp_pair()].each(|pair| self.words(pair));
        self.add_long(past, a, base, true);
        self.add_long(distance, past, start, true);
        self.add_long(reach, last, start, true);
        self.compare_words(p, LE, U32, distance, reach);
    }

    fn is_constant(&mut self, p: Operand, a: Operand) {
        let bytes = self.globals.constant3.as_ref().map_or(0, |image| image.size) as u32;
        self.in_window(p, a, (self.info.const_window, 0, bytes));
    }

    /// Whether an address is among the `bytes` bytes that start at offset `from` of a window.
    fn in_window(&mut self, p: Operand, a: Operand, (window, from, bytes): (u32, u32, u32)) {
        let base = self.code.window_base(window);
        let [past, reach] = [self.temp_pair(), self.temp_pair()];
        let (words, a) = (self.words(past), self.words(a));
        self.add_long(words, a, base, true);
        let (start, distance) = (self.imm(from), self.words(reach));
        self.add_long(distance, words, [start, Operand::zero()], true);
        let end = [self.imm(bytes), Operand::zero()];
        self.compare_words(p, LT, U32, distance, end);
    }
}
