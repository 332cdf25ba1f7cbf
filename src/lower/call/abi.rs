//! The calling convention: assigns argument and result values to registers and stack offsets.
//!
//! Source: objects that ptxas 13.0.88 makes for functions of one to fourteen parameters. A value
//! takes whole words. It goes to the first run of free registers among R4 to R15 that has its
//! alignment, so a later value may fill a gap that an earlier one left; otherwise it goes to the
//! next stack offset that has its alignment and is a multiple of 4 bytes. A result of up to 48
//! bytes is returned from R4 on; a larger one is written to local memory, at an address that the
//! caller passes before all arguments. The argument of an array of unknown extent, which is the
//! last one, is on the stack whatever its size.

use super::call_graph::{Calls, function_of};
use crate::ptx::ast::{self, OperandKind, Parameter, SymbolKind};
use crate::tables::helpers::{Helper, Slot};
use crate::tables::ptx::{Op, ScalarType};

/// First argument register, also the first result register.
const FIRST: u16 = 4;
/// Number of argument registers.
const COUNT: usize = 12;
/// Low and high word of the return address.
pub(crate) const RETURN_ADDRESS: [u16; 2] = [20, 21];

/// A value that is passed: its size and alignment in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u64,
}

impl Passed {
    /// Number of 32-bit words that it takes.
    pub fn words(self) -> usize {
        self.size.div_ceil(4) as usize
    }
}

/// Where a value is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// In consecutive registers, starting at this number.
    Registers(u16),
    /// On the stack, at this byte offset from the stack pointer at function entry.
    Stack(u64),
}

/// Sizes and alignments of the parameters and results of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signature {
    /// The results.
    pub results: Vec<Passed>,
    /// The parameters.
    pub params: Vec<Passed>,
    /// Whether the last parameter is an array of unknown extent (`.param .b8 a[]`). Its size is 0
    /// in a declaration, and that of the argument in a call, where the argument may be missing.
    pub open: bool,
}

/// Locations of all values of a signature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// Location of each result that is not returned through memory. Results are on the stack only
    /// in functions with several of them.
    pub results: Vec<Spot>,
    /// Register with the address that the result is written to, if it is returned through memory.
    pub result_address: Option<u16>,
    /// Location of each parameter.
    pub params: Vec<Spot>,
    /// Bytes of stack arguments and of the stack results, which follow them.
    pub stack: u64,
}

/// Argument registers that are taken.
#[derive(Default)]
struct Registers([bool; COUNT]);

impl Registers {
    fn take(&mut self, passed: Passed) -> Option<u16> {
        let (words, align) = (passed.words(), (passed.align / 4).max(1) as usize);
        // The first register is R4, a multiple of every alignment that a value in registers can
        // have.
        let start =
            (0..COUNT).step_by(align).find(|s| s + words <= COUNT && !self.0[*s..*s + words].contains(&true))?;
        self.0[start..start + words].fill(true);
        Some(FIRST + start as u16)
    }
}

impl Places {
    /// Allocates the next stack location.
    fn push(&mut self, passed: Passed) -> Spot {
        let at = self.stack.next_multiple_of(passed.align.max(4));
        self.stack = at + passed.size.next_multiple_of(4);
        Spot::Stack(at)
    }
}

impl Signature {
    /// The signature of a function of the module.
    pub fn of_function(module: &ast::Module, function: &ast::Function) -> Signature {
        let passed = |param: &Parameter| match param {
            Parameter::Register(id) => {
                let register = &function.registers[*id];
                bytes_or_more(register.ty.bits(), register.vector)
            }
            Parameter::Memory(id) => match &module.symbols[*id].kind {
                SymbolKind::Variable(v) => Passed { size: v.size, align: v.align },
                _ => Passed { size: 4, align: 4 },
            },
        };
        Signature::declared(function.results.iter().map(passed).collect(), function.params.iter().map(passed).collect())
    }

    fn declared(results: Vec<Passed>, params: Vec<Passed>) -> Signature {
        let open = params.last().is_some_and(|last| last.size == 0);
        Signature { results, params, open }
    }

    /// Gives an array of unknown extent the size of its argument.
    fn fitted(mut self, module: &ast::Module, arguments: &[ast::Operand]) -> Signature {
        if self.open {
            match arguments.get(self.params.len() - 1).map(|argument| &argument.kind) {
                Some(OperandKind::Symbol { symbol, .. }) => {
                    if let (SymbolKind::Variable(v), Some(last)) =
                        (&module.symbols[*symbol].kind, self.params.last_mut())
                    {
                        last.size = v.size;
                    }
                }
                _ => {
                    self.params.pop();
                    self.open = false;
                }
            }
        }
        self
    }

    /// The signature of a runtime helper.
    pub fn of_helper(helper: &Helper) -> Signature {
        let passed = |slots: &[Slot]| {
            slots.iter().flat_map(|s| s.passed()).map(|(size, align)| Passed { size, align }).collect()
        };
        Signature::declared(passed(helper.returns), passed(helper.params))
    }

    /// The signature of the callee of a call instruction; `None` if it is not a call, or if its
    /// target has no known signature.
    pub fn of_call(module: &ast::Module, calls: &Calls, inst: &ast::Instruction) -> Option<Signature> {
        let symbol = |place: usize| match inst.operands.get(place)?.kind {
            OperandKind::Symbol { symbol, .. } => Some(symbol),
            _ => None,
        };
        let of = |id| Signature::of_function(module, &module.functions[calls.resolved(id)]);
        if inst.op != Op::Call {
            return None;
        }
        let declared = match symbol(1).and_then(|s| function_of(module, s)) {
            Some(id) => of(id),
            None => match &module.symbols[symbol(3)?].kind {
                SymbolKind::Prototype(prototype) => Signature::of_prototype(prototype),
                SymbolKind::CallTargets(list) => of(function_of(module, *list.first()?)?),
                _ => return None,
            },
        };
        Some(declared.fitted(module, arguments_of(inst)))
    }

    /// The parameter types of the callee of a call instruction.
    pub fn types_of_call(module: &ast::Module, calls: &Calls, inst: &ast::Instruction) -> Vec<ScalarType> {
        let of = |id| {
            let function = &module.functions[calls.resolved(id)];
            let ty = |parameter: &Parameter| match parameter {
                Parameter::Register(id) => function.registers[*id].ty,
                Parameter::Memory(id) => match &module.symbols[*id].kind {
                    SymbolKind::Variable(v) => v.ty,
                    _ => ScalarType::B32,
                },
            };
            function.params.iter().map(ty).collect()
        };
        let symbol = |place: usize| match inst.operands.get(place).map(|o| &o.kind) {
            Some(OperandKind::Symbol { symbol, .. }) => Some(*symbol),
            _ => None,
        };
        if let Some(id) = symbol(1).and_then(|s| function_of(module, s)) {
            return of(id);
        }
        match symbol(3).map(|s| &module.symbols[s].kind) {
            Some(SymbolKind::Prototype(prototype)) => prototype.params.iter().map(|p| p.ty).collect(),
            Some(SymbolKind::CallTargets(list)) => {
                list.first().and_then(|s| function_of(module, *s)).map(of).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// The signature that a `.callprototype` describes.
    pub fn of_prototype(prototype: &ast::Prototype) -> Signature {
        let passed = |p: &ast::PrototypeParameter| Passed { size: p.size, align: p.align };
        Signature::declared(
            prototype.results.iter().map(passed).collect(),
            prototype.params.iter().map(passed).collect(),
        )
    }

    /// Assigns a location to each value.
    pub fn places(&self) -> Places {
        let mut places = Places::default();
        let mut results = Registers::default();
        if let [result] = self.results.as_slice() {
            match results.take(*result) {
                Some(first) => places.results.push(Spot::Registers(first)),
                None => places.result_address = Some(FIRST),
            }
        }
        let mut registers = Registers::default();
        if places.result_address.is_some() {
            registers.0[0] = true;
        }
        let (params, open) = self.params.split_at(self.params.len() - usize::from(self.open));
        for param in params {
            let spot = match registers.take(*param) {
                Some(first) => Spot::Registers(first),
                None => places.push(*param),
            };
            places.params.push(spot);
        }
        if self.results.len() > 1 {
            // ptxas has no calling convention for several results, so this one is our own.
            for result in &self.results {
                let spot = results.take(*result).map_or_else(|| places.push(*result), Spot::Registers);
                places.results.push(spot);
            }
        }
        for param in open {
            let spot = places.push(*param);
            places.params.push(spot);
        }
        places
    }
}

/// The arguments of a call instruction.
fn arguments_of(inst: &ast::Instruction) -> &[ast::Operand] {
    match inst.operands.get(2).map(|operand| &operand.kind) {
        Some(OperandKind::List(list)) => list,
        _ => &[],
    }
}

/// A passed register; the elements of a vector are adjacent.
fn bytes_or_more(bits: u32, vector: u32) -> Passed {
    let bytes = u64::from(bits.div_ceil(8)).max(1) * u64::from(vector.max(1));
    Passed { size: bytes, align: bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Spot::{Registers as R, Stack as S};

    fn spots(params: &[(u64, u64)]) -> Vec<Spot> {
        let params = params.iter().map(|(size, align)| Passed { size: *size, align: *align }).collect();
        Signature::declared(Vec::new(), params).places().params
    }

    /// The registers and offsets that ptxas 13.0.88 uses in functions with these parameters.
    #[test]
    fn places_are_those_of_ptxas() {
        assert_eq!(spots(&[(4, 4), (8, 8), (4, 4)]), [R(4), R(6), R(5)]);
        assert_eq!(spots(&[(2, 2), (1, 1), (4, 4), (2, 2)]), [R(4), R(5), R(6), R(7)]);
        assert_eq!(spots(&[(4, 4), (16, 16), (4, 4)]), [R(4), R(8), R(5)]);
        assert_eq!(spots(&[(4, 4), (16, 8), (4, 4)]), [R(4), R(6), R(5)]);
        assert_eq!(spots(&[(7, 1), (4, 4)]), [R(4), R(6)]);
        assert_eq!(spots(&[(48, 4), (4, 4)]), [R(4), S(0)]);
        assert_eq!(spots(&[(56, 4), (4, 4)]), [S(0), R(4)]);
        assert_eq!(spots(&[(4, 4), (48, 4), (4, 4)]), [R(4), S(0), R(5)]);
        let with = |n: usize, rest: &[(u64, u64)]| spots(&[&vec![(4, 4); n], rest].concat())[n..].to_vec();
        assert_eq!(with(11, &[(8, 8), (4, 4)]), [S(0), R(15)]);
        assert_eq!(with(12, &[(2, 2), (1, 1), (8, 8), (4, 4)]), [S(0), S(4), S(8), S(16)]);
        assert_eq!(with(10, &[(16, 4), (4, 4), (4, 4)]), [S(0), R(14), R(15)]);
        assert_eq!(with(12, &[(5, 1), (4, 4)]), [S(0), S(8)]);
        assert_eq!(with(13, &[(16, 16), (4, 4)])[..2], [S(16), S(32)]);
        assert_eq!(with(8, &[(16, 16), (4, 4)]), [R(12), S(0)]);
        assert_eq!(with(9, &[(16, 16), (4, 4), (4, 4)]), [S(0), R(13), R(14)]);
        assert_eq!(spots(&[(4, 4), (0, 8)]), [R(4), S(0)]);
        assert_eq!(spots(&[(4, 4), (52, 4), (0, 8)]), [R(4), S(0), S(56)]);
    }

    #[test]
    fn results_of_more_than_48_bytes_go_through_memory() {
        let of = |size| Signature::declared(vec![Passed { size, align: 4 }], vec![Passed { size: 4, align: 4 }]);
        let small = of(48).places();
        assert_eq!((small.results, small.result_address, small.params), (vec![R(4)], None, vec![R(4)]));
        let large = of(64).places();
        assert_eq!((large.results, large.result_address, large.params), (vec![], Some(4), vec![R(5)]));
    }
}
