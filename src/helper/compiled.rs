//! Compiles helpers, once for each target and setting, and caches the code.

use super::slow_path;
use crate::legal::Legalization;
use crate::lower::{self, LoweredFunction, ObjectFacts};
use crate::pass::{self, PassControl};
use crate::pipeline::emit;
use crate::ptx;
use crate::sorted::SortedMap;
use crate::tables::Target;
use crate::tables::helpers::Helper;
use crate::tables::ptx::VERSIONS;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

/// What the code of a helper depends on, besides its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Settings {
    /// Name of the target.
    pub target: &'static str,
    /// Whether a relocatable object is built.
    pub object: bool,
    /// Whether optional passes run.
    pub optimise: bool,
    /// Register limit from its callers.
    pub max_registers: Option<u32>,
    /// Whether the IR verifier runs after every pass.
    pub verify: bool,
    /// Whether it is the slow path of an expansion, which is always optimized.
    pub slow_path: bool,
}

/// A helper compiled as a device function.
pub struct Compiled {
    /// The lowered function.
    pub lowered: LoweredFunction,
    /// Its code.
    pub code: emit::Code,
    /// What an object records about it.
    pub object: ObjectFacts,
}

type Outcome = Result<Arc<Compiled>, String>;
type Cell = Arc<OnceLock<Outcome>>;
static KEPT: LazyLock<Mutex<SortedMap<(u16, Settings), Cell>>> = LazyLock::new(Mutex::default);

/// A PTX text that defines the helper as a weak function.
pub fn source(helper: &Helper, target: &str) -> String {
    format!("{}.weak {}\n{{\n{}    ret;\n}}\n", head(target), helper.head, helper.body)
}

/// The header of a PTX text for a target.
pub(super) fn head(target: &str) -> String {
    let (major, minor) = VERSIONS.last().copied().unwrap_or_default();
    format!(".version {major}.{minor}\n.target {target}\n.address_size 64\n")
}

/// Compiles a helper on first use; the result stays cached for the life of the process.
///
/// # Errors
///
/// A helper that cannot be compiled.
pub fn compiled(helper: &'static Helper, settings: Settings) -> Outcome {
    let cell = {
        // If a thread panicked with the lock held, the entries are still complete.
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.entry((helper.id, settings)).or_default().clone()
    };
    cell.get_or_init(|| compile(helper, settings).map(Arc::new)).clone()
}

fn compile(helper: &Helper, settings: Settings) -> Result<Compiled, String> {
    let wrong = |message: &str| format!("helper '{}' for {}: {message}", helper.name, settings.target);
    let text = if settings.slow_path { slow_path::source } else { source };
    let (module, diagnostics) = ptx::parse(&text(helper, settings.target));
    let told = |list: &[crate::diag::Diagnostic]| {
        wrong(&list.iter().map(|d| d.message.as_str()).collect::<Vec<_>>().join("; "))
    };
    let module = module.ok_or_else(|| told(&diagnostics))?;
    let target = Target::by_name(settings.target).ok_or_else(|| wrong("no such target"))?;
    let mut library = lower::library(&module, target, settings.object).map_err(|list| told(&list))?;
    let mut lowered = library.devices.pop().ok_or_else(|| wrong("no function"))?;
    lowered.function.attributes_mut().max_registers = settings.max_registers;
    lowered.function.attributes_mut().optimise = settings.optimise;
    if settings.slow_path {
        slow_path::prepare(&mut lowered.function, helper);
    }
    // Knobs and backends of the caller do not apply to helpers, so they are the same for all
    // callers.
    let asked = Legalization { opt_level: if settings.optimise { 3 } else { 0 }, ..Legalization::default() };
    let control = PassControl { verify: settings.verify, ..PassControl::default() };
    pass::run(&mut lowered.function, &asked, &control, |_| ()).map_err(|e| wrong(&e.to_string()))?;
    if settings.slow_path {
        slow_path::check(&lowered.function, helper).map_err(|message| wrong(&message))?;
    }
    let code = emit::emit(&lowered.function).map_err(|message| wrong(&message))?;
    Ok(Compiled { lowered, code, object: library.object })
}
