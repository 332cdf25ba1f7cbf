//! Stable sorting of lists whose type is sorted in one place.
//!
//! The standard library's sorts are compiled anew for each type and each closure, 2,000 lines of IR
//! at a time. Here the places of the entries are sorted, by one function for all lists, and only
//! what moves the entries to their places is compiled for each type. Lists of numbers that are
//! sorted often use the standard library's.

use std::cmp::Ordering;

/// Sorts by a key, which is made for each comparison; entries with equal keys stay in their order.
pub fn by_key<T, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    by(list, |a, b| key(a).cmp(&key(b)));
}

/// Sorts; entries that are equal stay in their order.
pub fn sort<T: Ord>(list: &mut [T]) {
    by(list, T::cmp);
}

/// Sorts by a comparison; entries that it calls equal stay in their order.
pub fn by<T>(list: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let order = order(list.len(), &|a, b| compare(&list[a], &list[b]));
    arrange(list, order);
}

/// Sorts by a key that costs more to make than to keep: it is made once for each entry.
pub fn by_cached_key<T, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    let keys: Vec<K> = list.iter().map(key).collect();
    arrange(list, order(keys.len(), &|a, b| keys[a].cmp(&keys[b])));
}

/// The places of entries in their order; empty where they are in order already.
fn order(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    if (1..count).all(|at| compare(at - 1, at) != Ordering::Greater) {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

/// Moves to each place the entry whose old place the order has there, one cycle of it at a time.
fn arrange<T>(list: &mut [T], mut order: Vec<usize>) {
    for first in 0..order.len() {
        let mut at = first;
        loop {
            let from = std::mem::replace(&mut order[at], at);
            if from == first {
                break;
            }
            list.swap(at, from);
            at = from;
        }
    }
}
