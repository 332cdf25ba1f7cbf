//! Passes `shader_constants` and `shader_constants.2`: what is computed of kernel parameters, sizes
//! of the launch and immediates alone is read from a constant bank, which the host patches before
//! the launch.
//!
//! One engine at two positions (ExtractShaderConstsFirst and -Final). It finds trees of such
//! computations in one sweep, ranks those that instructions outside of trees read, and puts a load
//! of a patched word behind each that has won; the old computation is left for dead-code
//! elimination. The first position leaves what has no room, and what has the same score as
//! something without room, to the second one, which also drops words that nothing reads any more,
//! packs the map and closes it. Without a map, which the caller of the compiler asks for, neither
//! does anything. No step of a program can trap, and `sim::patches` evaluates them with the
//! simulator's arithmetic.

mod candidates;
mod classes;
mod finalise;
mod rank;
mod rewrite;
mod trees;
mod validate;

use crate::analysis::PassCx;
use crate::legal::Legalization;
use crate::tables::Knob;
use candidates::candidates;
use trees::Trees;

/// Optimization levels above this one run the engine.
const LEVEL: u8 = 1;
/// Blocks that are no body: the entry.
const PREAMBLE: i64 = 1;
/// A body must have more blocks than this.
const SMALL_BODY: i64 = 3;

/// Runs the first position.
///
/// # Errors
///
/// What the validator finds.
pub fn first(cx: &mut PassCx, options: &Legalization) -> Result<(), String> {
    run(cx, options, false)
}

/// Runs the second position.
///
/// # Errors
///
/// What the validator finds.
pub fn last(cx: &mut PassCx, options: &Legalization) -> Result<(), String> {
    run(cx, options, true)
}

fn run(cx: &mut PassCx, options: &Legalization, is_last: bool) -> Result<(), String> {
    let asked = cx.function.attributes().shader_constants.as_ref().is_some_and(|map| !map.finalised);
    if options.opt_level <= LEVEL || !asked {
        cx.unchanged = true;
        return Ok(());
    }
    let Some(mut map) = cx.function.attributes_mut().shader_constants.take() else { return Ok(()) };
    if is_last {
        finalise::pack(cx.function, &mut map);
    }
    if body_size(cx, options) > SMALL_BODY {
        let (cfg, loops) = (cx.cfg(), cx.loops());
        let trees = Trees::new(cx.function, &cfg, map.param_bytes);
        let found = candidates(cx.function, &trees, &loops);
        let chosen = rank::choose(found, &mut map, is_last);
        rewrite::run(cx.function, &map, &chosen);
    }
    if is_last {
        finalise::close(cx.function, &mut map);
    }
    cx.function.attributes_mut().shader_constants = Some(map);
    if options.knobs.is_on(Knob::ValidateShaderConstants) && options.knobs.is_on(Knob::ValidateShaderConstantsLevel) {
        validate::run(cx.function)?;
    }
    Ok(())
}

/// Blocks of the body. Knob 453 clamps the span of which the preamble is taken off.
fn body_size(cx: &PassCx, options: &Legalization) -> i64 {
    let span = cx.function.layout().len() as i64;
    let most = options.knobs.get(Knob::ShaderConstantSpan);
    (if most > 0 { span.min(most) } else { span }) - PREAMBLE
}
