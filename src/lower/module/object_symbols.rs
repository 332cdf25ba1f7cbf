//! What a relocatable object records about its module besides code and images: symbols of external
//! variables and of aliases, the call graph, and function prototypes.
//!
//! Everything is in source order. Source of all forms: objects that ptxas 13.0.88 makes.

use super::layout::{LOOSE_SHARED, ModuleLayout, binding_of};
use crate::cubin::model::{Binding, CallRow};
use crate::cubin::symbols::{STT_FUNC, STT_SECTION, info};
use crate::cubin::{KeptSymbol, SymbolHome};
use crate::lower::ObjectFacts;
use crate::lower::call::call_graph::{Calls, function_of};
use crate::ptx::ast::{self, FunctionId, Linkage, Parameter, SymbolKind};
use crate::tables::images;
use crate::tables::ptx::{ScalarType, TypeClass};
use std::fmt::Write as _;

/// Collects the symbols, the call graph and the prototypes of an object.
pub fn facts(module: &ast::Module, calls: &Calls, layout: &ModuleLayout) -> ObjectFacts {
    let mut symbols = layout.loose.clone();
    let shared = layout.shared.get(&None).copied();
    if shared.is_some() {
        let section = SymbolHome::Section(LOOSE_SHARED.to_string());
        let name = LOOSE_SHARED.to_string();
        symbols.insert(0, KeptSymbol { name, info: STT_SECTION, section, ..KeptSymbol::default() });
    }
    symbols.extend(aliases(module, calls));
    let missing = calls.pointers.iter().map(|id| &module.functions[*id]).filter(|f| f.body.is_none());
    symbols.extend(missing.map(|f| {
        let info = info(Binding::Global, STT_FUNC);
        KeptSymbol { name: f.name.clone(), info, ..KeptSymbol::default() }
    }));
    ObjectFacts { symbols, shared, call_graph: call_graph(module, calls), prototypes: prototypes(module, calls) }
}

impl ObjectFacts {
    /// Adds the calls of functions of the driver that stand for instructions: without them the
    /// linker takes their names for zero. Given are the functions with all that they name.
    pub fn add_calls_of_driver(
        &mut self,
        module: &ast::Module,
        functions: impl Iterator<Item = (String, Vec<String>)>,
    ) {
        let declared: crate::sorted::SortedSet<&str> = module.functions.values().map(|f| f.name.as_str()).collect();
        let rows = functions.flat_map(|(caller, named)| {
            let of_driver = named.into_iter().filter(|name| !declared.contains(name.as_str()));
            of_driver.map(move |callee| (caller.clone(), callee)).collect::<Vec<_>>()
        });
        let mut calls = Vec::new();
        for (caller, callee) in rows {
            let prototype = images::Function::by_name(&callee).map_or("", |(_, function)| function.prototype);
            let row = (callee.clone(), prototype.to_string());
            if !prototype.is_empty() && !self.prototypes.contains(&row) {
                self.prototypes.push(row);
            }
            calls.push(CallRow::Direct { caller, callee });
        }
        self.call_graph.splice(0..0, calls);
    }
}

/// Aliases, each with the function with a body that it stands for.
fn aliases_with_body(module: &ast::Module, calls: &Calls) -> Vec<(FunctionId, FunctionId)> {
    let resolved = |(alias, _): &(ast::SymbolId, ast::SymbolId)| {
        let alias = function_of(module, *alias)?;
        let of = calls.resolved(alias);
        module.functions[of].body.is_some().then_some((alias, of))
    };
    module.aliases.iter().filter_map(resolved).collect()
}

fn aliases(module: &ast::Module, calls: &Calls) -> Vec<KeptSymbol> {
    let symbol = |(alias, of): (FunctionId, FunctionId)| {
        let own = &module.functions[alias];
        let section = SymbolHome::Section(format!(".text.{}", module.functions[of].name));
        let info = info(binding_of(own.linkage), STT_FUNC);
        KeptSymbol { name: own.name.clone(), info, section, ..KeptSymbol::default() }
    };
    aliases_with_body(module, calls).into_iter().map(symbol).collect()
}

fn call_graph(module: &ast::Module, calls: &Calls) -> Vec<CallRow> {
    let name = |id: FunctionId| module.functions[id].name.clone();
    let bodies = || module.functions.iter().filter(|(_, f)| f.body.is_some()).map(|(id, _)| id);
    let mut rows = Vec::new();
    for caller in bodies() {
        let callees = calls.uses(caller).callees.iter();
        rows.extend(callees.map(|callee| CallRow::Direct { caller: name(caller), callee: name(*callee) }));
    }
    // An edge from the alias keeps the linker from removing the function that it stands for.
    for (alias, of) in aliases_with_body(module, calls) {
        rows.push(CallRow::Direct { caller: name(alias), callee: name(of) });
    }
    for id in &calls.pointers {
        let prototype = of_function(module, &module.functions[*id]);
        rows.push(CallRow::Address { function: name(*id), prototype });
    }
    for caller in bodies() {
        for through in &calls.uses(caller).through {
            if let SymbolKind::Prototype(prototype) = &module.symbols[*through].kind {
                rows.push(CallRow::Indirect { caller: name(caller), prototype: of_prototype(prototype) });
            }
        }
    }
    for caller in bodies() {
        let pointers = calls.uses(caller).pointers.iter();
        rows.extend(pointers.map(|callee| CallRow::Reaches { caller: name(caller), callee: name(*callee) }));
    }
    rows
}

/// Functions that others may call by name: those with a body, and those called here.
fn prototypes(module: &ast::Module, calls: &Calls) -> Vec<(String, String)> {
    let called = |id: FunctionId| module.functions.keys().any(|f| calls.uses(f).callees.contains(&id));
    let second = aliases_with_body(module, calls);
    let wanted = |id: FunctionId, f: &ast::Function| {
        let known = f.linkage != Linkage::Internal && !f.is_entry && !calls.pointers.contains(&id);
        known && (f.body.is_some() || called(id) || second.iter().any(|(alias, _)| *alias == id))
    };
    let all = module.functions.iter().filter(|(id, f)| wanted(*id, f));
    all.map(|(_, f)| (f.name.clone(), of_function(module, f))).collect()
}

/// A prototype: `#`, then the results (`v` if none), then the parameters.
fn of_function(module: &ast::Module, function: &ast::Function) -> String {
    let one = |parameter: &Parameter| match parameter {
        Parameter::Register(id) => {
            let register = &function.registers[*id];
            register_letter(register.ty, register.vector).to_string()
        }
        Parameter::Memory(id) => match &module.symbols[*id].kind {
            SymbolKind::Variable(v) => {
                let mut text = letter(v.ty).to_string();
                if !v.dimensions.is_empty() {
                    let _ = write!(text, "{}", v.size / u64::from(v.ty.bits() / 8).max(1));
                }
                text
            }
            _ => String::new(),
        },
    };
    joined(function.results.iter().map(one), function.params.iter().map(one))
}

fn of_prototype(prototype: &ast::Prototype) -> String {
    let one = |p: &ast::PrototypeParameter| {
        if p.in_register {
            return register_letter(p.ty, p.vector).to_string();
        }
        let (mut text, element) = (letter(p.ty).to_string(), u64::from(p.ty.bits() / 8).max(1));
        if p.size != element {
            let _ = write!(text, "{}", p.size / element);
        }
        text
    };
    joined(prototype.results.iter().map(one), prototype.params.iter().map(one))
}

fn joined(results: impl Iterator<Item = String>, params: impl Iterator<Item = String>) -> String {
    let results: String = results.collect();
    let results = if results.is_empty() { "v".to_string() } else { results };
    format!("#{results}{}", params.collect::<String>())
}

/// The letter of a register; a vector counts as bits of its size.
fn register_letter(ty: ScalarType, vector: u32) -> char {
    match vector {
        0 | 1 => letter(ty),
        _ => letter_of_bits(ty.bits() * vector),
    }
}

/// The letter of a type: by size, except that floats of 32 and 64 bits have their own.
fn letter(ty: ScalarType) -> char {
    match (ty.class() == TypeClass::Float, ty.bits()) {
        (true, 32) => 'f',
        (true, 64) => 'd',
        (_, bits) => letter_of_bits(bits),
    }
}

fn letter_of_bits(bits: u32) -> char {
    match bits {
        128 => 'x',
        64 => 'l',
        16 => 'h',
        8 => 'b',
        _ => 'i',
    }
}
