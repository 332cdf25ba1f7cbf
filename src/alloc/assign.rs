//! Assigns each class the lowest free physical registers, or chooses what to spill.
//!
//! Classes with a base are already placed. Of the others, those that must not be spilled come
//! first, wide ones before narrow ones; the rest follow in the order in which they become live. A
//! class that finds no place evicts classes that are cheaper to spill, or is spilled itself. At
//! each point a physical register holds at most one live register.

use super::bundles::{Class, Classes};
use super::interference::Mask;
use super::pressure::Choice;
use crate::ori::File;
use crate::sorted::SortedMap;
use std::cell::Cell;

/// Adjacent registers from which on a class is placed before the narrower ones, which would leave
/// no gap of that width among them.
const WIDE: i32 = 16;
/// The same of uniform registers: four make a descriptor of wgmma.
const WIDE_UNIFORM: i32 = 3;

/// For each file and physical register the ranges that are taken: start, end and column.
type Owners = SortedMap<(File, i32), SortedMap<u32, (u32, u32)>>;

/// Places classes, and falls back on spilling.
pub struct Assigner<'a> {
    /// The classes to place; their `base` is the result.
    pub classes: &'a mut Classes,
    /// The columns chosen to be spilled.
    pub choice: &'a mut Choice,
    owners: Option<Owners>,
    /// The registers that a column must never use, by its number, once asked for.
    closed: Vec<Cell<Option<Mask>>>,
    /// Callee-saved registers, used only if no other is free.
    reluctant: Mask,
    /// The uniform register behind the one that was given out last, where they take turns.
    turn: Option<i32>,
    /// Gives the columns their costs.
    weigh: &'a dyn Fn(&Classes, &mut Choice),
    /// General classes that found no place.
    pub tight: Vec<u32>,
}

/// The place of a class in an order, by these numbers and then by its own.
pub struct Place {
    pub last: bool,
    /// These are small, of either sign.
    pub first: i32,
    pub width: i32,
    pub start: u32,
}

/// Sorts classes by their places.
pub fn sort(classes: &mut [u32], place: impl Fn(u32) -> Place) {
    let small = |number: i32| u128::from((number + (1 << 15)) as u16);
    let key = |id: u32| {
        let Place { last, first, width, start } = place(id);
        u128::from(last) << 112 | small(first) << 96 | u128::from(start) << 64 | small(width) << 32 | u128::from(id)
    };
    let mut keys: Vec<u128> = classes.iter().map(|id| key(*id)).collect();
    keys.sort_unstable();
    classes.iter_mut().zip(keys).for_each(|(id, key)| *id = key as u32);
}

impl<'a> Assigner<'a> {
    /// An assigner that uses the registers in `reluctant` last, and uniform ones in `turns`.
    pub fn new(
        classes: &'a mut Classes,
        choice: &'a mut Choice,
        reluctant: Mask,
        turns: bool,
        weigh: &'a dyn Fn(&Classes, &mut Choice),
    ) -> Assigner<'a> {
        let (closed, turn) = (vec![Cell::new(None); choice.columns.len()], turns.then_some(0));
        Assigner { classes, choice, owners: None, closed, reluctant, turn, weigh, tight: Vec::new() }
    }

    /// Places the classes in this order, or chooses what to spill. Returns a class that has no
    /// place and for which nothing can be spilled.
    pub fn run(&mut self, order: &[u32]) -> Option<u32> {
        let mut stuck = None;
        for id in order.iter().copied() {
            if !self.own(id).any(|n| self.choice.columns[n].chosen) && !self.place(id) {
                stuck = stuck.or(Some(id));
            }
        }
        stuck
    }

    /// The classes are about to move.
    pub fn forget_owners(&mut self) {
        self.owners = None;
    }

    /// Releases the registers of a class, from its base on.
    pub fn leave(&mut self, id: u32, base: i32) {
        let class = &self.classes.classes[id as usize];
        for column in &class.columns {
            self.classes.occupied.give_back(class.file, base + column.slot, &column.ranges);
        }
    }

    /// Bases at which each column of a class falls on a register that is free there and not among
    /// the `avoided`, and the registers that no column can use.
    pub fn open(&self, id: u32, avoided: Mask) -> (Mask, Mask) {
        let class = &self.classes.classes[id as usize];
        let (mut open, mut taken) = (Self::legal_bases(class), Mask::below(256));
        for (at, column) in class.columns.iter().enumerate() {
            let closed = self.closed(id, at);
            let own = closed.or(self.classes.occupied.taken(class.file, &column.ranges)).or(avoided);
            open = open.and(Mask::below(256).minus(own).lowered(column.slot));
            taken = taken.and(own);
        }
        (open, taken)
    }

    /// The registers that a column of a class must never use.
    fn closed(&self, id: u32, at: usize) -> Mask {
        let class = &self.classes.classes[id as usize];
        let known = &self.closed[self.choice.number(id, at)];
        known.get().unwrap_or_else(|| {
            let closed = self.classes.barred.to(class.file, &class.columns[at].ranges, &self.classes.clobbers);
            known.set(Some(closed));
            closed
        })
    }

    /// The classes without a place, in assignment order.
    pub fn order(&self) -> Vec<u32> {
        let classes = &self.classes.classes;
        let open = |id: &u32| classes[*id as usize].base.is_none() && classes[*id as usize].start().is_some();
        let mut order: Vec<u32> = (0..classes.len() as u32).filter(open).collect();
        sort(&mut order, |id| {
            let class = &classes[id as usize];
            let spillable = self.own(id).any(|n| self.choice.columns[n].spillable);
            let width = -class.width();
            let wide = if class.file == File::UR { WIDE_UNIFORM } else { WIDE };
            let first = if spillable && -width < wide { 0 } else { width };
            Place { last: spillable, first, start: class.start().unwrap_or(0), width }
        });
        order
    }

    #[inline]
    fn own(&self, class: u32) -> std::ops::Range<usize> {
        self.choice.of_class(class, self.classes.classes[class as usize].columns.len())
    }

    /// Bases at which the class as such may stand.
    fn legal_bases(class: &Class) -> Mask {
        let mut open = Mask::below(256);
        if class.least > 0 {
            open = open.minus(Mask::below(class.least));
        }
        if class.modulus == 1 {
            return open;
        }
        open.and(Mask::multiples(class.modulus, class.residue.rem_euclid(class.modulus)))
    }

    /// Bases at which no column of the class falls on a register that it must never use.
    fn unbarred(&self, id: u32) -> Mask {
        let class = &self.classes.classes[id as usize];
        class.columns.iter().enumerate().fold(Self::legal_bases(class), |open, (at, column)| {
            let closed = self.closed(id, at);
            // Negative slots count from a base above; a base is excluded if a slot would leave the
            // register file.
            open.and(Mask::below(256).minus(closed).lowered(column.slot))
        })
    }

    /// Takes a class off its registers, and returns the first of them.
    pub fn release(&mut self, id: u32) -> Option<i32> {
        let class = &mut self.classes.classes[id as usize];
        let base = class.base.take()?;
        for column in &class.columns {
            self.classes.occupied.give_back(class.file, base + column.slot, &column.ranges);
        }
        Some(base)
    }

    fn place(&mut self, id: u32) -> bool {
        self.shift_up(id);
        if self.classes.classes[id as usize].file == File::R
            && self.reluctant != Mask::default()
            && let Some(base) = self.open(id, self.reluctant).0.lowest()
        {
            self.take(id, base);
            return true;
        }
        let open = self.open(id, Mask::default()).0;
        // More uniform registers cost nothing: each value gets one that none had before, as long as
        // there are some, and so waits for nobody who reads another.
        let turn = self.turn.filter(|_| self.classes.classes[id as usize].file == File::UR);
        let next = turn.and_then(|turn| open.minus(Mask::below(turn)).lowest());
        if let Some(base) = next.or_else(|| open.lowest()) {
            if turn.is_some() {
                self.turn = Some(base + self.classes.classes[id as usize].width());
            }
            self.take(id, base);
            return true;
        }
        let open = self.unbarred(id);
        self.make_room(id, open)
    }

    /// Renumbers the slots so that the lowest is 0 and a base is never negative.
    fn shift_up(&mut self, id: u32) {
        let class = &mut self.classes.classes[id as usize];
        let lowest = class.columns.first().map_or(0, |c| c.slot);
        class.columns.iter_mut().for_each(|c| c.slot -= lowest);
        class.residue = (class.residue + lowest).rem_euclid(class.modulus);
        class.least += lowest;
    }

    pub fn take(&mut self, id: u32, base: i32) {
        let class = &mut self.classes.classes[id as usize];
        class.base = Some(base);
        for (at, column) in class.columns.iter().enumerate() {
            let number = base + column.slot;
            self.classes.occupied.take(class.file, number, &column.ranges);
            if class.file == File::R {
                let mut one = Mask::default();
                one.insert(number);
                self.reluctant = self.reluctant.minus(one);
            }
            if let Some(owners) = &mut self.owners {
                let owner = self.choice.number(id, at) as u32;
                let list = owners.entry((class.file, number)).or_default();
                list.extend(column.ranges.iter().map(|r| (r.0, (r.1, owner))));
            }
        }
    }

    fn all_owners(&self) -> Owners {
        let mut owners = Owners::new();
        for (number, info) in self.choice.columns.iter().enumerate() {
            let class = &self.classes.classes[info.class as usize];
            let column = &class.columns[info.at as usize];
            if let Some(base) = class.base {
                let list = owners.entry((class.file, base + column.slot)).or_default();
                list.extend(column.ranges.iter().map(|r| (r.0, (r.1, number as u32))));
            }
        }
        owners
    }

    /// Evicts the cheapest classes, or spills this one. False if neither is possible.
    fn make_room(&mut self, id: u32, open: Mask) -> bool {
        if self.classes.classes[id as usize].file == File::R {
            self.tight.push(id);
        }
        (self.weigh)(self.classes, self.choice);
        if self.owners.is_none() {
            self.owners = Some(self.all_owners());
        }
        let own: Vec<usize> = self.own(id).filter(|n| self.choice.columns[*n].spillable).collect();
        let own_cost: f64 = own.iter().map(|n| self.choice.columns[*n].cost).sum();
        let mut best: Option<(f64, i32, Vec<u32>)> = None;
        let mut limit = if own.is_empty() { f64::INFINITY } else { own_cost };
        for base in open.iter() {
            if let Some((cost, who)) = self.price(id, base, limit) {
                limit = cost;
                best = Some((cost, base, who));
            }
        }
        let Some((_, base, who)) = best else {
            own.iter().for_each(|n| self.choice.columns[*n].chosen = true);
            return !own.is_empty();
        };
        for number in who {
            self.evict(number);
        }
        self.take(id, base);
        true
    }

    /// The columns that conflict with a class at a base and the cost of spilling them, if below a
    /// limit.
    fn price(&self, id: u32, base: i32, limit: f64) -> Option<(f64, Vec<u32>)> {
        let class = &self.classes.classes[id as usize];
        let owners = self.owners.as_ref()?;
        let (mut cost, mut who) = (0.0, Vec::new());
        for column in &class.columns {
            let Some(list) = owners.get(&(class.file, base + column.slot)) else { continue };
            for range in &column.ranges {
                for (_, (end, owner)) in list.range(..range.1).rev() {
                    if *end <= range.0 {
                        break;
                    }
                    let info = &self.choice.columns[*owner as usize];
                    if info.chosen || who.contains(owner) {
                        continue;
                    }
                    if !info.spillable {
                        return None;
                    }
                    cost += info.cost;
                    who.push(*owner);
                    if cost >= limit {
                        return None;
                    }
                }
            }
        }
        Some((cost, who))
    }

    fn evict(&mut self, number: u32) {
        let info = self.choice.columns[number as usize];
        self.choice.columns[number as usize].chosen = true;
        let class = &self.classes.classes[info.class as usize];
        let (Some(base), column) = (class.base, &class.columns[info.at as usize]) else { return };
        self.classes.occupied.give_back(class.file, base + column.slot, &column.ranges);
        if let Some(list) = self.owners.as_mut().and_then(|o| o.get_mut(&(class.file, base + column.slot))) {
            column.ranges.iter().for_each(|r| {
                list.remove(&r.0);
            });
        }
    }
}
