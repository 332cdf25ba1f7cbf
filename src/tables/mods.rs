//! The set of modifiers on one instruction.
//!
//! A modifier with its default value is not stored and the others are sorted by kind, so equal
//! meanings are equal values.

use super::ori::Mod;

/// Largest number of non-default modifiers on one instruction.
pub const MAX_MODS: usize = 12;

/// The modifiers of one instruction: the non-default ones, sorted by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mods {
    len: u8,
    items: [(u8, u8); MAX_MODS],
}

impl Mods {
    /// Words that hold all modifiers of one instruction.
    pub const WORDS: usize = MAX_MODS.div_ceil(4);

    /// The modifiers in words, four in each: equal exactly for equal modifiers.
    pub fn words(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        let pair = |word, (kind, value): &(u8, u8)| word << 16 | u64::from(*kind) << 8 | u64::from(*value);
        self.items[..usize::from(self.len)].chunks(4).map(move |chunk| chunk.iter().fold(0, pair))
    }

    /// Value of a kind; 0, the default, if it is not stored.
    #[inline]
    pub fn get(&self, kind: Mod) -> u8 {
        let stored = &self.items[..usize::from(self.len)];
        stored.iter().find(|(k, _)| *k == kind as u8).map_or(0, |(_, v)| *v)
    }

    /// Sets a value. No table row has more than [`MAX_MODS`] kinds; a value beyond that would be
    /// dropped.
    pub fn set(&mut self, kind: Mod, value: u8) {
        let len = usize::from(self.len);
        let at = self.items[..len].partition_point(|(k, _)| *k < kind as u8);
        let present = at < len && self.items[at].0 == kind as u8;
        match (present, value) {
            (true, 0) => {
                self.items.copy_within(at + 1..len, at);
                self.items[len - 1] = (0, 0);
                self.len -= 1;
            }
            (true, _) => self.items[at].1 = value,
            (false, 0) => {}
            (false, _) if len == MAX_MODS => debug_assert!(false, "too many modifiers"),
            (false, _) => {
                self.items.copy_within(at..len, at + 1);
                self.items[at] = (kind as u8, value);
                self.len += 1;
            }
        }
    }

    /// The same with one more value.
    pub fn with(mut self, kind: Mod, value: u8) -> Mods {
        self.set(kind, value);
        self
    }

    /// The stored kinds and values, sorted by kind.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (Mod, u8)> + '_ {
        self.items[..usize::from(self.len)].iter().map(|(k, v)| (Mod::ALL[usize::from(*k)], *v))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_are_canonical() {
        let a = Mods::default().with(Mod::X, 1).with(Mod::Cmp, 3);
        let b = Mods::default().with(Mod::Cmp, 3).with(Mod::Bool, 1).with(Mod::X, 1).with(Mod::Bool, 0);
        assert_eq!(a, b);
        assert_eq!((a.get(Mod::X), a.get(Mod::Cmp), a.get(Mod::Bool)), (1, 3, 0));
    }
}
