//! Finds the first pass after which a kernel computes something else than its source says.
//!
//! The kernel is compiled so that optional passes run up to a pass and the rest of the pipeline is
//! that of level 0; each such cubin runs on the simulator, and its buffers are compared with the
//! interpreter's. A fault in a pass that every level runs, or in lowering, is reported as such.

use crate::compile::{Options, compile_bytes};
use crate::pass::PassControl;
use crate::sim::launch::ArgValue;
use crate::sim::ptx;
use crate::sim::run::{How, Shape, run_as};
use crate::tables::Pass;

/// What is wrong with a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The result is the interpreter's with all passes.
    Right,
    /// The first pass after which it differs.
    Pass(Pass),
    /// It differs with no optional pass.
    Always,
}

/// A launch to judge by.
pub struct Launch<'a> {
    pub source: &'a [u8],
    pub kernel: &'a str,
    pub shape: Shape,
    pub arguments: &'a [ArgValue],
}

/// Bisects over the passes. Floating-point contraction is off, since the interpreter does not contract.
///
/// # Errors
/// The source or the launch is refused by the interpreter, so that nothing can be judged by it.
pub fn bisect(launch: &Launch, options: &Options) -> Result<Verdict, String> {
    let wanted = interpreted(launch)?;
    let is_right = |last: Option<Pass>| -> bool { compiled(launch, options, last).is_some_and(|got| got == wanted) };
    if is_right(None) {
        return Ok(Verdict::Right);
    }
    let optional: Vec<Pass> = Pass::ALL.into_iter().filter(|pass| pass.info().optional).collect();
    if !is_right(Some(Pass::ALL[0])) {
        return Ok(Verdict::Always);
    }
    // Right up to `good` passes, wrong with `bad` of them.
    let (mut good, mut bad) = (0, optional.len());
    while bad - good > 1 {
        let middle = usize::midpoint(good, bad);
        if is_right(Some(optional[middle - 1])) { good = middle } else { bad = middle }
    }
    Ok(Verdict::Pass(optional[bad - 1]))
}

/// Buffers as the source text leaves them.
fn interpreted(launch: &Launch) -> Result<Vec<ArgValue>, String> {
    let (module, diagnostics) = ptx::parse(launch.source);
    let said = || diagnostics.iter().map(|d| d.message.as_str()).collect::<Vec<_>>().join("; ");
    let module = module.ok_or_else(said)?;
    let mut values = launch.arguments.to_vec();
    let (_, done) = ptx::run_within(&module, launch.kernel, launch.shape, &mut values, ptx::STEP_LIMIT);
    done.map_err(|fault| format!("the interpreter: {fault}"))?;
    Ok(values)
}

/// Buffers as the compiled kernel leaves them; `None` where it does not compile or does not end.
fn compiled(launch: &Launch, options: &Options, last: Option<Pass>) -> Option<Vec<ArgValue>> {
    let passes = PassControl { plain_after: last, ..options.passes.clone() };
    let options = Options { passes, fmad: false, ..options.clone() };
    let cubin = compile_bytes(launch.source, &options).ok()?.cubin;
    let mut values = launch.arguments.to_vec();
    let outcome = run_as(&cubin, launch.kernel, launch.shape, &mut values, How::default()).ok()?;
    (outcome.ended && outcome.reports.is_empty()).then_some(values)
}
