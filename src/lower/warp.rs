//! Warp-level operations: `shfl[.sync] vote[.sync] match.sync activemask redux.sync bar.warp.sync
//! elect.sync`.
//!
//! Emits SHFL, VOTE, MATCH and REDUX, each preceded by a SYNCMASK with the lanes that must be
//! converged. Votes are masked with the member mask, because groups of lanes with different masks
//! may execute together.

use super::builder::{Builder, Lowered, Refusal};
use crate::arrays::Each;
use crate::ori::mods::*;
use crate::ori::{File, Listed, Operand};
use crate::ptx::ast;
use crate::tables::ptx::{AtomOp, MatchMode, ScalarType, ShflMode, VoteMode};
use crate::tables::{Feature, Op, Role};

const ALL_LANES: u64 = 0xffff_ffff;
/// Number of the uniform register that receives the result of a reduction for the next instruction.
/// No other lanes of the warp execute between the two, whichever branch they are in. Source: ptxas
/// uses one so for a partial mask in a divergent branch.
const REDUCED: u16 = 8;

impl Builder<'_> {
    /// Reads a member mask and emits a SYNCMASK. OriDoSyncronization later turns it into WARPSYNC,
    /// or into nothing if the lanes are converged anyway.
    fn member_mask(&mut self, operand: &ast::Operand) -> Lowered<Operand> {
        let mask = match self.known(operand) {
            Some(mask) => self.imm(mask as u32),
            None => self.source(operand, ScalarType::B32)?,
        };
        self.put(Op::SYNCMASK, &[], &[(Role::A, mask)]);
        Ok(mask)
    }

    /// A warp-wide operation that the program has.
    fn put_own(&mut self, op: Op, mods: &[M], args: &[(Role, Operand)]) {
        let inst = self.put(op, mods, args);
        self.f[inst].listed = Listed::Program;
    }

    fn is_full(&self, mask: Operand) -> bool {
        self.constant(mask) == Some(ALL_LANES)
    }

    /// `bar.warp.sync`: synchronizes the lanes and orders their memory accesses, which no other
    /// operation with a member mask does.
    pub fn warp_barrier(&mut self, inst: &ast::Instruction) -> Lowered {
        let mask = self.source(&inst.operands[0], ScalarType::B32)?;
        let barrier = self.put(Op::SYNCMASK, &[], &[(Role::A, mask)]);
        self.f[barrier].ordered = true;
        Ok(())
    }

    /// `shfl.sync`
    pub fn shuffle(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = ScalarType::B32;
        let (d, p) = self.dest_and_pred(&inst.operands[0])?;
        let a = self.source_reg(&inst.operands[1], ty)?;
        let (b, c) = (self.lane_operand(&inst.operands[2], 5)?, self.lane_operand(&inst.operands[3], 13)?);
        // Without `.sync` there is no mask: the active lanes take part.
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
        self.put_own(Op::SHFL, &[mode], &[(Role::Pu, p), (Role::D, d), (Role::A, a), (Role::B, b), (Role::C, c)]);
        Ok(())
    }

    /// A lane or clamp operand: an immediate is truncated to its field, and zero stays an
    /// immediate.
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
        self.ask_any(d, Operand::always());
        Ok(())
    }

    /// A vote of the program's.
    fn ask_any(&mut self, d: Operand, p: Operand) {
        self.put_own(Op::VOTE, &[VOTE_ANY], &[(Role::D, d), (Role::Pp, p)]);
    }

    pub fn vote_any(&mut self, d: Operand, p: Operand) {
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
            self.put_own(Op::VOTE, &[vote], &[(Role::Pu, d), (Role::Pp, p)]);
            return Ok(());
        }
        if mode == VoteMode::Any {
            let said = self.said_by(p, mask);
            self.isetp(d, &[NE, AND, U32], said, Operand::zero());
            return Ok(());
        }
        // All: no lane of the mask votes against.
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
            return self.ask_any(d, p);
        }
        let said = self.temp();
        self.ask_any(said, p);
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
        self.put_own(Op::MATCH, &[MATCH_ANY], &[(Role::D, same), (Role::A, a)]);
        same
    }

    /// `match.sync`: values of 64 bits are equal where both their words are.
    pub fn match_lanes(&mut self, inst: &ast::Instruction) -> Lowered {
        let ty = inst.types[0];
        let (d, p) = self.dest_and_pred(&inst.operands[0])?;
        let words = self.source_words(&inst.operands[1], ty)?.each(|word| self.in_reg(word));
        let mask = self.member_mask(&inst.operands[2])?;
        let all = inst.mods.match_mode != Some(MatchMode::Any);
        if all && self.is_full(mask) {
            self.match_all(d, p, &words[..(ty.bits() / 32) as usize]);
            return Ok(());
        }
        let mut same = self.lanes_equal(words[0]);
        if ty.bits() == 64 {
            let (high, both) = (self.lanes_equal(words[1]), self.temp());
            self.and(both, same, high);
            same = both;
        }
        if !all {
            self.and(d, same, mask);
            return Ok(());
        }
        let all = self.temp();
        // Report the value only if all active lanes of the mask have it.
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

    /// The active lanes, and whether there are any, if they all have the same words; none
    /// otherwise.
    fn match_all(&mut self, d: Operand, p: Operand, words: &[Operand]) {
        let asks = !p.is_null() && p != Operand::zero();
        let one = |b: &mut Self, d: Operand, p: Operand, word: Operand| {
            b.put_own(Op::MATCH, &[], &[(Role::Pu, p), (Role::D, d), (Role::A, word)]);
        };
        if let [word] = words {
            return one(self, d, if asks { p } else { Operand::NULL }, *word);
        }
        let [low, high] = [words[0], words[1]].each(|word| {
            let same = self.temp();
            one(self, same, Operand::NULL, word);
            same
        });
        let both = self.temp();
        self.and(both, low, high);
        if asks {
            self.isetp(p, &[NE, AND, U32], both, Operand::zero());
        }
        self.copy(d, both);
    }

    /// `redux.sync`
    pub fn reduce_lanes(&mut self, inst: &ast::Instruction) -> Lowered {
        let (op, ty) = (inst.mods.atom_op.ok_or(Refusal::NotBuilt)?, inst.types[0]);
        let d = self.dest(&inst.operands[0])?;
        let a = self.source_reg(&inst.operands[1], ty)?;
        let mask = self.member_mask(&inst.operands[2])?;
        let extreme = matches!(op, AtomOp::Min | AtomOp::Max);
        let mut mods: Vec<M> = match (op, inst.mods.abs) {
            (AtomOp::Add, _) => vec![REDUX_SUM],
            (AtomOp::And, _) => vec![REDUX_AND],
            (AtomOp::Or, _) => vec![REDUX_OR],
            (AtomOp::Xor, _) => vec![REDUX_XOR],
            (AtomOp::Min, false) => vec![REDUX_MIN],
            (AtomOp::Max, false) => vec![REDUX_MAX],
            (AtomOp::Min, true) => vec![REDUX_MIN_ABS],
            (AtomOp::Max, true) => vec![REDUX_MAX_ABS],
            _ => return Err(Refusal::NotBuilt),
        };
        match ty {
            ScalarType::F32 => mods.push(REDUX_F32),
            ScalarType::S32 if extreme => mods.push(REDUX_S32),
            _ => {}
        }
        mods.extend(inst.mods.nan.then_some(REDUX_NAN));
        let opcode = if extreme && self.has(Feature::Credux) { Op::CREDUX } else { Op::REDUX };
        if ty == ScalarType::F32 && opcode == Op::REDUX {
            return Err(Refusal::NotBuilt);
        }
        if self.constant(mask).is_some() {
            self.reduce_active(opcode, &mods, d, a);
        } else {
            self.reduce_by_mask(opcode, &mods, d, a, mask);
        }
        Ok(())
    }

    /// A reduction over the active lanes.
    fn reduce_active(&mut self, opcode: Op, mods: &[M], d: Operand, a: Operand) {
        let reduced = self.f.new_reg(File::UR);
        self.f[reduced].phys = Some(REDUCED);
        self.put_own(opcode, mods, &[(Role::D, Operand::reg(reduced)), (Role::A, a)]);
        self.put(Op::MOV, &[], &[(Role::D, d), (Role::A, Operand::reg(reduced))]);
    }

    /// A reduction over a mask that may differ between lanes: those with the mask of the lowest
    /// lane go first, the others come again.
    fn reduce_by_mask(&mut self, opcode: Op, mods: &[M], d: Operand, a: Operand, mask: Operand) {
        let [again, own, turned, done] = [(); 4].each(|()| self.f.new_block());
        let guard = self.skip_unless_guarded(done);
        let mask = self.in_reg(mask);
        self.enter(again);
        let [active, lowest] = [(); 2].each(|()| self.temp());
        self.vote_any(active, Operand::always());
        let (lane, clamp) = (self.lowest_lane(active), self.literal(31));
        self.put(Op::SHFL, &[SHFL_IDX], &[(Role::D, lowest), (Role::A, mask), (Role::B, lane), (Role::C, clamp)]);
        let other = self.temp_pred();
        self.isetp(other, &[NE, AND, U32], lowest, mask);
        self.branch_if(other, turned, own);
        self.put(Op::SYNCMASK, &[], &[(Role::A, mask)]);
        self.reduce_active(opcode, mods, d, a);
        self.enter(turned);
        self.branch_if(other, again, done);
        self.guard = guard;
    }

    /// Number of the lowest lane of a mask.
    pub fn lowest_lane(&mut self, mask: Operand) -> Operand {
        let (turned, lane) = (self.temp(), self.temp());
        self.unary(Op::BREV, &[], turned, mask);
        self.unary(Op::FLO, &[U32, FLO_SH], lane, turned);
        lane
    }

    /// `elect.sync`: the lowest active lane of the mask.
    pub fn elect(&mut self, inst: &ast::Instruction) -> Lowered {
        let (d, p) = self.dest_and_pred(&inst.operands[0])?;
        let mask = self.member_mask(&inst.operands[1])?;
        if self.is_full(mask) {
            if d == Operand::zero() {
                self.put(Op::ELECT, &[], &[(Role::Pu, p)]);
                return Ok(());
            }
            let lane = self.f.new_reg(File::UR);
            self.f[lane].phys = Some(REDUCED);
            self.put(Op::ELECT, &[], &[(Role::Pu, p), (Role::D, Operand::reg(lane))]);
            self.put(Op::MOV, &[], &[(Role::D, d), (Role::A, Operand::reg(lane))]);
            return Ok(());
        }
        let [active, present, own] = [(); 3].each(|()| self.temp());
        self.vote_any(active, Operand::always());
        self.and(present, active, mask);
        let lane = self.lowest_lane(present);
        let number = self.special_number("SR_LANEID");
        self.put(Op::S2R, &[], &[(Role::D, own), (Role::S, number)]);
        self.isetp(p, &[EQ, AND, U32], own, lane);
        if d != Operand::zero() {
            self.copy(d, lane);
        }
        Ok(())
    }
}
