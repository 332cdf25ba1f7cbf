//! Runs the same launch on both cubins, on the simulator.

use super::Side;
use crate::sim::launch::ArgValue;
use crate::sim::run::{How, Outcome, Profiled, Shape, run_in_clusters};

/// A launch to compare by.
pub struct Launch<'a> {
    pub shape: Shape,
    /// Blocks of a cluster, whatever the kernels say.
    pub cluster: Option<[u32; 3]>,
    pub arguments: &'a [ArgValue],
    pub how: How,
}

/// What a launch of one cubin gave.
pub struct Ran {
    pub outcome: Outcome,
    /// The contents of each buffer afterwards.
    results: Vec<Option<Vec<u8>>>,
}

impl Launch<'_> {
    /// Runs the kernel of one cubin, whose bytes these are.
    ///
    /// # Errors
    ///
    /// A kernel or a launch that cannot be run.
    pub fn run(&self, side: &Side, bytes: &[u8], kernel: &str) -> Result<Ran, String> {
        let mut values = self.arguments.to_vec();
        let how = How { profile: true, timed: true, ..self.how };
        let ran = run_in_clusters(bytes, kernel, self.shape, self.cluster, &mut values, how);
        let outcome = ran.map_err(|fault| format!("{}: {fault}", side.name))?;
        let results = values.iter_mut().map(|value| value.buffer_mut().map(|bytes| bytes.to_vec())).collect();
        Ok(Ran { outcome, results })
    }
}

impl Ran {
    /// The instructions with the most cycles, at most so many.
    pub fn hottest(&self, most: usize) -> Vec<&Profiled> {
        let mut list: Vec<&Profiled> = self.outcome.profile.iter().collect();
        crate::sorted::by_key(&mut list, |line| (std::cmp::Reverse(line.spent.cycles()), line.index));
        list.truncate(most);
        list
    }

    /// The first argument whose buffer the two launches left with different contents.
    pub fn differs(&self, other: &Ran) -> Option<usize> {
        self.results.iter().zip(&other.results).position(|(a, b)| a != b)
    }
}
