//! What a program did wrong, and where.
//!
//! Input: the machine's findings. Output: one report. Invariant: everything that a cubin can do wrong ends as a
//! [`Fault`]; the machine never panics.

use crate::cubin::line_table::SourceLine;
use std::fmt;

/// What kind of wrong it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Of no other kind: the launch itself, or a program that means nothing.
    #[default]
    Fault,
    /// A result was read, or its register written again, before its time.
    Hazard,
    /// Something without a value decides what happens.
    Uninitialised,
    OutOfBounds,
    Misaligned,
    Race,
    DivergentBarrier,
    Deadlock,
    Trap,
    /// A register beyond those that the kernel declares.
    Register,
    StepLimit,
    /// What stands there is not built here, and the text names it; the program may be right.
    Refused,
}

impl Kind {
    /// Its name, as people and programs read it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Fault => "fault",
            Kind::Hazard => "hazard",
            Kind::Uninitialised => "uninitialised",
            Kind::OutOfBounds => "out of bounds",
            Kind::Misaligned => "misaligned",
            Kind::Race => "shared-memory race",
            Kind::DivergentBarrier => "divergent barrier",
            Kind::Deadlock => "deadlock",
            Kind::Trap => "trap",
            Kind::Register => "register beyond the declared count",
            Kind::StepLimit => "step limit",
            Kind::Refused => "not built",
        }
    }
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: Kind,
    /// What happened, with the address where memory is concerned.
    pub what: String,
    /// Lane of the warp: the lowest of those that it is about; `None` where it is about none.
    pub lane: Option<u32>,
    pub place: Option<Place>,
    /// The address that it is about, in its own space.
    pub address: Option<u64>,
    /// Line of the source, where the cubin says it.
    pub source: Option<SourceLine>,
}

/// Where it happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Block of the grid, (x, y, z).
    pub block: [u32; 3],
    /// Warp of the block.
    pub warp: u32,
    /// Byte offset in the function's code; `None` where source text is executed.
    pub pc: Option<u64>,
}

impl Fault {
    /// A fault whose place is not known here.
    pub fn new(what: impl Into<String>) -> Fault {
        Fault::of(Kind::Fault, what)
    }

    /// A fault of a kind.
    pub fn of(kind: Kind, what: impl Into<String>) -> Fault {
        Fault { kind, what: what.into(), lane: None, place: None, address: None, source: None }
    }

    /// Something that is not built here.
    pub fn refused(what: impl Into<String>) -> Fault {
        Fault::of(Kind::Refused, what)
    }

    /// Whether it says that something is not built here.
    pub fn is_refused(&self) -> bool {
        self.kind == Kind::Refused
    }

    /// The same with the address that it is about.
    pub fn about(self, address: u64) -> Fault {
        Fault { address: Some(address), ..self }
    }

    /// The same with its lane.
    pub fn on_lane(self, lane: usize) -> Fault {
        Fault { lane: Some(lane as u32), ..self }
    }

    /// The same with the lowest of these lanes, unless it has one.
    pub fn among(mut self, lanes: u32) -> Fault {
        if lanes != 0 {
            self.lane.get_or_insert(lanes.trailing_zeros());
        }
        self
    }

    /// The same with its place, unless it has one.
    pub fn at(mut self, place: Place) -> Fault {
        self.place.get_or_insert(place);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Who executes source text says the place in words of its own.
        let Some(Place { block: [x, y, z], warp, pc: Some(pc) }) = self.place else { return f.write_str(&self.what) };
        write!(f, "{} at pc {pc:#x}", self.what)?;
        self.source.as_ref().map_or(Ok(()), |line| write!(f, " ({line})"))?;
        write!(f, ", block ({x},{y},{z}), warp {warp}")?;
        self.lane.map_or(Ok(()), |lane| write!(f, ", lane {lane}"))
    }
}

impl std::error::Error for Fault {}
