//! PTX operations, types, modifiers and special registers, as the tables name them.
//!
//! Stands in for the generated module until the generator emits it; the items and their names are those of the rows.

/// A row of the instruction forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u16);

/// A PTX operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// `add`
    Add,
    /// `sub`
    Sub,
    /// `mul`
    Mul,
    /// `mad`
    Mad,
    /// `mul24`
    Mul24,
    /// `mad24`
    Mad24,
    /// `sad`
    Sad,
    /// `div`
    Div,
    /// `rem`
    Rem,
    /// `abs`
    Abs,
    /// `neg`
    Neg,
    /// `min`
    Min,
    /// `max`
    Max,
    /// `popc`
    Popc,
    /// `clz`
    Clz,
    /// `bfind`
    Bfind,
    /// `fns`
    Fns,
    /// `brev`
    Brev,
    /// `bfe`
    Bfe,
    /// `bfi`
    Bfi,
    /// `szext`
    Szext,
    /// `bmsk`
    Bmsk,
    /// `dp4a`
    Dp4a,
    /// `dp2a`
    Dp2a,
    /// `addc`
    Addc,
    /// `subc`
    Subc,
    /// `madc`
    Madc,
    /// `testp`
    Testp,
    /// `copysign`
    Copysign,
    /// `fma`
    Fma,
    /// `rcp`
    Rcp,
    /// `sqrt`
    Sqrt,
    /// `rsqrt`
    Rsqrt,
    /// `sin`
    Sin,
    /// `cos`
    Cos,
    /// `lg2`
    Lg2,
    /// `ex2`
    Ex2,
    /// `tanh`
    Tanh,
    /// `set`
    Set,
    /// `setp`
    Setp,
    /// `selp`
    Selp,
    /// `slct`
    Slct,
    /// `and`
    And,
    /// `or`
    Or,
    /// `xor`
    Xor,
    /// `not`
    Not,
    /// `cnot`
    Cnot,
    /// `lop3`
    Lop3,
    /// `shf`
    Shf,
    /// `shl`
    Shl,
    /// `shr`
    Shr,
    /// `mov`
    Mov,
    /// `prmt`
    Prmt,
    /// `ld`
    Ld,
    /// `st`
    St,
    /// `prefetch`
    Prefetch,
    /// `prefetchu`
    Prefetchu,
    /// `isspacep`
    Isspacep,
    /// `cvta`
    Cvta,
    /// `cvt`
    Cvt,
    /// `shfl.sync`
    ShflSync,
    /// `bra`
    Bra,
    /// `brx.idx`
    BrxIdx,
    /// `call`
    Call,
    /// `ret`
    Ret,
    /// `exit`
    Exit,
    /// `trap`
    Trap,
    /// `brkpt`
    Brkpt,
    /// `bar.sync`
    BarSync,
    /// `bar.arrive`
    BarArrive,
    /// `bar.red`
    BarRed,
    /// `barrier.sync`
    BarrierSync,
    /// `barrier.arrive`
    BarrierArrive,
    /// `barrier.red`
    BarrierRed,
    /// `bar.warp.sync`
    BarWarpSync,
    /// `membar`
    Membar,
    /// `fence`
    Fence,
    /// `atom`
    Atom,
    /// `red`
    Red,
    /// `vote.sync`
    VoteSync,
    /// `match.sync`
    MatchSync,
    /// `activemask`
    Activemask,
    /// `redux.sync`
    ReduxSync,
    /// `nanosleep`
    Nanosleep,
    /// `pmevent`
    Pmevent,
}

impl Op {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        [
            "add",
            "sub",
            "mul",
            "mad",
            "mul24",
            "mad24",
            "sad",
            "div",
            "rem",
            "abs",
            "neg",
            "min",
            "max",
            "popc",
            "clz",
            "bfind",
            "fns",
            "brev",
            "bfe",
            "bfi",
            "szext",
            "bmsk",
            "dp4a",
            "dp2a",
            "addc",
            "subc",
            "madc",
            "testp",
            "copysign",
            "fma",
            "rcp",
            "sqrt",
            "rsqrt",
            "sin",
            "cos",
            "lg2",
            "ex2",
            "tanh",
            "set",
            "setp",
            "selp",
            "slct",
            "and",
            "or",
            "xor",
            "not",
            "cnot",
            "lop3",
            "shf",
            "shl",
            "shr",
            "mov",
            "prmt",
            "ld",
            "st",
            "prefetch",
            "prefetchu",
            "isspacep",
            "cvta",
            "cvt",
            "shfl.sync",
            "bra",
            "brx.idx",
            "call",
            "ret",
            "exit",
            "trap",
            "brkpt",
            "bar.sync",
            "bar.arrive",
            "bar.red",
            "barrier.sync",
            "barrier.arrive",
            "barrier.red",
            "bar.warp.sync",
            "membar",
            "fence",
            "atom",
            "red",
            "vote.sync",
            "match.sync",
            "activemask",
            "redux.sync",
            "nanosleep",
            "pmevent",
        ][self as usize]
    }
}

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScalarType {
    /// `u8`
    U8,
    /// `u16`
    U16,
    /// `u32`
    U32,
    /// `u64`
    U64,
    /// `s8`
    S8,
    /// `s16`
    S16,
    /// `s32`
    S32,
    /// `s64`
    S64,
    /// `b8`
    B8,
    /// `b16`
    B16,
    /// `b32`
    B32,
    /// `b64`
    B64,
    /// `b128`
    B128,
    /// `f16`
    F16,
    /// `bf16`
    Bf16,
    /// `tf32`
    Tf32,
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// `f16x2`
    F16x2,
    /// `bf16x2`
    Bf16x2,
    /// `f32x2`
    F32x2,
    /// `u16x2`
    U16x2,
    /// `s16x2`
    S16x2,
    /// `e4m3`
    E4m3,
    /// `e5m2`
    E5m2,
    /// `e4m3x2`
    E4m3x2,
    /// `e5m2x2`
    E5m2x2,
    /// `e2m1x2`
    E2m1x2,
    /// `e2m3x2`
    E2m3x2,
    /// `e3m2x2`
    E3m2x2,
    /// `ue8m0x2`
    Ue8m0x2,
    /// `pred`
    Pred,
    /// `texref`
    Texref,
    /// `samplerref`
    Samplerref,
    /// `surfref`
    Surfref,
}

impl ScalarType {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        [
            "u8",
            "u16",
            "u32",
            "u64",
            "s8",
            "s16",
            "s32",
            "s64",
            "b8",
            "b16",
            "b32",
            "b64",
            "b128",
            "f16",
            "bf16",
            "tf32",
            "f32",
            "f64",
            "f16x2",
            "bf16x2",
            "f32x2",
            "u16x2",
            "s16x2",
            "e4m3",
            "e5m2",
            "e4m3x2",
            "e5m2x2",
            "e2m1x2",
            "e2m3x2",
            "e3m2x2",
            "ue8m0x2",
            "pred",
            "texref",
            "samplerref",
            "surfref",
        ][self as usize]
    }
}

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpecialRegister {
    /// `%tid`
    Tid,
    /// `%tid.x`
    TidX,
    /// `%tid.y`
    TidY,
    /// `%tid.z`
    TidZ,
    /// `%tid.w`
    TidW,
    /// `%ntid`
    Ntid,
    /// `%ntid.x`
    NtidX,
    /// `%ntid.y`
    NtidY,
    /// `%ntid.z`
    NtidZ,
    /// `%ntid.w`
    NtidW,
    /// `%ctaid`
    Ctaid,
    /// `%ctaid.x`
    CtaidX,
    /// `%ctaid.y`
    CtaidY,
    /// `%ctaid.z`
    CtaidZ,
    /// `%ctaid.w`
    CtaidW,
    /// `%nctaid`
    Nctaid,
    /// `%nctaid.x`
    NctaidX,
    /// `%nctaid.y`
    NctaidY,
    /// `%nctaid.z`
    NctaidZ,
    /// `%nctaid.w`
    NctaidW,
    /// `%laneid`
    Laneid,
    /// `%warpid`
    Warpid,
    /// `%nwarpid`
    Nwarpid,
    /// `%smid`
    Smid,
    /// `%nsmid`
    Nsmid,
    /// `%gridid`
    Gridid,
    /// `%is_explicit_cluster`
    IsExplicitCluster,
    /// `%clusterid`
    Clusterid,
    /// `%clusterid.x`
    ClusteridX,
    /// `%clusterid.y`
    ClusteridY,
    /// `%clusterid.z`
    ClusteridZ,
    /// `%clusterid.w`
    ClusteridW,
    /// `%nclusterid`
    Nclusterid,
    /// `%nclusterid.x`
    NclusteridX,
    /// `%nclusterid.y`
    NclusteridY,
    /// `%nclusterid.z`
    NclusteridZ,
    /// `%nclusterid.w`
    NclusteridW,
    /// `%cluster_ctaid`
    ClusterCtaid,
    /// `%cluster_ctaid.x`
    ClusterCtaidX,
    /// `%cluster_ctaid.y`
    ClusterCtaidY,
    /// `%cluster_ctaid.z`
    ClusterCtaidZ,
    /// `%cluster_ctaid.w`
    ClusterCtaidW,
    /// `%cluster_nctaid`
    ClusterNctaid,
    /// `%cluster_nctaid.x`
    ClusterNctaidX,
    /// `%cluster_nctaid.y`
    ClusterNctaidY,
    /// `%cluster_nctaid.z`
    ClusterNctaidZ,
    /// `%cluster_nctaid.w`
    ClusterNctaidW,
    /// `%cluster_ctarank`
    ClusterCtarank,
    /// `%cluster_nctarank`
    ClusterNctarank,
    /// `%lanemask_eq`
    LanemaskEq,
    /// `%lanemask_le`
    LanemaskLe,
    /// `%lanemask_lt`
    LanemaskLt,
    /// `%lanemask_ge`
    LanemaskGe,
    /// `%lanemask_gt`
    LanemaskGt,
    /// `%clock`
    Clock,
    /// `%clock_hi`
    ClockHi,
    /// `%clock64`
    Clock64,
    /// `%pm0`
    Pm0,
    /// `%pm1`
    Pm1,
    /// `%pm2`
    Pm2,
    /// `%pm3`
    Pm3,
    /// `%pm4`
    Pm4,
    /// `%pm5`
    Pm5,
    /// `%pm6`
    Pm6,
    /// `%pm7`
    Pm7,
    /// `%pm0_64`
    Pm064,
    /// `%pm1_64`
    Pm164,
    /// `%pm2_64`
    Pm264,
    /// `%pm3_64`
    Pm364,
    /// `%pm4_64`
    Pm464,
    /// `%pm5_64`
    Pm564,
    /// `%pm6_64`
    Pm664,
    /// `%pm7_64`
    Pm764,
    /// `%envreg0`
    Envreg0,
    /// `%envreg1`
    Envreg1,
    /// `%envreg2`
    Envreg2,
    /// `%envreg3`
    Envreg3,
    /// `%envreg4`
    Envreg4,
    /// `%envreg5`
    Envreg5,
    /// `%envreg6`
    Envreg6,
    /// `%envreg7`
    Envreg7,
    /// `%envreg8`
    Envreg8,
    /// `%envreg9`
    Envreg9,
    /// `%envreg10`
    Envreg10,
    /// `%envreg11`
    Envreg11,
    /// `%envreg12`
    Envreg12,
    /// `%envreg13`
    Envreg13,
    /// `%envreg14`
    Envreg14,
    /// `%envreg15`
    Envreg15,
    /// `%envreg16`
    Envreg16,
    /// `%envreg17`
    Envreg17,
    /// `%envreg18`
    Envreg18,
    /// `%envreg19`
    Envreg19,
    /// `%envreg20`
    Envreg20,
    /// `%envreg21`
    Envreg21,
    /// `%envreg22`
    Envreg22,
    /// `%envreg23`
    Envreg23,
    /// `%envreg24`
    Envreg24,
    /// `%envreg25`
    Envreg25,
    /// `%envreg26`
    Envreg26,
    /// `%envreg27`
    Envreg27,
    /// `%envreg28`
    Envreg28,
    /// `%envreg29`
    Envreg29,
    /// `%envreg30`
    Envreg30,
    /// `%envreg31`
    Envreg31,
    /// `%globaltimer`
    Globaltimer,
    /// `%globaltimer_lo`
    GlobaltimerLo,
    /// `%globaltimer_hi`
    GlobaltimerHi,
    /// `%reserved_smem_offset_begin`
    ReservedSmemOffsetBegin,
    /// `%reserved_smem_offset_end`
    ReservedSmemOffsetEnd,
    /// `%reserved_smem_offset_cap`
    ReservedSmemOffsetCap,
    /// `%reserved_smem_offset_0`
    ReservedSmemOffset0,
    /// `%reserved_smem_offset_1`
    ReservedSmemOffset1,
    /// `%total_smem_size`
    TotalSmemSize,
    /// `%aggr_smem_size`
    AggrSmemSize,
    /// `%dynamic_smem_size`
    DynamicSmemSize,
    /// `%current_graph_exec`
    CurrentGraphExec,
}

impl SpecialRegister {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        [
            "%tid",
            "%tid.x",
            "%tid.y",
            "%tid.z",
            "%tid.w",
            "%ntid",
            "%ntid.x",
            "%ntid.y",
            "%ntid.z",
            "%ntid.w",
            "%ctaid",
            "%ctaid.x",
            "%ctaid.y",
            "%ctaid.z",
            "%ctaid.w",
            "%nctaid",
            "%nctaid.x",
            "%nctaid.y",
            "%nctaid.z",
            "%nctaid.w",
            "%laneid",
            "%warpid",
            "%nwarpid",
            "%smid",
            "%nsmid",
            "%gridid",
            "%is_explicit_cluster",
            "%clusterid",
            "%clusterid.x",
            "%clusterid.y",
            "%clusterid.z",
            "%clusterid.w",
            "%nclusterid",
            "%nclusterid.x",
            "%nclusterid.y",
            "%nclusterid.z",
            "%nclusterid.w",
            "%cluster_ctaid",
            "%cluster_ctaid.x",
            "%cluster_ctaid.y",
            "%cluster_ctaid.z",
            "%cluster_ctaid.w",
            "%cluster_nctaid",
            "%cluster_nctaid.x",
            "%cluster_nctaid.y",
            "%cluster_nctaid.z",
            "%cluster_nctaid.w",
            "%cluster_ctarank",
            "%cluster_nctarank",
            "%lanemask_eq",
            "%lanemask_le",
            "%lanemask_lt",
            "%lanemask_ge",
            "%lanemask_gt",
            "%clock",
            "%clock_hi",
            "%clock64",
            "%pm0",
            "%pm1",
            "%pm2",
            "%pm3",
            "%pm4",
            "%pm5",
            "%pm6",
            "%pm7",
            "%pm0_64",
            "%pm1_64",
            "%pm2_64",
            "%pm3_64",
            "%pm4_64",
            "%pm5_64",
            "%pm6_64",
            "%pm7_64",
            "%envreg0",
            "%envreg1",
            "%envreg2",
            "%envreg3",
            "%envreg4",
            "%envreg5",
            "%envreg6",
            "%envreg7",
            "%envreg8",
            "%envreg9",
            "%envreg10",
            "%envreg11",
            "%envreg12",
            "%envreg13",
            "%envreg14",
            "%envreg15",
            "%envreg16",
            "%envreg17",
            "%envreg18",
            "%envreg19",
            "%envreg20",
            "%envreg21",
            "%envreg22",
            "%envreg23",
            "%envreg24",
            "%envreg25",
            "%envreg26",
            "%envreg27",
            "%envreg28",
            "%envreg29",
            "%envreg30",
            "%envreg31",
            "%globaltimer",
            "%globaltimer_lo",
            "%globaltimer_hi",
            "%reserved_smem_offset_begin",
            "%reserved_smem_offset_end",
            "%reserved_smem_offset_cap",
            "%reserved_smem_offset_0",
            "%reserved_smem_offset_1",
            "%total_smem_size",
            "%aggr_smem_size",
            "%dynamic_smem_size",
            "%current_graph_exec",
        ][self as usize]
    }
}

/// Modifier group: rounding of a float result or conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rounding {
    /// `rn`
    Rn,
    /// `rz`
    Rz,
    /// `rm`
    Rm,
    /// `rp`
    Rp,
    /// `rna`
    Rna,
    /// `rs`
    Rs,
    /// `rni`
    Rni,
    /// `rzi`
    Rzi,
    /// `rmi`
    Rmi,
    /// `rpi`
    Rpi,
}

impl Rounding {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["rn", "rz", "rm", "rp", "rna", "rs", "rni", "rzi", "rmi", "rpi"][self as usize]
    }
}

/// Modifier group: approximation class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// `approx`
    Approx,
    /// `full`
    Full,
}

impl Precision {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["approx", "full"][self as usize]
    }
}

/// Modifier group: comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compare {
    /// `eq`
    Eq,
    /// `ne`
    Ne,
    /// `lt`
    Lt,
    /// `le`
    Le,
    /// `gt`
    Gt,
    /// `ge`
    Ge,
    /// `lo`
    Lo,
    /// `ls`
    Ls,
    /// `hi`
    Hi,
    /// `hs`
    Hs,
    /// `equ`
    Equ,
    /// `neu`
    Neu,
    /// `ltu`
    Ltu,
    /// `leu`
    Leu,
    /// `gtu`
    Gtu,
    /// `geu`
    Geu,
    /// `num`
    Num,
    /// `nan`
    Nan,
}

impl Compare {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        [
            "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu",
            "num", "nan",
        ][self as usize]
    }
}

/// Modifier group: combination of a comparison with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BoolOp {
    /// `and`
    And,
    /// `or`
    Or,
    /// `xor`
    Xor,
}

impl BoolOp {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["and", "or", "xor"][self as usize]
    }
}

/// Modifier group: which part of a product or of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MulMode {
    /// `lo`
    Lo,
    /// `hi`
    Hi,
    /// `wide`
    Wide,
}

impl MulMode {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["lo", "hi", "wide"][self as usize]
    }
}

/// Modifier group: direction of a funnel shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShiftDirection {
    /// `l`
    L,
    /// `r`
    R,
}

impl ShiftDirection {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["l", "r"][self as usize]
    }
}

/// Modifier group: shift amounts beyond the width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShiftMode {
    /// `wrap`
    Wrap,
    /// `clamp`
    Clamp,
}

impl ShiftMode {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["wrap", "clamp"][self as usize]
    }
}

/// Modifier group: byte permutation mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrmtMode {
    /// `f4e`
    F4e,
    /// `b4e`
    B4e,
    /// `rc8`
    Rc8,
    /// `ecl`
    Ecl,
    /// `ecr`
    Ecr,
    /// `rc16`
    Rc16,
}

impl PrmtMode {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"][self as usize]
    }
}

/// Modifier group: float class test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Test {
    /// `finite`
    Finite,
    /// `infinite`
    Infinite,
    /// `number`
    Number,
    /// `notanumber`
    Notanumber,
    /// `normal`
    Normal,
    /// `subnormal`
    Subnormal,
}

impl Test {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["finite", "infinite", "number", "notanumber", "normal", "subnormal"][self as usize]
    }
}

/// Modifier group: state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// `const`
    Const,
    /// `global`
    Global,
    /// `local`
    Local,
    /// `param`
    Param,
    /// `param::entry`
    ParamEntry,
    /// `param::func`
    ParamFunc,
    /// `shared`
    Shared,
    /// `shared::cta`
    SharedCta,
    /// `shared::cluster`
    SharedCluster,
}

impl Space {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["const", "global", "local", "param", "param::entry", "param::func", "shared", "shared::cta", "shared::cluster"]
            [self as usize]
    }
}

/// Modifier group: memory ordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Semantics {
    /// `weak`
    Weak,
    /// `volatile`
    Volatile,
    /// `relaxed`
    Relaxed,
    /// `acquire`
    Acquire,
    /// `release`
    Release,
    /// `acq_rel`
    AcqRel,
    /// `sc`
    Sc,
}

impl Semantics {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "sc"][self as usize]
    }
}

/// Modifier group: threads among which an operation is morally strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `cta`
    Cta,
    /// `cluster`
    Cluster,
    /// `gpu`
    Gpu,
    /// `sys`
    Sys,
}

impl Scope {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["cta", "cluster", "gpu", "sys"][self as usize]
    }
}

/// Modifier group: scope of membar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MembarLevel {
    /// `cta`
    Cta,
    /// `gl`
    Gl,
    /// `sys`
    Sys,
}

impl MembarLevel {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["cta", "gl", "sys"][self as usize]
    }
}

/// Modifier group: cache operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheOp {
    /// `ca`
    Ca,
    /// `cg`
    Cg,
    /// `cs`
    Cs,
    /// `lu`
    Lu,
    /// `cv`
    Cv,
    /// `wb`
    Wb,
    /// `wt`
    Wt,
}

impl CacheOp {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["ca", "cg", "cs", "lu", "cv", "wb", "wt"][self as usize]
    }
}

/// Modifier group: level 1 eviction priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvictL1 {
    /// `L1::evict_normal`
    L1EvictNormal,
    /// `L1::evict_unchanged`
    L1EvictUnchanged,
    /// `L1::evict_first`
    L1EvictFirst,
    /// `L1::evict_last`
    L1EvictLast,
    /// `L1::no_allocate`
    L1NoAllocate,
}

impl EvictL1 {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"]
            [self as usize]
    }
}

/// Modifier group: level 2 eviction priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvictL2 {
    /// `L2::evict_normal`
    L2EvictNormal,
    /// `L2::evict_first`
    L2EvictFirst,
    /// `L2::evict_last`
    L2EvictLast,
}

impl EvictL2 {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["L2::evict_normal", "L2::evict_first", "L2::evict_last"][self as usize]
    }
}

/// Modifier group: level 2 prefetch size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrefetchSize {
    /// `L2::64B`
    L264B,
    /// `L2::128B`
    L2128B,
    /// `L2::256B`
    L2256B,
}

impl PrefetchSize {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["L2::64B", "L2::128B", "L2::256B"][self as usize]
    }
}

/// Modifier group: elements accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vector {
    /// `v2`
    V2,
    /// `v4`
    V4,
    /// `v8`
    V8,
}

impl Vector {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["v2", "v4", "v8"][self as usize]
    }
}

/// Modifier group: operation of an atomic or a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AtomOp {
    /// `and`
    And,
    /// `or`
    Or,
    /// `xor`
    Xor,
    /// `cas`
    Cas,
    /// `exch`
    Exch,
    /// `add`
    Add,
    /// `inc`
    Inc,
    /// `dec`
    Dec,
    /// `min`
    Min,
    /// `max`
    Max,
}

impl AtomOp {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["and", "or", "xor", "cas", "exch", "add", "inc", "dec", "min", "max"][self as usize]
    }
}

/// Modifier group: reduction over a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BarrierOp {
    /// `popc`
    Popc,
    /// `and`
    And,
    /// `or`
    Or,
}

impl BarrierOp {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["popc", "and", "or"][self as usize]
    }
}

/// Modifier group: source lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShflMode {
    /// `up`
    Up,
    /// `down`
    Down,
    /// `bfly`
    Bfly,
    /// `idx`
    Idx,
}

impl ShflMode {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["up", "down", "bfly", "idx"][self as usize]
    }
}

/// Modifier group: vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VoteMode {
    /// `all`
    All,
    /// `any`
    Any,
    /// `uni`
    Uni,
    /// `ballot`
    Ballot,
}

impl VoteMode {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["all", "any", "uni", "ballot"][self as usize]
    }
}

/// Modifier group: match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchMode {
    /// `any`
    Any,
    /// `all`
    All,
}

impl MatchMode {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["any", "all"][self as usize]
    }
}

/// Modifier group: level to fetch into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrefetchLevel {
    /// `L1`
    L1,
    /// `L2`
    L2,
    /// `L2::evict_last`
    L2EvictLast,
    /// `L2::evict_normal`
    L2EvictNormal,
}

impl PrefetchLevel {
    /// As PTX writes it.
    pub fn name(self) -> &'static str {
        ["L1", "L2", "L2::evict_last", "L2::evict_normal"][self as usize]
    }
}

/// The modifiers of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modifiers {
    /// Rounding of a float result or conversion.
    pub rounding: Option<Rounding>,
    /// Flush subnormal inputs and results to zero.
    pub ftz: bool,
    /// Clamp: integers to the type's range, floats to [0, 1].
    pub saturate: bool,
    /// Clamp to the largest finite value.
    pub saturate_finite: bool,
    /// Clamp negative results to zero.
    pub relu: bool,
    /// Treat out-of-bounds NaN as zero in fma.
    pub oob: bool,
    /// Keep subnormals of half-precision atomics.
    pub noftz: bool,
    /// Approximation class.
    pub precision: Option<Precision>,
    /// Propagate NaN (.NaN).
    pub nan: bool,
    /// Use absolute values.
    pub abs: bool,
    /// Sign of the result is the xor of the inputs' signs.
    pub xorsign: bool,
    /// Comparison.
    pub compare: Option<Compare>,
    /// Combination of a comparison with a predicate.
    pub bool_op: Option<BoolOp>,
    /// Which part of a product or of an operand.
    pub mul_mode: Option<MulMode>,
    /// Write the carry flag.
    pub carry_out: bool,
    /// Direction of a funnel shift.
    pub shift_direction: Option<ShiftDirection>,
    /// Shift amounts beyond the width.
    pub shift_mode: Option<ShiftMode>,
    /// Bfind yields the shift amount.
    pub shift_amount: bool,
    /// Byte permutation mode.
    pub prmt_mode: Option<PrmtMode>,
    /// Float class test.
    pub test: Option<Test>,
    /// State space.
    pub space: Option<Space>,
    /// Convert from generic to a state space.
    pub to: bool,
    /// Memory ordering.
    pub semantics: Option<Semantics>,
    /// Memory-mapped I/O access.
    pub mmio: bool,
    /// Threads among which an operation is morally strong.
    pub scope: Option<Scope>,
    /// Scope of membar.
    pub membar_level: Option<MembarLevel>,
    /// Cache operator.
    pub cache_op: Option<CacheOp>,
    /// Read-only data cache.
    pub non_coherent: bool,
    /// Level 1 eviction priority.
    pub evict_l1: Option<EvictL1>,
    /// Level 2 eviction priority.
    pub evict_l2: Option<EvictL2>,
    /// A cache policy operand follows.
    pub cache_hint: bool,
    /// Level 2 prefetch size.
    pub prefetch_size: Option<PrefetchSize>,
    /// Unified address of a constant (.unified).
    pub unified: bool,
    /// Elements accessed.
    pub vector: Option<Vector>,
    /// Operation of an atomic or a reduction.
    pub atom_op: Option<AtomOp>,
    /// Reduction over a barrier.
    pub barrier_op: Option<BarrierOp>,
    /// All threads of the warp execute the same instruction.
    pub aligned: bool,
    /// Source lane.
    pub shfl_mode: Option<ShflMode>,
    /// Vote.
    pub vote_mode: Option<VoteMode>,
    /// Match.
    pub match_mode: Option<MatchMode>,
    /// All active threads agree.
    pub uniform: bool,
    /// Level to fetch into.
    pub prefetch_level: Option<PrefetchLevel>,
}
impl ScalarType {
    /// Width of a value in bits.
    pub fn bits(self) -> u32 {
        [
            8, 16, 32, 64, 8, 16, 32, 64, 8, 16, 32, 64, 128, 16, 16, 32, 32, 64, 32, 32, 64, 32, 32, 8, 8, 16, 16, 8,
            16, 16, 16, 1, 64, 64, 64,
        ][self as usize]
    }
}
