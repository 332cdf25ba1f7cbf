//! Legalization: backends, families of expansions, knobs.

use super::Op;
use super::operands::Hook;

/// What a backend's phases expand. Source: `backends.ron`.
#[derive(Debug)]
pub struct LegalizerInfo {
    pub name: &'static str,
    /// Families that each slot expands, by [`Slot`]; `None`: no handler is installed.
    pub slots: [Option<&'static [Family]>; Slot::ALL.len()],
    /// Hooks of recipes of which it takes the steps.
    pub hooks: &'static [Hook],
}

/// Facts of a knob. Source: `knobs.ron`.
#[derive(Debug)]
pub struct KnobInfo {
    /// Number in the published documents.
    pub number: u16,
    pub default: i64,
    /// What it decides.
    pub gates: &'static str,
}

impl LegalizerInfo {
    /// Families that a slot expands; `None` where no handler is installed.
    pub fn families(&self, slot: Slot) -> Option<&'static [Family]> {
        self.slots[slot as usize]
    }
}

impl Family {
    /// The family that an operation is of, if legalization expands it.
    pub fn of(op: Op) -> Option<Family> {
        Family::ALL.into_iter().find(|family| family.ops().contains(&op))
    }

    pub fn ops(self) -> &'static [Op] {
        FAMILIES[self as usize]
    }
}

impl Knob {
    /// The knob of a name, or of a number in the published documents.
    pub fn by_name(text: &str) -> Option<Knob> {
        Knob::ALL.into_iter().find(|knob| knob.name() == text || knob.info().number.to_string() == text)
    }

    pub fn info(self) -> &'static KnobInfo {
        &KNOBS[self as usize]
    }
}

include!(concat!(env!("OUT_DIR"), "/legal.rs"));
