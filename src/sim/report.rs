//! Collects the findings of a run: one report per kind and instruction, with a count.
//!
//! Reports are in the order of their first occurrence, which depends only on the launch.
//! Repetitions are counted, and only the first one is kept.

use super::fault::{Fault, Kind};
use crate::sorted::SortedMap;
use std::fmt;

/// Most reports that are kept; further ones increment the count of the last.
const MOST: usize = 100;

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The first occurrence.
    pub fault: Fault,
    /// The instruction as disassembled text; empty if there is none.
    pub instruction: String,
    /// Number of occurrences.
    pub count: u64,
}

impl Report {
    /// A report of one occurrence.
    pub fn of(fault: Fault) -> Report {
        Report { fault, instruction: String::new(), count: 1 }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.fault.kind.name(), self.fault)?;
        if !self.instruction.is_empty() {
            write!(f, ": {}", self.instruction)?;
        }
        match self.count {
            0 | 1 => Ok(()),
            count => write!(f, " ({count} times)"),
        }
    }
}

/// The reports of a run by kind and instruction.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    list: Vec<Report>,
    places: SortedMap<(Kind, Option<u64>), usize>,
}

impl Reports {
    /// Adds a finding and returns whether it is the first at its place.
    pub fn add(&mut self, fault: Fault) -> bool {
        let place = (fault.kind, fault.place.and_then(|place| place.pc));
        let known = self.places.get(&place).copied();
        if let Some(index) = known.or(self.list.len().checked_sub(1).filter(|_| self.list.len() >= MOST)) {
            self.list[index].count += 1;
            return false;
        }
        self.places.insert(place, self.list.len());
        self.list.push(Report::of(fault));
        true
    }

    /// Whether there is a report of this kind at an instruction.
    pub fn has(&self, kind: Kind, pc: u64) -> bool {
        self.places.contains_key(&(kind, Some(pc)))
    }

    /// The reports in the order of their first occurrence.
    pub fn into_list(self) -> Vec<Report> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::super::fault::Place;
    use super::*;

    #[test]
    fn a_place_is_reported_once() {
        let mut reports = Reports::default();
        let at = |pc| Fault::of(Kind::Race, "two stores").at(Place { pc: Some(pc), ..Place::default() });
        assert!(reports.add(at(16)) && !reports.add(at(16)) && reports.add(at(32)));
        assert!(reports.has(Kind::Race, 16) && !reports.has(Kind::Hazard, 16));
        let list = reports.into_list();
        assert_eq!(list.iter().map(|r| r.count).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(list[0].to_string(), "shared-memory race: two stores at pc 0x10, block (0,0,0), warp 0 (2 times)");
    }
}
