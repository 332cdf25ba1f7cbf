//! The function of each pass, as its row names it. The `match` is generated.

use crate::analysis::PassCx;
use crate::legal::Legalization;
use crate::tables::Pass;

/// What a pass returns: nothing, or a refusal of the function.
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
pub fn run(pass: Pass, cx: &mut PassCx, options: &Legalization) -> Result<(), String> {
    call(pass, cx, options)
}

include!(concat!(env!("OUT_DIR"), "/dispatch.rs"));
