//! Modifier values under short names, so that lowerings read like SASS.
//!
//! Each constant is one value of one kind of `tables/encoding/modifiers.ron`; a kind that is renamed there changes its lines here.

use crate::tables::ptx::ScalarType;
use crate::tables::{Mod, value};

/// One modifier: kind and value.
pub(super) type M = (Mod, u8);

// Integers.
pub(super) const X: M = (Mod::X, value::x::X);
pub(super) const EX: M = (Mod::Ex, value::ex::EX);
pub(super) const U32: M = (Mod::Sign, value::sign::U32);
pub(super) const S32: M = (Mod::Sign, value::sign::NONE);
pub(super) const LT: M = (Mod::Cmp, value::cmp::LT);
pub(super) const EQ: M = (Mod::Cmp, value::cmp::EQ);
pub(super) const LE: M = (Mod::Cmp, value::cmp::LE);
pub(super) const GT: M = (Mod::Cmp, value::cmp::GT);
pub(super) const NE: M = (Mod::Cmp, value::cmp::NE);
pub(super) const GE: M = (Mod::Cmp, value::cmp::GE);
pub(super) const AND: M = (Mod::Bool, value::bool::AND);
pub(super) const OR: M = (Mod::Bool, value::bool::OR);
pub(super) const XOR: M = (Mod::Bool, value::bool::XOR);
pub(super) const FLO_SH: M = (Mod::Sh, value::sh::SH);

// Shifts and permutations.
const LEFT: M = (Mod::Dir, value::dir::L);
const RIGHT: M = (Mod::Dir, value::dir::R);
pub(super) const WRAP: M = (Mod::Wrap, value::wrap::W);
const HI: M = (Mod::Hi, value::hi::HI);
const TYPE_U32: M = (Mod::Itype, value::itype::U32);
const TYPE_S32: M = (Mod::Itype, value::itype::S32);
const TYPE_U64: M = (Mod::Itype, value::itype::U64);
const TYPE_S64: M = (Mod::Itype, value::itype::S64);
pub(super) const SHF_L: [M; 2] = [LEFT, TYPE_U32];
pub(super) const SHF_L_U32_HI: [M; 3] = [LEFT, TYPE_U32, HI];
pub(super) const SHF_L_W_U32_HI: [M; 4] = [LEFT, WRAP, TYPE_U32, HI];
pub(super) const SHF_L_U64_HI: [M; 3] = [LEFT, TYPE_U64, HI];
pub(super) const SHF_R_U32: [M; 2] = [RIGHT, TYPE_U32];
pub(super) const SHF_R_W_U32: [M; 3] = [RIGHT, WRAP, TYPE_U32];
pub(super) const SHF_R_U32_HI: [M; 3] = [RIGHT, TYPE_U32, HI];
pub(super) const SHF_R_S32_HI: [M; 3] = [RIGHT, TYPE_S32, HI];
pub(super) const SHF_R_U64: [M; 2] = [RIGHT, TYPE_U64];
pub(super) const SHF_R_S64: [M; 2] = [RIGHT, TYPE_S64];
pub(super) const PRMT_F4E: M = (Mod::Prmt, value::prmt::F4E);
pub(super) const PRMT_B4E: M = (Mod::Prmt, value::prmt::B4E);
pub(super) const PRMT_RC8: M = (Mod::Prmt, value::prmt::RC8);
pub(super) const PRMT_ECL: M = (Mod::Prmt, value::prmt::ECL);
pub(super) const PRMT_ECR: M = (Mod::Prmt, value::prmt::ECR);
pub(super) const PRMT_RC16: M = (Mod::Prmt, value::prmt::RC16);

// Floats.
pub(super) const FTZ: M = (Mod::Ftz, value::ftz::FTZ);
pub(super) const OOB: M = (Mod::Ftz, value::ftz::OOB);
pub(super) const SAT: M = (Mod::Sat, value::sat::SAT);
pub(super) const RM: M = (Mod::Rnd, value::rnd::RM);
pub(super) const RP: M = (Mod::Rnd, value::rnd::RP);
pub(super) const RZ: M = (Mod::Rnd, value::rnd::RZ);
pub(super) const RS: M = (Mod::Rnd, value::rnd::RS);
pub(super) const FLOOR: M = (Mod::Round, value::round::FLOOR);
pub(super) const CEIL: M = (Mod::Round, value::round::CEIL);
pub(super) const TRUNC: M = (Mod::Round, value::round::TRUNC);
pub(super) const FEQ: M = (Mod::Cmp, value::cmp::EQ);
pub(super) const FLT: M = (Mod::Cmp, value::cmp::LT);
pub(super) const FLE: M = (Mod::Cmp, value::cmp::LE);
pub(super) const FGT: M = (Mod::Cmp, value::cmp::GT);
pub(super) const FGE: M = (Mod::Cmp, value::cmp::GE);
pub(super) const FNEU: M = (Mod::Cmp, value::cmp::NEU);
pub(super) const FGEU: M = (Mod::Cmp, value::cmp::GEU);
pub(super) const FNUM: M = (Mod::Cmp, value::cmp::NUM);
pub(super) const FNAN: M = (Mod::Cmp, value::cmp::NAN);
pub(super) const FMIN: M = (Mod::Cmp, value::cmp::MIN);
pub(super) const FMAX: M = (Mod::Cmp, value::cmp::MAX);
pub(super) const FMNMX_NAN: M = (Mod::Nan, value::nan::NAN);
pub(super) const XORSIGN: M = (Mod::Xorsign, value::xorsign::XORSIGN);
pub(super) const RELU: M = (Mod::Relu, value::relu::RELU);
pub(super) const BF16_V2: M = (Mod::Packed, value::packed::BF16_V2);
pub(super) const FLOAT_RESULT: M = (Mod::Bf, value::bf::BF);
pub(super) const LOW_A: M = (Mod::SwzA, value::swz_a::H0_H0);
pub(super) const LOW_B: M = (Mod::SwzB, value::swz_b::H0_H0);
pub(super) const MUFU_F16: M = (Mod::Fmt, value::fmt::F16);
pub(super) const MUFU_BF16: M = (Mod::Fmt, value::fmt::BF16);
pub(super) const SATFINITE: M = (Mod::Satfinite, value::satfinite::SATFINITE);
pub(super) const PACK_BF16: M = (Mod::F2fp, value::f2fp::BF16);
pub(super) const PACK_TF32: M = (Mod::F2fp, value::f2fp::TF32);
pub(super) const UNPACK_F16: M = (Mod::F2fp, value::f2fp::F16);
pub(super) const PACK_MERGE: M = (Mod::Pack, value::pack::PACK_AB_MERGE_C);
pub(super) const UNPACK_MERGE: M = (Mod::Pack, value::pack::UNPACK_B_MERGE_C);
pub(super) const UNPACK: M = (Mod::Pack, value::pack::UNPACK_B);
pub(super) const PACK_B: M = (Mod::Pack, value::pack::PACK_B);
pub(super) const FROM_F16: M = (Mod::Src, value::src::F16);
pub(super) const FROM_BF16: M = (Mod::Src, value::src::BF16);
pub(super) const VTYPE_S32: M = (Mod::Vtype, value::vtype::NONE);
pub(super) const VTYPE_U32: M = (Mod::Vtype, value::vtype::U32);
pub(super) const VTYPE_U16X2: M = (Mod::Vtype, value::vtype::U16X2);
pub(super) const VTYPE_S16X2: M = (Mod::Vtype, value::vtype::S16X2);
pub(super) const X16X2: M = (Mod::Half, value::half::_16X2);
pub(super) const DOT_2A_LO: M = (Mod::Ix, value::ix::_2A_LO);
pub(super) const DOT_2A_HI: M = (Mod::Ix, value::ix::_2A_HI);
pub(super) const F2I_NTZ: M = (Mod::Ntz, value::ntz::NTZ);
pub(super) const MUFU_COS: M = (Mod::Mufu, value::mufu::COS);
pub(super) const MUFU_SIN: M = (Mod::Mufu, value::mufu::SIN);
pub(super) const MUFU_EX2: M = (Mod::Mufu, value::mufu::EX2);
pub(super) const MUFU_LG2: M = (Mod::Mufu, value::mufu::LG2);
pub(super) const MUFU_RCP: M = (Mod::Mufu, value::mufu::RCP);
pub(super) const MUFU_RSQ: M = (Mod::Mufu, value::mufu::RSQ);
pub(super) const MUFU_RCP64H: M = (Mod::Mufu, value::mufu::RCP64H);
pub(super) const MUFU_RSQ64H: M = (Mod::Mufu, value::mufu::RSQ64H);
pub(super) const MUFU_SQRT: M = (Mod::Mufu, value::mufu::SQRT);
pub(super) const MUFU_TANH: M = (Mod::Mufu, value::mufu::TANH);

// Memory.
pub(super) const E: M = (Mod::E, value::e::E);
pub(super) const MODE_REL: M = (Mod::Mode, value::mode::REL);
pub(super) const MODE_ABS: M = (Mod::Mode, value::mode::ABS);
pub(super) const NOINC: M = (Mod::Noinc, value::noinc::NOINC);
pub(super) const NODEC: M = (Mod::Nodec, value::nodec::NODEC);
pub(super) const SIZE_32: M = (Mod::Size, value::size::NONE);
pub(super) const SIZE_64: M = (Mod::Size, value::size::_64);
pub(super) const SIZE_128: M = (Mod::Size, value::size::_128);
pub(super) const SIZE_U8: M = (Mod::Size, value::size::U8);
pub(super) const SIZE_S8: M = (Mod::Size, value::size::S8);
pub(super) const SIZE_U16: M = (Mod::Size, value::size::U16);
pub(super) const SIZE_S16: M = (Mod::Size, value::size::S16);
pub(super) const SIZE_256: M = (Mod::Size, value::size::_256);
pub(super) const CONSTANT: M = (Mod::Mem, value::mem::CONSTANT);
pub(super) const MMIO_SYS: M = (Mod::Mem, value::mem::MMIO_SYS);
pub(super) const HINT: M = (Mod::Hint, value::hint::HINT);
pub(super) const PACKED_BF16: M = (Mod::Packed, value::packed::BF16_V2);
pub(super) const ZFILL: M = (Mod::Zfill, value::zfill::ZFILL);
pub(super) const LE_COUNT: M = (Mod::Le, value::le::LE);
pub(super) const CCTL_PF1: M = (Mod::Cctl, value::cctl::PF1);
pub(super) const CCTL_PF2: M = (Mod::Cctl, value::cctl::PF2);
pub(super) const CCTL_PML2: M = (Mod::Cctl, value::cctl::PML2);
pub(super) const CCTL_DML2: M = (Mod::Cctl, value::cctl::DML2);
pub(super) const CCTL_RML2: M = (Mod::Cctl, value::cctl::RML2);
pub(super) const MEMBAR_SC: M = (Mod::Fence, value::fence::SC);
pub(super) const MEMBAR_ALL: M = (Mod::Fence, value::fence::ALL);
pub(super) const SCOPE_CTA: M = (Mod::Scope, value::scope::CTA);
pub(super) const SCOPE_GPU: M = (Mod::Scope, value::scope::GPU);
pub(super) const SCOPE_SYS: M = (Mod::Scope, value::scope::SYS);
pub(super) const CCTL_IVALL: M = (Mod::Cctl, value::cctl::IVALL);
pub(super) const AOP_ADD: M = (Mod::Aop, value::aop::ADD);
pub(super) const AOP_MIN: M = (Mod::Aop, value::aop::MIN);
pub(super) const AOP_MAX: M = (Mod::Aop, value::aop::MAX);
pub(super) const AOP_INC: M = (Mod::Aop, value::aop::INC);
pub(super) const AOP_DEC: M = (Mod::Aop, value::aop::DEC);
pub(super) const AOP_AND: M = (Mod::Aop, value::aop::AND);
pub(super) const AOP_OR: M = (Mod::Aop, value::aop::OR);
pub(super) const AOP_XOR: M = (Mod::Aop, value::aop::XOR);
pub(super) const AOP_EXCH: M = (Mod::Aop, value::aop::EXCH);
pub(super) const AOP_CAS: M = (Mod::Aop, value::aop::CAS);

// Warps and blocks.
pub(super) const SHFL_IDX: M = (Mod::Shfl, value::shfl::IDX);
pub(super) const SHFL_UP: M = (Mod::Shfl, value::shfl::UP);
pub(super) const SHFL_DOWN: M = (Mod::Shfl, value::shfl::DOWN);
pub(super) const SHFL_BFLY: M = (Mod::Shfl, value::shfl::BFLY);
pub(super) const VOTE_ALL: M = (Mod::Vote, value::vote::ALL);
pub(super) const VOTE_ANY: M = (Mod::Vote, value::vote::ANY);
pub(super) const REDUX_SUM: M = (Mod::Redux, value::redux::SUM);
pub(super) const REDUX_OR: M = (Mod::Redux, value::redux::OR);
pub(super) const REDUX_XOR: M = (Mod::Redux, value::redux::XOR);
pub(super) const REDUX_AND: M = (Mod::Redux, value::redux::NONE);
pub(super) const REDUX_MIN: M = (Mod::Redux, value::redux::MIN);
pub(super) const REDUX_MAX: M = (Mod::Redux, value::redux::MAX);
pub(super) const REDUX_MIN_ABS: M = (Mod::Redux, value::redux::MINABS);
pub(super) const REDUX_MAX_ABS: M = (Mod::Redux, value::redux::MAXABS);
pub(super) const REDUX_S32: M = (Mod::Rtype, value::rtype::S32);
pub(super) const REDUX_F32: M = (Mod::Rtype, value::rtype::F32);
pub(super) const REDUX_NAN: M = (Mod::Nan, value::nan::NAN);
pub(super) const MATCH_ANY: M = (Mod::Matching, value::matching::ANY);
pub(super) const BAR_SYNC: M = (Mod::Barop, value::barop::SYNC);
pub(super) const BAR_ARV: M = (Mod::Barop, value::barop::ARV);
pub(super) const BAR_RED: M = (Mod::Barop, value::barop::RED);
pub(super) const BAR_POPC: M = (Mod::Bred, value::bred::POPC);
pub(super) const BAR_AND: M = (Mod::Bred, value::bred::AND);
pub(super) const BAR_OR: M = (Mod::Bred, value::bred::OR);
pub(super) const BAR_DEFER: M = (Mod::Defer, value::defer::DEFER_BLOCKING);
pub(super) const BPT_TRAP: M = (Mod::Bpt, value::bpt::TRAP);
pub(super) const QSPC_SHARED: M = (Mod::Space, value::space::S);
pub(super) const QSPC_GLOBAL: M = (Mod::Space, value::space::G);
pub(super) const QSPC_CLUSTER: M = (Mod::Space, value::space::D);
pub(super) const QSPC_LOCAL: M = (Mod::Space, value::space::L);

// Conversions: f32 and s32 are what is meant where nothing is said.
pub(super) const F2I_U32: M = (Mod::Dst, value::dst::U32);
pub(super) const I2F_U32: M = (Mod::Src, value::src::U32);
pub(super) const TO_F64: M = (Mod::Dst, value::dst::F64);

/// Sign of the first factors of a dot product.
pub(super) fn dot_sign_a(signed: bool) -> M {
    (Mod::Sa, if signed { value::sa::S8 } else { value::sa::U8 })
}

/// Sign of the second factors of a dot product.
pub(super) fn dot_sign_b(signed: bool) -> M {
    (Mod::Sb, if signed { value::sb::S8 } else { value::sb::U8 })
}

/// Result type of F2I.
pub(super) fn f2i_dst(ty: ScalarType) -> M {
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
pub(super) fn i2f_src(ty: ScalarType) -> M {
    let value = match ty {
        ScalarType::U32 => value::src::U32,
        ScalarType::U64 => value::src::U64,
        ScalarType::S64 => value::src::S64,
        _ => value::src::NONE,
    };
    (Mod::Src, value)
}

/// Source type of F2I and F2F.
pub(super) fn float_src(ty: ScalarType) -> M {
    let value = match ty {
        ScalarType::F64 => value::src::F64,
        ScalarType::F16 => value::src::F16,
        _ => value::src::NONE,
    };
    (Mod::Src, value)
}

/// Result type of I2F and F2F.
pub(super) fn float_dst(ty: ScalarType) -> M {
    let value = match ty {
        ScalarType::F64 => value::dst::F64,
        ScalarType::F16 => value::dst::F16,
        ScalarType::Bf16 => value::dst::BF16,
        _ => value::dst::NONE,
    };
    (Mod::Dst, value)
}
