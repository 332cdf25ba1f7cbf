//! The function of each pass, as its row names it. The `match` is generated.

use crate::analysis::PassCx;
use crate::legal::Legalization;
use crate::tables::Pass;

/// What a pass returns: nothing, or a refusal of the function.
struct Outcome(Result<(), String>);

impl From<()> for Outcome {
    fn from((): ()) -> Outcome {
        Outcome(Ok(()))
    }
}

impl From<Result<(), String>> for Outcome {
    fn from(result: Result<(), String>) -> Outcome {
        Outcome(result)
    }
}

/// Runs a pass on the function of a context.
pub fn run(pass: Pass, cx: &mut PassCx, options: &Legalization) -> Result<(), String> {
    call(pass, cx, options)
}

include!(concat!(env!("OUT_DIR"), "/dispatch.rs"));
