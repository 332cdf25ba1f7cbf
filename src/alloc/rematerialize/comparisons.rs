//! Repeats comparisons before far readers where more predicates live than there are.
//!
//! A predicate without a register would go to a general register and back (SEL, ISETP). A
//! comparison whose operands still live where its result is read costs the ISETP alone. Chosen are
//! pure, unguarded instructions with a predicate as their only result and no other definition of
//! it, which dominates its readers; each operand has one definition, which dominates the
//! comparison, and lives at the readers, or is computed there by one cheap instruction from what
//! lives. Every path from such an operand's definition to a reader goes through the comparison, so
//! that the operand has the value that it had there. Readers share a copy unless more predicates
//! than there are live between them.

use super::candidates::{Definition, definitions};
use super::{Places, Ranges, first_points};
use crate::alloc::ranges::Gone;
use crate::analysis::PassCx;
use crate::analysis::def_use::{is_free, is_pure};
use crate::ori::{Block, File, Function, InstId, Operand, RegData, VReg, table};
use crate::tables::Prop;
use crate::tables::ori::Direction;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Predicates that can live at once.
const ALL: u32 = 7;
/// Distance of points up to which readers share a copy.
const FAR: u32 = 96;
/// Instructions of a copy.
const DEAREST: usize = 2;

/// The instructions that one copy repeats: the comparison last.
type Chain = SmallVec<[InstId; DEAREST]>;

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
    chosen: bool,
}

/// Where the comparisons are, and how many predicates live there.
struct Search<'a> {
    function: &'a Function,
    places: &'a Places<'a>,
    ranges: &'a Ranges,
    first: SecondaryMap<Block, u32>,
    definition: SecondaryMap<VReg, Definition>,
    /// For each register the points of its readers, with their blocks, by layout.
    readers: SecondaryMap<VReg, SmallVec<[(u32, Block); 2]>>,
    /// For each point how many points before it have more predicates than there are.
    over: Vec<u32>,
}

/// Runs the pass.
pub fn run(cx: &mut PassCx) {
    cx.unchanged = true;
    let (live, cfg, loops, dominators) = (cx.liveness(), cx.cfg(), cx.loops(), cx.dominators());
    let function = &mut *cx.function;
    if function.regs.values().filter(|data| data.file == File::P).count() <= ALL as usize {
        return;
    }
    let ranges = Ranges::from(function, &cfg, &Gone::new(), &live);
    let over = crowded(function, &ranges);
    if over.last().is_none_or(|last| *last == 0) {
        return;
    }
    let places = Places { cfg: &cfg, loops: &loops, dominators: &dominators, deeper: true, anchored: true };
    let (_, first) = first_points(function);
    let (definition, readers) = (definitions(function, &places), readers(function, &first));
    let search = Search { function, places: &places, ranges: &ranges, first, definition, readers, over };
    let mut all = search.comparisons();
    choose(function, &ranges, &mut all);
    let first = search.first;
    all.retain(|comparison| comparison.chosen && !comparison.groups.is_empty());
    if !all.is_empty() {
        rewrite(function, &first, &all);
        sweep_up(function, &all);
        cx.unchanged = false;
    }
}

/// For each point how many points before it have more predicates than there are.
fn crowded(function: &Function, ranges: &Ranges) -> Vec<u32> {
    let mut change = vec![0i32; ranges.end as usize + 2];
    for (reg, _) in function.regs.iter().filter(|(_, data)| data.file == File::P) {
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

fn readers(function: &Function, first: &SecondaryMap<Block, u32>) -> SecondaryMap<VReg, SmallVec<[(u32, Block); 2]>> {
    let mut readers: SecondaryMap<VReg, SmallVec<[(u32, Block); 2]>> = table(function.regs.len());
    for block in &function.layout {
        for (at, inst) in function.blocks[*block].iter().enumerate() {
            function.for_each_use(*inst, |reg| {
                if function.regs[reg].file == File::P {
                    readers[reg].push((first[*block] + 2 * at as u32, *block));
                }
            });
        }
    }
    readers
}

impl Search<'_> {
    /// The comparisons that may be repeated for all their readers behind others, and after them
    /// the other predicates.
    fn comparisons(&self) -> Vec<Comparison> {
        let (mut all, mut moved) = (Vec::new(), self.moved());
        for block in &self.places.cfg.rpo {
            for (at, inst) in self.function.blocks[*block].iter().enumerate() {
                let Some(reg) = self.result(*inst) else { continue };
                let point = self.first[*block] + 2 * at as u32;
                if let Some(comparison) = self.comparison(reg, (*block, *inst), point) {
                    moved[reg] = None;
                    all.push(comparison);
                }
            }
        }
        let moved = moved.iter().filter_map(|(reg, cost)| Some((reg, (*cost)?)));
        let other =
            |(reg, cost)| Comparison { reg, groups: Vec::new(), density: self.density(reg, cost), chosen: false };
        all.extend(moved.map(other));
        all
    }

    /// What moves of each predicate to a general register and back would cost.
    fn moved(&self) -> SecondaryMap<VReg, Option<f64>> {
        let mut costs: SecondaryMap<VReg, Option<f64>> = table(self.function.regs.len());
        for block in &self.places.cfg.rpo {
            let frequency = self.places.frequency(*block);
            for inst in &self.function.blocks[*block] {
                let mut add = |reg: VReg| {
                    if self.function.regs[reg].file == File::P && is_free(self.function, reg) {
                        *costs[reg].get_or_insert(0.0) += frequency;
                    }
                };
                self.function.for_each_use(*inst, &mut add);
                self.function.for_each_def(*inst, &mut add);
            }
        }
        costs
    }

    /// A cost for each crowded point at which a predicate lives.
    fn density(&self, reg: VReg, cost: f64) -> f64 {
        let crowded: u32 = self.ranges.of[reg].iter().map(|r| self.over[r.1 as usize] - self.over[r.0 as usize]).sum();
        cost / f64::from(crowded.max(1))
    }

    /// The predicate that an instruction makes, if it may be repeated.
    fn result(&self, inst: InstId) -> Option<VReg> {
        let (function, data) = (self.function, &self.function.insts[inst]);
        let (mut result, mut results) = (None, 0);
        function.for_each_def(inst, |reg| (result, results) = (Some(reg), results + 1));
        let reg = result.filter(|reg| results == 1 && function.regs[*reg].file == File::P)?;
        let known = matches!(self.definition[reg], Definition::One(maker, _) if maker == inst);
        (known && is_free(function, reg) && self.is_cheap(inst) && !data.op.has(Prop::Pseudo)).then_some(reg)
    }

    fn is_cheap(&self, inst: InstId) -> bool {
        let op = self.function.insts[inst].op;
        let slow = op.has(Prop::VariableLatency) || op.has(Prop::Fp64Pipe);
        is_pure(self.function, inst) && !slow && self.function.extras(inst).0.is_empty()
    }

    fn comparison(&self, reg: VReg, (home, inst): (Block, InstId), point: u32) -> Option<Comparison> {
        let mut groups: Vec<Group> = vec![Group { block: home, first: point, last: point, chain: Chain::new() }];
        for (at, block) in &self.readers[reg] {
            let behind = if *block == home { *at > point } else { self.places.dominators.dominates(home, *block) };
            if !behind {
                return None;
            }
            let shares = |group: &&mut Group| {
                let free = self.over[group.last as usize + 1] == self.over[*at as usize];
                group.block == *block && free && at.saturating_sub(group.last) <= FAR
            };
            match groups.iter_mut().rev().find(shares) {
                Some(group) => group.last = group.last.max(*at),
                None => {
                    let chain = self.chain((home, inst), *at)?;
                    groups.push(Group { block: *block, first: *at, last: *at, chain });
                }
            }
        }
        let copies = groups.iter().map(|g| g.chain.len() as f64 * self.places.frequency(g.block)).sum::<f64>();
        // Where nothing reads it, the comparison itself goes.
        let own = self.readers[reg].iter().any(|(at, _)| *at <= groups[0].last);
        let copies = copies - if own { 0.0 } else { self.places.frequency(home) };
        // A move to a general register, and one back for each group.
        let moves =
            self.places.frequency(home) + groups.iter().skip(1).map(|g| self.places.frequency(g.block)).sum::<f64>();
        let density = self.density(reg, copies + self.places.frequency(home));
        (groups.len() > 1 && copies <= moves).then_some(Comparison { reg, groups, density, chosen: false })
    }

    /// What computes the comparison again at a point.
    fn chain(&self, (home, inst): (Block, InstId), point: u32) -> Option<Chain> {
        let mut chain = Chain::new();
        let mut fits = true;
        self.function.for_each_use(inst, |reg| {
            if !self.stays(reg, home, inst, point) {
                match self.definition[reg] {
                    Definition::One(maker, _) if chain.contains(&maker) => {}
                    Definition::One(maker, block) if self.is_repeated(reg, maker, block, point) => chain.push(maker),
                    _ => fits = false,
                }
            }
        });
        let wide = self.function.args(inst).iter().any(|operand| operand.as_vector().is_some());
        fits &= chain.is_empty() || !wide;
        chain.push(inst);
        (fits && chain.len() <= DEAREST).then_some(chain)
    }

    /// Whether an operand can be computed again at a point by its one instruction.
    fn is_repeated(&self, reg: VReg, maker: InstId, block: Block, point: u32) -> bool {
        let (function, mut results, mut fits) = (self.function, 0, true);
        function.for_each_def(maker, |_| results += 1);
        function.for_each_use(maker, |source| fits &= self.stays(source, block, maker, point));
        let pseudo = function.insts[maker].op.has(Prop::Pseudo);
        let wide = function.args(maker).iter().any(|operand| operand.as_vector().is_some());
        results == 1 && !wide && fits && !pseudo && function.regs[reg].file == File::R && self.is_cheap(maker)
    }

    /// Whether a register that an instruction of a block reads has the same value at a later point.
    fn stays(&self, reg: VReg, home: Block, inst: InstId, point: u32) -> bool {
        let data = &self.function.regs[reg];
        if data.phys.is_some() || !matches!(data.file, File::R | File::UR) {
            return false;
        }
        let Definition::One(maker, block) = self.definition[reg] else { return false };
        let before = || self.function.blocks[home].iter().find(|i| **i == maker || **i == inst) == Some(&maker);
        let known = if block == home { before() } else { self.places.dominators.dominates(block, home) };
        let ranges = &self.ranges.of[reg];
        let lives = ranges.get(ranges.partition_point(|r| r.1 <= point)).is_some_and(|r| r.0 <= point);
        known && lives
    }
}

/// Chooses comparisons until no more predicates live than there are, or none is left.
fn choose(function: &Function, ranges: &Ranges, all: &mut [Comparison]) {
    let mut of: SecondaryMap<VReg, Option<u32>> = table(function.regs.len());
    all.iter().enumerate().for_each(|(i, comparison)| of[comparison.reg] = Some(i as u32));
    let mut starts: Vec<(u32, u32, VReg)> = Vec::new();
    for (reg, _) in function.regs.iter().filter(|(_, data)| data.file == File::P) {
        starts.extend(ranges.of[reg].iter().map(|range| (range.0, range.1, reg)));
    }
    starts.sort_unstable();
    let mut live: Vec<(u32, VReg)> = Vec::new();
    for (start, end, reg) in starts {
        live.retain(|(end, _)| *end > start);
        live.push((end, reg));
        let stands = |comparison: &Comparison| {
            !comparison.chosen
                || comparison.groups.iter().any(|g| g.first.saturating_sub(1) <= start && start <= g.last)
        };
        while live.iter().filter(|(_, reg)| of[*reg].is_none_or(|i| stands(&all[i as usize]))).count() > ALL as usize {
            let open = |i: &u32| {
                let comparison = &all[*i as usize];
                !comparison.chosen && comparison.groups.iter().all(|g| start < g.first || g.last < start)
            };
            let candidates = live.iter().filter_map(|(_, reg)| of[*reg]).filter(open);
            let density = |i: u32| all[i as usize].density;
            let Some(best) = candidates.min_by(|a, b| density(*a).total_cmp(&density(*b)).then(a.cmp(b))) else {
                break;
            };
            all[best as usize].chosen = true;
        }
    }
}

/// Puts the copies in front of their readers, which name them then.
fn rewrite(function: &mut Function, first: &SecondaryMap<Block, u32>, all: &[Comparison]) {
    let mut of: SecondaryMap<Block, Vec<(u32, VReg, &Group)>> = SecondaryMap::new();
    for comparison in all {
        for group in comparison.groups.iter().filter(|group| !group.chain.is_empty()) {
            of[group.block].push((group.first, comparison.reg, group));
        }
    }
    for block in function.layout.clone() {
        if of[block].is_empty() {
            continue;
        }
        of[block].sort_by_key(|(at, reg, _)| (*at, *reg));
        let end = first[block] + 2 * function.first_terminator(block) as u32;
        let insts = std::mem::take(&mut function.blocks[block]);
        let (mut out, mut next) = (Vec::with_capacity(insts.len() + 8), 0);
        let mut held: Vec<(VReg, VReg, u32)> = Vec::new();
        for (at, inst) in insts.into_iter().enumerate() {
            let point = first[block] + 2 * at as u32;
            held.retain(|(.., last)| point <= *last);
            // What terminators read stands in front of the first of them.
            while let Some((_, reg, group)) = of[block].get(next).filter(|(at, ..)| (*at).min(end) <= point) {
                let line = function.insts[inst].line;
                held.push((*reg, again(function, *reg, &group.chain, line, &mut out), group.last));
                next += 1;
            }
            for i in 0..function.args(inst).len() {
                if function.direction(inst, i) == Direction::Use {
                    let operand = function.args(inst)[i];
                    function.args_mut(inst)[i] = renamed(operand, &held);
                }
            }
            function.insts[inst].guard = renamed(function.insts[inst].guard, &held);
            out.push(inst);
        }
        function.blocks[block] = out;
    }
}

/// Removes comparisons, and what they alone read, that no reader is left of.
fn sweep_up(function: &mut Function, all: &[Comparison]) {
    let mut uses: SecondaryMap<VReg, u32> = table(function.regs.len());
    let insts = function.layout.iter().flat_map(|block| &function.blocks[*block]);
    insts.for_each(|inst| function.for_each_use(*inst, |reg| uses[reg] += 1));
    let mut dead: SecondaryMap<InstId, bool> = table(function.insts.len());
    // The comparison stands behind what is repeated for it.
    for inst in all.iter().flat_map(|comparison| &comparison.groups).flat_map(|group| group.chain.iter().rev()) {
        let mut read = dead[*inst];
        function.for_each_def(*inst, |reg| read |= uses[reg] > 0);
        if !read {
            function.for_each_use(*inst, |reg| uses[reg] -= 1);
            dead[*inst] = true;
        }
    }
    for block in function.layout.clone() {
        function.blocks[block].retain(|inst| !dead[*inst]);
    }
}

fn renamed(operand: Operand, held: &[(VReg, VReg, u32)]) -> Operand {
    let copy = operand.as_reg().and_then(|reg| held.iter().find(|(old, ..)| *old == reg));
    copy.map_or(operand, |(_, new, _)| operand.with_reg(*new))
}

/// Repeats a chain; the predicate that it makes.
fn again(function: &mut Function, reg: VReg, chain: &[InstId], line: u32, out: &mut Vec<InstId>) -> VReg {
    let mut made: SmallVec<[(VReg, VReg); DEAREST]> = SmallVec::new();
    for inst in chain {
        let data = function.insts[*inst];
        let mut args: SmallVec<[Operand; 8]> = function.args(*inst).into();
        for (i, operand) in args.iter_mut().enumerate() {
            let Some(old) = operand.as_reg() else { continue };
            match function.direction(*inst, i) {
                Direction::Use => {
                    let new = made.iter().find(|(from, _)| *from == old);
                    *operand = new.map_or(*operand, |(_, to)| operand.with_reg(*to));
                }
                Direction::Def => {
                    let RegData { file, varying, .. } = function.regs[old];
                    let fresh = function.regs.push(RegData { file, varying, phys: None, fixed: None });
                    made.push((old, fresh));
                    *operand = operand.with_reg(fresh);
                }
                Direction::None => {}
            }
        }
        let new = function.make_with(data.op, &args);
        let copy = &mut function.insts[new];
        (copy.mods, copy.contract, copy.line) = (data.mods, data.contract, line);
        out.push(new);
    }
    made.iter().find(|(from, _)| *from == reg).map_or(reg, |(_, to)| *to)
}
