//! A fast deterministic hash for maps with keys of a few words.
//!
//! Only the compiler makes the keys, so the hash need not resist attacks. No code iterates over
//! such a map, so the hash cannot affect the output.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map for look-ups only; never iterate over it.
pub type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;

/// Multiplies and folds one word after the other.
#[derive(Clone, Copy, Default)]
pub struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}
