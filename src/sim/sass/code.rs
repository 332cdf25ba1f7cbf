//! The executable form of an instruction: operands are resolved, and one enum holds the meaning.
//!
//! [`super::predecode`] builds it once, and the executor runs it many times. It is small and `Copy`
//! and needs no further look-up; constant-bank operands are already immediates.

use super::alu::Alu;
use super::warp::Apart;

/// Where a source value comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum From {
    #[default]
    Zero,
    Value(u64),
    Reg(u8),
    UReg(u8),
}

/// A source operand with its modifiers.
#[derive(Clone, Copy, Debug)]
pub struct Src {
    /// Where the value comes from.
    pub from: From,
    /// Whether it has two words.
    pub wide: bool,
    /// Two's complement negation in the source's width, applied last.
    pub negate: bool,
    /// A mask that clears bits, for absolute values.
    pub and: u64,
    /// A mask that flips bits, for signs and complements.
    pub xor: u64,
}

impl Default for Src {
    fn default() -> Self {
        Src { from: From::Zero, wide: false, negate: false, and: u64::MAX, xor: 0 }
    }
}

impl Src {
    /// Applies the modifiers to the raw bits.
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

/// A predicate operand of either predicate file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pred {
    /// Whether it is a uniform predicate.
    pub uniform: bool,
    /// The predicate's number; 7 is constant true.
    pub index: u8,
    /// Whether it is negated.
    pub not: bool,
}

impl Pred {
    /// Always true; as a destination it discards the result.
    pub const TRUE: Pred = Pred { uniform: false, index: 7, not: false };
    /// Always false.
    pub const FALSE: Pred = Pred { uniform: false, index: 7, not: true };
}

/// Memory spaces of an instruction.
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
    /// Number of bytes.
    pub bytes: u8,
    /// Whether a narrow load is sign-extended.
    pub signed: bool,
    /// Whether its text says that it is strong; that of shared memory never does.
    pub strong: bool,
}

/// The operation of an atomic.
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
    /// A float sum that keeps subnormals of f32, too.
    AddKept,
    Exch,
    Cas,
    /// As `Cas`, but returns 1 if it stored and 0 if not.
    CasFlag,
    /// Adds one for each executing lane.
    PopcInc,
}

/// The type of an atomic; numbers are sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicType {
    Unsigned(u8),
    Signed(u8),
    Float(super::super::ops::format::Format),
    /// Two 16-bit numbers.
    Packed(super::super::ops::format::Format),
    /// Packed numbers of more than 4 bytes: format and count.
    Lanes(super::super::ops::format::Format, u8),
}

/// How SHFL chooses the source lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    Idx,
    Up,
    Down,
    Bfly,
}

/// The condition of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    All,
    Any,
    Eq,
}

/// Reductions across lanes; the flag means signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redux {
    Add,
    And,
    Or,
    Xor,
    Min(bool),
    Max(bool),
    /// Minimum or maximum of f32, optionally of the magnitudes; with `nan` the result is NaN if any
    /// operand is, else only if all are.
    Float {
        min: bool,
        abs: bool,
        nan: bool,
    },
}

/// The reduction that a block barrier performs.
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
    /// The warp's number in its block.
    WarpId,
    SmId,
    Tid(u8),
    /// All three thread indices, packed.
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
    /// High word of the base address of the shared window.
    SharedWindowHigh,
    SharedSize,
    WarpCount,
    GridDim(u8),
}

/// The meaning of an instruction.
#[derive(Clone, Copy, Debug)]
pub enum Exec {
    Nop,
    /// Cannot be executed; the index of the reason.
    Refuse(u32),
    Alu(Alu),
    P2r {
        byte: u8,
    },
    R2p {
        byte: u8,
    },
    /// Uniform predicates to a uniform register.
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
    /// 32 bytes: the first four words use `d`, the others a second register tuple.
    LoadWide {
        high: Dst,
        /// Mask of the words that are loaded.
        mask: u8,
    },
    StoreWide,
    /// A copy from global to shared memory, at register c plus an offset; zeros if the predicate is
    /// false. With `fill` the low bits of the address give the number of zero bytes.
    CopyAsync {
        bytes: u8,
        offset: i32,
        fill: bool,
    },
    /// A load from constant bank `bank` at a register plus an offset.
    LoadConst {
        bank: u8,
        access: Access,
    },
    Atomic {
        space: Space,
        op: AtomicOp,
        ty: AtomicType,
    },
    /// On a barrier in shared memory.
    Mbarrier(super::mbarrier::Act),
    /// A copy or a reduction in bulk: from b to a, as many units as c says.
    Bulk(super::bulk::Bulk),
    /// A store or a reduction in a block of the cluster: a has the addresses, b the value.
    Remote(super::cluster::Remote),
    /// Asks for a cluster that has not begun; whether all blocks of the own cluster get the answer.
    Cancel {
        all: bool,
    },
    /// A copy or a reduction of a box of a tensor: a has the addresses in shared memory and the
    /// coordinates, b the address of the map.
    Tensor(super::tensor::Tensor),
    /// On tensor memory.
    TensorMemory(super::tensor_memory::Act),
    /// At the barrier of the cluster.
    ClusterArrive,
    ClusterWait,
    /// A read of a texture, and an access to a surface: the uniform part is the handle, where it is
    /// no register.
    Sample(super::texture::Sample),
    Query(super::texture::Query),
    Surface(super::texture::Surface),
    /// Clears shared memory, as many units as b says.
    Clear,
    /// Between a register and a half of a register pair of its own.
    PairMove {
        high: bool,
        store: bool,
    },
    /// Whether a generic address lies in the space.
    InSpace {
        space: Space,
        /// Whether shared memory is that of the whole cluster.
        cluster: bool,
    },
    /// A branch to an instruction index.
    Branch {
        target: u32,
        uniform: bool,
    },
    /// All of them branch if the predicate is true on all, and else none.
    BranchAll {
        target: u32,
    },
    /// To an instruction index, all lanes of the group, where the predicate holds for any of them.
    BranchAny {
        target: u32,
    },
    /// A branch to an instruction index if the group is not (`diverged`), or is, all live lanes of
    /// a mask or of the warp (`all`).
    BranchMask {
        target: u32,
        diverged: bool,
        all: bool,
    },
    /// A branch to the lane's register plus a byte offset.
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
    /// From a register to a convergence barrier.
    BarFromReg {
        bar: u8,
    },
    /// From one convergence barrier to another; the first one is cleared.
    BarFromBar {
        bar: u8,
        from: u8,
    },
    RegFromBar {
        bar: u8,
        clear: bool,
    },
    /// A mask of lanes to a register: those that have ended, or those that run.
    StateToReg {
        active: bool,
    },
    /// The same from a register.
    StateFromReg {
        active: bool,
    },
    /// The lanes that run to a convergence barrier.
    BarFromState {
        bar: u8,
    },
    /// The lanes that run from a convergence barrier, or all of the squares that have one of them.
    StateFromBar {
        bar: u8,
        squares: bool,
    },
    /// A sum of two words, with signs of its own in each lane of a square.
    SquareAdd {
        signs: u8,
    },
    /// A move in some lanes of each square.
    SquareMove {
        lanes: u8,
    },
    WarpSync {
        all: bool,
        /// Whether the lanes of one mask go on apart from the others.
        apart: Option<Apart>,
    },
    EndCollective,
    Yield,
    BlockBarrier {
        arrive_only: bool,
        gather: Gather,
        /// Whether one register holds both: the number in the low bits, the count in the upper
        /// half.
        packed: bool,
    },
    BarrierResult,
    /// Changes the number of registers of the warp, to or from the pool of its block.
    MaxRegisters {
        count: u16,
        takes: bool,
    },
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
    /// The value of the lowest lane to a uniform register; the result says which lanes have another
    /// one, or have the predicate.
    Spread,
    /// A matrix product, with the register counts of its fragments.
    Product(super::mma::Product, super::matrix::Words),
    /// A product of a warp group: the metadata are b, the selector is the offset.
    Group(super::group::Group),
    /// A product with block scale; the number that says where the scales are is the uniform part.
    Scaled(super::mma_scaled::Scaled),
    /// One step of `HMMA.884`: two words of four small products.
    Quarters(super::mma_884::Quarters),
    /// Loads registers, each from eight rows of 16 bytes; `grid` maps their elements.
    LoadMatrix {
        count: u8,
        grid: super::ldmatrix::Grid,
    },
    StoreMatrix {
        count: u8,
        grid: super::ldmatrix::Grid,
    },
    MoveMatrix,
}

/// One executable instruction.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// The meaning.
    pub exec: Exec,
    /// The guard predicate.
    pub guard: Pred,
    /// The register result.
    pub d: Dst,
    /// Number of words of the result in `d`.
    pub words: u8,
    /// First predicate result.
    pub pu: Pred,
    /// Second predicate result.
    pub pv: Pred,
    /// Source a; the register of an address.
    pub a: Src,
    /// Source b.
    pub b: Src,
    /// Source c.
    pub c: Src,
    /// The uniform register of an address, or the metadata of a sparse product.
    pub ub: Src,
    /// First predicate source.
    pub pp: Pred,
    /// Second predicate source.
    pub pq: Pred,
    /// Third predicate source.
    pub pr: Pred,
    /// The descriptor of global memory, in uniform registers.
    pub desc: Option<u8>,
    /// The offset of an address.
    pub off: i64,
    /// The scale of the address register.
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
            desc: None,
            off: 0,
            scale: 1,
        }
    }

    /// Whether it accesses memory once for all lanes, at an address in uniform registers.
    pub fn acts_once(&self) -> bool {
        let accesses = matches!(self.exec, Exec::Store { .. } | Exec::Atomic { .. });
        accesses && matches!(self.a.from, From::UReg(_))
    }
}

impl Exec {
    /// Whether it loads or stores.
    pub fn is_access(&self) -> bool {
        matches!(self, Exec::Load { .. } | Exec::Store { .. } | Exec::LoadWide { .. } | Exec::StoreWide)
    }
}
