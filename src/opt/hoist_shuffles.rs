//! Shuffles that are the same in every iteration leave their loop, and with them what is computed
//! from them and from nothing that changes there.
//!
//! - What moves: SHFL of sources that are computed before the loop, in a block that each iteration
//!   executes, and pure instructions behind it, up to [`MOST`] in a row.
//! - Where: to the end of the only block before the loop. Lanes must be together there and where
//!   the shuffle stood, so the same ones take part; that is known of kernels alone. A shuffle has
//!   no other effect, so the loop may run no iteration.
//!
//! Triton asks for the number of the warp in each iteration of its loops over wgmma; ptxas 13.0.88
//! has the shuffle before them, and the descriptors do not wait for it.

use crate::analysis::PassCx;
use crate::analysis::def_use::{is_free, is_pure};
use crate::analysis::loops::{LoopId, Loops};
use crate::ori::cfg::{Cfg, Dominators};
use crate::ori::{Block, Convention, File, Function, InstId, VReg, table};
use crate::tables::Op;
use cranelift_entity::SecondaryMap;

/// Instructions that move behind a shuffle.
const MOST: u32 = 8;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let function = &*cx.function;
    let any = function.layout().iter().flat_map(|b| &function[*b]).any(|i| function[*i].op == Op::SHFL);
    if !any || function.attributes().convention != Convention::Kernel {
        cx.unchanged = true;
        return;
    }
    let (cfg, loops, dominators, lanes) = (cx.cfg(), cx.loops(), cx.dominators(), cx.divergence());
    let together = |block: Block| !lanes.divergent.contains(block);
    let mut hoister = Hoister::new(cx.function, &cfg, &loops, &dominators);
    for block in cfg.rpo.iter().filter(|block| loops.depth(**block) > 0 && together(**block)) {
        hoister.block(cx.function, *block, &together);
    }
    let moved = hoister.moved;
    if moved.is_empty() {
        cx.unchanged = true;
        return;
    }
    cx.hoisted = moved.iter().map(|(inst, ..)| *inst).collect();
    for (inst, from, to) in moved {
        cx.function[from].retain(|other| *other != inst);
        let at = cx.function.first_terminator(to);
        cx.function[to].insert(at, inst);
    }
}

struct Hoister<'a> {
    cfg: &'a Cfg,
    loops: &'a Loops,
    dominators: &'a Dominators,
    /// The block of each register's definition, and how many instructions it is behind a shuffle
    /// that moved; 0 for none.
    home: SecondaryMap<VReg, Option<Block>>,
    behind: SecondaryMap<VReg, u32>,
    /// What moves, from where and to where, in order.
    moved: Vec<(InstId, Block, Block)>,
}

impl<'a> Hoister<'a> {
    fn new(function: &Function, cfg: &'a Cfg, loops: &'a Loops, dominators: &'a Dominators) -> Hoister<'a> {
        let mut home = table(function.regs().len());
        for block in &cfg.rpo {
            for inst in &function[*block] {
                function.for_each_def(*inst, |reg| home[reg] = Some(*block));
            }
        }
        Hoister { cfg, loops, dominators, home, behind: table(function.regs().len()), moved: Vec::new() }
    }

    fn block(&mut self, function: &Function, block: Block, together: &impl Fn(Block) -> bool) {
        for inst in &function[block] {
            let Some(behind) = self.may_move(function, *inst) else { continue };
            let mut to = None;
            for id in self.loops.around(block) {
                let Some(before) = self.before(id).filter(|before| together(*before)) else { break };
                let always = self.loops.is_always_run(id, to.unwrap_or(block), self.dominators);
                if !always || !together(self.loops.all[id].header) || !self.is_invariant(function, id, *inst) {
                    break;
                }
                to = Some(before);
            }
            let Some(to) = to else { continue };
            function.for_each_def(*inst, |reg| (self.home[reg], self.behind[reg]) = (Some(to), behind));
            self.moved.push((*inst, block, to));
        }
    }

    /// How far an instruction is behind a shuffle that moved, if it may move too; 1 for a shuffle.
    fn may_move(&self, function: &Function, inst: InstId) -> Option<u32> {
        let data = &function[inst];
        let shuffle = data.op == Op::SHFL && data.guard.is_null();
        let (mut fits, mut behind) = (shuffle || is_pure(function, inst), 0);
        function.for_each_def(inst, |reg| fits &= is_free(function, reg) && function[reg].file == File::R);
        function.for_each_use(inst, |reg| {
            fits &= is_free(function, reg);
            behind = behind.max(self.behind[reg]);
        });
        let follows = behind > 0 && behind < MOST;
        (fits && (shuffle || follows)).then_some(behind + 1)
    }

    fn is_invariant(&self, function: &Function, id: LoopId, inst: InstId) -> bool {
        let mut invariant = true;
        function.for_each_use(inst, |reg| {
            invariant &= self.home[reg].is_some_and(|home| !self.loops.contains(id, home));
        });
        invariant
    }

    /// The only block from which a loop is entered.
    fn before(&self, id: LoopId) -> Option<Block> {
        let header = self.loops.all[id].header;
        let mut outside = self.cfg.preds[header].iter().filter(|from| !self.loops.contains(id, **from));
        let before = *outside.next()?;
        outside.next().is_none().then_some(before)
    }
}
