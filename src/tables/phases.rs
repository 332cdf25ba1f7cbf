//! The phases, in the order in which they run.

/// Facts of a phase. Source: `phases.ron`.
#[derive(Debug)]
pub struct PhaseInfo {
    /// Numbers used for it in the published documents.
    pub seed: &'static [u16],
    /// Value of the progress counter from this phase on.
    pub progress: Option<u8>,
    pub category: &'static str,
    /// Whether passes run in it, or, for the last phase, words are emitted.
    pub built: bool,
}

impl Phase {
    /// Facts of this phase.
    pub fn info(self) -> &'static PhaseInfo {
        &PHASES[self as usize]
    }
}

include!(concat!(env!("OUT_DIR"), "/phases.rs"));
