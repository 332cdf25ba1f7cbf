//! The transfer function of one instruction: checks what it must wait for and updates the state.
//!
//! Each dependence and each fault is passed to an observer.

use super::state::{Guard, OLD, Pending, State, What};
use super::{Dependence, Fault, Kind};
use crate::sass::effects::{Access, Effects, Slot};
use crate::sass::inst::{Inst, PT};
use crate::tables::latency::{Latency, LatencyClass, Needed, RegFile};
use crate::tables::{Mod, Op, Prop, Role, value};

/// The scoreboard field's value for none.
pub const NONE: u8 = 7;

/// Pseudo-register that stands for a pipe which takes one instruction at a time; no register has
/// this number.
const PIPE: (RegFile, u8) = (RegFile::R, 255);

/// An instruction with its precomputed accesses.
pub struct Known {
    pub inst: Inst,
    /// The accesses, one entry per register, each with its latency class.
    reads: Vec<Word>,
    writes: Vec<Word>,
    guard: Option<Guard>,
}

struct Word {
    register: (RegFile, u8),
    slot: Slot,
    class: LatencyClass,
}

/// Receives the dependences and faults.
pub trait Observer {
    fn dependence(&mut self, dependence: Dependence);
    fn fault(&mut self, at: usize, fault: Fault);
}

/// Ignores everything, for the dataflow itself.
pub struct Silent;

impl Observer for Silent {
    fn dependence(&mut self, _: Dependence) {}
    fn fault(&mut self, _: usize, _: Fault) {}
}

impl Known {
    /// Precomputes the accesses of an instruction.
    pub fn new(latency: &Latency, inst: &Inst) -> Known {
        let effects = Effects::of(inst);
        let words = |list: &[Access]| {
            let word = |a: &Access, register, i| Word {
                register: (a.file, register),
                slot: a.slot,
                class: a.class(latency, inst, i),
            };
            list.iter().flat_map(|a| a.registers().map(move |(n, i)| word(a, n, i))).collect()
        };
        let g = inst.guard;
        let guard = (u32::from(g.pred) != PT || g.not).then_some((g.upred, g.pred, g.not));
        let (mut reads, mut writes): (Vec<Word>, Vec<Word>) = (words(&effects.reads), words(&effects.writes));
        let class = latency.class_of(inst.op, &inst.mods);
        if class.info().alone {
            let pipe = || Word { register: PIPE, slot: Slot::Implied, class };
            reads.push(pipe());
            writes.push(pipe());
        }
        Known { inst: *inst, reads, writes, guard }
    }
}

/// Executes one instruction on the state.
pub fn step(latency: &Latency, at: usize, known: &Known, state: &mut State, observer: &mut impl Observer) {
    let inst = &known.inst;
    if inst.op == Op::GMMA {
        waits_behind_arrival(at, known, state, observer);
    }
    state.waited(inst.ctrl.wait);
    if inst.op == Op::DEPBAR {
        state.waited(drained(inst));
        if let Some(board) = counted(inst)
            && inst.arg(Role::N).val != 0
        {
            state.all_but(board, inst.arg(Role::N).val);
        }
    }
    if inst.op == Op::WARPGROUP && !inst.arg(Role::A).is_none() {
        // All but the last few warpgroup MMAs are complete; treated as all.
        state.retain(|_, e| e.class != LatencyClass::Group);
    }
    for word in &known.reads {
        let before = |e: &&Pending| e.what == What::Write && !(word.slot != Slot::Guard && excluded(known.guard, e));
        for entry in state.on(word.register).iter().filter(before) {
            let needed = latency.read_after_write(word.register.0, entry.class, word.class);
            told(observer, at, word, entry, Kind::ReadAfterWrite, needed);
        }
    }
    for word in &known.writes {
        for entry in state.on(word.register).iter().filter(|e| !excluded(known.guard, e)) {
            let (file, first) = (word.register.0, entry.class);
            let (kind, needed) = match entry.what {
                What::Write => (Kind::WriteAfterWrite, latency.write_after_write(file, first, word.class)),
                What::Read => (Kind::WriteAfterRead, latency.write_after_read(file, first, word.class)),
            };
            told(observer, at, word, entry, kind, needed);
        }
    }
    if inst.op.has(Prop::ChangesFunction) && state.boards() != 0 {
        observer.fault(at, Fault::InFlight { boards: state.boards() });
    } else if inst.op == Op::CALL && state.unannounced() {
        observer.fault(at, Fault::Unannounced);
    } else if is_elsewhere(inst) && !ready(latency, state, inst.ctrl.stall) {
        observer.fault(at, Fault::Unready);
    }
    field(latency, at, inst, observer);
    record(latency, at, known, state);
    state.pass(inst.ctrl.stall);
}

/// Whether an instruction calls a function whose code is elsewhere.
fn is_elsewhere(inst: &Inst) -> bool {
    inst.op == Op::CALL && inst.modifier(Mod::Mode) == value::mode::ABS
}

/// Whether any reader may read every result of fixed latency so many cycles later.
fn ready(latency: &Latency, state: &State, stall: u8) -> bool {
    state.pending.iter().all(|((file, _), entries)| {
        let writes = entries.iter().filter(|e| e.what == What::Write && !e.announced && e.age < OLD);
        writes.into_iter().all(|e| {
            let over = u16::from(e.age) + u16::from(stall);
            LatencyClass::ALL.iter().all(|reader| match latency.read_after_write(*file, e.class, *reader) {
                Needed::Cycles(n) => u16::from(n) <= over,
                _ => true,
            })
        })
    })
}

/// Reports scoreboards that a product of a warp group waits for because of its general registers:
/// the tensor cores may have started for all warps where the last one arrived.
fn waits_behind_arrival(at: usize, known: &Known, state: &State, observer: &mut impl Observer) {
    let general = known.reads.iter().chain(&known.writes).filter(|word| word.register.0 == RegFile::R);
    let pending = general.flat_map(|word| state.on(word.register).iter()).filter(|entry| entry.announced);
    let boards = pending.fold(0, |boards, entry| boards | entry.boards) & known.inst.ctrl.wait;
    if boards != 0 {
        observer.fault(at, Fault::WaitsBehindArrival { boards });
    }
}

/// Whether no lane executes both instructions because their guards are complementary. Reads of the
/// guard itself always happen.
fn excluded(guard: Option<Guard>, entry: &Pending) -> bool {
    matches!((guard, entry.guard), (Some(a), Some(b)) if (a.0, a.1) == (b.0, b.1) && a.2 != b.2 && u32::from(a.1) != PT)
}

/// The scoreboard that a DEPBAR counts with; the first one has the number that is left out.
fn counted(inst: &Inst) -> Option<u32> {
    (inst.modifier(Mod::Le) == value::le::LE).then(|| inst.arg(Role::Sb).val as u32)
}

/// The scoreboards that a DEPBAR waits for completely.
fn drained(inst: &Inst) -> u8 {
    let (left, mask) = (inst.arg(Role::N), inst.arg(Role::Mask));
    let board = counted(inst).filter(|_| left.val == 0);
    let one = board.map_or(0, |board| 1u8.checked_shl(board).unwrap_or(0));
    one | if mask.is_none() { 0 } else { mask.val as u8 }
}

fn told(observer: &mut impl Observer, at: usize, word: &Word, entry: &Pending, kind: Kind, needed: Needed) {
    observer.dependence(Dependence {
        kind,
        file: word.register.0,
        register: word.register.1,
        first: entry.inst as usize,
        first_slot: entry.slot,
        second: at,
        second_slot: word.slot,
        announced: entry.announced,
        boards: entry.boards,
        age: entry.age,
        needed,
    });
}

/// Checks the control field by itself.
fn field(latency: &Latency, at: usize, inst: &Inst, observer: &mut impl Observer) {
    let ctrl = &inst.ctrl;
    let least = latency.least_stall_if(inst.op, inst.is_guarded());
    if ctrl.stall < least && ctrl.stall != 0 {
        observer.fault(at, Fault::Stall { least });
    }
    if ctrl.stay && !(1..=11).contains(&ctrl.stall) {
        observer.fault(at, Fault::Stay);
    }
    if inst.op.has(Prop::Control) && (ctrl.write_bar != NONE || ctrl.read_bar != NONE) {
        observer.fault(at, Fault::ControlSets);
    }
}

/// Adds the instruction's own accesses to the state.
fn record(latency: &Latency, at: usize, known: &Known, state: &mut State) {
    let inst = &known.inst;
    let bits = |board: u8| if board == NONE { 0u8 } else { 1 << board };
    let (write, read) = (bits(inst.ctrl.write_bar), bits(inst.ctrl.read_bar));
    let class = latency.class_of(inst.op, &inst.mods);
    let result = known.writes.first().map(|word| word.class).filter(|class| class.info().in_order);
    let late = |word: &&Word| word.class.reads_late(word.register.0);
    let order = class.read_order(known.reads.iter().find(late).map_or(class, |word| word.class));
    for board in [inst.ctrl.write_bar, inst.ctrl.read_bar].into_iter().filter(|b| *b != NONE) {
        state.set_again(board);
        let result = result.filter(|_| board == inst.ctrl.write_bar);
        if result.is_some() || order != 0 {
            state.announce(result, order, board);
        }
    }
    let pending = |what: What, word: &Word, announced: bool, boards: u8| Pending {
        what,
        class: word.class,
        announced,
        boards,
        order: if what == What::Read { class.read_order(word.class) } else { 0 },
        age: 0,
        behind: 0,
        inst: at as u32,
        slot: word.slot,
        guard: known.guard,
    };
    for word in &known.reads {
        let announced = late(&word);
        let boards = if announced { write | read } else { 0 };
        state.add(word.register, pending(What::Read, word, announced, boards));
    }
    for word in &known.writes {
        if known.guard.is_none() {
            state.pending.remove(&word.register);
        }
        let announced = word.class.info().announced;
        let boards = if announced { write } else { 0 };
        state.add(word.register, pending(What::Write, word, announced, boards));
    }
    for word in known.writes.iter().filter(|w| matches!(w.register.0, RegFile::P | RegFile::UP)) {
        state.forget(word.register.0 == RegFile::UP, word.register.1);
    }
}
