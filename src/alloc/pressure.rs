//! Reduces register pressure: chooses columns to spill where more are live than there are
//! registers.
//!
//! Sweeps over the live ranges of a file in order of their starts. Where too many are live, it
//! spills the column with the least access cost for each later point at which too many live,
//! together with the columns that are always accessed with it. A column without a spillable
//! register is never chosen. Conflicts that the sweep cannot see (alignment, calls) are left to
//! `assign`; where it fails, the same sweep with a lower limit there may help.

use super::FILES;
use super::bundles::{Class, Classes};
use super::interference::Mask;
use super::ranges::{Range, sort_by_point};
use super::spill_weights::Weights;
use super::zones::Zone;
use crate::arrays::Each;
use crate::ori::{File, VReg};
use cranelift_entity::SecondaryMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Columns up to which each is looked at to find the one to spill.
const MOST_COMPARED: usize = 2048;

/// Registers by which pressure is lowered where a class finds no place.
const FEWER: u32 = 4;

/// No column: the start of a zone.
const NONE: u32 = u32::MAX;

/// All columns, numbered class by class, and which of them are chosen.
pub struct Choice {
    first: Vec<u32>,
    /// Whether the columns have their costs: most functions spill nothing.
    weighed: bool,
    /// The columns, by number.
    pub columns: Vec<Info>,
    /// Most registers of each file that live at once.
    pub peaks: [u32; FILES.len()],
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Number of its class.
    pub class: u32,
    /// Index among the columns of its class.
    pub at: u32,
    /// Whether some member may be spilled.
    pub spillable: bool,
    /// Whether it is to be spilled.
    pub chosen: bool,
    /// Point at which the pressure was too high, if the sweep chose it.
    pub point: Option<u32>,
    /// Cost of spilling its spillable members, in weighted accesses.
    pub cost: f64,
    /// Cost per point at which it is live.
    density: f64,
    together: u64,
}

impl Choice {
    /// The columns of all classes, none chosen, without costs.
    pub fn new(classes: &Classes, spillable: impl Fn(VReg) -> bool) -> Choice {
        let count = classes.classes.len();
        let (mut first, mut columns) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (id, class) in classes.classes.iter().enumerate() {
            first.push(columns.len() as u32);
            for (at, column) in class.columns.iter().enumerate() {
                columns.push(Info {
                    class: id as u32,
                    at: at as u32,
                    spillable: column.members.iter().any(|m| spillable(*m)),
                    chosen: false,
                    point: None,
                    cost: 0.0,
                    density: 0.0,
                    together: 0,
                });
            }
        }
        Choice { first, columns, weighed: false, peaks: peaks(classes) }
    }

    /// Gives the columns their costs, if they have none yet. `scale` multiplies the spill cost of a
    /// register.
    pub fn weigh<'w>(
        &mut self,
        classes: &Classes,
        weights: impl FnOnce() -> &'w Weights,
        spillable: impl Fn(VReg) -> bool,
        scale: impl Fn(VReg) -> f64,
    ) {
        if std::mem::replace(&mut self.weighed, true) {
            return;
        }
        let weights = weights();
        for info in &mut self.columns {
            let column = &classes.classes[info.class as usize].columns[info.at as usize];
            let can = column.members.iter().copied().filter(|m| spillable(*m));
            info.cost = can.map(|m| weights.cost[m] * scale(m)).sum();
            let length: f64 = column.ranges.iter().map(|r| f64::from(r.1 - r.0)).sum();
            info.density = info.cost / length.max(1.0);
            info.together = column.members.iter().fold(0, |t: u64, m| t.wrapping_add(weights.together[*m]));
        }
    }

    /// Number of a column.
    pub fn number(&self, class: u32, at: usize) -> usize {
        self.first[class as usize] as usize + at
    }

    /// Numbers of the columns of a class.
    pub fn of_class(&self, class: u32, width: usize) -> std::ops::Range<usize> {
        let first = self.first[class as usize] as usize;
        first..first + width
    }

    /// The column and those that are always accessed together with it.
    pub fn partners(&self, number: usize, class: &Class) -> impl Iterator<Item = usize> + use<'_> {
        let own = self.columns[number];
        self.of_class(own.class, class.columns.len()).filter(move |n| {
            let other = &self.columns[*n];
            *n == number || other.together == own.together && other.spillable && !other.chosen
        })
    }

    /// Sweeps over one file and chooses columns until at most `available` are live.
    pub fn relieve(&mut self, classes: &Classes, file: File, available: u32) {
        // Where fewer registers may be used, and how many.
        let closed = classes.barred.always[file as usize];
        let open = |zone: &Zone| Mask::below(zone.registers as i32).minus(closed).iter().count() as u32;
        let zones: &[Zone] = if file == File::R { &classes.barred.zones } else { &[] };
        let zones: Vec<(Range, u32)> = zones.iter().map(|z| (z.points, open(z).min(available))).collect();
        self.sweep(classes, file, available, &zones);
    }

    /// Chooses general columns so that [`FEWER`] registers fewer live where these classes do, and
    /// of the other files what `made` chose. Returns what is left of the budget, which begins as
    /// the cost of `made`; `None` if it does not suffice, or this costs no less than `made`.
    pub fn relieve_at(
        &mut self,
        classes: &Classes,
        tight: &[u32],
        (made, budget): (&Choice, Option<f64>),
    ) -> Option<f64> {
        let columns = tight.iter().flat_map(|id| &classes.classes[*id as usize].columns);
        let mut ranges: Vec<Range> = columns.flat_map(|column| column.ranges.iter().copied()).collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, range| {
            let joins = next.0 <= range.1;
            if joins {
                range.1 = range.1.max(next.1);
            }
            joins
        });
        let lives = lives(classes, File::R);
        let most = ranges.iter().filter_map(|range| lives.get(range.0 as usize..range.1 as usize)?.iter().max()).max();
        let limit = most.copied().unwrap_or(0).saturating_sub(FEWER);
        let zones: Vec<(Range, u32)> = ranges.into_iter().map(|range| (range, limit)).collect();
        self.sweep(classes, File::R, u32::MAX, &zones);
        let (cost, room) = (self.chosen_cost(classes), made.chosen_cost(classes));
        let left = budget.unwrap_or(room) - cost;
        if cost == 0.0 || cost >= room || left < 0.0 {
            return None;
        }
        let general = |info: &Info| classes.classes[info.class as usize].file == File::R;
        for (info, made) in self.columns.iter_mut().zip(&made.columns).filter(|(info, _)| !general(info)) {
            info.chosen = made.chosen;
        }
        Some(left)
    }

    /// What the chosen general columns cost.
    fn chosen_cost(&self, classes: &Classes) -> f64 {
        let general = |info: &&Info| info.chosen && classes.classes[info.class as usize].file == File::R;
        self.columns.iter().filter(general).map(|info| info.cost).sum()
    }

    /// Sweeps over one file and chooses columns until at most `available` are live, and in each of
    /// these ranges as many as it says.
    fn sweep(&mut self, classes: &Classes, file: File, available: u32, zones: &[(Range, u32)]) {
        let mut starts: Vec<(u32, u32, u32)> = Vec::new();
        for (number, info) in self.columns.iter().enumerate() {
            let class = &classes.classes[info.class as usize];
            if class.file == file && !info.chosen {
                starts.extend(class.columns[info.at as usize].ranges.iter().map(|r| (r.0, r.1, number as u32)));
            }
        }
        let mut crowded = Crowded::new(&starts, available, zones, (classes.end, self.columns.len()));
        starts.extend(zones.iter().map(|((from, _), _)| (*from, *from, NONE)));
        sort_by_point(&mut starts, |start| start.0);
        starts.chunk_by_mut(|a, b| a.0 == b.0).for_each(|same| same.sort_unstable());
        let (mut live, mut at) = (Live::default(), 0);
        for (start, end, number) in starts {
            live.leave(start, &self.columns);
            while zones.get(at).is_some_and(|zone| zone.0.1 <= start) {
                at += 1;
            }
            let available = zones.get(at).filter(|zone| zone.0.0 <= start).map_or(available, |zone| zone.1);
            // At the start of a zone those count that live on from before.
            if number != NONE {
                if self.columns[number as usize].chosen {
                    continue;
                }
                live.enter(end, number, &self.columns[number as usize]);
                crowded.enter(number, (start, end));
            }
            while live.count > available {
                let Some(worst) = live.cheapest(start, &self.columns, &crowded) else { break };
                let class = &classes.classes[self.columns[worst as usize].class as usize];
                let partners: Vec<usize> = self.partners(worst as usize, class).collect();
                for n in partners {
                    (self.columns[n].chosen, self.columns[n].point) = (true, Some(start));
                    live.count -= u32::from(live.until[VReg::from_u32(n as u32)] > start);
                }
            }
        }
    }
}

/// The points at which more live than there are registers.
struct Crowded {
    /// How many of them come before each point.
    before: Vec<u32>,
    /// How many a column's ranges behind its current one have, by column number.
    later: Vec<u32>,
}

impl Crowded {
    /// From the ranges of the columns, and the zones in which fewer registers are available; for
    /// this many points and columns.
    fn new(
        ranges: &[(u32, u32, u32)],
        available: u32,
        zones: &[(Range, u32)],
        (end, columns): (u32, usize),
    ) -> Crowded {
        let mut changes = vec![0i32; end as usize + 2];
        for (from, to, _) in ranges {
            changes[*from as usize] += 1;
            changes[*to as usize] -= 1;
        }
        let (mut now, mut count, mut zones) = (0, 0, zones.iter().peekable());
        let before = changes.into_iter().enumerate().map(|(point, change)| {
            while zones.next_if(|((_, to), _)| *to as usize <= point).is_some() {}
            let zone = zones.peek().filter(|((from, _), _)| *from as usize <= point);
            let before = count;
            now += change;
            count += u32::from(i64::from(now) > zone.map_or(available, |zone| zone.1).into());
            before
        });
        let mut crowded = Crowded { before: before.collect(), later: vec![0; columns] };
        for (from, to, number) in ranges {
            crowded.later[*number as usize] += crowded.between(*from, *to);
        }
        crowded
    }

    fn between(&self, from: u32, to: u32) -> u32 {
        self.before[to as usize] - self.before[from as usize]
    }

    /// A column begins its next range.
    fn enter(&mut self, number: u32, (from, to): Range) {
        self.later[number as usize] -= self.between(from, to);
    }

    /// How many there are from a point on at which a column lives.
    fn left(&self, number: u32, point: u32, end: u32) -> u32 {
        self.between(point, end) + self.later[number as usize]
    }
}

/// Most registers of each file that live at once.
fn peaks(classes: &Classes) -> [u32; FILES.len()] {
    FILES.each(|file| lives(classes, file).into_iter().max().unwrap_or(0))
}

/// How many registers of a file live at each point; empty if there are none.
fn lives(classes: &Classes, file: File) -> Vec<u32> {
    // By how many more live from a point on.
    let mut changes = Vec::new();
    let own = classes.classes.iter().filter(|class| class.file == file);
    for column in own.flat_map(|class| &class.columns) {
        for (first, last) in column.ranges.iter() {
            if changes.is_empty() {
                changes = vec![0i32; classes.end as usize + 1];
            }
            changes[*first as usize] += 1;
            changes[*last as usize] -= 1;
        }
    }
    let mut now = 0;
    changes
        .into_iter()
        .map(|change| {
            now += change;
            now.cast_unsigned()
        })
        .collect()
}

/// The columns that are live at the current point.
#[derive(Default)]
struct Live {
    count: u32,
    ends: BinaryHeap<Reverse<(u32, u32)>>,
    /// Those that may be spilled; some may have left.
    list: Vec<u32>,
    /// By cost per length, as the bits of a positive float, which have the same order.
    cheap: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// End of the current range of a column, by column number.
    until: SecondaryMap<VReg, u32>,
}

impl Live {
    fn leave(&mut self, point: u32, columns: &[Info]) {
        while let Some(Reverse((end, number))) = self.ends.peek().copied().filter(|e| e.0.0 <= point) {
            self.ends.pop();
            debug_assert!(end <= point);
            self.count -= u32::from(!columns[number as usize].chosen);
        }
    }

    fn enter(&mut self, end: u32, number: u32, info: &Info) {
        self.count += 1;
        self.until[VReg::from_u32(number)] = end;
        self.ends.push(Reverse((end, number)));
        if info.spillable {
            self.list.push(number);
            self.cheap.push(Reverse((info.density.to_bits(), number, end)));
        }
    }

    /// The one that costs least for each crowded point from here on; of very many the one that
    /// costs least for its length.
    fn cheapest(&mut self, point: u32, columns: &[Info], crowded: &Crowded) -> Option<u32> {
        let until = &self.until;
        // The list may be long only because of those that have left.
        if self.list.len() <= MOST_COMPARED || self.count <= MOST_COMPARED as u32 / 2 {
            let end = |number: &u32| until[VReg::from_u32(*number)];
            self.list.retain(|number| end(number) > point && !columns[*number as usize].chosen);
            let key = |number: &u32| {
                let left = crowded.left(*number, point, end(number)).max(1);
                (columns[*number as usize].cost / f64::from(left), *number)
            };
            let best = self.list.iter().map(key).min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            return best.map(|(_, number)| number);
        }
        while let Some(Reverse((_, number, end))) = self.cheap.pop() {
            if end > point && !columns[number as usize].chosen {
                return Some(number);
            }
        }
        None
    }
}
