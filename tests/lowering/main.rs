//! What becomes of PTX on each target: legality, lowering, passes on text, operands.

mod build;
mod features;
mod forms;
mod legal_phases;
mod legality;
mod matrix;
mod modern;
mod operand_slots;
mod operands;
mod oracle_lowering;
mod passes;
mod phases;
mod regclass;

#[allow(dead_code)]
#[path = "../support/cases.rs"]
mod cases;
#[path = "../support/csv.rs"]
mod csv;
#[allow(dead_code)]
#[path = "../support/diff.rs"]
mod diff;
#[allow(dead_code)]
#[path = "../support/judge.rs"]
mod judge;
#[allow(dead_code)]
#[path = "../support/lowering_support/mod.rs"]
mod lowering_support;
#[allow(dead_code)]
#[path = "../support/vendor.rs"]
mod vendor;
#[allow(dead_code)]
#[path = "../support/words.rs"]
mod words;
