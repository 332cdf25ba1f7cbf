//! Tunables: numbers in passes that change how fast the code is, never what it computes.

/// Facts of a tunable. Source: `tunables.ron`.
#[derive(Debug)]
pub struct TunableInfo {
    /// The pass that asks for it.
    pub pass: &'static str,
    pub default: u32,
    /// Values that a search tries, in this order.
    pub tried: &'static [u32],
    /// What it decides.
    pub what: &'static str,
}

impl Tunable {
    /// Facts of this tunable.
    pub fn info(self) -> &'static TunableInfo {
        &TUNABLES[self as usize]
    }
}

/// A value for each tunable; [`Tuning::default`] has those of the table.
///
/// ```
/// use sassafras::tables::{Tunable, Tuning};
///
/// let mut tuning = Tuning::default();
/// tuning.set("loads=64").unwrap();
/// assert_eq!(tuning.get(Tunable::Loads), 64);
/// assert_eq!(tuning.to_string(), "loads=64");
/// assert!(tuning.set("lods=64").unwrap_err().contains("known are loads"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tuning {
    values: [u32; Tunable::ALL.len()],
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning { values: Tunable::ALL.map(|tunable| tunable.info().default) }
    }
}

impl Tuning {
    /// The value of a tunable.
    pub fn get(&self, tunable: Tunable) -> u32 {
        self.values[tunable as usize]
    }

    /// The same tuning with another value of one.
    pub fn with(mut self, tunable: Tunable, value: u32) -> Tuning {
        self.values[tunable as usize] = value;
        self
    }

    /// Sets a tunable from `NAME=VALUE`.
    ///
    /// # Errors
    ///
    /// An unknown name, with the list of tunables, or a value that is not a number.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text.split_once('=').ok_or_else(|| format!("Tunable '{text}' is not NAME=VALUE"))?;
        let Some(tunable) = Tunable::ALL.into_iter().find(|tunable| tunable.name() == name) else {
            let known: Vec<&str> = Tunable::ALL.iter().map(|tunable| tunable.name()).collect();
            return Err(format!("Tunable '{name}' is not known; known are {}", known.join(", ")));
        };
        // A pass adds to it what lives anyway.
        let number = value.parse().ok().filter(|value| *value <= MOST);
        let value = number.ok_or_else(|| format!("Value '{value}' of tunable '{name}' is not in 0..{MOST}"))?;
        self.values[tunable as usize] = value;
        Ok(())
    }
}

/// The highest value of a tunable.
const MOST: u32 = 1000;

impl std::fmt::Display for Tuning {
    /// Writes what differs from the table: `loads=64 order=40`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let other = Tunable::ALL.into_iter().filter(|tunable| self.get(*tunable) != tunable.info().default);
        for (place, tunable) in other.enumerate() {
            let gap = if place == 0 { "" } else { " " };
            write!(f, "{gap}{}={}", tunable.name(), self.get(tunable))?;
        }
        Ok(())
    }
}

include!(concat!(env!("OUT_DIR"), "/tuning.rs"));
