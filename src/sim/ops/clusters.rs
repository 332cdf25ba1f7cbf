//! The clusters of a grid in the order in which they begin, and requests for one that has not
//! begun (PTX ISA 9.7.13.18): it never does, and whoever asks learns where it would have been.

use crate::arrays::Each;

/// Blocks that are resident at the same time.
const RESIDENT: usize = 64;
/// The same where a kernel asks for blocks: few, so that some are left to ask for.
const RESIDENT_WHERE_ASKED: usize = 4;

/// The clusters of a launch that have not begun.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clusters {
    grid: [u32; 3],
    each: [u32; 3],
    /// The next one, and how many there are.
    next: u64,
    end: u64,
    resident: usize,
}

impl Clusters {
    /// All clusters of `each` blocks of a grid; `asked` where the kernel may ask for one.
    pub fn new(grid: [u32; 3], each: [u32; 3], asked: bool) -> Clusters {
        let each = each.each(|n| n.max(1));
        let count = |blocks: [u32; 3]| blocks.iter().map(|n| u64::from(*n)).product::<u64>();
        let resident = if asked { RESIDENT_WHERE_ASKED } else { RESIDENT };
        Clusters { grid, each, next: 0, end: count(grid) / count(each), resident }
    }

    /// Number of blocks of a cluster.
    pub fn size(&self) -> u32 {
        self.each.iter().product()
    }

    /// The first block of the next cluster, which begins if there is room beside so many others.
    pub fn begin(&mut self, others: usize) -> Option<[u32; 3]> {
        let room = others * (self.size() as usize) < self.resident;
        if room { self.take() } else { None }
    }

    /// The block of a rank in a cluster.
    pub fn block(&self, first: [u32; 3], rank: u32) -> [u32; 3] {
        let [x, y, _] = self.each;
        [first[0] + rank % x, first[1] + rank / x % y, first[2] + rank / x / y]
    }

    /// The answer to a request for the next cluster, in 16 bytes: 32, 16 and 16 bits of the place
    /// of its first block, and then whether there is one.
    pub fn cancel(&mut self) -> [u64; 2] {
        match self.take() {
            Some([x, y, z]) => [u64::from(x) | u64::from(y & 0xffff) << 32 | u64::from(z & 0xffff) << 48, 1],
            None => [0; 2],
        }
    }

    fn take(&mut self) -> Option<[u32; 3]> {
        let at = self.next;
        if at == self.end {
            return None;
        }
        self.next += 1;
        let [x, y] = [self.grid[0] / self.each[0], self.grid[1] / self.each[1]].each(u64::from);
        let place = [at % x, at / x % y, at / x / y];
        Some([0, 1, 2].each(|axis| place[axis] as u32 * self.each[axis]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_begin_in_order_or_are_cancelled() {
        let mut clusters = Clusters::new([4, 2, 3], [2, 1, 1], true);
        assert_eq!(clusters.begin(0), Some([0, 0, 0]));
        assert_eq!(clusters.begin(1), Some([2, 0, 0]));
        assert_eq!(clusters.begin(2), None);
        assert_eq!(clusters.cancel(), [1 << 32, 1]);
        assert_eq!(clusters.cancel(), [1 << 32 | 2, 1]);
        assert_eq!(clusters.cancel(), [1 << 48, 1]);
        assert_eq!(clusters.block([2, 1, 0], 1), [3, 1, 0]);
        let left = (0..9).filter(|_| clusters.cancel()[1] == 1).count();
        assert_eq!((left, clusters.cancel()), (7, [0, 0]));
    }
}
