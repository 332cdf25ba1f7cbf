//! Blocks of memory in few sizes, kept for later requests of the same size.
//!
//! The compiler makes and drops very many small lists, of which a general allocator spends much of
//! its time on merging and splitting. Here a freed block heads the list of its size, and the next
//! request takes it: both are a few instructions. What is large, or has an unusual alignment, comes
//! from the system. Each thread has lists of its own, which end with it; the blocks in them are
//! lost then, so this is for programs whose threads are few.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::{copy_nonoverlapping, null_mut};

/// The unit of sizes and alignments, in bytes, and its logarithm.
const UNIT: usize = 1 << UNIT_SHIFT;
const UNIT_SHIFT: u32 = 4;
/// Sizes that are multiples of the unit; from there on, there are four in each doubling.
const FINE: usize = 16;
/// Number of sizes, and the largest.
const SIZES: usize = 48;
const LARGEST: usize = size_of_class(SIZES - 1);
/// Bytes that are taken from the system at a time.
const CHUNK: usize = 1 << 20;
/// Bytes of them that get their pages at a time: one request for many costs a fraction of what a
/// fault for each does.
const STEP: usize = 1 << 18;

/// The blocks of a thread.
struct Pool {
    /// The first free block of each size, which begins with the address of the next one.
    free: [Cell<*mut u8>; SIZES],
    /// What is left of the last chunk.
    rest: Cell<*mut u8>,
    left: Cell<usize>,
    /// As much is left behind what has its pages.
    bare: Cell<usize>,
}

thread_local! {
    // Nothing to initialise or to drop, so access needs no allocation.
    static POOL: Pool = const {
        let free = [const { Cell::new(null_mut()) }; SIZES];
        Pool { free, rest: Cell::new(null_mut()), left: Cell::new(0), bare: Cell::new(0) }
    };
}

/// Gives the whole pages in a range that is ours their memory; where the system does not, each
/// comes with its first use.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn populate(from: *mut u8, bytes: usize) {
    unsafe extern "C" {
        fn madvise(address: *mut u8, length: usize, advice: i32) -> i32;
    }
    const PAGE: usize = 4096;
    const POPULATE_WRITE: i32 = 23;
    let skipped = from.align_offset(PAGE);
    let whole = bytes.saturating_sub(skipped) & !(PAGE - 1);
    // SAFETY: the pages are within the range, and the call changes nothing of what is in them.
    unsafe {
        madvise(from.wrapping_add(skipped), whole, POPULATE_WRITE);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn populate(_: *mut u8, _: usize) {}

/// The number of the smallest size that holds this many bytes, from 1 to [`LARGEST`].
const fn class_of(bytes: usize) -> usize {
    let units = bytes.saturating_sub(1) >> UNIT_SHIFT;
    if units < FINE {
        return units;
    }
    let top = units.ilog2();
    FINE + 4 * (top - FINE.ilog2()) as usize + (units >> (top - 2) & 3)
}

/// The bytes of a size.
const fn size_of_class(class: usize) -> usize {
    if class < FINE {
        return (class + 1) << UNIT_SHIFT;
    }
    let (doubling, quarter) = ((class - FINE) / 4, (class - FINE) % 4);
    (4 + quarter + 1) << (doubling as u32 + FINE.ilog2() - 2 + UNIT_SHIFT)
}

/// The size of a request; `None` if it goes to the system.
fn class(layout: Layout) -> Option<usize> {
    (layout.size() <= LARGEST && layout.align() <= UNIT).then(|| class_of(layout.size()))
}

impl Pool {
    fn take(&self, class: usize) -> *mut u8 {
        let block = self.free[class].get();
        if block.is_null() {
            return self.carve(size_of_class(class));
        }
        // SAFETY: a free block holds the address of the next one, written by `give`.
        self.free[class].set(unsafe { *block.cast::<*mut u8>() });
        block
    }

    fn give(&self, class: usize, block: *mut u8) {
        // SAFETY: the block is free, aligned to a unit and at least as large as one.
        unsafe { *block.cast::<*mut u8>() = self.free[class].get() };
        self.free[class].set(block);
    }

    /// A block that was never in use; null if there is no memory.
    #[cold]
    fn carve(&self, bytes: usize) -> *mut u8 {
        if self.left.get() < bytes {
            let Ok(chunk) = Layout::from_size_align(CHUNK, UNIT) else { return null_mut() };
            // SAFETY: the size is not zero.
            let chunk = unsafe { System.alloc(chunk) };
            if chunk.is_null() {
                return chunk;
            }
            self.rest.set(chunk);
            self.left.set(CHUNK);
            self.bare.set(CHUNK);
        }
        if self.left.get() - bytes < self.bare.get() {
            let bare = self.bare.get();
            populate(self.rest.get().wrapping_add(self.left.get() - bare), STEP.min(bare));
            self.bare.set(bare - STEP.min(bare));
        }
        let block = self.rest.get();
        // SAFETY: `left` bytes from `rest` on belong to the chunk, and `bytes` is no more.
        self.rest.set(unsafe { block.add(bytes) });
        self.left.set(self.left.get() - bytes);
        block
    }
}

/// As `GlobalAlloc::alloc`.
///
/// # Safety
///
/// As there.
pub unsafe fn alloc(layout: Layout) -> *mut u8 {
    match class(layout) {
        Some(class) => POOL.with(|pool| pool.take(class)),
        // SAFETY: the caller's guarantees are those that the system allocator requires.
        None => unsafe { System.alloc(layout) },
    }
}

/// As `GlobalAlloc::alloc_zeroed`.
///
/// # Safety
///
/// As there.
pub unsafe fn alloc_zeroed(layout: Layout) -> *mut u8 {
    let Some(class) = class(layout) else {
        // SAFETY: the caller's guarantees are those that the system allocator requires.
        return unsafe { System.alloc_zeroed(layout) };
    };
    let block = POOL.with(|pool| pool.take(class));
    if !block.is_null() {
        // SAFETY: the block is at least as large as the request.
        unsafe { block.write_bytes(0, layout.size()) };
    }
    block
}

/// As `GlobalAlloc::dealloc`.
///
/// # Safety
///
/// As there.
pub unsafe fn dealloc(place: *mut u8, layout: Layout) {
    match class(layout) {
        Some(class) => POOL.with(|pool| pool.give(class, place)),
        // SAFETY: a request of this layout went to the system.
        None => unsafe { System.dealloc(place, layout) },
    }
}

/// As `GlobalAlloc::realloc`.
///
/// # Safety
///
/// As there.
pub unsafe fn realloc(place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    // SAFETY: the caller guarantees that the size is valid for the alignment.
    let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
    let (old, new) = (class(layout), class(wanted));
    if old.is_none() && new.is_none() {
        // SAFETY: both layouts are the system's.
        return unsafe { System.realloc(place, layout, size) };
    }
    if old == new {
        return place;
    }
    // SAFETY: the new block is apart from the old one, which is the caller's, and both have the
    // bytes that are copied.
    unsafe {
        let block = alloc(wanted);
        if !block.is_null() {
            copy_nonoverlapping(place, block, layout.size().min(size));
            dealloc(place, layout);
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_is_the_least_that_holds_a_request() {
        for bytes in 1..=LARGEST {
            let class = class_of(bytes);
            assert!(size_of_class(class) >= bytes);
            assert!(class == 0 || size_of_class(class - 1) < bytes);
        }
        assert_eq!(LARGEST, 1 << 16);
    }
}
