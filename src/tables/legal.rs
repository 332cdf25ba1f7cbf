//! Legalization tables: backends, families of expansions, knobs.

use super::Op;
use super::operands::Hook;
use std::sync::LazyLock;

/// What the phases of a backend expand. Source: `backends.ron`.
#[derive(Debug)]
pub struct LegalizerInfo {
    pub name: &'static str,
    /// Families that each slot expands, indexed by [`Slot`]; `None`: no handler is installed.
    pub slots: [Option<&'static [Family]>; Slot::ALL.len()],
    /// Hooks whose recipe steps are applied.
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
    /// Families that a slot expands; `None` if no handler is installed.
    pub fn families(&self, slot: Slot) -> Option<&'static [Family]> {
        self.slots[slot as usize]
    }
}

impl Family {
    /// The family of an operation that legalization expands.
    pub fn of(op: Op) -> Option<Family> {
        Family::ALL.into_iter().find(|family| family.ops().contains(&op))
    }

    /// The pseudo-operations of the family.
    pub fn ops(self) -> &'static [Op] {
        FAMILIES[self as usize]
    }

    /// Whether an operation is one of the family.
    #[inline]
    pub fn has(self, op: Op) -> bool {
        OF_OP.get(op as usize).is_some_and(|bits| bits >> self as u32 & 1 != 0)
    }
}

/// The families of each opcode, a bit for each, up to the last opcode that has one.
static OF_OP: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let pairs = || Family::ALL.into_iter().flat_map(|family| family.ops().iter().map(move |op| (family, *op)));
    let mut bits = vec![0; pairs().map(|(_, op)| op as usize + 1).max().unwrap_or(0)];
    pairs().for_each(|(family, op)| bits[op as usize] |= 1 << family as u32);
    bits
});

impl Knob {
    /// The knob of a name, or of a number from the published documents.
    pub fn by_name(text: &str) -> Option<Knob> {
        Knob::ALL.into_iter().find(|knob| knob.name() == text || knob.info().number.to_string() == text)
    }

    /// Facts of this knob.
    pub fn info(self) -> &'static KnobInfo {
        &KNOBS[self as usize]
    }
}

include!(concat!(env!("OUT_DIR"), "/legal.rs"));
