//! Reads the tables, checks their laws, and writes the Rust code that the compiler includes.
//!
//! The result is the generated files, or every error of the run with the rows involved. The same
//! tables give the same files, byte for byte.

pub mod check;
pub mod emit;
pub mod learn;
pub mod model;
pub mod print;
pub mod report;
pub mod rows;
pub mod source;

use std::path::Path;

/// The generated files (name, text), or the rendered errors.
pub struct Failure {
    /// One line per error, for cargo.
    pub lines: String,
    /// The same with the source lines of the rows and carets.
    pub pictures: String,
}

/// Reads, resolves, checks and emits everything.
pub fn generate(tables: &Path) -> Result<Vec<(String, String)>, Failure> {
    let mut sources = source::Sources::new(tables);
    let mut report = report::Report::default();
    let model = model::Model::load(&mut sources, &mut report);
    check::all(&model, &mut report);
    report.without_consequences();
    if report.is_empty() {
        return Ok(emit::all(&model));
    }
    Err(Failure { lines: report.render(&sources, false), pictures: report.render(&sources, true) })
}
