//! Blocks of memory in few sizes, kept for later requests of the same size.
//!
//! The compiler makes and drops very many small lists, of which a general allocator spends much of
//! its time on merging and splitting. Here a freed block heads the list of its size, and the next
//! request takes it: both are a few instructions. What is large, or has an unusual alignment, comes
//! from the system. Each thread has lists of its own, which end with it; the blocks in them are
//! lost then, so this is for programs whose threads are few.
//!
//! Blocks come from chunks. Where much is free, the pages of the chunks of which nothing is in use
//! go back to the system, and blocks of other sizes are made of these chunks later.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::{copy_nonoverlapping, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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
/// Bytes of free blocks from which on it is worth the time to look for free chunks, and by which
/// they must have grown before the next time.
const MUCH: usize = 32 << 20;

/// Bytes of what the system gives, up to which its pages get their memory at once.
const AT_ONCE: usize = 4 << 20;

/// Bytes in use of what is too large for the pools.
static LARGE: AtomicUsize = AtomicUsize::new(0);
/// The end of the last block of these that lies behind all before it: what is below is mostly in
/// use for the second time, and has its pages.
static FILLED: AtomicUsize = AtomicUsize::new(0);

/// The start of a chunk.
#[repr(C)]
struct Head {
    /// The next one of the thread's chunks.
    next: *mut u8,
    /// Of a chunk without blocks: the next one of these.
    next_empty: *mut u8,
}
const HEAD: usize = (size_of::<Head>() + UNIT - 1) & !(UNIT - 1);

/// How much of a chunk is free.
struct Tally {
    chunk: *mut u8,
    free: usize,
}

/// The blocks of a thread.
struct Pool {
    /// The first free block of each size, which begins with the address of the next one.
    free: [Cell<*mut u8>; SIZES],
    /// What is left of the last chunk.
    rest: Cell<*mut u8>,
    left: Cell<usize>,
    /// As much is left behind what has its pages.
    bare: Cell<usize>,
    /// The first of all chunks, and how many they are.
    chunks: Cell<*mut u8>,
    count: Cell<usize>,
    /// The first chunk without blocks, and how many they are.
    empty: Cell<*mut u8>,
    empties: Cell<usize>,
    /// Bytes of free blocks that were left when free chunks were looked for.
    scattered: Cell<usize>,
}

thread_local! {
    // Nothing to initialise or to drop, so access needs no allocation.
    static POOL: Pool = const {
        Pool {
            free: [const { Cell::new(null_mut()) }; SIZES],
            rest: Cell::new(null_mut()),
            left: Cell::new(0),
            bare: Cell::new(0),
            chunks: Cell::new(null_mut()),
            count: Cell::new(0),
            empty: Cell::new(null_mut()),
            empties: Cell::new(0),
            scattered: Cell::new(0),
        }
    };
}

/// What the system is told of pages.
#[derive(Clone, Copy)]
enum Pages {
    /// They get their memory now; where the system does not do that, each has it at its first use.
    Populate = 23,
    /// What is in them is of no use.
    Drop = 4,
}

/// Tells the system something of the whole pages in a range that is ours.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn tell(from: *mut u8, bytes: usize, what: Pages) {
    unsafe extern "C" {
        fn madvise(address: *mut u8, length: usize, advice: i32) -> i32;
    }
    const PAGE: usize = 4096;
    let skipped = from.align_offset(PAGE);
    let whole = bytes.saturating_sub(skipped) & !(PAGE - 1);
    // SAFETY: the pages are within the range, and what is in them changes only where it is of no
    // use.
    unsafe {
        madvise(from.wrapping_add(skipped), whole, what as i32);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn tell(_: *mut u8, _: usize, _: Pages) {}

/// Gives the pages of a block their memory, as far as it lies behind all before it.
fn fill(block: *mut u8, bytes: usize) -> *mut u8 {
    let (filled, end) = (FILLED.load(Relaxed), block.addr().saturating_add(bytes));
    if bytes <= AT_ONCE && end > filled && !block.is_null() {
        let behind = filled.saturating_sub(block.addr());
        tell(block.wrapping_add(behind), bytes - behind, Pages::Populate);
        FILLED.store(end, Relaxed);
    }
    block
}

/// The number of the smallest size that holds this many bytes, from 1 to [`LARGEST`].
#[inline]
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
#[inline]
fn class(layout: Layout) -> Option<usize> {
    (layout.size() <= LARGEST && layout.align() <= UNIT).then(|| class_of(layout.size()))
}

impl Pool {
    #[inline]
    fn take(&self, class: usize) -> *mut u8 {
        let block = self.free[class].get();
        if block.is_null() {
            return self.carve(size_of_class(class));
        }
        // SAFETY: a free block holds the address of the next one, written by `give`.
        self.free[class].set(unsafe { *block.cast::<*mut u8>() });
        block
    }

    #[inline]
    fn give(&self, class: usize, block: *mut u8) {
        // SAFETY: the block is free, aligned to a unit and at least as large as one.
        unsafe { *block.cast::<*mut u8>() = self.free[class].get() };
        self.free[class].set(block);
    }

    /// A block that was never in use; null if there is no memory.
    #[cold]
    fn carve(&self, bytes: usize) -> *mut u8 {
        if self.left.get() < bytes {
            self.give_rest();
            let chunk = self.chunk();
            if chunk.is_null() {
                return chunk;
            }
            self.rest.set(chunk.wrapping_add(HEAD));
            self.left.set(CHUNK - HEAD);
            self.bare.set(CHUNK - HEAD);
        }
        if self.left.get() - bytes < self.bare.get() {
            let bare = self.bare.get();
            tell(self.rest.get().wrapping_add(self.left.get() - bare), STEP.min(bare), Pages::Populate);
            self.bare.set(bare - STEP.min(bare));
        }
        let block = self.rest.get();
        // SAFETY: `left` bytes from `rest` on belong to the chunk, and `bytes` is no more.
        self.rest.set(unsafe { block.add(bytes) });
        self.left.set(self.left.get() - bytes);
        block
    }

    /// Makes free blocks of what is left of the last chunk.
    fn give_rest(&self) {
        let (mut rest, mut left) = (self.rest.get(), self.left.get());
        while left > 0 {
            let class = class_of(left);
            let class = if size_of_class(class) > left { class - 1 } else { class };
            self.give(class, rest);
            rest = rest.wrapping_add(size_of_class(class));
            left -= size_of_class(class);
        }
        self.left.set(0);
    }

    /// A chunk without blocks; null if there is no memory.
    fn chunk(&self) -> *mut u8 {
        self.gather();
        let empty = self.empty.get();
        if !empty.is_null() {
            // SAFETY: a chunk begins with its head.
            self.empty.set(unsafe { (*empty.cast::<Head>()).next_empty });
            self.empties.set(self.empties.get() - 1);
            return empty;
        }
        let Ok(layout) = Layout::from_size_align(CHUNK, UNIT) else { return null_mut() };
        // SAFETY: the size is not zero.
        let chunk = unsafe { System.alloc(layout) };
        if !chunk.is_null() {
            let head = Head { next: self.chunks.get(), next_empty: null_mut() };
            // SAFETY: the chunk is larger than its head and aligned to a unit.
            unsafe { chunk.cast::<Head>().write(head) };
            self.chunks.set(chunk);
            self.count.set(self.count.get() + 1);
        }
        chunk
    }

    /// Empties the free chunks if much is free: more than is in use, and more than the last time.
    fn gather(&self) {
        let held = (self.count.get() - self.empties.get()) * CHUNK;
        let used = super::IN_USE.load(Relaxed).saturating_sub(LARGE.load(Relaxed));
        let free = held.saturating_sub(used);
        self.scattered.set(self.scattered.get().min(free));
        if free > used && free > self.scattered.get() + MUCH {
            self.empty_chunks();
            let held = (self.count.get() - self.empties.get()) * CHUNK;
            self.scattered.set(held.saturating_sub(used));
        }
    }

    /// Gives back the pages of the chunks all of whose blocks are free.
    #[cold]
    fn empty_chunks(&self) {
        let Ok(layout) = Layout::array::<Tally>(self.count.get()) else { return };
        // SAFETY: there is a chunk, so the size is not zero.
        let tallies = unsafe { System.alloc(layout) }.cast::<Tally>();
        if tallies.is_null() {
            return;
        }
        let mut chunk = self.chunks.get();
        for at in 0..self.count.get() {
            // SAFETY: the list has this many chunks, and the table as many places.
            unsafe {
                tallies.add(at).write(Tally { chunk, free: 0 });
                chunk = (*chunk.cast::<Head>()).next;
            }
        }
        // SAFETY: all of them have just been written, and nothing else refers to them.
        let all = unsafe { std::slice::from_raw_parts_mut(tallies, self.count.get()) };
        all.sort_unstable_by_key(|tally| tally.chunk);
        self.count_free(all);
        self.unlink(all);
        for Tally { chunk, .. } in all.iter().filter(|tally| tally.free == CHUNK - HEAD) {
            // The first page stays, for the head.
            tell(chunk.wrapping_add(HEAD), CHUNK - HEAD, Pages::Drop);
            // SAFETY: a chunk begins with its head.
            unsafe { (*chunk.cast::<Head>()).next_empty = self.empty.get() };
            self.empty.set(*chunk);
            self.empties.set(self.empties.get() + 1);
        }
        // SAFETY: it was allocated with this layout, and is not used any more.
        unsafe { System.dealloc(tallies.cast(), layout) };
    }

    /// Adds the free blocks to the counts of their chunks.
    fn count_free(&self, all: &mut [Tally]) {
        for class in 0..SIZES {
            let mut block = self.free[class].get();
            while !block.is_null() {
                if let Some(at) = chunk_of(all, block) {
                    all[at].free += size_of_class(class);
                }
                // SAFETY: a free block holds the address of the next one.
                block = unsafe { *block.cast::<*mut u8>() };
            }
        }
    }

    /// Takes the blocks of free chunks off the lists.
    fn unlink(&self, all: &[Tally]) {
        for head in &self.free {
            let (mut block, mut last) = (head.replace(null_mut()), null_mut::<u8>());
            while !block.is_null() {
                // SAFETY: a free block holds the address of the next one.
                let next = unsafe { *block.cast::<*mut u8>() };
                if chunk_of(all, block).is_none_or(|at| all[at].free != CHUNK - HEAD) {
                    match last.is_null() {
                        true => head.set(block),
                        // SAFETY: it is a free block too.
                        false => unsafe { *last.cast::<*mut u8>() = block },
                    }
                    last = block;
                }
                block = next;
            }
            if !last.is_null() {
                // SAFETY: as above.
                unsafe { *last.cast::<*mut u8>() = null_mut() };
            }
        }
    }
}

/// The place of a block's chunk among chunks in order; `None` if it is another thread's.
fn chunk_of(all: &[Tally], block: *mut u8) -> Option<usize> {
    let at = all.partition_point(|tally| tally.chunk <= block).checked_sub(1)?;
    (block.addr() < all[at].chunk.addr() + CHUNK).then_some(at)
}

/// Counts a change of what is too large for the pools; before more is asked for, free chunks give
/// their pages back.
fn count_large(more: usize, less: usize) {
    super::add(&LARGE, more.wrapping_sub(less));
    if more > less {
        POOL.with(Pool::gather);
    }
}

/// A block of the thread's. Unlike `with`, `try_with` is inlined; it cannot fail, since nothing is
/// dropped when a thread ends.
#[inline]
fn take(class: usize) -> *mut u8 {
    POOL.try_with(|pool| pool.take(class)).unwrap_or(null_mut())
}

/// Keeps a free block for the thread.
#[inline]
fn give(class: usize, block: *mut u8) {
    let _ = POOL.try_with(|pool| pool.give(class, block));
}

/// As `GlobalAlloc::alloc`.
///
/// # Safety
///
/// As there.
#[inline]
pub unsafe fn alloc(layout: Layout) -> *mut u8 {
    match class(layout) {
        Some(class) => take(class),
        None => {
            count_large(layout.size(), 0);
            // SAFETY: the caller's guarantees are those that the system allocator requires.
            fill(unsafe { System.alloc(layout) }, layout.size())
        }
    }
}

/// As `GlobalAlloc::alloc_zeroed`.
///
/// # Safety
///
/// As there.
pub unsafe fn alloc_zeroed(layout: Layout) -> *mut u8 {
    let Some(class) = class(layout) else {
        count_large(layout.size(), 0);
        // SAFETY: the caller's guarantees are those that the system allocator requires.
        return fill(unsafe { System.alloc_zeroed(layout) }, layout.size());
    };
    let block = take(class);
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
#[inline]
pub unsafe fn dealloc(place: *mut u8, layout: Layout) {
    match class(layout) {
        Some(class) => give(class, place),
        None => {
            count_large(0, layout.size());
            // SAFETY: a request of this layout went to the system.
            unsafe { System.dealloc(place, layout) }
        }
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
        count_large(size, layout.size());
        // SAFETY: both layouts are the system's.
        return fill(unsafe { System.realloc(place, layout, size) }, size);
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
