//! Pass `repeated_constants`: makes 64-bit constants that many instructions read once, in uniform
//! registers at the entry.
//!
//! - What moves: a constant in a pair of registers, uniform or not, that at least [`READERS`]
//!   instructions take in a pair of uniform registers. Its other moves go with their last reader.
//! - The constants with most readers move, no more than there are uniform registers that nothing
//!   fills and no call changes. At the entry the warp is converged, unless a call stands there,
//!   from which lanes need not come back together; where they are read it need not be. No value of
//!   a device function moves: its callers may be diverged.

use super::constants::{RESERVE, constant, kept};
use crate::analysis::PassCx;
use crate::analysis::def_use::DefUse;
use crate::arrays::Each;
use crate::legal::operands::{self, Trial};
use crate::ori::liveness::Liveness;
use crate::ori::{Convention, File, Function, InstId, Operand, VReg, table};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::{Feature, Prop};
use cranelift_entity::SecondaryMap;

/// Readers from which on a constant is made once: its two moves are in each block that reads it.
const READERS: usize = 3;

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    cx.unchanged = true;
    let function = &*cx.function;
    if !function.target().has(Feature::UniformDatapath) || function.attributes().convention != Convention::Kernel {
        return;
    }
    // Most functions have none: whether lanes may be apart is asked behind that.
    let (cfg, uses) = (cx.cfg(), cx.def_use());
    let all: Vec<InstId> = cfg.rpo.iter().flat_map(|block| &cx.function[*block]).copied().collect();
    if readers(cx.function, &uses, &all).is_empty() {
        return;
    }
    let (lanes, encodes) = (cx.divergence(), cx.encoder.encodes);
    let function = &*cx.function;
    if lanes.interleaved.contains(function.entry()) {
        return;
    }
    let beside = cfg.rpo.iter().filter(|block| !lanes.aside.contains(**block));
    let insts: Vec<InstId> = beside.flat_map(|block| &function[*block]).copied().collect();
    let mut readers = readers(function, &uses, &insts);
    if readers.is_empty() {
        return;
    }
    drop(uses);
    cx.unchanged = false;
    let (live, mut def_use) = (cx.liveness(), cx.take_def_use());
    let function = &mut *cx.function;
    let trial = Trial::new(function);
    for all in readers.values_mut() {
        all.retain(|reader| operands::takes_pair(function, reader.inst, reader.at, &encodes, &trial));
    }
    readers.retain(|_, readers| readers.len() >= READERS);
    let room = room(function, &live, &readers);
    let mut order: Vec<(u64, Vec<Reader>)> = readers.into_iter().collect();
    crate::sorted::by_key(&mut order, |(bits, readers)| (std::cmp::Reverse(readers.len()), *bits));
    let (mut moves, mut unread): (Vec<InstId>, SortedSet<InstId>) = (Vec::new(), SortedSet::new());
    for (bits, readers) in order.into_iter().take(room / 2) {
        let pair = Operand::vector(function.new_vector(File::UR, 2));
        let from = function.imm(bits);
        let Some(made) = operands::moves_to(function, &encodes, pair, from) else { continue };
        made.iter().for_each(|new| function[*new].line = function[readers[0].inst].line);
        moves.extend(made);
        readers.iter().for_each(|reader| give(function, &mut def_use, reader, pair, &mut unread));
    }
    if moves.is_empty() {
        return;
    }
    let entry = function.entry();
    let reads = |inst: &InstId| moves.iter().any(|made| reads_result(function, *made, *inst));
    let at = function[entry].iter().position(reads).unwrap_or_else(|| function.first_terminator(entry));
    function[entry].splice(at..at, moves);
    for block in &cfg.rpo {
        function[*block].retain(|inst| !unread.contains(inst));
    }
}

/// An instruction that takes a constant in a pair of uniform registers.
struct Reader {
    inst: InstId,
    at: usize,
    regs: [VReg; 2],
}

/// The constants that enough instructions read, of each the first one.
fn readers(function: &Function, def_use: &DefUse, insts: &[InstId]) -> SortedMap<u64, Vec<Reader>> {
    let mut readers: SortedMap<u64, Vec<Reader>> = SortedMap::new();
    for inst in insts.iter().filter(|inst| !function[**inst].op.has(Prop::Pseudo)) {
        let mut operands = 0..function.args(*inst).len();
        let found = operands.find_map(|at| Some((at, constant(function, def_use, *inst, at, &[File::R, File::UR])?)));
        if let Some((at, (bits, regs))) = found {
            readers.entry(bits).or_default().push(Reader { inst: *inst, at, regs: [regs[0], regs[1]] });
        }
    }
    readers.retain(|_, readers| readers.len() >= READERS);
    readers
}

/// Makes an instruction read a pair, and notes what nobody reads any more.
fn give(function: &mut Function, def_use: &mut DefUse, reader: &Reader, pair: Operand, unread: &mut SortedSet<InstId>) {
    let (old, reads) = (function.args(reader.inst)[reader.at], DefUse::reads(function, reader.inst));
    let makers = reader.regs.each(|reg| (reg, def_use.definition(reg)));
    function.args_mut(reader.inst)[reader.at] = pair.modified_like(old);
    def_use.update(function, reader.inst, &reads);
    unread.extend(makers.into_iter().filter(|(reg, _)| def_use.uses(*reg) == 0).filter_map(|(_, maker)| maker));
}

/// Whether an instruction reads a result of another one.
fn reads_result(function: &Function, maker: InstId, inst: InstId) -> bool {
    let mut reads = false;
    function.for_each_def(maker, |made| function.for_each_use(inst, |reg| reads |= reg == made));
    reads
}

/// Uniform registers that nothing fills, without those of the constants, and no call changes.
fn room(function: &Function, live: &Liveness, readers: &SortedMap<u64, Vec<Reader>>) -> usize {
    let mut moves: SecondaryMap<VReg, bool> = table(function.regs().len());
    readers.values().flatten().flat_map(|reader| reader.regs).for_each(|reg| moves[reg] = true);
    let counts = |reg: VReg| function[reg].file == File::UR && !moves[reg];
    let (mut most, mut kept_by_all) = (0, usize::MAX);
    for block in function.layout() {
        let mut lives: SortedSet<VReg> = live.live[*block].iter().copied().filter(|reg| counts(*reg)).collect();
        most = most.max(lives.len());
        for inst in function[*block].iter().rev() {
            kept_by_all = kept_by_all.min(kept(function, *inst));
            let mut defined = 0;
            function.for_each_def(*inst, |reg| defined += usize::from(counts(reg) && !lives.remove(&reg)));
            most = most.max(lives.len() + defined);
            function.for_each_use(*inst, |reg| {
                if counts(reg) {
                    lives.insert(reg);
                }
            });
            most = most.max(lives.len());
        }
    }
    kept_by_all.saturating_sub(RESERVE + most)
}
