//! Pass `vectorize` (phase Vectorization): accesses of neighbouring bytes become one access.
//!
//! Joins plain loads, or plain stores, of a block that have the same base registers and modifiers
//! and cover 16, 8 or 4 bytes whose address is known to be a multiple of their number
//! (`analysis::low_zeros`). Loads move up to the first of them, stores down to the last, past no
//! access of the same bytes and no barrier, call or ordered access, and no farther than [`FAR`]
//! instructions. Parts of a loaded word are taken from it by PRMT; stores of parts stay.
//!
//! Nothing is joined where registers would have to be copied: a register that stands in another
//! tuple must have the same neighbours there, at a place that fits (`tuples`).
//!
//! Guarantees: each thread reads and writes the same bytes as before, in an order that its own
//! accesses and others' synchronization cannot tell from the old one.

mod pack;
mod tuples;

use crate::analysis::def_use::{DefUse, Fits, keeps, sets_stack_pointer};
use crate::analysis::memory_dependence::{Memory, size};
use crate::analysis::{PassCx, low_zeros};
use crate::ori::hash::QuickMap;
use crate::ori::{Block, Function, InstId, Operand, VReg};
use crate::tables::{Mod, Mods, Op, Prop, Role};
use pack::{Edit, Pack};
use smallvec::SmallVec;
use std::cell::OnceCell;
use tuples::Tuples;

/// Instructions from the first to the last of the accesses that are joined, at most.
const FAR: usize = 128;
/// Bytes of the joined access, the most first.
const WIDTHS: [i64; 3] = [16, 8, 4];
/// The last groups of a block to which an access may belong.
const GROUPS: usize = 64;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let blocks: Vec<Block> = cx.function.layout().iter().copied().filter(|b| has_neighbours(cx.function, *b)).collect();
    if blocks.is_empty() {
        cx.unchanged = true;
        return;
    }
    let def_use = cx.def_use();
    let (function, fits): (_, Fits) = (&mut *cx.function, &cx.encoder.encodes);
    let mut zeros = QuickMap::default();
    let mut tuples = OnceCell::new();
    let mut changed = false;
    for block in blocks {
        changed |= Joiner { function, def_use: &def_use, fits, zeros: &mut zeros, tuples: &mut tuples }.block(block);
    }
    cx.unchanged = !changed;
}

/// Whether a block has two accesses that might be joined.
fn has_neighbours(function: &Function, block: Block) -> bool {
    function[block].iter().filter(|inst| is_plain(function, **inst)).nth(1).is_some()
}

/// Whether an instruction is a load or a store that may move, of less than the widest access.
fn is_plain(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    let one = data.op.has(Prop::ReadsMemory) != data.op.has(Prop::WritesMemory);
    let narrow = || size(function, inst).is_some_and(|bytes| bytes < WIDTHS[0]);
    data.op.has(Prop::OnePlace) && one && data.guard.is_null() && !data.ordered && narrow()
}

/// What accesses that are joined have in common.
#[derive(PartialEq)]
struct Key {
    /// Number of operations before it that no access passes.
    epoch: usize,
    op: Op,
    mods: Mods,
    /// Its operands but for the value and the offset.
    operands: SmallVec<[Operand; 8]>,
}

/// A load or a store of a block.
pub(crate) struct Access {
    /// Its position in the block, and its first byte off the base registers.
    at: usize,
    inst: InstId,
    first: i64,
    bytes: i64,
    memory: Option<Memory>,
    joined: bool,
}

/// Accesses with one key, by position.
struct Group {
    key: Key,
    base: VReg,
    accesses: Vec<Access>,
}

struct Joiner<'a> {
    function: &'a mut Function,
    def_use: &'a DefUse,
    fits: Fits<'a>,
    /// Zero bits of base registers.
    zeros: &'a mut QuickMap<VReg, u32>,
    tuples: &'a mut OnceCell<Tuples>,
}

impl Joiner<'_> {
    /// Joins accesses of a block; returns whether there were any to join.
    fn block(&mut self, block: Block) -> bool {
        let (groups, others) = groups(self.function, block);
        let mut edits: Vec<(usize, Edit)> = Vec::new();
        for mut group in groups.into_iter().filter(|group| group.accesses.len() > 1) {
            crate::sorted::by_key(&mut group.accesses, |access| (access.first, access.at));
            for start in 0..group.accesses.len() {
                if let Some(pack) = self.pack(&group, start, &others) {
                    self.join(&mut group, &pack, &mut edits);
                }
            }
        }
        if edits.is_empty() {
            return false;
        }
        pack::rebuild(self.function, block, edits);
        true
    }

    /// The widest access that begins with one and can be made of it and others.
    fn pack(&mut self, group: &Group, start: usize, others: &[(usize, Memory)]) -> Option<Pack> {
        let first = &group.accesses[start];
        if first.joined {
            return None;
        }
        let fitting = |width: &i64| first.first.rem_euclid(*width) == 0 && first.bytes < *width;
        for width in WIDTHS.into_iter().filter(fitting) {
            let Some(members) = cover(&group.accesses, start, width) else { continue };
            if !self.multiple(group.base).is_multiple_of(width as u32) {
                continue;
            }
            let members: SmallVec<[&Access; 16]> = members.iter().map(|at| &group.accesses[*at]).collect();
            if !moves(&members, group.key.op, others) {
                continue;
            }
            let function = &*self.function;
            let tuples = self.tuples.get_or_init(|| Tuples::new(function));
            if let Some(pack) = Pack::new(function, &members, width, tuples) {
                return Some(pack);
            }
        }
        None
    }

    /// A power of two of which a register is a multiple, at most the widest access.
    fn multiple(&mut self, base: VReg) -> u32 {
        let (function, def_use) = (&*self.function, self.def_use);
        let zeros = *self.zeros.entry(base).or_insert_with(|| low_zeros::of(function, def_use, base));
        1 << zeros.min(WIDTHS[0].ilog2())
    }

    fn join(&mut self, group: &mut Group, pack: &Pack, edits: &mut Vec<(usize, Edit)>) {
        let Some(made) = pack.make(self.function, self.fits) else { return };
        if let Some(tuples) = self.tuples.get_mut() {
            tuples.add(self.function, made.tuple);
        }
        let members = |inst: InstId| pack.members.contains(&inst);
        group.accesses.iter_mut().filter(|access| members(access.inst)).for_each(|access| access.joined = true);
        edits.extend(made.edits);
    }
}

/// The accesses of a block by what they have in common, and all that accesses memory.
fn groups(function: &Function, block: Block) -> (Vec<Group>, Vec<(usize, Memory)>) {
    let (mut groups, mut others, mut epoch) = (Vec::<Group>::new(), Vec::new(), 0);
    for (at, inst) in function[block].iter().enumerate() {
        let memory = Memory::of(function, *inst, |_| 0);
        others.extend(memory.clone().map(|memory| (at, memory)));
        let free = memory.as_ref().is_none_or(|memory| !memory.is_ordered());
        if !is_plain(function, *inst) || !free {
            epoch += usize::from(stops(function, *inst));
            continue;
        }
        let Some((first, base)) = place(function, *inst) else { continue };
        let bytes = size(function, *inst).unwrap_or(0);
        let access = Access { at, inst: *inst, first, bytes, memory, joined: false };
        let key = key(function, *inst, epoch);
        match groups.iter_mut().rev().take(GROUPS).find(|group| group.key == key) {
            Some(group) => group.accesses.push(access),
            None => groups.push(Group { key, base, accesses: vec![access] }),
        }
    }
    (groups, others)
}

/// Whether no access passes an instruction.
fn stops(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    op.has(Prop::Clobbers) || op.has(Prop::SideEffect) || op.has(Prop::Control) || sets_stack_pointer(function, inst)
}

/// The offset of an access and the lowest register of its address, if that has one value in the
/// whole function.
fn place(function: &Function, inst: InstId) -> Option<(i64, VReg)> {
    let offset = function.arg(inst, Role::Off);
    let offset = if offset.is_null() { 0 } else { function.imm_value(offset)? as u32 as i32 };
    let mut registers = SmallVec::<[VReg; 2]>::new();
    function.for_each_reg(function.arg(inst, Role::A), |reg| registers.push(reg));
    let above = function.above_frame().contains(&inst);
    let known = !above && function.arg(inst, Role::Ub).is_null() && registers.iter().all(|reg| keeps(function, *reg));
    registers.first().filter(|_| known).map(|base| (i64::from(offset), *base))
}

fn key(function: &Function, inst: InstId, epoch: usize) -> Key {
    let data = &function[inst];
    let mut mods = data.mods;
    mods.set(Mod::Size, 0);
    let roles = data.op.info().roles;
    let common = |role: Role| ![Role::D, Role::B, Role::Off].contains(&role);
    let operands = roles.iter().zip(function.args(inst)).filter(|(r, _)| common(r.role)).map(|(_, arg)| *arg);
    Key { epoch, op: data.op, mods, operands: operands.collect() }
}

/// Accesses that are not joined yet and cover exactly so many bytes, the first one at `start`.
fn cover(accesses: &[Access], start: usize, width: i64) -> Option<SmallVec<[usize; 16]>> {
    let mut members = SmallVec::new();
    let (mut next, end) = (accesses[start].first, accesses[start].first + width);
    for (at, access) in accesses.iter().enumerate().skip(start) {
        if next == end || access.first > next {
            break;
        }
        if access.first == next && !access.joined && next + access.bytes <= end {
            next += access.bytes;
            members.push(at);
        }
    }
    (next == end && members.len() > 1).then_some(members)
}

/// Whether accesses may meet: loads at the first of them, stores at the last one.
fn moves(members: &[&Access], op: Op, others: &[(usize, Memory)]) -> bool {
    let places = || members.iter().map(|access| access.at);
    let (Some(first), Some(last)) = (places().min(), places().max()) else { return false };
    if last - first > FAR {
        return false;
    }
    let from = others.partition_point(|(at, _)| *at < first);
    let between = others[from..].iter().take_while(|(at, _)| *at < last);
    let between: SmallVec<[&(usize, Memory); 32]> =
        between.filter(|(at, _)| members.iter().all(|access| access.at != *at)).collect();
    members.iter().all(|access| {
        let Some(memory) = &access.memory else { return true };
        between.iter().all(|(at, other)| {
            if op.has(Prop::WritesMemory) {
                *at < access.at || !other.follows(memory)
            } else {
                *at > access.at || !memory.follows(other)
            }
        })
    })
}
