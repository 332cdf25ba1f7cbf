//! Iteration over the lists of a map, from both ends.

use std::slice;
use std::vec;

/// The entries of a map, or of a part of it, in order.
pub struct Iter<'a, K, V> {
    pub(super) first: slice::Iter<'a, (K, V)>,
    pub(super) lists: slice::Iter<'a, Vec<(K, V)>>,
    pub(super) last: slice::Iter<'a, (K, V)>,
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Iter { first: self.first.clone(), lists: self.lists.clone(), last: self.last.clone() }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<(&'a K, &'a V)> {
        loop {
            if let Some((key, value)) = self.first.next() {
                return Some((key, value));
            }
            match self.lists.next() {
                Some(list) => self.first = list.iter(),
                None => return self.last.next().map(|(key, value)| (key, value)),
            }
        }
    }
}

impl<'a, K, V> DoubleEndedIterator for Iter<'a, K, V> {
    fn next_back(&mut self) -> Option<(&'a K, &'a V)> {
        loop {
            if let Some((key, value)) = self.last.next_back() {
                return Some((key, value));
            }
            match self.lists.next_back() {
                Some(list) => self.last = list.iter(),
                None => return self.first.next_back().map(|(key, value)| (key, value)),
            }
        }
    }
}

/// The entries of a map in order, with values that may be changed.
pub struct IterMut<'a, K, V> {
    pub(super) first: slice::IterMut<'a, (K, V)>,
    pub(super) lists: slice::IterMut<'a, Vec<(K, V)>>,
}

impl<'a, K, V> Iterator for IterMut<'a, K, V> {
    type Item = (&'a K, &'a mut V);

    fn next(&mut self) -> Option<(&'a K, &'a mut V)> {
        loop {
            if let Some((key, value)) = self.first.next() {
                return Some((key, value));
            }
            self.first = self.lists.next()?.iter_mut();
        }
    }
}

/// The entries of a map in order, taken out of it.
pub type IntoIter<K, V> = vec::IntoIter<(K, V)>;
