//! What a register says of the lane that an election chose, and what all that write it agree on.

use crate::ptx::ast::{Parameter, RegId};
use crate::sorted::SortedMap;

/// An election, by the predicate that it writes; `None` for whichever came last.
pub type Election = Option<RegId>;

/// What a register says of the lane that an election chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// It is zero in every lane.
    Nothing,
    /// It is zero, or false, in all other lanes.
    Chosen(Election),
    /// It is not zero, or true, in all other lanes.
    Others(Election),
}

impl Says {
    pub fn inverted(self) -> Option<Says> {
        match self {
            Says::Nothing => None,
            Says::Chosen(election) => Some(Says::Others(election)),
            Says::Others(election) => Some(Says::Chosen(election)),
        }
    }

    /// The same of whichever election came last.
    pub fn of_any(self) -> Says {
        match self {
            Says::Nothing => self,
            Says::Chosen(_) => Says::Chosen(None),
            Says::Others(_) => Says::Others(None),
        }
    }

    /// What a register says that is written in two ways.
    pub fn joined(self, other: Says) -> Option<Says> {
        match (self, other) {
            (Says::Nothing, Says::Chosen(_)) => Some(other),
            (Says::Chosen(_), Says::Nothing) => Some(self),
            _ => (self == other).then_some(self),
        }
    }
}

/// What all that write a register make of it.
pub struct Verdicts(SortedMap<RegId, Option<Says>>);

impl Verdicts {
    /// What callers give a register may be anything.
    pub fn of(params: &[Parameter]) -> Verdicts {
        let given = params.iter().filter_map(|param| match param {
            Parameter::Register(reg) => Some((*reg, None)),
            Parameter::Memory(_) => None,
        });
        Verdicts(given.collect())
    }

    pub fn add(&mut self, reg: RegId, says: Option<Says>) {
        let before = self.0.entry(reg).or_insert(says);
        *before = before.zip(says).and_then(|(a, b)| a.joined(b));
    }

    /// The registers that tell one lane from the others.
    pub fn found(self) -> SortedMap<RegId, Says> {
        let known = self.0.into_iter().filter_map(|(reg, says)| Some((reg, says?)));
        known.filter(|(_, says)| *says != Says::Nothing).collect()
    }
}
