//! Keeps the factors of wgmma products in their registers until somebody has waited.
//!
//! A wait reads the factors of the products that it waits for, so that the allocator gives their
//! registers to nothing else. Where several products may be the one that is waited for, of this
//! round of a loop or of the code before it, their factors become the same registers if no two of
//! them are alive or read at once: otherwise each would seem to live around the whole loop.

use super::flight::{Flight, Group, Set};
use super::sums::regs;
use super::{closes, is_commit};
use crate::ori::cfg::Cfg;
use crate::ori::liveness::{Liveness, RegSet};
use crate::ori::{Block, Function, InstId, Operand, VReg};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::{Op, Role};
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;

/// Joins factors, and lets waits read those that they free.
pub fn run(function: &mut Function, cfg: &Cfg) {
    let flights = Flights::new(function, cfg);
    if function.attributes().optimise && join(function, cfg, &flights) {
        keep(function, Flights::new(function, cfg));
    } else {
        keep(function, flights);
    }
}

/// What is under way at the start of each block, and what each wait frees.
struct Flights {
    starts: SecondaryMap<Block, Option<Flight>>,
    freed: SortedMap<InstId, Set>,
}

impl Flights {
    fn new(function: &Function, cfg: &Cfg) -> Flights {
        let mut starts: SecondaryMap<Block, Option<Flight>> = SecondaryMap::new();
        let mut freed: SortedMap<InstId, Set> = SortedMap::new();
        let mut work: SortedSet<usize> = (0..cfg.rpo.len()).collect();
        while let Some(number) = work.pop_first() {
            let block = cfg.rpo[number];
            let mut state = starts[block].clone().unwrap_or_else(Flight::nowhere);
            for inst in &function[block] {
                for Group { factors, .. } in pass(function, *inst, &mut state) {
                    freed.entry(*inst).or_default().extend(factors);
                }
            }
            for succ in &cfg.succs[block] {
                if starts[*succ].get_or_insert_with(Flight::nowhere).join(&state) {
                    work.insert(cfg.number[*succ]);
                }
            }
        }
        Flights { starts, freed }
    }
}

/// Goes past an instruction; the groups that it waits for.
fn pass(function: &Function, inst: InstId, state: &mut Flight) -> Vec<Group> {
    match function[inst].op {
        Op::GMMA => {
            if !is_commit(function, inst) {
                state.product(&Set::new(), &factors(function, inst).map(number).collect());
            }
            if closes(function, inst) {
                state.commit();
            }
            Vec::new()
        }
        Op::WARPGROUP => match function.imm_value(function.arg(inst, Role::A)) {
            Some(left) => state.wait(left as usize),
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn number(reg: VReg) -> u32 {
    reg.index() as u32
}

/// The registers that a product reads besides its sum.
fn factors(function: &Function, inst: InstId) -> impl Iterator<Item = VReg> {
    [Role::A, Role::E].into_iter().flat_map(|role| regs(function, inst, role)).collect::<Vec<_>>().into_iter()
}

fn keep(function: &mut Function, flights: Flights) {
    for (inst, factors) in flights.freed.into_iter().filter(|(_, factors)| !factors.is_empty()) {
        let uses: Vec<Operand> = factors.iter().map(|reg| Operand::reg(VReg::new(*reg as usize))).collect();
        function.set_extras(inst, &uses, &[]);
    }
}

/// Makes factors of which a wait frees one or another the same registers; whether there are any.
fn join(function: &mut Function, cfg: &Cfg, flights: &Flights) -> bool {
    let places = places(function);
    let mut joined = Joined::new(function, cfg, flights);
    for freed in flights.freed.values() {
        let mut alike: SortedMap<Place, Vec<VReg>> = SortedMap::new();
        for reg in freed.iter().map(|reg| VReg::new(*reg as usize)) {
            if let Some(place) = places.get(&reg) {
                alike.entry(*place).or_default().push(reg);
            }
        }
        for regs in alike.into_values() {
            regs[1..].iter().for_each(|other| joined.unite(function, regs[0], *other));
        }
    }
    joined.rename(function)
}

/// Where a register is read: in which product of its group, and as which of its factors.
type Place = (usize, usize);

/// The places of factors that are read at one place.
fn places(function: &Function) -> SortedMap<VReg, Place> {
    let mut places: SortedMap<VReg, Option<Place>> = SortedMap::new();
    for block in function.layout() {
        let mut product = 0;
        for inst in function[*block].iter().copied().filter(|inst| function[*inst].op == Op::GMMA) {
            if !is_commit(function, inst) {
                for (at, reg) in factors(function, inst).enumerate() {
                    let place = Some((product, at));
                    places.entry(reg).and_modify(|old| *old = old.filter(|_| *old == place)).or_insert(place);
                }
                product += 1;
            }
            if closes(function, inst) {
                product = 0;
            }
        }
    }
    places.into_iter().filter_map(|(reg, place)| Some((reg, place?))).collect()
}

/// Sets of factors that are one register each.
#[derive(Default)]
struct Joined {
    /// A register that stands for the set in which another is.
    into: SortedMap<VReg, VReg>,
    /// The members of each set with several, by the register that stands for it.
    members: SortedMap<VReg, Vec<VReg>>,
    /// The factors that are alive or under way where a factor is written.
    met: SortedMap<VReg, SortedSet<VReg>>,
}

impl Joined {
    fn new(function: &Function, cfg: &Cfg, flights: &Flights) -> Joined {
        let mut all = RegSet::new(function.regs().len());
        flights.freed.values().flatten().for_each(|reg| {
            all.insert(VReg::new(*reg as usize));
        });
        let mut joined = Joined::default();
        let live = Liveness::at_end(function, cfg, |_| false);
        for block in function.layout() {
            joined.meet_flights(function, &all, (*block, flights));
            joined.meet_live(function, &all, (*block, &live));
        }
        joined
    }

    /// Notes what products under way read where a factor is written.
    fn meet_flights(&mut self, function: &Function, all: &RegSet, (block, flights): (Block, &Flights)) {
        let mut state = flights.starts[block].clone().unwrap_or_else(Flight::nowhere);
        for inst in &function[block] {
            pass(function, *inst, &mut state);
            let written = |reg| {
                let met = self.met.entry(reg).or_default();
                met.extend(state.groups.iter().flat_map(|group| &group.factors).map(|r| VReg::new(*r as usize)));
            };
            function.for_each_def(*inst, keeping(all, written));
        }
    }

    /// Notes what is still to be read where a factor is written.
    fn meet_live(&mut self, function: &Function, all: &RegSet, (block, live): (Block, &Liveness)) {
        let mut now: SortedSet<VReg> = live.live[block].iter().copied().filter(|reg| all.contains(*reg)).collect();
        for inst in function[block].iter().rev() {
            let mut written = Vec::new();
            function.for_each_def(*inst, keeping(all, |reg| written.push(reg)));
            for reg in &written {
                self.met.entry(*reg).or_default().extend(now.iter().chain(&written));
            }
            if function[*inst].guard.is_null() {
                written.iter().for_each(|reg| {
                    now.remove(reg);
                });
            }
            function.for_each_use(
                *inst,
                keeping(all, |reg| {
                    now.insert(reg);
                }),
            );
        }
    }

    fn root(&self, reg: VReg) -> VReg {
        self.into.get(&reg).copied().unwrap_or(reg)
    }

    fn set(&self, root: VReg) -> Vec<VReg> {
        self.members.get(&root).cloned().unwrap_or_else(|| vec![root])
    }

    /// Whether two registers are never needed at once.
    fn are_apart(&self, a: VReg, b: VReg) -> bool {
        let meets = |a, b| self.met.get(&a).is_some_and(|met: &SortedSet<VReg>| met.contains(&b));
        !meets(a, b) && !meets(b, a)
    }

    /// Makes the sets of two registers one, if that is right.
    fn unite(&mut self, function: &Function, a: VReg, b: VReg) {
        let (a, b) = (self.root(a), self.root(b));
        let free = |reg: VReg| function[reg].phys.is_none() && function[reg].fixed.is_none();
        if a == b || !free(a) || !free(b) || function[a].file != function[b].file {
            return;
        }
        let (mut one, other) = (self.set(a), self.set(b));
        if !one.iter().all(|a| other.iter().all(|b| self.are_apart(*a, *b))) {
            return;
        }
        other.iter().for_each(|reg| {
            self.into.insert(*reg, a);
        });
        one.extend(other);
        self.members.remove(&b);
        self.members.insert(a, one);
    }

    /// Writes the sets into the function; whether there are any.
    fn rename(&self, function: &mut Function) -> bool {
        if self.into.is_empty() {
            return false;
        }
        for block in function.layout().to_vec() {
            for inst in function[block].clone() {
                let mut named = false;
                let mut note = |reg: VReg| named |= self.into.contains_key(&reg);
                function.for_each_def(inst, &mut note);
                function.for_each_use(inst, &mut note);
                if !named {
                    continue;
                }
                for at in 0..function.args(inst).len() {
                    let operand = function.args(inst)[at];
                    function.args_mut(inst)[at] = self.renamed(function, operand);
                }
                for at in 0..function.olds(inst).len() {
                    let operand = function.olds(inst)[at];
                    function.olds_mut(inst)[at] = self.renamed(function, operand);
                }
            }
        }
        true
    }

    fn renamed(&self, function: &mut Function, operand: Operand) -> Operand {
        if let Some(reg) = operand.as_reg() {
            return operand.with_reg(self.root(reg));
        }
        let Some(vector) = operand.as_vector() else { return operand };
        let regs: SmallVec<[VReg; 8]> = function.vector_regs(vector).iter().map(|reg| self.root(*reg)).collect();
        operand.with_vector(function.vector(&regs))
    }
}

/// Calls a function for the registers of a set only.
fn keeping<'a>(all: &'a RegSet, mut f: impl FnMut(VReg) + 'a) -> impl FnMut(VReg) + 'a {
    move |reg| {
        if all.contains(reg) {
            f(reg);
        }
    }
}
