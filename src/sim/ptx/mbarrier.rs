//! Executes `mbarrier` instructions (PTX ISA 9.7.13.15).
//!
//! A barrier has the bit layout of sm_90, whatever the target. A thread whose wait fails continues
//! at the next turn of its warp, so that the others run. Asynchronous copies complete when they are
//! issued.

use super::memory::{Address, put};
use super::program::{Sink, Src};
use super::state::{Scene, Thread, Wait};
use super::watch::lack;
use crate::sim::fault::{Fault, Kind};
use crate::sim::memory::{load, store};
use crate::sim::ops::mbarrier::{Barrier, Event};
use crate::tables::ptx::Space;

/// Bytes of a barrier.
const WIDTH: u64 = 8;

/// What an instruction does to a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Init,
    Inval,
    /// So many arrivals as the number says, or one.
    Arrive {
        drops: bool,
    },
    /// The number is one of bytes to come; one arrival.
    ArriveAndExpect {
        drops: bool,
    },
    Expect,
    Complete,
    /// Arrives for the copies of the thread, which are over; one more is expected of the phase for
    /// it, or not.
    Copies {
        counted: bool,
    },
    /// Whether the phase is over that a state, or its parity, names.
    Check {
        parity: bool,
    },
}

/// An operation on a barrier.
#[derive(Clone, Copy, Debug)]
pub struct Mbarrier {
    pub how: How,
    pub address: Address,
    pub number: Option<Src>,
    pub dst: Sink,
    /// The blocks of the cluster whose barriers there it is done to, if not that of the address.
    pub blocks: Option<Src>,
}

/// Who asks in vain, over all blocks: a state in which all only ask is a deadlock.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// Since the round began, a barrier changed or a phase was over, or somebody ran who did not
    /// ask in vain.
    pub busy: bool,
    /// Rounds in a row in which that was not so.
    idle: u32,
}

/// Rounds in which all only ask, after which it is a deadlock: more than any program that asks so
/// often and then does something else.
const MOST_IDLE: u32 = 1 << 16;

impl Waits {
    /// A round of all blocks is over; whether all have only asked for long.
    pub fn round(&mut self) -> bool {
        self.idle = if std::mem::take(&mut self.busy) { 0 } else { self.idle + 1 };
        self.idle >= MOST_IDLE
    }
}

impl How {
    /// What an arrival or a number of bytes is to the barrier.
    fn event(self, number: Option<u64>) -> Option<Event> {
        let number = number.map(|n| n as u32);
        let none = Event::default();
        Some(match self {
            How::Arrive { drops } => Event { arrivals: number.unwrap_or(1), drops, ..none },
            How::ArriveAndExpect { drops } => Event { arrivals: 1, drops, expect: number.unwrap_or(0), ..none },
            How::Expect => Event { expect: number.unwrap_or(0), ..none },
            How::Complete => Event { complete: number.unwrap_or(0), ..none },
            How::Copies { counted: true } => none,
            How::Copies { counted: false } => Event { arrivals: 1, ..none },
            How::Init | How::Inval | How::Check { .. } => return None,
        })
    }
}

impl Scene<'_> {
    /// Executes an operation on a barrier, or on that of each of several blocks.
    pub fn mbarrier(&mut self, thread: &mut Thread, m: &Mbarrier) -> Result<(), Fault> {
        let Some(blocks) = m.blocks else { return self.one_mbarrier(thread, m) };
        self.decide(thread, "an operation on an mbarrier", &blocks);
        let (mask, (_, at)) = (self.value(thread, &blocks), self.locate(thread, &m.address));
        for at in self.each_block(at, Some(mask)) {
            let address = Address { base: Src::Imm(at), offset: 0, ..m.address };
            self.one_mbarrier(thread, &Mbarrier { address, blocks: None, ..*m })?;
        }
        Ok(())
    }

    fn one_mbarrier(&mut self, thread: &mut Thread, m: &Mbarrier) -> Result<(), Fault> {
        for src in [Some(m.address.base), m.number].iter().flatten() {
            self.decide(thread, "an operation on an mbarrier", src);
        }
        let (space, address) = self.locate(thread, &m.address);
        if space != Space::Shared {
            return Err(Fault::new(format!("an mbarrier in {} memory", space.name())).about(address));
        }
        let (at, number) = ((space, address), m.number.map(|src| self.value(thread, &src)));
        if m.how == How::Inval {
            return Ok(());
        }
        if m.how == How::Init {
            let word = Barrier::new(number.unwrap_or(0) as u32).word();
            self.bytes(thread, at, WIDTH, true)?;
            self.written(thread, at, WIDTH, word, 0);
            store(self.bytes(thread, at, WIDTH, true)?, word);
            self.waits.busy = true;
            return Ok(());
        }
        let old = load(self.bytes(thread, at, WIDTH, true)?);
        if self.atomically(thread, at, WIDTH, false) {
            let fault = Fault::of(Kind::Uninitialised, "an operation on an mbarrier that nobody has made");
            self.find(thread, fault.about(address), false);
        }
        if let Some(event) = m.how.event(number) {
            let new = Barrier::of(old).after(event).map_err(|what| Fault::new(what).about(address))?;
            store(self.bytes(thread, at, WIDTH, true)?, new.word());
            put(thread, m.dst, old);
            self.waits.busy = true;
        } else {
            let phase = Barrier::of(old).phase;
            let named = number.unwrap_or(0) >> if m.how == (How::Check { parity: true }) { 0 } else { 63 };
            let over = phase != (named & 1 != 0);
            put(thread, m.dst, over.into());
            self.waits.busy |= over;
            if !over {
                thread.wait = Wait::Poll(address as u32);
            }
        }
        lack(thread, m.dst, 0);
        Ok(())
    }
}
