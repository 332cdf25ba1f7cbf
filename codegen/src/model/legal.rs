//! Legalization backends, families of expansions and knobs.

use crate::report::Report;
use crate::rows::legal::{BackendRow, ExpansionRow, KnobRow};
use crate::source::{Row, Sources};

/// The tables of the legalization phases.
pub struct Legal {
    pub backends: Vec<Row<BackendRow>>,
    pub expansions: Vec<Row<ExpansionRow>>,
    pub knobs: Vec<Row<KnobRow>>,
}

impl Legal {
    /// Reads the rows; errors go to `report`.
    pub fn load(sources: &mut Sources, report: &mut Report) -> Legal {
        Legal {
            backends: sources.rows("backends.ron", report),
            expansions: sources.rows("expansions.ron", report),
            knobs: sources.rows("knobs.ron", report),
        }
    }

    /// The family of a pseudo-operation.
    pub fn family(&self, op: &str) -> Option<usize> {
        self.expansions.iter().position(|row| row.ops.split_whitespace().any(|name| name == op))
    }
}
