//! The program's allocator: counts memory in use and enforces a limit.
//!
//! The limit depends only on the input, so that the same input fails in the same way everywhere. A
//! request beyond it, or one that the system refuses, ends the program with ptxas's message and
//! exit status. Output files are renamed into place only when they are complete, so none is left
//! half written. Only the `sassafras` program uses this allocator; users of the library have their
//! own.

mod pool;

use sassafras::cli;
use std::alloc::{GlobalAlloc, Layout};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The allocator of [`pool`] with a counter.
pub struct Counted;

/// Bytes in use.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// The bytes that count for a request: those that it would take up in a common allocator, with one
/// word of overhead, rounded up to two words.
const fn cost(bytes: usize) -> usize {
    bytes.saturating_add(23) & !15
}

/// Keeps what is freed for later requests, which come soon and are alike: one function after the
/// other. Without this, the pages of every function are given back and cleared again.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn keep() {
    set(32 << 20, i32::MAX);
}

/// Sets the size from which on a block has pages of its own, and the bytes behind the last block
/// from which on they go back.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn set(own_pages: i32, left: i32) {
    unsafe extern "C" {
        fn mallopt(parameter: i32, value: i32) -> i32;
    }
    const TRIM_THRESHOLD: i32 = -1;
    const TOP_PAD: i32 = -2;
    const MMAP_THRESHOLD: i32 = -3;
    // SAFETY: the call only sets numbers of the system allocator, and ignores those that it does
    // not take.
    unsafe {
        mallopt(MMAP_THRESHOLD, own_pages);
        mallopt(TRIM_THRESHOLD, left);
        mallopt(TOP_PAD, 1 << 20);
    }
}

/// Other systems have no such settings.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep() {}

/// Bytes in use from which on what is large gets pages of its own, which go back when it is freed:
/// for a huge input, memory counts for more than the time to clear them.
const MANY: usize = 128 << 20;
static GIVES_BACK: AtomicBool = AtomicBool::new(false);

/// Turns round what [`keep`] says, once and for all.
#[cold]
fn give_back() {
    GIVES_BACK.store(true, Relaxed);
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    set(1 << 20, 32 << 20);
}

/// Adds to a count of bytes, modulo the range of numbers, and says what it is now. Locked
/// instructions are slow, and one thread alone needs none; with several, a count that loses what it
/// was told may fall below zero later, which is more than any limit.
#[inline]
fn add(bytes: &AtomicUsize, change: usize) -> usize {
    if cli::SEVERAL.load(Relaxed) {
        return bytes.fetch_add(change, Relaxed).wrapping_add(change);
    }
    let now = bytes.load(Relaxed).wrapping_add(change);
    bytes.store(now, Relaxed);
    now
}

/// Counts a request and ends the program if it exceeds the limit.
#[inline]
fn count(more: usize) {
    let now = add(&IN_USE, more);
    if now as u64 > cli::MEMORY.load(Relaxed) {
        refuse();
    }
    if now > MANY && !GIVES_BACK.load(Relaxed) {
        give_back();
    }
}

/// Counts what is freed. No limit can be exceeded by it.
#[inline]
fn discount(less: usize) {
    add(&IN_USE, less.wrapping_neg());
}

/// Ends the program as ptxas does when memory runs out.
#[cold]
fn refuse() -> ! {
    // Stops counting, since ending the program may itself need a little memory.
    cli::MEMORY.store(u64::MAX, Relaxed);
    // A failure to write to the terminal is ignored; nothing could be done about it.
    let _ = std::io::stderr().write_all(cli::no_memory().as_bytes());
    std::process::exit(i32::from(cli::REFUSED))
}

fn got(place: *mut u8) -> *mut u8 {
    if place.is_null() {
        refuse();
    }
    place
}

// SAFETY: every request is forwarded unchanged to the pool, and its answer is returned.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(cost(layout.size()));
        // SAFETY: the caller's guarantees are those that the pool requires.
        got(unsafe { pool::alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(cost(layout.size()));
        // SAFETY: the caller's guarantees are those that the pool requires.
        got(unsafe { pool::alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        discount(cost(layout.size()));
        // SAFETY: the caller's guarantees are those that the pool requires.
        unsafe { pool::dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (more, less) = (cost(size), cost(layout.size()));
        if more > less {
            count(more - less)
        } else {
            discount(less - more)
        }
        // SAFETY: the caller's guarantees are those that the pool requires.
        got(unsafe { pool::realloc(place, layout, size) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_threads_lose_no_count() {
        let bytes = AtomicUsize::new(0);
        cli::SEVERAL.store(true, Relaxed);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200_000 {
                        add(&bytes, 48);
                        add(&bytes, 48usize.wrapping_neg());
                    }
                });
            }
        });
        assert_eq!(bytes.load(Relaxed), 0);
    }
}
