//! Interference: which physical registers are taken at which points, as a tree over points with one
//! bit per register.
//!
//! A query returns the registers that are taken anywhere in a range, in time logarithmic in the
//! number of points. No register is taken twice at one point, so a range can be released again.
//! Two ranges have a point in common only if one of them has the start of the other, so the tree
//! has those points alone at which ranges start.

use super::ranges::Range;
use crate::ori::File;

/// A set of up to 256 registers of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mask(pub [u64; 4]);

impl Mask {
    /// All registers below a number.
    #[inline]
    pub fn below(count: i32) -> Mask {
        let word = |i: usize| match (count - 64 * i as i32).clamp(0, 64) {
            64 => u64::MAX,
            bits => (1 << bits) - 1,
        };
        Mask([word(0), word(1), word(2), word(3)])
    }

    /// All registers whose number is `residue` modulo `modulus`, a power of two up to 64.
    pub fn multiples(modulus: i32, residue: i32) -> Mask {
        let every = match modulus {
            1 => u64::MAX,
            2 => 0x5555_5555_5555_5555,
            4 => 0x1111_1111_1111_1111,
            8 => 0x0101_0101_0101_0101,
            16 => 0x0001_0001_0001_0001,
            32 => 0x0000_0001_0000_0001,
            _ => 1,
        };
        Mask([every << residue; 4])
    }

    /// Adds a register.
    pub fn insert(&mut self, number: i32) {
        self.0[number as usize / 64] |= 1 << (number % 64);
    }

    /// Whether a register is in the set.
    #[inline]
    pub fn contains(&self, number: i32) -> bool {
        (0..256).contains(&number) && self.0[number as usize / 64] >> (number % 64) & 1 != 0
    }

    /// The union of two sets.
    #[inline]
    pub fn or(self, other: Mask) -> Mask {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Mask([a | e, b | f, c | g, d | h])
    }

    /// The registers that are not in `other`.
    #[inline]
    pub fn minus(self, other: Mask) -> Mask {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Mask([a & !e, b & !f, c & !g, d & !h])
    }

    /// The intersection of two sets.
    #[inline]
    pub fn and(self, other: Mask) -> Mask {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Mask([a & e, b & f, c & g, d & h])
    }

    /// Subtracts `places` from each number (adds, if negative); numbers outside 0..256 are dropped.
    #[inline]
    pub fn lowered(self, places: i32) -> Mask {
        if places == 0 {
            return self;
        }
        let (words, bits) = (places.unsigned_abs() as usize / 64, places.unsigned_abs() % 64);
        let at = |i: Option<usize>| i.and_then(|i| self.0.get(i)).copied().unwrap_or(0);
        let join = |near: u64, far: u64, right: bool| match (bits, right) {
            (0, _) => near,
            (_, true) => near >> bits | far << (64 - bits),
            (_, false) => near << bits | far >> (64 - bits),
        };
        let word = |i: usize| {
            if places >= 0 {
                join(at(Some(i + words)), at(Some(i + words + 1)), true)
            } else {
                join(at(i.checked_sub(words)), at(i.checked_sub(words + 1)), false)
            }
        };
        Mask([word(0), word(1), word(2), word(3)])
    }

    /// The lowest register of the set.
    #[inline]
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
    /// For ranges below `end` that start at these points, or are made of some that do.
    pub fn new(end: u32, starts: impl Iterator<Item = (File, u32)>) -> Occupied {
        let mut before = [vec![0; end as usize + 1], vec![0; end as usize + 1]];
        for (file, start) in starts {
            before[usize::from(file != File::R)][start as usize + 1] = 1;
        }
        for before in &mut before {
            let mut count = 0;
            for point in before {
                count += *point;
                *point = count;
            }
        }
        let [general, others] = before;
        Occupied { general: Tree::new(general), others: Tree::new(others) }
    }

    /// Nothing is taken of general registers, if they are among these files, and nothing of the
    /// other files, if one of them is.
    pub fn clear(&mut self, files: &[File]) {
        if files.contains(&File::R) {
            self.general.clear();
        }
        if files.iter().any(|file| *file != File::R) {
            self.others.clear();
        }
    }

    /// Takes a register in these ranges, in which it must be free.
    pub fn take(&mut self, file: File, number: i32, ranges: &[Range]) {
        let bit = (number + first_bit(file)) as usize;
        match file {
            File::R => ranges.iter().for_each(|range| self.general.take(bit, *range)),
            _ => ranges.iter().for_each(|range| self.others.take(bit, *range)),
        }
    }

    /// Releases a register in these ranges, in which it must be taken.
    pub fn give_back(&mut self, file: File, number: i32, ranges: &[Range]) {
        let bit = (number + first_bit(file)) as usize;
        match file {
            File::R => ranges.iter().for_each(|range| self.general.give_back(bit, *range)),
            _ => ranges.iter().for_each(|range| self.others.give_back(bit, *range)),
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

/// Children of a node, and their number's logarithm.
const SHIFT: usize = 3;
const WIDTH: usize = 1 << SHIFT;

/// Registers of one node.
#[derive(Clone, Copy)]
struct Node<const W: usize> {
    /// Registers taken at every point of the node and recorded at this node.
    whole: [u64; W],
    /// Registers taken at some point of the node.
    some: [u64; W],
}

/// The registers taken at each point, and at runs of points: a node of each level stands for
/// [`WIDTH`] of the level below.
struct Tree<const W: usize> {
    /// How many of the points that are in the tree stand before each.
    before: Vec<u32>,
    points: Vec<[u64; W]>,
    /// The levels above the points, the lowest one first.
    levels: Vec<Vec<Node<W>>>,
}

impl<const W: usize> Tree<W> {
    fn new(before: Vec<u32>) -> Tree<W> {
        let mut count = before.last().map_or(1, |count| *count as usize).max(1).next_multiple_of(WIDTH);
        let points = vec![[0; W]; count];
        let mut levels = Vec::new();
        while count > WIDTH {
            count = (count >> SHIFT).next_multiple_of(WIDTH);
            levels.push(vec![Node { whole: [0; W], some: [0; W] }; count]);
        }
        Tree { before, points, levels }
    }

    /// The points of a range that are in the tree, from the first one to behind the last one.
    #[inline]
    fn within(&self, range: Range) -> (usize, usize) {
        (self.before[range.0 as usize] as usize, self.before[range.1 as usize] as usize)
    }

    fn clear(&mut self) {
        self.points.fill([0; W]);
        self.levels.iter_mut().for_each(|level| level.fill(Node { whole: [0; W], some: [0; W] }));
    }

    fn take(&mut self, bit: usize, range: Range) {
        let (word, bit) = (bit / 64, 1u64 << (bit % 64));
        let within = self.within(range);
        let (mut left, mut right) = (within.0, within.1 - 1);
        let Runs { first, last, mut above } = Runs::of(within, self.levels.is_empty());
        self.points[first].iter_mut().for_each(|point| point[word] |= bit);
        self.points[last].iter_mut().for_each(|point| point[word] |= bit);
        let top = self.levels.len();
        for (number, level) in self.levels.iter_mut().enumerate() {
            (left, right) = (left >> SHIFT, right >> SHIFT);
            // What a node has, those above it have too.
            if above.is_none() && level[left].some[word] & level[right].some[word] & bit != 0 {
                break;
            }
            level[left].some[word] |= bit;
            level[right].some[word] |= bit;
            let Some(range) = above else { continue };
            let runs = Runs::of(range, number + 1 == top);
            for nodes in [runs.first, runs.last] {
                level[nodes].iter_mut().for_each(|node| {
                    node.whole[word] |= bit;
                    node.some[word] |= bit;
                });
            }
            above = runs.above;
        }
    }

    fn give_back(&mut self, bit: usize, range: Range) {
        let (word, bit) = (bit / 64, 1u64 << (bit % 64));
        let within = self.within(range);
        let Runs { first, last, mut above } = Runs::of(within, self.levels.is_empty());
        self.points[first].iter_mut().for_each(|point| point[word] &= !bit);
        self.points[last].iter_mut().for_each(|point| point[word] &= !bit);
        let top = self.levels.len();
        for (number, level) in self.levels.iter_mut().enumerate() {
            let Some(range) = above else { break };
            let runs = Runs::of(range, number + 1 == top);
            for nodes in [runs.first, runs.last] {
                level[nodes].iter_mut().for_each(|node| {
                    node.whole[word] &= !bit;
                    node.some[word] &= !bit;
                });
            }
            above = runs.above;
        }
        let (left, right) = (within.0, within.1 - 1);
        self.leave(left, word, bit);
        if left >> SHIFT != right >> SHIFT {
            self.leave(right, word, bit);
        }
    }

    /// Brings the nodes above a point up to date, in which a register was taken somewhere, as far
    /// as it is not any more.
    fn leave(&mut self, point: usize, word: usize, bit: u64) {
        let mut at = point;
        for level in 0..self.levels.len() {
            let children = at & !(WIDTH - 1)..(at | (WIDTH - 1)) + 1;
            let taken = |nodes: &[Node<W>]| nodes.iter().fold(0, |all, node| all | node.some[word]);
            let below = match level {
                0 => self.points[children].iter().fold(0, |all, point| all | point[word]),
                _ => taken(&self.levels[level - 1][children]),
            };
            at >>= SHIFT;
            let node = &mut self.levels[level][at];
            if (below | node.whole[word]) & bit != 0 {
                node.some[word] |= bit;
                return;
            }
            node.some[word] &= !bit;
        }
    }

    #[inline]
    fn add_taken(&self, range: Range, out: &mut [u64; W]) {
        let mut all = *out;
        // A loop by number is inlined, a zip is not: this is the innermost step of allocation.
        #[allow(clippy::needless_range_loop)]
        let mut add = |words: &[u64; W]| {
            for word in 0..W {
                all[word] |= words[word];
            }
        };
        let within = self.within(range);
        let (mut left, mut right) = (within.0, within.1 - 1);
        let Runs { first, last, mut above } = Runs::of(within, self.levels.is_empty());
        self.points[first].iter().for_each(&mut add);
        self.points[last].iter().for_each(&mut add);
        for (number, level) in self.levels.iter().enumerate() {
            (left, right) = (left >> SHIFT, right >> SHIFT);
            add(&level[left].whole);
            if right != left {
                add(&level[right].whole);
            }
            let Some(range) = above else { continue };
            let runs = Runs::of(range, number + 1 == self.levels.len());
            level[runs.first].iter().for_each(|node| add(&node.some));
            level[runs.last].iter().for_each(|node| add(&node.some));
            above = runs.above;
        }
        *out = all;
    }
}

/// What covers a range on one level: the nodes before and behind those that nodes of the level
/// above cover.
struct Runs {
    first: std::ops::Range<usize>,
    last: std::ops::Range<usize>,
    /// The nodes of the level above, if there are any, from the first one to behind the last one.
    above: Option<(usize, usize)>,
}

impl Runs {
    /// Of the nodes from the first one to behind the last one, on the highest level or another one.
    #[inline]
    fn of((left, right): (usize, usize), highest: bool) -> Runs {
        let (inner, last) = (left.next_multiple_of(WIDTH), right & !(WIDTH - 1));
        if highest || inner >= last {
            return Runs { first: left..right, last: right..right, above: None };
        }
        Runs { first: left..inner, last: last..right, above: Some((inner >> SHIFT, last >> SHIFT)) }
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
        let mut tree = Occupied::new(end, (0..end).map(|point| (File::R, point)));
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
