//! Checks the arguments and results of a call against the callee's declaration or prototype.
//!
//! Errors have the wording of ptxas. The rules are those of ptxas 13.0.88: sizes and alignments are
//! equal (a register's alignment is its size), arrays match arrays, and floats match floats and
//! integers match integers unless one of the two types is untyped bits.

use super::ast::{Constant, FunctionId, Operand, OperandKind, Parameter, Prototype, SymbolKind};
use super::parser::Parser;
use crate::tables::ptx::{ScalarType, Space, TypeClass};

/// Layout of a value on one side of the call.
#[derive(Clone, Copy)]
struct Shape {
    ty: ScalarType,
    /// In bytes; 0 if unknown.
    size: u64,
    align: u64,
    array: bool,
    /// Elements of a vector register; 1 for a scalar.
    vector: u32,
}

/// A result or parameter of the callee, with its name if it has one.
pub struct Formal {
    name: String,
    shape: Shape,
}

impl Formal {
    /// Whether it is an array of unknown extent.
    pub fn is_open(&self) -> bool {
        self.shape.array && self.shape.size == 0
    }
}

/// The results and parameters of a callee.
pub struct Formals {
    pub results: Vec<Formal>,
    pub params: Vec<Formal>,
}

impl Parser<'_> {
    /// The results and parameters of a function.
    pub fn formals_of(&self, id: FunctionId) -> Formals {
        let function = &self.module.functions[id];
        let formal = |parameter: &Parameter| match parameter {
            Parameter::Register(id) => {
                let register = function.registers.get(*id)?;
                Some(Formal { name: register.name.clone(), shape: in_register(register.ty, register.vector) })
            }
            Parameter::Memory(id) => {
                let symbol = &self.module.symbols[*id];
                let SymbolKind::Variable(v) = &symbol.kind else { return None };
                let array = !v.dimensions.is_empty() || v.vector > 1;
                let shape = Shape { ty: v.ty, size: v.size, align: v.align, array, vector: 1 };
                Some(Formal { name: symbol.name.clone(), shape })
            }
        };
        let all = |list: &[Parameter]| list.iter().map_while(formal).collect();
        Formals { results: all(&function.results), params: all(&function.params) }
    }

    /// The results and parameters of a prototype; they have no names.
    pub fn formals_of_prototype(prototype: &Prototype) -> Formals {
        let formal = |p: &super::ast::PrototypeParameter| {
            let array = !p.in_register && p.size != u64::from(p.ty.bits().div_ceil(8));
            let shape = Shape { ty: p.ty, size: p.size, align: p.align, array, vector: p.vector };
            Formal { name: "_".to_string(), shape }
        };
        let all = |list: &[super::ast::PrototypeParameter]| list.iter().map(formal).collect();
        Formals { results: all(&prototype.results), params: all(&prototype.params) }
    }

    /// Reports parameters and results of the function being read that it passes on.
    pub fn check_own(&mut self, values: &[Operand]) {
        for value in values {
            let OperandKind::Symbol { symbol, .. } = value.kind else { continue };
            if self.inputs.contains(&symbol) || self.outputs.contains(&symbol) {
                let name = &self.module.symbols[symbol].name;
                let what = format!("Formal parameter '{name}' declared in .param space");
                self.error(value.pos, format!("{what} cannot be used as argument to call"));
            }
        }
    }

    /// Reports the arguments that cannot be arguments at all.
    pub fn check_arguments(&mut self, arguments: &[Operand], formals: &[Formal]) {
        for (argument, formal) in arguments.iter().zip(formals) {
            let name = match &argument.kind {
                OperandKind::Sink => {
                    let text = format!("Illegal argument for formal parameter '{}'", formal.name);
                    self.error(argument.pos, text);
                    continue;
                }
                OperandKind::Special(special) => &format!("%{}", special.name()),
                OperandKind::Symbol { symbol, .. } => match &self.module.symbols[*symbol].kind {
                    SymbolKind::Variable(v) if !matches!(v.space, Space::Param | Space::ParamFunc) => {
                        &self.module.symbols[*symbol].name
                    }
                    _ => continue,
                },
                _ => continue,
            };
            let text = format!("Call argument '{name}' has illegal state space");
            self.error(argument.pos, text);
        }
    }

    /// Reports the values whose layout does not match their formal.
    pub fn check_passed(&mut self, values: &[Operand], formals: &[Formal]) {
        for (value, formal) in values.iter().zip(formals) {
            let shape = formal.shape;
            if shape.ty.bits() < 16 && !shape.array {
                continue;
            }
            let (fits, aligned) = match self.shape_of(value) {
                Passed::Value(own) => (own.fits(shape), own.align == shape.align),
                Passed::Integer => (!is_float(shape.ty), true),
                Passed::Float => (!is_integer(shape.ty), true),
                Passed::Unknown => continue,
            };
            if let OperandKind::Register(used) = &value.kind
                && shape.array
                && let Some(register) = self.body.registers.get(used.register)
            {
                let text = format!("Inconsistent state space for parameter '{}'", register.name);
                self.error(value.pos, text);
            }
            if let OperandKind::Symbol { symbol, .. } = &value.kind
                && shape.vector > 1
            {
                let text = format!("Inconsistent state space for parameter '{}'", self.module.symbols[*symbol].name);
                self.error(value.pos, text);
            }
            if !fits {
                let text = format!("Type of argument does not match formal parameter '{}'", formal.name);
                self.error(value.pos, text);
            }
            if !aligned {
                let text = format!("Alignment of argument does not match formal parameter '{}'", formal.name);
                self.error(value.pos, text);
            }
        }
    }

    fn shape_of(&self, value: &Operand) -> Passed {
        match &value.kind {
            OperandKind::Register(used) => match self.body.registers.get(used.register) {
                Some(register) if register.ty.class() != TypeClass::Predicate => {
                    Passed::Value(in_register(register.ty, register.vector))
                }
                _ => Passed::Unknown,
            },
            OperandKind::Symbol { symbol, offset: 0, .. } => match &self.module.symbols[*symbol].kind {
                SymbolKind::Variable(v) if matches!(v.space, Space::Param | Space::ParamFunc) && v.size > 0 => {
                    let array = !v.dimensions.is_empty() || v.vector > 1;
                    Passed::Value(Shape { ty: v.ty, size: v.size, align: v.align, array, vector: 1 })
                }
                _ => Passed::Unknown,
            },
            OperandKind::Constant(Constant::Int { .. }) => Passed::Integer,
            OperandKind::Constant(_) => Passed::Float,
            _ => Passed::Unknown,
        }
    }
}

/// What is known about a value that is passed.
enum Passed {
    Value(Shape),
    /// A constant without a decimal point, and one with.
    Integer,
    Float,
    Unknown,
}

impl Shape {
    fn fits(self, formal: Shape) -> bool {
        let apart = is_float(self.ty) && is_integer(formal.ty) || is_integer(self.ty) && is_float(formal.ty);
        // A float vector matches an integer vector.
        let apart = apart && self.vector <= 1;
        let size = self.size == formal.size || formal.array && formal.size == 0;
        size && self.array == formal.array && self.vector == formal.vector && !apart
    }
}

fn in_register(ty: ScalarType, vector: u32) -> Shape {
    let vector = vector.max(1);
    let size = u64::from(ty.bits().div_ceil(8)) * u64::from(vector);
    Shape { ty, size, align: size, array: false, vector }
}

fn is_float(ty: ScalarType) -> bool {
    matches!(ty.class(), TypeClass::Float | TypeClass::FloatVector)
}

fn is_integer(ty: ScalarType) -> bool {
    matches!(ty.class(), TypeClass::Signed | TypeClass::Unsigned)
}
