//! Lowers `wgmma` to WARPGROUP and GMMA.
//!
//! A commit is a GMMA without a product that closes the group; `group::stages` folds it into the
//! product before it. The accumulator is named by the registers that hold the PTX registers, so
//! that nothing moves it. Descriptors are read from the lanes into four uniform registers, those of
//! B last.

use super::builder::{Builder, Lowered, Refusal};
use crate::arrays::Each;
use crate::ori::mods::*;
use crate::ori::{File, Operand, VReg};
use crate::ptx::ast;
use crate::sorted::SortedSet;
use crate::tables::ptx::{Op as PtxOp, ScalarType};
use crate::tables::{Mod, Op, Role, value};

/// Groups that WARPGROUP.DEPBAR can leave under way.
const MAX_GROUPS: u64 = 7;
const NEGATIVE_A: M = (Mod::GnegA, value::gneg_a::NEGA);
/// Registers of a first factor that lies in registers.
const FACTOR: usize = 4;

/// The value of a modifier by its text.
pub fn named(kind: Mod, text: &str) -> Option<M> {
    (0..u8::MAX).take_while(|value| kind.text(*value) != "?").find(|v| kind.text(*v) == text).map(|v| (kind, v))
}

/// The registers of words, where all are registers and none stands there twice.
fn distinct(words: &[Operand]) -> Option<Vec<VReg>> {
    let regs: Vec<VReg> = words.iter().map(|word| word.as_reg()).collect::<Option<_>>()?;
    let different = regs.iter().collect::<SortedSet<_>>().len() == regs.len();
    different.then_some(regs)
}

impl Builder<'_> {
    /// All lanes of the warp are together from here on in the block, as `.sync.aligned` says.
    pub fn together(&mut self) {
        let here = self.f[self.block].iter();
        if here.clone().any(|inst| self.f[*inst].op == Op::SYNCMASK && self.f[*inst].guard.is_null()) {
            return;
        }
        self.all_lanes();
    }

    /// `wgmma.fence`
    pub fn group_fence(&mut self) -> Lowered {
        if self.guard.is_null() {
            self.together();
        }
        self.put(Op::WARPGROUP, &[], &[]);
        Ok(())
    }

    /// `wgmma.commit_group`
    pub fn close_products(&mut self) -> Lowered {
        let zero = Operand::zero();
        let args = [(Role::D, zero), (Role::Ub, zero), (Role::C, zero), (Role::Pp, Operand::never())];
        self.put(Op::GMMA, &[(Mod::Gsb, value::gsb::GSB0)], &args);
        Ok(())
    }

    /// `wgmma.wait_group`
    pub fn wait_products(&mut self, inst: &ast::Instruction) -> Lowered {
        let left = self.constant_operand(&inst.operands[0])?.min(MAX_GROUPS);
        let left = self.literal(left as i64);
        self.put(Op::WARPGROUP, &[], &[(Role::A, left)]);
        Ok(())
    }

    /// `wgmma.mma_async`, dense or sparse; where it has a guard, the lanes that it excludes go
    /// round it.
    pub fn group_product(&mut self, inst: &ast::Instruction) -> Lowered {
        if self.guard.is_null() {
            return self.unguarded_product(inst);
        }
        let done = self.f.new_block();
        let guard = self.skip_unless_guarded(done);
        self.unguarded_product(inst)?;
        self.enter(done);
        self.guard = guard;
        Ok(())
    }

    fn unguarded_product(&mut self, inst: &ast::Instruction) -> Lowered {
        self.together();
        let sparse = inst.op == PtxOp::WgmmaMmaAsyncSp;
        let operands = &inst.operands;
        let d = self.fragment_words(&operands[0], ScalarType::B32)?;
        let in_registers = inst.row.form().args[1].count != 0;
        let a = if in_registers { self.fragment_words(&operands[1], ScalarType::B32)? } else { Vec::new() };
        let first = if in_registers { None } else { Some(self.source_words(&operands[1], ScalarType::B64)?) };
        let second = self.source_words(&operands[2], ScalarType::B64)?;
        let (mut args, mut at) = (Vec::new(), 3);
        if sparse {
            let metadata = self.source_reg(&operands[3], ScalarType::B32)?;
            args.push((Role::E, metadata));
            if inst.types[1].bits() != 8 {
                let selector = self.constant_operand(&operands[4])?;
                args.push((Role::Id, self.literal(selector as i64)));
            }
            at = 5;
        }
        let scale = self.source(&operands[at], ScalarType::Pred)?;
        let mods = self.product_mods(inst, &operands[at + 1..], in_registers)?;
        let ub = self.descriptors(first, second);
        let (sum, copied) = self.sum_of(&d);
        let enabled = self.uniform_predicate(scale);
        let c = if enabled == Operand::never() { Operand::zero() } else { sum };
        args.extend([(Role::D, sum), (Role::Ub, ub), (Role::C, c), (Role::Pp, enabled)]);
        if in_registers {
            let a = match distinct(&a) {
                Some(regs) => self.f.vector(&regs),
                None => self.fragment_of(&a, FACTOR).as_vector().ok_or(Refusal::NotBuilt)?,
            };
            let a = Operand::vector(a);
            args.push((Role::A, if mods.contains(&NEGATIVE_A) { a.negated() } else { a }));
        }
        // In registers the first factor has a sign of its own.
        let mods: Vec<M> = mods.into_iter().filter(|m| !in_registers || *m != NEGATIVE_A).collect();
        self.put(Op::GMMA, &mods, &args);
        copied.into_iter().zip(d).for_each(|(from, to)| self.copy(to, from));
        Ok(())
    }

    /// Kind, shape, types and signs. `rest` are the constants behind `scale-d`.
    fn product_mods(&self, inst: &ast::Instruction, rest: &[ast::Operand], in_registers: bool) -> Lowered<Vec<M>> {
        let (columns, depth) = inst.mods.group_shape().ok_or(Refusal::NotBuilt)?;
        let upper = |ty: ScalarType| ty.name().to_uppercase();
        let [sum, a, b] = [inst.types[0], inst.types[1], inst.types[2]];
        let half = matches!(a, ScalarType::F16 | ScalarType::Bf16 | ScalarType::Tf32);
        let mut words = vec![(Mod::GmmaShape, format!("64x{columns}x{depth}"))];
        if inst.op == PtxOp::WgmmaMmaAsyncSp {
            words.push((Mod::GmmaSp, "SP".into()));
        }
        match a {
            ScalarType::S8 | ScalarType::U8 => {
                words.extend([(Mod::GmmaKind, "I".into()), (Mod::Gsa, upper(a)), (Mod::GsbType, upper(b))]);
                words.extend(inst.mods.saturate_finite.then(|| (Mod::GmmaSat, "SAT".into())));
            }
            ScalarType::B1 => words.extend([(Mod::GmmaKind, "B".into()), (Mod::GmmaBop, "AND".into())]),
            _ if half => {
                words.push((Mod::GmmaAcc, upper(sum)));
                words.extend((a != ScalarType::F16).then(|| (Mod::GmmaType, upper(a))));
            }
            _ => {
                words.extend([(Mod::GmmaKind, "Q".into()), (Mod::GmmaAcc, upper(sum))]);
                words.extend([(Mod::Gqa, upper(a)), (Mod::Gqb, upper(b))]);
            }
        }
        let mut mods = Vec::new();
        for (kind, text) in words {
            mods.push(named(kind, &text).ok_or(Refusal::NotBuilt)?);
        }
        if a == ScalarType::B1 {
            mods.push((Mod::Popc, value::popc::POPC));
        }
        let given = |at: usize| rest.get(at).map_or(Ok(0), |operand| self.constant_operand(operand));
        let negative = |value: u64| value as i64 == -1 || value as u32 == u32::MAX;
        if negative(given(0)?) {
            mods.push(NEGATIVE_A);
        }
        if negative(given(1)?) {
            mods.push((Mod::GnegB, value::gneg_b::NEGB));
        }
        let (turn_a, turn_b) = if in_registers { (0, given(2)?) } else { (given(2)?, given(3)?) };
        if turn_a == 1 {
            mods.push((Mod::TnspA, value::tnsp_a::TNSPA));
        }
        if turn_b == 1 {
            mods.push((Mod::TnspB, value::tnsp_b::TNSPB));
        }
        Ok(mods)
    }

    /// Four uniform registers: the descriptor of the first factor, or nothing, and that of the
    /// second.
    fn descriptors(&mut self, first: Option<[Operand; 2]>, second: [Operand; 2]) -> Operand {
        let vector = self.f.new_vector(File::UR, 4);
        let regs = self.f.vector_regs(vector).to_vec();
        let words = first.map_or([None; 2], |words| words.each(Some)).into_iter().chain(second.each(Some));
        for (reg, word) in regs.into_iter().zip(words) {
            let d = (Role::D, Operand::reg(reg));
            match word {
                Some(word) => {
                    let word = self.in_reg(word);
                    self.put(Op::R2UR, &[], &[d, (Role::A, word)])
                }
                None => self.put(Op::UNDEF, &[], &[d]),
            };
        }
        Operand::vector(vector)
    }

    /// The registers of a sum as a vector. Where one stands there twice, fresh ones, which are to
    /// be copied back.
    fn sum_of(&mut self, words: &[Operand]) -> (Operand, Vec<Operand>) {
        match distinct(words) {
            Some(regs) => (Operand::vector(self.f.vector(&regs)), Vec::new()),
            None => {
                let (sum, fresh) = self.temp_vector(words.len());
                fresh.iter().zip(words).for_each(|(to, from)| self.copy(*to, *from));
                (sum, fresh)
            }
        }
    }

    /// A predicate that all lanes agree on, in the uniform file.
    pub fn uniform_predicate(&mut self, operand: Operand) -> Operand {
        if operand == Operand::always() || operand == Operand::never() {
            return operand;
        }
        let uniform = Operand::reg(self.f.new_reg(File::UP));
        self.put(Op::VOTEU, &[VOTE_ANY], &[(Role::Pu, uniform), (Role::Pp, operand)]);
        uniform
    }
}
