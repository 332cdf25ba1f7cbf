//! Which places hold which values at a point of the program, for the checker.

use crate::ori::{File, VReg};
use crate::sorted::SortedSet;
use cranelift_entity::EntityRef;

/// Where a value can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Register(File, u16),
    /// Word of local memory, in bytes from the stack pointer at function entry.
    Frame(i64),
    Expression(usize),
}

impl Place {
    const FIRST: Place = Place::Register(File::R, 0);
    const LAST: Place = Place::Expression(usize::MAX);
}

/// A value that a place can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    Of(VReg),
    /// A predicate as the number 0 or 1.
    AsNumber(VReg),
    /// The value of a general register at function entry.
    Came(u16),
}

impl Value {
    const LAST: Value = Value::Came(u16::MAX);

    fn first() -> Value {
        Value::Of(VReg::new(0))
    }

    /// The register whose value it is.
    pub fn register(self) -> Option<VReg> {
        match self {
            Value::Of(reg) | Value::AsNumber(reg) => Some(reg),
            Value::Came(_) => None,
        }
    }
}

/// The state at a point of the program.
#[derive(Clone, Default, PartialEq)]
pub struct State {
    held: SortedSet<(Place, Value)>,
    /// Inverse of `held`.
    places: SortedSet<(Value, Place)>,
    /// Registers that have no value yet, as bits.
    open: Vec<u64>,
    /// Offset of the stack pointer from its value at entry.
    pub stack: i64,
    /// Whether the program has lowered the stack pointer below what `alloca` took: the frame cannot
    /// be accessed until a load restores it.
    pub moved: bool,
}

impl State {
    /// The state in which nothing is held, and so many registers have no value yet.
    pub fn new(registers: usize) -> State {
        State { open: vec![u64::MAX; registers.div_ceil(64)], ..State::default() }
    }

    /// Whether a register has no value yet.
    pub fn is_open(&self, reg: VReg) -> bool {
        self.open.get(reg.index() / 64).is_some_and(|w| w >> (reg.index() % 64) & 1 != 0)
    }

    /// Notes whether a register has no value yet.
    pub fn set_open(&mut self, reg: VReg, open: bool) {
        let (word, bit) = (reg.index() / 64, 1u64 << (reg.index() % 64));
        if open { self.open[word] |= bit } else { self.open[word] &= !bit }
    }

    /// Whether a place holds a value. One that does not exist yet is held everywhere.
    pub fn holds(&self, place: Place, value: Value) -> bool {
        value.register().is_some_and(|reg| self.is_open(reg)) || self.held.contains(&(place, value))
    }

    /// A place holds this value, too.
    pub fn add(&mut self, place: Place, value: Value) {
        self.held.insert((place, value));
        self.places.insert((value, place));
    }

    /// A place holds nothing any more.
    pub fn clear(&mut self, place: Place) {
        for value in self.at(place) {
            self.held.remove(&(place, value));
            self.places.remove(&(value, place));
        }
    }

    /// The registers lose what they hold.
    pub fn lose(&mut self, lost: impl Fn(File, u16) -> bool) {
        let is_lost = |place: Place| matches!(place, Place::Register(file, number) if lost(file, number));
        self.held.retain(|(place, _)| !is_lost(*place));
        self.places.retain(|(_, place)| !is_lost(*place));
    }

    /// A place holds these values alone.
    pub fn set(&mut self, place: Place, values: Vec<Value>) {
        self.clear(place);
        values.into_iter().for_each(|v| self.add(place, v));
    }

    /// A register has a new value, which no place holds yet.
    pub fn forget(&mut self, reg: VReg) {
        for value in [Value::Of(reg), Value::AsNumber(reg)] {
            for place in self.places(value) {
                self.held.remove(&(place, value));
                self.places.remove(&(value, place));
            }
        }
        self.set_open(reg, false);
    }

    /// What a place holds.
    pub fn at(&self, place: Place) -> Vec<Value> {
        self.held.range((place, Value::first())..=(place, Value::LAST)).map(|(_, value)| *value).collect()
    }

    /// Where a value is.
    pub fn places(&self, value: Value) -> Vec<Place> {
        self.places.range((value, Place::FIRST)..=(value, Place::LAST)).map(|(_, place)| *place).collect()
    }

    /// Keeps the values of the registers that are needed.
    pub fn keep(&mut self, needed: impl Fn(VReg) -> bool) {
        let kept = |value: Value| value.register().is_none_or(&needed);
        self.held.retain(|(_, value)| kept(*value));
        self.places.retain(|(value, _)| kept(*value));
    }

    /// What holds in both states.
    pub fn join(&self, other: &State) -> State {
        let mut out = State { stack: self.stack, moved: self.moved || other.moved, ..State::default() };
        out.open = self.open.iter().zip(&other.open).map(|(a, b)| a & b).collect();
        for (one, two) in [(self, other), (other, self)] {
            for (place, value) in one.held.iter().filter(|(place, value)| two.holds(*place, *value)) {
                out.add(*place, *value);
            }
        }
        out
    }
}
