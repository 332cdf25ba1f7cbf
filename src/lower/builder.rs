//! The builder of one function: current block and guard, registers of the PTX function, emission.
//!
//! Input: calls of the operation families. Output: instructions of an [`ori::Function`](crate::ori::Function), not in SSA form.
//! Invariants: a PTX register is one set of virtual registers, made before anything else, so that "visible in PTX" is
//! a comparison of numbers; a register is in at most one register vector; under a guard, an instruction carries the
//! guard if it writes a visible register, touches memory or is convergent, and is unguarded otherwise.

use super::module::{FunctionLayout, ModuleLayout};
use super::params::Home;
use super::reach::Calls;
use crate::diag::Pos;
use crate::ori::mods::*;
use crate::ori::{Block, Code, Convention, File, Function, InstId, Operand, VReg};
use crate::ptx::ast;
use crate::tables::{Feature, GenerationInfo, Op, Role, Target};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;
use std::collections::HashMap;

/// Why an instruction is not lowered.
pub(super) enum Refusal {
    /// No lowering of this form is built.
    NotBuilt,
    /// Something else, at a place.
    At(Pos, String),
}

/// Result of lowering one instruction or one of its operands.
pub(super) type Lowered<T = ()> = Result<T, Refusal>;

/// Physical numbers of the uniform registers that hold the descriptor of global memory in every function.
const DESCRIPTOR: [u16; 2] = [4, 5];

/// Lowering of one function.
pub(super) struct Builder<'a> {
    pub module: &'a ast::Module,
    pub source: &'a ast::Function,
    pub globals: &'a mut ModuleLayout,
    pub calls: &'a Calls,
    pub layout: FunctionLayout,
    /// Where parameter variables outside constant banks live.
    pub homes: HashMap<ast::SymbolId, Home>,
    pub target: &'static Target,
    pub info: &'static GenerationInfo,
    /// The function as far as it is written, with the guard and the line of the PTX instruction being lowered.
    pub code: Code,
    /// One operand per element of each PTX register: a register, or a pair of 64 bits.
    registers: SecondaryMap<ast::RegId, SmallVec<[Operand; 1]>>,
    /// One of them has 128 bits.
    pub has_quads: bool,
    /// Put before everything else at the end: values that the whole function shares.
    prologue: Vec<InstId>,
    /// Put before even these: what a device function does with what comes in.
    arrivals: Vec<InstId>,
    /// Where a device function returns, once a `ret` was seen.
    pub return_block: Option<Block>,
    /// The words of its return address, and the address that its result is written to, if any.
    pub return_address: [Operand; 2],
    pub result_address: Operand,
    /// Whether the function takes memory anywhere, once somebody has asked.
    pub takes_memory: std::cell::OnceCell<bool>,
    /// How far `alloca` has let the stack grow; null where nothing asked.
    pub stack_end: Operand,
    /// Functions of the driver that it calls.
    pub externs: Vec<String>,
    /// It reads bank 2.
    pub branch_bank: bool,
    descriptor: Operand,
    pub shared_window: Operand,
    /// The PTX carry flag, once something has used it: the carry of the adder, which after a subtraction says "no borrow".
    pub carry: Option<VReg>,
    /// Highest block barrier + 1, 16 where one is in a register.
    pub barriers: u8,
}

impl std::ops::Deref for Builder<'_> {
    type Target = Code;

    fn deref(&self) -> &Code {
        &self.code
    }
}

impl std::ops::DerefMut for Builder<'_> {
    fn deref_mut(&mut self) -> &mut Code {
        &mut self.code
    }
}

impl<'a> Builder<'a> {
    pub fn new(
        module: &'a ast::Module,
        source: &'a ast::Function,
        globals: &'a mut ModuleLayout,
        calls: &'a Calls,
        layout: FunctionLayout,
        (target, info): (&'static Target, &'static GenerationInfo),
    ) -> Builder<'a> {
        let mut f = Function::new(&source.name, target);
        let mut registers: SecondaryMap<ast::RegId, SmallVec<[Operand; 1]>> = SecondaryMap::new();
        for (id, register) in source.registers.iter() {
            registers[id] = (0..register.vector.max(1)).map(|_| register_for(&mut f, register.ty.bits())).collect();
        }
        let homes = homes_for(&mut f, module, source, &layout);
        let visible = f.regs.len();
        f.local_bytes = layout.local_bytes;
        if !source.is_entry {
            f.convention = Convention::Device;
        }
        let block = f.new_block();
        Builder {
            module,
            source,
            globals,
            calls,
            layout,
            homes,
            target,
            info,
            // Registers made so far belong to PTX registers.
            code: Code { f, block, guard: Operand::NULL, line: 0, visible, cold: Vec::new() },
            registers,
            has_quads: source.registers.iter().any(|(_, register)| register.ty.bits() == 128),
            prologue: Vec::new(),
            arrivals: Vec::new(),
            return_block: None,
            return_address: [Operand::NULL; 2],
            result_address: Operand::NULL,
            takes_memory: std::cell::OnceCell::new(),
            stack_end: Operand::NULL,
            externs: Vec::new(),
            branch_bank: false,
            descriptor: Operand::NULL,
            shared_window: Operand::NULL,
            carry: None,
            barriers: 0,
        }
    }

    /// Ends the function: what comes in and the shared values go to the front of the entry block, and the descriptor, which is
    /// in registers that a call may overwrite, is loaded again after each call.
    pub fn finish(&mut self) -> Function {
        if !self.descriptor.is_null() {
            self.reload_descriptor();
        }
        let entry = self.f.entry();
        let mut insts = std::mem::take(&mut self.arrivals);
        insts.append(&mut self.prologue);
        insts.append(&mut self.f.blocks[entry]);
        self.f.blocks[entry] = insts;
        std::mem::replace(&mut self.code.f, Function::new("", self.target))
    }

    /// What the entry block holds so far comes before everything else.
    pub fn split_arrivals(&mut self) {
        self.arrivals = std::mem::take(&mut self.code.f.blocks[self.code.block]);
    }

    fn reload_descriptor(&mut self) {
        for block in self.f.layout.clone() {
            let mut out = Vec::new();
            for inst in std::mem::take(&mut self.f.blocks[block]) {
                out.push(inst);
                if self.f.insts[inst].op == Op::CALL {
                    out.push(self.load_descriptor());
                }
            }
            self.f.blocks[block] = out;
        }
    }

    fn load_descriptor(&mut self) -> InstId {
        let op = if self.has(Feature::UniformLoadByScoreboard) { Op::LDCU } else { Op::ULDC };
        let from = Operand::constant(0, self.info.global_desc.unwrap_or(0) as u16);
        self.code.build(op, &[SIZE_64], &[(Role::D, self.descriptor), (Role::C, from)])
    }

    /// The elements of a PTX register.
    pub fn register(&self, id: ast::RegId) -> &[Operand] {
        &self.registers[id]
    }

    /// Lets other operands stand for a PTX register; those that did are returned.
    pub fn replace_register(&mut self, id: ast::RegId, operands: SmallVec<[Operand; 1]>) -> SmallVec<[Operand; 1]> {
        std::mem::replace(&mut self.registers[id], operands)
    }

    // Registers and constants.

    // Emission.

    /// Appends to what is done once at the entry of the function.
    pub fn put_first(&mut self, op: Op, mods: &[M], args: &[(Role, Operand)]) {
        let inst = self.build(op, mods, args);
        self.prologue.push(inst);
    }

    // Values that the function shares.

    /// The descriptor of global memory, null on targets without one.
    pub fn descriptor(&mut self) -> Operand {
        if self.info.global_desc.is_none() {
            return Operand::NULL;
        }
        if self.descriptor.is_null() {
            let vector = self.f.new_vector(File::UR, 2);
            for (reg, phys) in self.f.vector_regs(vector).to_vec().into_iter().zip(DESCRIPTOR) {
                self.f.regs[reg].phys = Some(phys);
                self.f.regs[reg].varying = false;
            }
            self.descriptor = Operand::vector(vector);
            let load = self.load_descriptor();
            self.prologue.push(load);
        }
        self.descriptor
    }

    /// The stack pointer: the address of the function's local variables.
    pub fn stack_pointer(&mut self) -> Operand {
        Operand::reg(self.f.stack_register())
    }
}

/// A home for each parameter variable that is not in a constant bank.
fn homes_for(
    f: &mut Function,
    module: &ast::Module,
    source: &ast::Function,
    layout: &FunctionLayout,
) -> HashMap<ast::SymbolId, Home> {
    let mut homes = HashMap::new();
    for (id, size) in super::module::own_params(module, source) {
        let home = match layout.places.get(&id) {
            Some(at) => Home::Frame(*at),
            None => Home::Words((0..size.div_ceil(4)).map(|_| Operand::reg(f.new_reg(File::R))).collect()),
        };
        homes.insert(id, home);
    }
    homes
}

fn register_for(f: &mut Function, bits: u32) -> Operand {
    match bits {
        1 => Operand::reg(f.new_reg(File::P)),
        64 => Operand::vector(f.new_vector(File::R, 2)),
        128 => Operand::vector(f.new_vector(File::R, 4)),
        _ => Operand::reg(f.new_reg(File::R)),
    }
}
