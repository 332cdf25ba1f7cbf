//! What a cubin says of the references of a module: textures, samplers and surfaces by name.

use crate::cubin::model::Binding;
use crate::cubin::{self, symbols};
use crate::ptx::ast::{Module, SymbolId, SymbolKind, Variable};
use crate::tables::elf::AttributeValue;
use crate::tables::ptx::{FIELD_VALUES, ScalarType, TypeClass};

/// A setting of a sampler that its initialiser leaves open.
const NOT_SAID: u8 = 0xff;

/// Symbols of references: those that the first function of the file names, then the other ones in
/// order of declaration, named or not. Source: ptxas 13.0.88.
pub fn symbols_of(functions: &[cubin::Function], module: &Module) -> Vec<cubin::KeptSymbol> {
    let first = functions.first().into_iter().flat_map(|function| &function.references);
    let declared = references_of(module).map(|(name, _)| name);
    let mut all: Vec<cubin::KeptSymbol> = Vec::new();
    for name in first.map(|reloc| reloc.symbol.as_str()).chain(declared) {
        let variable = references_of(module).find(|(other, _)| *other == name).map(|(_, variable)| variable);
        let kind = match variable.map(|variable| variable.ty) {
            Some(ScalarType::Surfref) => symbols::STT_SURFACE,
            Some(ScalarType::Samplerref) => symbols::STT_SAMPLER,
            _ => symbols::STT_TEXTURE,
        };
        if all.iter().all(|symbol| symbol.name != name) {
            let info = symbols::info(Binding::Global, kind);
            all.push(cubin::KeptSymbol { name: name.to_string(), info, ..cubin::KeptSymbol::default() });
        }
    }
    all
}

/// The references of a module that are no arrays, in order of declaration.
fn references_of(module: &Module) -> impl Iterator<Item = (&str, &Variable)> {
    let one = |id: &SymbolId| {
        let symbol = &module.symbols[*id];
        match &symbol.kind {
            SymbolKind::Variable(v) if v.ty.class() == TypeClass::Opaque && v.dimensions.is_empty() => {
                Some((symbol.name.as_str(), v.as_ref()))
            }
            _ => None,
        }
    };
    module.globals.iter().filter_map(one)
}

/// The samplers of a module and what their initialisers say. Source: ptxas 13.0.88, which writes
/// nothing of arrays, and of a field that is given twice the last value.
pub fn samplers(module: &Module) -> Vec<cubin::Sampler> {
    let samplers = references_of(module).filter(|(_, variable)| variable.ty == ScalarType::Samplerref);
    samplers.map(|(name, variable)| sampler(name, variable)).collect()
}

fn sampler(name: &str, variable: &Variable) -> cubin::Sampler {
    let mut settings = [NOT_SAID; 4];
    let mut unnormalized = None;
    for field in &variable.fields {
        match field.info.record {
            Some(AttributeValue::SamplerInit) => {
                let known = FIELD_VALUES.iter().find(|known| known.value == field.value);
                settings[usize::from(field.info.byte)] = known.map_or(NOT_SAID, |known| known.setting);
            }
            Some(AttributeValue::SamplerUnnormalized) => unnormalized = Some(field.value),
            _ => {}
        }
    }
    let unnormalized = unnormalized.filter(|value| *value != u32::MAX);
    cubin::Sampler { name: name.to_string(), settings: u32::from_le_bytes(settings), unnormalized }
}
