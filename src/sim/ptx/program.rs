//! The form in which the interpreter executes a module: functions as arrays of instructions with
//! resolved names.
//!
//! `resolve` builds it and `exec` runs it. A register is one 64-bit cell (two for 128-bit types,
//! one for each element of a vector) that is zero beyond the register's width. A branch target is
//! an instruction index in the same function. An instruction that the interpreter does not
//! implement is [`Act::Refused`] with its name.

use super::atomic::Atomic;
use super::barrier::Barrier;
use super::bulk::Bulk;
use super::call::{Call, Stack};
use super::cluster::{Cancel, Remote};
use super::mbarrier::Mbarrier;
use super::memory::{Address, Copy, Transfer};
use super::tensor::{Replace, Tensor};
use super::tensor_unit::Unit;
use super::texture::{Ask, Sample, Surface};
use super::warp::Collective;
use crate::tables::ptx::SpecialRegister;
use smallvec::SmallVec;

/// Most sources of an [`Act::Compute`].
pub const SOURCES: usize = 6;

/// Values of the sources, each masked to the width of its type.
pub type Sources = [u64; SOURCES];

/// The function that an instruction computes, with up to two results.
pub type Alu = Box<dyn Fn(&Sources) -> [u64; 2] + Send + Sync>;

/// A source of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Src {
    /// A cell and a mask.
    Cell {
        cell: u32,
        mask: u64,
    },
    /// The negation of a predicate cell.
    Not(u32),
    Imm(u64),
    /// A special register and a mask.
    Special(SpecialRegister, u64),
    /// The address of a byte of the running function's frame.
    Local(i64),
    /// A part of a cell: `bits` bits from `shift` on, sign-extended if `signed`, then negated if
    /// `negate`.
    Part {
        cell: u32,
        shift: u8,
        bits: u8,
        signed: bool,
        negate: bool,
    },
}

/// A destination in the register cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dst {
    /// The (first) cell of the register.
    pub cell: u32,
    /// Width of the value in bits; it is extended to the width of the register.
    pub bits: u8,
    /// Whether it is sign-extended.
    pub signed: bool,
    /// The mask of the register's width.
    pub mask: u64,
    /// Whether the register has a second cell, which the extension fills.
    pub above: bool,
}

/// A destination, or `None` for `_`.
pub type Sink = Option<Dst>;

/// One instruction.
pub struct Inst {
    /// Line and column in the source.
    pub pos: crate::diag::Pos,
    /// The predicate's cell and whether it is negated.
    pub guard: Option<(u32, bool)>,
    /// What the instruction does.
    pub act: Act,
}

/// The operation of an instruction.
pub enum Act {
    /// Computes up to two results from the sources.
    Compute {
        f: Alu,
        src: SmallVec<[Src; 4]>,
        dst: SmallVec<[Sink; 2]>,
    },
    /// Moves a bit string split into pieces, lowest first, each with its width: pack, unpack and
    /// plain moves.
    Move {
        from: Vec<(Src, u32)>,
        to: Vec<(Sink, u32)>,
    },
    /// A load or store.
    Transfer(Box<Transfer>),
    /// An asynchronous copy, performed immediately.
    Copy(Box<Copy>),
    /// A copy or a reduction in bulk, performed immediately.
    Bulk(Box<Bulk>),
    /// A copy or a reduction of a box of a tensor, performed immediately.
    Tensor(Box<Tensor>),
    /// A read of a texture.
    Sample(Box<Sample>),
    /// A query of a texture, sampler or surface.
    Ask(Box<Ask>),
    /// An access to a surface.
    Surface(Box<Surface>),
    /// New values of fields of a tensor map.
    Replace(Box<Replace>),
    /// Copies the word of the lane of a tensor map.
    Publish(Address, Address),
    /// A store in a block of the cluster, performed immediately.
    Remote(Box<Remote>),
    /// Asks for a cluster that has not begun.
    Cancel(Box<Cancel>),
    /// Clears as many bytes as the operand says.
    Clear(Address, Src),
    /// What the unit of tensor memory does by itself.
    TensorUnit(Box<Unit>),
    /// `atom` or `red`.
    Atomic(Box<Atomic>),
    /// An address conversion, or a test whether a generic address lies in a state space.
    Address {
        how: super::memory::AddressOp,
        src: Src,
        dst: Dst,
    },
    /// Branches to an instruction index.
    Branch(u32),
    /// Branches to the indexed target (`brx.idx`).
    Table(Src, Vec<u32>),
    /// Calls a function.
    Call(Box<Call>),
    /// `alloca`, `stacksave` or `stackrestore`.
    Stack(Stack),
    /// Returns from the function.
    Return,
    /// Ends the thread.
    Exit,
    /// Stops the launch with the given text.
    Trap(&'static str),
    /// An operation across the lanes of a warp.
    Collective(Box<Collective>),
    /// A barrier of the block.
    Barrier(Box<Barrier>),
    /// An arrival at the barrier of the cluster.
    ClusterArrive,
    /// A wait at the barrier of the cluster; in a cluster of one block it is this one.
    ClusterWait(Box<Barrier>),
    Mbarrier(Box<Mbarrier>),
    Nothing,
    /// Not implemented, with the reason.
    Refused(String),
}

/// Where a parameter or result of a function lives while the function runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Bytes of the frame in local memory.
    Local { offset: u64, size: u64 },
    /// Register cells; each element has `size` bytes and takes up `each` cells.
    Cells { first: u32, cells: u32, size: u64, each: u32 },
}

/// A function. One without a body is a system function, executed by its name.
pub struct Function {
    /// The function's name.
    pub name: String,
    /// Its instructions, ending in a return.
    pub insts: Vec<Inst>,
    /// Number of cells of its registers.
    pub cells: u32,
    /// The register name of each cell.
    pub names: Vec<String>,
    /// Size of its frame in local memory, in bytes.
    pub frame: u64,
    /// Where its results live.
    pub results: Vec<Home>,
    /// Where its parameters live.
    pub params: Vec<Home>,
    /// Whether it is defined in the module.
    pub has_body: bool,
}

/// A module, resolved for one launch.
pub struct Program {
    /// Indexed by `ast::FunctionId`.
    pub functions: Vec<Function>,
}
