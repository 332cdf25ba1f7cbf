//! The program's memory: counted, and no more of it than what was read entitles to.
//!
//! Input: every request of the program. Output: the system's memory, or the end of the program with ptxas's words for it and its exit
//! status. Invariants: the limit depends on the input alone, so that the same input ends the same way everywhere; a request that the system itself
//! refuses ends the same way; output files are renamed to their place only when they are whole, so that none is left half written. Only the
//! program holds to this: a library's caller has an allocator of its own.

use sassafras::cli;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator with a count.
pub struct Counted;

/// Bytes in use. The program has one thread, so that a count needs no locked instruction; with several it would only be inexact.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// What a request costs the system's allocator: a word of its own, in steps of two words.
const fn cost(bytes: usize) -> usize {
    bytes.saturating_add(23) & !15
}

/// Counts a request; the program ends where it goes beyond the limit.
fn count(more: usize, less: usize) {
    let now = IN_USE.load(Relaxed).wrapping_sub(less).saturating_add(more);
    if now as u64 > cli::MEMORY.load(Relaxed) && more > less {
        refuse();
    }
    IN_USE.store(now, Relaxed);
}

/// Ends the program, as ptxas does where there is no memory.
#[cold]
fn refuse() -> ! {
    // From here on nothing is counted: what ends the program may need a little memory itself.
    cli::MEMORY.store(u64::MAX, Relaxed);
    // Nothing can be done where the terminal itself is gone.
    let _ = std::io::stderr().write_all(cli::no_memory().as_bytes());
    std::process::exit(i32::from(cli::REFUSED))
}

fn got(place: *mut u8) -> *mut u8 {
    if place.is_null() {
        refuse();
    }
    place
}

// SAFETY: every request goes to the system's allocator as it came, and what it gives is given on.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(cost(layout.size()), 0);
        // SAFETY: the caller's promises are the system's.
        got(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(cost(layout.size()), 0);
        // SAFETY: the caller's promises are the system's.
        got(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(0, cost(layout.size()));
        // SAFETY: the caller's promises are the system's.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(cost(size), cost(layout.size()));
        // SAFETY: the caller's promises are the system's.
        got(unsafe { System.realloc(place, layout, size) })
    }
}
