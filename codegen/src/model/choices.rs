//! Small lookup tables of lowering: comparisons, video instructions, cache policies, driver
//! functions.
//!
//! Names are resolved here; a row that does not resolve is reported and omitted. Every PTX
//! comparison has one row, and no operation has two.

use super::lowering::{Modifier, Names};
use crate::report::Report;
use crate::rows::choices::{CompareRow, PolicyRow, Step, SystemRow, VideoRow};
use crate::source::{At, Row, Sources};

/// A PTX comparison operator with the modifiers of the SETP opcodes.
pub struct Comparison {
    /// Index of the text in the group `compare`.
    pub text: usize,
    pub int: Option<Modifier>,
    pub unsigned: bool,
    pub float: Option<Modifier>,
}

/// The lookup tables.
#[derive(Default)]
pub struct Choices {
    pub comparisons: Vec<Comparison>,
    /// Operation, step, lanes.
    pub steps: Vec<(usize, Step, u8)>,
    /// Operation, bits of the upper word.
    pub policies: Vec<(usize, u32)>,
    /// Names, and whether a call may return.
    pub system: Vec<(String, bool)>,
    /// Source and position of every row.
    pub evidence: Vec<(String, At)>,
}

impl Choices {
    /// Reads the rows and resolves their names; errors go to `report`.
    pub fn load(sources: &mut Sources, names: &Names, report: &mut Report) -> Choices {
        let mut choices = Choices::default();
        for row in sources.rows::<CompareRow>("lowering/compare.ron", report) {
            choices.evidence.push((row.src.clone(), row.at));
            let known = |text: usize| choices.comparisons.iter().any(|c| c.text == text);
            match comparison(names, &row) {
                Ok(found) if known(found.text) => twice(&row.compare, row.at, report),
                Ok(found) => choices.comparisons.push(found),
                Err(message) => report.at("names", message, row.at),
            }
        }
        for row in sources.rows::<VideoRow>("lowering/video.ron", report) {
            choices.evidence.push((row.src.clone(), row.at));
            match names.operation(&row.op) {
                Ok(op) if choices.steps.iter().any(|s| s.0 == op) => twice(&row.op, row.at, report),
                Ok(op) => choices.steps.push((op, row.step, row.lanes)),
                Err(message) => report.at("names", message, row.at),
            }
        }
        for row in sources.rows::<PolicyRow>("lowering/policy.ron", report) {
            choices.evidence.push((row.src.clone(), row.at));
            match names.operation(&row.op) {
                Ok(op) if choices.policies.iter().any(|p| p.0 == op) => twice(&row.op, row.at, report),
                Ok(op) => choices.policies.push((op, row.bits)),
                Err(message) => report.at("names", message, row.at),
            }
        }
        for row in sources.rows::<SystemRow>("lowering/system.ron", report) {
            choices.evidence.push((row.src.clone(), row.at));
            match choices.system.iter().any(|s| s.0 == row.name) {
                true => twice(&row.name, row.at, report),
                false => choices.system.push((row.name.clone(), row.returns)),
            }
        }
        choices.complete(names, report);
        choices
    }

    /// Every text of the group has a row; a missing one is reported at the last row of the table.
    fn complete(&self, names: &Names, report: &mut Report) {
        let Some((_, at)) = self.evidence.first() else { return };
        for text in names.texts("compare").iter().filter(|t| names.text("compare", t).is_ok()) {
            let has = self.comparisons.iter().any(|c| names.text("compare", text) == Ok(c.text));
            if !has {
                report.at("lowering", format!("the comparison `{text}` has no row"), *at);
            }
        }
    }
}

fn twice(name: &str, at: At, report: &mut Report) {
    report.at("lowering", format!("`{name}` has two rows"), at);
}

fn comparison(names: &Names, row: &Row<CompareRow>) -> Result<Comparison, String> {
    let asked = |name: &str| match name {
        "" => Ok(None),
        name => names.modifier(&format!("cmp={name}"), &[]).map(Some),
    };
    Ok(Comparison {
        text: names.text("compare", &row.compare)?,
        int: asked(&row.int)?,
        unsigned: row.unsigned,
        float: asked(&row.float)?,
    })
}
