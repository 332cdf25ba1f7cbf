//! Phase FormatCodeList: Ori in physical registers to instruction words.
//!
//! Input: an allocated and scheduled function. Output: 16 bytes per instruction, branch distances resolved, the closing
//! self-branch and the padding that the incumbent puts behind it, and what the cubin must know of the code (exit offsets,
//! registers, barriers, warp-wide operations). Invariant: an instruction without an encoding on the target is an error that
//! names it, never a wrong word.

use crate::opt::layout::falls_through;
use crate::ori::{Block, File, Function, InstId, Kind, Operand};
use crate::sass::{self, Arg, Ctrl, Guard, Inst};
use crate::tables::ori::Class;
use crate::tables::{Feature, Op, Prop, Role};
use cranelift_entity::SecondaryMap;

/// Bytes of one instruction.
pub const WORD: u64 = 16;
/// Code is padded to a multiple of this, in bytes.
const ALIGN: usize = 128;

/// The code of a function and what its cubin must say of it.
#[derive(Clone, Debug, Default)]
pub struct Code {
    pub bytes: Vec<u8>,
    /// Highest general register + 1.
    pub registers: u32,
    /// Byte offsets of EXIT instructions.
    pub exits: Vec<u32>,
    /// Byte offsets of operations over the lanes of a warp which the program asked for.
    pub warp_wide: Vec<u32>,
    /// Source line of each instruction, 0 where there is none.
    pub lines: Vec<u32>,
}

/// Encodes a function.
pub fn emit(function: &Function) -> Result<Code, String> {
    let (starts, total) = layout(function);
    let mut code = Code { registers: registers(function), ..Code::default() };
    for (place, block) in function.layout.iter().enumerate() {
        for inst in kept(function, place, *block) {
            let at = code.bytes.len() as u64;
            let machine = machine_inst(function, &starts, *inst, at)?;
            let word = sass::encode(function.target, &machine).map_err(|e| e.to_string())?;
            code.bytes.extend(word.to_le_bytes());
            code.lines.push(function.insts[*inst].line);
            let op = function.insts[*inst].op;
            if op == Op::EXIT {
                code.exits.push(at as u32);
            }
            if op.has(Prop::WarpWide) {
                code.warp_wide.push(at as u32);
            }
        }
    }
    debug_assert_eq!(code.bytes.len() as u64, total);
    close(function, &mut code)?;
    Ok(code)
}

/// Instructions of a block that become words.
fn kept(function: &Function, place: usize, block: Block) -> &[InstId] {
    let insts = &function.blocks[block];
    if falls_through(function, place) { &insts[..insts.len() - 1] } else { insts }
}

/// Byte offset of each block, and of the end.
fn layout(function: &Function) -> (SecondaryMap<Block, u64>, u64) {
    let mut starts = SecondaryMap::new();
    let mut at = 0;
    for (place, block) in function.layout.iter().enumerate() {
        starts[*block] = at;
        at += kept(function, place, *block).len() as u64 * WORD;
    }
    (starts, at)
}

fn registers(function: &Function) -> u32 {
    let used = function.regs.values().filter(|r| r.file == File::R).filter_map(|r| r.phys);
    used.max().map_or(0, |r| u32::from(r) + 1)
}

/// The self-branch behind the last instruction, and NOPs up to the padded size.
fn close(function: &Function, code: &mut Code) -> Result<(), String> {
    let ctrl = Ctrl { stall: 0, ..Ctrl::default() };
    let mut bra = Inst::new(Op::BRA).with(Role::Target, Arg::label(-(WORD as i64)));
    let mut nop = Inst::new(Op::NOP);
    (bra.ctrl, nop.ctrl) = (ctrl, ctrl);
    let word = |inst: &Inst| sass::encode(function.target, inst).map_err(|e| e.to_string());
    code.bytes.extend(word(&bra)?.to_le_bytes());
    let tail = if function.target.has(Feature::CodeTailBlock) { ALIGN } else { 0 };
    let size = code.bytes.len().next_multiple_of(ALIGN) + tail;
    let nop = word(&nop)?.to_le_bytes();
    while code.bytes.len() < size {
        code.bytes.extend(nop);
    }
    Ok(())
}

fn machine_inst(function: &Function, starts: &SecondaryMap<Block, u64>, inst: InstId, at: u64) -> Result<Inst, String> {
    let data = &function.insts[inst];
    let mut out = Inst::new(data.op);
    out.mods = data.mods;
    if let Some(reg) = data.guard.as_reg() {
        let pred = physical(function, reg)? as u8;
        out.guard = Guard { pred, not: data.guard.not(), upred: function.regs[reg].file == File::UP };
    }
    let c = data.ctrl;
    out.ctrl = Ctrl { stall: c.stall, stay: c.stay, write_bar: c.write_bar, read_bar: c.read_bar, wait: c.wait };
    for (role, operand) in data.op.info().roles.iter().zip(function.args(inst)) {
        let target = |block: Block| starts[block] as i64 - (at + WORD) as i64;
        out.set(role.role, machine_arg(function, role.class, *operand, target)?);
    }
    Ok(out)
}

fn physical(function: &Function, reg: crate::ori::VReg) -> Result<u32, String> {
    function.regs[reg].phys.map(u32::from).ok_or_else(|| format!("{reg} has no physical register"))
}

fn machine_arg(
    function: &Function,
    class: Class,
    operand: Operand,
    target: impl Fn(Block) -> i64,
) -> Result<Arg, String> {
    let arg = match operand.kind() {
        Kind::Null => return Ok(Arg::default()),
        Kind::Reg(reg) => file_arg(function.regs[reg].file, physical(function, reg)?),
        Kind::Vector(vector) => {
            let first = function.vector_regs(vector)[0];
            file_arg(function.regs[first].file, physical(function, first)?)
        }
        Kind::Imm(_) => Arg::imm(function.imm_value(operand).unwrap_or(0)),
        Kind::Const { bank, offset } => Arg::constant(bank, i32::from(offset)),
        Kind::Label(block) => Arg::label(target(block)),
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
