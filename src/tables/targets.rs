//! Targets, generations and features.

/// Facts common to all targets of one generation; byte offsets are into constant bank 0. Source: `generations.ron`.
#[derive(Debug)]
pub struct GenerationInfo {
    /// Width of a uniform-register field in bits; all ones is URZ.
    pub ur_bits: u32,
    /// Uniform registers that can be allocated.
    pub ur_count: u32,
    /// Highest register count that a cubin may state.
    pub reg_limit: u32,
    /// Registers of one SM.
    pub reg_file: u32,
    /// Registers per thread are handed out in multiples of this.
    pub reg_unit: u32,
    /// Least register count of a function that calls.
    pub abi_min: u32,
    pub param_base: u32,
    pub stack_top: u32,
    pub global_desc: Option<u32>,
    pub ntid: u32,
    pub nctaid: u32,
    pub shared_window: Option<u32>,
    pub local_window: u32,
    /// Byte offset in c\[0\] of the 64-bit generic address of bank 3.
    pub const_window: u32,
    /// The same of byte `param_window_at` of bank 0.
    pub param_window: u32,
    pub param_window_at: u32,
    /// Byte offset in c\[0\] of the last address of the parameters: of 32 bits in bank 0, or generic where `param_window_at` is not 0.
    pub param_end: u32,
    /// Byte offset in c\[0\] of the word that says how far `fence.proxy.alias` reaches.
    pub alias_flag: Option<u32>,
    /// First byte of user data in shared memory.
    pub shared_base: u32,
}

/// How specific a configuration is: the base architecture, this SM only (`a`), its family (`f`), or no target at all.
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
    /// The number of the architecture that runs PTX for this target today; other than `sm` where it was renamed.
    pub runs_as: u32,
    /// Column of the legality matrix.
    pub column: u32,
    pub variant: Variant,
    pub real: bool,
    /// `None` where the encoder is planned.
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

    /// The target of a name as `-arch=` and `.target` spell it.
    pub fn by_name(name: &str) -> Option<&'static Target> {
        TARGET_BY_NAME.get(name).map(|i| &TARGETS[*i]).filter(|t| t.real)
    }

    /// The built target of the lowest column: what is compiled for when nothing is said.
    pub fn lowest_built() -> &'static Target {
        let built = TARGETS.iter().filter(|t| t.generation.is_some());
        built.min_by_key(|t| t.column).unwrap_or(&TARGETS[0])
    }

    /// Why PTX whose `.target` is this one does not run on another; `None` where it does. In the incumbent's words.
    pub fn refused_on(&self, other: &Target) -> Option<String> {
        // A family is an architecture's number without its last digit.
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

    /// Facts of its generation; `None` where the encoder is planned.
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

/// What a generated per-SM backend answers.
pub trait Backend: Sync {
    /// The target it compiles for.
    fn target(&self) -> &'static Target;
    /// What its legalization phases expand.
    fn legalizer(&self) -> &'static LegalizerInfo;
}

include!(concat!(env!("OUT_DIR"), "/targets.rs"));
include!(concat!(env!("OUT_DIR"), "/backends.rs"));
