//! An Ori function: blocks, instructions, operands, registers, register tuples and constants, in
//! arenas.
//!
//! - Every block ends with an unguarded terminator; control never falls through.
//! - The operands of an instruction are in the order of its opcode's roles (`tables/ori`), one slot
//!   per role. A PHI has its result first, then a label and a value per predecessor.
//! - A guarded instruction in SSA form has a tied operand (the old value) per definition, behind
//!   its roles, in the order of the definitions.
//! - Registers that a calling convention makes an instruction read or write are implicit operands,
//!   also behind its roles (`set_extras`).

mod access;
mod blocks;
mod constants;
mod entities;
mod instructions;
mod registers;
mod registers_of;

pub use entities::{
    Block, ControlWord, Convention, File, InstData, InstId, Listed, RegData, Rolled, STACK_POINTER, Stage, Symbol,
    VReg, VecId, access_size,
};
pub use instructions::width_of;

use super::arena::Arena;
use super::attributes::Attributes;
use super::hash::QuickMap;
use super::insts::Insts;
use super::operand::Operand;
use crate::tables::Target;
use cranelift_entity::PrimaryMap;
use smallvec::SmallVec;
use std::collections::HashMap;

/// A function.
#[derive(Clone)]
pub struct Function {
    /// Name in the cubin.
    name: String,
    /// The target.
    target: &'static Target,
    /// Instructions of each block, in order.
    blocks: Arena<Block, Vec<InstId>>,
    /// Blocks in layout order; the first is the entry.
    layout: Vec<Block>,
    /// All instructions ever created.
    insts: Insts,
    /// All virtual registers ever created.
    regs: Arena<VReg, RegData>,
    vectors: PrimaryMap<VecId, (u32, u16)>,
    vector_regs: Vec<VReg>,
    vector_index: QuickMap<SmallVec<[VReg; 4]>, VecId>,
    operands: Vec<Operand>,
    pool: Vec<u64>,
    pool_index: QuickMap<u64, u32>,
    symbols: Vec<Symbol>,
    symbol_index: HashMap<Symbol, u32>,
    /// Whether the function is in SSA form.
    ssa: bool,
    /// Progress through the phases.
    stage: Stage,
    /// The stack pointer, if anything needs it ([`Function::stack_register`]).
    stack_pointer: Option<VReg>,
    /// Instructions whose offset (role `off`, else `b`) is relative to the end of the frame
    /// (incoming stack arguments); the allocator adds `frame_bytes` to it.
    above_frame: Vec<InstId>,
    /// The values that a debugger reads; `None` without debug information.
    watched: Option<Box<super::watched::Watched>>,
    attributes: Attributes,
}

impl Function {
    /// A function without blocks.
    pub fn new(name: &str, target: &'static Target) -> Function {
        Function {
            name: name.to_string(),
            target,
            blocks: Arena::default(),
            layout: Vec::new(),
            insts: Insts::default(),
            regs: Arena::default(),
            vectors: PrimaryMap::new(),
            vector_regs: Vec::new(),
            vector_index: QuickMap::default(),
            operands: Vec::new(),
            pool: Vec::new(),
            pool_index: QuickMap::default(),
            symbols: Vec::new(),
            symbol_index: HashMap::new(),
            ssa: false,
            stage: Stage::default(),
            stack_pointer: None,
            above_frame: Vec::new(),
            watched: None,
            attributes: Attributes::default(),
        }
    }

    /// Frees the code, once encoded; the other attributes of the function stay.
    pub fn forget_code(&mut self) {
        (self.blocks, self.insts, self.regs, self.vectors) = Default::default();
        (self.layout, self.vector_regs, self.operands, self.pool) = Default::default();
        (self.vector_index, self.pool_index) = Default::default();
    }

    /// Drops the room for more of everything.
    pub fn shrink(&mut self) {
        self.blocks.values_mut().for_each(Vec::shrink_to_fit);
        self.blocks.shrink_to_fit();
        self.layout.shrink_to_fit();
        self.insts.shrink();
        self.regs.shrink_to_fit();
        self.vectors.shrink_to_fit();
        self.vector_regs.shrink_to_fit();
        self.vector_index.shrink_to_fit();
        self.operands.shrink_to_fit();
        self.pool.shrink_to_fit();
        self.pool_index.shrink_to_fit();
        self.symbols.shrink_to_fit();
        self.symbol_index.shrink_to_fit();
    }
}
