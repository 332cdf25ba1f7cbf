//! Finds the comparisons that may be repeated, their readers and what copies would cost.

use super::{Chain, Comparison, DEAREST, FAR, Group, Lacking, NEAR, shared};
use crate::alloc::ranges::Ranges;
use crate::alloc::rematerialize::candidates::{Definition, definitions};
use crate::alloc::rematerialize::{Places, first_points};
use crate::analysis::def_use::{is_free, is_pure};
use crate::ori::list_table::ListTable;
use crate::ori::{Block, File, Function, InstId, VReg, table};
use crate::tables::Prop;
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Where the comparisons are, and how many predicates live there.
pub struct Search<'a> {
    function: &'a Function,
    places: &'a Places<'a>,
    ranges: &'a Ranges,
    /// The first point of each block.
    pub first: SecondaryMap<Block, u32>,
    /// The place of each instruction in its block.
    order: SecondaryMap<InstId, u32>,
    definition: SecondaryMap<VReg, Definition>,
    /// For each register the points of its readers, with their blocks, by layout.
    readers: Readers,
    /// For each point how many points before it have more predicates than there are.
    over: Vec<u32>,
}

fn order(function: &Function) -> SecondaryMap<InstId, u32> {
    let mut order = table(function.insts().len());
    for block in function.layout() {
        function[*block].iter().enumerate().for_each(|(at, inst)| order[*inst] = at as u32);
    }
    order
}

type Readers = ListTable<VReg, SmallVec<[(u32, Block); 2]>>;

fn readers(function: &Function, first: &SecondaryMap<Block, u32>) -> Readers {
    let mut readers = Readers::new(function.regs().len());
    for block in function.layout() {
        for (at, inst) in function[*block].iter().enumerate() {
            function.for_each_use(*inst, |reg| {
                if function[reg].file == File::P {
                    readers[reg].push((first[*block] + 2 * at as u32, *block));
                }
            });
        }
    }
    readers
}

impl<'a> Search<'a> {
    /// `over`: for each point how many points before it are crowded.
    pub fn new(function: &'a Function, places: &'a Places<'a>, ranges: &'a Ranges, over: Vec<u32>) -> Search<'a> {
        let (_, first) = first_points(function);
        let (definition, readers) = (definitions(function, places), readers(function, &first));
        Search { function, places, ranges, first, order: order(function), definition, readers, over }
    }

    /// The comparisons that may be repeated for all their readers behind others, and after them
    /// the other predicates.
    pub fn comparisons(&self) -> Vec<Comparison> {
        let mut all = Vec::new();
        for block in &self.places.cfg.rpo {
            for (at, inst) in self.function[*block].iter().enumerate() {
                let Some(reg) = self.result(*inst) else { continue };
                let point = self.first[*block] + 2 * at as u32;
                all.extend(self.comparison(reg, (*block, *inst), point));
            }
        }
        shared(&mut all);
        let mut moved = self.moved();
        all.iter().for_each(|comparison| moved[comparison.reg] = None);
        let moved = moved.iter().filter_map(|(reg, cost)| Some((reg, (*cost)?)));
        let other = |(reg, cost)| Comparison {
            reg,
            density: self.density(reg, cost),
            groups: Vec::new(),
            lacking: Lacking::new(),
            chosen: false,
        };
        all.extend(moved.map(other));
        all
    }

    /// What moves of each predicate to a general register and back would cost.
    fn moved(&self) -> SecondaryMap<VReg, Option<f64>> {
        let mut costs: SecondaryMap<VReg, Option<f64>> = table(self.function.regs().len());
        for block in &self.places.cfg.rpo {
            let frequency = self.places.frequency(*block);
            for inst in &self.function[*block] {
                let mut add = |reg: VReg| {
                    if self.function[reg].file == File::P && is_free(self.function, reg) {
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
        let (function, data) = (self.function, &self.function[inst]);
        let (mut result, mut results) = (None, 0);
        function.for_each_def(inst, |reg| (result, results) = (Some(reg), results + 1));
        let reg = result.filter(|reg| results == 1 && function[*reg].file == File::P)?;
        let known = matches!(self.definition[reg], Definition::One(maker, _) if maker == inst);
        (known && is_free(function, reg) && self.is_cheap(inst) && !data.op.has(Prop::Pseudo)).then_some(reg)
    }

    fn is_cheap(&self, inst: InstId) -> bool {
        let op = self.function[inst].op;
        let slow = op.has(Prop::VariableLatency) || op.has(Prop::Fp64Pipe);
        is_pure(self.function, inst) && !slow && self.function.extras(inst).0.is_empty()
    }

    fn comparison(&self, reg: VReg, (home, inst): (Block, InstId), point: u32) -> Option<Comparison> {
        // A copy for the instruction behind it gains nothing.
        if self.readers[reg][..] == [(point + 2, home)] {
            return None;
        }
        let mut lacking = Lacking::new();
        let mut groups: Vec<Group> = vec![Group { block: home, first: point, last: point, chain: Chain::new() }];
        for (at, block) in &self.readers[reg] {
            let behind = if *block == home { *at > point } else { self.places.dominators.dominates(home, *block) };
            if !behind {
                return None;
            }
            let shares = |group: &&mut Group| {
                let free = self.over[group.last as usize + 1] == self.over[*at as usize];
                group.block == *block && at.saturating_sub(group.last) <= if free { FAR } else { NEAR }
            };
            // The readers come in the order of the layout.
            match groups.last_mut().filter(shares) {
                Some(group) => group.last = group.last.max(*at),
                None => {
                    let chain = self.chain((home, inst), *at, &mut lacking)?;
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
        lacking.sort_unstable();
        lacking.dedup();
        // Those that take no register come first.
        let dearer = if lacking.is_empty() { 1.0 } else { 2.0 };
        let density = self.density(reg, copies + self.places.frequency(home)) * dearer;
        let pays = groups.len() > 1 && copies <= moves;
        pays.then_some(Comparison { reg, groups, density, lacking, chosen: false })
    }

    /// What computes the comparison again at a point; what it reads that does not live there.
    fn chain(&self, (home, inst): (Block, InstId), point: u32, lacking: &mut Lacking) -> Option<Chain> {
        let mut chain = Chain::new();
        let mut fits = true;
        self.function.for_each_use(inst, |reg| {
            if !self.stays(reg, home, inst, point) {
                match self.definition[reg] {
                    Definition::One(maker, _) if chain.contains(&maker) => {}
                    Definition::One(maker, block)
                        if self.precedes((block, maker), (home, inst))
                            && self.is_repeated(reg, maker, (block, point), lacking) =>
                    {
                        chain.push(maker);
                    }
                    Definition::One(..) if self.keeps(reg, home, inst) => lacking.push(reg),
                    _ => fits = false,
                }
            }
        });
        let wide = self.function.args(inst).iter().any(|operand| operand.as_vector().is_some());
        fits &= chain.is_empty() || !wide;
        chain.push(inst);
        (fits && chain.len() <= DEAREST).then_some(chain)
    }

    /// Whether an operand can be computed again at a point by its one instruction: a register from
    /// what lives there, a predicate also from what could live there.
    fn is_repeated(&self, reg: VReg, maker: InstId, (block, point): (Block, u32), lacking: &mut Lacking) -> bool {
        let (function, mut results) = (self.function, 0);
        let is_predicate = function[reg].file == File::P && is_free(function, reg);
        function.for_each_def(maker, |_| results += 1);
        let wide = function.args(maker).iter().any(|operand| operand.as_vector().is_some());
        let pseudo = function[maker].op.has(Prop::Pseudo);
        let mut fits = results == 1 && !wide && !pseudo && (is_predicate || function[reg].file == File::R);
        let mut more = Lacking::new();
        function.for_each_use(maker, |source| {
            if !self.stays(source, block, maker, point) {
                fits &= is_predicate && self.keeps(source, block, maker);
                more.push(source);
            }
        });
        fits &= self.is_cheap(maker);
        lacking.extend(more.into_iter().filter(|_| fits));
        fits
    }

    /// Whether a register that an instruction of a block reads has the same value at a later point,
    /// and lives there.
    fn stays(&self, reg: VReg, home: Block, inst: InstId, point: u32) -> bool {
        let data = &self.function[reg];
        if data.phys.is_some() || !matches!(data.file, File::R | File::UR) {
            return false;
        }
        let Definition::One(maker, block) = self.definition[reg] else { return false };
        let ranges = &self.ranges.of[reg];
        let lives = ranges.get(ranges.partition_point(|r| r.1 <= point)).is_some_and(|r| r.0 <= point);
        lives && self.precedes((block, maker), (home, inst))
    }

    /// Whether a general register that an instruction of a block reads would have the same value
    /// behind it.
    fn keeps(&self, reg: VReg, home: Block, inst: InstId) -> bool {
        let Definition::One(maker, block) = self.definition[reg] else { return false };
        let general = self.function[reg].file == File::R && is_free(self.function, reg);
        general && self.precedes((block, maker), (home, inst))
    }

    /// Whether an instruction dominates another one, which could read the value of an earlier
    /// iteration otherwise.
    fn precedes(&self, (block, maker): (Block, InstId), (home, inst): (Block, InstId)) -> bool {
        if block == home {
            return self.order[maker] < self.order[inst];
        }
        self.places.dominators.dominates(block, home)
    }
}
