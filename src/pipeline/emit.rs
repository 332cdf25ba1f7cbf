//! Encoding (phase FormatCodeList): Ori in physical registers to instruction words.
//!
//! Runs on an allocated and scheduled function. Yields 16 bytes per instruction with branch
//! distances resolved, the fixups to apply when functions are merged, and what the cubin records
//! about the code (exit offsets, registers, warp-wide operations, branch tables). An instruction
//! without an encoding on the target is an error that names it, never a wrong word.

use super::loads::partly_read;
use super::values::{Value, values};
use crate::ori::{BankConstants, Block, File, Function, InstId, Kind, Listed, Operand, ShaderConstants, Symbol};
use crate::sass::{self, Arg, Ctrl, Guard, Inst, reuse};
use crate::tables::elf::RelocRole;
use crate::tables::encoding::{Form, sr};
use crate::tables::helpers::Helper;
use crate::tables::ori::Class;
use crate::tables::{Mod, Op, Prop, Role, value};
use cranelift_entity::SecondaryMap;

/// Size of an instruction in bytes.
pub const WORD: u64 = 16;
/// Instructions of a block that are kept until their words are finished: a large block has many.
const PIECE: usize = 1 << 12;

/// The code of a function, and what its cubin records about it.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The instruction words, without the operands in `fixups`.
    pub bytes: Vec<u8>,
    /// Number of the highest general register plus one.
    pub registers: u32,
    /// Byte offsets of EXIT instructions.
    pub exits: Vec<u32>,
    /// Whether lanes reconverge in it.
    pub reconverges: bool,
    /// Byte offsets of warp-level operations of the program, and of those that the compiler added.
    pub warp_wide: Vec<u32>,
    pub inserted_warp_wide: Vec<u32>,
    /// Loads of several words of which only some are read: byte offset, and a mask of the bytes
    /// that are.
    pub partly_read: Vec<(u32, u32)>,
    /// Whether it reads the number of the block in z.
    pub block_z: bool,
    /// Operations on mbarriers.
    pub mbarriers: Vec<MbarrierUse>,
    /// Whether it uses tensor memory at all, does more than load and store, and allocates it.
    pub tensor: [bool; 3],
    /// Byte offsets of calls to functions of the driver.
    pub system_calls: Vec<u32>,
    /// Source line of each instruction; 0 if unknown.
    pub lines: Vec<u32>,
    /// Operands to resolve when functions are merged.
    pub fixups: Vec<Fixup>,
    /// Tables of indirect branches.
    pub tables: Vec<BranchTable>,
    /// What it reads from the compiler's constant bank.
    pub constants: BankConstants,
    /// What the host patches before a launch.
    pub shader_constants: ShaderConstants,
    /// With debug information: where the registers of the text are.
    pub values: Vec<Value>,
    /// With debug information: from a byte offset on, how many bytes the stack pointer is below
    /// its value at the entry.
    pub stack: Vec<(u64, u32)>,
}

/// An operation on an mbarrier that the cubin lists: its byte offset, its kind as
/// `tables/eiattr.ron` numbers them, and its address, registers plus a number.
#[derive(Clone, Copy, Debug)]
pub struct MbarrierUse {
    pub at: u32,
    pub kind: u8,
    pub register: u8,
    /// The register of the count, where the operation completes no phase.
    pub count: Option<u8>,
    pub uniform: u8,
    pub address: u32,
}

/// An operand that is resolved once the function has its place in a section.
#[derive(Clone, Debug)]
pub struct Fixup {
    /// Byte offset of the instruction in its function.
    pub at: u64,
    /// The instruction, to be encoded again.
    pub inst: Inst,
    /// Role of the operand.
    pub role: Role,
    /// Value of the operand.
    pub place: Place,
}

/// The value of such an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The distance to the start of the section.
    Start,
    /// The distance to the first instruction of a function.
    Function(String),
    /// Low or high half of the section offset of an offset in the function.
    Offset { within: u64, high: bool },
    /// The section offset of an offset in the function, which no linker changes: where a slow path
    /// in the same section returns to.
    Inside(u64),
    /// The value with this number of [`Code::constants`]; the instruction has it at the offset that
    /// the function gave it.
    Constant(usize),
    /// A linker-resolved value of a symbol.
    Linked { role: RelocRole, name: String, addend: i64 },
}

/// An indirect branch with its table in bank 2, which has one 4-byte entry per target.
#[derive(Clone, Debug)]
pub struct BranchTable {
    /// Byte offset of the branch in its function.
    pub at: u32,
    /// Byte offset of its table in bank 2.
    pub slot: u32,
    /// Byte offsets of the targets in the function, in table order.
    pub targets: Vec<u64>,
}

/// Encodes a function.
///
/// # Errors
///
/// The first instruction that has no encoding or names a register without a physical number.
pub fn emit(function: &Function) -> Result<Code, String> {
    let (starts, total) = layout(function);
    let constants = function.attributes().constants.clone().unwrap_or_default();
    let shader_constants = function.attributes().shader_constants.clone().unwrap_or_default();
    let mut code = Code { registers: registers(function), constants, shader_constants, ..Code::default() };
    for (place, block) in function.layout().iter().enumerate() {
        let scene = Scene { function, starts: &starts, start: starts[*block], insts: kept(function, place, *block) };
        let first = code.bytes.len() as u64;
        let most = scene.insts.len().min(PIECE + reuse::AHEAD);
        let (mut forms, mut words) = (Vec::with_capacity(most), Vec::with_capacity(most));
        for (i, inst) in scene.insts.iter().enumerate() {
            let at = first + i as u64 * WORD;
            let (machine, fixup) = scene.machine_inst(*inst, at)?;
            let (form, word) = sass::pick(function.target(), &machine).map_err(|e| e.to_string())?;
            // Most instructions with a fixup are encoded again later, without reuse marks.
            words.push((word, fixup.as_ref().is_none_or(|(_, place)| matches!(place, Place::Constant(_)))));
            forms.push((form, machine));
            code.fixups.extend(fixup.map(|(role, place)| Fixup { at, inst: machine, role, place }));
            code.lines.push(function[*inst].line);
            sites(function, &starts, *inst, at, &mut code);
            let reads = |arg: &Operand| arg.kind() == Kind::Special(sr::CTAID_Z);
            code.block_z |= function.args(*inst).iter().any(reads);
            if forms.len() == PIECE + reuse::AHEAD {
                finish(&mut forms, &mut words, PIECE, &mut code.bytes);
            }
        }
        let loads = partly_read(function, scene.insts).into_iter();
        code.partly_read.extend(loads.map(|(i, mask)| ((first + i as u64 * WORD) as u32, mask)));
        let rest = words.len();
        finish(&mut forms, &mut words, rest, &mut code.bytes);
    }
    debug_assert_eq!(code.bytes.len() as u64, total);
    code.bytes.shrink_to_fit();
    code.lines.shrink_to_fit();
    code.fixups.shrink_to_fit();
    if function.watched().is_some() {
        debug_facts(function, &starts, total, &mut code);
    }
    Ok(code)
}

/// Adds the first words of a block to the code, with the marks of operands to reuse: all that are
/// left of the block, or so many that the instructions behind decide nothing about them. A word
/// says whether it may be marked.
fn finish(forms: &mut Vec<(&'static Form, Inst)>, words: &mut Vec<(u128, bool)>, count: usize, bytes: &mut Vec<u8>) {
    let slots = reuse::wanted(forms);
    for ((word, marked), slots) in words.drain(..count).zip(slots) {
        let marks = if marked { u128::from(slots) << reuse::FIRST_BIT } else { 0 };
        bytes.extend((word | marks).to_le_bytes());
    }
    forms.drain(..count);
}

/// What a debugger is told of the code.
fn debug_facts(function: &Function, starts: &SecondaryMap<Block, u64>, total: u64, code: &mut Code) {
    let mut insts = Vec::new();
    for (place, block) in function.layout().iter().enumerate() {
        let at = |i: usize| starts[*block] + i as u64 * WORD;
        insts.extend(kept(function, place, *block).iter().enumerate().map(|(i, inst)| (at(i), *inst)));
    }
    let mut below = 0u32;
    for (at, inst) in &insts {
        let op = function[*inst].op;
        let mut moves = false;
        function.for_each_def(*inst, |reg| moves |= Some(reg) == function.stack_pointer());
        if let Some(by) = function.imm_value(function.arg(*inst, Role::B)).filter(|_| moves && op == Op::IADD3) {
            below = below.wrapping_sub(by as u32);
            code.stack.push((at + WORD, below));
        } else if op == Op::RET && at + WORD < total && below != function.attributes().frame_bytes {
            below = function.attributes().frame_bytes;
            code.stack.push((at + WORD, below));
        }
    }
    code.values = values(function, starts, total, &insts);
}

/// Kinds of operations on mbarriers that complete no phase, as `tables/eiattr.ron` numbers them.
const INCOMPLETE: [u8; 2] = [2, 4];

/// Records an instruction that the cubin must list.
fn sites(function: &Function, starts: &SecondaryMap<Block, u64>, inst: InstId, at: u64, code: &mut Code) {
    let op = function[inst].op;
    code.reconverges |= op == Op::BSSY;
    if op == Op::EXIT {
        code.exits.push(at as u32);
    }
    let (allocates, unit) = (op.has(Prop::TensorAllocation), op.has(Prop::TensorUnit));
    let any = op.has(Prop::TensorMemory);
    for (seen, new) in code.tensor.iter_mut().zip([any, unit, allocates]) {
        *seen |= new;
    }
    match function[inst].listed {
        _ if !op.has(Prop::WarpWide) => {}
        Listed::Program => code.warp_wide.push(at as u32),
        _ => code.inserted_warp_wide.push(at as u32),
    }
    if let Listed::Barrier(kind) = function[inst].listed {
        code.mbarriers.push(mbarrier(function, inst, at, kind));
    }
    if op == Op::CALL && function[inst].mods.get(Mod::Mode) == value::mode::ABS {
        code.system_calls.push(at as u32);
    }
    let (extras, _) = function.extras(inst);
    if let Some(slot) = extras.first().and_then(|o| function.imm_value(*o)) {
        let labels = extras.iter().filter_map(|o| match o.kind() {
            Kind::Label(block) => Some(starts[block]),
            _ => None,
        });
        code.tables.push(BranchTable { at: at as u32, slot: slot as u32, targets: labels.collect() });
    }
}

/// An operation on an mbarrier as the cubin lists it.
fn mbarrier(function: &Function, inst: InstId, at: u64, kind: u8) -> MbarrierUse {
    let place = |role: Role, file: File| {
        let reg = function.arg(inst, role).as_reg().filter(|reg| function[*reg].file == file)?;
        function[reg].phys.map(|number| number as u8)
    };
    // URZ is the last number of its field.
    let fields_of_six = function.target().info().is_some_and(|info| info.ur_count < 64);
    let none = if fields_of_six { 63 } else { u8::MAX };
    let uniform = place(Role::A, File::UR).or(place(Role::Ub, File::UR)).unwrap_or(none);
    let register = place(Role::A, File::R).unwrap_or(u8::MAX);
    let address = function.imm_value(function.arg(inst, Role::Off)).unwrap_or(0) as u32;
    // Without a count it has RZ there, the last number of its field.
    let counts = function[inst].op == Op::SYNCS_ARRIVE && !function.arg(inst, Role::B).is_null();
    let count = counts.then(|| place(Role::B, File::R).unwrap_or(u8::MAX)).filter(|_| INCOMPLETE.contains(&kind));
    MbarrierUse { at: at as u32, kind, register, count, uniform, address }
}

/// Instructions of a block that are encoded: all but a branch to the next block.
fn kept(function: &Function, place: usize, block: Block) -> &[InstId] {
    let insts = &function[block];
    if function.falls_through(place) { &insts[..insts.len() - 1] } else { insts }
}

/// Byte offset of each block, and of the end of the code.
fn layout(function: &Function) -> (SecondaryMap<Block, u64>, u64) {
    let mut starts = SecondaryMap::new();
    let mut at = 0;
    for (place, block) in function.layout().iter().enumerate() {
        starts[*block] = at;
        at += kept(function, place, *block).len() as u64 * WORD;
    }
    (starts, at)
}

fn registers(function: &Function) -> u32 {
    let used = function.regs().values().filter(|r| r.file == File::R).filter_map(|r| r.phys);
    used.max().map_or(0, |r| u32::from(r) + 1)
}

/// What the operands of a block's instructions may refer to.
struct Scene<'a> {
    function: &'a Function,
    starts: &'a SecondaryMap<Block, u64>,
    /// Byte offset of the block, and its instructions.
    start: u64,
    insts: &'a [InstId],
}

impl<'a> Scene<'a> {
    /// Byte offset of the first CALL at or after an offset.
    fn call(&self, at: u64) -> Result<u64, String> {
        let from = ((at - self.start) / WORD) as usize;
        let found = self.insts[from..].iter().position(|i| self.function[*i].op == Op::CALL);
        let found = found.ok_or("a return address without a call behind it in its block")?;
        Ok(self.start + (from + found) as u64 * WORD)
    }

    /// Whether the instruction at an offset calls a slow path.
    fn calls_slow_path(&self, at: u64) -> bool {
        let inst = self.insts[((at - self.start) / WORD) as usize];
        let mut symbols = self.function.args(inst).iter().filter_map(|operand| self.function.symbol_of(*operand));
        symbols.any(|symbol| matches!(symbol, Symbol::SlowPath(_)))
    }

    /// Byte offset of the last LEPC before an offset.
    fn here(&self, at: u64) -> Result<u64, String> {
        let to = ((at - self.start) / WORD) as usize;
        let found = self.insts[..to].iter().rposition(|i| self.function[*i].op == Op::LEPC);
        Ok(self.start + found.ok_or("a distance without a LEPC before it in its block")? as u64 * WORD)
    }

    fn machine_inst(&self, inst: InstId, at: u64) -> Result<(Inst, Option<(Role, Place)>), String> {
        let function = self.function;
        let data = &function[inst];
        let mut out = Inst::new(data.op);
        out.mods = data.mods;
        if let Some(reg) = data.guard.as_reg() {
            let pred = physical(function, reg)? as u8;
            out.guard = Guard { pred, not: data.guard.not(), upred: function[reg].file == File::UP };
        }
        if data.guard == Operand::never() {
            out.guard = Guard { pred: sass::inst::PT as u8, not: true, upred: false };
        }
        let c = data.ctrl;
        out.ctrl = Ctrl { stall: c.stall, stay: c.stay, write_bar: c.write_bar, read_bar: c.read_bar, wait: c.wait };
        let mut fixup = None;
        for (slot, (role, operand)) in data.op.info().roles.iter().zip(function.args(inst)).enumerate() {
            let target = |block: Block| self.starts[block] as i64 - (at + WORD) as i64;
            if let Some(symbol) = function.symbol_of(*operand) {
                let (arg, place) = self.symbol(symbol, role.class, at)?;
                out.args[slot] = arg;
                fixup = place.map(|place| (role.role, place)).or(fixup);
            } else {
                let number = |reg| physical(function, reg);
                out.args[slot] = machine_arg(function, role.class, *operand, number, target)?;
                let index = function.attributes().constants.as_ref().and_then(|constants| constants.index(*operand));
                fixup = index.map(|index| (role.role, Place::Constant(index))).or(fixup);
            }
        }
        out.settle_condition();
        Ok((out, fixup))
    }

    /// The value of a symbol as far as it is known, and the fixup for the rest.
    fn symbol(&self, symbol: &Symbol, class: Class, at: u64) -> Result<(Arg, Option<Place>), String> {
        Ok(match symbol {
            Symbol::Driver => (Arg::default(), None),
            Symbol::Zero => (Arg::label(0), None),
            Symbol::Start => (Arg::label(0), Some(Place::Start)),
            Symbol::Function(name) => (Arg::label(0), Some(Place::Function(name.clone()))),
            Symbol::SlowPath(id) => {
                let helper = Helper::by_id(*id).ok_or("a slow path that is no helper")?;
                (Arg::label(0), Some(Place::Function(helper.slow_path_name())))
            }
            Symbol::FrameSize => (Arg::imm(u64::from(self.function.attributes().frame_bytes)), None),
            Symbol::Linked { role, name, addend } => {
                let place = Place::Linked { role: *role, name: name.clone(), addend: *addend };
                (Arg::imm(0), Some(place))
            }
            Symbol::Return { .. } if class == Class::Label => {
                (Arg::label((self.call(at)? + WORD) as i64 - (at + WORD) as i64), None)
            }
            Symbol::Return { high } => {
                let call = self.call(at)?;
                let within = call + WORD;
                let inside = !high && self.calls_slow_path(call);
                let place = if inside { Place::Inside(within) } else { Place::Offset { within, high: *high } };
                (Arg::imm(0), Some(place))
            }
            Symbol::Distance { high } => {
                let call = self.call(at)?;
                let distance = call + WORD - self.here(call)?;
                (Arg::imm(distance >> if *high { 32 } else { 0 } & 0xffff_ffff), None)
            }
        })
    }
}

fn physical(function: &Function, reg: crate::ori::VReg) -> Result<u32, String> {
    function[reg].phys.map(u32::from).ok_or_else(|| format!("{reg} has no physical register"))
}

pub(super) fn machine_arg(
    function: &Function,
    class: Class,
    operand: Operand,
    number: impl Fn(crate::ori::VReg) -> Result<u32, String>,
    target: impl Fn(Block) -> i64,
) -> Result<Arg, String> {
    let arg = match operand.kind() {
        Kind::Null => return Ok(Arg::default()),
        Kind::Reg(reg) => file_arg(function[reg].file, number(reg)?),
        Kind::Vector(vector) => {
            let first = function.vector_regs(vector)[0];
            file_arg(function[first].file, number(first)?)
        }
        Kind::Imm(_) => Arg::imm(function.imm_value(operand).unwrap_or(0)),
        Kind::Const { bank, offset } => Arg::constant(bank, i32::from(offset)),
        Kind::Label(block) => Arg::label(target(block)),
        Kind::Symbol(_) => return Err("a symbol where none can be".to_string()),
        Kind::Special(number) => Arg::special(number),
        Kind::Zero => match class {
            Class::Pred => Arg::pred(sass::inst::PT, false),
            Class::Uniform => Arg::ureg(sass::inst::URZ),
            _ => Arg::reg(sass::inst::RZ),
        },
    };
    Ok(Arg { neg: operand.neg(), abs: operand.abs(), not: operand.not(), reuse: operand.reuse(), ..arg })
}

fn file_arg(file: File, number: u32) -> Arg {
    match file {
        File::R => Arg::reg(number),
        File::UR => Arg::ureg(number),
        File::P => Arg::pred(number, false),
        File::UP => Arg::upred(number, false),
        File::B | File::UB => Arg::bar(number),
    }
}
