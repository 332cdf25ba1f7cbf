//! Phase OriHoistInvariantsEarly: what is expensive and the same in every iteration of a loop is computed once before it.
//!
//! Input: a function in SSA form. Output: the same, in which a pseudo-operation that legalization expands (a division, a root, a cache policy) whose sources no
//! iteration changes stands in the block before its loop, with the pure instructions that it needs; that block is made where there is none. Invariants:
//! only pure, unguarded instructions move, which cannot trap, with registers that the allocator may put anywhere and that are not of the uniform file; an operation moves only
//! if its block dominates every way back to the header, so that each iteration but the last, which may leave before, executes it; what is cheap
//! moves only with what is expensive, for its registers live through the loop. Loops are natural ones: a header that dominates its way back. An
//! irreducible cycle has none, and nothing leaves it. Near-linear: loops are looked at from the inner ones on until [`MOST_MEMBERS`] blocks
//! have been counted, and each operation takes at most
//! [`MOST_NEEDED`] others along. What moves out of a loop may fill [`MOST_LIVE`] registers, which live through it.

use crate::analysis::PassCx;
use crate::analysis::def_use::{is_free, is_pure};
use crate::analysis::loops::{LoopId, Loops};
use crate::ori::cfg::{Cfg, Dominators};
use crate::ori::{Block, File, Function, InstId, Kind, Operand, VReg};
use crate::tables::{Family, Op, Prop, Role};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Instructions that move with one operation.
const MOST_NEEDED: usize = 16;
/// Registers that live through a loop for what moved out of it.
const MOST_LIVE: usize = 32;

pub fn run(cx: &mut PassCx) {
    let function = &*cx.function;
    let any = function.layout.iter().flat_map(|b| &function.blocks[*b]).any(|inst| is_expensive(function, *inst));
    if !any {
        return;
    }
    let (cfg, loops, dominators) = (cx.cfg(), cx.loops(), cx.dominators());
    if loops.all.is_empty() {
        return;
    }
    let function = &mut *cx.function;
    let live = SecondaryMap::with_capacity(loops.all.len());
    let (target, places) = (SecondaryMap::new(), places(function, &cfg));
    let mut hoister = Hoister { places, target, live, loops: &loops, dominators: &dominators };
    for block in &cfg.rpo {
        for inst in &function.blocks[*block] {
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
        function.blocks[before].splice(at..at, insts);
    }
    function.place_before(&new);
}

/// Worth registers that live through a loop: what becomes many instructions later.
fn is_expensive(function: &Function, inst: InstId) -> bool {
    let op = function.insts[inst].op;
    op.has(Prop::Pseudo) && Family::of(op).is_some() && may_move(function, inst)
}

/// A function of its sources alone, in registers of each lane's own.
fn may_move(function: &Function, inst: InstId) -> bool {
    let data = &function.insts[inst];
    let copy = data.op == Op::COPY && data.guard.is_null();
    // An index into a constant bank may be good for the iterations only that read there.
    let indexed = data.op == Op::LDC && !function.arg(inst, Role::A).is_null();
    let mut fits = (copy || is_pure(function, inst)) && !indexed;
    function.for_each_def(inst, |reg| {
        fits &= is_free(function, reg) && matches!(function.regs[reg].file, File::R | File::P);
    });
    function.for_each_use(inst, |reg| fits &= is_free(function, reg));
    fits
}

/// Registers that instructions make.
fn words(function: &Function, insts: &[InstId]) -> usize {
    let mut count = 0;
    insts.iter().for_each(|inst| function.for_each_def(*inst, |_| count += 1));
    count
}

/// Where each register is made, and by what.
fn places(function: &Function, cfg: &Cfg) -> SecondaryMap<VReg, Option<(Block, InstId)>> {
    let mut places = SecondaryMap::with_capacity(function.regs.len());
    for block in &cfg.rpo {
        for inst in &function.blocks[*block] {
            function.for_each_def(*inst, |reg| places[reg] = Some((*block, *inst)));
        }
    }
    places
}

struct Hoister<'a> {
    places: SecondaryMap<VReg, Option<(Block, InstId)>>,
    /// The loop before which an instruction is going to stand.
    target: SecondaryMap<InstId, Option<LoopId>>,
    /// Registers made by what is going to stand before each loop.
    live: SecondaryMap<LoopId, usize>,
    loops: &'a Loops,
    dominators: &'a Dominators,
}

impl Hoister<'_> {
    /// Moves an operation out of as many loops as it is the same in.
    fn operation(&mut self, function: &Function, block: Block, inst: InstId) {
        let (mut at, mut best) = (block, None);
        for id in self.loops.around(block) {
            // A loop whose header is the entry has no block before it.
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

    /// Adds what has to move out of a loop with an instruction, itself last; whether it can.
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
                // It is going to stand before that loop's header.
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

    /// Takes out what moves: by loop, in an order in which each stands behind what it reads.
    fn moved(&self, function: &mut Function, cfg: &Cfg) -> BTreeMap<LoopId, Vec<InstId>> {
        let mut moved: BTreeMap<LoopId, Vec<InstId>> = BTreeMap::new();
        for block in &cfg.rpo {
            for inst in std::mem::take(&mut function.blocks[*block]) {
                match self.target[inst] {
                    Some(id) => moved.entry(id).or_default().push(inst),
                    None => function.blocks[*block].push(inst),
                }
            }
        }
        moved
    }
}

/// The block that leads into a loop and nowhere else. Where there is none it is made and noted, to be laid out before the header; the graph is that of
/// before, which is still right about this loop.
fn preheader(function: &mut Function, cfg: &Cfg, loops: &Loops, id: LoopId, new: &mut Vec<(Block, Block)>) -> Block {
    let header = loops.all[id].header;
    let outside: Vec<Block> = cfg.preds[header].iter().copied().filter(|b| !loops.contains(id, *b)).collect();
    if let [only] = outside[..]
        && cfg.succs[only].len() == 1
    {
        return only;
    }
    let before = function.blocks.push(Vec::new());
    new.push((header, before));
    let branch = function.make(Op::BRA);
    function.set_arg(branch, Role::Target, Operand::label(header));
    let mut phis = Vec::new();
    for i in 0..function.blocks[header].len() {
        let phi = function.blocks[header][i];
        if function.insts[phi].op != Op::PHI {
            break;
        }
        phis.extend(split_phi(function, header, i, before, &outside));
    }
    phis.push(branch);
    function.blocks[before] = phis;
    outside.into_iter().for_each(|block| function.redirect(block, header, before));
    before
}

/// Gives a PHI one input in the place of those from outside; where these differ, by another PHI, which is returned.
fn split_phi(function: &mut Function, header: Block, at: usize, before: Block, outside: &[Block]) -> Option<InstId> {
    let old = function.blocks[header][at];
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
    function.insts[new].line = function.insts[old].line;
    function.blocks[header][at] = new;
    phi
}
