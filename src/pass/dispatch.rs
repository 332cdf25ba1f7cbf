//! Calls the function of each pass that its row names. The `match` is generated.

use crate::analysis::PassCx;
use crate::legal::Legalization;
use crate::tables::Pass;

/// The result of a pass: nothing, or an error that refuses the function.
trait Outcome {
    fn outcome(self) -> Result<(), String>;
}

impl Outcome for () {
    fn outcome(self) -> Result<(), String> {
        Ok(self)
    }
}

impl Outcome for Result<(), String> {
    fn outcome(self) -> Result<(), String> {
        self
    }
}

/// Runs a pass on the function of a context.
///
/// # Errors
///
/// The message with which the pass refuses the function.
pub fn run(pass: Pass, cx: &mut PassCx, options: &Legalization) -> Result<(), String> {
    call(pass, cx, options)
}

include!(concat!(env!("OUT_DIR"), "/dispatch.rs"));
