//! Pass `wide_forms`: two operations on the words of 64-bit numbers become one, on targets that
//! have it and whose distances for it are known.
//!
//! A sum with a carry between its words becomes IADD.64, an extended comparison the comparison of
//! pairs, two selections or two moves one. Runs after allocation, which decides what is a pair, so
//! that no register is moved or kept for it. The one operation stands where the second or the first
//! stood, whichever its operands allow.

mod forms;

use crate::analysis::PassCx;
use crate::analysis::def_use::Fits;
use crate::ori::cfg::Cfg;
use crate::ori::{Block, File, Function, InstId, Operand, VReg};
use crate::tables::{Feature, Mod, Op, Prop, Role, value};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Most instructions from the first operation to the second.
const WINDOW: usize = 64;

/// A physical register.
type Place = (File, u16);
/// The registers that an instruction reads or writes.
type Places = SmallVec<[Place; 8]>;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    if !cx.function.target.has(Feature::JoinsPairs) {
        return;
    }
    let cfg = cx.cfg();
    let (function, fits): (_, Fits) = (&mut *cx.function, &cx.encoder.is_legal);
    let live = live_predicates(function, &cfg);
    for block in function.layout.clone() {
        let insts = function.blocks[block].clone();
        let ends = last_readers(function, &insts, behind(&cfg, &live, block));
        let insts = insts.into_iter().map(Some).collect();
        let mut walk = Walk { insts, made: [0; PLACES], since: 0, joined: false };
        for (at, is_last) in ends.into_iter().enumerate() {
            walk.visit(function, at, is_last, fits);
        }
        if walk.joined {
            function.blocks[block] = walk.insts.into_iter().flatten().collect();
        }
    }
}

/// Predicates, one bit for each number.
type Predicates = u8;

/// The predicates that are read at or behind the start of each block before they are written.
fn live_predicates(function: &Function, cfg: &Cfg) -> SecondaryMap<Block, Predicates> {
    // What is live at the start if nothing is at the end, and if everything is.
    let mut through: SecondaryMap<Block, [Predicates; 2]> = SecondaryMap::new();
    for block in &cfg.rpo {
        let insts = function.blocks[*block].iter().rev();
        through[*block] = insts.fold([0, Predicates::MAX], |live, inst| before(function, *inst, live));
    }
    let mut live: SecondaryMap<Block, Predicates> = SecondaryMap::new();
    let mut changed = true;
    while changed {
        changed = false;
        for block in cfg.rpo.iter().rev() {
            let now = through[*block][0] | behind(cfg, &live, *block) & through[*block][1];
            changed |= std::mem::replace(&mut live[*block], now) != now;
        }
    }
    live
}

/// The predicates that are live behind a block.
fn behind(cfg: &Cfg, live: &SecondaryMap<Block, Predicates>, block: Block) -> Predicates {
    cfg.succs[block].iter().fold(0, |all, next| all | live[*next])
}

/// The predicates that are live before an instruction, given those behind it.
fn before<const N: usize>(function: &Function, inst: InstId, behind: [Predicates; N]) -> [Predicates; N] {
    let (mut read, written) = (0, written(function, inst));
    function.for_each_use(inst, |reg| read |= bit(function, reg));
    behind.map(|live| live & !written | read)
}

/// The predicates that an instruction writes in any case.
fn written(function: &Function, inst: InstId) -> Predicates {
    let mut written = 0;
    if function.insts[inst].guard.is_null() {
        function.for_each_def(inst, |reg| written |= bit(function, reg));
    }
    written
}

fn bit(function: &Function, reg: VReg) -> Predicates {
    place(function, reg).filter(|place| place.0 == File::P).map_or(0, |place| 1 << place.1)
}

/// For each instruction of a block that takes a carry, whether nothing reads the carry behind it.
fn last_readers(function: &Function, insts: &[InstId], at_end: Predicates) -> Vec<bool> {
    let mut last = vec![false; insts.len()];
    if !insts.iter().any(|inst| carry(function, *inst).is_some()) {
        return last;
    }
    let mut live = [at_end];
    for (at, inst) in insts.iter().enumerate().rev() {
        if let Some(carry) = carry(function, *inst) {
            last[at] = (live[0] & !written(function, *inst)) >> carry.1 & 1 == 0;
        }
        live = before(function, *inst, live);
    }
    last
}

/// The walk over a block.
struct Walk {
    /// Its instructions; `None` is what became part of another one.
    insts: Vec<Option<InstId>>,
    /// One more than where each register was made last.
    made: [usize; PLACES],
    /// What was made before counts for nothing.
    since: usize,
    /// Whether any two became one.
    joined: bool,
}

/// Numbers of general registers, and of general registers and predicates.
const GENERAL: usize = 256;
const PLACES: usize = GENERAL + 8;

/// The place of a register in the table of a walk.
fn index((file, number): Place) -> Option<usize> {
    let number = usize::from(number);
    match file {
        File::R => Some(number).filter(|at| *at < GENERAL),
        File::P => Some(GENERAL + number).filter(|at| *at < PLACES),
        _ => None,
    }
}

impl Walk {
    /// Joins an instruction with an earlier one, if that is possible.
    fn visit(&mut self, function: &mut Function, at: usize, is_last: bool, fits: Fits) {
        let Some(inst) = self.insts[at] else { return };
        let data = &function.insts[inst];
        if data.op.has(Prop::Control) || data.op.has(Prop::Clobbers) {
            self.since = at + 1;
            return;
        }
        let partner = match data.op {
            Op::IADD3 | Op::ISETP if is_last => carry(function, inst),
            Op::SEL | Op::MOV => function.arg(inst, Role::D).as_reg().and_then(|reg| place(function, reg)).map(beside),
            _ => None,
        };
        let from = partner.and_then(index).map(|place| self.made[place]).filter(|from| *from > self.since);
        let from = from.map(|from| from - 1).filter(|from| at - from <= WINDOW);
        let joined = from.and_then(|from| self.join(function, from, at, fits));
        let (inst, at) = joined.unwrap_or((inst, at));
        function.for_each_def(inst, |reg| {
            if let Some(place) = place(function, reg).and_then(index) {
                self.made[place] = at + 1;
            }
        });
    }

    /// Makes one instruction of two; returns it and where it stands.
    fn join(&mut self, function: &mut Function, from: usize, at: usize, fits: Fits) -> Option<(InstId, usize)> {
        let (first, second) = (self.insts[from]?, self.insts[at]?);
        let guard = function.insts[first].guard;
        if !same(function, guard, function.insts[second].guard) {
            return None;
        }
        let new = match function.insts[second].op {
            Op::IADD3 => forms::sum(function, first, second, fits),
            Op::ISETP => forms::comparison(function, first, second, fits),
            op => forms::copy(function, op, first, second, fits),
        }?;
        function.insts[new].guard = guard;
        let stands = self.place_of(function, from, at).filter(|_| fits(function, new))?;
        self.joined = true;
        (self.insts[from], self.insts[at]) = (None, None);
        self.insts[stands] = Some(new);
        Some((new, stands))
    }

    /// Where one instruction may stand for two: in place of the second, if what the first reads and
    /// writes is left alone in between, or of the first, if what the second does is.
    fn place_of(&self, function: &Function, from: usize, at: usize) -> Option<usize> {
        let (first, second) = (self.insts[from]?, self.insts[at]?);
        let carry = carry(function, second);
        let written = made_by(function, first);
        if read_by(function, second).iter().any(|place| written.contains(place) && Some(*place) != carry) {
            return None;
        }
        let between = || self.insts[from + 1..at].iter().flatten();
        let free = |inst: InstId| {
            let (reads, writes) = (read_by(function, inst), made_by(function, inst));
            between().all(|other| {
                let (read, made) = (read_by(function, *other), made_by(function, *other));
                let apart = |ours: &Places, theirs: &Places| ours.iter().all(|place| !theirs.contains(place));
                apart(&reads, &made) && apart(&writes, &made) && apart(&writes, &read)
            })
        };
        if carry.is_some_and(|carry| between().any(|other| read_by(function, *other).contains(&carry))) {
            return None;
        }
        match () {
            () if free(first) => Some(at),
            () if free(second) => Some(from),
            () => None,
        }
    }
}

/// The carry that an instruction takes from the operation on the low words.
fn carry(function: &Function, inst: InstId) -> Option<Place> {
    let data = &function.insts[inst];
    let role = match data.op {
        Op::IADD3 if data.mods.get(Mod::X) == value::x::X => Role::Pp,
        Op::ISETP if data.mods.get(Mod::Ex) == value::ex::EX => Role::Pq,
        _ => return None,
    };
    let operand = function.arg(inst, role);
    place(function, operand.as_reg().filter(|_| operand == operand.plain())?)
}

/// Whether two predicates are the same one.
fn same(function: &Function, one: Operand, two: Operand) -> bool {
    let of = |operand: Operand| operand.as_reg().map(|reg| (place(function, reg), operand.not()));
    one == two || of(one).is_some_and(|one| one.0.is_some() && Some(one) == of(two))
}

fn place(function: &Function, reg: VReg) -> Option<Place> {
    let data = &function.regs[reg];
    data.phys.map(|number| (data.file, number))
}

fn beside((file, number): Place) -> Place {
    (file, number ^ 1)
}

fn read_by(function: &Function, inst: InstId) -> Places {
    let mut places = Places::new();
    function.for_each_use(inst, |reg| places.extend(place(function, reg)));
    places
}

fn made_by(function: &Function, inst: InstId) -> Places {
    let mut places = Places::new();
    function.for_each_def(inst, |reg| places.extend(place(function, reg)));
    places
}
