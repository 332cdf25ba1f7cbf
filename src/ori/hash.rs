//! A fast deterministic hash for maps with keys of a few words.
//!
//! Only the compiler makes the keys, so the hash need not resist attacks. No code iterates over
//! such a map, so the hash cannot affect the output.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};

/// A map for look-ups only; never iterate over it.
pub type QuickMap<K, V> = HashMap<K, V, Quick>;

/// Multiplies and folds one word after the other.
#[derive(Clone, Copy, Default)]
pub struct Quick(u64);

impl BuildHasher for Quick {
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

impl Hasher for Quick {
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}
