//! If-conversion (in PlaceBlocksInSourceOrder): short arms of a branch become predicated
//! instructions.
//!
//! `@p BRA end; …; end:` loses its branch and each instruction in between gets the guard `!p`;
//! likewise both arms of a branch that join. A BSSY region in which lanes can no longer diverge is
//! removed. Only instructions that are neither control flow nor convergent are predicated, and none
//! that writes the predicate. Runs after allocation.

use crate::analysis::def_use::Fits;
use crate::analysis::{PassCx, SHORT_ARM};
use crate::opt::block_layout::is_jump;
use crate::ori::cfg::BlockSet;
use crate::ori::{Block, File, Function, InstId, Kind, Operand};
use crate::tables::{Op, Prop, Role};
use cranelift_entity::SecondaryMap;

struct Pass<'a> {
    fits: Fits<'a>,
    /// Number of predecessors of each block.
    preds: SecondaryMap<Block, usize>,
    /// Blocks that must stay: reconvergence points and the entry.
    kept: BlockSet,
    gone: BlockSet,
}

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    let cfg = cx.cfg();
    let (function, fits): (_, Fits) = (&mut *cx.function, &cx.encoder.encodes);
    let limit = function.block_limit();
    let mut pass = Pass { fits, preds: SecondaryMap::new(), kept: BlockSet::new(limit), gone: BlockSet::new(limit) };
    pass.kept.insert(function.entry());
    for block in &cfg.rpo {
        pass.preds[*block] = cfg.preds[*block].len();
        for inst in function[*block].iter().filter(|i| !function[**i].op.has(Prop::Control)) {
            if let Kind::Label(meet) = function.arg(*inst, Role::Target).kind() {
                pass.kept.insert(meet);
            }
        }
    }
    // Inner branches first.
    for block in cfg.rpo.iter().rev() {
        if !pass.gone.contains(*block) {
            pass.convert(function, *block);
            pass.close(function, *block);
        }
    }
    function.retain_blocks(|b| !pass.gone.contains(*b));
}

impl Pass<'_> {
    /// Merges a branch and its arms into one block, if possible.
    fn convert(&mut self, function: &mut Function, block: Block) -> Option<()> {
        let [.., conditional, last] = function[block][..] else { return None };
        let guard = function[conditional].guard;
        let whole = is_jump(function, conditional) && is_jump(function, last) && function[last].guard.is_null();
        let predicate = guard.as_reg().filter(|p| whole && function[*p].file == File::P)?;
        let target = |inst| match function.arg(inst, Role::Target).kind() {
            Kind::Label(block) => Some(block),
            _ => None,
        };
        let (yes, no) = (target(conditional)?, target(last)?);
        let number = function[predicate].phys?;
        let (taken, other) = (self.arm(function, yes, number), self.arm(function, no, number));
        let (arms, end): (Vec<(Block, Operand)>, Block) = match (taken, other) {
            _ if yes == no => return None,
            (_, Some(end)) if end == yes => (vec![(no, guard.inverted())], yes),
            (Some(end), _) if end == no => (vec![(yes, guard)], no),
            (Some(end), Some(join)) if end == join => (vec![(no, guard.inverted()), (yes, guard)], end),
            _ => return None,
        };
        let bodies: Vec<(InstId, Operand)> = arms
            .iter()
            .flat_map(|(arm, guard)| function[*arm].split_last().map_or(&[][..], |b| b.1).iter().map(|i| (*i, *guard)))
            .collect();
        if bodies.len() > SHORT_ARM || !self.guarded(function, &bodies) {
            return None;
        }
        let at = function[block].len() - 2;
        function[block].truncate(at);
        function[block].extend(bodies.iter().map(|b| b.0));
        function.set_arg(last, Role::Target, Operand::label(end));
        function[block].push(last);
        // The join block now has one predecessor instead of the arms or the branch.
        self.preds[end] -= 1;
        for (arm, _) in arms {
            self.gone.insert(arm);
        }
        Some(())
    }

    /// Predicates instructions, all or none.
    fn guarded(&self, function: &mut Function, bodies: &[(InstId, Operand)]) -> bool {
        bodies.iter().for_each(|(inst, guard)| function[*inst].guard = *guard);
        let fitting = bodies.iter().all(|(inst, _)| (self.fits)(function, *inst));
        if !fitting {
            bodies.iter().for_each(|(inst, _)| function[*inst].guard = Operand::NULL);
        }
        fitting
    }

    /// The successor of a block with one predecessor whose instructions can all be predicated.
    fn arm(&self, function: &Function, block: Block, predicate: u16) -> Option<Block> {
        let (last, body) = function[block].split_last()?;
        let Kind::Label(end) = function.arg(*last, Role::Target).kind() else { return None };
        let jumps = is_jump(function, *last) && function[*last].guard.is_null() && end != block;
        let alone = self.preds[block] == 1 && !self.kept.contains(block) && body.len() <= SHORT_ARM;
        (jumps && alone && body.iter().all(|i| may_be_guarded(function, *i, predicate))).then_some(end)
    }

    /// Removes a BSSY region that one block opens and the next one closes, if nothing between can
    /// diverge lanes.
    fn close(&mut self, function: &mut Function, block: Block) -> Option<()> {
        let insts = &function[block];
        let last = *insts.last()?;
        let Kind::Label(next) = function.arg(last, Role::Target).kind() else { return None };
        let jumps = is_jump(function, last) && function[last].guard.is_null() && self.preds[next] == 1;
        let sync = *function[next].first().filter(|i| jumps && function[**i].op == Op::BSYNC)?;
        let number = |inst| function.arg(inst, Role::B).as_reg().and_then(|b| function[b].phys);
        let open = insts.iter().rposition(|i| function[*i].op == Op::BSSY)?;
        let between = &insts[open + 1..insts.len() - 1];
        let calm = |i: &InstId| may_be_guarded(function, *i, NO_PREDICATE) || function[*i].op.has(Prop::Pure);
        let same = number(insts[open]).is_some() && number(insts[open]) == number(sync);
        let bare = |inst: InstId| function[inst].guard.is_null();
        if same
            && bare(insts[open])
            && bare(sync)
            && between.iter().all(|i| calm(i) || !bare(*i) && is_calm(function, *i))
        {
            function[block].remove(open);
            function[next].remove(0);
        }
        Some(())
    }
}

/// A number that is no predicate register.
const NO_PREDICATE: u16 = u16::MAX;

/// Whether an instruction is neither control flow nor convergent.
fn is_calm(function: &Function, inst: InstId) -> bool {
    let op = function[inst].op;
    let memory = op.has(Prop::ReadsMemory) || op.has(Prop::WritesMemory);
    let alone = !op.has(Prop::Convergent) && !op.has(Prop::Control);
    let alone = alone && !op.has(Prop::CopyGroup) && !op.has(Prop::BulkGroup);
    alone && (op.has(Prop::Pure) || memory)
}

fn may_be_guarded(function: &Function, inst: InstId, predicate: u16) -> bool {
    let mut writes = false;
    function.for_each_def(inst, |reg| {
        let data = &function[reg];
        writes |= data.file == File::P && data.phys == Some(predicate);
    });
    is_calm(function, inst) && function[inst].guard.is_null() && !writes
}
