//! The 64-bit word of an mbarrier, and how arrivals and bytes change it.
//!
//! There are two layouts, both as ptxas 13.0.88 initialises them. Where atomics do the work (before
//! sm_90) the low word is 2^30 minus the arrivals expected per phase, and the high one has the
//! phase in bit 31 and below it 2^31 minus the pending arrivals. Where a unit does it, bits 1 to 20
//! and 43 to 62 are 2^20 minus these numbers, bit 63 is the phase, and bits 21 to 42 count the
//! pending bytes, zero at first. A phase completes when no arrival and no byte is pending; the next
//! one then expects as many arrivals. Errors say which rule of the PTX ISA an operation breaks.

/// Bits of a number of arrivals, and where they stand.
const COUNT: u64 = (1 << 20) - 1;
const EXPECTED: u32 = 1;
const BYTES: u32 = 21;
const BYTES_BITS: u32 = 22;
const PENDING: u32 = 43;
const PHASE: u64 = 1 << 63;
/// Of the older layout: what is added to the low word for the next phase, and the arrivals of the
/// high word.
const RELOAD: u32 = 1 << 30;
const OLD_COUNT: u32 = (1 << 31) - 1;

/// What happens to a barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub arrivals: u32,
    /// As many are expected no more in later phases.
    pub drops: bool,
    /// Bytes that are to come, and bytes that have come.
    pub expect: u32,
    pub complete: u32,
}

/// A barrier that the unit looks after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Barrier {
    pub expected: u64,
    pub pending: u64,
    pub bytes: i64,
    pub phase: bool,
}

impl Barrier {
    /// One that expects so many arrivals in each phase.
    pub fn new(count: u32) -> Barrier {
        Barrier { expected: count.into(), pending: count.into(), bytes: 0, phase: false }
    }

    /// The barrier of a word.
    pub fn of(word: u64) -> Barrier {
        let count = |at: u32| (word >> at & COUNT).wrapping_neg() & COUNT;
        let bytes = (word << (64 - BYTES - BYTES_BITS)) as i64 >> (64 - BYTES_BITS);
        Barrier { expected: count(EXPECTED), pending: count(PENDING), bytes, phase: word & PHASE != 0 }
    }

    /// Its word.
    pub fn word(self) -> u64 {
        let count = |n: u64, at: u32| (n.wrapping_neg() & COUNT) << at;
        let bytes = (self.bytes as u64 & ((1 << BYTES_BITS) - 1)) << BYTES;
        let phase = if self.phase { PHASE } else { 0 };
        count(self.expected, EXPECTED) | bytes | count(self.pending, PENDING) | phase
    }

    /// What is left after an event; the phase may have changed.
    pub fn after(self, event: Event) -> Result<Barrier, String> {
        let arrivals = u64::from(event.arrivals);
        if arrivals > self.pending {
            return Err(format!("{arrivals} arrivals at an mbarrier that expects {} more", self.pending));
        }
        let mut new = self;
        new.pending -= arrivals;
        new.bytes += i64::from(event.expect) - i64::from(event.complete);
        if event.drops {
            new.expected = new.expected.saturating_sub(arrivals);
        }
        if new.bytes.unsigned_abs() >= 1 << 20 {
            return Err(format!("{} bytes to come at an mbarrier, which counts less than 2^20", new.bytes));
        }
        if new.pending == 0 && new.bytes == 0 {
            (new.pending, new.phase) = (new.expected, !new.phase);
        }
        Ok(new)
    }

    /// What is missing, in words.
    pub fn lack(self) -> String {
        format!("{} arrivals and {} bytes are missing", self.pending, self.bytes)
    }
}

/// An arrival at a barrier of the older layout.
pub fn arrive_old(word: u64) -> u64 {
    let (low, high) = (word as u32, ((word >> 32) as u32).wrapping_add(1));
    let high = if high & OLD_COUNT == 0 { high | low.wrapping_add(RELOAD) & OLD_COUNT } else { high };
    u64::from(high) << 32 | u64::from(low)
}

/// Whether a word may be an initial one of the older layout.
pub fn is_new_old(word: u64) -> bool {
    let (low, high) = (word as u32, (word >> 32) as u32);
    high == low.wrapping_add(RELOAD) && (RELOAD - (1 << 20)..RELOAD).contains(&low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_ptxas() {
        assert_eq!(Barrier::new(32).word(), (0x10_0000 - 32) << 43 | (0x10_0000 - 32) << 1);
        assert_eq!(Barrier::of(Barrier::new(7).word()), Barrier::new(7));
        let odd = Barrier { expected: 3, pending: 0, bytes: -5, phase: true };
        assert_eq!(Barrier::of(odd.word()), odd);
    }

    #[test]
    fn phases_end_when_nothing_is_missing() {
        let arrive = |b: Barrier, arrivals| b.after(Event { arrivals, ..Event::default() }).unwrap();
        let b = arrive(Barrier::new(2), 1);
        assert_eq!((b.pending, b.phase), (1, false));
        let waiting = b.after(Event { arrivals: 1, expect: 16, ..Event::default() }).unwrap();
        assert_eq!((waiting.pending, waiting.phase), (0, false));
        let done = waiting.after(Event { complete: 16, ..Event::default() }).unwrap();
        assert_eq!(done, Barrier { phase: true, ..Barrier::new(2) });
        let dropped = done.after(Event { arrivals: 1, drops: true, ..Event::default() }).unwrap();
        assert_eq!(arrive(dropped, 1), Barrier::new(1));
        assert!(done.after(Event { arrivals: 3, ..Event::default() }).is_err());
    }

    #[test]
    fn older_words() {
        let first = u64::from(0x8000_0000u32 - 2) << 32 | u64::from(0x4000_0000u32 - 2);
        assert!(is_new_old(first));
        let second = arrive_old(arrive_old(first));
        assert_eq!(second, u64::from(0xffff_fffeu32) << 32 | u64::from(0x3fff_fffeu32));
        assert_eq!(arrive_old(arrive_old(second)), first);
    }
}
