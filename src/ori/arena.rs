//! Values that are numbered in the order in which they were made.
//!
//! As `cranelift_entity::PrimaryMap`, but a look-up is inlined wherever it stands: instructions,
//! blocks and registers are looked up some ten million times for a large kernel.

use cranelift_entity::EntityRef;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};
use std::slice::{Iter, IterMut};

/// The values of the numbers `K`.
#[derive(Clone)]
pub struct Arena<K, V> {
    all: Vec<V>,
    keys: PhantomData<K>,
}

impl<K, V> Default for Arena<K, V> {
    fn default() -> Arena<K, V> {
        Arena { all: Vec::new(), keys: PhantomData }
    }
}

impl<K: EntityRef, V> Arena<K, V> {
    /// Adds a value, which gets the next number.
    #[inline]
    pub fn push(&mut self, value: V) -> K {
        self.all.push(value);
        K::new(self.all.len() - 1)
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All numbers, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator + use<K, V> {
        (0..self.all.len()).map(K::new)
    }

    /// All values, in order.
    #[inline]
    pub fn values(&self) -> Iter<'_, V> {
        self.all.iter()
    }

    /// All values, in order, for changes.
    #[inline]
    pub fn values_mut(&mut self) -> IterMut<'_, V> {
        self.all.iter_mut()
    }

    /// All numbers with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.all.iter().enumerate().map(|(at, value)| (K::new(at), value))
    }

    /// Drops the room for more.
    pub fn shrink_to_fit(&mut self) {
        self.all.shrink_to_fit();
    }
}

impl<K: EntityRef, V> Index<K> for Arena<K, V> {
    type Output = V;

    #[inline(always)]
    fn index(&self, key: K) -> &V {
        &self.all[key.index()]
    }
}

impl<K: EntityRef, V> IndexMut<K> for Arena<K, V> {
    #[inline(always)]
    fn index_mut(&mut self, key: K) -> &mut V {
        &mut self.all[key.index()]
    }
}

impl<K, V> FromIterator<V> for Arena<K, V> {
    fn from_iter<I: IntoIterator<Item = V>>(values: I) -> Arena<K, V> {
        Arena { all: values.into_iter().collect(), keys: PhantomData }
    }
}
