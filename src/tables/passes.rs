//! The passes, in the order in which they run.

use super::phases::Phase;

/// Facts of a pass. Source: `passes.ron`.
#[derive(Debug)]
pub struct PassInfo {
    /// The phase that runs it.
    pub phase: Phase,
    /// At which levels and on which targets it runs.
    pub when: When,
    /// Whether the code is correct without it.
    pub optional: bool,
    /// Cached analyses that remain valid after it.
    pub preserves: &'static [Analysis],
    /// Properties of the function that must hold before it.
    pub requires: &'static [&'static str],
    /// Properties that hold after it.
    pub makes: &'static [&'static str],
    /// Properties that no longer hold after it.
    pub destroys: &'static [&'static str],
    /// Passes that must run before it, each with the reason.
    pub after: &'static [(Pass, &'static str)],
}

impl Pass {
    /// Facts of this pass.
    pub fn info(self) -> &'static PassInfo {
        &PASSES[self as usize]
    }

    /// The pass of a given name.
    pub fn by_name(name: &str) -> Option<Pass> {
        Pass::ALL.into_iter().find(|pass| pass.name() == name)
    }
}

include!(concat!(env!("OUT_DIR"), "/passes.rs"));
