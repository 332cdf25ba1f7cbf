//! Executes loads, stores, `cp.async` and address conversions (PTX ISA 9.7.9).
//!
//! An access must be aligned to its whole width and stay inside one allocation; otherwise it is a
//! fault that names the address. A generic address belongs to the state space whose window contains
//! it.

use super::call::TOP;
use super::cluster::RANK;
use super::layout::{CODE_BASE, CONST_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, generic};
use super::program::{Dst, Sink, Src};
use super::state::{Scene, Thread};
use super::watch::{lack, lacking};
use crate::sim::fault::{Fault, Kind};
use crate::sim::memory::{flat, load, store};
use crate::tables::ptx::Space;
use smallvec::SmallVec;

/// Size of a generic address window in bytes.
const WINDOW: u64 = 1 << 32;

/// The address operand of a memory instruction.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// The state space; `None` for generic addresses.
    pub space: Option<Space>,
    /// The base address.
    pub base: Src,
    /// The constant offset in bytes.
    pub offset: i64,
}

/// A load or store, split into consecutive pieces of at most 8 bytes.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The address of the first piece.
    pub address: Address,
    /// Size of the whole access in bytes.
    pub width: u64,
    /// The registers to load or store.
    pub pieces: Pieces,
    /// Whether it is volatile or has an order.
    pub strong: bool,
}

impl Transfer {
    /// Whether it stores.
    pub fn is_store(&self) -> bool {
        matches!(self.pieces, Pieces::Store(_))
    }

    /// The destinations of a load; empty for a store.
    pub fn sinks(&self) -> SmallVec<[Dst; 4]> {
        match &self.pieces {
            Pieces::Load(pieces) => pieces.iter().filter_map(|(sink, _)| *sink).collect(),
            Pieces::Store(_) => SmallVec::new(),
        }
    }
}

/// An asynchronous copy from global to shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// The destination in shared memory.
    pub to: Address,
    /// The source in global memory.
    pub from: Address,
    /// Number of bytes that are written.
    pub size: u64,
    /// How many of them are read.
    pub part: Part,
}

/// How many bytes of a copy are read; the rest is filled with zeros.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// All of them.
    Whole,
    /// The number that the operand gives.
    Bytes(Src),
    /// None if the predicate is true, else all.
    Ignored(Src),
}

/// The registers of an access, each with its size in bytes.
#[derive(Clone, Debug)]
pub enum Pieces {
    /// Destinations of a load.
    Load(Vec<(Sink, u64)>),
    /// Sources of a store.
    Store(Vec<(Src, u64)>),
}

/// Conversions and tests of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressOp {
    /// `cvta`: from the state space to a generic address.
    ToGeneric(Space),
    /// `cvta.to`: from a generic address to the state space.
    FromGeneric(Space),
    /// `isspacep`: whether a generic address lies in the state space.
    IsIn(Space),
}

/// Converts a generic address to its state space and the address in it.
pub fn specific(address: u64) -> (Space, u64) {
    match address & !(WINDOW - 1) {
        SHARED_WINDOW => (Space::Shared, address - SHARED_WINDOW),
        LOCAL_WINDOW => (Space::Local, address - LOCAL_WINDOW),
        CONST_WINDOW => (Space::Const, address - CONST_WINDOW),
        PARAM_WINDOW => (Space::Param, address),
        _ => (Space::Global, address),
    }
}

impl AddressOp {
    /// Applies the conversion or test.
    pub fn apply(self, address: u64) -> u64 {
        match self {
            // A move of 32 bits keeps only the place in the window.
            AddressOp::ToGeneric(Space::Param | Space::ParamEntry) if address < WINDOW => PARAM_WINDOW + address,
            AddressOp::ToGeneric(space) => generic(space, address),
            AddressOp::FromGeneric(space) => address.wrapping_sub(generic(space, 0)),
            AddressOp::IsIn(space) => {
                let (found, at) = specific(address);
                // The top byte of a shared address names another block.
                let near = space == Space::SharedCluster || found != Space::Shared || at >> RANK == 0;
                (family(space) == found && near).into()
            }
        }
    }
}

fn family(space: Space) -> Space {
    match space {
        Space::SharedCta | Space::SharedCluster => Space::Shared,
        Space::ParamEntry | Space::ParamFunc => Space::Param,
        other => other,
    }
}

impl Scene<'_> {
    /// Evaluates an address operand: the state space and the address in it.
    pub fn locate(&self, thread: &Thread, address: &Address) -> (Space, u64) {
        let at = self.value(thread, &address.base).wrapping_add(address.offset as u64);
        match address.space {
            Some(space) => match (family(space), at & !(WINDOW - 1)) {
                // Shared and local addresses have 32 bits.
                (Space::Param, PARAM_WINDOW) => (Space::Param, at),
                (Space::Param, _) => (Space::Local, at),
                (Space::Shared, _) => (Space::Shared, at & (WINDOW - 1)),
                (family, _) => (family, at),
            },
            None => specific(at),
        }
    }

    /// The bytes of an access.
    ///
    /// # Errors
    ///
    /// A misaligned, out-of-bounds or forbidden access.
    pub fn bytes<'b>(
        &'b mut self,
        thread: &'b mut Thread,
        (space, address): (Space, u64),
        width: u64,
        write: bool,
    ) -> Result<&'b mut [u8], Fault> {
        if !address.is_multiple_of(width.max(1)) {
            return Err(misaligned(space, width, address));
        }
        self.bytes_anywhere(thread, (space, address), width, write)
    }

    /// The bytes of an access without an alignment requirement.
    ///
    /// # Errors
    ///
    /// An out-of-bounds or forbidden access.
    pub fn bytes_anywhere<'b>(
        &'b mut self,
        thread: &'b mut Thread,
        (space, address): (Space, u64),
        width: u64,
        write: bool,
    ) -> Result<&'b mut [u8], Fault> {
        match space {
            Space::Global if (CODE_BASE..CODE_BASE + WINDOW).contains(&address) => {
                Err(Fault::new(format!("access to code at {address:#x}")).about(address))
            }
            Space::Global => self.global.slice(address, width, write),
            Space::Shared | Space::SharedCta | Space::SharedCluster => self.shared_bytes(address, width),
            Space::Local if address < TOP && address >= TOP - thread.taken.len() as u64 => {
                let first = TOP - thread.taken.len() as u64;
                flat(&mut thread.taken, "stack", address - first, width)
            }
            Space::Local => flat(&mut thread.memory, "local", address, width),
            Space::Const | Space::Param | Space::ParamEntry | Space::ParamFunc => {
                Err(Fault::new(format!("{} memory cannot be written", space.name())).about(address))
            }
        }
    }

    /// Performs the copy immediately.
    ///
    /// # Errors
    ///
    /// A misaligned or out-of-bounds access.
    pub fn copy(&mut self, thread: &mut Thread, c: &Copy) -> Result<(), Fault> {
        let read = match c.part {
            Part::Whole => c.size,
            Part::Bytes(src) => self.value(thread, &src).min(c.size),
            Part::Ignored(src) => c.size * u64::from(self.value(thread, &src) == 0),
        };
        let part = if let Part::Bytes(src) | Part::Ignored(src) = c.part { Some(src) } else { None };
        for src in [Some(c.from.base), Some(c.to.base), part].iter().flatten() {
            self.decide(thread, "a copy", src);
        }
        let (from, to) = (self.locate(thread, &c.from), self.locate(thread, &c.to));
        if !from.1.is_multiple_of(c.size.max(1)) {
            let what = format!("misaligned copy of {} bytes from {:#x}", c.size, from.1);
            return Err(Fault::of(Kind::Misaligned, what).about(from.1));
        }
        let mut data = vec![0; c.size as usize];
        for (byte, at) in data.iter_mut().zip(from.1..from.1 + read) {
            *byte = self.load(thread, (from.0, at), 1)? as u8;
        }
        for (piece, at) in data.chunks(8).zip((to.1..).step_by(8)) {
            self.written(thread, (to.0, at), piece.len() as u64, load(piece), 0);
        }
        self.bytes(thread, to, c.size, true)?.copy_from_slice(&data);
        Ok(())
    }

    /// Reads up to 8 bytes.
    ///
    /// # Errors
    ///
    /// An out-of-bounds or forbidden access.
    pub fn load(&mut self, thread: &mut Thread, at: (Space, u64), width: u64) -> Result<u64, Fault> {
        let (name, memory, base) = match at.0 {
            Space::Const => ("constant", &self.env.constants, 0),
            Space::Param => ("parameter", &self.env.params, PARAM_WINDOW),
            _ => return Ok(load(self.bytes_anywhere(thread, at, width, false)?)),
        };
        let offset = at.1.wrapping_sub(base);
        let bytes = offset.checked_add(width).and_then(|end| memory.get(offset as usize..end as usize));
        bytes.map(load).ok_or_else(|| {
            let (address, size) = (at.1, memory.len());
            let what = format!("{name} access of {width} bytes out of bounds at {address:#x} (size {size:#x})");
            Fault::of(Kind::OutOfBounds, what).about(address)
        })
    }

    /// Executes a load or store.
    ///
    /// # Errors
    ///
    /// A misaligned, out-of-bounds or forbidden access.
    pub fn transfer(&mut self, thread: &mut Thread, t: &Transfer) -> Result<(), Fault> {
        let (space, base) = self.locate(thread, &t.address);
        self.decide(
            thread,
            if t.is_store() { "the address of a store" } else { "the address of a load" },
            &t.address.base,
        );
        // The parameters of functions are registers, where a value may begin at any byte.
        let passed = t.address.space.is_some_and(|space| family(space) == Space::Param);
        let passed = passed && matches!(t.address.base, Src::Local(_));
        if !passed && !base.is_multiple_of(t.width.max(1)) {
            return Err(misaligned(space, t.width, base));
        }
        let mut at = base;
        if t.strong {
            self.strongly(thread, (space, at), t.is_store());
        }
        match &t.pieces {
            Pieces::Load(pieces) => {
                // Reads everything before writing a register, because a destination may also be the
                // address.
                let mut values = [(0, 0); 16];
                for (slot, (_, width)) in values.iter_mut().zip(pieces) {
                    *slot =
                        (self.load(thread, (space, at), *width)?, self.read_as(thread, (space, at), *width, t.strong));
                    at += width;
                }
                for ((value, lacks), (sink, _)) in values.into_iter().zip(pieces) {
                    put(thread, *sink, value);
                    lack(thread, *sink, lacks);
                }
            }
            Pieces::Store(pieces) => {
                for (src, width) in pieces {
                    let value = self.value(thread, src);
                    self.written_as(thread, (space, at), *width, (value, lacking(thread, src)), t.strong);
                    store(self.bytes_anywhere(thread, (space, at), *width, true)?, value);
                    at += width;
                }
            }
        }
        Ok(())
    }
}

fn misaligned(space: Space, width: u64, address: u64) -> Fault {
    let what = format!("misaligned {} access of {width} bytes at {address:#x}", space.name());
    Fault::of(Kind::Misaligned, what).about(address)
}

/// Writes a result unless the destination is `_`.
pub fn put(thread: &mut Thread, sink: Sink, value: u64) {
    if let Some(dst) = sink {
        let dst: Dst = dst;
        thread.put(dst, value);
    }
}
