//! Modifier values under short names, so that lowerings read like SASS.
//!
//! Each constant is one value of one kind of `tables/encoding/modifiers.ron`; a kind that is renamed there changes its lines here.

use crate::tables::ptx::ScalarType;
use crate::tables::{Mod, value};

/// One modifier: kind and value.
pub(super) type M = (Mod, u8);

/// Stands for a value whose kind has no row yet: what would carry it is refused.
pub(super) const NOT_YET: M = (Mod::X, u8::MAX);

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
const WRAP: M = (Mod::Wrap, value::wrap::W);
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
pub(super) const FTZ: M = NOT_YET;
pub(super) const SAT: M = (Mod::Sat, value::sat::SAT);
pub(super) const RM: M = NOT_YET;
pub(super) const RP: M = NOT_YET;
pub(super) const RZ: M = NOT_YET;
pub(super) const FLOOR: M = NOT_YET;
pub(super) const CEIL: M = NOT_YET;
pub(super) const TRUNC: M = NOT_YET;
pub(super) const FEQ: M = NOT_YET;
pub(super) const FNE: M = NOT_YET;
pub(super) const FLT: M = NOT_YET;
pub(super) const FLE: M = NOT_YET;
pub(super) const FGT: M = NOT_YET;
pub(super) const FGE: M = NOT_YET;
pub(super) const FEQU: M = NOT_YET;
pub(super) const FNEU: M = NOT_YET;
pub(super) const FLTU: M = NOT_YET;
pub(super) const FLEU: M = NOT_YET;
pub(super) const FGTU: M = NOT_YET;
pub(super) const FGEU: M = NOT_YET;
pub(super) const FNUM: M = NOT_YET;
pub(super) const FNAN: M = NOT_YET;
pub(super) const FMIN: M = NOT_YET;
pub(super) const FMAX: M = NOT_YET;
pub(super) const FMNMX_NAN: M = NOT_YET;
pub(super) const F2I_NTZ: M = NOT_YET;
pub(super) const MUFU_COS: M = NOT_YET;
pub(super) const MUFU_SIN: M = NOT_YET;
pub(super) const MUFU_EX2: M = NOT_YET;
pub(super) const MUFU_LG2: M = NOT_YET;
pub(super) const MUFU_RCP: M = NOT_YET;
pub(super) const MUFU_RSQ: M = NOT_YET;
pub(super) const MUFU_SQRT: M = NOT_YET;
pub(super) const MUFU_TANH: M = NOT_YET;

// Memory.
pub(super) const E: M = (Mod::E, value::e::E);
pub(super) const SIZE_32: M = (Mod::Size, value::size::NONE);
pub(super) const SIZE_64: M = (Mod::Size, value::size::_64);
pub(super) const SIZE_128: M = (Mod::Size, value::size::_128);
pub(super) const SIZE_U8: M = (Mod::Size, value::size::U8);
pub(super) const SIZE_S8: M = (Mod::Size, value::size::S8);
pub(super) const SIZE_U16: M = (Mod::Size, value::size::U16);
pub(super) const SIZE_S16: M = (Mod::Size, value::size::S16);
pub(super) const STRONG_CTA: M = NOT_YET;
pub(super) const STRONG_GPU: M = NOT_YET;
pub(super) const STRONG_SYS: M = NOT_YET;
pub(super) const MEMBAR_SC: M = NOT_YET;
pub(super) const MEMBAR_ALL: M = NOT_YET;
pub(super) const SCOPE_CTA: M = NOT_YET;
pub(super) const SCOPE_GPU: M = NOT_YET;
pub(super) const SCOPE_SYS: M = NOT_YET;
pub(super) const CCTL_IVALL: M = NOT_YET;
pub(super) const ATOM_S32: M = NOT_YET;
pub(super) const ATOM_S64: M = NOT_YET;
pub(super) const ATOM_F32: M = NOT_YET;
pub(super) const ATOM_F64: M = NOT_YET;
pub(super) const AOP_ADD: M = NOT_YET;
pub(super) const AOP_MIN: M = NOT_YET;
pub(super) const AOP_MAX: M = NOT_YET;
pub(super) const AOP_INC: M = NOT_YET;
pub(super) const AOP_DEC: M = NOT_YET;
pub(super) const AOP_AND: M = NOT_YET;
pub(super) const AOP_OR: M = NOT_YET;
pub(super) const AOP_XOR: M = NOT_YET;
pub(super) const AOP_EXCH: M = NOT_YET;
pub(super) const AOP_CAS: M = NOT_YET;

// Warps and blocks.
pub(super) const SHFL_IDX: M = NOT_YET;
pub(super) const SHFL_UP: M = NOT_YET;
pub(super) const SHFL_DOWN: M = NOT_YET;
pub(super) const SHFL_BFLY: M = NOT_YET;
pub(super) const VOTE_ALL: M = NOT_YET;
pub(super) const VOTE_ANY: M = NOT_YET;
pub(super) const MATCH_ANY: M = NOT_YET;
pub(super) const MATCH_U64: M = NOT_YET;
pub(super) const BAR_SYNC: M = NOT_YET;
pub(super) const BAR_ARV: M = NOT_YET;
pub(super) const BAR_RED: M = NOT_YET;
pub(super) const BAR_POPC: M = NOT_YET;
pub(super) const BAR_AND: M = NOT_YET;
pub(super) const BAR_OR: M = NOT_YET;
pub(super) const BAR_DEFER: M = NOT_YET;
pub(super) const BPT_TRAP: M = NOT_YET;

/// Result type of a conversion.
pub(super) fn dst_of(ty: ScalarType) -> Option<M> {
    Some((
        Mod::Dst,
        match ty {
            ScalarType::F32 => value::dst::NONE,
            ScalarType::F64 => value::dst::F64,
            _ => return None,
        },
    ))
}

/// Source type of a conversion.
pub(super) fn src_of(ty: ScalarType) -> Option<M> {
    Some((
        Mod::Src,
        match ty {
            ScalarType::F32 => value::src::NONE,
            ScalarType::F64 => value::src::F64,
            _ => return None,
        },
    ))
}
