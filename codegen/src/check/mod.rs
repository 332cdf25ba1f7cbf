//! The laws of the tables, one per file. Each reads the model and reports the rows that violate it.

pub mod bits;
pub mod elf;
pub mod evidence;
pub mod helpers;
pub mod images;
pub mod instructions;
pub mod legal;
pub mod legality;
pub mod memory;
pub mod operands;
pub mod overlap;
pub mod passes;
pub mod phases;
pub mod properties;
pub mod ptx;
pub mod regclass;
pub mod registers;
pub mod targets;
pub mod tuning;
pub mod unique;
pub mod values;

use crate::model::Model;
use crate::report::Report;

/// Checks every law on the whole model.
pub fn all(model: &Model, report: &mut Report) {
    evidence::check(model, report);
    targets::check(model, report);
    unique::check(model, report);
    properties::check(model, report);
    values::check(model, report);
    phases::check(model, report);
    passes::check(model, report);
    tuning::check(model, report);
    elf::check(model, report);
    ptx::check(model, report);
    registers::check(model, report);
    images::check(model, report);
    bits::check(model, report);
    overlap::check(model, report);
    memory::check(model, report);
    helpers::check(model, report);
    operands::check(model, report);
    legal::check(model, report);
    instructions::check(model, report);
    legality::check(model, report);
    regclass::check(model, report);
}
