//! Targets, generations and features.

/// Facts common to all targets of one generation; byte offsets are into constant bank 0. Source:
/// `generations.ron`.
#[derive(Debug)]
pub struct GenerationInfo {
    /// Width of a uniform-register field in bits; all ones is URZ.
    pub ur_bits: u32,
    /// Uniform registers that can be allocated.
    pub ur_count: u32,
    /// Lowest uniform register that is allocated.
    pub ur_first: u32,
    /// Highest register count that a cubin may state.
    pub reg_limit: u32,
    /// Registers of one SM.
    pub reg_file: u32,
    /// Allocation granularity of registers per thread.
    pub reg_unit: u32,
    /// Minimum register count of a function that makes calls.
    pub abi_min: u32,
    /// Byte offset of the first kernel parameter.
    pub param_base: u32,
    /// Byte offset of the initial stack pointer.
    pub stack_top: u32,
    /// Byte offset of the 64-bit descriptor of global memory; `None` if loads need none.
    pub global_desc: Option<u32>,
    /// Byte offset of the x component of `%ntid`; y and z follow.
    pub ntid: u32,
    /// Byte offset of the x component of `%nctaid`; y and z follow.
    pub nctaid: u32,
    /// Byte offset of the 64-bit base of the shared window; `None`: it is in a special register.
    pub shared_window: Option<u32>,
    /// Byte offset of the 64-bit base of the local window.
    pub local_window: u32,
    /// Byte offset in c\[0\] of the 64-bit generic address of bank 3.
    pub const_window: u32,
    /// Byte offset in c\[0\] of the 64-bit generic address of byte `param_window_at` of bank 0.
    pub param_window: u32,
    /// Byte offset in bank 0 that `param_window` is the address of.
    pub param_window_at: u32,
    /// Byte offset in c\[0\] of the last address of the parameters: 32 bits within bank 0, or
    /// generic if `param_window_at` is not 0.
    pub param_end: u32,
    /// Byte offset in c\[0\] of the word whose bit 0 gives the extent of `fence.proxy.alias`.
    pub alias_flag: Option<u32>,
    /// Byte offset in c\[0\] of the 64-bit address of the driver's descriptions of textures; those
    /// of samplers and of surfaces follow.
    pub image_tables: u32,
    /// First byte of user data in shared memory.
    pub shared_base: u32,
}

/// How specific a configuration is: the base architecture, this SM only (`a`), its family (`f`), or
/// not a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    Base,
    A,
    F,
    Reserved,
}

/// One SM configuration. Source: `targets.ron`.
#[derive(Debug)]
pub struct Target {
    pub name: &'static str,
    /// Number of the base architecture, as in `e_flags`.
    pub sm: u32,
    /// The SM number whose GPUs run PTX for this target; differs from `sm` if the architecture was
    /// renamed.
    pub runs_as: u32,
    /// Column of the legality matrix.
    pub column: u32,
    pub variant: Variant,
    /// False for legacy and reserved rows.
    pub real: bool,
    /// Below sm_30: named by old PTX only.
    pub legacy: bool,
    /// `None` if the encoder is not implemented.
    pub generation: Option<Generation>,
    /// Lowest `.version` that may name it.
    pub min_ptx: (u32, u32),
    features: [u64; 2],
}

impl Target {
    /// Whether the target has a feature.
    pub fn has(&self, feature: Feature) -> bool {
        let i = feature as usize;
        self.features[i / 64] >> (i % 64) & 1 != 0
    }

    /// Columns of tensor memory of a target that has the most.
    pub const MOST_TENSOR_COLUMNS: u32 = 576;

    /// Columns of its tensor memory.
    pub fn tensor_columns(&self) -> u32 {
        if self.has(Feature::TensorMemory576) { Self::MOST_TENSOR_COLUMNS } else { 512 }
    }

    /// The target of a name, spelled as in `-arch=`.
    pub fn by_name(name: &str) -> Option<&'static Target> {
        TARGET_BY_NAME.get(name).map(|i| &TARGETS[*i]).filter(|t| t.real)
    }

    /// The target of a name, spelled as in `.target`: also one that no compiler builds any more.
    pub fn of_source(name: &str) -> Option<&'static Target> {
        let virtual_name = name.strip_prefix("compute_").map(|number| format!("sm_{number}"));
        let name = virtual_name.as_deref().unwrap_or(name);
        TARGET_BY_NAME.get(name).map(|i| &TARGETS[*i]).filter(|t| t.real || t.legacy)
    }

    /// The implemented target with the lowest column: the default of `-arch`.
    pub fn lowest_built() -> &'static Target {
        let built = TARGETS.iter().filter(|t| t.generation.is_some());
        built.min_by_key(|t| t.column).unwrap_or(&TARGETS[0])
    }

    /// Why PTX for this `.target` does not run on another target, in the wording of ptxas; `None`
    /// if it does.
    pub fn refused_on(&self, other: &Target) -> Option<String> {
        // The family is the SM number without its last digit.
        let family = |sm: u32| sm / 10;
        if self.sm > other.sm {
            return Some("SM version specified by .target is higher than default SM version assumed".into());
        }
        let future = |what: &str| Some(format!("Program with .target '{}' cannot be compiled to {what}", self.name));
        match self.variant {
            Variant::F if family(self.runs_as) != family(other.sm) => future("different SM-family architecture"),
            Variant::A if self.runs_as != other.sm => future("future architecture"),
            Variant::A if other.variant != Variant::A => {
                let (mine, theirs) = (self.name, other.name);
                Some(format!("PTX with .target '{mine}' cannot be compiled for architecture '{theirs}'"))
            }
            _ => None,
        }
    }

    /// Facts of its generation; `None` if the encoder is not implemented.
    pub fn info(&self) -> Option<&'static GenerationInfo> {
        self.generation.map(Generation::info)
    }
}

impl Generation {
    /// Facts of this generation.
    pub fn info(self) -> &'static GenerationInfo {
        &GENERATIONS[self as usize]
    }
}

use super::legal::{LEGALIZERS, LegalizerInfo};

/// A generated per-SM backend.
pub trait Backend: Sync {
    /// The target it compiles for.
    fn target(&self) -> &'static Target;
    /// What its legalization phases expand.
    fn legalizer(&self) -> &'static LegalizerInfo;
}

include!(concat!(env!("OUT_DIR"), "/targets.rs"));
include!(concat!(env!("OUT_DIR"), "/backends.rs"));
