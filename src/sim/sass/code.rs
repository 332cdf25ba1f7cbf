//! Instructions as the machine executes them: operands resolved, meaning in one enum.
//!
//! Input: made by [`super::predecode`]. Output: read by the executor, many times. Invariant: small, `Copy`, and free of
//! anything that has to be looked up again; constants of the launch are already immediates.

use super::alu::Alu;

/// Where a source value comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum From {
    #[default]
    Zero,
    Value(u64),
    Reg(u8),
    UReg(u8),
}

/// A source: where it comes from, and what is done to its bits on the way.
#[derive(Clone, Copy, Debug)]
pub struct Src {
    pub from: From,
    /// Two words.
    pub wide: bool,
    /// Two's complement negation, in the source's width.
    pub negate: bool,
    pub and: u64,
    pub xor: u64,
}

impl Default for Src {
    fn default() -> Self {
        Src { from: From::Zero, wide: false, negate: false, and: u64::MAX, xor: 0 }
    }
}

impl Src {
    /// The value after the operand's modifiers.
    pub fn fix(&self, bits: u64) -> u64 {
        let bits = (bits & self.and) ^ self.xor;
        if self.negate { bits.wrapping_neg() } else { bits }
    }
}

/// Where a result goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dst {
    #[default]
    Nowhere,
    Reg(u8),
    UReg(u8),
}

/// A predicate of either file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pred {
    pub uniform: bool,
    pub index: u8,
    pub not: bool,
}

impl Pred {
    /// Always true, or as a destination: nowhere.
    pub const TRUE: Pred = Pred { uniform: false, index: 7, not: false };
    pub const FALSE: Pred = Pred { uniform: false, index: 7, not: true };
}

/// Memory spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Global,
    Shared,
    Local,
    Generic,
}

/// Width and extension of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub bytes: u8,
    pub signed: bool,
}

/// What an atomic does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    Add,
    Min,
    Max,
    Inc,
    Dec,
    And,
    Or,
    Xor,
    Exch,
    Cas,
    /// As `Cas`, but returns 1 where it stored and 0 where not.
    CasFlag,
    /// Adds one for each lane that executes it.
    PopcInc,
}

/// The type an atomic works in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicType {
    Unsigned(u8),
    Signed(u8),
    Float(super::super::ops::format::Format),
    /// Two numbers of 16 bits.
    Packed(super::super::ops::format::Format),
    /// So many numbers side by side, in more than 4 bytes.
    Lanes(super::super::ops::format::Format, u8),
}

/// Which lane SHFL reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    Idx,
    Up,
    Down,
    Bfly,
}

/// Votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    All,
    Any,
    Eq,
}

/// Reductions over lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redux {
    Add,
    And,
    Or,
    Xor,
    Min(bool),
    Max(bool),
    /// Minimum or maximum of f32, of their magnitudes; NaN if one of them is NaN, or only if all are.
    Float {
        min: bool,
        abs: bool,
        nan: bool,
    },
}

/// What a block barrier does beyond counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gather {
    None,
    Popc,
    And,
    Or,
}

/// Special registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    Zero,
    LaneId,
    /// Warp in the block.
    WarpId,
    SmId,
    Tid(u8),
    /// All three, packed.
    TidPacked,
    Ctaid(u8),
    EqMask,
    LtMask,
    LeMask,
    GtMask,
    GeMask,
    ClockLo,
    ClockHi,
    CtaInCluster,
    /// High word of the base of the shared window.
    SharedWindowHigh,
    SharedSize,
    WarpCount,
    GridDim(u8),
}

/// What an instruction does.
#[derive(Clone, Copy, Debug)]
pub enum Exec {
    Nop,
    /// Cannot be executed; index of the reason.
    Refuse(u32),
    Alu(Alu),
    P2r {
        byte: u8,
    },
    R2p {
        byte: u8,
    },
    /// Uniform predicates into a uniform register.
    Up2ur {
        byte: u8,
    },
    Special {
        which: Special,
        wide: bool,
    },
    Load {
        space: Space,
        access: Access,
    },
    Store {
        space: Space,
        access: Access,
    },
    /// 32 bytes: the words behind the first four go to, or come from, a second vector.
    LoadWide {
        high: Dst,
        /// Words that are loaded, a bit each.
        mask: u8,
    },
    StoreWide,
    /// From global to shared memory at register c plus an offset; where the predicate does not hold, zeros. `fill`: the low bits of the
    /// address say how many bytes are zeros.
    CopyAsync {
        bytes: u8,
        offset: i32,
        fill: bool,
    },
    /// From constant bank `bank`, at a register plus an offset.
    LoadConst {
        bank: u8,
        access: Access,
    },
    Atomic {
        space: Space,
        op: AtomicOp,
        ty: AtomicType,
    },
    /// Whether a generic address lies in a space.
    InSpace(Space),
    /// To an instruction index.
    Branch {
        target: u32,
        uniform: bool,
    },
    /// To an instruction index, where the group is not (or is) all the lanes of a mask, or of the warp.
    BranchMask {
        target: u32,
        diverged: bool,
        all: bool,
    },
    /// To the lanes' registers plus a byte offset into the code.
    BranchIndirect {
        base: i64,
        absolute: bool,
    },
    Exit,
    Kill,
    Trap,
    Bssy {
        bar: u8,
    },
    Bsync {
        bar: u8,
    },
    Break {
        bar: u8,
    },
    /// Into a convergence barrier.
    BarFromReg {
        bar: u8,
    },
    /// Into a convergence barrier from another one, which is cleared.
    BarFromBar {
        bar: u8,
        from: u8,
    },
    RegFromBar {
        bar: u8,
        clear: bool,
    },
    WarpSync {
        all: bool,
    },
    Yield,
    BlockBarrier {
        arrive_only: bool,
        gather: Gather,
        /// One register for both: the number in the lowest bits, the count in the upper half.
        packed: bool,
    },
    BarrierResult,
    CodeAddress {
        offset: u64,
    },
    Shuffle(Shuffle),
    Vote(Vote),
    Match {
        all: bool,
    },
    Redux(Redux),
    Elect,
    /// A product of matrices, and the registers of its fragments.
    Product(super::product::Product, super::matrix::Words),
    /// Two words of four small products.
    Quarters(super::quarters::Quarters),
    /// Registers, each from eight rows of 16 bytes, and where their elements lie.
    LoadMatrix {
        count: u8,
        grid: super::tile::Grid,
    },
    StoreMatrix {
        count: u8,
        grid: super::tile::Grid,
    },
    MoveMatrix,
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    pub exec: Exec,
    pub guard: Pred,
    pub d: Dst,
    /// Words of the result in `d`.
    pub words: u8,
    pub pu: Pred,
    pub pv: Pred,
    pub a: Src,
    pub b: Src,
    pub c: Src,
    /// Uniform part of an address.
    pub ub: Src,
    pub pp: Pred,
    pub pq: Pred,
    pub pr: Pred,
    /// Address offset, or a mask.
    pub off: i64,
    /// Factor of an address register.
    pub scale: u8,
}

impl Code {
    /// An instruction without operands.
    pub fn new(exec: Exec) -> Code {
        Code {
            exec,
            guard: Pred::TRUE,
            d: Dst::Nowhere,
            words: 1,
            pu: Pred::TRUE,
            pv: Pred::TRUE,
            a: Src::default(),
            b: Src::default(),
            c: Src::default(),
            ub: Src::default(),
            pp: Pred::TRUE,
            pq: Pred::TRUE,
            pr: Pred::TRUE,
            off: 0,
            scale: 1,
        }
    }
}
