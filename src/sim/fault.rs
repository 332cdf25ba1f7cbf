//! A [`Fault`] describes what a program did wrong, and where.
//!
//! Everything that a cubin or a PTX program can do wrong ends as a fault; the simulator never
//! panics.

use crate::cubin::line_table::SourceLine;
use std::fmt;

/// The category of a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Any other kind: an invalid launch, or an invalid program.
    #[default]
    Fault,
    /// A result was read before it was ready, or its register was overwritten too early.
    Hazard,
    /// An undefined value decides what happens.
    Uninitialised,
    /// An access outside all allocations.
    OutOfBounds,
    /// An address that is not a multiple of the access width.
    Misaligned,
    /// Two unordered accesses to shared memory.
    Race,
    /// A barrier that part of a warp or block cannot reach.
    DivergentBarrier,
    /// No thread can run.
    Deadlock,
    /// The program executed a trap or a breakpoint.
    Trap,
    /// A register beyond the number that the kernel declares.
    Register,
    /// The launch executed too many instructions.
    StepLimit,
    /// The instruction is not implemented; the text names it, and the program may be right.
    Refused,
}

impl Kind {
    /// The name of the kind in reports.
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

/// Something that a program did wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The category.
    pub kind: Kind,
    /// What happened, with the address if memory is concerned.
    pub what: String,
    /// The lane, or the lowest lane of several; `None` if the fault concerns no particular lane.
    pub lane: Option<u32>,
    /// Block, warp and instruction.
    pub place: Option<Place>,
    /// The faulting address, in its own state space.
    pub address: Option<u64>,
    /// The source line, if the cubin has a line table.
    pub source: Option<SourceLine>,
}

/// The position of a fault in the launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Block of the grid, (x, y, z).
    pub block: [u32; 3],
    /// Warp of the block.
    pub warp: u32,
    /// Byte offset in the function's code; `None` if PTX source is executed.
    pub pc: Option<u64>,
}

impl From<String> for Fault {
    fn from(what: String) -> Fault {
        Fault::new(what)
    }
}

impl Fault {
    /// A fault of the kind [`Kind::Fault`] without a position.
    pub fn new(what: impl Into<String>) -> Fault {
        Fault::of(Kind::Fault, what)
    }

    /// A fault of the given kind without a position.
    pub fn of(kind: Kind, what: impl Into<String>) -> Fault {
        Fault { kind, what: what.into(), lane: None, place: None, address: None, source: None }
    }

    /// A fault for an instruction that is not implemented.
    pub fn refused(what: impl Into<String>) -> Fault {
        Fault::of(Kind::Refused, what)
    }

    /// Whether the fault means that an instruction is not implemented.
    pub fn is_refused(&self) -> bool {
        self.kind == Kind::Refused
    }

    /// Adds the faulting address.
    pub fn about(self, address: u64) -> Fault {
        Fault { address: Some(address), ..self }
    }

    /// Sets the lane.
    pub fn on_lane(self, lane: usize) -> Fault {
        Fault { lane: Some(lane as u32), ..self }
    }

    /// Sets the lane to the lowest of `lanes`, unless there is one.
    pub fn among(mut self, lanes: u32) -> Fault {
        if lanes != 0 {
            self.lane.get_or_insert(lanes.trailing_zeros());
        }
        self
    }

    /// Sets the position, unless there is one.
    pub fn at(mut self, place: Place) -> Fault {
        self.place.get_or_insert(place);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The PTX interpreter writes the position into the text itself.
        let Some(Place { block: [x, y, z], warp, pc: Some(pc) }) = self.place else { return f.write_str(&self.what) };
        write!(f, "{} at pc {pc:#x}", self.what)?;
        self.source.as_ref().map_or(Ok(()), |line| write!(f, " ({line})"))?;
        write!(f, ", block ({x},{y},{z}), warp {warp}")?;
        self.lane.map_or(Ok(()), |lane| write!(f, ", lane {lane}"))
    }
}

impl std::error::Error for Fault {}
