//! Moves predicates to the bits of a general register where more of them live than there are.
//!
//! A predicate without a register would take a general one of its own (SEL, ISETP); all those of a
//! block share a word instead, at the same number of instructions: `SEL w, bit` or `@p LOP3 w, w,
//! bit` behind the definition, and LOP3 with a predicate as its result before a reader. Moved are
//! predicates with one definition, without a guard, whose readers all stand behind it in its block,
//! before the terminators: the one that is read last gives way, and keeps its register where no
//! other needs it. Before them those that live in several blocks move ([`shared`]). What is left,
//! the allocator moves.

mod shared;

use self::shared::{Bit, Lives, Shared};
use super::rematerialize::peak;
use crate::analysis::PassCx;
use crate::analysis::def_use::is_free;
use crate::ori::build::int::{LUT_AND, LUT_OR};
use crate::ori::hash::QuickMap;
use crate::ori::liveness::{Liveness, RegSet};
use crate::ori::{Block, Convention, File, Function, InstId, Operand, VReg, table};
use crate::tables::ori::Direction;
use crate::tables::{Op, Prop, Role};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Predicates that can live at once.
const ALL: usize = 7;
/// Those of them that are left for what lives in one block alone: what lives through it is cheaper
/// to move.
const LOCAL: usize = 5;
/// Bits of a word.
const BITS: u32 = 32;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    cx.unchanged = true;
    let live = cx.liveness();
    // A slow path has just as many registers as it needs without this.
    let slow = cx.function.attributes().convention == Convention::SlowPath;
    if slow || peak(cx.function, &live, File::P) <= ALL as u32 {
        return;
    }
    let (loops, dominators) = (cx.loops(), cx.dominators());
    let function = &mut *cx.function;
    let local = local(function);
    let lives = Lives { live: &live, local: &local, loops: &loops, dominators: &dominators };
    let shared = Shared::choose(function, &lives);
    for block in function.layout().to_vec() {
        let crowded = names_many(function, block, &live) || shared.touched[block];
        if !crowded || function[block].iter().any(|inst| names_by_mask(function, *inst)) {
            continue;
        }
        let mut packer = Packer::new(function, block, &lives, &shared);
        let order = packer.order(function);
        if !shared.touched[block] && !order.iter().any(|item| matches!(item, Item::Test(..))) {
            continue;
        }
        rewrite(function, block, (&packer.moved, &shared), order);
        cx.unchanged = false;
    }
}

/// Whether more predicates are named in a block, or live behind it, than there are.
fn names_many(function: &Function, block: Block, live: &Liveness) -> bool {
    let mut named: SmallVec<[VReg; ALL + 1]> = SmallVec::new();
    let mut note = |reg: VReg| {
        if named.len() <= ALL && function[reg].file == File::P && !named.contains(&reg) {
            named.push(reg);
        }
    };
    live.live[block].iter().for_each(|reg| note(*reg));
    for inst in &function[block] {
        function.for_each_use(*inst, &mut note);
        function.for_each_def(*inst, &mut note);
    }
    named.len() > ALL
}

/// Whether an instruction touches registers that it does not name, or all of them.
fn names_by_mask(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    [Prop::Clobbers, Prop::ReadsPredicates, Prop::WritesPredicates].into_iter().any(|prop| op.has(prop))
}

/// Where the definition and the readers of a predicate stand.
#[derive(Clone, Copy, Default, PartialEq)]
enum Place {
    #[default]
    Nowhere,
    In(Block),
    Apart,
}

/// The places of all predicates: in a block those that can move.
fn local(function: &Function) -> SecondaryMap<VReg, Place> {
    let mut places: SecondaryMap<VReg, Place> = table(function.regs().len());
    for block in function.layout() {
        let last = function.first_terminator(*block);
        for (at, inst) in function[*block].iter().enumerate() {
            let place = &mut places;
            function.for_each_use(*inst, |reg| {
                if place[reg] != Place::In(*block) || at >= last {
                    place[reg] = Place::Apart;
                }
            });
            let whole = function[*inst].guard.is_null() && at < last;
            function.for_each_def(*inst, |reg| {
                let first = place[reg] == Place::Nowhere && function[reg].file == File::P;
                let moves = first && whole && is_free(function, reg);
                place[reg] = if moves { Place::In(*block) } else { Place::Apart };
            });
        }
    }
    places
}

/// An instruction of the new order, or the test that brings a predicate back in another register.
enum Item {
    Inst(InstId),
    Test(VReg, VReg),
}

/// A predicate that has a register.
struct Held {
    origin: VReg,
    name: VReg,
}

struct Packer {
    insts: Vec<InstId>,
    /// Readers of each predicate of this block that can move, the last one first.
    readers: QuickMap<VReg, SmallVec<[u32; 4]>>,
    movable: RegSet,
    /// Other predicates that live before each instruction, and at the end.
    others: Vec<usize>,
    held: Vec<Held>,
    /// What is brought back.
    moved: RegSet,
}

impl Packer {
    fn new(function: &Function, block: Block, lives: &Lives, shared: &Shared) -> Packer {
        let insts = function[block].clone();
        let mut readers: QuickMap<VReg, SmallVec<[u32; 4]>> = QuickMap::default();
        let mut movable = RegSet::new(function.regs().len());
        let mut others_live = RegSet::new(function.regs().len());
        let moves = |reg: VReg| lives.local[reg] == Place::In(block) || shared.bits.contains_key(&reg);
        let counts = |reg: VReg| function[reg].file == File::P && !moves(reg);
        let through = lives.live.live[block].iter();
        let mut count = through.filter(|reg| counts(**reg) && others_live.insert(**reg)).count();
        let mut others = vec![count; insts.len() + 1];
        for (at, inst) in insts.iter().enumerate().rev() {
            if function[*inst].guard.is_null() {
                function.for_each_def(*inst, |reg| count -= usize::from(others_live.remove(reg)));
            }
            function.for_each_use(*inst, |reg| {
                if function[reg].file != File::P {
                } else if counts(reg) {
                    count += usize::from(others_live.insert(reg));
                } else {
                    let readers = readers.entry(reg).or_default();
                    if readers.last() != Some(&(at as u32)) {
                        readers.push(at as u32);
                        movable.insert(reg);
                    }
                }
            });
            others[at] = count;
        }
        Packer { insts, readers, movable, others, held: Vec::new(), moved: RegSet::new(function.regs().len()) }
    }

    /// The new order, in which the instructions name the registers that they read.
    fn order(&mut self, function: &mut Function) -> Vec<Item> {
        let mut out = Vec::with_capacity(self.insts.len());
        for at in 0..self.insts.len() {
            let inst = self.insts[at];
            let mut reads: SmallVec<[VReg; 4]> = SmallVec::new();
            function.for_each_use(inst, |reg| {
                if self.movable.contains(reg) && !reads.contains(&reg) {
                    reads.push(reg);
                }
            });
            for reg in &reads {
                if self.held.iter().all(|held| held.origin != *reg) {
                    let name = function.new_reg(File::P);
                    out.push(Item::Test(*reg, name));
                    self.held.push(Held { origin: *reg, name });
                    self.moved.insert(*reg);
                }
            }
            self.make_room(self.others[at], &reads);
            self.rename(function, inst);
            self.held.retain(|held| {
                let Some(readers) = self.readers.get_mut(&held.origin) else { return false };
                if readers.last() == Some(&(at as u32)) {
                    readers.pop();
                }
                !readers.is_empty()
            });
            function.for_each_def(inst, |reg| {
                if self.movable.contains(reg) {
                    self.held.push(Held { origin: reg, name: reg });
                }
            });
            self.make_room(self.others[at + 1], &[]);
            out.push(Item::Inst(inst));
        }
        out
    }

    /// Lets go of the predicates that are read last, but none of these.
    fn make_room(&mut self, others: usize, kept: &[VReg]) {
        while self.held.len() > ALL.saturating_sub(others).max(LOCAL) {
            let next =
                |held: &Held| self.readers.get(&held.origin).and_then(|readers| readers.last()).copied().unwrap_or(0);
            let free = self.held.iter().enumerate().filter(|(_, held)| !kept.contains(&held.origin));
            let Some((last, _)) = free.max_by_key(|(place, held)| (next(held), *place)) else { break };
            self.held.remove(last);
        }
    }

    /// Makes an instruction read the registers in which the predicates are.
    fn rename(&self, function: &mut Function, inst: InstId) {
        let renamed = |operand: Operand| {
            let held = operand.as_reg().and_then(|reg| self.held.iter().find(|held| held.origin == reg));
            held.map_or(operand, |held| operand.with_reg(held.name))
        };
        for at in 0..function.args(inst).len() {
            if function.direction(inst, at) == Direction::Use {
                function.args_mut(inst)[at] = renamed(function.args(inst)[at]);
            }
        }
        function[inst].guard = renamed(function[inst].guard);
    }
}

/// Writes the new order, with what moves the predicates to their bits.
fn rewrite(function: &mut Function, block: Block, (moved, shared): (&RegSet, &Shared), order: Vec<Item>) {
    let mut out = Vec::with_capacity(order.len());
    let mut bits: QuickMap<VReg, (VReg, u64)> = QuickMap::default();
    let (mut word, mut tests) = (None, out.len());
    for item in order {
        match item {
            Item::Test(origin, name) => {
                let own = shared.bits.get(&origin).map(|bit| (bit.word, bit.mask));
                if let Some((word, bit)) = own.or_else(|| bits.get(&origin).copied()) {
                    out.push(test(function, name, word, bit));
                }
            }
            Item::Inst(inst) => {
                let line = function[inst].line;
                out[tests..].iter().for_each(|test: &InstId| function[*test].line = line);
                out.push(inst);
                let mut made: SmallVec<[VReg; 4]> = SmallVec::new();
                let moves = |reg: VReg| moved.contains(reg) || shared.bits.contains_key(&reg);
                function.for_each_def(inst, |reg| made.extend(moves(reg).then_some(reg)));
                for reg in made {
                    let bit = shared.bits.get(&reg).copied().unwrap_or_else(|| {
                        let (number, mask) = (bits.len() as u32 % BITS, 1 << (bits.len() as u32 % BITS));
                        let old = word.filter(|_| number > 0);
                        let to = *word.insert(old.unwrap_or_else(|| function.new_reg(File::R)));
                        bits.insert(reg, (to, mask));
                        Bit { word: to, mask, first: number == 0 }
                    });
                    let new = noted(function, bit, inst, reg);
                    new.iter().for_each(|new| function[*new].line = line);
                    out.extend(new);
                }
                tests = out.len();
            }
        }
    }
    function[block] = out;
}

fn make(function: &mut Function, op: Op, args: &[(Role, Operand)]) -> InstId {
    let inst = function.make(op);
    args.iter().for_each(|(role, operand)| function.set_arg(inst, *role, *operand));
    inst
}

/// What notes a predicate that an instruction defines in its bit. One without a value has the bit's
/// zero: the other bits of the word must not depend on it.
fn noted(function: &mut Function, bit: Bit, inst: InstId, reg: VReg) -> Option<InstId> {
    let from = if function[inst].op == Op::UNDEF { Operand::never() } else { Operand::reg(reg) };
    match (bit.first, function[inst].op) {
        (true, _) => Some(begin(function, bit.word, from)),
        (false, Op::UNDEF) => None,
        (false, _) => Some(set(function, bit.word, bit.mask, reg)),
    }
}

/// A word whose lowest bit is a predicate.
fn begin(function: &mut Function, word: VReg, from: Operand) -> InstId {
    let (one, not) = (function.imm(1), from.inverted());
    make(function, Op::SEL, &[(Role::D, word.into()), (Role::A, Operand::zero()), (Role::B, one), (Role::Pp, not)])
}

/// Sets a bit, which is zero, if a predicate is true.
fn set(function: &mut Function, word: VReg, bit: u64, from: VReg) -> InstId {
    let (bit, lut) = (function.imm(bit), function.imm(LUT_OR.into()));
    let args = [(Role::D, word.into()), (Role::A, word.into()), (Role::B, bit), (Role::C, Operand::zero())];
    let inst = make(function, Op::LOP3, &args);
    function.set_arg(inst, Role::Lut, lut);
    function[inst].guard = Operand::reg(from);
    inst
}

/// A predicate that is true if a bit is set.
fn test(function: &mut Function, to: VReg, word: VReg, bit: u64) -> InstId {
    let (bit, lut) = (function.imm(bit), function.imm(LUT_AND.into()));
    let args = [(Role::Pu, to.into()), (Role::D, Operand::zero()), (Role::A, word.into()), (Role::B, bit)];
    let inst = make(function, Op::LOP3, &args);
    function.set_arg(inst, Role::C, Operand::zero());
    function.set_arg(inst, Role::Lut, lut);
    function.set_arg(inst, Role::Pp, Operand::never());
    inst
}
