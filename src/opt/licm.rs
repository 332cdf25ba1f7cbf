//! Loop-invariant code motion (OriHoistInvariantsEarly, OriHoistInvariantsLate): moves expensive
//! invariant operations to the preheader of their loop.
//!
//! - What moves: pseudo-operations that legalization expands (a division, a root, a cache policy)
//!   whose sources are loop-invariant, and the pure instructions that they need; behind
//!   legalization, parts of what it expanded whose results take long (the reciprocal of a divisor).
//!   Cheap instructions alone do not move, because their registers would be live through the loop.
//! - Only pure, unguarded instructions, which cannot trap, on registers that are not fixed,
//!   reserved or uniform.
//! - An operation moves only if its block dominates every latch, so that each iteration executes
//!   it, except that the last one may leave before.
//! - Loops are natural loops; nothing moves out of an irreducible cycle. A preheader is created if
//!   there is none.
//! - Bounds keep it near-linear and the pressure low: each operation takes at most [`MOST_NEEDED`]
//!   others along, and what moves out of a loop fills at most [`MOST_LIVE`] registers.

use crate::analysis::PassCx;
use crate::analysis::def_use::{is_free, is_pure};
use crate::analysis::loops::{LoopId, Loops};
use crate::ori::cfg::{Cfg, Dominators};
use crate::ori::{Block, File, Function, InstId, Kind, Operand, VReg, table};
use crate::sorted::SortedMap;
use crate::tables::{Family, Op, Prop, Role};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Maximum number of instructions that move with one operation.
const MOST_NEEDED: usize = 16;
/// Maximum number of registers that live through a loop because their definitions moved out of it.
const MOST_LIVE: usize = 32;

/// Moves what legalization will expand.
pub fn run(cx: &mut PassCx) {
    hoist(cx, is_expensive);
}

/// Moves what takes long of what legalization expanded.
pub fn late(cx: &mut PassCx) {
    hoist(cx, is_slow);
}

fn hoist(cx: &mut PassCx, is_expensive: impl Fn(&Function, InstId) -> bool) {
    let function = &*cx.function;
    let any = function.layout().iter().flat_map(|b| &function[*b]).any(|inst| is_expensive(function, *inst));
    if !any {
        cx.unchanged = true;
        return;
    }
    let (cfg, loops, dominators) = (cx.cfg(), cx.loops(), cx.dominators());
    if loops.all.is_empty() {
        cx.unchanged = true;
        return;
    }
    let function = &mut *cx.function;
    let live = SecondaryMap::with_capacity(loops.all.len());
    let (target, places) = (SecondaryMap::new(), places(function, &cfg));
    let mut hoister = Hoister { places, target, live, loops: &loops, dominators: &dominators };
    for block in &cfg.rpo {
        for inst in &function[*block] {
            if is_expensive(function, *inst) {
                hoister.operation(function, *block, *inst);
            }
        }
    }
    let moved = hoister.moved(function, &cfg);
    let mut new = Vec::new();
    for (id, insts) in moved {
        let before = preheader(function, &cfg, &loops, id, &mut new);
        let at = function.first_terminator(before);
        function[before].splice(at..at, insts);
    }
    function.place_before(&new);
}

/// Whether an operation is worth registers that live through a loop: legalization will expand it.
fn is_expensive(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    op.has(Prop::Pseudo) && Family::of(op).is_some() && may_move(function, inst)
}

/// Whether the result of an operation comes late, as no scheduler can hide in a short loop. Of
/// doubles there are often as many as registers.
fn is_slow(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    let late = op.has(Prop::VariableLatency) && !op.has(Prop::Fp64Pipe) && op != Op::LDC;
    late && may_move(function, inst)
}

/// Whether an instruction is a pure function of its sources, on registers other than uniform ones.
fn may_move(function: &Function, inst: InstId) -> bool {
    let data = &function[inst];
    let copy = data.op == Op::COPY && data.guard.is_null();
    // An index into a constant bank may be in range only in the iterations that read there.
    let indexed = data.op == Op::LDC && !function.arg(inst, Role::A).is_null();
    let mut fits = (copy || is_pure(function, inst)) && !indexed;
    function.for_each_def(inst, |reg| {
        fits &= is_free(function, reg) && matches!(function[reg].file, File::R | File::P);
    });
    function.for_each_use(inst, |reg| fits &= is_free(function, reg));
    fits
}

/// Number of registers that instructions define.
fn words(function: &Function, insts: &[InstId]) -> usize {
    let mut count = 0;
    insts.iter().for_each(|inst| function.for_each_def(*inst, |_| count += 1));
    count
}

/// The block and the instruction that define each register.
fn places(function: &Function, cfg: &Cfg) -> SecondaryMap<VReg, Option<(Block, InstId)>> {
    let mut places = table(function.regs().len());
    for block in &cfg.rpo {
        for inst in &function[*block] {
            function.for_each_def(*inst, |reg| places[reg] = Some((*block, *inst)));
        }
    }
    places
}

struct Hoister<'a> {
    places: SecondaryMap<VReg, Option<(Block, InstId)>>,
    /// The loop before which an instruction will be placed.
    target: SecondaryMap<InstId, Option<LoopId>>,
    /// Number of registers defined by what moves before each loop.
    live: SecondaryMap<LoopId, usize>,
    loops: &'a Loops,
    dominators: &'a Dominators,
}

impl Hoister<'_> {
    /// Moves an operation out of as many loops as it is invariant in.
    fn operation(&mut self, function: &Function, block: Block, inst: InstId) {
        let (mut at, mut best) = (block, None);
        for id in self.loops.around(block) {
            // A loop whose header is the entry has no preheader.
            let header = self.loops.all[id].header;
            if header == function.entry() || !self.loops.is_always_run(id, at, self.dominators) {
                break;
            }
            let mut needed = Vec::new();
            if !self.needs(function, id, inst, &mut needed) || self.live[id] + words(function, &needed) > MOST_LIVE {
                break;
            }
            best = Some((id, needed));
            at = header;
        }
        if let Some((id, needed)) = best {
            self.live[id] += words(function, &needed);
            needed.into_iter().for_each(|inst| self.target[inst] = Some(id));
        }
    }

    /// Collects the instructions that must move out of a loop with `inst`, which comes last;
    /// returns whether they can.
    fn needs(&self, function: &Function, id: LoopId, inst: InstId, needed: &mut Vec<InstId>) -> bool {
        if needed.contains(&inst) {
            return true;
        }
        if !may_move(function, inst) {
            return false;
        }
        let mut reads: SmallVec<[VReg; 8]> = SmallVec::new();
        function.for_each_use(inst, |reg| reads.push(reg));
        for reg in reads {
            let Some((block, maker)) = self.places[reg] else { return false };
            let inside = match self.target[maker] {
                // It will be placed before the header of that loop.
                Some(target) if target == id => false,
                Some(target) => self.loops.contains(id, self.loops.all[target].header),
                None => self.loops.contains(id, block),
            };
            if inside && (needed.len() >= MOST_NEEDED || !self.needs(function, id, maker, needed)) {
                return false;
            }
        }
        needed.push(inst);
        needed.len() <= MOST_NEEDED
    }

    /// Removes the moving instructions from their blocks: by loop, each after its sources.
    fn moved(&self, function: &mut Function, cfg: &Cfg) -> SortedMap<LoopId, Vec<InstId>> {
        let mut moved: SortedMap<LoopId, Vec<InstId>> = SortedMap::new();
        for block in &cfg.rpo {
            for inst in std::mem::take(&mut function[*block]) {
                match self.target[inst] {
                    Some(id) => moved.entry(id).or_default().push(inst),
                    None => function[*block].push(inst),
                }
            }
        }
        moved
    }
}

/// The preheader of a loop: a block whose only successor is the header. If there is none, creates
/// it and records where to lay it out. `cfg` is the graph from before, which is still right about
/// this loop.
fn preheader(function: &mut Function, cfg: &Cfg, loops: &Loops, id: LoopId, new: &mut Vec<(Block, Block)>) -> Block {
    let header = loops.all[id].header;
    let outside: Vec<Block> = cfg.preds[header].iter().copied().filter(|b| !loops.contains(id, *b)).collect();
    if let [only] = outside[..]
        && cfg.succs[only].len() == 1
    {
        return only;
    }
    let before = function.new_unplaced_block(Vec::new());
    new.push((header, before));
    let branch = function.make(Op::BRA);
    function.set_arg(branch, Role::Target, Operand::label(header));
    let mut phis = Vec::new();
    for i in 0..function[header].len() {
        let phi = function[header][i];
        if function[phi].op != Op::PHI {
            break;
        }
        phis.extend(split_phi(function, header, i, before, &outside));
    }
    phis.push(branch);
    function[before] = phis;
    outside.into_iter().for_each(|block| function.redirect(block, header, before));
    before
}

/// Gives a PHI one input for all predecessors outside the loop. If these inputs differ, creates a
/// PHI for them and returns it.
fn split_phi(function: &mut Function, header: Block, at: usize, before: Block, outside: &[Block]) -> Option<InstId> {
    let old = function[header][at];
    let args = function.args(old).to_vec();
    let is_outside = |pair: &&[Operand]| matches!(pair[0].kind(), Kind::Label(b) if outside.contains(&b));
    let (from, rest): (Vec<&[Operand]>, Vec<&[Operand]>) = args[1..].chunks_exact(2).partition(is_outside);
    let value = from.first()?[1];
    let (value, phi) = if from.iter().all(|pair| pair[1] == value) {
        (value, None)
    } else {
        let result = Operand::reg(function.new_like(args[0].as_reg()?));
        let inputs: Vec<Operand> = std::iter::once(result).chain(from.concat()).collect();
        (result, Some(function.make_with(Op::PHI, &inputs)))
    };
    let inputs: Vec<Operand> = [args[0], Operand::label(before), value].into_iter().chain(rest.concat()).collect();
    let new = function.make_with(Op::PHI, &inputs);
    function[new].line = function[old].line;
    function[header][at] = new;
    phi
}
