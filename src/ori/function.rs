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

use super::attributes::Attributes;
use super::hash::QuickMap;
use super::insts::Insts;
use super::operand::{Kind, Operand};
use crate::tables::elf::RelocRole;
use crate::tables::helpers::Helper;
use crate::tables::ori::{Direction, RoleInfo, Width};
use crate::tables::registers::Callee;
use crate::tables::{Mods, Op, Prop, Role, Target, value};
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap, entity_impl};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Number of the stack pointer in the general register file.
pub const STACK_POINTER: u16 = 1;

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block(u32);
entity_impl!(Block, "b");

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstId(u32);
entity_impl!(InstId, "i");

/// A virtual register: one 32-bit value (one bit for predicates).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VReg(u32);
entity_impl!(VReg, "v");

/// A register tuple: the registers of a wide operand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VecId(u32);
entity_impl!(VecId, "vec");

/// A register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum File {
    R,
    UR,
    P,
    UP,
    B,
    UB,
}

/// How control enters and leaves a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Convention {
    /// Launched: nothing to save; the stack pointer comes from a constant bank.
    #[default]
    Kernel,
    /// Called: preserves the registers of `tables/registers.ron` and the stack pointer.
    Device,
    /// Called by an expansion: uses only the registers that `tables/registers.ron` leaves to slow
    /// paths, and has no frame.
    SlowPath,
}

/// Attributes of a virtual register.
#[derive(Clone, Copy, Debug)]
pub struct RegData {
    /// Register file.
    pub file: File,
    /// Whether it differs, or may differ, between the lanes of a warp.
    pub varying: bool,
    /// Physical register, once allocated, or reserved in the whole function.
    pub phys: Option<u16>,
    /// Physical register that the allocator must assign, for its own live range only: an argument,
    /// a result, a return address.
    pub fixed: Option<u16>,
}

impl File {
    /// Name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            File::R => "R",
            File::UR => "UR",
            File::P => "P",
            File::UP => "UP",
            File::B => "B",
            File::UB => "UB",
        }
    }
}

/// Value of the size modifier for an access of this many 32-bit words; `None` for one word, which
/// has no modifier.
pub fn access_size(words: usize) -> Option<u8> {
    match words {
        2 => Some(value::size::_64),
        4 => Some(value::size::_128),
        _ => None,
    }
}

/// Progress of a function through the phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// Progress number of the last phase that has one in `tables/phases.ron`.
    pub progress: u8,
    /// Whether ConvertUnsupportedOps has run.
    pub converted: bool,
    /// Whether operations are left for LateExpansionUnsupportedOps.
    pub unsupported: bool,
    /// Whether SetAfterLegalization has marked the function: no operation without an encoding is
    /// left.
    pub legalized: bool,
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct InstData {
    /// Opcode.
    pub op: Op,
    /// Modifiers.
    pub mods: Mods,
    /// Predicate with its complement bit; null if unguarded.
    pub guard: Operand,
    start: u32,
    len: u16,
    /// Number of implicit uses and definitions, behind the roles (at the end of the `len`
    /// operands).
    extra_uses: u16,
    extra_defs: u16,
    /// Number of tied old values behind the operands.
    olds: u16,
    /// For a float product or sum: whether the source permits contraction.
    pub contract: bool,
    /// For a memory access: whether it may not be reordered with any other access. For SYNCMASK:
    /// whether it orders the accesses around it.
    pub ordered: bool,
    /// Of an operation on an mbarrier: 1 + the kind under which the cubin lists it
    /// (`tables/eiattr.ron`); 0 where it does not.
    pub listed: u8,
    /// Source line; 0 if unknown.
    pub line: u32,
    /// Control word, once scheduled.
    pub ctrl: ControlWord,
}

/// The control word of an instruction, with the fields of `sass::Ctrl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlWord {
    /// Cycles until the next instruction of the warp may issue.
    pub stall: u8,
    /// Whether the scheduler should stay with this warp; the inverse of yield.
    pub stay: bool,
    /// Scoreboard that the result signals; 7 for none.
    pub write_bar: u8,
    /// Scoreboard that late source reads signal; 7 for none.
    pub read_bar: u8,
    /// Mask of the scoreboards to wait for before issue.
    pub wait: u8,
}

impl Default for ControlWord {
    fn default() -> Self {
        ControlWord { stall: 15, stay: false, write_bar: 7, read_bar: 7, wait: 0 }
    }
}

/// An address in code, known once code is laid out or functions are merged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// The start of the section with the code.
    Start,
    /// Address 0, the base of an absolute jump through a register.
    Zero,
    /// Low or high half of the section offset of the instruction after the next CALL of the block.
    Return { high: bool },
    /// Low or high half of the distance from the last LEPC before that CALL to the instruction
    /// after it.
    Distance { high: bool },
    /// A function of the driver, whose address the CALL has in registers: it tells what the callee
    /// preserves, and has no value.
    Driver,
    /// The entry of a function.
    Function(String),
    /// The entry of the slow path that the helper with this id describes.
    SlowPath(u16),
    /// Bytes of the function's finished frame, above which its caller's is.
    FrameSize,
    /// A linker-resolved value: the part of a symbol's value that the role names, plus `addend`
    /// bytes.
    Linked { role: RelocRole, name: String, addend: i64 },
}

/// Loops that `.pragma "nounroll"` names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rolled {
    /// Whether these are all loops of the function.
    pub all: bool,
    /// Blocks that stand behind the pragma; each names the innermost loop around it.
    pub blocks: Vec<Block>,
}

/// A function.
#[derive(Clone)]
pub struct Function {
    /// Name in the cubin.
    name: String,
    /// The target.
    target: &'static Target,
    /// Instructions of each block, in order.
    blocks: PrimaryMap<Block, Vec<InstId>>,
    /// Blocks in layout order; the first is the entry.
    layout: Vec<Block>,
    /// All instructions ever created.
    insts: Insts,
    /// All virtual registers ever created.
    regs: PrimaryMap<VReg, RegData>,
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
            blocks: PrimaryMap::new(),
            layout: Vec::new(),
            insts: Insts::default(),
            regs: PrimaryMap::new(),
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

    /// A new block at the end of the layout.
    pub fn new_block(&mut self) -> Block {
        let block = self.blocks.push(Vec::new());
        self.layout.push(block);
        block
    }

    /// A new block placed directly before another one in the layout.
    pub fn new_block_before(&mut self, next: Block) -> Block {
        let block = self.blocks.push(Vec::new());
        let at = self.layout.iter().position(|b| *b == next).unwrap_or(self.layout.len());
        self.layout.insert(at, block);
        block
    }

    /// Inserts new blocks into the layout, each directly before another one: pairs of (existing
    /// block, new block).
    pub fn place_before(&mut self, pairs: &[(Block, Block)]) {
        let mut before: SecondaryMap<Block, SmallVec<[Block; 2]>> = SecondaryMap::new();
        pairs.iter().for_each(|(next, new)| before[*next].push(*new));
        let old = std::mem::take(&mut self.layout);
        self.layout.reserve(old.len() + pairs.len());
        for block in old {
            self.layout.extend(before[block].iter().copied());
            self.layout.push(block);
        }
    }

    /// Redirects the branches of a block from `old` to `new`.
    pub fn redirect(&mut self, block: Block, old: Block, new: Block) {
        for i in self.first_terminator(block)..self.blocks[block].len() {
            let inst = self.blocks[block][i];
            if !self.insts[inst].op.has(Prop::Control) {
                continue;
            }
            for operand in self.args_mut(inst) {
                if operand.kind() == Kind::Label(old) {
                    *operand = Operand::label(new);
                }
            }
        }
    }

    /// The block that a branch goes to, if it names one.
    pub fn branch_target(&self, inst: InstId) -> Option<Block> {
        match self.arg(inst, Role::Target).kind() {
            Kind::Label(block) => Some(block),
            _ => None,
        }
    }

    /// Index of the first terminator at the end of a block; only these branch.
    pub fn first_terminator(&self, block: Block) -> usize {
        let insts = &self.blocks[block];
        insts.len() - insts.iter().rev().take_while(|i| self.insts[**i].op.has(Prop::Terminator)).count()
    }

    /// The entry block. There must be a block.
    pub fn entry(&self) -> Block {
        self.layout[0]
    }

    /// A new register of a file.
    pub fn new_reg(&mut self, file: File) -> VReg {
        self.regs.push(RegData { file, varying: true, phys: None, fixed: None })
    }

    /// A new register that the allocator must assign to this number.
    pub fn new_fixed(&mut self, file: File, number: u16) -> VReg {
        self.regs.push(RegData { file, varying: true, phys: None, fixed: Some(number) })
    }

    /// A new register with the file and the fixed number of another one.
    pub fn new_like(&mut self, reg: VReg) -> VReg {
        let RegData { file, fixed, .. } = self.regs[reg];
        let new = self.regs.push(RegData { file, varying: true, phys: None, fixed });
        if let Some(watched) = &mut self.watched {
            watched.parts[new] = watched.parts[reg];
        }
        new
    }

    /// The stack pointer, reserved in the whole function. The allocator inserts the instructions
    /// that set it.
    pub fn stack_register(&mut self) -> VReg {
        if let Some(reg) = self.stack_pointer {
            return reg;
        }
        let reg = self.new_reg(File::R);
        self.regs[reg].phys = Some(STACK_POINTER);
        self.stack_pointer = Some(reg);
        reg
    }

    /// The tuple of these registers; equal lists are one tuple.
    pub fn vector(&mut self, regs: &[VReg]) -> VecId {
        if let Some(id) = self.vector_index.get(regs) {
            return *id;
        }
        let start = self.vector_regs.len() as u32;
        self.vector_regs.extend_from_slice(regs);
        let id = self.vectors.push((start, regs.len() as u16));
        self.vector_index.insert(SmallVec::from_slice(regs), id);
        id
    }

    /// A tuple of fresh registers.
    pub fn new_vector(&mut self, file: File, len: usize) -> VecId {
        let regs: Vec<VReg> = (0..len).map(|_| self.new_reg(file)).collect();
        self.vector(&regs)
    }

    /// Registers of a tuple, in order.
    pub fn vector_regs(&self, vector: VecId) -> &[VReg] {
        let (start, len) = self.vectors[vector];
        &self.vector_regs[start as usize..start as usize + usize::from(len)]
    }

    /// Number of tuples ever created; ids are below it.
    pub fn vector_count(&self) -> usize {
        self.vectors.len()
    }

    /// An immediate operand with these 64 bits.
    pub fn imm(&mut self, bits: u64) -> Operand {
        let next = self.pool.len() as u32;
        let index = *self.pool_index.entry(bits).or_insert(next);
        if index == next {
            self.pool.push(bits);
        }
        Operand::pooled(index)
    }

    /// Value of an immediate operand.
    pub fn imm_value(&self, operand: Operand) -> Option<u64> {
        match operand.kind() {
            Kind::Imm(index) => self.pool.get(index as usize).copied(),
            _ => None,
        }
    }

    /// The word that an immediate or RZ is, without modifiers.
    pub fn word_value(&self, operand: Operand) -> Option<u32> {
        match operand.kind() {
            _ if operand != operand.plain() => None,
            Kind::Zero => Some(0),
            _ => self.imm_value(operand).map(|value| value as u32),
        }
    }

    /// Creates an instruction with null operands, in no block yet.
    pub fn make(&mut self, op: Op) -> InstId {
        let start = self.operands.len();
        self.operands.resize(start + op.info().roles.len(), Operand::NULL);
        self.push(op, start)
    }

    /// Creates an instruction with these operands (one per role; any number for a PHI), in no block
    /// yet.
    pub fn make_with(&mut self, op: Op, operands: &[Operand]) -> InstId {
        let start = self.operands.len();
        self.operands.extend_from_slice(operands);
        self.push(op, start)
    }

    /// Creates an instruction with the operands from `start` on.
    fn push(&mut self, op: Op, start: usize) -> InstId {
        self.insts.push(Self::new_inst(op, start, self.operands.len() - start))
    }

    fn new_inst(op: Op, start: usize, len: usize) -> InstData {
        InstData {
            op,
            mods: Mods::default(),
            guard: Operand::NULL,
            start: start as u32,
            len: len as u16,
            extra_uses: 0,
            extra_defs: 0,
            olds: 0,
            listed: 0,
            line: 0,
            contract: false,
            ordered: false,
            ctrl: ControlWord::default(),
        }
    }

    /// Makes an instruction another one without operands and guard, in the place of its operands.
    pub fn remake(&mut self, inst: InstId, op: Op) {
        let InstData { start, len, line, .. } = self.insts[inst];
        let (mut start, roles) = (start as usize, op.info().roles.len());
        if roles > usize::from(len) {
            start = self.operands.len();
            self.operands.resize(start + roles, Operand::NULL);
        }
        self.operands[start..start + roles].fill(Operand::NULL);
        self.insts[inst] = InstData { line, ..Self::new_inst(op, start, roles) };
    }

    /// Drops the instructions that are in no block, if they are many. The others keep their order,
    /// but have new numbers.
    pub fn compact(&mut self) {
        let mut kept: Vec<InstId> = self.blocks.values().flatten().copied().collect();
        kept.sort_unstable();
        kept.dedup();
        if kept.len() > self.insts.len() / 8 * 7 {
            return;
        }
        let mut operands = Vec::new();
        for inst in &kept {
            let InstData { start, len, olds, .. } = self.insts[*inst];
            let (first, count) = (start as usize, usize::from(len) + usize::from(olds));
            self.insts[*inst].start = operands.len() as u32;
            operands.extend_from_slice(&self.operands[first..first + count]);
        }
        self.operands = operands;
        let number = |inst: &InstId| kept.binary_search(inst).ok().map(InstId::new);
        self.above_frame = self.above_frame.iter().filter_map(number).collect();
        self.blocks.values_mut().flatten().for_each(|inst| *inst = number(inst).unwrap_or(*inst));
        self.insts.keep(&kept);
    }

    /// A copy of an instruction with operands of its own, in no block yet.
    pub fn copy_inst(&mut self, inst: InstId) -> InstId {
        let mut data = self.insts[inst];
        let (first, len) = (data.start as usize, usize::from(data.len + data.olds));
        data.start = self.operands.len() as u32;
        self.operands.extend_from_within(first..first + len);
        let copy = self.insts.push(data);
        if self.above_frame.contains(&inst) {
            self.above_frame.push(copy);
        }
        copy
    }

    /// Operands in role order, then implicit operands; without tied old values.
    pub fn args(&self, inst: InstId) -> &[Operand] {
        let data = &self.insts[inst];
        &self.operands[data.start as usize..data.start as usize + usize::from(data.len)]
    }

    /// As [`Function::args`], mutable.
    pub fn args_mut(&mut self, inst: InstId) -> &mut [Operand] {
        self.insts.change(inst);
        let data = &self.insts[inst];
        &mut self.operands[data.start as usize..data.start as usize + usize::from(data.len)]
    }

    /// Tied old values of a guarded instruction in SSA form, one per definition.
    pub fn olds(&self, inst: InstId) -> &[Operand] {
        let data = &self.insts[inst];
        let start = data.start as usize + usize::from(data.len);
        &self.operands[start..start + usize::from(data.olds)]
    }

    /// As [`Function::olds`], mutable.
    pub fn olds_mut(&mut self, inst: InstId) -> &mut [Operand] {
        self.insts.change(inst);
        let data = &self.insts[inst];
        let start = data.start as usize + usize::from(data.len);
        &mut self.operands[start..start + usize::from(data.olds)]
    }

    /// Sets the implicit uses and definitions of a new instruction; they follow the roles in
    /// [`Function::args`], uses first. Must precede `set_olds`.
    pub fn set_extras(&mut self, inst: InstId, uses: &[Operand], defs: &[Operand]) {
        let args = self.args(inst).to_vec();
        let start = self.operands.len() as u32;
        self.operands.extend(args);
        self.operands.extend_from_slice(uses);
        self.operands.extend_from_slice(defs);
        let data = &mut self.insts[inst];
        data.start = start;
        data.len += (uses.len() + defs.len()) as u16;
        (data.extra_uses, data.extra_defs) = (uses.len() as u16, defs.len() as u16);
    }

    /// Adds an implicit use to an instruction without implicit definitions and without old values.
    pub fn add_extra_use(&mut self, inst: InstId, operand: Operand) {
        let mut uses = self.extras(inst).0.to_vec();
        uses.push(operand);
        self.set_extra_uses(inst, &uses);
    }

    /// Replaces the implicit uses of an instruction without implicit definitions and without old
    /// values.
    pub fn set_extra_uses(&mut self, inst: InstId, uses: &[Operand]) {
        let data = &mut self.insts[inst];
        debug_assert!(data.extra_defs == 0 && data.olds == 0);
        data.len -= data.extra_uses;
        data.extra_uses = 0;
        self.set_extras(inst, uses, &[]);
    }

    /// The implicit operands: uses, definitions.
    pub fn extras(&self, inst: InstId) -> (&[Operand], &[Operand]) {
        let data = &self.insts[inst];
        let extra = usize::from(data.extra_uses + data.extra_defs);
        self.args(inst)[usize::from(data.len) - extra..].split_at(usize::from(data.extra_uses))
    }

    /// Replaces the tied old values.
    pub fn set_olds(&mut self, inst: InstId, olds: &[Operand]) {
        if olds.len() <= usize::from(self.insts[inst].olds) {
            self.insts[inst].olds = olds.len() as u16;
            return self.olds_mut(inst).copy_from_slice(olds);
        }
        let (first, start) = (self.insts[inst].start as usize, self.operands.len() as u32);
        self.operands.extend_from_within(first..first + usize::from(self.insts[inst].len));
        self.operands.extend_from_slice(olds);
        let data = &mut self.insts[inst];
        data.start = start;
        data.olds = olds.len() as u16;
    }

    /// A symbol operand; equal symbols are one operand.
    pub fn symbol(&mut self, symbol: Symbol) -> Operand {
        if let Some(index) = self.symbol_index.get(&symbol) {
            return Operand::symbol(*index);
        }
        let index = self.symbols.len() as u32;
        self.symbols.push(symbol.clone());
        self.symbol_index.insert(symbol, index);
        Operand::symbol(index)
    }

    /// The symbol of an operand.
    pub fn symbol_of(&self, operand: Operand) -> Option<&Symbol> {
        match operand.kind() {
            Kind::Symbol(index) => self.symbols.get(index as usize),
            _ => None,
        }
    }

    /// What an instruction calls, if it may change registers that it does not name.
    pub fn callee(&self, inst: InstId) -> Option<Callee> {
        if !self.insts[inst].op.has(Prop::Clobbers) {
            return None;
        }
        match self.symbol_of(self.arg(inst, Role::Target)) {
            Some(Symbol::SlowPath(id)) => {
                Some(Callee::SlowPath(Helper::by_id(*id).map_or(0, |helper| helper.family().slow_path)))
            }
            Some(Symbol::Driver) => Some(Callee::Driver),
            Some(Symbol::Function(name)) if !self.attributes.private_callees.is_empty() => Some(
                self.attributes.private_callees.get(name).map_or(Callee::Device, |changes| Callee::Private(*changes)),
            ),
            _ => Some(Callee::Device),
        }
    }

    /// The operand in a role; null if the opcode lacks the role.
    #[inline]
    pub fn arg(&self, inst: InstId, role: Role) -> Operand {
        self.insts[inst].op.role_index(role).map_or(Operand::NULL, |i| self.args(inst)[i])
    }

    /// Sets the operand in a role, which the opcode must have.
    pub fn set_arg(&mut self, inst: InstId, role: Role, operand: Operand) {
        let index = self.insts[inst].op.role_index(role);
        debug_assert!(index.is_some(), "{:?} has no role {role:?}", self.insts[inst].op);
        if let Some(i) = index {
            self.args_mut(inst)[i] = operand;
        }
    }

    /// Whether a position is a definition or a use; a PHI defines its first operand and uses the
    /// others.
    #[inline]
    pub fn direction(&self, inst: InstId, position: usize) -> Direction {
        let data = &self.insts[inst];
        let (defs, uses) = data.op.places();
        let place = 1u32.checked_shl(position as u32).unwrap_or(0);
        if u32::from(defs) & place != 0 {
            return Direction::Def;
        }
        if u32::from(uses) & place != 0 || data.op == Op::PHI {
            return Direction::Use;
        }
        let extras = usize::from(data.len - data.extra_uses - data.extra_defs);
        match position {
            _ if position < extras.max(data.op.info().roles.len()) => Direction::None,
            _ if position < extras + usize::from(data.extra_uses) => Direction::Use,
            _ => Direction::Def,
        }
    }

    /// Calls `f` for each register of an operand.
    #[inline]
    pub fn for_each_reg(&self, operand: Operand, mut f: impl FnMut(VReg)) {
        // One call of `f`, so that what it does is compiled once.
        let (mut reg, mut others): (VReg, &[VReg]) = if let Some(reg) = operand.as_reg() {
            (reg, &[])
        } else if let Some(vector) = operand.as_vector()
            && let Some((first, others)) = self.vector_regs(vector).split_first()
        {
            (*first, others)
        } else {
            return;
        };
        loop {
            f(reg);
            let Some((next, rest)) = others.split_first() else { return };
            (reg, others) = (*next, rest);
        }
    }

    /// Calls `f` for each register that an instruction defines.
    #[inline]
    pub fn for_each_def(&self, inst: InstId, f: impl FnMut(VReg)) {
        for_each(self.insts.defs(inst), |from| self.some_defs(inst, from), f);
    }

    /// Calls `f` for each register that an instruction reads: sources, guard and tied old values.
    #[inline]
    pub fn for_each_use(&self, inst: InstId, f: impl FnMut(VReg)) {
        for_each(self.insts.uses(inst), |from| self.some_uses(inst, from), f);
    }

    /// Calls `f` for each source of an instruction: PHI inputs or roles that it reads, and implicit
    /// uses.
    #[inline]
    pub fn for_each_source(&self, inst: InstId, f: impl FnMut(Operand)) {
        self.sources(inst).for_each(f);
    }

    /// Lists the registers of all instructions in blocks, so that the two above go over lists.
    pub fn list_registers(&mut self) {
        let Some(mut list) = self.insts.begin() else { return };
        for inst in self.layout.iter().flat_map(|block| &self.blocks[*block]).copied() {
            if self.insts.is_listed(inst) {
                continue;
            }
            let first = list.len();
            self.find_defs(inst, |reg| list.push(reg));
            let uses = list.len();
            self.find_uses(inst, |reg| list.push(reg));
            self.insts.note(inst, &list, first, uses);
        }
        self.insts.finish(list);
    }

    /// An instruction whose list of registers is not that of its operands, if there is one.
    pub fn wrongly_listed(&self) -> Option<InstId> {
        let insts = self.layout.iter().flat_map(|block| &self.blocks[*block]).copied();
        insts.filter(|inst| self.insts.is_listed(*inst)).find(|inst| {
            let (mut defs, mut uses) = (Vec::new(), Vec::new());
            self.find_defs(*inst, |reg| defs.push(reg));
            self.find_uses(*inst, |reg| uses.push(reg));
            self.insts.defs(*inst) != Some(&defs) || self.insts.uses(*inst) != Some(&uses)
        })
    }

    #[inline(never)]
    fn some_defs(&self, inst: InstId, from: usize) -> Found {
        let mut some = Found::new(from);
        self.find_defs(inst, |reg| some.add(reg));
        some
    }

    #[inline(never)]
    fn some_uses(&self, inst: InstId, from: usize) -> Found {
        let mut some = Found::new(from);
        self.find_uses(inst, |reg| some.add(reg));
        some
    }

    /// As [`Function::for_each_def`], from the operands.
    fn find_defs(&self, inst: InstId, mut f: impl FnMut(VReg)) {
        let data = &self.insts[inst];
        let len = usize::from(data.len);
        let places = if data.op == Op::PHI { 1 } else { data.op.places().0 };
        let extras = (len - usize::from(data.extra_defs), len);
        let operands = Operands { all: self.args(inst), places, run: extras, last: None };
        operands.for_each(|operand| self.for_each_reg(operand, &mut f));
    }

    /// As [`Function::for_each_use`], from the operands.
    fn find_uses(&self, inst: InstId, mut f: impl FnMut(VReg)) {
        let data = &self.insts[inst];
        let sources = self.sources(inst);
        let olds = (usize::from(data.len), sources.all.len());
        let last = (!data.guard.is_null() || data.olds != 0).then_some((data.guard, olds));
        Operands { last, ..sources }.for_each(|operand| self.for_each_reg(operand, &mut f));
    }

    #[inline]
    fn sources(&self, inst: InstId) -> Operands<'_> {
        let data = &self.insts[inst];
        let (start, len) = (data.start as usize, usize::from(data.len));
        let all = &self.operands[start..start + len + usize::from(data.olds)];
        let before = len - usize::from(data.extra_defs);
        let extras = (before - usize::from(data.extra_uses), before);
        let (places, run) = if data.op == Op::PHI { (0, (1, len)) } else { (data.op.places().1, extras) };
        Operands { all, places, run, last: None }
    }

    /// Width of the operand in a role of this instruction, in 32-bit words.
    pub fn width(&self, inst: InstId, role: &RoleInfo) -> u8 {
        width_of(role.width, &self.insts[inst].mods)
    }

    /// Number of instructions in blocks.
    pub fn inst_count(&self) -> usize {
        self.layout.iter().map(|b| self.blocks[*b].len()).sum()
    }
}

/// Some operands of an instruction. One loop goes over them, so that what it does with each is
/// compiled once.
struct Operands<'a> {
    all: &'a [Operand],
    /// The places that come first, one bit each.
    places: u16,
    /// Where the places begin and end that come next.
    run: (usize, usize),
    /// The guard, and the places behind it.
    last: Option<(Operand, (usize, usize))>,
}

impl Iterator for Operands<'_> {
    type Item = Operand;

    #[inline]
    fn next(&mut self) -> Option<Operand> {
        if self.places != 0 {
            let place = self.places.trailing_zeros() as usize;
            self.places &= self.places - 1;
            return Some(self.all.get(place).copied().unwrap_or(Operand::NULL));
        }
        if self.run.0 < self.run.1 {
            self.run.0 += 1;
            return Some(self.all[self.run.0 - 1]);
        }
        let (guard, run) = self.last.take()?;
        self.run = run;
        Some(guard)
    }
}

/// Registers that are found at a time.
const AT_A_TIME: usize = 16;

/// Registers of an instruction that are not listed: a part of them.
struct Found {
    /// How many come before, and how many have been seen.
    from: usize,
    seen: usize,
    regs: [VReg; AT_A_TIME],
}

impl Found {
    fn new(from: usize) -> Found {
        Found { from, seen: 0, regs: [VReg(0); AT_A_TIME] }
    }

    fn add(&mut self, reg: VReg) {
        if let Some(place) = self.seen.checked_sub(self.from).and_then(|at| self.regs.get_mut(at)) {
            *place = reg;
        }
        self.seen += 1;
    }
}

/// Calls `f` for each register that is listed, else for each that is found from a number on. There
/// is one loop, so that what it does is compiled once.
#[inline]
fn for_each(listed: Option<&[VReg]>, find: impl Fn(usize) -> Found, mut f: impl FnMut(VReg)) {
    let mut from = 0;
    loop {
        let found;
        let regs = match listed {
            Some(regs) => regs,
            None => {
                found = find(from);
                from += AT_A_TIME;
                let left = found.seen - found.from;
                if left <= AT_A_TIME {
                    from = 0;
                }
                &found.regs[..left.min(AT_A_TIME)]
            }
        };
        regs.iter().for_each(|reg| f(*reg));
        if from == 0 {
            return;
        }
    }
}

/// Width of an operand in 32-bit words, from its width rule and the instruction's modifiers.
pub fn width_of(width: Width, mods: &Mods) -> u8 {
    width.words(mods)
}

impl Function {
    /// Successors of a block in branch order, each once.
    pub fn successors(&self, block: Block) -> SmallVec<[Block; 2]> {
        let mut out = SmallVec::new();
        for inst in &self.blocks[block][self.first_terminator(block)..] {
            for operand in self.args(*inst) {
                if let Kind::Label(target) = operand.kind()
                    && !out.contains(&target)
                {
                    out.push(target);
                }
            }
        }
        out
    }

    /// Whether the block at this index in the layout ends with a branch to the next block.
    pub fn falls_through(&self, place: usize) -> bool {
        let last = self.blocks[self.layout[place]].last().copied();
        let (Some(inst), Some(next)) = (last, self.layout.get(place + 1)) else { return false };
        let data = &self.insts[inst];
        data.op == Op::BRA && data.guard.is_null() && self.arg(inst, Role::Target).kind() == Kind::Label(*next)
    }

    /// Appends an instruction to a block.
    pub fn append(&mut self, block: Block, inst: InstId) {
        self.blocks[block].push(inst);
    }

    /// Number of blocks ever created; ids are below it.
    pub fn block_limit(&self) -> usize {
        self.blocks.len()
    }
}
