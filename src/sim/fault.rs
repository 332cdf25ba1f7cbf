//! What a program did wrong, and where.
//!
//! Input: the machine's findings. Output: one report. Invariant: everything that a cubin can do wrong ends as a
//! [`Fault`]; the machine never panics.

use std::fmt;

/// A run that could not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What happened, with the address where memory is concerned.
    pub what: String,
    /// Lane of the warp; `None` where the whole group of lanes is meant.
    pub lane: Option<u32>,
    pub place: Option<Place>,
    /// What stands there is not built here, and the text names it; the program may be right.
    pub refused: bool,
}

/// Where it happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Block of the grid, (x, y, z).
    pub block: [u32; 3],
    /// Warp of the block.
    pub warp: u32,
    /// Byte offset in the function's code.
    pub pc: u64,
}

impl Fault {
    /// A fault whose place is not known here.
    pub fn new(what: impl Into<String>) -> Fault {
        Fault { what: what.into(), lane: None, place: None, refused: false }
    }

    /// Something that is not built here.
    pub fn refused(what: impl Into<String>) -> Fault {
        Fault { refused: true, ..Fault::new(what) }
    }

    /// The same with its lane.
    pub fn on_lane(self, lane: usize) -> Fault {
        Fault { lane: Some(lane as u32), ..self }
    }

    /// The same with its place, unless it has one.
    pub fn at(mut self, place: Place) -> Fault {
        self.place.get_or_insert(place);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Place { block: [x, y, z], warp, pc }) = self.place else { return f.write_str(&self.what) };
        write!(f, "{} at pc {pc:#x}, block ({x},{y},{z}), warp {warp}", self.what)?;
        self.lane.map_or(Ok(()), |lane| write!(f, ", lane {lane}"))
    }
}

impl std::error::Error for Fault {}
