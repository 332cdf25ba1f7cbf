//! Inlines helper templates at their call sites, before lowering.
//!
//! The text of a template is parsed as a function of its own. Its first instructions copy its
//! arguments from `in_NAME` and its last ones copy its results to `out_NAME`. Inlining copies its
//! statements into the caller with fresh registers and labels, and with the operands of the call
//! for these names. Operands are read before anything is written. A guarded call becomes a branch
//! around the whole template.

use super::compiled::head;
use crate::diag::Diagnostic;
use crate::ptx::{self, ast::*};
use crate::sorted::SortedMap;
use crate::tables::helpers::{Helper, Slot, Tier};
use crate::tables::{Target, ptx::Op};
use cranelift_entity::EntityRef;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

const MISMATCH: &str = "Arguments mismatch for instruction 'call'";

/// Inlines every template that the functions of a module call.
///
/// # Errors
///
/// Calls that do not match the template, and templates that are not implemented.
pub fn splice(module: &mut Module, target: &Target) -> Result<(), Vec<Diagnostic>> {
    let mut errors = Vec::new();
    for id in module.functions.keys().collect::<Vec<_>>() {
        let has = |s: &Statement| matches!(s, Statement::Instruction(inst) if template(module, inst).is_some());
        if !module.functions[id].body.iter().flatten().any(has) {
            continue;
        }
        let body = module.functions[id].body.take().unwrap_or_default();
        let mut out = Vec::with_capacity(body.len());
        for statement in body {
            let Statement::Instruction(call) = &statement else {
                out.push(statement);
                continue;
            };
            let Some((helper, declared)) = template(module, call) else {
                out.push(statement);
                continue;
            };
            match one(module, (id, declared), helper, call, target.name) {
                Ok(statements) => out.extend(statements),
                Err(message) => errors.push(Diagnostic::error(call.pos, message)),
            }
        }
        module.functions[id].body = Some(out.into());
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The template that an instruction calls, and its declaration in the module.
#[inline]
fn template(module: &Module, inst: &Instruction) -> Option<(&'static Helper, FunctionId)> {
    let OperandKind::Symbol { symbol, .. } = inst.operands.get(1)?.kind else { return None };
    let SymbolKind::Function(id) = module.symbols[symbol].kind else { return None };
    let function = &module.functions[id];
    let helper = Helper::by_name(&function.name).filter(|h| h.tier() == Tier::Inline)?;
    (inst.op == Op::Call && function.body.is_none()).then_some((helper, id))
}

/// The PTX text of a template for calls with this guard.
fn text(helper: &Helper, target: &str, guard: Option<bool>) -> String {
    let mut before = String::new();
    if let Some(negated) = guard {
        let not = if negated { "" } else { "!" };
        before += &format!(".reg .pred in_guard;\n@{not}in_guard bra after_template;\n");
    }
    let registers = |slots: &'static [Slot]| {
        slots.iter().filter(|s| !s.memory).flat_map(|s| s.registers().into_iter().map(move |r| (s.bytes() * 8, r)))
    };
    for (bits, name) in registers(helper.params) {
        before += &format!(".reg .b{bits} in_{name};\nmov.b{bits} {name}, in_{name};\n");
    }
    let mut after = String::new();
    for (bits, name) in registers(helper.returns) {
        after += &format!(".reg .b{bits} out_{name};\nmov.b{bits} out_{name}, {name};\n");
    }
    format!("{}{}\n{{\n{before}{}{after}after_template:\nret;\n}}\n", head(target), helper.head, helper.body)
}

type Key = (u16, String, Option<bool>);
static KEPT: LazyLock<Mutex<SortedMap<Key, Arc<Module>>>> = LazyLock::new(Mutex::default);

/// A parsed template, cached on first use.
fn parsed(helper: &Helper, target: &str, guard: Option<bool>) -> Result<Arc<Module>, String> {
    let key = (helper.id, target.to_string(), guard);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(module) = kept.get(&key) {
        return Ok(module.clone());
    }
    let (module, diagnostics) = ptx::parse(&text(helper, target, guard));
    let first = || diagnostics.first().map_or("", |d| d.message.as_str());
    let module = Arc::new(module.ok_or_else(|| format!("helper '{}' for {target}: {}", helper.name, first()))?);
    kept.insert(key, module.clone());
    Ok(module)
}

/// The statements that replace one call.
fn one(
    module: &mut Module,
    (caller, declared): (FunctionId, FunctionId),
    helper: &'static Helper,
    call: &Instruction,
    target: &str,
) -> Result<Vec<Statement>, String> {
    if let Some(why) = helper.family().planned {
        return Err(format!("Helper '{}' is not implemented: {why}", helper.name));
    }
    let tree = parsed(helper, target, call.guard.map(|g| g.negated))?;
    let function = tree.functions.values().next().ok_or(MISMATCH)?;
    let list = |place: usize| match call.operands.get(place).map(|o| &o.kind) {
        Some(OperandKind::List(list)) => list.as_slice(),
        _ => &[],
    };
    let mut given: SortedMap<String, OperandKind> = SortedMap::new();
    let mut symbols: SortedMap<SymbolId, SymbolId> = SortedMap::new();
    let declared = &module.functions[declared];
    for (slots, own, stated, operands) in
        [(&function.results, "out_", &declared.results, list(0)), (&function.params, "in_", &declared.params, list(2))]
    {
        if slots.len() != operands.len() || slots.len() != stated.len() {
            return Err(MISMATCH.into());
        }
        for ((slot, stated), operand) in slots.iter().zip(stated).zip(operands) {
            match (slot, stated, &operand.kind) {
                (
                    Parameter::Memory(of),
                    Parameter::Memory(as_declared),
                    OperandKind::Symbol { symbol, offset: 0, .. },
                ) => {
                    let bytes = size_of(&tree, *of);
                    if size_of(module, *as_declared) != bytes || size_of(module, *symbol) != bytes {
                        return Err(MISMATCH.into());
                    }
                    symbols.insert(*of, *symbol);
                }
                (Parameter::Register(of), Parameter::Register(as_declared), kind) => {
                    let register = &function.registers[*of];
                    let fits = match kind {
                        OperandKind::Register(r) => {
                            module.functions[caller].registers[r.register].ty.bits() == register.ty.bits()
                        }
                        OperandKind::Constant(_) => own == "in_",
                        OperandKind::Sink => own == "out_",
                        _ => false,
                    };
                    if !fits || declared.registers[*as_declared].ty.bits() != register.ty.bits() {
                        return Err(MISMATCH.into());
                    }
                    given.insert(format!("{own}{}", register.name), kind.clone());
                }
                _ => return Err(MISMATCH.into()),
            }
        }
    }
    let copy = Copy::new(&mut module.functions[caller], function, given, symbols, call);
    Ok(copy.statements(function))
}

/// Size of a variable in bytes.
fn size_of(module: &Module, symbol: SymbolId) -> Option<u64> {
    match &module.symbols[symbol].kind {
        SymbolKind::Variable(variable) => Some(variable.size),
        _ => None,
    }
}

/// Maps the names of a template to those of its caller.
struct Copy<'a> {
    registers: SortedMap<RegId, OperandKind>,
    labels: Vec<LabelId>,
    symbols: SortedMap<SymbolId, SymbolId>,
    call: &'a Instruction,
}

impl<'a> Copy<'a> {
    fn new(
        caller: &mut Function,
        template: &Function,
        mut given: SortedMap<String, OperandKind>,
        symbols: SortedMap<SymbolId, SymbolId>,
        call: &'a Instruction,
    ) -> Copy<'a> {
        let plain =
            |register| OperandKind::Register(RegisterUse { register, not: false, negate: false, part: Part::Whole });
        if let Some(guard) = call.guard {
            given.insert("in_guard".into(), plain(guard.register));
        }
        let mut registers = SortedMap::new();
        for (id, register) in template.registers.iter() {
            let kind = match given.get(&register.name) {
                Some(OperandKind::Sink) | None => plain(caller.registers.push(register.clone())),
                Some(kind) => kind.clone(),
            };
            registers.insert(id, kind);
        }
        let labels = template.labels.values().map(|label| caller.labels.push(label.clone())).collect();
        Copy { registers, labels, symbols, call }
    }

    fn statements(&self, template: &Function) -> Vec<Statement> {
        let body = template.body.as_deref().unwrap_or_default();
        // Leave out the final return.
        let body = &body[..body.len().saturating_sub(1)];
        body.iter().filter_map(|statement| self.statement(statement)).collect()
    }

    fn statement(&self, statement: &Statement) -> Option<Statement> {
        match statement {
            Statement::Label(label) => Some(Statement::Label(self.labels[label.index()])),
            Statement::Instruction(inst) => {
                let mut inst = inst.clone();
                inst.pos = self.call.pos;
                inst.operands.iter_mut().for_each(|o| self.operand(o));
                if let Some(guard) = &mut inst.guard {
                    guard.register = self.register(guard.register);
                }
                Some(Statement::Instruction(inst))
            }
            Statement::Location(_) | Statement::Pragma(_) => None,
        }
    }

    fn register(&self, id: RegId) -> RegId {
        match self.registers.get(&id) {
            Some(OperandKind::Register(r)) => r.register,
            _ => id,
        }
    }

    fn operand(&self, operand: &mut Operand) {
        operand.pos = self.call.pos;
        match &mut operand.kind {
            OperandKind::Register(r) => match self.registers.get(&r.register) {
                Some(OperandKind::Register(to)) if to.part == Part::Whole => r.register = to.register,
                Some(kind) => operand.kind = kind.clone(),
                None => {}
            },
            OperandKind::Symbol { symbol, .. } => *symbol = self.symbol(*symbol),
            OperandKind::Address(address) => {
                match &mut address.base {
                    AddressBase::Register(r) => *r = self.register(*r),
                    AddressBase::Symbol(s) => *s = self.symbol(*s),
                    AddressBase::Absolute => {}
                }
                address.rest.iter_mut().for_each(|o| self.operand(o));
            }
            OperandKind::Vector(list) | OperandKind::List(list) => list.iter_mut().for_each(|o| self.operand(o)),
            OperandKind::Pair(pair) => {
                self.operand(&mut pair.0);
                self.operand(&mut pair.1);
            }
            OperandKind::Label(label) => *label = self.labels[label.index()],
            OperandKind::Special(_) | OperandKind::Constant(_) | OperandKind::Sink => {}
        }
    }

    fn symbol(&self, id: SymbolId) -> SymbolId {
        self.symbols.get(&id).copied().unwrap_or(id)
    }
}
