//! Warnings about a module as a whole, in the words and order of ptxas.
//!
//! Covers `.loc` without `.file`, impossible register limits, and unknown pragmas. Only compiled
//! functions are considered, later entries first, as in ptxas.

use crate::diag::Diagnostic;
use crate::lower::LoweredModule;
use crate::ptx::ast::{Function, Module, Statement};
use crate::ptx::pragma_name;
use crate::sorted::SortedMap;
use crate::tables::Target;

/// All warnings, in order.
pub fn remarks(module: &Module, lowered: &LoweredModule, target: &Target) -> Vec<Diagnostic> {
    let mut texts = Vec::new();
    let located = |f: &Function| f.body.iter().flatten().any(|s| matches!(s, Statement::Location(_)));
    if module.files.is_empty() && module.functions.values().any(located) {
        let what = ".loc directive without .file directive is found";
        texts.push(format!("{what}, line information in generated binary may not be complete"));
    }
    let by_name: SortedMap<&str, &Function> = module.functions.values().map(|f| (f.name.as_str(), f)).collect();
    let named = |name: &str| by_name.get(name).copied();
    let entries: Vec<_> = lowered.functions.iter().rev().collect();
    for entry in entries.iter().filter_map(|entry| named(entry.function.name())) {
        texts.extend(register_limit(entry, target));
    }
    for entry in entries {
        let own = named(entry.function.name());
        let pieces = entry.pieces.iter().filter_map(|piece| named(lowered.devices[*piece].function.name()));
        texts.extend(own.into_iter().chain(pieces).flat_map(unknown_pragmas));
    }
    texts.into_iter().map(Diagnostic::note).collect()
}

/// A `.maxnreg` above the number of registers, or below what the calling convention needs.
fn register_limit(entry: &Function, target: &Target) -> Option<String> {
    let (count, info, name) = (entry.directives.max_registers?, target.info()?, &entry.name);
    let least = info.abi_min;
    if count > info.reg_limit {
        return Some(format!("Too many maxnreg specified for entry {name}, will be ignored"));
    }
    let adjusted = format!("adjusting per thread register count of {count} to lower bound of {least}");
    (count < least).then(|| format!("For entry {name} {adjusted}"))
}

/// Unknown pragmas of a function's head and body.
fn unknown_pragmas(function: &Function) -> Vec<String> {
    let inner = function.body.iter().flatten().filter_map(|statement| match statement {
        Statement::Pragma(pragma) => Some(pragma),
        _ => None,
    });
    let texts = function.directives.pragmas.iter().chain(inner).flat_map(|pragma| &pragma.texts);
    texts.filter(|text| pragma_name(text).is_none()).map(|text| format!("Pragma '{text}' unsupported")).collect()
}
