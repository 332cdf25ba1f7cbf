//! Chooses what goes to memory where more values are live than there are registers.
//!
//! Input: classes, the number of registers of each file. Output: the columns chosen are noted in `Choice`. One sweep over the
//! ranges of a file in the order of their starts: where more are live than fit, the one whose accesses cost least for the
//! length it is live goes, with those that are always accessed together with it. Invariant: a column without a register that may be
//! spilled is never chosen; what the sweep cannot solve (alignment, calls) is left to `assign`.

use super::classes::{Class, Classes};
use super::weights::Weights;
use crate::ori::{File, VReg};
use cranelift_entity::SecondaryMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is known of each column, and which ones were chosen. Columns are numbered class by class.
pub struct Choice {
    first: Vec<u32>,
    pub columns: Vec<Info>,
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    pub class: u32,
    /// Position among the columns of its class.
    pub at: u32,
    /// Some member may be spilled.
    pub spillable: bool,
    pub chosen: bool,
    /// Point at which there were too many, where the sweep chose it.
    pub point: Option<u32>,
    pub cost: f64,
    /// Cost for each point at which it is live.
    density: f64,
    together: u64,
}

impl Choice {
    pub fn new(
        classes: &Classes,
        weights: &Weights,
        spillable: impl Fn(VReg) -> bool,
        scale: impl Fn(VReg) -> f64,
    ) -> Choice {
        let mut choice = Choice { first: Vec::with_capacity(classes.classes.len()), columns: Vec::new() };
        for (id, class) in classes.classes.iter().enumerate() {
            choice.first.push(choice.columns.len() as u32);
            for (at, column) in class.columns.iter().enumerate() {
                let can = || column.members.iter().copied().filter(|m| spillable(*m));
                let cost: f64 = can().map(|m| weights.cost[m] * scale(m)).sum();
                let length: f64 = column.ranges.iter().map(|r| f64::from(r.1 - r.0)).sum();
                choice.columns.push(Info {
                    class: id as u32,
                    at: at as u32,
                    spillable: can().next().is_some(),
                    chosen: false,
                    point: None,
                    cost,
                    density: cost / length.max(1.0),
                    together: column.members.iter().fold(0, |t: u64, m| t.wrapping_add(weights.together[*m])),
                });
            }
        }
        choice
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

    /// The sweep over one file.
    pub fn relieve(&mut self, classes: &Classes, file: File, available: u32) {
        let mut starts: Vec<(u32, u32, u32)> = Vec::new();
        for (number, info) in self.columns.iter().enumerate() {
            let class = &classes.classes[info.class as usize];
            if class.file == file && !info.chosen {
                starts.extend(class.columns[info.at as usize].ranges.iter().map(|r| (r.0, r.1, number as u32)));
            }
        }
        starts.sort_unstable();
        let mut live = Live::default();
        for (start, end, number) in starts {
            live.leave(start, &self.columns);
            if self.columns[number as usize].chosen {
                continue;
            }
            live.enter(end, number, &self.columns[number as usize]);
            while live.count > available {
                let Some(worst) = live.cheapest(start, &self.columns) else { break };
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

/// The columns live at the sweep's point.
#[derive(Default)]
struct Live {
    count: u32,
    ends: BinaryHeap<Reverse<(u32, u32)>>,
    /// By cost for length, as the bits of a positive float, which order like it.
    cheap: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// End of the range that a column is in. The key is the number of a column.
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
            self.cheap.push(Reverse((info.density.to_bits(), number, end)));
        }
    }

    fn cheapest(&mut self, point: u32, columns: &[Info]) -> Option<u32> {
        while let Some(Reverse((_, number, end))) = self.cheap.pop() {
            if end > point && !columns[number as usize].chosen {
                return Some(number);
            }
        }
        None
    }
}
