//! Names inside a function: registers, variables and labels in nested scopes.
//!
//! Declarations and uses come in source order; the result is one flat table with one id for each
//! register and label that is used. A label may be used before its definition and belongs to the
//! innermost scope around the use that defines it. A name means one thing per scope, and a
//! function's parameters are in the scope of its body.

use super::ast::{Label, LabelId, RegId, Register, SymbolId, Variable};
use super::family::{Families, Member, Numbered, canonical, plain_number};
use super::hash::NameMap;
use crate::diag::Pos;
use crate::sorted::SortedSet;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap, packed_option::PackedOption};

/// What a name resolves to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Register(RegId),
    Symbol(SymbolId),
}

#[derive(Default)]
struct Scope<'a> {
    names: NameMap<&'a str, Name>,
    families: Families<'a>,
    labels: NameMap<&'a str, LabelId>,
    /// The names in order (`sorted`), and those not yet sorted (`fresh`).
    sorted: SortedSet<&'a str>,
    fresh: Vec<&'a str>,
}

impl<'a> Scope<'a> {
    fn name(&mut self, name: &'a str, is: Name) {
        self.names.insert(name, is);
        self.fresh.push(name);
    }
}

/// Largest capacity of a scope's tables that is kept for reuse, since clearing a table costs time
/// proportional to its capacity.
const SPARE: usize = 256;

/// What is known of a label while its function is being read.
struct Draft {
    defined: bool,
    /// The label of an outer scope that this use turned out to refer to.
    same_as: PackedOption<LabelId>,
}

/// Registers, labels and scopes of the function being read.
#[derive(Default)]
pub struct Body<'a> {
    /// All registers of the function.
    pub registers: PrimaryMap<RegId, Register>,
    /// All variables of the function.
    pub variables: Vec<SymbolId>,
    labels: PrimaryMap<LabelId, Label>,
    drafts: PrimaryMap<LabelId, Draft>,
    scopes: Vec<Scope<'a>>,
    /// Empty scopes, kept for their memory.
    spare: Vec<Scope<'a>>,
}

impl<'a> Body<'a> {
    /// Number of open scopes.
    pub fn depth(&self) -> usize {
        self.scopes.len()
    }

    /// Opens a scope.
    pub fn open(&mut self) {
        self.scopes.push(self.spare.pop().unwrap_or_default());
    }

    /// Closes a scope; uses of labels that it does not define move to the enclosing scope.
    pub fn close(&mut self) {
        let Some(mut scope) = self.scopes.pop() else { return };
        if let Some(outer) = self.scopes.last_mut() {
            scope.labels.retain(|_, id| !self.drafts[*id].defined);
            if outer.labels.is_empty() {
                std::mem::swap(&mut outer.labels, &mut scope.labels);
            }
            for (name, id) in scope.labels.drain() {
                match outer.labels.get(name) {
                    Some(found) => self.drafts[id].same_as = (*found).into(),
                    None => {
                        outer.labels.insert(name, id);
                    }
                }
            }
        }
        if scope.names.capacity().max(scope.labels.capacity()).max(scope.families.room()) > SPARE {
            return;
        }
        scope.names.clear();
        scope.families.clear();
        scope.labels.clear();
        scope.sorted.clear();
        scope.fresh.clear();
        self.spare.push(scope);
    }

    /// Resolves a register or a function-level symbol. A member of a parameterised variable is
    /// found only after [`Body::make`].
    pub fn find(&mut self, name: &'a str) -> Option<Name> {
        for depth in (0..self.scopes.len()).rev() {
            if let Some(found) = self.find_in(depth, name) {
                return Some(found);
            }
            if self.scopes[depth].families.declares(name) {
                return None;
            }
        }
        None
    }

    fn find_in(&mut self, depth: usize, name: &'a str) -> Option<Name> {
        let scope = &mut self.scopes[depth];
        if let Some(found) = scope.names.get(name) {
            return Some(*found);
        }
        let (numbered, member) = scope.families.find(name)?;
        let found = match (scope.families.made(numbered), member) {
            (Some(made), _) => made,
            (None, Member::Variable(..)) => return None,
            (None, Member::Register(register)) => {
                let plain = plain_number(&name[numbered.0.len()..]).is_some();
                let Register { ty, vector, pos, .. } = *register;
                let name = if plain { name.to_string() } else { canonical(numbered) };
                let register = Register { name, ty, vector, pos };
                Name::Register(self.registers.push(register))
            }
        };
        scope.families.make(numbered, found);
        scope.name(name, found);
        Some(found)
    }

    /// The member of a parameterised variable that [`Body::find`] does not find yet: its scope
    /// depth, name, declaration and position.
    pub fn unmade(&self, name: &'a str) -> Option<(usize, Numbered<'a>, Variable, Pos)> {
        (0..self.scopes.len()).rev().find_map(|depth| match self.scopes[depth].families.find(name)? {
            (numbered, Member::Variable(variable, pos)) => Some((depth, numbered, (**variable).clone(), *pos)),
            _ => None,
        })
    }

    /// Enters the symbol created for a member of a parameterised variable.
    pub fn make(&mut self, depth: usize, numbered: Numbered<'a>, symbol: SymbolId) {
        self.scopes[depth].families.make(numbered, Name::Symbol(symbol));
        self.variables.push(symbol);
    }

    /// Declares one register; `None` if the scope already has the name.
    pub fn declare_register(&mut self, name: &'a str, register: Register) -> Option<RegId> {
        if self.is_taken(name) {
            return None;
        }
        let id = self.registers.push(register);
        self.scopes.last_mut()?.name(name, Name::Register(id));
        Some(id)
    }

    /// Declares `base<count>`; the error is the first of its names that the scope already has.
    pub fn declare_family(&mut self, base: &'a str, count: u32, member: Member) -> Result<(), &'a str> {
        let hit = |name: &&str| name.strip_prefix(base).and_then(plain_number).is_some_and(|i| i < count);
        if self.together().iter().any(|scope| scope.families.has(base)) {
            return Err(base);
        }
        // Each name is compared once per prefix, whatever the number of declarations.
        let first = self.scopes.len().saturating_sub(self.together().len());
        for scope in &mut self.scopes[first..] {
            scope.sorted.extend(scope.fresh.drain(..));
        }
        let begins = |scope: &Scope<'a>| {
            let behind = scope.sorted.range(base..).copied();
            behind.take_while(|name| name.starts_with(base)).find(hit)
        };
        let taken = self.together().iter().filter_map(begins).min();
        if let Some(taken) = taken {
            return Err(taken);
        }
        let Some(scope) = self.scopes.last_mut() else { return Err(base) };
        scope.families.declare(base, count, member);
        Ok(())
    }

    /// Declares a variable; `false` if the scope already has the name.
    pub fn declare_symbol(&mut self, name: &'a str, symbol: SymbolId) -> bool {
        if self.is_taken(name) {
            return false;
        }
        let Some(scope) = self.scopes.last_mut() else { return false };
        scope.name(name, Name::Symbol(symbol));
        true
    }

    /// The scopes in which a new name must be unique: the innermost, and the parameter scope if
    /// that is the function's body.
    fn together(&self) -> &[Scope<'a>] {
        let outer = if self.scopes.len() == 2 { 2 } else { 1 };
        &self.scopes[self.scopes.len().saturating_sub(outer)..]
    }

    fn is_variable(&self, name: &str) -> bool {
        self.together().iter().any(|scope| scope.names.contains_key(name) || scope.families.declares(name))
    }

    fn is_taken(&self, name: &str) -> bool {
        let label = self.scopes.last().and_then(|scope| scope.labels.get(name));
        label.is_some_and(|id| self.drafts[*id].defined) || self.is_variable(name)
    }

    /// The label that a use of the name refers to so far.
    pub fn use_label(&mut self, name: &'a str, pos: Pos) -> Option<LabelId> {
        let scope = self.scopes.last_mut()?;
        if let Some(id) = scope.labels.get(name) {
            return Some(*id);
        }
        let id = self.labels.push(Label { name: name.into(), pos, targets: Vec::new() });
        self.drafts.push(Draft { defined: false, same_as: None.into() });
        scope.labels.insert(name, id);
        Some(id)
    }

    /// Defines a label; `None` if the scope already has the name.
    pub fn define_label(&mut self, name: &'a str, pos: Pos) -> Option<LabelId> {
        if self.is_variable(name) {
            return None;
        }
        let id = self.use_label(name, pos)?;
        if std::mem::replace(&mut self.drafts[id].defined, true) {
            return None;
        }
        self.labels[id].pos = pos;
        Some(id)
    }

    /// Sets the targets of a `.branchtargets` list.
    pub fn set_targets(&mut self, label: LabelId, targets: Vec<LabelId>) {
        self.labels[label].targets = targets;
    }

    /// Returns the final labels, the map from draft ids to final ids, and the labels that are used
    /// but never defined.
    pub fn finish_labels(&mut self) -> (PrimaryMap<LabelId, Label>, SecondaryMap<LabelId, LabelId>, Vec<Label>) {
        let (labels, drafts) = (std::mem::take(&mut self.labels), std::mem::take(&mut self.drafts));
        let mut map = SecondaryMap::with_default(LabelId::new(0));
        let missing = drafts.iter().filter(|(_, d)| d.same_as.is_none() && !d.defined);
        let missing = missing.map(|(id, _)| labels[id].clone()).collect();
        // A function may have millions of them, and nearly none has two scopes that name one label.
        if drafts.values().all(|draft| draft.same_as.is_none()) {
            labels.keys().for_each(|id| map[id] = id);
            return (labels, map, missing);
        }
        let mut done = PrimaryMap::new();
        for (id, label) in labels.into_iter().filter(|(id, _)| drafts[*id].same_as.is_none()) {
            map[id] = done.push(label);
        }
        // A reference moves outwards only, through each scope once, so the chain is no longer than
        // the nesting.
        for (id, draft) in drafts.iter() {
            let mut end = id;
            let mut next = draft.same_as;
            while let Some(outer) = next.expand() {
                end = outer;
                next = drafts[outer].same_as;
            }
            map[id] = map[end];
        }
        for label in done.values_mut() {
            label.targets.iter_mut().for_each(|target| *target = map[*target]);
        }
        (done, map, missing)
    }
}
