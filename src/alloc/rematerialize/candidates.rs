//! Finds what may be computed again, what that costs, and where it is read.
//!
//! A candidate is a pure, unguarded instruction whose results have no other definition and whose
//! sources are results of such instructions, or, if anchors are allowed, registers that live
//! wherever its copies would stand, with one definition, or none that control comes to from the
//! candidate. Each comes with these places.

use super::several::Several;
use super::{Places, Ranges, bases, first_points, peak_of};
use crate::analysis::def_use::{is_free, is_pure, reads_kept};
use crate::analysis::divergence::Varying;
use crate::analysis::regions::is_chosen_uniform;
use crate::ori::cfg::Cfg;
use crate::ori::liveness::Liveness;
use crate::ori::{Block, File, Function, InstId, VReg, table};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::{Op, Prop};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// What a read of a special register costs: it takes as long as a load, in a queue of its own.
const SPECIAL: u32 = 10;
/// What a chain of instructions may cost.
const DEAREST: u32 = 12;
/// The same with anchors, one more for several results, and how many of them.
const DEAREST_ANCHORED: u32 = 2;
const ANCHORS: usize = 3;
/// How many registers that are computed from one are worth keeping that one where it would not
/// live, if each of them is a value of its own; pairs always are. One that cannot be repeated
/// itself takes the place of what is computed from it, which is worth it for more blocks on an SM.
const LEAVES: usize = 4;

/// Registers that a chain of instructions reads and does not compute.
type Anchors = SmallVec<[VReg; 4]>;

/// Readers of a candidate that one copy serves.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub place: Block,
    /// Points of the first and the last reader in the place.
    pub first: u32,
    pub last: u32,
    /// There are readers in loops behind the place.
    pub serves: bool,
}

/// An instruction that may be repeated.
pub struct Candidate {
    pub inst: InstId,
    pub home: Block,
    /// General registers that it defines.
    pub regs: SmallVec<[VReg; 4]>,
    pub groups: SmallVec<[Group; 1]>,
    pub density: f64,
    pub chosen: bool,
}

/// Where a register is defined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Definition {
    #[default]
    None,
    One(InstId, Block),
    Many,
}

pub struct Candidates {
    pub all: Vec<Candidate>,
    /// The candidate that defines a register.
    pub of: SecondaryMap<VReg, Option<u32>>,
    pub definition: SecondaryMap<VReg, Definition>,
    /// Everything that may be repeated, what is read before its readers.
    pub repeatable: Vec<(Block, InstId)>,
    /// Whether registers live longer for their sake.
    pub extended: bool,
    /// What each repeatable instruction costs with all that it reads.
    costs: SecondaryMap<InstId, u32>,
    /// The anchors of each, by number; the first of all are none.
    anchors: SecondaryMap<InstId, u32>,
    all_anchors: Vec<Anchors>,
    /// What reads uniform registers, itself or by what it reads.
    uniform: SecondaryMap<InstId, bool>,
    /// What stands before the instruction at hand in reverse postorder.
    scanned: SecondaryMap<InstId, bool>,
    several: Several,
}

impl Candidates {
    /// What may be repeated.
    pub fn new(function: &Function, places: &Places) -> Candidates {
        let mut candidates = Candidates {
            all: Vec::new(),
            of: SecondaryMap::new(),
            definition: definitions(function, places),
            several: Several::default(),
            repeatable: Vec::new(),
            extended: false,
            costs: table(function.insts().len()),
            anchors: table(function.insts().len()),
            all_anchors: vec![Anchors::new()],
            uniform: table(function.insts().len()),
            scanned: table(function.insts().len()),
        };
        candidates.several = Several::of(function, places, &candidates.definition);
        candidates.repeatable(function, places);
        candidates.list(function);
        candidates
    }

    /// Forgets what was read and chosen, and leaves what may be repeated.
    pub fn again(mut self, function: &Function) -> Candidates {
        self.extended = false;
        self.list(function);
        self
    }

    /// Those of what may be repeated that define general registers.
    fn list(&mut self, function: &Function) {
        self.of = table(function.regs().len());
        self.all.clear();
        for (block, inst) in &self.repeatable {
            let mut regs = SmallVec::new();
            function.for_each_def(*inst, |reg| {
                if function[reg].file == File::R {
                    regs.push(reg);
                }
            });
            if regs.is_empty() {
                continue;
            }
            regs.iter().for_each(|reg: &VReg| self.of[*reg] = Some(self.all.len() as u32));
            let groups = SmallVec::new();
            self.all.push(Candidate { inst: *inst, home: *block, regs, groups, density: 0.0, chosen: false });
        }
    }

    /// Most general registers that live at once whatever is repeated.
    pub fn peak_of_others(&self, function: &Function, cfg: &Cfg, live: &Liveness) -> u32 {
        let stays = |reg: VReg| {
            let data = &function[reg];
            data.file == File::R && data.phys.is_none() && self.of[reg].is_none()
        };
        peak_of(function, &cfg.rpo, live, stays, |_| 0)
    }

    /// Notes where it is read, and leaves out what is not. `lanes` tell where copies may read
    /// uniform registers.
    pub fn read(&mut self, function: &Function, places: &Places, lanes: Option<&Varying>, ranges: &mut Ranges) {
        self.readers(function, places, lanes, ranges);
        self.all.retain(|c| !c.groups.is_empty());
        self.of = table(function.regs().len());
        for (i, candidate) in self.all.iter_mut().enumerate() {
            candidate.regs.iter().for_each(|reg| self.of[*reg] = Some(i as u32));
            let mut length = 0;
            for reg in candidate.regs.iter() {
                for (first, last) in ranges.of[*reg].iter() {
                    length += last - first;
                }
            }
            let cost: f64 = candidate.groups.iter().map(|g| places.frequency(g.place)).sum();
            candidate.density = cost * f64::from(self.costs[candidate.inst]) / f64::from(length.max(1));
        }
    }

    /// Nothing is chosen any more.
    pub fn forget(&mut self) {
        self.all.iter_mut().for_each(|c| c.chosen = false);
    }

    /// Whether a register is to be computed again.
    pub fn is_gone(&self, reg: VReg) -> bool {
        self.of[reg].is_some_and(|i| self.all[i as usize].chosen)
    }

    /// Whether a register is read by copies as it is, since what defines it is not repeated.
    pub fn is_anchor(&self, reg: VReg) -> bool {
        match self.definition[reg] {
            Definition::One(maker, _) => self.costs[maker] == 0,
            Definition::Many => true,
            Definition::None => false,
        }
    }

    /// What a repeatable instruction with all that it reads takes from others.
    fn anchors_of(&self, inst: InstId) -> &[VReg] {
        &self.all_anchors[self.anchors[inst] as usize]
    }

    /// Finds what may be repeated, and what it costs.
    fn repeatable(&mut self, function: &Function, places: &Places) {
        for block in &places.cfg.rpo {
            for inst in &function[*block] {
                let cost = self.cost(function, places, (*block, *inst));
                let cost = cost.or_else(|| self.leaf(function, places, (*block, *inst)));
                self.scanned[*inst] = true;
                let Some((cost, anchors)) = cost else { continue };
                self.costs[*inst] = cost;
                if !anchors.is_empty() {
                    self.anchors[*inst] = self.all_anchors.len() as u32;
                    self.all_anchors.push(anchors);
                }
                self.repeatable.push((*block, *inst));
            }
        }
    }

    fn cost(&mut self, function: &Function, places: &Places, (block, inst): (Block, InstId)) -> Option<(u32, Anchors)> {
        let data = &function[inst];
        let pure = is_pure(function, inst) || reads_kept(function, inst);
        if !pure || data.op.has(Prop::Pseudo) || !function.extras(inst).0.is_empty() {
            return None;
        }
        let mut fits = true;
        function.for_each_def(inst, |reg| {
            fits &= self.definition[reg] != Definition::Many && is_free(function, reg);
            fits &= matches!(function[reg].file, File::R | File::P);
        });
        if !fits {
            return None;
        }
        let mut cost = match data.op {
            Op::LDC => 2,
            Op::S2R => SPECIAL,
            op if op.has(Prop::Fp64Pipe) => return None,
            op if op.has(Prop::VariableLatency) => 3,
            _ => 1,
        };
        let mut anchors = Anchors::new();
        let mut uniform = false;
        // What is not defined on every path may have a value of an earlier iteration.
        let anchored = |reg, maker, home| {
            let known = self.scanned[maker] && places.dominators.dominates(home, block);
            places.anchored && known && is_free(function, reg) && function[reg].file == File::R
        };
        let mut makers: SmallVec<[InstId; 4]> = SmallVec::new();
        let mut several: SmallVec<[VReg; 4]> = SmallVec::new();
        function.for_each_use(inst, |reg| match self.definition[reg] {
            Definition::One(maker, _) if makers.contains(&maker) => {}
            Definition::One(maker, home) if self.costs[maker] > 0 => {
                makers.push(maker);
                cost += self.costs[maker];
                anchors.extend_from_slice(self.anchors_of(maker));
                fits &= self.anchors_of(maker).is_empty() || places.dominators.dominates(home, block);
                uniform |= self.uniform[maker];
            }
            Definition::One(maker, home) if anchored(reg, maker, home) => anchors.push(reg),
            Definition::One(maker, home)
                if places.uniform && self.scanned[maker] && is_chosen_uniform(function, reg) =>
            {
                fits &= places.dominators.dominates(home, block);
                uniform = true;
            }
            Definition::Many if places.exchanged => several.push(reg),
            _ => fits = false,
        });
        fits &= several.iter().all(|reg| self.several.are_over(function, places, *reg, block));
        anchors.append(&mut several);
        anchors.sort_unstable();
        anchors.dedup();
        let mut results = 0;
        function.for_each_def(inst, |_| results += 1);
        let more = u32::from(results > 1) + u32::from(places.exchanged);
        let dearest = if anchors.is_empty() && !uniform { DEAREST } else { DEAREST_ANCHORED + more };
        self.uniform[inst] = uniform;
        (fits && cost <= dearest && anchors.len() <= ANCHORS).then_some((cost, anchors))
    }

    /// The cost of an instruction that reads a single register, with that as its anchor, whatever
    /// the register itself would cost.
    fn leaf(&self, function: &Function, places: &Places, (block, inst): (Block, InstId)) -> Option<(u32, Anchors)> {
        let data = &function[inst];
        let plain = !data.op.has(Prop::Pseudo) && !data.op.has(Prop::VariableLatency) && !data.op.has(Prop::Fp64Pipe);
        let mut fits = places.anchored && plain && is_pure(function, inst) && function.extras(inst).0.is_empty();
        if !fits {
            return None;
        }
        function.for_each_def(inst, |reg| {
            fits &= self.definition[reg] != Definition::Many && is_free(function, reg);
            fits &= function[reg].file == File::R;
        });
        let mut anchors = Anchors::new();
        function.for_each_use(inst, |reg| match self.definition[reg] {
            Definition::One(maker, home) => {
                let known = self.scanned[maker] && places.dominators.dominates(home, block);
                fits &= known && is_free(function, reg) && function[reg].file == File::R;
                anchors.push(reg);
            }
            _ => fits = false,
        });
        anchors.dedup();
        (fits && anchors.len() == 1).then_some((1, anchors))
    }

    /// Where the candidates are read. Those whose anchors do not live there are none, unless enough
    /// of them have the same anchor: it lives there then.
    fn readers(&mut self, function: &Function, places: &Places, lanes: Option<&Varying>, ranges: &mut Ranges) {
        let (_, first) = first_points(function);
        let mut kept: Vec<bool> = vec![true; self.all.len()];
        let mut lacking: Vec<Anchors> = self.all.iter().map(|_| Anchors::new()).collect();
        self.scanned = table(function.insts().len());
        let lives = |reg: &VReg, point: u32| {
            let ranges = &ranges.of[*reg];
            ranges.get(ranges.partition_point(|r| r.1 <= point)).is_some_and(|r| r.0 <= point)
        };
        for block in &places.cfg.rpo {
            for (at, inst) in function[*block].iter().enumerate() {
                let point = first[*block] + 2 * at as u32;
                function.for_each_use(*inst, |reg| {
                    if let Some(i) = self.of[reg] {
                        let candidate = &mut self.all[i as usize];
                        let anchors = &self.all_anchors[self.anchors[candidate.inst] as usize];
                        let known =
                            || self.scanned[candidate.inst] && places.dominators.dominates(candidate.home, *block);
                        kept[i as usize] &= anchors.is_empty() || known();
                        if self.uniform[candidate.inst] {
                            let place = places.place(*block, candidate.home).unwrap_or(*block);
                            kept[i as usize] &= known() && lanes.is_some_and(|lanes| !lanes.divergent.contains(place));
                        }
                        let lacking = &mut lacking[i as usize];
                        for anchor in anchors.iter().filter(|reg| !lives(reg, point)) {
                            if !lacking.contains(anchor) {
                                lacking.push(*anchor);
                            }
                        }
                        candidate.read(places, *block, point);
                    }
                });
                self.scanned[*inst] = true;
            }
        }
        let bases = self.bases(&mut kept, &lacking, places.exchanged);
        self.extended = !bases.is_empty();
        if self.extended {
            bases::extend(function, places, &first, ranges, |reg| {
                let candidate = self.of[reg]?;
                let base = lacking[candidate as usize].first().copied().filter(|base| bases.contains(base))?;
                let home = match self.definition[base] {
                    Definition::One(_, home) => home,
                    _ => self.all[candidate as usize].home,
                };
                Some((base, home))
            });
        }
        self.all.iter_mut().zip(kept).filter(|(_, kept)| !kept).for_each(|(c, _)| c.groups.clear());
    }

    /// The anchors that shall live where they do not; the candidates that lack others are none.
    fn bases(&self, kept: &mut [bool], lacking: &[Anchors], exchanged: bool) -> SortedSet<VReg> {
        let mut leaves: SortedMap<VReg, usize> = SortedMap::new();
        for ((kept, lacking), candidate) in kept.iter_mut().zip(lacking).zip(&self.all) {
            *kept &= lacking.len() <= 1;
            if let (true, Some(base)) = (*kept, lacking.first()) {
                let regs = candidate.regs.len();
                *leaves.entry(*base).or_default() += if regs > 1 { regs.max(LEAVES) } else { 1 };
            }
        }
        let enough = |base: &(VReg, usize)| base.1 >= LEAVES || exchanged && self.of[base.0].is_none();
        let bases: SortedSet<VReg> = leaves.into_iter().filter(enough).map(|base| base.0).collect();
        for (kept, lacking) in kept.iter_mut().zip(lacking) {
            *kept &= lacking.iter().all(|base| bases.contains(base));
        }
        // What others are computed from stays.
        for base in &bases {
            if let Some(i) = self.of[*base] {
                kept[i as usize] = false;
            }
        }
        bases
    }
}

/// Distance of points from which on two readers in a block have copies of their own.
pub const FAR: u32 = 96;
/// The same for predicates: there are few of them.
pub const NEAR: u32 = 4;

/// The first reader of a place that has none.
pub const NOWHERE: u32 = u32::MAX;

impl Candidate {
    fn read(&mut self, places: &Places, block: Block, point: u32) {
        let place = places.place(block, self.home).unwrap_or(self.home);
        let near = |g: &Group| g.place == place && (place != block || g.first == NOWHERE || point - g.last <= FAR);
        let at = self.groups.iter().rposition(near).unwrap_or_else(|| {
            self.groups.push(Group { place, first: NOWHERE, last: 0, serves: false });
            self.groups.len() - 1
        });
        let group = &mut self.groups[at];
        if place == block {
            (group.first, group.last) = (group.first.min(point), group.last.max(point));
        } else {
            group.serves = true;
        }
    }

    /// Whether it would live at a point of a block if it were computed again.
    pub fn stays(&self, places: &Places, block: Block, point: u32) -> bool {
        let Some(place) = places.place(block, self.home) else { return true };
        let held = |g: &Group| place != block && g.serves || g.first < point && (point <= g.last || g.serves);
        self.groups.iter().any(|g| g.place == place && held(g))
    }
}

pub fn definitions(function: &Function, places: &Places) -> SecondaryMap<VReg, Definition> {
    let mut definitions = table(function.regs().len());
    for block in &places.cfg.rpo {
        for inst in &function[*block] {
            let guarded = !function[*inst].guard.is_null();
            function.for_each_def(*inst, |reg| {
                let first = definitions[reg] == Definition::None && !guarded;
                definitions[reg] = if first { Definition::One(*inst, *block) } else { Definition::Many };
            });
        }
    }
    definitions
}
