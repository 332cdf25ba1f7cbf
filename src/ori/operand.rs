//! The operand: two words, eight bytes.
//!
//! Lower word: bits 0–23 index, 28–30 kind, 31 arithmetic negation. Upper word: other modifiers and
//! the fields of a constant-bank operand. The null operand is all zeros and the only encoding of an
//! absent operand. Bits that a kind does not use are zero, so operands are equal exactly if their
//! words are.

use super::function::{Block, VReg, VecId};
use cranelift_entity::EntityRef;

const INDEX: u32 = 0x00ff_ffff;
const KIND_SHIFT: u32 = 28;
const REG: u32 = 1;
const VECTOR: u32 = 2;
const NEG: u32 = 1 << 31;
const ABS: u32 = 1;
const NOT: u32 = 1 << 1;
const REUSE: u32 = 1 << 2;
const BANK_SHIFT: u32 = 3;
/// Marks a label that is a symbol.
const SYMBOL: u32 = 1 << 8;

/// What an operand refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Null,
    /// One virtual register of any file.
    Reg(VReg),
    /// A register tuple.
    Vector(VecId),
    /// Index into the function's constant pool.
    Imm(u32),
    /// Constant bank and byte offset.
    Const {
        bank: u8,
        offset: u16,
    },
    /// A block.
    Label(Block),
    /// Index into the function's symbols.
    Symbol(u32),
    /// Special register by number.
    Special(u32),
    /// The zero or true register of the role's file: RZ, URZ, PT or UPT.
    Zero,
}

/// One operand of one instruction.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Operand {
    lo: u32,
    hi: u32,
}

// `neg` and `not` are the names of the modifiers, not the operators.
#[allow(clippy::should_implement_trait)]
impl Operand {
    /// The absent operand.
    pub const NULL: Operand = Operand { lo: 0, hi: 0 };

    fn of(kind: u32, index: u32) -> Operand {
        Operand { lo: kind << KIND_SHIFT | index & INDEX, hi: 0 }
    }

    /// A register without modifiers.
    pub fn reg(reg: VReg) -> Operand {
        Operand::of(REG, reg.index() as u32)
    }

    /// A register tuple without modifiers.
    pub fn vector(vector: VecId) -> Operand {
        Operand::of(VECTOR, vector.index() as u32)
    }

    pub(super) fn pooled(index: u32) -> Operand {
        Operand::of(3, index)
    }

    /// A constant-bank operand at a byte offset.
    pub fn constant(bank: u8, offset: u16) -> Operand {
        Operand { lo: 4 << KIND_SHIFT | u32::from(offset), hi: u32::from(bank) << BANK_SHIFT }
    }

    /// A block as a branch target.
    pub fn label(block: Block) -> Operand {
        Operand::of(5, block.index() as u32)
    }

    pub(super) fn symbol(index: u32) -> Operand {
        Operand { lo: Operand::of(5, index).lo, hi: SYMBOL }
    }

    /// A special register, by its number in the encoding.
    pub fn special(number: u32) -> Operand {
        Operand::of(6, number)
    }

    /// RZ, URZ, PT or UPT, depending on the role.
    pub fn zero() -> Operand {
        Operand::of(7, 0)
    }

    /// PT.
    pub fn always() -> Operand {
        Operand::zero()
    }

    /// !PT.
    pub fn never() -> Operand {
        Operand::zero().inverted()
    }

    /// What the operand refers to.
    pub fn kind(self) -> Kind {
        let index = self.lo & INDEX;
        match self.lo >> KIND_SHIFT & 7 {
            0 => Kind::Null,
            REG => Kind::Reg(VReg::from_u32(index)),
            VECTOR => Kind::Vector(VecId::from_u32(index)),
            3 => Kind::Imm(index),
            4 => Kind::Const { bank: (self.hi >> BANK_SHIFT & 31) as u8, offset: index as u16 },
            5 if self.hi & SYMBOL != 0 => Kind::Symbol(index),
            5 => Kind::Label(Block::from_u32(index)),
            6 => Kind::Special(index),
            _ => Kind::Zero,
        }
    }

    /// Whether the operand is absent.
    pub fn is_null(self) -> bool {
        self == Operand::NULL
    }

    /// The register, if the operand is one. A comparison: what every pass asks of every operand is
    /// answered without the jump table of [`Operand::kind`].
    #[inline]
    pub fn as_reg(self) -> Option<VReg> {
        (self.lo >> KIND_SHIFT & 7 == REG).then(|| VReg::from_u32(self.lo & INDEX))
    }

    /// The tuple, if the operand is one.
    #[inline]
    pub fn as_vector(self) -> Option<VecId> {
        (self.lo >> KIND_SHIFT & 7 == VECTOR).then(|| VecId::from_u32(self.lo & INDEX))
    }

    /// Another register with the modifiers of this operand.
    pub fn with_reg(self, reg: VReg) -> Operand {
        Operand { lo: Operand::reg(reg).lo | self.lo & NEG, hi: self.hi }
    }

    /// Another tuple with the modifiers of this operand.
    pub fn with_vector(self, vector: VecId) -> Operand {
        Operand { lo: Operand::vector(vector).lo | self.lo & NEG, hi: self.hi }
    }

    /// Whether it is arithmetically negated.
    pub fn neg(self) -> bool {
        self.lo & NEG != 0
    }
    /// Whether its absolute value is taken.
    pub fn abs(self) -> bool {
        self.hi & ABS != 0
    }
    /// Whether it is complemented.
    pub fn not(self) -> bool {
        self.hi & NOT != 0
    }
    /// Whether it has the reuse flag of the operand cache.
    pub fn reuse(self) -> bool {
        self.hi & REUSE != 0
    }

    /// Toggles arithmetic negation.
    pub fn negated(self) -> Operand {
        Operand { lo: self.lo ^ NEG, hi: self.hi }
    }

    /// Absolute value, which cancels an earlier negation.
    pub fn absolute(self) -> Operand {
        Operand { lo: self.lo & !NEG, hi: self.hi | ABS }
    }

    /// Toggles the complement (`~` of a value, `!` of a predicate).
    pub fn inverted(self) -> Operand {
        Operand { lo: self.lo, hi: self.hi ^ NOT }
    }

    /// The operand without modifiers.
    pub fn plain(self) -> Operand {
        Operand { lo: self.lo & !NEG, hi: self.hi & !(ABS | NOT | REUSE) }
    }

    /// This operand with the modifiers of `other`.
    pub fn modified_like(self, other: Operand) -> Operand {
        Operand { lo: self.lo & !NEG | other.lo & NEG, hi: self.hi & !7 | other.hi & 7 }
    }
}

impl From<VReg> for Operand {
    fn from(reg: VReg) -> Operand {
        Operand::reg(reg)
    }
}

impl std::fmt::Debug for Operand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.neg() { "-" } else { "" };
        let not = if self.not() { "!" } else { "" };
        let abs = if self.abs() { "|" } else { "" };
        write!(f, "{not}{sign}{abs}{:?}{abs}", self.kind())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operand_is_eight_bytes_and_keeps_its_fields() {
        assert_eq!(std::mem::size_of::<Operand>(), 8);
        let c = Operand::constant(3, 0xfffc).negated();
        assert_eq!(c.kind(), Kind::Const { bank: 3, offset: 0xfffc });
        assert!(c.neg() && !c.not());
        assert_eq!(c.negated(), Operand::constant(3, 0xfffc));
        assert!(Operand::never().not());
        assert_eq!(Operand::NULL.kind(), Kind::Null);
    }
}
