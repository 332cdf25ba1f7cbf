//! Bits of words that are always clear, from the constants and the widths that made them.

use crate::analysis::bit_flow::{CHOICE, bytes, lut};
use crate::analysis::def_use::is_pure;
use crate::arrays::Each;
use crate::ori::mods::U32;
use crate::ori::{File, Function, InstId, Operand, VReg, table};
use crate::tables::{Mod, Op, Prop, Role, value};
use cranelift_entity::SecondaryMap;

/// The bits of a word that are clear, and those that are set, whenever it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    pub zeros: u32,
    ones: u32,
}

impl Bits {
    fn constant(value: u32) -> Bits {
        Bits { zeros: !value, ones: value }
    }

    /// The most that the word can be.
    fn most(self) -> u64 {
        u64::from(!self.zeros)
    }

    /// A word of which no more is known than how large it can be.
    fn at_most(most: u64) -> Bits {
        let zeros = u32::try_from(most).map_or(0, |most| u32::MAX.checked_shl(32 - most.leading_zeros()).unwrap_or(0));
        Bits { zeros, ones: 0 }
    }

    /// The word, if all bits are known.
    pub fn value(self) -> Option<u32> {
        (self.zeros == !self.ones).then_some(self.ones)
    }

    /// What holds of both words.
    fn or(self, other: Bits) -> Bits {
        Bits { zeros: self.zeros & other.zeros, ones: self.ones & other.ones }
    }
}

/// What is known of each register.
pub struct Known(SecondaryMap<VReg, Bits>);

impl Known {
    /// One walk over the instructions in reverse postorder: what goes round a loop is not known.
    pub fn new(function: &Function, insts: &[InstId]) -> Known {
        let mut known = Known(table(function.regs().len()));
        for inst in insts {
            let Some(reg) = function.arg(*inst, Role::D).as_reg() else { continue };
            let general = function[reg].file == File::R && function[reg].phys.is_none();
            if let Some(bits) = known.result(function, *inst).filter(|_| general) {
                known.0[reg] = bits;
            }
        }
        known
    }

    pub fn of(&self, reg: VReg) -> Bits {
        self.0[reg]
    }

    fn operand(&self, function: &Function, operand: Operand) -> Bits {
        match (function.word_value(operand), operand.as_reg()) {
            (Some(value), _) => Bits::constant(value),
            (None, Some(reg)) if operand == operand.plain() => self.0[reg],
            _ => Bits::default(),
        }
    }

    /// How many of the lowest bits of an operand, or of what it negates, are clear.
    fn low_zeros(&self, function: &Function, operand: Operand) -> u32 {
        let plain = operand.plain();
        let known = if operand == plain.negated() { plain } else { operand };
        self.operand(function, known).zeros.trailing_ones()
    }

    fn result(&self, function: &Function, inst: InstId) -> Option<Bits> {
        let data = &function[inst];
        if !data.guard.is_null() {
            return None;
        }
        let arg = |role| self.operand(function, function.arg(inst, role));
        if let Some(most) = loaded(function, inst) {
            return Some(Bits::at_most(most));
        }
        if !is_pure(function, inst) {
            return None;
        }
        match data.op {
            op if op.has(Prop::Copies) && function.arg(inst, Role::Lanes).is_null() => Some(arg(Role::A)),
            Op::SEL => Some(arg(Role::A).or(arg(Role::B))),
            Op::LOP3 => self.logic(function, inst),
            Op::PRMT => self.permuted(function, inst),
            Op::SHF => self.shifted(function, inst),
            Op::SGXT if data.mods.get(U32.0) == U32.1 => {
                let width = function.word_value(function.arg(inst, Role::B)).unwrap_or(u32::BITS);
                let wide = u32::MAX.checked_shl(width).unwrap_or(0);
                Some(Bits { zeros: arg(Role::A).zeros | wide, ones: arg(Role::A).ones & !wide })
            }
            Op::IADD3 if data.mods.get(Mod::X) != value::x::X => {
                let most = Bits::at_most(arg(Role::A).most() + arg(Role::B).most() + arg(Role::C).most());
                let low = [Role::A, Role::B, Role::C].each(|role| self.low_zeros(function, function.arg(inst, role)));
                let low = low.into_iter().min().unwrap_or(0);
                Some(Bits { zeros: most.zeros | !u32::MAX.checked_shl(low).unwrap_or(0), ones: 0 })
            }
            Op::POPC => Some(Bits::at_most(u32::BITS.into())),
            _ => None,
        }
    }

    fn logic(&self, function: &Function, inst: InstId) -> Option<Bits> {
        let table = lut(function, inst)?;
        let inputs = [Role::A, Role::B, Role::C].each(|role| self.operand(function, function.arg(inst, role)));
        let mut bits = Bits { zeros: u32::MAX, ones: u32::MAX };
        for row in 0..8u32 {
            let impossible = inputs
                .iter()
                .enumerate()
                .fold(0, |out, (at, input)| out | if row >> (2 - at) & 1 == 1 { input.zeros } else { input.ones });
            let result = if table >> row & 1 == 1 { &mut bits.zeros } else { &mut bits.ones };
            *result &= impossible;
        }
        // Where no row is possible nothing is said.
        let both = bits.zeros & bits.ones;
        Some(Bits { zeros: bits.zeros & !both, ones: bits.ones & !both })
    }

    fn permuted(&self, function: &Function, inst: InstId) -> Option<Bits> {
        let inputs = [Role::A, Role::C].each(|role| self.operand(function, function.arg(inst, role)));
        let mut bits = Bits::default();
        for (at, choice) in bytes(function, inst)?.into_iter().enumerate() {
            let input = inputs[(choice % CHOICE / 4) as usize];
            let byte = |word: u32| {
                let byte = word >> (8 * (choice % 4)) & 0xff;
                if choice < CHOICE { byte } else { (byte >> 7) * 0xff }
            };
            bits.zeros |= byte(input.zeros) << (8 * at);
            bits.ones |= byte(input.ones) << (8 * at);
        }
        Some(bits)
    }

    /// Shifts of words by a constant that fill with zeros.
    fn shifted(&self, function: &Function, inst: InstId) -> Option<Bits> {
        let data = &function[inst];
        let count = function.word_value(function.arg(inst, Role::B)).filter(|count| *count < u32::BITS)?;
        let arg = |role| self.operand(function, function.arg(inst, role));
        let (left, high) = (data.mods.get(Mod::Dir) == value::dir::L, data.mods.get(Mod::Hi) != 0);
        let filled = !(u32::MAX << count);
        match (left, high, data.mods.get(Mod::Itype)) {
            (true, false, _) => {
                let a = arg(Role::A);
                Some(Bits { zeros: a.zeros << count | filled, ones: a.ones << count })
            }
            (false, true, value::itype::U32) => {
                let c = arg(Role::C);
                let filled = filled.rotate_right(count);
                Some(Bits { zeros: c.zeros >> count | filled, ones: c.ones >> count })
            }
            _ => None,
        }
    }
}

/// The most that a load of bytes or halves gives.
fn loaded(function: &Function, inst: InstId) -> Option<u64> {
    let data = &function[inst];
    let reads = data.op.has(Prop::OnePlace) && data.op.has(Prop::ReadsMemory);
    if !reads && data.op != Op::LDC {
        return None;
    }
    match data.mods.get(Mod::Size) {
        value::size::U8 => Some(u8::MAX.into()),
        value::size::U16 => Some(u16::MAX.into()),
        _ => None,
    }
}
