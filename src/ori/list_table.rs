//! A list for each key, most of them short.
//!
//! Like a `SecondaryMap` of lists, but that copies its default into each new entry, element by
//! element, where an empty list is made in one step.

use cranelift_entity::EntityRef;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// The lists; that of a key without an entry is empty.
#[derive(Clone)]
pub struct ListTable<K, L> {
    lists: Vec<L>,
    none: L,
    keys: PhantomData<K>,
}

impl<K: EntityRef, L: Default> ListTable<K, L> {
    /// Entries for the keys below `len`, all empty.
    pub fn new(len: usize) -> ListTable<K, L> {
        let mut lists = Vec::new();
        lists.resize_with(len, L::default);
        ListTable { lists, none: L::default(), keys: PhantomData }
    }

    /// A number above those of all keys with an entry.
    pub fn limit(&self) -> usize {
        self.lists.len()
    }
}

impl<K: EntityRef, L> Index<K> for ListTable<K, L> {
    type Output = L;

    #[inline]
    fn index(&self, key: K) -> &L {
        self.lists.get(key.index()).unwrap_or(&self.none)
    }
}

impl<K: EntityRef, L: Default> IndexMut<K> for ListTable<K, L> {
    #[inline]
    fn index_mut(&mut self, key: K) -> &mut L {
        if key.index() >= self.lists.len() {
            self.lists.resize_with(key.index() + 1, L::default);
        }
        &mut self.lists[key.index()]
    }
}

impl<K: EntityRef, L: PartialEq> PartialEq for ListTable<K, L> {
    /// Tables are equal if the lists of all keys are, however many have an entry.
    fn eq(&self, other: &ListTable<K, L>) -> bool {
        let all = 0..self.lists.len().max(other.lists.len());
        all.map(K::new).all(|key| self[key] == other[key])
    }
}

impl<K: EntityRef, L: Eq> Eq for ListTable<K, L> {}
