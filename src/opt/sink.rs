//! Code sinking (SinkRemat): moves a pure instruction down to the block that dominates all readers
//! of its results, so that they do not live through the loops between.
//!
//! - What moves: pure, unguarded instructions with results that differ between lanes, on registers
//!   without a fixed place. What is the same in all lanes may become a uniform register, which is
//!   only written where all lanes meet.
//! - Where: to the nearest common dominator of the readers in the same innermost loop, before the
//!   first reader there or at its end. The block dominates its readers, so no source can be defined
//!   anew in between.
//! - When: if no more registers begin to live up to there, as sources, than no longer do, as
//!   results. Readers move before what they read, so a whole chain follows its end. Where more than
//!   `crowded` registers live, also without a loop between, if no register begins to live.

use crate::analysis::PassCx;
use crate::analysis::def_use::{is_free, is_pure, sets_stack_pointer};
use crate::analysis::loops::Loops;
use crate::ori::cfg::{Cfg, Dominators};
use crate::ori::list_table::ListTable;
use crate::ori::liveness::{Liveness, RegSet};
use crate::ori::{Block, File, Function, InstId, Kind, VReg, table};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::{Op, Prop, Tunable};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let (cfg, loops, dominators) = (cx.cfg(), cx.loops(), cx.dominators());
    let function = &mut *cx.function;
    let live = Liveness::at_start(function, &cfg);
    let many = function.attributes().tuning.get(Tunable::Crowded) as usize;
    let is_general = |reg: &&VReg| function[**reg].file == File::R;
    let is_crowded = |block: &&Block| {
        let lives = &live.live[**block];
        lives.len() > many && lives.iter().filter(is_general).count() > many
    };
    let crowded: SortedSet<Block> = cfg.rpo.iter().filter(is_crowded).copied().collect();
    if loops.all.is_empty() && crowded.is_empty() {
        cx.unchanged = true;
        return;
    }
    let readers = readers(function, &cfg);
    let mut sinker =
        Sinker { readers, place: table(function.insts().len()), loops: &loops, dominators: &dominators, live, crowded };
    let mut moves: SortedMap<Block, Vec<InstId>> = SortedMap::new();
    for block in cfg.rpo.iter().rev() {
        for inst in function[*block].iter().rev() {
            if let Some(to) = sinker.target(function, *block, *inst) {
                sinker.place[*inst] = Some(to);
                moves.entry(to).or_default().push(*inst);
            }
        }
    }
    if moves.is_empty() {
        cx.unchanged = true;
        return;
    }
    for block in &cfg.rpo {
        function[*block].retain(|inst| sinker.place[*inst].is_none());
    }
    for (to, mut insts) in moves {
        // What is read was met behind what reads it.
        insts.reverse();
        insert(function, to, &insts);
    }
}

/// Places where registers are read: the instruction, and the block at whose end a PHI reads.
type Readers = ListTable<VReg, SmallVec<[(InstId, Block); 2]>>;

fn readers(function: &Function, cfg: &Cfg) -> Readers {
    let mut readers: Readers = ListTable::new(function.regs().len());
    for block in &cfg.rpo {
        for inst in &function[*block] {
            if function[*inst].op != Op::PHI {
                function.for_each_use(*inst, |reg| readers[reg].push((*inst, *block)));
                continue;
            }
            for pair in function.args(*inst)[1..].chunks_exact(2) {
                if let Kind::Label(from) = pair[0].kind() {
                    function.for_each_reg(pair[1], |reg| readers[reg].push((*inst, from)));
                }
            }
        }
    }
    readers
}

struct Sinker<'a> {
    readers: Readers,
    /// The block that an instruction moves to.
    place: SecondaryMap<InstId, Option<Block>>,
    loops: &'a Loops,
    dominators: &'a Dominators,
    live: Liveness,
    /// Blocks at whose start more registers live than the tunable `crowded` says.
    crowded: SortedSet<Block>,
}

impl Sinker<'_> {
    /// The block that an instruction of this block should move to.
    fn target(&self, function: &Function, block: Block, inst: InstId) -> Option<Block> {
        if !may_move(function, inst) {
            return None;
        }
        let mut to: Option<Block> = None;
        let (mut results, mut apart) = (0, false);
        function.for_each_def(inst, |reg| {
            results += 1;
            for reader in &self.readers[reg] {
                let at = self.at(function, *reader);
                to = to.map_or(Some(at), |to| self.dominators.common(to, at));
                apart |= to.is_none();
            }
        });
        let mut to = to.filter(|_| !apart)?;
        let inner = self.loops.innermost(block);
        while to != block && self.loops.innermost(to) != inner {
            to = self.dominators.parent(to)?;
        }
        if to == block {
            return None;
        }
        let most = if self.crosses(function, block, inst) { results } else { 0 };
        let pays = most > 0 || self.crowded.contains(&to);
        (pays && self.begun(function, to, inst) <= most).then_some(to)
    }

    /// The block where a reader is, or will be.
    fn at(&self, function: &Function, (reader, block): (InstId, Block)) -> Block {
        if function[reader].op == Op::PHI { block } else { self.place[reader].unwrap_or(block) }
    }

    /// Whether a result lives through a loop that the instruction is not in, or would because a
    /// reader moved.
    fn crosses(&self, function: &Function, block: Block, inst: InstId) -> bool {
        let mut crosses = false;
        function.for_each_def(inst, |reg| {
            crosses |= self.readers[reg].iter().any(|(reader, _)| self.place[*reader].is_some());
            let through = |(id, of): (_, &crate::analysis::loops::Loop)| {
                !self.loops.contains(id, block) && self.live.contains(of.header, reg)
            };
            crosses |= self.loops.all.iter().any(through);
        });
        crosses
    }

    /// Sources that would begin to live up to a block.
    fn begun(&self, function: &Function, to: Block, inst: InstId) -> usize {
        let mut seen: SmallVec<[VReg; 8]> = SmallVec::new();
        function.for_each_use(inst, |reg| {
            let lives = || {
                self.live.contains(to, reg)
                    || self.readers[reg].iter().any(|reader| self.reads_behind(function, *reader, to))
            };
            if function[reg].varying && !seen.contains(&reg) && !lives() {
                seen.push(reg);
            }
        });
        seen.len()
    }

    /// Whether a reader that moved is in a block or behind it.
    fn reads_behind(&self, function: &Function, reader: (InstId, Block), to: Block) -> bool {
        self.dominators.dominates(to, self.at(function, reader))
    }
}

fn may_move(function: &Function, inst: InstId) -> bool {
    let mut fits = is_pure(function, inst) && !function[inst].op.has(Prop::Pseudo);
    let mut results = 0;
    function.for_each_def(inst, |reg| {
        let data = &function[reg];
        fits &= is_free(function, reg) && data.varying && matches!(data.file, File::R | File::P);
        results += 1;
    });
    function.for_each_use(inst, |reg| fits &= is_free(function, reg));
    fits && results > 0
}

/// Places instructions in a block, before the first one that reads what they write.
fn insert(function: &mut Function, block: Block, insts: &[InstId]) {
    let mut made = RegSet::new(function.regs().len());
    insts.iter().for_each(|inst| {
        function.for_each_def(*inst, |reg| {
            made.insert(reg);
        });
    });
    let reads = |inst: &InstId| {
        let mut reads = false;
        function.for_each_use(*inst, |reg| reads |= made.contains(reg));
        reads && function[*inst].op != Op::PHI
    };
    let end = function.first_terminator(block);
    let at = function[block][..end].iter().position(reads).unwrap_or(end);
    // Between the move of the stack pointer and its call nothing may reach for the frame.
    let moved = function[block][..at].last().is_some_and(|last| sets_stack_pointer(function, *last));
    let at = at - usize::from(moved);
    function[block].splice(at..at, insts.iter().copied());
}
