//! The phases, in the order in which they run.

/// Facts of a phase. Source: `phases.ron`.
#[derive(Debug)]
pub struct PhaseInfo {
    /// Numbers used for it in the published documents.
    pub seed: &'static [u16],
    /// Value of the progress counter from this phase on.
    pub progress: Option<u8>,
    pub category: &'static str,
    /// Whether passes run in it, or its work is done elsewhere, by nobody, or not yet.
    pub state: State,
    /// The passes and steps elsewhere that do its work, or a part of it.
    pub by: &'static str,
    /// Why there, why there is no work, or what is missing; empty where passes run and do it all.
    pub why: &'static str,
}

impl PhaseInfo {
    /// Whether passes run in it, or, for `FormatCodeList`, words are encoded.
    pub fn runs(&self) -> bool {
        self.state == State::Built
    }
}

impl Phase {
    /// Facts of this phase.
    pub fn info(self) -> &'static PhaseInfo {
        &PHASES[self as usize]
    }
}

include!(concat!(env!("OUT_DIR"), "/phases.rs"));
