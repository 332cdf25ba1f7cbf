//! Values of the knobs of `tables/knobs.ron`, which tune or disable phases.

use crate::tables::Knob;

/// A value for each knob; [`Knobs::default`] has those of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knobs {
    values: [i64; Knob::ALL.len()],
}

impl Default for Knobs {
    fn default() -> Knobs {
        Knobs { values: Knob::ALL.map(|knob| knob.info().default) }
    }
}

impl Knobs {
    /// Value of a knob; 0 and 1 for switches.
    pub fn get(&self, knob: Knob) -> i64 {
        self.values[knob as usize]
    }

    /// Whether a knob that is a switch is on.
    pub fn is_on(&self, knob: Knob) -> bool {
        self.get(knob) != 0
    }

    /// Sets a knob from `NAME=VALUE`; the name may also be the number of the published documents.
    ///
    /// # Errors
    ///
    /// An unknown name, with the list of knobs, or a value that is not a number.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text.split_once('=').ok_or_else(|| format!("Knob '{text}' is not NAME=VALUE"))?;
        let Some(knob) = Knob::by_name(name) else {
            let known: Vec<&str> = Knob::ALL.iter().map(|knob| knob.name()).collect();
            return Err(format!("Knob '{name}' is not known; known are {}", known.join(", ")));
        };
        let value = value.parse().map_err(|_| format!("Value '{value}' of knob '{name}' is not an integer"))?;
        self.values[knob as usize] = value;
        Ok(())
    }
}
