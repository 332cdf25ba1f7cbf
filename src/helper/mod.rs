//! Helpers: functions of `tables/helpers` that code calls by name, compiled by this compiler itself.
//!
//! Input: a module whose functions call helpers that they only declare, or code after whose phases a CALL goes to
//! [`crate::ori::Symbol::Function`] of a helper's name (a phase that needs one writes that CALL, and nothing else; what is passed
//! where is the calling convention of [`require`]'s helper). Output: inline templates in the place of their calls, before lowering ([`splice`]);
//! call targets as weak functions behind each entry that reaches them, once per module ([`add`]). Invariants: a helper is compiled at its
//! first use and kept per target and setting, whichever thread comes first; the kept code never differs from a fresh one.

mod add;
mod compiled;
mod splice;

pub use add::add;
pub use compiled::{Compiled, Settings, compiled, source};
pub use splice::splice;

use crate::tables::helpers::{Helper, Tier};

/// The call target of a name, or why there is none to call.
pub fn require(name: &str) -> Result<&'static Helper, String> {
    let helper = Helper::by_name(name).ok_or_else(|| format!("no helper is called '{name}'"))?;
    if let Some(why) = helper.family().planned {
        return Err(format!("Helper '{name}' is not implemented: {why}"));
    }
    match helper.tier() {
        Tier::Call => Ok(helper),
        Tier::Inline => Err(format!("Helper '{name}' is a template, which is spliced and not called")),
    }
}
