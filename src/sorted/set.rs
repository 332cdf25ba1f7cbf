//! A set in order.

use super::{IntoIter, Iter, SortedMap};
use std::borrow::Borrow;
use std::fmt;
use std::iter::Map;
use std::ops::RangeBounds;

/// A set in order: a map without values.
///
/// ```
/// use sassafras::sorted::SortedSet;
///
/// let mut set = SortedSet::from_iter([3, 1, 3]);
/// assert!(set.insert(2) && !set.insert(1));
/// assert_eq!(set.iter().copied().collect::<Vec<u32>>(), [1, 2, 3]);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SortedSet<K>(SortedMap<K, ()>);

/// The elements of a set, in order.
type Elements<'a, K> = Map<Iter<'a, K, ()>, fn((&'a K, &'a ())) -> &'a K>;

const fn element<'a, K>(entry: (&'a K, &'a ())) -> &'a K {
    entry.0
}

impl<K> SortedSet<K> {
    /// An empty set, which takes no memory.
    pub const fn new() -> Self {
        SortedSet(SortedMap::new())
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The elements in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &K> + Clone {
        self.0.iter().map(|(key, ())| key)
    }

    /// The first element.
    pub fn first(&self) -> Option<&K> {
        self.iter().next()
    }

    /// The last element.
    pub fn last(&self) -> Option<&K> {
        self.iter().next_back()
    }

    /// Removes the first element.
    pub fn pop_first(&mut self) -> Option<K> {
        Some(self.0.pop_first()?.0)
    }

    /// Removes the last element.
    pub fn pop_last(&mut self) -> Option<K> {
        Some(self.0.pop_last()?.0)
    }

    /// Keeps the elements for which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(&K) -> bool) {
        self.0.retain(|key, ()| keep(key));
    }
}

impl<K: Ord> SortedSet<K> {
    /// Whether the element is there.
    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    /// Adds an element, and says whether it was not there.
    pub fn insert(&mut self, key: K) -> bool {
        self.0.insert(key, ()).is_none()
    }

    /// Removes an element, and says whether it was there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.remove(key).is_some()
    }

    /// Moves the elements of another set into this one.
    pub fn append(&mut self, other: &mut Self) {
        self.extend(std::mem::take(other));
    }

    /// Whether all elements are in the other set.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.iter().all(|key| other.contains(key))
    }

    /// Whether no element is in the other set.
    pub fn is_disjoint(&self, other: &Self) -> bool {
        !self.iter().any(|key| other.contains(key))
    }

    /// The elements in a range, in order.
    pub fn range<Q: Ord + ?Sized>(&self, range: impl RangeBounds<Q>) -> impl DoubleEndedIterator<Item = &K> + Clone
    where
        K: Borrow<Q>,
    {
        self.0.range(range).map(|(key, ())| key)
    }
}

impl<K> Default for SortedSet<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug> fmt::Debug for SortedSet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<K: Ord> Extend<K> for SortedSet<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.insert(key);
        }
    }
}

impl<'a, K: Ord + Copy> Extend<&'a K> for SortedSet<K> {
    fn extend<I: IntoIterator<Item = &'a K>>(&mut self, keys: I) {
        for key in keys {
            self.insert(*key);
        }
    }
}

impl<K: Ord> FromIterator<K> for SortedSet<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let mut set = Self::new();
        set.extend(keys);
        set
    }
}

impl<K: Ord, const N: usize> From<[K; N]> for SortedSet<K> {
    fn from(keys: [K; N]) -> Self {
        keys.into_iter().collect()
    }
}

impl<K> IntoIterator for SortedSet<K> {
    type Item = K;
    type IntoIter = Map<IntoIter<K, ()>, fn((K, ())) -> K>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().map(|(key, ())| key)
    }
}

impl<'a, K> IntoIterator for &'a SortedSet<K> {
    type Item = &'a K;
    type IntoIter = Elements<'a, K>;

    fn into_iter(self) -> Elements<'a, K> {
        self.0.iter().map(element)
    }
}
