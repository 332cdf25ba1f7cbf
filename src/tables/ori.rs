//! Opcodes, operand roles, properties and modifiers.

use super::Mods;

/// What an instruction does with an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Def,
    Use,
    /// An immediate, a label, a special register.
    None,
}

/// What may stand in an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A general register; by form also a uniform register, an immediate or a constant.
    Reg,
    /// A uniform register only.
    Uniform,
    /// A predicate of the vector or the uniform file.
    Pred,
    /// A convergence barrier.
    Barrier,
    Imm,
    Label,
    Special,
}

/// How many 32-bit words an operand takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Words(u8),
    /// By the access size of the instruction (modifier `size`).
    Size,
    /// Two words for a 64-bit address (modifier `e`, unless `wide` says U32), one otherwise.
    Addr,
    /// By the result type of a conversion (modifier `dst`).
    Dst,
    /// By the source type of a conversion (modifier `src`).
    Src,
    /// A part of a matrix: as many as the operand has.
    Fragment,
}

impl Width {
    /// The width in 32-bit words of an operand of an instruction with these modifiers; 1 for a fragment, which is as long as
    /// its vector.
    pub fn words(self, mods: &Mods) -> u8 {
        let by_type = |kind: Mod| if kind.text(mods.get(kind)).ends_with("64") { 2 } else { 1 };
        match self {
            Width::Words(n) => n,
            Width::Size => match Mod::Size.text(mods.get(Mod::Size)) {
                "64" | "S64" | "F64.RN" | "F16x4.RN" | "BF16x4.RN" | "F32x2.RN" | "F32x2.FTZ.RN" => 2,
                "128" | "U.128" | "F16x8.RN" | "BF16x8.RN" | "F32x4.RN" | "F32x4.FTZ.RN" => 4,
                _ => 1,
            },
            Width::Addr => {
                if mods.get(Mod::E) == value::e::E && mods.get(Mod::Wide) == 0 {
                    2
                } else {
                    1
                }
            }
            Width::Dst => by_type(Mod::Dst),
            Width::Src => by_type(Mod::Src),
            Width::Fragment => 1,
        }
    }
}

/// What an operand means that is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// It must be given.
    Required,
    /// PT.
    True,
    /// !PT.
    False,
    /// RZ or the number zero.
    Zero,
}

/// One operand role of an opcode. Source: column `roles` of `ori/*.ron`.
#[derive(Debug)]
pub struct RoleInfo {
    pub role: Role,
    pub direction: Direction,
    pub class: Class,
    pub width: Width,
    pub absent: Absent,
}

/// Facts of an opcode. Source: `ori/*.ron`.
#[derive(Debug)]
pub struct OpInfo {
    pub op: Op,
    /// Name in the tables.
    pub name: &'static str,
    /// Mnemonic without modifiers.
    pub text: &'static str,
    /// False for an opcode that is named but planned.
    pub built: bool,
    props: u32,
    /// Position of its recipe.
    pub(super) recipe: usize,
    pub roles: &'static [RoleInfo],
}

impl Op {
    /// Facts of this opcode.
    pub fn info(self) -> &'static OpInfo {
        &OPS[OP_INDEX[self as usize] as usize]
    }

    /// Name in the tables.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Position among the opcodes in the order of their numbers.
    pub fn position(self) -> usize {
        usize::from(OP_INDEX[self as usize])
    }

    /// Whether it has a property.
    pub fn has(self, prop: Prop) -> bool {
        self.info().props >> (prop as u32) & 1 != 0
    }

    /// Position of a role among its operands.
    pub fn role_index(self, role: Role) -> Option<usize> {
        self.info().roles.iter().position(|r| r.role == role)
    }

    /// The opcode of a name in the tables.
    pub fn by_name(name: &str) -> Option<Op> {
        OP_BY_NAME.get(name).copied()
    }
}

/// Name of an opcode in the tables (`IADD3`, `IMAD_WIDE`); `Op::by_name` is the way back.
pub fn op_name(op: Op) -> &'static str {
    OP_NAMES[OP_INDEX[op as usize] as usize]
}

impl Mod {
    /// Text of one of its values; empty where nothing is printed.
    pub fn text(self, value: u8) -> &'static str {
        MOD_TEXTS[self as usize].get(usize::from(value)).copied().unwrap_or("?")
    }
}

include!(concat!(env!("OUT_DIR"), "/ori.rs"));
