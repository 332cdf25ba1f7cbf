//! A fast deterministic hash for names.
//!
//! A text whose names collide on purpose only makes its own compile slower. No code depends on the
//! order of such a map.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};

/// A map by name, or by name and number; its order means nothing.
pub type NameMap<K, V> = HashMap<K, V, NameHasher>;

/// Multiplies and folds eight bytes after the others.
#[derive(Clone, Copy, Default)]
pub struct NameHasher(u64);

impl NameHasher {
    #[inline]
    fn add(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product as u64 ^ (product >> 64) as u64).wrapping_add(word);
    }
}

impl BuildHasher for NameHasher {
    type Hasher = Self;

    #[inline]
    fn build_hasher(&self) -> Self {
        Self::default()
    }

    // As the standard one, which is not inlined across units of code.
    #[inline]
    fn hash_one<T: Hash>(&self, key: T) -> u64 {
        let mut hasher = Self::default();
        key.hash(&mut hasher);
        hasher.finish()
    }
}

impl Hasher for NameHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let last = rest.iter().rev().fold(0, |last, byte| last << 8 | u64::from(*byte));
            self.add(last | (rest.len() as u64) << 56);
        }
    }

    /// The end of a name, which its length tells already.
    #[inline]
    fn write_u8(&mut self, _: u8) {}

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.add(u64::from(word));
    }
}
