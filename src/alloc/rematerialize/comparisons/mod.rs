//! Repeats comparisons before far readers where more predicates live than there are.
//!
//! A predicate without a register would go to a general register and back (SEL, ISETP). A
//! comparison whose operands still live where its result is read costs the ISETP alone. Chosen are
//! pure, unguarded instructions with a predicate as their only result and no other definition of
//! it, which dominates its readers; each operand has one definition, which dominates the
//! comparison, and lives at the readers, or is computed there by one cheap instruction from what
//! lives. Every path from such an operand's definition to a reader goes through the comparison, so
//! that the operand has the value that it had there. The same holds where an operand does not live
//! at the readers: it lives there from now on if more than [`SHARED`] comparisons are repeated for
//! each such register, which would take more registers otherwise. Readers share a copy unless more
//! predicates than there are live between them and they are apart.

mod rewrite;
mod search;

use super::{Places, Ranges, peak};
use crate::alloc::ranges::Gone;
use crate::analysis::PassCx;
use crate::ori::{Block, File, Function, InstId, VReg, table};
use crate::sorted::SortedMap;
use cranelift_entity::SecondaryMap;
use search::Search;
use smallvec::SmallVec;

/// Predicates that can live at once.
const ALL: u32 = 7;
/// Distance of points up to which readers share a copy.
const FAR: u32 = 96;
/// The same where more predicates live between them than there are.
const NEAR: u32 = 16;
/// Instructions of a copy.
const DEAREST: usize = 2;

/// Comparisons that are repeated at least, less one, for each register that lives longer for them.
const SHARED: usize = 2;

/// Registers that must live longer.
type Lacking = SmallVec<[VReg; 2]>;

/// The instructions that one copy repeats: the comparison last.
type Chain = SmallVec<[InstId; 4]>;

/// Readers that one copy serves, or the comparison itself.
struct Group {
    block: Block,
    /// Points of the first and the last reader.
    first: u32,
    last: u32,
    /// What is repeated in front of the first; nothing where the comparison serves.
    chain: Chain,
}

/// A predicate that may be elsewhere while others live.
struct Comparison {
    reg: VReg,
    /// Where it is made and made again; none of one that can only be moved to a general register.
    groups: Vec<Group>,
    /// Instructions that its copies take for each crowded point at which it lives.
    density: f64,
    /// What it reads that does not live at all its readers, in order.
    lacking: Lacking,
    chosen: bool,
}

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    cx.unchanged = true;
    let live = cx.liveness();
    if peak(cx.function, &live, File::P) <= ALL {
        return;
    }
    let (cfg, loops, dominators) = (cx.cfg(), cx.loops(), cx.dominators());
    let function = &mut *cx.function;
    let ranges = Ranges::from(function, &cfg, &Gone::default(), &live);
    let places = Places {
        cfg: &cfg,
        loops: &loops,
        dominators: &dominators,
        deeper: true,
        anchored: true,
        exchanged: false,
        uniform: false,
    };
    let search = Search::new(function, &places, &ranges, crowded(function, &ranges));
    let mut all = search.comparisons();
    choose(function, &ranges, &mut all);
    let first = search.first;
    all.retain(|comparison| comparison.chosen && !comparison.groups.is_empty());
    shared(&mut all);
    if !all.is_empty() {
        rewrite::run(function, &first, &all);
        cx.unchanged = false;
    }
}

/// Drops comparisons for which registers would live longer that too few others read.
fn shared(all: &mut Vec<Comparison>) {
    let mut sharers: SortedMap<Lacking, usize> = SortedMap::new();
    for comparison in all.iter().filter(|comparison| !comparison.lacking.is_empty()) {
        *sharers.entry(comparison.lacking.clone()).or_default() += 1;
    }
    let enough = |lacking: &Lacking| sharers.get(lacking).is_none_or(|count| *count > SHARED * lacking.len());
    all.retain(|comparison| enough(&comparison.lacking));
}

/// For each point how many points before it have more predicates than there are.
fn crowded(function: &Function, ranges: &Ranges) -> Vec<u32> {
    let mut change = vec![0i32; ranges.end as usize + 2];
    for (reg, _) in function.regs().iter().filter(|(_, data)| data.file == File::P) {
        for range in &ranges.of[reg] {
            change[range.0 as usize] += 1;
            change[range.1 as usize] -= 1;
        }
    }
    let (mut now, mut count) = (0, 0);
    let next = |change: i32| {
        let before = count;
        now += change;
        count += u32::from(now > ALL as i32);
        before
    };
    change.into_iter().map(next).collect()
}

/// Chooses comparisons until no more predicates live than there are, or none is left.
fn choose(function: &Function, ranges: &Ranges, all: &mut [Comparison]) {
    let mut of: SecondaryMap<VReg, Option<u32>> = table(function.regs().len());
    all.iter().enumerate().for_each(|(i, comparison)| of[comparison.reg] = Some(i as u32));
    let mut starts: Vec<(u32, u32, VReg)> = Vec::new();
    for (reg, _) in function.regs().iter().filter(|(_, data)| data.file == File::P) {
        starts.extend(ranges.of[reg].iter().map(|range| (range.0, range.1, reg)));
    }
    starts.sort_unstable();
    let mut live: Vec<(u32, VReg)> = Vec::new();
    for (start, end, reg) in starts {
        live.retain(|(end, _)| *end > start);
        if of[reg].is_some_and(|i| all[i as usize].chosen) {
            continue;
        }
        live.push((end, reg));
        while live.len() > ALL as usize {
            let open = |i: &u32| all[*i as usize].groups.iter().all(|g| start < g.first || g.last < start);
            let candidates = live.iter().filter_map(|(_, reg)| of[*reg]).filter(open);
            let density = |i: u32| all[i as usize].density;
            let Some(best) = candidates.min_by(|a, b| density(*a).total_cmp(&density(*b)).then(a.cmp(b))) else {
                break;
            };
            let best = &mut all[best as usize];
            best.chosen = true;
            live.retain(|(_, reg)| *reg != best.reg);
        }
    }
}
