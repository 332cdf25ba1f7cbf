//! Operations across the lanes of a warp.
//!
//! Input: `shfl[.sync] vote[.sync] match.sync activemask redux.sync bar.warp.sync`. Output: SHFL, VOTE, MATCH, each behind a SYNCMASK that says which
//! lanes must be together. Masks are applied to what lanes say: groups of lanes with different masks may run together.

use super::builder::{Builder, Lowered, Refusal};
use super::mods::*;
use crate::ori::Operand;
use crate::ptx::ast;
use crate::tables::ptx::{MatchMode, ScalarType, ShflMode, VoteMode};
use crate::tables::{Op, Role};

const ALL_LANES: u64 = 0xffff_ffff;

impl Builder<'_> {
    /// Reads a member mask and announces it. What becomes of it (WARPSYNC, or nothing where the lanes are together anyway) is
    /// for OriDoSyncronization to say.
    fn member_mask(&mut self, operand: &ast::Operand) -> Lowered<Operand> {
        let mask = self.source(operand, ScalarType::B32)?;
        self.put(Op::SYNCMASK, &[], &[(Role::A, mask)]);
        Ok(mask)
    }

    fn is_full(&self, mask: Operand) -> bool {
        self.constant(mask) == Some(ALL_LANES)
    }

    /// `bar.warp.sync`: nothing but a meeting of lanes.
    pub fn warp_barrier(&mut self, inst: &ast::Instruction) -> Lowered {
        self.member_mask(&inst.operands[0]).map(|_| ())
    }

    /// `shfl.sync`
    pub fn shuffle(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = ScalarType::B32;
        let (d, p) = self.dest_and_pred(&inst.operands[0])?;
        let a = self.source_reg(&inst.operands[1], ty)?;
        let (b, c) = (self.lane_operand(&inst.operands[2], 5)?, self.lane_operand(&inst.operands[3], 13)?);
        // Without `.sync` there is no mask: whoever is there takes part.
        if let Some(mask) = inst.operands.get(4) {
            self.member_mask(mask)?;
        }
        let mode = match inst.mods.shfl_mode {
            Some(ShflMode::Up) => SHFL_UP,
            Some(ShflMode::Down) => SHFL_DOWN,
            Some(ShflMode::Bfly) => SHFL_BFLY,
            _ => SHFL_IDX,
        };
        let p = if p == Operand::zero() { Operand::NULL } else { p };
        self.put(Op::SHFL, &[mode], &[(Role::Pu, p), (Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)]);
        Ok(())
    }

    /// A lane or a clamp: an immediate keeps only the bits of its field, zero is a literal there too.
    fn lane_operand(&mut self, operand: &ast::Operand, bits: u32) -> Lowered<Operand> {
        let value = self.source(operand, ScalarType::B32)?;
        Ok(match self.constant(value) {
            Some(constant) => self.literal((constant & ((1 << bits) - 1)) as i64),
            None => value,
        })
    }

    /// `activemask`
    pub fn active_mask(&mut self, inst: &ast::Instruction) -> Lowered {
        let d = self.dest(&inst.operands[0])?;
        self.vote_any(d, Operand::always());
        Ok(())
    }

    fn vote_any(&mut self, d: Operand, p: Operand) {
        self.put(Op::VOTE, &[VOTE_ANY], &[(Role::D, d), (Role::Pp, p)]);
    }

    /// `vote.sync`
    pub fn vote(&mut self, inst: &ast::Instruction) -> Lowered {
        let mode = inst.mods.vote_mode.ok_or(Refusal::NotBuilt)?;
        let p = self.source(&inst.operands[1], ScalarType::Pred)?;
        let d = self.dest(&inst.operands[0])?;
        let mask = match inst.operands.get(2) {
            Some(mask) => self.member_mask(mask)?,
            None => self.literal(ALL_LANES as i64),
        };
        if mode == VoteMode::Ballot {
            self.ballot(d, p, mask);
            return Ok(());
        }
        if self.is_full(mask) && mode != VoteMode::Uni {
            let vote = if mode == VoteMode::All { VOTE_ALL } else { VOTE_ANY };
            self.put(Op::VOTE, &[vote], &[(Role::Pu, d), (Role::Pp, p)]);
            return Ok(());
        }
        if mode == VoteMode::Any {
            let said = self.said_by(p, mask);
            self.isetp(d, &[NE, AND, U32], said, Operand::zero());
            return Ok(());
        }
        // No lane says otherwise.
        let against = self.said_by(p.inverted(), mask);
        if mode == VoteMode::All {
            self.isetp(d, &[EQ, AND, U32], against, Operand::zero());
            return Ok(());
        }
        let said = self.said_by(p, mask);
        let none = self.temp_pred();
        self.isetp(none, &[EQ, AND, U32], said, Operand::zero());
        self.put(
            Op::ISETP,
            &[EQ, OR, U32],
            &[(Role::Pu, d), (Role::A, against), (Role::B, Operand::zero()), (Role::Pp, none)],
        );
        Ok(())
    }

    fn ballot(&mut self, d: Operand, p: Operand, mask: Operand) {
        if self.is_full(mask) {
            return self.vote_any(d, p);
        }
        let said = self.temp();
        self.vote_any(said, p);
        self.and(d, said, mask);
    }

    fn said_by(&mut self, p: Operand, mask: Operand) -> Operand {
        let said = self.temp();
        self.ballot(said, p, mask);
        said
    }

    /// The lanes that have the same value in a register.
    fn lanes_equal(&mut self, a: Operand) -> Operand {
        let same = self.temp();
        self.put(Op::MATCH, &[MATCH_ANY], &[(Role::D, same), (Role::A, a)]);
        same
    }

    /// `match.sync`: values of 64 bits are equal where both their words are.
    pub fn match_lanes(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let (d, p) = self.dest_and_pred(&inst.operands[0])?;
        let words = self.source_words(&inst.operands[1], ty)?.map(|word| self.in_reg(word));
        let mask = self.member_mask(&inst.operands[2])?;
        let mut same = self.lanes_equal(words[0]);
        if ty.bits() == 64 {
            let (high, both) = (self.lanes_equal(words[1]), self.temp());
            self.and(both, same, high);
            same = both;
        }
        let all = self.temp();
        if inst.mods.match_mode == Some(MatchMode::Any) {
            self.and(d, same, mask);
            return Ok(());
        }
        // All active lanes of the mask have the value, or none is reported.
        let (active, present, equal) = (self.temp(), self.temp(), self.temp_pred());
        self.vote_any(active, Operand::always());
        self.and(present, active, mask);
        self.and(all, same, present);
        self.isetp(equal, &[EQ, AND, U32], all, present);
        self.select(d, present, Operand::zero(), equal);
        if !p.is_null() && p != Operand::zero() {
            self.copy_pred(p, equal);
        }
        Ok(())
    }
}
