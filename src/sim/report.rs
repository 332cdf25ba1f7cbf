//! What a run found: a list of reports, one for each kind and place, with how often.
//!
//! Input: findings of the machine as it goes. Output: reports in the order in which they first came. Invariant: the order depends on the
//! launch alone; of one instruction and kind only the first is kept, the others are counted.

use super::fault::{Fault, Kind};
use std::collections::BTreeMap;
use std::fmt;

/// Most reports that are kept; what comes after them is counted with the last.
const MOST: usize = 100;

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub fault: Fault,
    /// The instruction as the disassembler prints it; empty where there is none.
    pub instruction: String,
    /// How often it came.
    pub count: u64,
}

impl Report {
    /// Of a fault, once.
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

/// The reports of a run.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    list: Vec<Report>,
    places: BTreeMap<(Kind, Option<u64>), usize>,
}

impl Reports {
    /// Adds a finding; whether it is new.
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

    /// Whether there is one of a kind at an instruction.
    pub fn has(&self, kind: Kind, pc: u64) -> bool {
        self.places.contains_key(&(kind, Some(pc)))
    }

    /// All of them.
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
