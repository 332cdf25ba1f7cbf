//! A map in the order of its keys.

use super::{CHUNK, Iter, IterMut};
use std::borrow::Borrow;
use std::ops::{Bound, RangeBounds};

/// A map in the order of its keys. See the [module](super) for what an operation costs.
///
/// ```
/// use sassafras::sorted::SortedMap;
///
/// let mut map = SortedMap::from_iter([(3, "c"), (1, "a")]);
/// map.insert(2, "b");
/// assert_eq!(map.keys().copied().collect::<Vec<u32>>(), [1, 2, 3]);
/// assert_eq!(map.range(..2).next_back(), Some((&1, &"a")));
/// ```
#[derive(Clone)]
pub struct SortedMap<K, V> {
    /// The first entries: all of them where there are few.
    pub(super) first: Vec<(K, V)>,
    /// Those behind them, in lists of which none is empty.
    pub(super) rest: Vec<Vec<(K, V)>>,
}

/// Where an entry is, or would be: the list, counted with the first one, and the place in it.
type At = (usize, usize);

impl<K, V> SortedMap<K, V> {
    /// An empty map, which takes no memory.
    pub const fn new() -> Self {
        SortedMap { first: Vec::new(), rest: Vec::new() }
    }

    /// The number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.first.len() + self.rest.iter().map(Vec::len).sum::<usize>()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.first.is_empty() && self.rest.is_empty()
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.first.clear();
        self.rest.clear();
    }

    /// The entries in order.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter { first: self.first.iter(), lists: self.rest.iter(), last: [].iter() }
    }

    /// The entries in order, with values that may be changed.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        IterMut { first: self.first.iter_mut(), lists: self.rest.iter_mut() }
    }

    /// The keys in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// The values in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// The values in the order of their keys, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }

    /// The keys in order, taken out of the map.
    pub fn into_keys(self) -> impl DoubleEndedIterator<Item = K> {
        self.into_iter().map(|(key, _)| key)
    }

    /// The values in the order of their keys, taken out of the map.
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> {
        self.into_iter().map(|(_, value)| value)
    }

    /// Keeps the entries for which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.first.retain_mut(|(key, value)| keep(key, value));
        for list in &mut self.rest {
            list.retain_mut(|(key, value)| keep(key, value));
        }
        self.rest.retain(|list| !list.is_empty());
        self.fill_first();
    }

    /// Removes the first entry.
    #[inline]
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        (!self.is_empty()).then(|| self.take((0, 0)))
    }

    /// Removes the last entry.
    pub fn pop_last(&mut self) -> Option<(K, V)> {
        let list = self.rest.len();
        let at = self.list(list).len().checked_sub(1)?;
        Some(self.take((list, at)))
    }

    #[inline]
    fn list(&self, number: usize) -> &Vec<(K, V)> {
        if number == 0 { &self.first } else { &self.rest[number - 1] }
    }

    #[inline]
    fn list_mut(&mut self, number: usize) -> &mut Vec<(K, V)> {
        if number == 0 { &mut self.first } else { &mut self.rest[number - 1] }
    }

    /// Removes the entry there.
    #[inline]
    fn take(&mut self, (number, place): At) -> (K, V) {
        let list = self.list_mut(number);
        let entry = list.remove(place);
        if list.is_empty() && number > 0 {
            self.rest.remove(number - 1);
        }
        self.fill_first();
        entry
    }

    /// Sees to it that the first list is not empty where another is not.
    fn fill_first(&mut self) {
        if self.first.is_empty() && !self.rest.is_empty() {
            self.first = self.rest.remove(0);
        }
    }

    /// Puts an entry there, and says where it is now.
    fn put(&mut self, (number, place): At, entry: (K, V)) -> At {
        let list = self.list_mut(number);
        list.insert(place, entry);
        if list.len() <= CHUNK {
            return (number, place);
        }
        // What arrives in order leaves full lists behind.
        let kept = if place == CHUNK { CHUNK } else { CHUNK / 2 };
        let behind = list.split_off(kept);
        self.rest.insert(number, behind);
        if place < kept { (number, place) } else { (number + 1, place - kept) }
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    /// Where the key is, or else where it would be.
    #[inline]
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<At, At>
    where
        K: Borrow<Q>,
    {
        let number = match self.rest.is_empty() {
            true => 0,
            false => self.rest.partition_point(|list| list[0].0.borrow() <= key),
        };
        match self.list(number).binary_search_by(|entry| entry.0.borrow().cmp(key)) {
            Ok(place) => Ok((number, place)),
            Err(place) => Err((number, place)),
        }
    }

    /// The value of a key.
    #[inline]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (number, place) = self.find(key).ok()?;
        Some(&self.list(number)[place].1)
    }

    /// The value of a key, to be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (number, place) = self.find(key).ok()?;
        Some(&mut self.list_mut(number)[place].1)
    }

    /// Whether the key has a value.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Gives a key a value, and returns the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok((number, place)) => Some(std::mem::replace(&mut self.list_mut(number)[place].1, value)),
            Err(at) => {
                self.put(at, (key, value));
                None
            }
        }
    }

    /// Removes a key, and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key).ok()?;
        Some(self.take(at).1)
    }

    /// The place of a key, whether it has a value or not.
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        let at = self.find(&key);
        Entry { map: self, key, at }
    }

    /// The entries whose keys are in a range, in order.
    pub fn range<Q: Ord + ?Sized>(&self, range: impl RangeBounds<Q>) -> Iter<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let from = match range.start_bound() {
            Bound::Unbounded => (0, 0),
            Bound::Included(key) => self.find(key).unwrap_or_else(|at| at),
            Bound::Excluded(key) => self.behind(key),
        };
        let to = match range.end_bound() {
            Bound::Unbounded => (self.rest.len(), self.list(self.rest.len()).len()),
            Bound::Included(key) => self.behind(key),
            Bound::Excluded(key) => self.find(key).unwrap_or_else(|at| at),
        };
        let last = self.list(to.0);
        if from.0 >= to.0 {
            let places = if from.0 == to.0 { from.1.min(to.1)..to.1 } else { 0..0 };
            return Iter { first: last[places].iter(), lists: [].iter(), last: [].iter() };
        }
        let first = self.list(from.0)[from.1..].iter();
        Iter { first, lists: self.rest[from.0..to.0 - 1].iter(), last: last[..to.1].iter() }
    }

    /// Where the first key behind this one is, or would be.
    fn behind<Q: Ord + ?Sized>(&self, key: &Q) -> At
    where
        K: Borrow<Q>,
    {
        self.find(key).map_or_else(|at| at, |(number, place)| (number, place + 1))
    }
}

/// The place of a key in a map.
pub struct Entry<'a, K, V> {
    map: &'a mut SortedMap<K, V>,
    key: K,
    at: Result<At, At>,
}

impl<'a, K, V> Entry<'a, K, V> {
    /// The value, which is `value` where there was none.
    pub fn or_insert(self, value: V) -> &'a mut V {
        self.or_insert_with(|| value)
    }

    /// The value, which `make` makes where there was none.
    pub fn or_insert_with(self, make: impl FnOnce() -> V) -> &'a mut V {
        let (number, place) = match self.at {
            Ok(at) => at,
            Err(at) => {
                let value = make();
                self.map.put(at, (self.key, value))
            }
        };
        &mut self.map.list_mut(number)[place].1
    }

    /// The value, which is the default where there was none.
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Changes the value, if there is one.
    #[must_use]
    pub fn and_modify(self, change: impl FnOnce(&mut V)) -> Self {
        if let Ok((number, place)) = self.at {
            change(&mut self.map.list_mut(number)[place].1);
        }
        self
    }
}
