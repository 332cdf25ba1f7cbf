//! Translates PTX operands to Ori operands.
//!
//! An operand, read or written at a type, becomes a register, a register pair, an immediate of 32
//! or 64 bits, or RZ. 8- and 16-bit values are in the low bits of a register whose upper bits are
//! undefined; code that depends on the upper bits requests an extension.

use super::builder::{Builder, Lowered, Refusal};
use crate::ori::{Kind, Operand};
use crate::ptx::ast::{self, Constant, OperandKind, Part};
use crate::tables::ptx::ScalarType;
use crate::tables::{Op, Role};

/// How a type is extended to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Signed,
    Unsigned,
    Float,
    Pred,
}

/// Width in bits and class of a type.
pub(super) fn class_of(ty: ScalarType) -> Class {
    match ty {
        ScalarType::S2 | ScalarType::S4 | ScalarType::S8 => Class::Signed,
        ScalarType::S16 | ScalarType::S32 | ScalarType::S64 => Class::Signed,
        ScalarType::F16 | ScalarType::Bf16 | ScalarType::Tf32 | ScalarType::F32 | ScalarType::F64 => Class::Float,
        ScalarType::Pred => Class::Pred,
        _ => Class::Unsigned,
    }
}

pub(super) fn is_signed(ty: ScalarType) -> bool {
    class_of(ty) == Class::Signed
}

/// The bits of a constant under a type; `None` for a float narrower than 32 bits.
pub(super) fn constant_bits(constant: Constant, ty: ScalarType) -> Option<u64> {
    let bits = match (constant, ty.bits()) {
        (Constant::Int { bits, .. }, _) => bits,
        (Constant::F32(bits), 64) => f64::from(f32::from_bits(bits)).to_bits(),
        (Constant::F32(bits), 32) => bits.into(),
        (Constant::F64(bits), 64) => bits,
        (Constant::F64(bits), 32) => (f64::from_bits(bits) as f32).to_bits().into(),
        _ => return None,
    };
    Some(if ty.bits() < 64 { bits & ((1 << ty.bits()) - 1) } else { bits })
}

impl Builder<'_> {
    /// A source: a register, a pair, an immediate of the type's width, or RZ for zero.
    pub fn source(&mut self, operand: &ast::Operand, ty: ScalarType) -> Lowered<Operand> {
        match &operand.kind {
            OperandKind::Register(r) => self.register_part(operand, *r),
            OperandKind::Constant(constant) => self.constant_source(*constant, ty),
            OperandKind::Special(special) => {
                let value = self.special_source(*special)?;
                // `mov.u32` of a 64-bit register takes its low word.
                let wide = ty.bits() <= 32 && matches!(value.kind(), Kind::Vector(_));
                Ok(if wide { self.words(value)[0] } else { value })
            }
            OperandKind::Symbol { symbol, offset, .. } => self.symbol_address(*symbol, *offset, ty.bits() == 64),
            OperandKind::Sink => Ok(Operand::zero()),
            _ => Err(Refusal::NotBuilt),
        }
    }

    /// The value of a register that always has one.
    pub fn known(&self, operand: &ast::Operand) -> Option<u64> {
        match operand.kind {
            OperandKind::Register(used) if !used.not && !used.negate && used.part == ast::Part::Whole => {
                self.known.get(&used.register).copied()
            }
            _ => None,
        }
    }

    fn constant_source(&mut self, constant: Constant, ty: ScalarType) -> Lowered<Operand> {
        let bits = constant_bits(constant, ty).ok_or(Refusal::NotBuilt)?;
        Ok(match (ty, bits) {
            (ScalarType::Pred, 0) => Operand::never(),
            (ScalarType::Pred, _) => Operand::always(),
            (_, 0) => Operand::zero(),
            (_, bits) => self.f.imm(bits),
        })
    }

    fn register_part(&mut self, operand: &ast::Operand, r: ast::RegisterUse) -> Lowered<Operand> {
        let elements = self.register(r.register);
        let element = match r.part {
            Part::Whole if elements.len() == 1 => elements[0],
            Part::Element(i) if usize::from(i) < elements.len() => elements[usize::from(i)],
            _ => return Err(Refusal::NotBuilt),
        };
        match (r.negate, r.not) {
            (true, _) => Err(Refusal::At(operand.pos, "A negated register operand is not implemented".to_string())),
            (_, true) => Ok(element.inverted()),
            _ => Ok(element),
        }
    }

    /// As `source_word`, but in a register, for operands that are read more than once.
    pub fn source_reg(&mut self, operand: &ast::Operand, ty: ScalarType) -> Lowered<Operand> {
        let value = self.source_word(operand, ty)?;
        Ok(self.in_reg(value))
    }

    /// A 64-bit source in a pair.
    pub fn source_pair(&mut self, operand: &ast::Operand, ty: ScalarType) -> Lowered<Operand> {
        let value = self.source(operand, ty)?;
        Ok(self.in_pair(value))
    }

    /// The words of a 64-bit source.
    pub fn source_words(&mut self, operand: &ast::Operand, ty: ScalarType) -> Lowered<[Operand; 2]> {
        let value = self.source(operand, ty)?;
        Ok(self.words(value))
    }

    /// A 32-bit source; for a wider register, its low word.
    pub fn source_word(&mut self, operand: &ast::Operand, ty: ScalarType) -> Lowered<Operand> {
        let value = self.source(operand, ty)?;
        Ok(if matches!(value.kind(), Kind::Vector(_)) { self.words(value)[0] } else { value })
    }

    /// Two sources.
    pub fn sources(&mut self, a: &ast::Operand, b: &ast::Operand, ty: ScalarType) -> Lowered<[Operand; 2]> {
        Ok([self.source(a, ty)?, self.source(b, ty)?])
    }

    /// A source of up to 32 bits, sign- or zero-extended to 32 as its type says.
    pub fn extended(&mut self, operand: &ast::Operand, ty: ScalarType) -> Lowered<Operand> {
        let mut value = self.source(operand, ty)?;
        if ty.bits() < 64 && matches!(value.kind(), Kind::Vector(_)) {
            value = self.words(value)[0];
        }
        Ok(self.extend(value, ty))
    }

    /// Extends the low bits of a value, as many as the type has, to 32.
    pub fn extend(&mut self, value: Operand, ty: ScalarType) -> Operand {
        let bits = ty.bits();
        if bits >= 32 || value.kind() == Kind::Zero {
            return value;
        }
        if let Some(constant) = self.f.imm_value(value) {
            let shifted = (constant as u32) << (32 - bits);
            let extended = if is_signed(ty) { (shifted as i32 >> (32 - bits)) as u32 } else { shifted >> (32 - bits) };
            return self.imm(extended);
        }
        let d = self.temp();
        self.extend_into(d, value, ty);
        d
    }

    /// Writes the extension of a register's low 8 or 16 bits.
    pub fn extend_into(&mut self, d: Operand, a: Operand, ty: ScalarType) {
        let low = if ty.bits() == 8 { 0xff } else { 0xffff };
        if is_signed(ty) {
            // PRMT selector: byte 0 (and 1), then copies of the sign of the highest one.
            let selector = self.imm(if ty.bits() == 8 { 0x8880 } else { 0x9910 });
            self.put(Op::PRMT, &[], &[(Role::D, d), (Role::A, a), (Role::B, selector), (Role::C, Operand::zero())]);
        } else {
            let mask = self.imm(low);
            self.and(d, a, mask);
        }
    }

    /// A destination: a register, a pair, or RZ for a sink.
    pub fn dest(&mut self, operand: &ast::Operand) -> Lowered<Operand> {
        match &operand.kind {
            OperandKind::Register(r) => self.register_part(operand, *r),
            OperandKind::Sink => Ok(Operand::zero()),
            _ => Err(Refusal::NotBuilt),
        }
    }

    /// The words of a 64-bit destination.
    pub fn dest_words(&mut self, operand: &ast::Operand) -> Lowered<[Operand; 2]> {
        let d = self.dest(operand)?;
        Ok(self.words(d))
    }

    /// `d` or `d|p`: the destination and an optional predicate. If both are the same register, the
    /// first result is kept, as in ptxas.
    pub fn dest_and_pred(&mut self, operand: &ast::Operand) -> Lowered<(Operand, Operand)> {
        match &operand.kind {
            OperandKind::Pair(pair) => {
                let (d, p) = (self.dest(&pair.0)?, self.dest(&pair.1)?);
                Ok((d, if d == p { Operand::zero() } else { p }))
            }
            _ => Ok((self.dest(operand)?, Operand::NULL)),
        }
    }
}
