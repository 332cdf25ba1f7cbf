//! Pass `uniform_constants`: makes 64-bit constants of loops in uniform registers, before the loop.
//!
//! - What moves: a pair of registers that hold a constant, where an instruction takes it in a pair
//!   of uniform registers. Its moves in the loop go with their last reader.
//! - A constant moves only if each iteration reads it, out of as many loops as have one block
//!   before them in which the warp is converged, to its end. In the loop it need not be: nobody
//!   writes these registers.
//! - No more moves than there are uniform registers that nothing fills and no call in the loop
//!   changes. No value of a device function moves: its callers may be diverged.

use crate::analysis::PassCx;
use crate::analysis::calls_apart::{branches_before_calls, calls_functions};
use crate::analysis::def_use::{DefUse, is_free};
use crate::analysis::divergence::Varying;
use crate::analysis::loops::Loops;
use crate::legal::operands::{self, Trial};
use crate::ori::cfg::{BlockSet, Cfg, Dominators};
use crate::ori::liveness::Liveness;
use crate::ori::{Block, Convention, File, Function, InstId, Kind, Operand, VReg};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::ori::Direction;
use crate::tables::registers::Callee;
use crate::tables::{Feature, Prop, Role};
use smallvec::SmallVec;

/// Uniform registers that are not filled: those of legalization, and gaps beside pairs.
pub(super) const RESERVE: usize = 24;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let (cfg, loops) = (cx.cfg(), cx.loops());
    let function = &*cx.function;
    let fits =
        function.target().has(Feature::UniformDatapath) && function.attributes().convention == Convention::Kernel;
    if !fits || loops.all.is_empty() {
        cx.unchanged = true;
        return;
    }
    let uses = cx.def_use();
    let function = &*cx.function;
    let mut within = cfg.rpo.iter().filter(|block| loops.depth(**block) > 0).flat_map(|block| &function[*block]);
    if !within.any(|inst| reads_constant(function, &uses, *inst)) {
        cx.unchanged = true;
        return;
    }
    drop(uses);
    let (dominators, lanes, liveness, encodes) = (cx.dominators(), cx.divergence(), cx.liveness(), cx.encoder.encodes);
    let def_use = cx.take_def_use();
    let function = &mut *cx.function;
    let ends = kept_at_ends(function, &cfg, &lanes);
    let before = before(function, &cfg, &loops, (&lanes.interleaved, &ends));
    let mut makers = Makers {
        filled: filled(function, &cfg, &liveness),
        def_use,
        trial: Trial::new(function),
        made: SortedMap::new(),
        moves: Vec::new(),
        unread: SortedSet::new(),
    };
    for block in cfg.rpo.iter().filter(|block| !lanes.aside.contains(**block)) {
        if let Some(outside) = outside(*block, &loops, &dominators, &before) {
            for inst in function[*block].clone() {
                makers.instruction(function, inst, outside, encodes);
            }
        }
    }
    makers.finish(function, &cfg);
}

/// The only way into a loop, and how many uniform registers keep their values in it.
#[derive(Clone, Copy)]
struct Before {
    block: Block,
    kept: usize,
}

/// The blocks before loops, by the loop's header.
fn before(
    function: &Function,
    cfg: &Cfg,
    loops: &Loops,
    (apart, ends): (&BlockSet, &SortedMap<Block, usize>),
) -> SortedMap<Block, Before> {
    let mut before = SortedMap::new();
    for (id, of) in loops.all.iter() {
        let mut outside = cfg.preds[of.header].iter().filter(|block| !loops.contains(id, **block));
        let (Some(block), None) = (outside.next().copied(), outside.next()) else { continue };
        if !apart.contains(block) {
            let within = cfg.rpo.iter().filter(|block| loops.contains(id, **block));
            let ends = within.clone().filter_map(|block| ends.get(block).copied());
            let insts = within.flat_map(|block| &function[*block]);
            let kept = insts.map(|inst| kept(function, *inst)).chain(ends).min().unwrap_or(0);
            before.insert(of.header, Before { block, kept });
        }
    }
    before
}

/// Uniform registers that keep their values when an instruction is executed.
pub(super) fn kept(function: &Function, inst: InstId) -> usize {
    let count = function.target().info().map_or(0, |info| info.ur_count as usize);
    match function.callee(inst) {
        Some(callee) => kept_by(function, callee),
        None if function[inst].op.has(Prop::Clobbers) => 0,
        None => count,
    }
}

/// Uniform registers that a callee leaves as they are.
fn kept_by(function: &Function, callee: Callee) -> usize {
    let count = function.target().info().map_or(0, |info| info.ur_count);
    let kept: SortedSet<u16> = callee.keeps(File::UR.name()).flatten().filter(|n| u32::from(*n) < count).collect();
    kept.len()
}

/// The same at the ends of the blocks behind which some lanes may call while others do not.
pub(super) fn kept_at_ends(function: &Function, cfg: &Cfg, lanes: &Varying) -> SortedMap<Block, usize> {
    let mut ends = SortedMap::new();
    if calls_functions(function) {
        for (block, callee) in branches_before_calls(function, cfg, lanes) {
            let kept = ends.entry(block).or_insert(usize::MAX);
            *kept = kept_by(function, callee).min(*kept);
        }
    }
    ends
}

/// The block outside of all loops that execute a block in each iteration, and the least number of
/// uniform registers that keep their values in them.
fn outside(block: Block, loops: &Loops, dominators: &Dominators, before: &SortedMap<Block, Before>) -> Option<Before> {
    let (mut at, mut best) = (block, None::<Before>);
    for id in loops.around(block) {
        let header = loops.all[id].header;
        let Some(next) = before.get(&header).filter(|_| loops.is_always_run(id, at, dominators)) else { break };
        let kept = best.map_or(next.kept, |of| of.kept.min(next.kept));
        (at, best) = (header, Some(Before { block: next.block, kept }));
    }
    best
}

/// Uniform registers that are filled or not to be filled, where they are most.
fn filled(function: &Function, cfg: &Cfg, liveness: &Liveness) -> usize {
    let words = |block: &Block| {
        let mut words = liveness.live[*block].iter().filter(|reg| function[**reg].file == File::UR).count();
        for inst in &function[*block] {
            function.for_each_def(*inst, |reg| words += usize::from(function[reg].file == File::UR));
        }
        words
    };
    RESERVE + cfg.rpo.iter().map(words).max().unwrap_or(0)
}

/// What makes constants.
struct Makers {
    /// Uniform registers that are filled.
    filled: usize,
    def_use: DefUse,
    trial: Trial,
    /// The pairs that are made at the ends of blocks, by how many registers keep their values in
    /// the loop: one that lives through no call may be where calls keep nothing.
    made: SortedMap<(Block, usize, u64), Operand>,
    moves: Vec<(Block, Vec<InstId>)>,
    /// Moves that nobody reads any more.
    unread: SortedSet<InstId>,
}

/// Whether the target encodes an instruction as it stands.
pub(super) type Encodes = fn(&Function, InstId) -> bool;

impl Makers {
    /// Gives an instruction its first constant that it takes so, made at the end of a block.
    fn instruction(&mut self, function: &mut Function, inst: InstId, outside: Before, encodes: Encodes) {
        if function[inst].op.has(Prop::Pseudo) {
            return;
        }
        for at in 0..function.args(inst).len() {
            let found = constant(function, &self.def_use, inst, at, &[File::R]);
            let Some((bits, regs)) = found else { continue };
            if !operands::takes_pair(function, inst, at, &encodes, &self.trial) {
                continue;
            }
            let Some(pair) = self.pair(function, outside, bits, inst, encodes) else { return };
            let (old, reads) = (function.args(inst)[at], DefUse::reads(function, inst));
            let makers = regs.iter().map(|reg| (*reg, self.def_use.definition(*reg)));
            let makers: SmallVec<[(VReg, Option<InstId>); 2]> = makers.collect();
            function.args_mut(inst)[at] = pair.modified_like(old);
            self.def_use.update(function, inst, &reads);
            self.unread.extend(makers.iter().filter(|of| self.def_use.uses(of.0) == 0).filter_map(|of| of.1));
            return;
        }
    }

    /// The pair of a constant that is made at the end of a block, if there is room.
    fn pair(
        &mut self,
        function: &mut Function,
        before: Before,
        bits: u64,
        inst: InstId,
        encodes: Encodes,
    ) -> Option<Operand> {
        if let Some(pair) = self.made.get(&(before.block, before.kept, bits)) {
            return Some(*pair);
        }
        let filled = Some(self.filled + 2).filter(|filled| *filled <= before.kept)?;
        let pair = Operand::vector(function.new_vector(File::UR, 2));
        let from = function.imm(bits);
        let moves = operands::moves_to(function, &encodes, pair, from)?;
        moves.iter().for_each(|new| function[*new].line = function[inst].line);
        self.filled = filled;
        self.made.insert((before.block, before.kept, bits), pair);
        self.moves.push((before.block, moves));
        Some(pair)
    }

    /// Places the moves, and takes away what nobody reads.
    fn finish(self, function: &mut Function, cfg: &Cfg) {
        for (block, moves) in self.moves {
            let at = function.first_terminator(block);
            function[block].splice(at..at, moves);
        }
        for block in cfg.rpo.iter().filter(|_| !self.unread.is_empty()) {
            function[*block].retain(|inst| !self.unread.contains(inst));
        }
    }
}

/// Whether an instruction reads a constant in a pair of registers.
fn reads_constant(function: &Function, def_use: &DefUse, inst: InstId) -> bool {
    let mut operands = 0..function.args(inst).len();
    !function[inst].op.has(Prop::Pseudo)
        && operands.any(|at| constant(function, def_use, inst, at, &[File::R]).is_some())
}

/// The constant that an operand is in two registers of one of the files.
pub(super) fn constant(
    function: &Function,
    def_use: &DefUse,
    inst: InstId,
    at: usize,
    files: &[File],
) -> Option<(u64, SmallVec<[VReg; 4]>)> {
    let operand = function.args(inst)[at];
    let Kind::Vector(vector) = operand.kind() else { return None };
    let regs: SmallVec<[VReg; 4]> = SmallVec::from_slice(function.vector_regs(vector));
    let reads = function.direction(inst, at) == Direction::Use && regs.len() == 2;
    let plain = reads && regs.iter().all(|reg| files.contains(&function[*reg].file) && is_free(function, *reg));
    let word = |reg: VReg| {
        let maker = def_use.definition(reg)?;
        let moves = function[maker].op.has(Prop::Moves) && function[maker].guard.is_null();
        let value = function.word_value(function.arg(maker, Role::A)).map(u64::from);
        value.filter(|_| moves && function.arg(maker, Role::Lanes).is_null())
    };
    let (low, high) = (word(*regs.first().filter(|_| plain)?)?, word(regs[1])?);
    Some((low | high << 32, regs))
}
