//! PTX special registers: reads each from S2R or CS2R, from a launch constant, or as a constant.
//!
//! `tables/lowering/special.ron` says which, per generation; a special register without a row is
//! refused.

use super::builder::{Builder, Lowered, Refusal};
use crate::arrays::Each;
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::tables::memory::{SpecialFrom, SpecialHome};
use crate::tables::ptx::SpecialRegister;
use crate::tables::{Feature, Op, Role};

/// Byte distance between the cluster launch constants of consecutive values of SR_CgaSize.
const CLUSTER_STRIDE: i32 = -0xa0;

impl Builder<'_> {
    /// The special-register operand of a name in `tables/special_registers.ron`.
    pub fn special_number(&self, name: &str) -> Operand {
        let number = crate::tables::encoding::special_by_name(self.target, name);
        debug_assert!(number.is_some(), "no special register {name}");
        Operand::special(number.unwrap_or(0).into())
    }

    /// The nibble of this processor in a table of the driver: a byte of bank 0 for each pair.
    fn locality_bits(&mut self, sr: &str, at: u32) -> Operand {
        let place = self.numbered(Op::S2R, sr);
        let [index, byte, amount, nibble] = [(); 4].each(|()| self.temp());
        let field = |b: &mut Self, d: Operand, from: u32, mask: u32| {
            let (shifted, from, mask) = (b.temp(), b.imm(from), b.imm(mask));
            b.shf(&SHF_R_U32_HI, shifted, Operand::zero(), from, place);
            b.and(d, shifted, mask);
        };
        field(self, index, 22, 0x7f);
        // Bit 21, as the first bit of a nibble.
        field(self, amount, 19, 4);
        let from = Operand::constant(0, at as u16);
        self.put(Op::LDC, &[SIZE_U8], &[(Role::D, byte), (Role::A, index), (Role::C, from)]);
        self.shf(&SHF_R_U32_HI, nibble, Operand::zero(), amount, byte);
        nibble
    }

    /// The value of a special register in a fresh register, a pair or a predicate.
    pub fn special_source(&mut self, special: SpecialRegister) -> Lowered<Operand> {
        let generation = self.target.generation.ok_or(Refusal::NotBuilt)?;
        let home = SpecialHome::of(special, generation).ok_or(Refusal::NotBuilt)?;
        let read = match home.from {
            SpecialFrom::Value => return Ok(self.imm(home.at)),
            SpecialFrom::S2r => self.numbered(Op::S2R, home.sr),
            SpecialFrom::Cs2r32 => self.numbered(Op::CS2R_32, home.sr),
            SpecialFrom::Cs2r64 => {
                let (d, s) = (self.temp_pair(), self.special_number(home.sr));
                self.put(Op::CS2R_64, &[], &[(Role::D, d), (Role::S, s)]);
                d
            }
            SpecialFrom::Word => self.bank_word(Operand::NULL, home.at),
            SpecialFrom::Pair => {
                let words = [home.at, home.at + 4].each(|at| self.bank_word(Operand::NULL, at));
                self.pair_of(words)
            }
            SpecialFrom::Cga => self.cluster_word(home.at),
            SpecialFrom::Most | SpecialFrom::MostCga => {
                let (one, d) = (self.numbered(Op::S2R, home.sr), self.temp());
                let other = match home.from {
                    SpecialFrom::Most => self.bank_word(Operand::NULL, home.at),
                    _ => self.cluster_word(home.at),
                };
                self.word_min_max(d, one, other, true, false, false);
                d
            }
            SpecialFrom::Less => {
                let (all, less) = (self.numbered(Op::S2R, home.sr), self.bank_word(Operand::NULL, home.at));
                let d = self.temp();
                self.add(d, all, less.negated());
                d
            }
            SpecialFrom::Quotient | SpecialFrom::Remainder => {
                let axis = special.name().rsplit('.').next().unwrap_or_default();
                let along = |name: &str| SpecialRegister::by_name(&format!("{name}.{axis}")).ok_or(Refusal::NotBuilt);
                let block = self.special_source(along("ctaid")?)?;
                let size = self.special_source(along("cluster_nctaid")?)?;
                let op = if home.from == SpecialFrom::Remainder { Op::IREM } else { Op::IDIV };
                let d = self.temp();
                self.put(op, &[U32], &[(Role::D, d), (Role::A, block), (Role::B, size)]);
                d
            }
            SpecialFrom::Nibble if !self.target.has(Feature::LocalityDomains) => return Ok(self.imm(0)),
            SpecialFrom::Nibble => self.locality_bits(home.sr, home.at),
            SpecialFrom::Flag => {
                let (word, p, one) = (self.bank_word(Operand::NULL, home.at), self.temp_pred(), self.imm(1));
                self.isetp(p, &[EQ, AND, U32], word, one);
                return Ok(p);
            }
        };
        if home.mask == 0 {
            return Ok(read);
        }
        let (shifted, d) = (self.temp(), self.temp());
        let (first, mask) = (self.imm(home.shift.into()), self.imm(home.mask));
        self.shf(&SHF_R_U32_HI, shifted, Operand::zero(), first, read);
        self.and(d, shifted, mask);
        Ok(d)
    }

    fn numbered(&mut self, op: Op, name: &str) -> Operand {
        let (d, s) = (self.temp(), self.special_number(name));
        self.put(op, &[], &[(Role::D, d), (Role::S, s)]);
        d
    }

    /// Reads a launch constant that depends on the cluster size.
    fn cluster_word(&mut self, offset: u32) -> Operand {
        let size = self.numbered(Op::CS2R_32, "SR_CgaSize");
        let (at, stride) = (self.temp(), self.imm(CLUSTER_STRIDE as u32));
        self.imad(at, size, stride, Operand::zero());
        self.bank_word(at, offset)
    }

    fn bank_word(&mut self, base: Operand, offset: u32) -> Operand {
        let d = self.temp();
        let from = Operand::constant(0, offset as u16);
        self.put(Op::LDC, &[SIZE_32], &[(Role::D, d), (Role::A, base), (Role::C, from)]);
        d
    }
}
