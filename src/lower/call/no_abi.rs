//! The mode without a calling convention: what causes it, and which modules it makes invalid.
//!
//! The rules and messages are those of ptxas 13.0.88 on all targets. A function or a call with
//! several results switches the convention off for the whole module, with a warning; objects,
//! indirect calls, calls of external functions and recursion are then errors. Predicates and
//! integers of 8 and 16 bits may be passed only in this mode; bit types and floats of these sizes
//! may always be passed.

use super::call_graph::Calls;
use crate::diag::Diagnostic;
use crate::ptx::ast::{self, FunctionId, Linkage, Module, Parameter, Prototype, PrototypeParameter, SymbolKind};
use crate::tables::choices::SYSTEM;
use crate::tables::helpers::Helper;
use crate::tables::ptx::{ScalarType, TypeClass};

/// Warning and error that ptxas gives for the functions of a module.
#[derive(Default)]
pub(crate) struct Verdict {
    /// The warning that the convention is switched off.
    pub warning: Option<String>,
    /// Violations of the rules.
    pub errors: Vec<Diagnostic>,
}

/// Checks the functions of a module. With `devices`, unreachable device functions are checked too.
pub(crate) fn check(module: &Module, calls: &Calls, object: bool, devices: bool) -> Verdict {
    let Some(warning) = switched_off(module, calls) else {
        let errors = narrow_integers(module, calls, devices).map(Diagnostic::fatal);
        return Verdict { warning: None, errors: errors.into_iter().collect() };
    };
    let error = needs_convention(module, calls, object).map(Diagnostic::fatal);
    Verdict { warning: Some(warning), errors: error.into_iter().collect() }
}

/// The warning that names what switches the convention off; `None` if nothing does.
fn switched_off(module: &Module, calls: &Calls) -> Option<String> {
    // The convention of a runtime helper is fixed by its row, whatever results it has.
    let helper = |f: &ast::Function| f.body.is_none() && Helper::by_name(&f.name).is_some();
    let function = module.functions.values().find(|f| f.results.len() > 1 && !helper(f));
    if let Some(function) = function {
        let name = &function.name;
        return Some(format!("Function '{name}' with multiple return values found, disabling ABI"));
    }
    let several = prototypes(module, calls, |_| true).any(|p| p.results.len() > 1);
    several.then(|| "Function call with multiple return values found, disabling ABI".to_string())
}

/// The prototypes of the indirect calls in functions.
fn prototypes<'m>(
    module: &'m Module,
    calls: &'m Calls,
    wanted: impl Fn(FunctionId) -> bool + 'm,
) -> impl Iterator<Item = &'m Prototype> {
    let through = module.functions.keys().filter(move |id| wanted(*id)).flat_map(|id| &calls.uses(id).through);
    through.filter_map(|symbol| match &module.symbols[*symbol].kind {
        SymbolKind::Prototype(prototype) => Some(prototype.as_ref()),
        _ => None,
    })
}

/// The error for a module that needs the convention.
fn needs_convention(module: &Module, calls: &Calls, object: bool) -> Option<String> {
    if object {
        return Some("'Compile only(-c)' requires ABI".to_string());
    }
    let uses = || module.functions.keys().map(|id| (id, calls.uses(id)));
    let known = |name: &str| SYSTEM.contains(&name) || Helper::by_name(name).is_some();
    let missing = |id: FunctionId, f: &ast::Function| {
        let called = f.linkage == Linkage::Internal || uses().any(|(_, uses)| uses.callees.contains(&id));
        f.body.is_none() && !f.is_entry && called && !known(&f.name)
    };
    if let Some((_, function)) = module.functions.iter().find(|(id, f)| missing(*id, f)) {
        return Some(format!("Unresolved extern function '{}'", function.name));
    }
    let outside = |id: &FunctionId| module.functions[*id].body.is_none();
    if uses().any(|(_, uses)| uses.indirect || uses.callees.iter().any(outside)) {
        return Some("'Indirect Functions or Extern Functions' requires ABI".to_string());
    }
    let entries = module.functions.keys().filter(|id| module.functions[*id].is_entry);
    let reached = entries.flat_map(|id| calls.reachable(module, id));
    if let Some(id) = reached.chain(module.functions.keys()).find(|id| calls.reaches_itself(*id)) {
        return Some(format!("Function '{}' is recursive", module.functions[id].name));
    }
    (!calls.pointers.is_empty()).then(|| "Indirect function call requires ABI".to_string())
}

/// The error for a compiled function that passes a predicate or a narrow integer.
fn narrow_integers(module: &Module, calls: &Calls, devices: bool) -> Option<String> {
    let entries = module.functions.iter().filter(|(_, f)| f.is_entry && f.body.is_some());
    let mut reached: Vec<FunctionId> = entries.map(|(id, _)| id).collect();
    for id in reached.clone() {
        reached.extend(calls.reachable(module, id));
    }
    let compiled = |id: FunctionId| devices && module.functions[id].body.is_some() || reached.contains(&id);
    let passes = |list: fn(&ast::Function) -> &[Parameter]| {
        module.functions.iter().any(|(id, f)| {
            let one = |parameter: &Parameter| match parameter {
                Parameter::Register(r) => f.registers[*r].vector <= 1 && is_narrow(f.registers[*r].ty),
                Parameter::Memory(symbol) => match &module.symbols[*symbol].kind {
                    SymbolKind::Variable(v) => v.dimensions.is_empty() && is_narrow(v.ty),
                    _ => false,
                },
            };
            !f.is_entry && compiled(id) && list(f).iter().any(one)
        })
    };
    let by_prototype = |params: bool| {
        let list = |p: &Prototype| if params { p.params.clone() } else { p.results.clone() };
        let scalar = |p: &PrototypeParameter| p.vector <= 1 && p.size == u64::from(p.ty.bits().div_ceil(8));
        prototypes(module, calls, compiled).any(|p| list(p).iter().any(|p| scalar(p) && is_narrow(p.ty)))
    };
    let kinds = "predicate, 8-bit and 16-bit";
    if passes(|f| &f.params) || by_prototype(true) {
        return Some(format!("In ABI compilation, passing {kinds} parameters to device functions is not supported"));
    }
    let returned = passes(|f| &f.results) || by_prototype(false);
    returned.then(|| format!("In ABI compilation, returning {kinds} values from device functions is not supported"))
}

/// Whether a scalar of this type may be passed only without the convention.
fn is_narrow(ty: ScalarType) -> bool {
    match ty.class() {
        TypeClass::Predicate => true,
        TypeClass::Signed | TypeClass::Unsigned => ty.bits() <= 16,
        _ => false,
    }
}
