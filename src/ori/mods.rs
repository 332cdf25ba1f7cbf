//! Short names for modifier values, so that lowering code reads like SASS.
//!
//! Each constant is a value of a modifier kind in `tables/encoding/modifiers.ron`.

use crate::tables::ptx::ScalarType;
use crate::tables::{Mod, value};

/// One modifier: kind and value.
pub type M = (Mod, u8);

// Integers.
pub const X: M = (Mod::X, value::x::X);
pub const EX: M = (Mod::Ex, value::ex::EX);
pub const U32: M = (Mod::Sign, value::sign::U32);
pub const S32: M = (Mod::Sign, value::sign::NONE);
pub const LT: M = (Mod::Cmp, value::cmp::LT);
pub const EQ: M = (Mod::Cmp, value::cmp::EQ);
pub const LE: M = (Mod::Cmp, value::cmp::LE);
pub const GT: M = (Mod::Cmp, value::cmp::GT);
pub const NE: M = (Mod::Cmp, value::cmp::NE);
pub const GE: M = (Mod::Cmp, value::cmp::GE);
pub const AND: M = (Mod::Bool, value::bool::AND);
pub const OR: M = (Mod::Bool, value::bool::OR);
pub const XOR: M = (Mod::Bool, value::bool::XOR);
pub const FLO_SH: M = (Mod::Sh, value::sh::SH);

// Shifts and permutations.
const LEFT: M = (Mod::Dir, value::dir::L);
const RIGHT: M = (Mod::Dir, value::dir::R);
pub const WRAP: M = (Mod::Wrap, value::wrap::W);
const HI: M = (Mod::Hi, value::hi::HI);
const TYPE_U32: M = (Mod::Itype, value::itype::U32);
const TYPE_S32: M = (Mod::Itype, value::itype::S32);
const TYPE_U64: M = (Mod::Itype, value::itype::U64);
const TYPE_S64: M = (Mod::Itype, value::itype::S64);
pub const SHF_L: [M; 2] = [LEFT, TYPE_U32];
pub const SHF_L_U32_HI: [M; 3] = [LEFT, TYPE_U32, HI];
pub const SHF_L_W_U32_HI: [M; 4] = [LEFT, WRAP, TYPE_U32, HI];
pub const SHF_L_U64_HI: [M; 3] = [LEFT, TYPE_U64, HI];
pub const SHF_R_U32: [M; 2] = [RIGHT, TYPE_U32];
pub const SHF_R_W_U32: [M; 3] = [RIGHT, WRAP, TYPE_U32];
pub const SHF_R_U32_HI: [M; 3] = [RIGHT, TYPE_U32, HI];
pub const SHF_R_S32_HI: [M; 3] = [RIGHT, TYPE_S32, HI];
pub const SHF_R_U64: [M; 2] = [RIGHT, TYPE_U64];
pub const SHF_R_S64: [M; 2] = [RIGHT, TYPE_S64];
pub const PRMT_F4E: M = (Mod::Prmt, value::prmt::F4E);
pub const PRMT_B4E: M = (Mod::Prmt, value::prmt::B4E);
pub const PRMT_RC8: M = (Mod::Prmt, value::prmt::RC8);
pub const PRMT_ECL: M = (Mod::Prmt, value::prmt::ECL);
pub const PRMT_ECR: M = (Mod::Prmt, value::prmt::ECR);
pub const PRMT_RC16: M = (Mod::Prmt, value::prmt::RC16);

// Floats.
pub const FTZ: M = (Mod::Ftz, value::ftz::FTZ);
pub const OOB: M = (Mod::Ftz, value::ftz::OOB);
pub const SAT: M = (Mod::Sat, value::sat::SAT);
pub const RM: M = (Mod::Rnd, value::rnd::RM);
pub const RP: M = (Mod::Rnd, value::rnd::RP);
pub const RZ: M = (Mod::Rnd, value::rnd::RZ);
pub const RS: M = (Mod::Rnd, value::rnd::RS);
pub const FLOOR: M = (Mod::Round, value::round::FLOOR);
pub const CEIL: M = (Mod::Round, value::round::CEIL);
pub const TRUNC: M = (Mod::Round, value::round::TRUNC);
pub const FEQ: M = (Mod::Cmp, value::cmp::EQ);
pub const FLT: M = (Mod::Cmp, value::cmp::LT);
pub const FLE: M = (Mod::Cmp, value::cmp::LE);
pub const FGT: M = (Mod::Cmp, value::cmp::GT);
pub const FGE: M = (Mod::Cmp, value::cmp::GE);
pub const FEQU: M = (Mod::Cmp, value::cmp::EQU);
pub const FNEU: M = (Mod::Cmp, value::cmp::NEU);
pub const FGEU: M = (Mod::Cmp, value::cmp::GEU);
pub const FNUM: M = (Mod::Cmp, value::cmp::NUM);
pub const FNAN: M = (Mod::Cmp, value::cmp::NAN);
pub const FMIN: M = (Mod::Cmp, value::cmp::MIN);
pub const FMAX: M = (Mod::Cmp, value::cmp::MAX);
pub const FMNMX_NAN: M = (Mod::Nan, value::nan::NAN);
pub const XORSIGN: M = (Mod::Xorsign, value::xorsign::XORSIGN);
pub const RELU: M = (Mod::Relu, value::relu::RELU);
pub const BF16_V2: M = (Mod::Packed, value::packed::BF16_V2);
pub const FLOAT_RESULT: M = (Mod::Bf, value::bf::BF);
pub const LOW_A: M = (Mod::SwzA, value::swz_a::H0_H0);
pub const LOW_B: M = (Mod::SwzB, value::swz_b::H0_H0);
pub const MUFU_F16: M = (Mod::Fmt, value::fmt::F16);
pub const MUFU_BF16: M = (Mod::Fmt, value::fmt::BF16);
pub const SATFINITE: M = (Mod::Satfinite, value::satfinite::SATFINITE);
pub const PACK_BF16: M = (Mod::F2fp, value::f2fp::BF16);
pub const PACK_TF32: M = (Mod::F2fp, value::f2fp::TF32);
pub const UNPACK_F16: M = (Mod::F2fp, value::f2fp::F16);
pub const PACK_MERGE: M = (Mod::Pack, value::pack::PACK_AB_MERGE_C);
pub const UNPACK_MERGE: M = (Mod::Pack, value::pack::UNPACK_B_MERGE_C);
pub const UNPACK: M = (Mod::Pack, value::pack::UNPACK_B);
pub const PACK_B: M = (Mod::Pack, value::pack::PACK_B);
pub const FROM_F16: M = (Mod::Src, value::src::F16);
pub const FROM_BF16: M = (Mod::Src, value::src::BF16);
pub const VTYPE_S32: M = (Mod::Vtype, value::vtype::NONE);
pub const VTYPE_U32: M = (Mod::Vtype, value::vtype::U32);
pub const VTYPE_U16X2: M = (Mod::Vtype, value::vtype::U16X2);
pub const VTYPE_S16X2: M = (Mod::Vtype, value::vtype::S16X2);
pub const PRODUCT_HI: M = (Mod::Product, value::product::HI);
pub const VTYPE_U8X4: M = (Mod::Vtype, value::vtype::U8X4);
pub const VTYPE_S8X4: M = (Mod::Vtype, value::vtype::S8X4);
pub const S16X2_LANES: M = (Mod::Half, value::half::S16X2);
pub const U8X4_LANES: M = (Mod::Half, value::half::U8X4);
pub const S8X4_LANES: M = (Mod::Half, value::half::S8X4);
pub const CLAMPED: M = (Mod::Isat, value::isat::ISAT);
pub const X16X2: M = (Mod::Half, value::half::_16X2);
pub const DOT_2A_LO: M = (Mod::Ix, value::ix::_2A_LO);
pub const DOT_2A_HI: M = (Mod::Ix, value::ix::_2A_HI);
pub const F2I_NTZ: M = (Mod::Ntz, value::ntz::NTZ);
pub const MUFU_COS: M = (Mod::Mufu, value::mufu::COS);
pub const MUFU_SIN: M = (Mod::Mufu, value::mufu::SIN);
pub const MUFU_EX2: M = (Mod::Mufu, value::mufu::EX2);
pub const MUFU_LG2: M = (Mod::Mufu, value::mufu::LG2);
pub const MUFU_RCP: M = (Mod::Mufu, value::mufu::RCP);
pub const MUFU_RSQ: M = (Mod::Mufu, value::mufu::RSQ);
pub const MUFU_RCP64H: M = (Mod::Mufu, value::mufu::RCP64H);
pub const MUFU_RSQ64H: M = (Mod::Mufu, value::mufu::RSQ64H);
pub const MUFU_SQRT: M = (Mod::Mufu, value::mufu::SQRT);
pub const MUFU_TANH: M = (Mod::Mufu, value::mufu::TANH);

// Memory.
pub const E: M = (Mod::E, value::e::E);
pub const MODE_REL: M = (Mod::Mode, value::mode::REL);
pub const MODE_ABS: M = (Mod::Mode, value::mode::ABS);
pub const NOINC: M = (Mod::Noinc, value::noinc::NOINC);
pub const NODEC: M = (Mod::Nodec, value::nodec::NODEC);
pub const SIZE_32: M = (Mod::Size, value::size::NONE);
pub const SIZE_64: M = (Mod::Size, value::size::_64);
pub const SIZE_128: M = (Mod::Size, value::size::_128);
pub const SIZE_U8: M = (Mod::Size, value::size::U8);
pub const SIZE_S8: M = (Mod::Size, value::size::S8);
pub const SIZE_U16: M = (Mod::Size, value::size::U16);
pub const SIZE_S16: M = (Mod::Size, value::size::S16);
pub const SIZE_256: M = (Mod::Size, value::size::_256);
pub const CONSTANT: M = (Mod::Mem, value::mem::CONSTANT);
pub const MMIO_SYS: M = (Mod::Mem, value::mem::MMIO_SYS);
pub const HINT: M = (Mod::Hint, value::hint::HINT);
pub const PACKED_BF16: M = (Mod::Packed, value::packed::BF16_V2);
pub const ZFILL: M = (Mod::Zfill, value::zfill::ZFILL);
pub const LE_COUNT: M = (Mod::Le, value::le::LE);
pub const CCTL_PF1: M = (Mod::Cctl, value::cctl::PF1);
pub const CCTL_PF2: M = (Mod::Cctl, value::cctl::PF2);
pub const CCTL_PML2: M = (Mod::Cctl, value::cctl::PML2);
pub const CCTL_DML2: M = (Mod::Cctl, value::cctl::DML2);
pub const CCTL_RML2: M = (Mod::Cctl, value::cctl::RML2);
pub const MEMBAR_SC: M = (Mod::Fence, value::fence::SC);
pub const MEMBAR_ALL: M = (Mod::Fence, value::fence::ALL);
pub const SCOPE_CTA: M = (Mod::Scope, value::scope::CTA);
pub const SCOPE_VC: M = (Mod::Scope, value::scope::VC);
pub const SCOPE_GPU: M = (Mod::Scope, value::scope::GPU);
pub const SCOPE_SYS: M = (Mod::Scope, value::scope::SYS);
pub const TRYWAIT: M = (Mod::Trywait, value::trywait::TRYWAIT);
pub const OPTOUT: M = (Mod::Optout, value::optout::OPTOUT);
pub const ARRIVE_RED: M = (Mod::ArriveRed, value::arrive_red::RED);
pub const ARRIVE_ONE: M = (Mod::ArriveCount, value::arrive_count::A1T0);
pub const ARRIVE_SOME: M = (Mod::ArriveCount, value::arrive_count::ART0);
pub const EXPECT_ONE: M = (Mod::ArriveCount, value::arrive_count::A0T1);
pub const EXPECT_SOME: M = (Mod::ArriveCount, value::arrive_count::A0TR);
pub const COMPLETE_SOME: M = (Mod::ArriveCount, value::arrive_count::A0TX);
pub const COPIES_ARRIVE: M = (Mod::ArriveCount, value::arrive_count::ARVCNT);
pub const COPIES_BYTES: M = (Mod::ArriveCount, value::arrive_count::TRANSCNT);
pub const BYTE_MASK: M = (Mod::ByteMask, value::byte_mask::DST_G_BYTE_MASK);
pub const MULTICAST: M = (Mod::Multicast, value::multicast::MULTICAST);
pub const TWO_BLOCKS: M = (Mod::Cta2, value::cta2::_2CTA);
pub const PREFETCH_MAP: M = (Mod::TmaCctl, value::tma_cctl::PF);
pub const DROP_MAP: M = (Mod::TmaCctl, value::tma_cctl::IV);
pub const CONSTANT_CACHE: M = (Mod::CctlLdcu, value::cctl_ldcu::LDCU);
pub const DEEP: M = (Mod::Deep, value::deep::DEEP);
pub const CCTL_IVALL: M = (Mod::Cctl, value::cctl::IVALL);
pub const AOP_POPC_INC: M = (Mod::Aop, value::aop::POPC_INC_32);
pub const AOP_ADD: M = (Mod::Aop, value::aop::ADD);
pub const AOP_MIN: M = (Mod::Aop, value::aop::MIN);
pub const AOP_MAX: M = (Mod::Aop, value::aop::MAX);
pub const AOP_INC: M = (Mod::Aop, value::aop::INC);
pub const AOP_DEC: M = (Mod::Aop, value::aop::DEC);
pub const AOP_AND: M = (Mod::Aop, value::aop::AND);
pub const AOP_OR: M = (Mod::Aop, value::aop::OR);
pub const AOP_XOR: M = (Mod::Aop, value::aop::XOR);
pub const AOP_EXCH: M = (Mod::Aop, value::aop::EXCH);
pub const AOP_CAS: M = (Mod::Aop, value::aop::CAS);

// One number for both lanes of an operation on two packed f32.
pub const PAIR_A_ONE: M = (Mod::PairA, value::pair_a::F32);
pub const PAIR_B_ONE: M = (Mod::PairB, value::pair_b::F32);
pub const PAIR_C_ONE: M = (Mod::PairC, value::pair_c::F32);

// Warps and blocks.
pub const SHFL_IDX: M = (Mod::Shfl, value::shfl::IDX);
pub const SHFL_UP: M = (Mod::Shfl, value::shfl::UP);
pub const SHFL_DOWN: M = (Mod::Shfl, value::shfl::DOWN);
pub const SHFL_BFLY: M = (Mod::Shfl, value::shfl::BFLY);
pub const VOTE_ALL: M = (Mod::Vote, value::vote::ALL);
pub const VOTE_ANY: M = (Mod::Vote, value::vote::ANY);
pub const REDUX_SUM: M = (Mod::Redux, value::redux::SUM);
pub const REDUX_OR: M = (Mod::Redux, value::redux::OR);
pub const REDUX_XOR: M = (Mod::Redux, value::redux::XOR);
pub const REDUX_AND: M = (Mod::Redux, value::redux::NONE);
pub const REDUX_MIN: M = (Mod::Redux, value::redux::MIN);
pub const REDUX_MAX: M = (Mod::Redux, value::redux::MAX);
pub const REDUX_MIN_ABS: M = (Mod::Redux, value::redux::MINABS);
pub const REDUX_MAX_ABS: M = (Mod::Redux, value::redux::MAXABS);
pub const REDUX_S32: M = (Mod::Rtype, value::rtype::S32);
pub const REDUX_F32: M = (Mod::Rtype, value::rtype::F32);
pub const REDUX_NAN: M = (Mod::Nan, value::nan::NAN);
pub const MATCH_ANY: M = (Mod::Matching, value::matching::ANY);
/// Of a SYNCMASK: all lanes are at this very instruction, as `.aligned` says.
pub const ALL_AT_ONCE: M = (Mod::All, value::all::ALL);
pub const BAR_SYNC: M = (Mod::Barop, value::barop::SYNC);
pub const BAR_ARV: M = (Mod::Barop, value::barop::ARV);
pub const BAR_RED: M = (Mod::Barop, value::barop::RED);
pub const BAR_POPC: M = (Mod::Bred, value::bred::POPC);
pub const BAR_AND: M = (Mod::Bred, value::bred::AND);
pub const BAR_OR: M = (Mod::Bred, value::bred::OR);
pub const BAR_DEFER: M = (Mod::Defer, value::defer::DEFER_BLOCKING);
pub const BPT_TRAP: M = (Mod::Bpt, value::bpt::TRAP);
pub const QSPC_SHARED: M = (Mod::Space, value::space::S);
pub const QSPC_GLOBAL: M = (Mod::Space, value::space::G);
pub const QSPC_CLUSTER: M = (Mod::Space, value::space::D);
pub const QSPC_LOCAL: M = (Mod::Space, value::space::L);

// Conversions: without a modifier the type is f32 or s32.
pub const F2I_U32: M = (Mod::Dst, value::dst::U32);
pub const I2F_U32: M = (Mod::Src, value::src::U32);
pub const TO_F64: M = (Mod::Dst, value::dst::F64);

/// Signedness of the first operand of a dot product.
pub fn dot_sign_a(signed: bool) -> M {
    (Mod::Sa, if signed { value::sa::S8 } else { value::sa::U8 })
}

/// Signedness of the second operand of a dot product.
pub fn dot_sign_b(signed: bool) -> M {
    (Mod::Sb, if signed { value::sb::S8 } else { value::sb::U8 })
}

/// Result type of F2I.
pub fn f2i_dst(ty: ScalarType) -> M {
    let value = match ty {
        ScalarType::U8 => value::dst::U8,
        ScalarType::S8 => value::dst::S8,
        ScalarType::U16 => value::dst::U16,
        ScalarType::S16 => value::dst::S16,
        ScalarType::U32 => value::dst::U32,
        ScalarType::U64 => value::dst::U64,
        ScalarType::S64 => value::dst::S64,
        _ => value::dst::NONE,
    };
    (Mod::Dst, value)
}

/// Source type of I2F, of 32 bits or more.
pub fn i2f_src(ty: ScalarType) -> M {
    let value = match ty {
        ScalarType::U32 => value::src::U32,
        ScalarType::U64 => value::src::U64,
        ScalarType::S64 => value::src::S64,
        _ => value::src::NONE,
    };
    (Mod::Src, value)
}

/// Source type of F2I and F2F.
pub fn float_src(ty: ScalarType) -> M {
    let value = match ty {
        ScalarType::F64 => value::src::F64,
        ScalarType::F16 => value::src::F16,
        _ => value::src::NONE,
    };
    (Mod::Src, value)
}

/// Result type of I2F and F2F.
pub fn float_dst(ty: ScalarType) -> M {
    let value = match ty {
        ScalarType::F64 => value::dst::F64,
        ScalarType::F16 => value::dst::F16,
        ScalarType::Bf16 => value::dst::BF16,
        _ => value::dst::NONE,
    };
    (Mod::Dst, value)
}
