//! Pass `wide_forms`: two operations on the words of 64-bit numbers become one, on targets that
//! have it and whose distances for it are known.
//!
//! A sum with a carry between its words becomes IADD.64, or IMAD.WIDE where a word is added to a
//! pair; an extended comparison becomes the comparison of pairs, two selections or two moves one,
//! and a comparison with the selection by it a minimum or maximum. Runs after allocation, which
//! decides what is a pair (and joins words in pairs where that is free: `alloc::word_pairs`), so
//! that no register is moved or kept for it. The one operation stands where the second or the first
//! stood, whichever its operands allow.

mod forms;

use crate::analysis::PassCx;
use crate::analysis::def_use::Fits;
use crate::ori::cfg::Cfg;
use crate::ori::long::carry_in;
use crate::ori::{Block, File, Function, InstId, Operand, VReg};
use crate::tables::{Feature, Op, Prop, Role};
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
    if !cx.function.target().has(Feature::JoinsPairs) {
        cx.unchanged = true;
        return;
    }
    let cfg = cx.cfg();
    let (function, fits): (_, Fits) = (&mut *cx.function, &cx.encoder.is_legal);
    let live = live_predicates(function, &cfg);
    let (mut made, mut before) = ([0; PLACES], 0);
    for block in function.layout().to_vec() {
        let insts = function[block].clone();
        let ends = last_readers(function, &insts, behind(&cfg, &live, block));
        let count = insts.len();
        let insts = insts.into_iter().map(Some).collect();
        let mut walk = Walk { insts, made: &mut made, before, since: 0, joined: false };
        before += count;
        for (at, is_last) in ends.into_iter().enumerate() {
            walk.visit(function, at, is_last, fits);
        }
        if walk.joined {
            function[block] = walk.insts.into_iter().flatten().collect();
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
        let insts = function[*block].iter().rev();
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
    if function[inst].guard.is_null() {
        function.for_each_def(inst, |reg| written |= bit(function, reg));
    }
    written
}

fn bit(function: &Function, reg: VReg) -> Predicates {
    place(function, reg).filter(|place| place.0 == File::P).map_or(0, |place| 1 << place.1)
}

/// For each instruction of a block that takes a carry or selects, whether nothing reads its
/// predicate behind it.
fn last_readers(function: &Function, insts: &[InstId], at_end: Predicates) -> Vec<bool> {
    let mut last = vec![false; insts.len()];
    let read = |inst| carry(function, inst).or_else(|| selector(function, inst));
    if !insts.iter().any(|inst| read(*inst).is_some()) {
        return last;
    }
    let mut live = [at_end];
    for (at, inst) in insts.iter().enumerate().rev() {
        if let Some(carry) = read(*inst) {
            last[at] = (live[0] & !written(function, *inst)) >> carry.1 & 1 == 0;
        }
        live = before(function, *inst, live);
    }
    last
}

/// The walk over a block.
struct Walk<'a> {
    /// Its instructions; `None` is what became part of another one.
    insts: Vec<Option<InstId>>,
    /// One more than where each register was made last, counted from the first block that was
    /// walked over.
    made: &'a mut [usize; PLACES],
    /// Instructions of the blocks before this one.
    before: usize,
    /// What was made before counts for nothing.
    since: usize,
    /// Whether any two became one.
    joined: bool,
}

/// Numbers of general registers, of these and predicates, and of all that are looked at.
const GENERAL: usize = 256;
const PREDICATES: usize = GENERAL + 8;
const PLACES: usize = PREDICATES + 128;

/// The place of a register in the table of a walk.
fn index((file, number): Place) -> Option<usize> {
    let number = usize::from(number);
    match file {
        File::R => Some(number).filter(|at| *at < GENERAL),
        File::P => Some(GENERAL + number).filter(|at| *at < PREDICATES),
        File::UR => Some(PREDICATES + number).filter(|at| *at < PLACES),
        _ => None,
    }
}

impl Walk<'_> {
    /// One more than where the register of a place was made last in the block, or 0.
    fn made(&self, place: usize) -> usize {
        self.made[place].saturating_sub(self.before)
    }

    /// Joins an instruction with an earlier one, if that is possible.
    fn visit(&mut self, function: &mut Function, at: usize, is_last: bool, fits: Fits) {
        let Some(inst) = self.insts[at] else { return };
        let data = &function[inst];
        if data.op.has(Prop::Control) || data.op.has(Prop::Clobbers) {
            self.since = at + 1;
            return;
        }
        let partner = match data.op {
            Op::IADD3 | Op::ISETP if is_last => carry(function, inst),
            Op::SEL | Op::MOV | Op::UMOV => {
                function.arg(inst, Role::D).as_reg().and_then(|reg| place(function, reg)).map(beside)
            }
            _ => None,
        };
        let from = partner.and_then(index).map(|place| self.made(place)).filter(|from| *from > self.since);
        let from = from.map(|from| from - 1).filter(|from| at - from <= WINDOW);
        let joined = from.and_then(|from| self.join(function, from, at, fits));
        let last = at;
        let chosen = joined.filter(|_| is_last).and_then(|(inst, at)| self.choose(function, (at, last), inst, fits));
        let (inst, at) = chosen.or(joined).unwrap_or((inst, at));
        function.for_each_def(inst, |reg| {
            if let Some(place) = place(function, reg).and_then(index) {
                self.made[place] = self.before + at + 1;
            }
        });
    }

    /// Makes one instruction of two; returns it and where it stands.
    fn join(&mut self, function: &mut Function, from: usize, at: usize, fits: Fits) -> Option<(InstId, usize)> {
        let (first, second) = (self.insts[from]?, self.insts[at]?);
        let guard = function[first].guard;
        if !same(function, guard, function[second].guard) {
            return None;
        }
        let new = match function[second].op {
            Op::IADD3 => forms::sum(function, first, second, fits),
            Op::ISETP => forms::comparison(function, first, second, fits),
            op => forms::copy(function, op, first, second, fits),
        }?;
        function[new].guard = guard;
        let stands = self.place_of(function, from, at).filter(|_| fits(function, new))?;
        self.joined = true;
        (self.insts[from], self.insts[at]) = (None, None);
        self.insts[stands] = Some(new);
        Some((new, stands))
    }

    /// Makes a minimum or maximum of a selection, by a predicate that nothing reads behind `last`,
    /// and the comparison that made the predicate; returns it and where it stands.
    fn choose(
        &mut self,
        function: &mut Function,
        (at, last): (usize, usize),
        select: InstId,
        fits: Fits,
    ) -> Option<(InstId, usize)> {
        let selector = selector(function, select)?;
        let from = self.made(index(selector)?).checked_sub(1).filter(|from| *from >= self.since && *from < at)?;
        let compare = self.insts[from].filter(|inst| function[*inst].op == Op::ISETP_64)?;
        let compared = read_by(function, compare);
        let mut others = self.insts[from + 1..=last].iter().flatten().filter(|inst| **inst != select);
        // Both operands are as they were compared, and nothing else reads or makes the predicate.
        let kept = self.insts[from + 1..at]
            .iter()
            .flatten()
            .all(|inst| made_by(function, *inst).iter().all(|place| !compared.contains(place) && *place != selector));
        let guard = function[select].guard.as_reg().and_then(|reg| place(function, reg));
        let alone = function[compare].guard.is_null()
            && made_by(function, compare)[..] == [selector]
            && guard != Some(selector);
        if !kept || !alone || others.any(|inst| read_by(function, *inst).contains(&selector)) {
            return None;
        }
        let new = forms::minimum(function, compare, select, fits)?;
        self.insts[from] = None;
        self.insts[at] = Some(new);
        Some((new, at))
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
    place(function, carry_in(function, inst)?.as_reg()?)
}

/// The predicate by which an instruction selects.
fn selector(function: &Function, inst: InstId) -> Option<Place> {
    let selects = matches!(function[inst].op, Op::SEL | Op::SEL_64);
    place(function, function.arg(inst, Role::Pp).as_reg().filter(|_| selects)?)
}

/// Whether two predicates are the same one.
fn same(function: &Function, one: Operand, two: Operand) -> bool {
    let of = |operand: Operand| operand.as_reg().map(|reg| (place(function, reg), operand.not()));
    one == two || of(one).is_some_and(|one| one.0.is_some() && Some(one) == of(two))
}

fn place(function: &Function, reg: VReg) -> Option<Place> {
    let data = &function[reg];
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
