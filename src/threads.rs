//! Several threads work on the elements of a slice; the results are in the order of the elements.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Whether there was ever a second thread. What one thread alone counts, it need not lock.
pub static SEVERAL: AtomicBool = AtomicBool::new(false);

/// Bytes of stack of each thread: that of a main thread.
const STACK: usize = 8 << 20;

/// Applies a function to each element, with at most so many threads, the caller's among them. What
/// it returns does not depend on their number.
pub fn map_in_order<T: Send, R: Send>(items: &mut [T], threads: usize, f: impl Fn(&mut T) -> R + Sync) -> Vec<R> {
    let count = threads.min(items.len());
    if count < 2 {
        return items.iter_mut().map(f).collect();
    }
    let (queue, done) = (Mutex::new(items.iter_mut().enumerate()), Mutex::new(Vec::new()));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some((at, item)) = next() {
            let result = f(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    SEVERAL.store(true, Relaxed);
    thread::scope(|scope| {
        for _ in 1..count {
            // Where the system has no thread left, the others do its part.
            drop(thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work));
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    crate::sorted::by_key(&mut done, |(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_elements() {
        for threads in [0, 1, 2, 7, 200] {
            let mut items: Vec<usize> = (0..100).collect();
            let squares = map_in_order(&mut items, threads, |n| {
                *n += 1;
                *n * *n
            });
            assert_eq!(squares, (1..=100).map(|n| n * n).collect::<Vec<_>>(), "{threads}");
            assert_eq!(items, (1..=100).collect::<Vec<_>>(), "{threads}");
        }
    }
}
