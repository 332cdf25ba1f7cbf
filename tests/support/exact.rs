//! Random numbers for arithmetic tests, and exact quotients of them.

use sassafras::sim::ops::format::{Exact, Format};

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = self.0 ^ self.0 >> 33;
        x.wrapping_mul(0xff51afd7ed558ccd) ^ x >> 29
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A random number of a format: any bits, or with a special exponent, or with a special
    /// mantissa.
    pub fn number(&mut self, f: Format) -> u64 {
        let (kind, bits) = (self.next() >> 40, self.next() >> (64 - f.bits()));
        let ones = (1 << f.mant) - 1;
        let exponents = (1u64 << f.exp) - 1;
        let with_exponent = |e: u64| bits & (f.sign_bit() | ones) | (e % exponents) << f.mant;
        let bits = match kind % 8 {
            0 => with_exponent(self.next() % 4),
            1 => with_exponent(exponents - 1 - self.next() % 4),
            2 => with_exponent(exponents / 2 + self.next() % 3),
            3 => with_exponent(exponents / 4 + self.next() % 64),
            _ => bits,
        };
        match (kind >> 3) % 8 {
            0 => bits | ones,
            1 => bits & !ones | (bits & 3),
            2 => (bits | ones) - (bits & 3),
            3 => bits & !(ones >> (f.mant / 2)),
            _ => bits,
        }
    }
}

/// a / b as a mantissa with a sticky bit; both must be nonzero finite numbers.
pub fn quotient(a: Exact, b: Exact) -> Exact {
    let shift = 126 - (127 - a.mant.leading_zeros());
    let mant = a.mant << shift;
    let (q, rest) = (mant / b.mant, mant % b.mant);
    Exact { neg: a.neg != b.neg, mant: q | u128::from(rest != 0), exp: a.exp - b.exp - shift as i32 }
}
