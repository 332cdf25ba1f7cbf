//! How PTX becomes SASS where a row says it: memory order, cache control, atomics, special registers.
//!
//! Handwritten types over generated data; the rows are `lowering/*.ron`. Invariant: what has no row is refused by name by whoever
//! asks.

use super::mods::Mods;
use super::ptx::{AtomOp, ScalarType, Scope, Semantics, SpecialRegister};
use super::{Feature, Generation, Mod, Op, Target, value};

/// What accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Ld,
    /// `ld.global.nc`
    LdNc,
    St,
    /// With or without a result.
    Atom,
    Fence,
    CpAsync,
}

/// An instruction without operands.
#[derive(Debug)]
pub struct Step {
    pub op: Op,
    pub mods: &'static [(Mod, u8)],
}

/// How an access or a fence is ordered. Source: `lowering/order.ron`.
#[derive(Debug)]
pub struct OrderRow {
    pub access: Access,
    pub semantics: Semantics,
    pub scope: Option<Scope>,
    /// Shared memory, or global and generic addresses.
    pub shared: bool,
    /// Only on targets that have it.
    pub feature: Option<Feature>,
    pub mods: &'static [(Mod, u8)],
    pub before: &'static [Step],
    pub after: &'static [Step],
}

/// What a cache operator or hint becomes. Source: `lowering/cache.ron`.
#[derive(Debug)]
pub struct CacheRow {
    pub access: Access,
    pub text: &'static str,
    pub mods: &'static [(Mod, u8)],
}

/// Where an atomic operation works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicSpace {
    Global,
    Shared,
    Generic,
}

/// How an atomic operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicHow {
    /// One instruction.
    Unit,
    /// A loop of compare-and-swap.
    Loop,
    /// The same on the word around 16 bits.
    Half,
    /// As in shared memory where a generic address points there, otherwise one instruction.
    Split,
}

/// How an atomic operation is done. Source: `lowering/atomic.ron`.
#[derive(Debug)]
pub struct AtomicRow {
    pub op: AtomOp,
    pub ty: ScalarType,
    /// Elements.
    pub vector: u32,
    pub space: AtomicSpace,
    pub how: AtomicHow,
    /// The modifier `size` of the one instruction.
    pub size: Option<(Mod, u8)>,
}

/// Where the value of a special register comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialFrom {
    S2r,
    Cs2r32,
    Cs2r64,
    Word,
    Pair,
    Cga,
    Less,
    Most,
    MostCga,
    Value,
    Flag,
    Quotient,
    Remainder,
}

/// Where a special register stands. Source: `lowering/special.ron`.
#[derive(Debug)]
pub struct SpecialHome {
    pub register: SpecialRegister,
    /// Generations, one bit each.
    pub on: u8,
    pub from: SpecialFrom,
    /// Name of a numbered register, or empty.
    pub sr: &'static str,
    /// Byte offset in bank 0, or a number.
    pub at: u32,
    pub shift: u8,
    /// 0: all bits.
    pub mask: u32,
}

impl OrderRow {
    /// The row of an access on a target.
    pub fn of(
        target: &Target,
        access: Access,
        semantics: Semantics,
        scope: Option<Scope>,
        shared: bool,
    ) -> Option<&'static OrderRow> {
        ORDER.iter().find(|row| {
            (row.access, row.semantics, row.scope, row.shared) == (access, semantics, scope, shared)
                && row.feature.is_none_or(|feature| target.has(feature))
        })
    }
}

impl CacheRow {
    /// The row of a modifier on an access.
    pub fn of(access: Access, text: &str) -> Option<&'static CacheRow> {
        CACHE.iter().find(|row| row.access == access && row.text == text)
    }
}

impl AtomOp {
    /// The operation as the memory units are told of it.
    pub fn modifier(self) -> (Mod, u8) {
        let value = match self {
            AtomOp::Add => value::aop::ADD,
            AtomOp::Min => value::aop::MIN,
            AtomOp::Max => value::aop::MAX,
            AtomOp::Inc => value::aop::INC,
            AtomOp::Dec => value::aop::DEC,
            AtomOp::And => value::aop::AND,
            AtomOp::Or => value::aop::OR,
            AtomOp::Xor => value::aop::XOR,
            AtomOp::Exch => value::aop::EXCH,
            AtomOp::Cas => value::aop::CAS,
        };
        (Mod::Aop, value)
    }
}

impl AtomicRow {
    /// The row of what shared memory does for an operation, said by modifiers.
    pub fn in_shared(mods: &Mods) -> Option<&'static AtomicRow> {
        let says = |(kind, value): (Mod, u8)| mods.get(kind) == value;
        let fits = |row: &&AtomicRow| says(row.op.modifier()) && row.size.is_some_and(says);
        ATOMIC.iter().find(|row| row.space == AtomicSpace::Shared && row.vector == 1 && fits(row))
    }

    /// The rows, in the order of the table.
    pub fn all() -> &'static [AtomicRow] {
        &ATOMIC
    }

    /// The row of an operation.
    pub fn of(op: AtomOp, ty: ScalarType, vector: u32, space: AtomicSpace) -> Option<&'static AtomicRow> {
        ATOMIC.iter().find(|row| (row.op, row.ty, row.vector, row.space) == (op, ty, vector, space))
    }
}

impl SpecialHome {
    /// The row of a special register on a generation.
    pub fn of(register: SpecialRegister, generation: Generation) -> Option<&'static SpecialHome> {
        SPECIAL.iter().find(|row| row.register == register && row.on >> generation as u8 & 1 != 0)
    }
}

include!(concat!(env!("OUT_DIR"), "/memory.rs"));
