//! Table-driven lowering of memory order, cache control, atomics and special registers.
//!
//! Handwritten types over generated data; the rows are `lowering/*.ron`. A missing row means that
//! the operation is unsupported, which the caller diagnoses by name.

use super::mods::Mods;
use super::ptx::{AtomOp, ScalarType, Scope, Semantics, SpecialRegister};
use super::{Feature, Generation, Mod, Op, Target, value};

/// The kind of memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Ld,
    /// `ld.global.nc`
    LdNc,
    St,
    /// `atom` or `red`.
    Atom,
    Fence,
    /// What publishes a tensor map.
    Map,
    CpAsync,
}

/// An instruction without operands, such as a fence.
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
    /// Shared memory if true; otherwise global and generic addresses.
    pub shared: bool,
    /// Required feature of the target.
    pub feature: Option<Feature>,
    /// Modifiers of the access.
    pub mods: &'static [(Mod, u8)],
    /// Instructions before the access.
    pub before: &'static [Step],
    /// Instructions after the access.
    pub after: &'static [Step],
}

/// The modifiers of a cache operator or hint. Source: `lowering/cache.ron`.
#[derive(Debug)]
pub struct CacheRow {
    pub access: Access,
    /// The modifier's text in PTX.
    pub text: &'static str,
    /// Modifiers of the access.
    pub mods: &'static [(Mod, u8)],
}

/// Address space of an atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicSpace {
    Global,
    Shared,
    Generic,
}

/// Implementation of an atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicHow {
    /// One native instruction.
    Unit,
    /// A compare-and-swap loop.
    Loop,
    /// A compare-and-swap loop on the word that contains 16 bits.
    Half,
    /// For generic addresses: as in shared memory if the address points there, otherwise one native
    /// instruction.
    Split,
}

/// The implementation of an atomic operation. Source: `lowering/atomic.ron`.
#[derive(Debug)]
pub struct AtomicRow {
    pub op: AtomOp,
    pub ty: ScalarType,
    /// Number of elements.
    pub vector: u32,
    pub space: AtomicSpace,
    pub how: AtomicHow,
    /// The `size` modifier of the native instruction.
    pub size: Option<(Mod, u8)>,
    /// Whether it is the row of an f32 sum that keeps subnormals.
    pub keeps: bool,
}

/// Where the value of a special register comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialFrom {
    S2r,
    Nibble,
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

/// The location of a special register. Source: `lowering/special.ron`.
#[derive(Debug)]
pub struct SpecialHome {
    pub register: SpecialRegister,
    /// Generations, one bit each.
    pub on: u8,
    pub from: SpecialFrom,
    /// Name of a numbered register, or empty.
    pub sr: &'static str,
    /// Byte offset in bank 0, or a constant value.
    pub at: u32,
    /// Right shift of the value.
    pub shift: u8,
    /// Mask after the shift; 0 keeps all bits.
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
    /// The row of a cache modifier on an access.
    pub fn of(access: Access, text: &str) -> Option<&'static CacheRow> {
        CACHE.iter().find(|row| row.access == access && row.text == text)
    }
}

impl AtomOp {
    /// The modifier that selects the operation in an atomic instruction.
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
    /// The row of the shared-memory operation with these modifiers.
    pub fn in_shared(mods: &Mods) -> Option<&'static AtomicRow> {
        let says = |(kind, value): (Mod, u8)| mods.get(kind) == value;
        let fits = |row: &&AtomicRow| says(row.op.modifier()) && row.size.is_some_and(says);
        ATOMIC.iter().find(|row| row.space == AtomicSpace::Shared && row.vector == 1 && fits(row))
    }

    /// All rows in table order.
    pub fn all() -> &'static [AtomicRow] {
        &ATOMIC
    }

    /// The row of an operation; that of `.noftz` if there is one of its own.
    pub fn of(op: AtomOp, ty: ScalarType, vector: u32, space: AtomicSpace, noftz: bool) -> Option<&'static AtomicRow> {
        let fits = |row: &&AtomicRow| (row.op, row.ty, row.vector, row.space) == (op, ty, vector, space);
        let own = ATOMIC.iter().find(|row| fits(row) && row.keeps == noftz);
        own.or_else(|| ATOMIC.iter().find(|row| fits(row) && !row.keeps))
    }
}

impl SpecialHome {
    /// The row of a special register on a generation.
    pub fn of(register: SpecialRegister, generation: Generation) -> Option<&'static SpecialHome> {
        SPECIAL.iter().find(|row| row.register == register && row.on >> generation as u8 & 1 != 0)
    }
}

include!(concat!(env!("OUT_DIR"), "/memory.rs"));
