//! 128-bit registers as operands of narrower types (PTX ISA 9.0, 9.4.1).
//!
//! While such an instruction is lowered, a 64-bit pair replaces each wide register. Afterwards the
//! register receives the pair in its low half; its high half is the sign extension for a signed
//! type, else zero. All other lowering code therefore sees only words and pairs.

use super::load_store::elements;
use crate::lower::builder::{Builder, Lowered};
use crate::lower::operand::is_signed;
use crate::ori::{Kind, Operand};
use crate::ptx::ast::{self, OperandKind, RegId};
use crate::tables::ptx::{ArgType, Role, ScalarType};
use smallvec::SmallVec;

/// A wide register that a pair replaces.
struct Narrowed {
    id: RegId,
    old: SmallVec<[Operand; 1]>,
    pair: Operand,
    /// The type that is written to it, if it is a destination.
    written: Option<ScalarType>,
}

impl Builder<'_> {
    /// Lowers an instruction with a pair in place of each wide register that it uses at a narrower
    /// type.
    pub fn with_narrowed(
        &mut self,
        inst: &ast::Instruction,
        lower: impl FnOnce(&mut Self, &ast::Instruction) -> Lowered,
    ) -> Lowered {
        if !self.has_quads {
            return lower(self, inst);
        }
        let narrowed = self.narrow_registers(inst);
        let result = lower(self, inst);
        for n in narrowed.into_iter().rev() {
            let quad = n.old[0];
            self.replace_register(n.id, n.old);
            if let (Some(ty), Kind::Vector(vector)) = (n.written, quad.kind()) {
                let regs: SmallVec<[Operand; 4]> =
                    self.f.vector_regs(vector).iter().map(|r| Operand::reg(*r)).collect();
                let words = self.words(n.pair);
                self.copy(regs[0], words[0]);
                self.copy(regs[1], words[1]);
                for upper in &regs[2..] {
                    if is_signed(ty) { self.sign_word(*upper, words[1]) } else { self.copy(*upper, Operand::zero()) }
                }
            }
        }
        result
    }

    fn narrow_registers(&mut self, inst: &ast::Instruction) -> Vec<Narrowed> {
        let mut out: Vec<Narrowed> = Vec::new();
        for (arg, operand) in inst.row.form().args.iter().zip(&inst.operands) {
            let written = matches!(arg.role, Role::Wdst | Role::Vdst);
            let ArgType::Suffix(n) = arg.ty else { continue };
            let ty = inst.types[n];
            if !written && !matches!(arg.role, Role::Wsrc | Role::Vsrc) || ty.bits() > 64 {
                continue;
            }
            for part in elements(operand) {
                let OperandKind::Register(used) = &part.kind else { continue };
                let written = written.then_some(ty);
                if let Some(earlier) = out.iter_mut().find(|n| n.id == used.register) {
                    earlier.written = earlier.written.or(written);
                    let (pair, whole) = (earlier.pair, earlier.old[0]);
                    let words = self.words(whole);
                    self.copy_words(pair, words);
                    continue;
                }
                let [quad] = self.register(used.register)[..] else { continue };
                let Kind::Vector(vector) = quad.kind() else { continue };
                if self.f.vector_regs(vector).len() != 4 {
                    continue;
                }
                let words = self.words(quad);
                let pair = if written.is_some() { self.temp_pair() } else { self.pair_of(words) };
                let old = self.replace_register(used.register, SmallVec::from_slice(&[pair]));
                out.push(Narrowed { id: used.register, old, pair, written });
            }
        }
        out
    }
}
