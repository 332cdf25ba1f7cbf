//! Helpers: runtime functions of `tables/helpers` that code calls by name, compiled by this
//! compiler itself.
//!
//! Callers are a module that declares a helper without a body, or a phase that emits a CALL to
//! [`crate::ori::Symbol::Function`] of a helper's name; the calling convention is that of
//! [`require`]'s helper. Templates are inlined before lowering ([`inline`]); the others become weak
//! functions behind each entry that reaches them, once per module ([`add`]). A helper is compiled
//! on first use and cached per target and setting, whichever thread comes first; cached code never
//! differs from fresh code. The slow paths of expansions ([`slow_path`]) are added the same way.

mod add;
mod compiled;
mod inline;
mod slow_path;

pub use add::{add, slow_paths};
pub use compiled::{Compiled, Settings, compiled, source};
pub use inline::splice;

use crate::tables::helpers::{Helper, Tier};

/// The helper to call under a name.
///
/// # Errors
///
/// An unknown name, a helper that is not implemented, or an inline template, which cannot be
/// called.
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
