//! The call graph of a module, and the variables that a kernel uses together with its callees.
//!
//! Records for each function its direct callees, whether it calls through pointers, whose addresses
//! it takes and which symbols it names. Everything is in source order, so equal texts give equal
//! results. An alias counts as the function that it stands for.

use crate::ptx::ast::{self, AddressBase, FunctionId, InitValue, OperandKind, Statement, SymbolId, SymbolKind};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::ptx::Op;
use cranelift_entity::SecondaryMap;

/// What the body of one function names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Uses {
    /// Functions that it calls directly, in source order.
    pub callees: Vec<FunctionId>,
    /// Whether it calls through a pointer.
    pub indirect: bool,
    /// Functions whose address it takes.
    pub pointers: SortedSet<FunctionId>,
    /// Symbols of the prototypes or call-target lists of its indirect calls.
    pub through: SortedSet<SymbolId>,
    /// Variables that it names.
    pub symbols: SortedSet<SymbolId>,
    /// Parameter variables that it names other than in a load, a store or a call.
    pub addressed: SortedSet<SymbolId>,
}

static NOTHING: Uses = Uses {
    callees: Vec::new(),
    indirect: false,
    pointers: SortedSet::new(),
    through: SortedSet::new(),
    symbols: SortedSet::new(),
    addressed: SortedSet::new(),
};

/// The call graph of a module.
#[derive(Default)]
pub(crate) struct Calls {
    /// What each function names, if anything.
    uses: SecondaryMap<FunctionId, Option<Box<Uses>>>,
    /// Functions whose address is taken, in order of declaration.
    pub pointers: Vec<FunctionId>,
    /// Whether the driver does copies to other blocks on this target.
    pub copies_by_call: bool,
    /// The same of textures and surfaces.
    pub images_by_call: bool,
    /// The same of reads with gradients of volumes and cubes.
    pub volumes_by_call: bool,
    aliases: SortedMap<FunctionId, FunctionId>,
}

impl Calls {
    /// Builds the call graph of a module.
    pub fn new(module: &ast::Module) -> Calls {
        let mut calls = Calls::default();
        for (alias, of) in &module.aliases {
            if let (Some(alias), Some(of)) = (function_of(module, *alias), function_of(module, *of)) {
                calls.aliases.insert(alias, of);
            }
        }
        let mut pointers = SortedSet::new();
        for (id, function) in module.functions.iter() {
            let (uses, called) = (Uses::default(), SortedSet::new());
            let mut scan = Scan { module, calls: &calls, uses, called, pointers: &mut pointers };
            for statement in function.body.iter().flatten() {
                if let Statement::Instruction(inst) = statement {
                    scan.instruction(inst);
                }
            }
            let uses = scan.uses;
            if uses != NOTHING {
                calls.uses[id] = Some(Box::new(uses));
            }
        }
        for symbol in module.symbols.values() {
            let SymbolKind::Variable(variable) = &symbol.kind else { continue };
            for element in &variable.init {
                if let InitValue::Address { symbol, .. } = element.value
                    && let Some(id) = function_of(module, symbol)
                    && !module.functions[id].is_entry
                {
                    pointers.insert(calls.resolved(id));
                }
            }
        }
        calls.pointers = pointers.into_iter().collect();
        calls
    }

    /// What a function names.
    pub fn uses(&self, id: FunctionId) -> &Uses {
        self.uses[id].as_deref().unwrap_or(&NOTHING)
    }

    /// The function that a name stands for, with aliases resolved.
    pub fn resolved(&self, mut id: FunctionId) -> FunctionId {
        for _ in 0..self.aliases.len() {
            match self.aliases.get(&id) {
                Some(of) => id = *of,
                None => break,
            }
        }
        id
    }

    /// Value of a pointer to the function; `None` if its address is never taken.
    pub fn pointer(&self, id: FunctionId) -> Option<u64> {
        let id = self.resolved(id);
        self.pointers.binary_search(&id).ok().map(crate::lower::module::layout::pointer_value)
    }

    /// Whether a function calls itself directly or through other direct calls.
    pub fn reaches_itself(&self, id: FunctionId) -> bool {
        let mut found: Vec<FunctionId> = self.uses(id).callees.clone();
        let mut next = 0;
        while let Some(callee) = found.get(next).copied() {
            if callee == id {
                return true;
            }
            let new = self.uses(callee).callees.iter().filter(|c| !found.contains(c)).copied().collect::<Vec<_>>();
            found.extend(new);
            next += 1;
        }
        false
    }

    /// The functions with a body that a kernel may call, without itself, in the order in which the
    /// search finds them.
    pub fn reachable(&self, module: &ast::Module, kernel: FunctionId) -> Vec<FunctionId> {
        let mut found: Vec<FunctionId> = Vec::new();
        let mut known = SortedSet::new();
        let mut next = 0;
        let mut from = Some(kernel);
        while let Some(id) = from {
            let uses = self.uses(id);
            let pointers: &[FunctionId] = if uses.indirect { &self.pointers } else { &[] };
            for callee in uses.callees.iter().chain(pointers) {
                if *callee != kernel && module.functions[*callee].body.is_some() && known.insert(*callee) {
                    found.push(*callee);
                }
            }
            from = found.get(next).copied();
            next += 1;
        }
        found
    }
}

struct Scan<'a> {
    module: &'a ast::Module,
    calls: &'a Calls,
    uses: Uses,
    /// Functions that it calls directly.
    called: SortedSet<FunctionId>,
    pointers: &'a mut SortedSet<FunctionId>,
}

impl Scan<'_> {
    fn instruction(&mut self, inst: &ast::Instruction) {
        if inst.op != Op::Call {
            inst.operands.iter().for_each(|operand| self.operand(operand));
            return;
        }
        match inst.operands.get(1).map(|o| &o.kind) {
            Some(OperandKind::Symbol { symbol, .. }) => match function_of(self.module, *symbol) {
                Some(id) => {
                    let id = self.calls.resolved(id);
                    if self.called.insert(id) {
                        self.uses.callees.push(id);
                    }
                }
                None => self.uses.indirect = true,
            },
            _ => self.uses.indirect = true,
        }
        if let Some(OperandKind::Symbol { symbol, .. }) = inst.operands.get(3).map(|o| &o.kind) {
            self.uses.through.insert(*symbol);
        }
        for operand in &inst.operands {
            let OperandKind::List(list) = &operand.kind else { continue };
            for element in list {
                if let OperandKind::Symbol { symbol, .. } = &element.kind {
                    self.uses.symbols.insert(*symbol);
                }
            }
        }
    }

    fn operand(&mut self, operand: &ast::Operand) {
        match &operand.kind {
            OperandKind::Symbol { symbol, .. } => {
                match function_of(self.module, *symbol) {
                    Some(id) => {
                        let id = self.calls.resolved(id);
                        self.pointers.insert(id);
                        self.uses.pointers.insert(id);
                    }
                    None => _ = self.uses.symbols.insert(*symbol),
                }
                self.uses.addressed.insert(*symbol);
            }
            OperandKind::Address(address) => {
                if let AddressBase::Symbol(symbol) = address.base {
                    self.uses.symbols.insert(symbol);
                }
                address.rest.iter().for_each(|o| self.operand(o));
            }
            OperandKind::Vector(list) | OperandKind::List(list) => list.iter().for_each(|o| self.operand(o)),
            OperandKind::Pair(pair) => [&pair.0, &pair.1].into_iter().for_each(|o| self.operand(o)),
            _ => {}
        }
    }
}

/// The function that a symbol names.
pub(crate) fn function_of(module: &ast::Module, symbol: SymbolId) -> Option<FunctionId> {
    match module.symbols[symbol].kind {
        SymbolKind::Function(id) => Some(id),
        _ => None,
    }
}
