//! What the interpreter executes: functions as arrays of instructions whose names are resolved.
//!
//! Made by `resolve`, read by `exec`. Invariants: a register is one cell of 64 bits (two for 128-bit types, one for each
//! element of a vector) that is zero beyond the register's width; a branch target is an index of the same function's
//! instructions; what the interpreter does not execute is [`Act::Refused`] with its name.

use super::atomic::Atomic;
use super::barrier::Barrier;
use super::call::{Call, Stack};
use super::memory::{Copy, Transfer};
use super::warp::Collective;
use crate::tables::ptx::SpecialRegister;
use smallvec::SmallVec;

/// Most sources of an operation that computes.
pub const SOURCES: usize = 6;

/// Values of the sources, each cut to the width that the instruction says.
pub type Sources = [u64; SOURCES];

/// What an instruction computes: up to two results.
pub type Alu = Box<dyn Fn(&Sources) -> [u64; 2] + Send + Sync>;

/// Where a source comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Src {
    /// A cell, cut by a mask.
    Cell {
        cell: u32,
        mask: u64,
    },
    /// The negation of a predicate.
    Not(u32),
    Imm(u64),
    /// A special register, cut by a mask.
    Special(SpecialRegister, u64),
    /// An address so many bytes into the local memory of the running function.
    Local(i64),
    /// A part of a cell: shifted right, cut, extended by its sign, negated.
    Part {
        cell: u32,
        shift: u8,
        bits: u8,
        signed: bool,
        negate: bool,
    },
}

/// Where a result goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dst {
    pub cell: u32,
    /// Bits of the value; a wider register gets it extended.
    pub bits: u8,
    /// The extension is by the sign.
    pub signed: bool,
    /// Of the register.
    pub mask: u64,
    /// The register has a second cell, which the extension fills.
    pub above: bool,
}

/// A result, or nothing where it is discarded.
pub type Sink = Option<Dst>;

/// One instruction.
pub struct Inst {
    /// Line and column in the source.
    pub pos: crate::diag::Pos,
    /// Predicate cell and whether it is negated.
    pub guard: Option<(u32, bool)>,
    pub act: Act,
}

/// What an instruction does.
pub enum Act {
    Compute {
        f: Alu,
        src: SmallVec<[Src; 4]>,
        dst: SmallVec<[Sink; 2]>,
    },
    /// Pieces side by side, lowest first, each with its bits: pack, unpack and plain moves.
    Move {
        from: Vec<(Src, u32)>,
        to: Vec<(Sink, u32)>,
    },
    Transfer(Box<Transfer>),
    Copy(Box<Copy>),
    Atomic(Box<Atomic>),
    /// Whether a generic address lies in a state space; conversions of addresses.
    Address {
        how: super::memory::AddressOp,
        src: Src,
        dst: Dst,
    },
    Branch(u32),
    Table(Src, Vec<u32>),
    Call(Box<Call>),
    Stack(Stack),
    Return,
    Exit,
    Trap(&'static str),
    Collective(Box<Collective>),
    Barrier(Box<Barrier>),
    Nothing,
    /// Why it cannot be executed.
    Refused(String),
}

/// Where a parameter or result of a function lives while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Bytes of the frame in local memory.
    Local { offset: u64, size: u64 },
    /// Cells, and bytes of the value in each element, which `each` cells hold.
    Cells { first: u32, cells: u32, size: u64, each: u32 },
}

/// A function with a body, or what the system does under its name.
pub struct Function {
    pub name: String,
    pub insts: Vec<Inst>,
    /// Cells of its registers.
    pub cells: u32,
    /// The register of each cell, as it is written.
    pub names: Vec<String>,
    /// Bytes of its frame in local memory.
    pub frame: u64,
    pub results: Vec<Home>,
    pub params: Vec<Home>,
    pub has_body: bool,
}

/// A module, resolved for one launch.
pub struct Program {
    /// By the number of `ast::FunctionId`.
    pub functions: Vec<Function>,
}
