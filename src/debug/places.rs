//! What a name in debug information stands for: a label of the code, a variable, a parameter.

use super::Facts;
use crate::cubin::{Cubin, Function, Space as Home};
use crate::ptx::ast::{self, Module, Statement, SymbolId, SymbolKind};
use crate::sorted::SortedMap;
use crate::tables::ptx::Space;

/// The meaning of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A symbol of the file plus an offset; in memory of the device the loader fills it in.
    Symbol { symbol: String, offset: u64, generic: bool },
    /// An offset in a section of debug information.
    Section { name: String, offset: u64 },
    /// An offset that is known: in constant bank 0, in shared memory.
    Number(u64),
    /// Bytes from the end of the stack frame, below it.
    Frame(i64),
}

impl Place {
    /// The offset, for differences.
    pub fn offset(&self) -> Option<i64> {
        match self {
            Place::Symbol { offset, .. } | Place::Section { offset, .. } => Some(*offset as i64),
            Place::Number(_) | Place::Frame(_) => None,
        }
    }
}

/// The names of a module.
pub struct Places<'a> {
    cubin: &'a Cubin,
    module: &'a Module,
    facts: &'a Facts,
    labels: SortedMap<&'a str, (&'a str, u64)>,
    symbols: SortedMap<&'a str, SymbolId>,
}

impl<'a> Places<'a> {
    /// The names of a module that this file was made of.
    pub fn new(cubin: &'a Cubin, module: &'a Module, facts: &'a Facts) -> Places<'a> {
        let mut labels = SortedMap::new();
        for source in module.functions.values() {
            if let Some(function) = cubin.function(&source.name) {
                labels_of(source, function, &mut labels);
            }
        }
        let symbols = module.symbols.iter().map(|(id, symbol)| (symbol.name.as_str(), id)).collect();
        Places { cubin, module, facts, labels, symbols }
    }

    /// The meaning of a name; `None` for an unknown one.
    pub fn of(&self, name: &str) -> Option<Place> {
        let symbol = |symbol: &str, offset, generic| Place::Symbol { symbol: symbol.to_string(), offset, generic };
        if let Some((function, offset)) = self.labels.get(name) {
            return Some(symbol(function, *offset, false));
        }
        let id = *self.symbols.get(name)?;
        let SymbolKind::Variable(variable) = &self.module.symbols[id].kind else {
            return self.cubin.function(name).map(|function| symbol(&function.name, 0, false));
        };
        let facts = self.facts.functions.values().find(|facts| facts.places.contains_key(&id));
        match variable.space {
            Space::Global | Space::Const => {
                let of =
                    |v: &&crate::cubin::Variable| v.name == name || v.name == format!("$__{name}__{}", id.as_u32());
                let found = self.cubin.variables.iter().find(of)?;
                Some(symbol(&found.name, 0, found.space == Home::Constant))
            }
            Space::Param | Space::ParamEntry if self.is_of_entry(id) => {
                facts.map(|facts| Place::Number(facts.places[&id]))
            }
            Space::Local | Space::Param | Space::ParamEntry => {
                facts.map(|facts| Place::Frame(facts.places[&id] as i64 - i64::from(facts.frame_bytes)))
            }
            _ => self.shared(name, id),
        }
    }

    fn is_of_entry(&self, id: SymbolId) -> bool {
        let owns = |function: &ast::Function| function.params.iter().any(|param| param.symbol() == Some(id));
        self.module.functions.values().any(|function| function.is_entry && owns(function))
    }

    /// A shared variable: its address, or in an object its symbol.
    fn shared(&self, name: &str, id: SymbolId) -> Option<Place> {
        if let Some(address) = self.facts.arrays.get(name) {
            return Some(Place::Number(*address));
        }
        let own = format!("$__{name}__{}", id.as_u32());
        let found = self.cubin.kept.symbols.iter().find(|symbol| symbol.name == own || symbol.name == name)?;
        Some(match self.cubin.kind {
            crate::cubin::ElfKind::Executable => Place::Number(found.value),
            crate::cubin::ElfKind::Relocatable => {
                let offset = super::link::shared_base(self.cubin.sm);
                Place::Symbol { symbol: found.name.clone(), offset, generic: false }
            }
        })
    }
}

/// The labels of a function with their offsets: that of the first instruction behind them that has
/// code, or the end of the section.
fn labels_of<'a>(source: &'a ast::Function, function: &'a Function, labels: &mut SortedMap<&'a str, (&'a str, u64)>) {
    let mut first: SortedMap<u32, u64> = SortedMap::new();
    for (word, line) in function.lines.iter().enumerate() {
        first.entry(*line).or_insert(word as u64 * 16);
    }
    let mut waiting = Vec::new();
    let mut begun = false;
    for statement in source.body.iter().flatten() {
        match statement {
            Statement::Label(id) => {
                let name = source.labels[*id].name.as_str();
                if begun {
                    waiting.push(name);
                } else {
                    labels.insert(name, (&function.name, 0));
                }
            }
            Statement::Instruction(inst) => {
                begun = true;
                if let Some(at) = first.get(&inst.pos.line) {
                    labels.extend(waiting.drain(..).map(|name| (name, (function.name.as_str(), *at))));
                }
            }
            Statement::Location(_) | Statement::Pragma(_) => {}
        }
    }
    let end = function.code.len() as u64;
    labels.extend(waiting.drain(..).map(|name| (name, (function.name.as_str(), end))));
}
