//! Opcodes of machine IR (Ori), with their operand roles, properties and modifiers.

use super::Mods;

/// Whether an instruction reads or writes an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Def,
    Use,
    /// An immediate, a label, a special register.
    None,
}

/// The register class of an operand.
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

/// Width of an operand in 32-bit words.
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
    /// A matrix fragment: the width of its register tuple.
    Fragment,
}

/// Bytes of a word.
const WORD: u8 = 4;

impl Width {
    /// The width in 32-bit words for an instruction with these modifiers; 1 for a fragment, whose
    /// width is that of its register tuple.
    #[inline]
    pub fn words(self, mods: &Mods) -> u8 {
        let by_type = |kind: Mod| kind.says(Says::Words, mods.get(kind));
        match self {
            Width::Words(n) => n,
            Width::Size => Mod::Size.says(Says::Bytes, mods.get(Mod::Size)).div_ceil(WORD),
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

/// The meaning of an absent operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// It must be present.
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
    /// False for an opcode that is named but not implemented.
    pub built: bool,
    props: u128,
    /// Index of its operand recipe.
    pub(super) recipe: usize,
    /// Opcodes of the uniform datapath that compute the same from the operands in the same roles;
    /// the first that the target encodes.
    pub uniform: &'static [Op],
    /// What a sum and a product of floats are in one: for FADD and for FMUL this is FFMA.
    pub fused: Option<Op>,
    /// The modifier with which alone it is idempotent; `None`: with any.
    pub idempotent_with: Option<(Mod, u8)>,
    /// The roles that it writes and those that it reads, one bit each, by position.
    pub defs: u16,
    pub uses: u16,
    pub roles: &'static [RoleInfo],
}

/// The facts of [`OpInfo`] that every pass asks of every instruction.
#[derive(Clone, Copy)]
struct Facts {
    props: u128,
    defs: u16,
    uses: u16,
    /// The first place of each role, or [`ABSENT`].
    roles: [u8; Role::ALL.len()],
}

const ABSENT: u8 = u8::MAX;

/// By the number of the opcode, so that one access is enough.
static FACTS: [Facts; OP_INDEX.len()] = {
    let none = Facts { props: 0, defs: 0, uses: 0, roles: [ABSENT; Role::ALL.len()] };
    let mut facts = [none; OP_INDEX.len()];
    let mut number = 0;
    while number < facts.len() {
        // Some numbers are no opcode's.
        if (OP_INDEX[number] as usize) < OPS.len() {
            let info = &OPS[OP_INDEX[number] as usize];
            facts[number] = Facts { props: info.props, defs: info.defs, uses: info.uses, ..none };
            let mut place = info.roles.len();
            while place > 0 {
                place -= 1;
                facts[number].roles[info.roles[place].role as usize] = place as u8;
            }
        }
        number += 1;
    }
    facts
};

impl Op {
    /// Facts of this opcode.
    pub fn info(self) -> &'static OpInfo {
        &OPS[OP_INDEX[self as usize] as usize]
    }

    /// Name in the tables.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Index among the opcodes in numeric order.
    pub fn position(self) -> usize {
        usize::from(OP_INDEX[self as usize])
    }

    /// Whether it has a property.
    #[inline]
    pub fn has(self, prop: Prop) -> bool {
        FACTS[self as usize].props >> (prop as u32) & 1 != 0
    }

    /// Whether doing it again with these modifiers and the same operands, with nothing in between,
    /// changes nothing.
    pub fn is_idempotent(self, mods: &Mods) -> bool {
        let with = self.info().idempotent_with;
        self.has(Prop::Idempotent) && with.is_none_or(|(kind, value)| mods.get(kind) == value)
    }

    /// The roles that it writes and those that it reads, as in [`OpInfo`].
    #[inline]
    pub fn places(self) -> (u16, u16) {
        let facts = &FACTS[self as usize];
        (facts.defs, facts.uses)
    }

    /// Index of a role among its operands.
    #[inline]
    pub fn role_index(self, role: Role) -> Option<usize> {
        match FACTS[self as usize].roles[role as usize] {
            ABSENT => None,
            place => Some(usize::from(place)),
        }
    }

    /// The opcode of a name.
    pub fn by_name(name: &str) -> Option<Op> {
        OP_BY_NAME.get(name).copied()
    }
}

/// Name of an opcode in the tables (`IADD3`, `IMAD_WIDE`); `Op::by_name` is the inverse.
pub fn op_name(op: Op) -> &'static str {
    OP_NAMES[OP_INDEX[op as usize] as usize]
}

impl Mod {
    /// Text of a value; empty if it is not printed.
    pub fn text(self, value: u8) -> &'static str {
        MOD_TEXTS[self as usize].get(usize::from(value)).copied().unwrap_or("?")
    }

    /// What a value means; 0 where no value of the kind means anything of this sort. Source:
    /// `tables/ori/values.ron`.
    pub fn says(self, question: Says, value: u8) -> u8 {
        MOD_SAYS[self as usize][question as usize].get(usize::from(value)).copied().unwrap_or(0)
    }
}

include!(concat!(env!("OUT_DIR"), "/ori.rs"));
