//! Cache control: prefetches, discards, priorities, policies.
//!
//! Input: `prefetch prefetchu applypriority discard createpolicy`. Output: CCTL, CCTLL, and the bits of a policy. A policy is an opaque number for
//! the program; its bits are those that the incumbent makes.

use super::address::{Place, Window};
use super::builder::{Builder, Lowered, Refusal};
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast;
use crate::tables::choices;
use crate::tables::ptx::{Op as PtxOp, PolicyRest, PrefetchLevel, ScalarType, Space};
use crate::tables::{Op, Role};

/// High word of a policy for a fraction of accesses: the form, where the first priority stands, the bit that says that the rest is
/// evicted first, and the fraction in sixteenths less one.
const FRACTION: u32 = 0x1000_0000;
const REST_FIRST: u32 = 0x0100_0000;
const SHARE_SHIFT: u32 = 20;
const SHARE_MASK: u32 = 0xf;
/// What a fraction is multiplied with, as the incumbent does: 15.99.
const SHARE_SCALE: f32 = 15.99;

/// High word of a policy for a range of addresses: its form. Shift and number of the first line and the number of lines stand below.
const RANGE: u32 = 0x1800_0000;
/// Lines are at least 2^12 bytes.
const LEAST_SHIFT: u32 = 12;
const LINES_MASK: u32 = 0x7f;
/// From the highest bit of a size less one to the shift by which at most 128 lines remain: plus one, less seven.
const LINES_BELOW: u32 = 6u32.wrapping_neg();

/// The bits of the two priorities that a policy names.
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
            Some(PrefetchLevel::L1) => CCTL_PF1,
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
        let base = FRACTION | priorities(inst);
        let d = self.dest_words(&inst.operands[0])?;
        let fraction = match inst.operands.get(1) {
            Some(operand) => self.source(operand, ScalarType::F32)?,
            None => self.f.imm(f32::to_bits(1.0).into()),
        };
        self.copy(d[0], Operand::zero());
        if let Some(bits) = self.constant(fraction) {
            let share = (f32::from_bits(bits as u32) * SHARE_SCALE) as u32 & SHARE_MASK;
            let high = self.imm(base | share << SHARE_SHIFT);
            self.copy(d[1], high);
            return Ok(());
        }
        let [scaled, share, low, placed] = [(); 4].map(|()| self.temp());
        let scale = self.f.imm(SHARE_SCALE.to_bits().into());
        self.put(Op::FMUL, &[], &[(Role::D, scaled), (Role::A, fraction), (Role::B, scale)]);
        self.put(Op::F2I, &[F2I_U32, TRUNC, F2I_NTZ], &[(Role::D, share), (Role::A, scaled)]);
        let (mask, shift, base) = (self.imm(SHARE_MASK), self.imm(SHARE_SHIFT), self.imm(base));
        self.and(low, share, mask);
        self.shf(&SHF_L, placed, low, shift, Operand::zero());
        self.lop3(d[1], placed, base, Operand::zero(), crate::ori::words::LUT_OR);
        Ok(())
    }

    /// `createpolicy.range`: lines of 2^s bytes, s such that 128 of them hold all, counted from where the first priority begins.
    pub fn policy_of_range(&mut self, inst: &ast::Instruction) -> Lowered {
        let place = self.place(&inst.operands[1], Some(Space::Global))?;
        let offset = self.literal(place.offset);
        let (base, offset) = (self.words(place.base), self.words(offset));
        let start = [self.temp(), self.temp()];
        self.add_long(start, base, offset, false);
        let primary = self.source_reg(&inst.operands[2], ScalarType::U32)?;
        let total = self.source_reg(&inst.operands[3], ScalarType::U32)?;
        let d = self.dest_words(&inst.operands[0])?;

        let [less, bit, lines, s, granule] = [(); 5].map(|()| self.temp());
        let (minus_one, down, least, one) =
            (self.imm(u32::MAX), self.imm(LINES_BELOW), self.imm(LEAST_SHIFT), self.imm(1));
        self.add(less, total, minus_one);
        self.unary(Op::FLO, &[U32], bit, less);
        self.add(lines, bit, down);
        self.word_min_max(s, lines, least, true, true, false);
        let one = self.in_reg(one);
        self.shf(&SHF_L, granule, one, s, Operand::zero());

        // The end, rounded up to a line.
        let [rounded, span, first, last, count, most] = [(); 6].map(|()| self.temp());
        let end = [self.temp(), self.temp()];
        self.add(rounded, granule, minus_one);
        self.add(span, primary, rounded);
        self.add_long(end, start, [span, Operand::zero()], false);
        self.shf(&SHF_R_U64, first, start[0], s, start[1]);
        self.shf(&SHF_R_U64, last, end[0], s, end[1]);
        self.add(count, last, first.negated());
        let mask = self.imm(LINES_MASK);
        self.word_min_max(most, count, mask, false, false, false);

        let [above, high, low] = [(); 3].map(|()| self.temp());
        let minus_least = self.imm(LEAST_SHIFT.wrapping_neg());
        self.add(above, s, minus_least);
        let mut word = self.imm(RANGE | priorities(inst));
        for (value, bits, shift, to) in
            [(above, SHARE_MASK, SHARE_SHIFT, high), (first, LINES_MASK, 12, low), (most, LINES_MASK, 5, d[1])]
        {
            let (part, placed) = (self.temp(), self.temp());
            let (bits, shift) = (self.imm(bits), self.imm(shift));
            self.and(part, value, bits);
            self.shf(&SHF_L, placed, part, shift, Operand::zero());
            self.lop3(to, placed, word, Operand::zero(), crate::ori::words::LUT_OR);
            word = to;
        }
        self.copy(d[0], Operand::zero());
        Ok(())
    }

    /// `createpolicy.cvt`: an access property is the policy's bits already.
    pub fn policy_of_property(&mut self, inst: &ast::Instruction) -> Lowered {
        let (d, a) = (self.dest(&inst.operands[0])?, self.source(&inst.operands[1], ScalarType::B64)?);
        self.copy_value(d, a);
        Ok(())
    }

    /// `isspacep`
    pub fn is_space(&mut self, inst: &ast::Instruction) -> Lowered {
        let a = self.source_pair(&inst.operands[1], ScalarType::U64)?;
        let p = self.dest(&inst.operands[0])?;
        match inst.mods.space {
            Some(Space::Shared | Space::SharedCta) => self.query_space(p, QSPC_SHARED, a),
            Some(Space::SharedCluster) => self.query_space(p, QSPC_CLUSTER, a),
            Some(Space::Local) => self.query_space(p, QSPC_LOCAL, a),
            Some(Space::Const) => self.is_constant(p, a),
            Some(Space::Param | Space::ParamEntry) => {
                let from = self.layout.param_base - self.info.param_window_at;
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

    fn is_constant(&mut self, p: Operand, a: Operand) {
        let bytes = self.globals.constant3.as_ref().map_or(0, |image| image.size) as u32;
        self.in_window(p, a, (self.info.const_window, 0, bytes));
    }

    /// Whether an address lies in a range of bytes that starts `from` bytes into a window.
    fn in_window(&mut self, p: Operand, a: Operand, (window, from, bytes): (u32, u32, u32)) {
        let base = self.window_base(window);
        let [past, reach] = [self.temp_pair(), self.temp_pair()];
        let (words, a) = (self.words(past), self.words(a));
        self.add_long(words, a, base, true);
        let (start, distance) = (self.imm(from), self.words(reach));
        self.add_long(distance, words, [start, Operand::zero()], true);
        let end = [self.imm(bytes), Operand::zero()];
        self.compare_words(p, LT, U32, distance, end);
    }

    /// Whether a generic address lies in a window.
    pub fn query_space(&mut self, p: Operand, space: M, a: Operand) {
        let none = self.literal(0);
        self.put(Op::QSPC, &[E, space], &[(Role::Pu, p), (Role::D, Operand::zero()), (Role::A, a), (Role::Off, none)]);
    }
}
