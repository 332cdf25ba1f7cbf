//! Merges the code of a kernel and the functions that it may call into one section; or gives one
//! function a section of its own, with the slow paths that it calls and with relocations.
//!
//! Resolves every address in the section, and closes and pads it as ptxas does. The kernel comes
//! first. A branch to a missing function is an error. The code of a function is the same in every
//! kernel, except for the operands filled in here.

use super::emit::{Code, Fixup, Place, WORD};
use crate::ori::{BankConstants, Kind};
use crate::sass::{self, Arg, Ctrl, Inst, reuse};
use crate::sorted::SortedMap;
use crate::tables::elf::{Layout, RelocRole, RelocRow};
use crate::tables::{Feature, Op, Role, Target};

/// Alignment of the end of the code, in bytes.
const ALIGN: usize = 128;

/// Symbol for the distance by which the driver moves functions.
const FUNCTION_TABLE: &str = "__UFT_OFFSET";

/// A section of code.
#[derive(Clone, Debug, Default)]
pub struct Linked {
    /// The bytes of the section.
    pub bytes: Vec<u8>,
    /// Offset of each function, in the order given.
    pub starts: Vec<u64>,
    /// Relocations in descending order, as in ptxas: what a linker or the driver fills in.
    pub relocs: Vec<Relocation>,
    /// What the code reads from the compiler's constant bank.
    pub constants: BankConstants,
}

/// How the names of symbols begin that the driver defines.
pub const DRIVER_PREFIX: &str = ".nv.";

/// A relocation of code: at this byte offset, of this type, a symbol's value plus an addend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Byte offset in the section.
    pub at: u64,
    /// ELF relocation type.
    pub number: u32,
    /// Name of the symbol.
    pub symbol: String,
    /// Addend in bytes.
    pub addend: i64,
}

/// The section of one function in a relocatable object, whose addresses are left to a linker. The
/// slow paths that it calls are behind it, and are reached by distances.
///
/// # Errors
///
/// A fixup that the target or the layout cannot express.
pub fn object(target: &'static Target, layout: Layout, pieces: &[(&str, &Code)]) -> Result<Linked, String> {
    let mut linked = Linked::default();
    for (_, code) in pieces {
        linked.starts.push(linked.bytes.len() as u64);
        linked.bytes.extend(&code.bytes);
    }
    let Some((name, code)) = pieces.first() else { return Err("a section without a function".to_string()) };
    let starts: SortedMap<&str, u64> = pieces.iter().map(|p| p.0).zip(linked.starts.iter().copied()).collect();
    let reloc = |at: u64, role: RelocRole, symbol: &str, addend: i64| {
        let row = RelocRow::for_role(role, layout).ok_or_else(|| format!("no relocation for {}", role.name()))?;
        Ok::<_, String>(Relocation { at, number: row.number, symbol: symbol.into(), addend })
    };
    let fixups = pieces.iter().zip(linked.starts.clone());
    let fixups = fixups.flat_map(|((_, code), start)| code.fixups.iter().map(move |fixup| (start, fixup)));
    for (start, fixup) in fixups.collect::<Vec<_>>().into_iter().rev() {
        let at = start + fixup.at;
        let distance = |to: u64| Arg::label(to as i64 - (at + WORD) as i64);
        let arg = match &fixup.place {
            Place::Linked { role, name, addend } => {
                linked.relocs.push(reloc(at, *role, name, *addend)?);
                continue;
            }
            Place::Offset { within, high } => {
                let role = if *high { RelocRole::AddressHigh } else { RelocRole::AddressLow };
                linked.relocs.push(reloc(at, role, name, (start + within) as i64)?);
                continue;
            }
            Place::Constant(_) => return Err(format!("{name}: a constant of a bank that a linker makes")),
            Place::Inside(within) => Arg::imm(start + within),
            Place::Start => distance(0),
            Place::Function(callee) => {
                let found = starts.get(callee.as_str());
                distance(*found.ok_or_else(|| format!("{name}: {callee} is called by a distance"))?)
            }
        };
        let mut inst = fixup.inst;
        inst.set(fixup.role, arg);
        let word = sass::encode(target, &inst).map_err(|e| e.to_string())?;
        linked.bytes[at as usize..(at + WORD) as usize].copy_from_slice(&word.to_le_bytes());
    }
    // The driver may move functions; a symbol names what it adds to the address of an indirect
    // call.
    if RelocRow::for_role(RelocRole::PointerCall, layout).is_some() {
        let direct = |at: u64| code.fixups.iter().any(|fixup| fixup.at == at);
        for at in code.system_calls.iter().map(|at| u64::from(*at)).filter(|at| !direct(*at)) {
            linked.relocs.push(reloc(at, RelocRole::PointerCall, FUNCTION_TABLE, 0)?);
        }
        crate::sorted::by_key(&mut linked.relocs, |reloc| std::cmp::Reverse(reloc.at));
    }
    close(target, &mut linked.bytes)?;
    Ok(linked)
}

/// Gives an instruction its place in the constants of the whole section, where it is another.
fn constant(
    target: &'static Target,
    (bytes, constants): (&mut [u8], &mut BankConstants),
    (code, fixup, at): (&Code, &Fixup, u64),
    index: usize,
) -> Result<(), String> {
    let full = || "the constants of a kernel and its functions do not fit their bank".to_string();
    let place = constants.operand(code.constants.values[index]).ok_or_else(full)?;
    let Kind::Const { bank, offset } = place.kind() else { return Err(full()) };
    let value = Arg::constant(bank, offset.into()).val;
    let mut inst = fixup.inst;
    let slot = inst.op.info().roles.iter().position(|role| role.role == fixup.role);
    let Some(slot) = slot.filter(|slot| inst.args[*slot].val != value) else { return Ok(()) };
    inst.args[slot].val = value;
    let bytes = &mut bytes[at as usize..(at + WORD) as usize];
    let old = bytes.try_into().map(u128::from_le_bytes).unwrap_or(0);
    let word = sass::encode(target, &inst).map_err(|e| e.to_string())?;
    bytes.copy_from_slice(&(word | old & reuse::MARKS).to_le_bytes());
    Ok(())
}

/// Whether the driver knows what stands here when it loads a cubin, without a linker.
fn is_loaded(role: RelocRole, symbol: &str) -> bool {
    symbol.starts_with(DRIVER_PREFIX) || matches!(role, RelocRole::AddressLow | RelocRole::AddressHigh)
}

/// Merges functions; the first is the kernel.
///
/// # Errors
///
/// A branch to a function that is not in `pieces`, or a fixup that cannot be encoded.
pub fn link(target: &'static Target, layout: Layout, pieces: &[(&str, &Code)]) -> Result<Linked, String> {
    let mut linked = Linked::default();
    let mut at = 0;
    for (_, code) in pieces {
        linked.starts.push(at);
        at += code.bytes.len() as u64;
    }
    let starts: SortedMap<&str, u64> = pieces.iter().map(|p| p.0).zip(linked.starts.iter().copied()).collect();
    linked.constants.most = BankConstants::BYTES;
    linked.constants.start = pieces.iter().map(|(_, code)| code.constants.start).max().unwrap_or(0);
    for ((name, code), start) in pieces.iter().zip(&linked.starts) {
        linked.bytes.extend(&code.bytes);
        for fixup in &code.fixups {
            let at = start + fixup.at;
            let mut inst = fixup.inst;
            let distance = |to: u64| Arg::label(to as i64 - (at + WORD) as i64);
            let arg = match &fixup.place {
                Place::Constant(index) => {
                    constant(target, (&mut linked.bytes, &mut linked.constants), (code, fixup, at), *index)?;
                    continue;
                }
                Place::Start => distance(0),
                Place::Function(callee) => {
                    let found = starts.get(callee.as_str());
                    distance(*found.ok_or_else(|| format!("{name}: function {callee} is not in the section"))?)
                }
                // The driver fills in what it defines, and where it put variables.
                Place::Linked { role, name: symbol, addend } if is_loaded(*role, symbol) => {
                    let row = RelocRow::for_role(*role, layout);
                    let row = row.ok_or_else(|| format!("no relocation for {}", role.name()))?;
                    let (symbol, addend) = (symbol.clone(), *addend);
                    linked.relocs.push(Relocation { at, number: row.number, symbol, addend });
                    Arg::imm(0)
                }
                Place::Linked { name: symbol, .. } => return Err(format!("{name}: {symbol} is left to a linker")),
                Place::Inside(within) => Arg::imm(start + within),
                Place::Offset { within, high } => {
                    Arg::imm((start + within) >> if *high { 32 } else { 0 } & 0xffff_ffff)
                }
            };
            inst.set(fixup.role, arg);
            let word = sass::encode(target, &inst).map_err(|e| e.to_string())?;
            linked.bytes[at as usize..(at + WORD) as usize].copy_from_slice(&word.to_le_bytes());
        }
    }
    crate::sorted::by_key(&mut linked.relocs, |reloc| std::cmp::Reverse(reloc.at));
    close(target, &mut linked.bytes)?;
    Ok(linked)
}

/// Appends the self-branch after the last instruction, and NOPs up to the padded size.
fn close(target: &'static Target, bytes: &mut Vec<u8>) -> Result<(), String> {
    let ctrl = Ctrl { stall: 0, ..Ctrl::default() };
    let mut bra = Inst::new(Op::BRA).with(Role::Target, Arg::label(-(WORD as i64)));
    let mut nop = Inst::new(Op::NOP);
    (bra.ctrl, nop.ctrl) = (ctrl, ctrl);
    let word = |inst: &Inst| sass::encode(target, inst).map_err(|e| e.to_string());
    bytes.extend(word(&bra)?.to_le_bytes());
    let tail = if target.has(Feature::CodeTailBlock) { ALIGN } else { 0 };
    let size = bytes.len().next_multiple_of(ALIGN) + tail;
    let nop = word(&nop)?.to_le_bytes();
    while bytes.len() < size {
        bytes.extend(nop);
    }
    Ok(())
}
