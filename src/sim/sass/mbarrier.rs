//! Executes SYNCS, ARRIVES and ATOMS.ARRIVE, the instructions of mbarriers.
//!
//! Lanes act one after the other, lowest first. A wait for a phase that is not complete fails at
//! once, and the group of lanes ends its turn at the next jump, so that a polling loop lets the
//! others run. Copies complete when they are issued, so their arrival happens at once.

use super::super::fault::{Fault, Kind};
use super::super::memory::{load, store};
use super::super::ops::mbarrier::{Barrier, Event, arrive_old};
use super::access::address;
use super::block::Block;
use super::cluster;
use super::code::Code;
use super::exec::{Machine, lowest_if_uniform};
use super::warp::lanes_of;

/// Bytes of a barrier.
const WIDTH: u64 = 8;

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    None,
    One,
    Operand,
    /// As many as there are lanes that execute the instruction.
    Lanes,
}

/// What an instruction does to a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Puts words there, which a register pair holds.
    Exchange,
    /// Arrivals, bytes to come, bytes that have come. `together`: the first result is the mask of
    /// the lanes, the second the high word before any. `copies`: what it says is that copies of the
    /// warp are over. `several`: at the barriers of the blocks of a mask.
    Arrive {
        arrivals: Number,
        expect: Number,
        complete: Number,
        drops: bool,
        together: bool,
        copies: bool,
        several: bool,
    },
    /// Whether the phase is another one than that in bit 31 of a register.
    Check,
    /// An arrival at a barrier without a unit.
    ArriveOld { copies: bool },
    /// Nothing that can be seen.
    End,
}

impl Act {
    /// Whether it says that copies of the warp are over.
    pub fn ends_copies(self) -> bool {
        matches!(self, Act::Arrive { copies: true, .. } | Act::ArriveOld { copies: true })
    }
}

/// Executes one of them.
pub fn execute(
    m: &mut Machine,
    block: &mut Block,
    warp: usize,
    code: &Code,
    active: u32,
    act: Act,
) -> Result<(), Fault> {
    if act == Act::End {
        return Ok(());
    }
    let several = matches!(act, Act::Arrive { several: true, .. });
    // With a mask it has no result, which would tell that one lane acts for all.
    let lanes = if several { active & active.wrapping_neg() } else { lowest_if_uniform(code, active) };
    let mut over = 0;
    let mut first = None;
    for lane in lanes_of(lanes) {
        let w = &block.warps[warp];
        let at = address(w, code, lane);
        let b = match act {
            Act::Arrive { arrivals: Number::Lanes, .. } => active.count_ones().into(),
            _ => w.get(&code.b, lane),
        };
        let place = |fault: Fault| fault.on_lane(lane);
        let blocks = several.then(|| w.get(&code.c, lane) as u32);
        let mut old = 0;
        for at in cluster::each(at, blocks) {
            old = load(slot(m, block, at).map_err(place)?);
            let new = changed(act, old, b).map_err(|what| Fault::new(what).about(at).on_lane(lane))?;
            if let Some(new) = new {
                store(slot(m, block, at).map_err(place)?, new);
            }
        }
        if act == Act::Check && (old >> 63 != 0) != (b >> 31 & 1 != 0) {
            over |= 1 << lane;
        } else if act == Act::Check {
            m.waits.asked(block.id, warp, lane, at, || Barrier::of(old).lack());
        }
        let old = match act {
            Act::Arrive { together: true, .. } => {
                let whole = *first.get_or_insert(old);
                whole & u64::from(u32::MAX) << 32 | u64::from(active)
            }
            _ => old,
        };
        let w = &mut block.warps[warp];
        w.set(code.d, 0, lane, old as u32);
        w.set(code.d, 1, lane, (old >> 32) as u32);
    }
    if act == Act::Check {
        block.warps[warp].set_pred(code.pu, lanes, over);
    }
    if act != Act::Check || over != 0 {
        m.waits.moved = true;
    }
    Ok(())
}

/// As many bytes have come as a barrier was to expect.
///
/// # Errors
///
/// An access out of bounds, and what the barrier does not allow.
pub fn complete(m: &mut Machine, block: &mut Block, at: u64, bytes: u32) -> Result<(), Fault> {
    m.waits.moved = true;
    let word = slot(m, block, at)?;
    let event = Event { complete: bytes, ..Event::default() };
    let new = Barrier::of(load(word)).after(event).map_err(|what| Fault::new(what).about(at))?;
    store(word, new.word());
    Ok(())
}

/// One arrival.
///
/// # Errors
///
/// As for bytes that have come.
pub fn arrive(m: &mut Machine, block: &mut Block, at: u64) -> Result<(), Fault> {
    m.waits.moved = true;
    let word = slot(m, block, at)?;
    let event = Event { arrivals: 1, ..Event::default() };
    let new = Barrier::of(load(word)).after(event).map_err(|what| Fault::new(what).about(at))?;
    store(word, new.word());
    Ok(())
}

/// The word of a barrier after an instruction of one lane; `None` where it only looks.
fn changed(act: Act, old: u64, b: u64) -> Result<Option<u64>, String> {
    Ok(match act {
        Act::Exchange => Some(b),
        Act::ArriveOld { .. } => Some(arrive_old(old)),
        Act::Arrive { arrivals, expect, complete, drops, .. } => {
            let number = |n: Number| match n {
                Number::None => 0,
                Number::One => 1,
                Number::Operand | Number::Lanes => b as u32,
            };
            let event = Event { arrivals: number(arrivals), drops, expect: number(expect), complete: number(complete) };
            Some(Barrier::of(old).after(event)?.word())
        }
        Act::Check | Act::End => None,
    })
}

fn slot<'a>(m: &'a mut Machine, block: &'a mut Block, at: u64) -> Result<&'a mut [u8], Fault> {
    if !at.is_multiple_of(WIDTH) {
        return Err(Fault::of(Kind::Misaligned, format!("misaligned mbarrier at {at:#x}")).about(at));
    }
    cluster::bytes(m, block, at, WIDTH)
}

/// Who asks in vain, over all blocks: a state in which all only ask is a deadlock.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// Since the turn of a warp began, somebody asked for a phase that is not over.
    pub asked: bool,
    /// Since the round began, a barrier changed or a phase was over.
    pub moved: bool,
    /// Since the round began, somebody ran who did not ask in vain.
    pub busy: bool,
    /// Rounds in a row in which neither was so.
    idle: u32,
    last: Option<(Kind, String, u64, usize)>,
}

/// Rounds in which all only ask, after which it is a deadlock: more than any program that asks so
/// often and then does something else.
const MOST_IDLE: u32 = 1 << 16;

impl Waits {
    fn asked(&mut self, block: [u32; 3], warp: usize, lane: usize, at: u64, lack: impl FnOnce() -> String) {
        self.asked = true;
        if self.idle > MOST_IDLE / 2 && self.last.is_none() {
            let [x, y, z] = block;
            let what = format!(
                "deadlock: nobody does anything but ask for the end of phases; lane {lane} of warp {warp} of block ({x},{y},{z}) asks \
                 for that of the mbarrier at shared address {:#x}, at which {}",
                at & 0xff_ffff,
                lack()
            );
            self.last = Some((Kind::Deadlock, what, at, lane));
        }
    }

    /// A round of all warps is over; a deadlock where all have only asked for long.
    pub fn round(&mut self) -> Result<(), Fault> {
        let still = !self.busy && !self.moved;
        (self.busy, self.moved) = (false, false);
        self.idle = if still { self.idle + 1 } else { 0 };
        if self.idle < MOST_IDLE {
            return Ok(());
        }
        let (kind, what, at, lane) = self.last.take().unwrap_or((Kind::Deadlock, "deadlock".into(), 0, 0));
        Err(Fault::of(kind, what).about(at).on_lane(lane))
    }
}
