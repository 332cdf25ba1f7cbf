//! Values of pure instructions with constant sources. Sums, products and logic of words, which
//! have rules for partly constant sources too, are folded in `combine`.

use crate::analysis::def_use::DefUse;
use crate::ori::commute::{holds, holds_of_words};
use crate::ori::operand::Kind;
use crate::ori::{Function, InstId, Operand, VReg};
use crate::tables::{Mod, Op, Role, value};
use std::cmp::Ordering;

/// The result of an instruction.
pub enum Value {
    /// That of an operand.
    Same(Operand),
    Word(u32),
    /// Of a pair of registers.
    Pair([VReg; 2], u64),
    /// Of a predicate.
    Truth(VReg, bool),
}

/// An instruction and what is known of registers.
struct Sources<'a> {
    function: &'a Function,
    def_use: &'a DefUse,
    truth: &'a dyn Fn(Operand) -> Option<bool>,
    inst: InstId,
}

/// The value of a pure instruction; `None` if it is not known before the kernel runs.
pub fn of(
    function: &Function,
    def_use: &DefUse,
    truth: &dyn Fn(Operand) -> Option<bool>,
    inst: InstId,
) -> Option<Value> {
    let from = Sources { function, def_use, truth, inst };
    match function[inst].op {
        Op::SEL => from.select(),
        Op::ISETP => from.compare_words(),
        Op::FSETP => from.compare(&[Mod::Cmp, Mod::Bool, Mod::Ftz], |role| from.float(role).map(f64::from)),
        Op::DSETP => from.compare(&[Mod::Cmp, Mod::Bool], |role| from.double(role)),
        Op::IMAD_WIDE => from.wide_product(),
        Op::I2F | Op::I2F_X | Op::I2FP => from.to_float(),
        Op::F2I | Op::F2I_X => from.to_integer(),
        Op::F2F_X => from.between_floats(),
        Op::FADD | Op::FMUL | Op::FFMA => from.float_sum(),
        Op::DADD | Op::DMUL | Op::DFMA => from.double_sum(),
        _ => None,
    }
}

impl Sources<'_> {
    fn arg(&self, role: Role) -> Operand {
        self.function.arg(self.inst, role)
    }

    fn modifier(&self, kind: Mod) -> u8 {
        self.function[self.inst].mods.get(kind)
    }

    /// Whether no other modifier than these is set.
    fn only(&self, kinds: &[Mod]) -> Option<()> {
        let mods = &self.function[self.inst].mods;
        mods.iter().all(|(kind, value)| value == 0 || kinds.contains(&kind)).then_some(())
    }

    /// The bits of a word.
    fn word(&self, role: Role) -> Option<u32> {
        self.def_use.known(self.function, self.arg(role))
    }

    /// The bits of a pair of registers.
    fn pair(&self, operand: Operand) -> Option<u64> {
        match operand.kind() {
            Kind::Zero => Some(0),
            Kind::Vector(vector) => match *self.function.vector_regs(vector) {
                [low, high] => {
                    let word = |reg| self.def_use.constant(self.function, reg).map(u64::from);
                    Some(word(low)? | word(high)? << 32)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// A source in f32 that is not a subnormal number, nor NaN.
    fn float(&self, role: Role) -> Option<f32> {
        let operand = self.arg(role);
        let bits = f32::from_bits(self.def_use.known(self.function, operand.plain())?);
        if operand.not() {
            return None;
        }
        let bits = if operand.abs() { bits.abs() } else { bits };
        ordinary(if operand.neg() { -bits } else { bits })
    }

    /// A source in f64 that is not NaN.
    fn double(&self, role: Role) -> Option<f64> {
        let operand = self.arg(role);
        let bits = match operand.kind() {
            Kind::Imm(_) => self.function.imm_value(operand)?,
            _ => self.pair(operand)?,
        };
        let number = f64::from_bits(bits);
        if operand.not() || number.is_nan() {
            return None;
        }
        let number = if operand.abs() { number.abs() } else { number };
        Some(if operand.neg() { -number } else { number })
    }

    fn result(&self, bits: u64) -> Option<Value> {
        match self.arg(Role::D).kind() {
            Kind::Reg(_) => Some(Value::Word(bits as u32)),
            Kind::Vector(vector) => match *self.function.vector_regs(vector) {
                [low, high] => Some(Value::Pair([low, high], bits)),
                _ => None,
            },
            _ => None,
        }
    }

    fn select(&self) -> Option<Value> {
        self.only(&[])?;
        let source = self.arg(if (self.truth)(self.arg(Role::Pp))? { Role::A } else { Role::B });
        let whole = source == source.plain() && matches!(source.kind(), Kind::Reg(_) | Kind::Imm(_) | Kind::Zero);
        whole.then_some(Value::Same(source))
    }

    /// The result of a comparison, combined with its predicate.
    fn condition(&self, holds: bool) -> Option<Value> {
        let pp = self.arg(Role::Pp);
        let other = if pp.is_null() { true } else { (self.truth)(pp)? };
        let result = match self.modifier(Mod::Bool) {
            value::bool::AND => holds && other,
            value::bool::OR => holds || other,
            value::bool::XOR => holds != other,
            _ => return None,
        };
        let reg = self.arg(Role::Pu).as_reg().filter(|_| self.arg(Role::Pv).is_null())?;
        Some(Value::Truth(reg, result))
    }

    fn compare_words(&self) -> Option<Value> {
        self.only(&[Mod::Cmp, Mod::Bool, Mod::Sign])?;
        let (a, b) = (self.word(Role::A)?, self.word(Role::B)?);
        self.condition(holds_of_words(&self.function[self.inst].mods, a, b)?)
    }

    fn compare(&self, kinds: &[Mod], source: impl Fn(Role) -> Option<f64>) -> Option<Value> {
        self.only(kinds)?;
        let order = source(Role::A)?.partial_cmp(&source(Role::B)?)?;
        self.condition(holds_of_numbers(self.modifier(Mod::Cmp), order)?)
    }

    fn wide_product(&self) -> Option<Value> {
        self.only(&[Mod::Sign])?;
        let (a, b) = (self.word(Role::A)?, self.word(Role::B)?);
        let c = self.arg(Role::C);
        let addend = self.pair(c).filter(|_| c == c.plain())?;
        let product = match self.modifier(Mod::Sign) {
            value::sign::U32 => u64::from(a) * u64::from(b),
            _ => (i64::from(a as i32) * i64::from(b as i32)) as u64,
        };
        self.result(product.wrapping_add(addend))
    }

    fn to_float(&self) -> Option<Value> {
        self.only(&[Mod::Dst, Mod::Src])?;
        let a = self.arg(Role::A);
        let word = || self.word(Role::A);
        let pair = || self.pair(a).filter(|_| a == a.plain());
        let number = match self.modifier(Mod::Src) {
            value::src::NONE => i128::from(word()? as i32),
            value::src::U32 => i128::from(word()?),
            value::src::U64 => i128::from(pair()?),
            value::src::S64 => i128::from(pair()? as i64),
            _ => return None,
        };
        // From an integer, `as` rounds to nearest, ties to even.
        match self.modifier(Mod::Dst) {
            value::dst::NONE => self.result((number as f32).to_bits().into()),
            value::dst::F64 => self.result((number as f64).to_bits()),
            _ => None,
        }
    }

    fn to_integer(&self) -> Option<Value> {
        self.only(&[Mod::Dst, Mod::Src, Mod::Round, Mod::Ntz, Mod::Ftz])?;
        let number = match self.modifier(Mod::Src) {
            value::src::NONE => f64::from(self.float(Role::A)?),
            value::src::F64 => self.double(Role::A)?,
            _ => return None,
        };
        let whole = match self.modifier(Mod::Round) {
            value::round::NONE => number.round_ties_even(),
            value::round::FLOOR => number.floor(),
            value::round::CEIL => number.ceil(),
            value::round::TRUNC => number.trunc(),
            _ => return None,
        };
        // What is out of range is left to the GPU.
        let (least, most) = match self.modifier(Mod::Dst) {
            value::dst::NONE => (f64::from(i32::MIN), f64::from(i32::MAX)),
            value::dst::U32 => (0.0, f64::from(u32::MAX)),
            value::dst::S64 => (-9.0e18, 9.0e18),
            value::dst::U64 => (0.0, 1.8e19),
            _ => return None,
        };
        if !(least..=most).contains(&whole) {
            return None;
        }
        self.result(whole as i128 as u64)
    }

    fn between_floats(&self) -> Option<Value> {
        self.only(&[Mod::Dst, Mod::Src, Mod::Ftz])?;
        match (self.modifier(Mod::Src), self.modifier(Mod::Dst)) {
            (value::src::NONE, value::dst::F64) => self.result(f64::from(self.float(Role::A)?).to_bits()),
            (value::src::F64, value::dst::NONE) => {
                let narrow = ordinary(self.double(Role::A)? as f32)?;
                self.result(narrow.to_bits().into())
            }
            _ => None,
        }
    }

    fn float_sum(&self) -> Option<Value> {
        self.only(&[Mod::Ftz])?;
        let (a, b) = (self.float(Role::A)?, self.float(Role::B)?);
        let result = match self.function[self.inst].op {
            Op::FADD => a + b,
            Op::FMUL => a * b,
            _ => a.mul_add(b, self.float(Role::C)?),
        };
        self.result(ordinary(result)?.to_bits().into())
    }

    fn double_sum(&self) -> Option<Value> {
        self.only(&[])?;
        let (a, b) = (self.double(Role::A)?, self.double(Role::B)?);
        let result = match self.function[self.inst].op {
            Op::DADD => a + b,
            Op::DMUL => a * b,
            _ => a.mul_add(b, self.double(Role::C)?),
        };
        (!result.is_nan()).then_some(())?;
        self.result(result.to_bits())
    }
}

/// A number that every treatment of subnormal numbers and NaN leaves as it is.
fn ordinary(number: f32) -> Option<f32> {
    (!number.is_nan() && !number.is_subnormal()).then_some(number)
}

/// Whether a comparison of two numbers, neither NaN, holds.
fn holds_of_numbers(cmp: u8, order: Ordering) -> Option<bool> {
    Some(match cmp {
        value::cmp::LTU => order.is_lt(),
        value::cmp::EQU => order.is_eq(),
        value::cmp::LEU => order.is_le(),
        value::cmp::GTU => order.is_gt(),
        value::cmp::NEU => order.is_ne(),
        value::cmp::GEU => order.is_ge(),
        _ => return holds(cmp, order),
    })
}
