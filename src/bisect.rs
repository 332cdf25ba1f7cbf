//! Finds the first optimization pass after which a kernel computes something else than its PTX
//! source.
//!
//! The kernel is compiled with the optional passes up to a certain one, and with the rest of the
//! pipeline at level 0. Each such cubin runs on the simulator, and its buffers are compared with
//! those of the PTX interpreter. A bug in lowering, or in a pass that every level runs, is reported
//! as [`Verdict::Always`].

use crate::compile::{Options, compile_bytes};
use crate::pass::PassControl;
use crate::sim::launch::ArgValue;
use crate::sim::ptx;
use crate::sim::run::{How, Shape, run_as};
use crate::tables::Pass;

/// The result of a bisection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// With all passes the result is that of the interpreter.
    Right,
    /// The first pass after which the result differs.
    Pass(Pass),
    /// The result differs even without optional passes.
    Always,
}

/// The launch whose results are compared.
pub struct Launch<'a> {
    /// The PTX source.
    pub source: &'a [u8],
    /// The kernel's name.
    pub kernel: &'a str,
    /// Grid, block and dynamic shared memory.
    pub shape: Shape,
    /// The arguments before the launch.
    pub arguments: &'a [ArgValue],
}

/// Bisects over the optional passes. Floating-point contraction is off, because the interpreter
/// does not contract.
///
/// # Errors
///
/// The interpreter cannot run the source or the launch, so there is nothing to compare with.
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
    // Right with the first `good` passes, wrong with the first `bad`.
    let (mut good, mut bad) = (0, optional.len());
    while bad - good > 1 {
        let middle = usize::midpoint(good, bad);
        if is_right(Some(optional[middle - 1])) { good = middle } else { bad = middle }
    }
    Ok(Verdict::Pass(optional[bad - 1]))
}

/// The buffers as the interpreter leaves them.
fn interpreted(launch: &Launch) -> Result<Vec<ArgValue>, String> {
    let (module, diagnostics) = ptx::parse(launch.source);
    let said = || diagnostics.iter().map(|d| d.message.as_str()).collect::<Vec<_>>().join("; ");
    let module = module.ok_or_else(said)?;
    let mut values = launch.arguments.to_vec();
    let (_, done) = ptx::run_within(&module, launch.kernel, launch.shape, &mut values, ptx::STEP_LIMIT);
    done.map_err(|fault| format!("the interpreter: {fault}"))?;
    Ok(values)
}

/// The buffers as the compiled kernel leaves them; `None` if it does not compile, does not end, or
/// has a report.
fn compiled(launch: &Launch, options: &Options, last: Option<Pass>) -> Option<Vec<ArgValue>> {
    let passes = PassControl { plain_after: last, ..options.passes.clone() };
    let options = Options { passes, fmad: false, ..options.clone() };
    let cubin = compile_bytes(launch.source, &options).ok()?.cubin;
    let mut values = launch.arguments.to_vec();
    let outcome = run_as(&cubin, launch.kernel, launch.shape, &mut values, How::default()).ok()?;
    (outcome.ended && outcome.reports.is_empty()).then_some(values)
}
