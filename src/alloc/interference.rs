//! Interference: which physical registers are taken at which points, as a segment tree over points
//! with one bit per register.
//!
//! A query returns the registers that are taken anywhere in a range, in time logarithmic in the
//! number of points. No register is taken twice at one point, so a range can be released again.

use super::ranges::Range;
use crate::ori::File;

/// A set of up to 256 registers of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mask(pub [u64; 4]);

impl Mask {
    /// All registers below a number.
    pub fn below(count: i32) -> Mask {
        let word = |i: usize| match (count - 64 * i as i32).clamp(0, 64) {
            64 => u64::MAX,
            bits => (1 << bits) - 1,
        };
        Mask(std::array::from_fn(word))
    }

    /// All registers whose number is `residue` modulo `modulus`, a power of two up to 64.
    pub fn multiples(modulus: i32, residue: i32) -> Mask {
        let word = (0..64 / modulus).fold(0u64, |w, i| w | 1 << (i * modulus + residue));
        Mask([word; 4])
    }

    /// Adds a register.
    pub fn insert(&mut self, number: i32) {
        self.0[number as usize / 64] |= 1 << (number % 64);
    }

    /// Whether a register is in the set.
    pub fn contains(&self, number: i32) -> bool {
        (0..256).contains(&number) && self.0[number as usize / 64] >> (number % 64) & 1 != 0
    }

    /// The union of two sets.
    pub fn or(self, other: Mask) -> Mask {
        Mask(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    /// The registers that are not in `other`.
    pub fn minus(self, other: Mask) -> Mask {
        Mask(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    /// The intersection of two sets.
    pub fn and(self, other: Mask) -> Mask {
        Mask(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// Subtracts `places` from each number (adds, if negative); numbers outside 0..256 are dropped.
    pub fn lowered(self, places: i32) -> Mask {
        let (words, bits) = (places.unsigned_abs() as usize / 64, places.unsigned_abs() % 64);
        let at = |i: Option<usize>| i.and_then(|i| self.0.get(i)).copied().unwrap_or(0);
        let join = |near: u64, far: u64, right: bool| match (bits, right) {
            (0, _) => near,
            (_, true) => near >> bits | far << (64 - bits),
            (_, false) => near << bits | far >> (64 - bits),
        };
        Mask(std::array::from_fn(|i| {
            if places >= 0 {
                join(at(Some(i + words)), at(Some(i + words + 1)), true)
            } else {
                join(at(i.checked_sub(words)), at(i.checked_sub(words + 1)), false)
            }
        }))
    }

    /// The lowest register of the set.
    pub fn lowest(&self) -> Option<i32> {
        let word = self.0.iter().position(|w| *w != 0)?;
        Some(word as i32 * 64 + self.0[word].trailing_zeros() as i32)
    }

    /// The registers of the set, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = i32> {
        self.0.into_iter().enumerate().flat_map(|(i, mut word)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as i32)?;
                word &= word - 1;
                Some(64 * i as i32 + bit)
            })
        })
    }
}

/// First bit of a file in the tree for files other than R.
fn first_bit(file: File) -> i32 {
    match file {
        File::R | File::UR => 0,
        File::P => 80,
        File::UP => 87,
        File::B => 96,
        File::UB => 112,
    }
}

/// Taken registers of all files.
pub struct Occupied {
    general: Tree<4>,
    others: Tree<2>,
}

impl Occupied {
    /// For points below `end`.
    pub fn new(end: u32) -> Occupied {
        Occupied { general: Tree::new(end), others: Tree::new(end) }
    }

    /// Nothing is taken.
    pub fn clear(&mut self) {
        self.general.clear();
        self.others.clear();
    }

    /// Takes a register in these ranges, in which it must be free.
    pub fn take(&mut self, file: File, number: i32, ranges: &[Range]) {
        self.change(file, number, ranges, true);
    }

    /// Releases a register in these ranges, in which it must be taken.
    pub fn give_back(&mut self, file: File, number: i32, ranges: &[Range]) {
        self.change(file, number, ranges, false);
    }

    fn change(&mut self, file: File, number: i32, ranges: &[Range], take: bool) {
        let bit = (number + first_bit(file)) as usize;
        for range in ranges {
            match file {
                File::R => self.general.change(bit, *range, take),
                _ => self.others.change(bit, *range, take),
            }
        }
    }

    /// Registers of a file that are taken somewhere in these ranges.
    pub fn taken(&self, file: File, ranges: &[Range]) -> Mask {
        if file == File::R {
            let mut out = [0; 4];
            ranges.iter().for_each(|r| self.general.add_taken(*r, &mut out));
            return Mask(out);
        }
        let mut out = [0; 2];
        ranges.iter().for_each(|r| self.others.add_taken(*r, &mut out));
        let count = match file {
            File::P | File::UP => 7,
            File::B | File::UB => 16,
            _ => first_bit(File::P),
        };
        Mask([out[0], out[1], 0, 0]).lowered(first_bit(file)).and(Mask::below(count))
    }
}

/// Node i has the children 2i and 2i + 1; leaf p is node `leaves + p`.
struct Tree<const W: usize> {
    leaves: usize,
    /// Registers taken at every point of the node and recorded at this node.
    whole: Vec<[u64; W]>,
    /// Registers taken at some point of the node.
    some: Vec<[u64; W]>,
}

impl<const W: usize> Tree<W> {
    fn new(end: u32) -> Tree<W> {
        let leaves = (end as usize).max(1).next_power_of_two();
        Tree { leaves, whole: vec![[0; W]; 2 * leaves], some: vec![[0; W]; 2 * leaves] }
    }

    fn clear(&mut self) {
        self.whole.fill([0; W]);
        self.some.fill([0; W]);
    }

    fn change(&mut self, bit: usize, range: Range, take: bool) {
        let (word, bit) = (bit / 64, 1u64 << (bit % 64));
        let (mut l, mut r) = (range.0 as usize + self.leaves, range.1 as usize + self.leaves);
        let (first, last) = (l, r - 1);
        while l < r {
            for (odd, node) in [(l & 1 == 1, l), (r & 1 == 1, r - 1)] {
                if odd {
                    let set = |w: &mut u64| if take { *w |= bit } else { *w &= !bit };
                    set(&mut self.whole[node][word]);
                    set(&mut self.some[node][word]);
                    if !take && node < self.leaves {
                        let below = self.some[2 * node][word] | self.some[2 * node + 1][word];
                        self.some[node][word] |= below & bit;
                    }
                }
            }
            (l, r) = (l.div_ceil(2), r / 2);
        }
        let mut update = |node: usize| {
            let below = self.some[2 * node][word] | self.some[2 * node + 1][word] | self.whole[node][word];
            self.some[node][word] = self.some[node][word] & !bit | below & bit;
        };
        let (mut left, mut right) = (first / 2, last / 2);
        while left >= 1 {
            update(left);
            if right != left {
                update(right);
            }
            (left, right) = (left / 2, right / 2);
        }
    }

    fn add_taken(&self, range: Range, out: &mut [u64; W]) {
        let mut add = |words: &[u64; W]| out.iter_mut().zip(words).for_each(|(o, w)| *o |= w);
        let (mut l, mut r) = (range.0 as usize + self.leaves, range.1 as usize + self.leaves);
        let (mut left, mut right) = (l / 2, (r - 1) / 2);
        while left >= 1 {
            add(&self.whole[left]);
            if right != left {
                add(&self.whole[right]);
            }
            (left, right) = (left / 2, right / 2);
        }
        while l < r {
            if l & 1 == 1 {
                add(&self.some[l]);
            }
            if r & 1 == 1 {
                add(&self.some[r - 1]);
            }
            (l, r) = (l.div_ceil(2), r / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_agrees_with_a_plain_table() {
        let (end, mut state) = (100u32, 12345u64);
        let mut random = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let mut tree = Occupied::new(end);
        let mut table = vec![Mask::default(); end as usize];
        let mut taken: Vec<(i32, Range)> = Vec::new();
        for _ in 0..2000 {
            let (start, number) = (random(99) as u32, random(253) as i32);
            let range = (start, start + 1 + random(u64::from(end - start)) as u32);
            let seen = (range.0..range.1).fold(Mask::default(), |m, p| m.or(table[p as usize]));
            assert_eq!(tree.taken(File::R, &[range]), seen);
            if !seen.contains(number) {
                tree.take(File::R, number, &[range]);
                (range.0..range.1).for_each(|p| table[p as usize].insert(number));
                taken.push((number, range));
            } else if !taken.is_empty() {
                let (number, range) = taken.swap_remove(random(taken.len() as u64) as usize);
                tree.give_back(File::R, number, &[range]);
                let mut one = Mask::default();
                one.insert(number);
                (range.0..range.1).for_each(|p| table[p as usize] = table[p as usize].minus(one));
            }
        }
    }

    #[test]
    fn masks_shift_both_ways() {
        let mut mask = Mask::default();
        [0, 5, 63, 64, 200].into_iter().for_each(|n| mask.insert(n));
        assert_eq!(mask.lowered(5).iter().collect::<Vec<_>>(), [0, 58, 59, 195]);
        assert_eq!(mask.lowered(-64).iter().collect::<Vec<_>>(), [64, 69, 127, 128]);
        assert_eq!(mask.lowered(0), mask);
    }
}
