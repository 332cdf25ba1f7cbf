//! Inputs of the forms: edge values and random values.
//!
//! Each thread has one row of bytes, as the kernels of `oracle_lowering.rs` load them: three 32-bit
//! words at 0, 64-bit words at 16, f32 at 40, f64 at 56, f16 at 80, pairs of f16 at 88, single f16
//! at 100, scratch at 128. The first block has edge values, the others random ones; the values are
//! the same in every run.

/// Edge values or random ones, from a fixed sequence.
struct Edges {
    state: u64,
    random: bool,
}

impl Edges {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = self.state ^ self.state >> 33;
        x.wrapping_mul(0xff51afd7ed558ccd) ^ x >> 29
    }
    /// An element of the list, or a random value with fewer bits.
    fn of(&mut self, list: &[u64]) -> u64 {
        if self.random {
            let (random, shift) = (self.next(), self.next());
            return random >> (shift % 8 * 8);
        }
        let (edge, random) = (self.next(), self.next());
        if edge % 5 < 3 { list[(random % list.len() as u64) as usize] } else { random >> (random % 3 * 8) }
    }
    fn word(&mut self) -> u64 {
        self.of(&[
            0, 1, 2, 9, 31, 32, 33, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x3fffffff, 0x7fffffff, 0x80000000,
            0xffffffff,
        ]) & 0xffff_ffff
    }
    /// Half of the random values: a float of this many bits with an exponent near that of 1.
    fn near_one(&mut self, mantissa: u32, exponent: u32) -> Option<u64> {
        if !self.random || self.next().is_multiple_of(2) {
            return None;
        }
        let (bits, bias) = (self.next(), (1u64 << (exponent - 1)) - 1);
        let (sign, fraction) = (bits >> 63, bits & ((1 << mantissa) - 1));
        let offset = self.next() % 13;
        Some(sign << (mantissa + exponent) | (bias + offset).saturating_sub(6) << mantissa | fraction)
    }
    fn single(&mut self) -> u64 {
        if let Some(bits) = self.near_one(23, 8) {
            return bits;
        }
        let list = [
            0, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 1, 0x80000001, 0x7fffff,
            0x800000, 0x7f7fffff, 0x4f000000, 0x4effffff, 0xcf000000, 0x5f000000, 0x3f000000, 0x3fc00000, 0x40200000,
            0x43800000, 0xc3000000,
        ];
        self.of(&list) & 0xffff_ffff
    }
    /// 16-bit values: edges of f16 and of bf16.
    fn half(&mut self) -> u64 {
        if let Some(bits) = self.near_one(10, 5) {
            return bits;
        }
        let list = [
            0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 1, 0x8001, 0x3ff, 0x400, 0x7bff, 0x3f80, 0xbf80, 0x7f80,
            0xff80, 0x7fc0, 0x7f, 0x80, 0x7f7f, 0x4000, 0x3800, 0xff,
        ];
        self.of(&list) & 0xffff
    }
    fn double(&mut self) -> u64 {
        if let Some(bits) = self.near_one(52, 11) {
            return bits;
        }
        let list = [
            0,
            1 << 63,
            0x3ff0000000000000,
            0xbff8000000000000,
            0x7ff0000000000000,
            0xfff0000000000000,
            0x7ff8000000000000,
            1,
            0x000fffffffffffff,
            0x0010000000000000,
            0x7fefffffffffffff,
            0x41e0000000000000,
            0xc1e0000000200000,
            0x43e0000000000000,
            0x43dfffffffffffff,
            0x3fe0000000000000,
            0x4004000000000000,
            0x47efffffefffffff,
            0x36a0000000000000,
            0x41dfffffffc00000,
        ];
        self.of(&list)
    }
}

/// The rows of one block of `threads`, `stride` bytes each.
fn block(number: u64, threads: usize, stride: usize) -> Vec<u8> {
    let random = number != 0;
    let mut edges = Edges { state: 5 + number, random };
    let mut bytes = vec![0; threads * stride];
    for thread in bytes.chunks_mut(stride) {
        for i in 0..3 {
            thread[4 * i..][..4].copy_from_slice(&edges.word().to_le_bytes()[..4]);
            let long = edges.word() | edges.word() << 32;
            thread[16 + 8 * i..][..8].copy_from_slice(&long.to_le_bytes());
            thread[40 + 4 * i..][..4].copy_from_slice(&edges.single().to_le_bytes()[..4]);
            thread[56 + 8 * i..][..8].copy_from_slice(&edges.double().to_le_bytes());
            thread[80 + 2 * i..][..2].copy_from_slice(&edges.word().to_le_bytes()[..2]);
        }
        for i in 0..4 {
            thread[128 + 8 * i..][..8].copy_from_slice(&(edges.word() | edges.word() << 32).to_le_bytes());
        }
    }
    let mut halves = Edges { state: 9 + number, random };
    for thread in bytes.chunks_mut(stride) {
        for i in 0..3 {
            let pair = halves.half() | halves.half() << 16;
            thread[88 + 4 * i..][..4].copy_from_slice(&pair.to_le_bytes()[..4]);
            thread[100 + 2 * i..][..2].copy_from_slice(&halves.half().to_le_bytes()[..2]);
        }
    }
    bytes
}

/// The rows of this many blocks.
pub fn inputs(blocks: usize, threads: usize, stride: usize) -> Vec<u8> {
    (0..blocks as u64).flat_map(|number| block(number, threads, stride)).collect()
}
