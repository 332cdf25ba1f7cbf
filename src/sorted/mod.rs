//! Maps and sets in the order of their keys, for a library that has some two hundred types of
//! them.
//!
//! They promise what `BTreeMap` and `BTreeSet` promise, and the same order. A type of map costs the
//! build a tenth of what a B-tree costs it, since there are no nodes to split, join and balance:
//! entries lie in a list, and from [`CHUNK`] of them on in several, each before the next. So no
//! insertion and no removal moves more than a chunk, wherever it falls, and a small map is one
//! list.
//!
//! Lists are sorted here as well, by one function for all types.

mod iter;
mod map;
mod order;
mod set;
#[cfg(test)]
mod tests;
mod traits;

pub use iter::{IntoIter, Iter, IterMut};
pub use map::{Entry, SortedMap};
pub use order::{by, by_cached_key, by_key, sort};
pub use set::SortedSet;

/// Entries of a list; one more makes two lists of it.
const CHUNK: usize = 512;
