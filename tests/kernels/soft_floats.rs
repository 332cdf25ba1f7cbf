//! The arithmetic of interpreter and simulator beside LLVM's (`rustc_apfloat`).
//!
//! Sums, products, fused sums, comparisons, conversions between formats and with integers, and
//! rounding to integral numbers, in four formats and every rounding mode, of special and of random
//! numbers; numbers of 8 bits besides. LLVM's result must be ours bit for bit, except that a NaN
//! of ours is the canonical one, and that a number too large for 8 bits becomes the largest one.

use crate::exact::Random;
use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round as Theirs};
use sassafras::sim::ops::convert::{IntType, float_to_int, int_to_float, round_float};
use sassafras::sim::ops::format::{BF16, F16, F32, F64, Format, Round};
use sassafras::sim::ops::narrow::{Tiny, from_tiny, to_tiny};
use sassafras::sim::ops::real::{Mode, Relation, add, compare, fma, mul};
use std::cmp::Ordering;

/// Random cases of each operation, format and rounding mode.
const RUNS: u64 = 4_000;

const ROUNDS: [(Round, Theirs); 5] = [
    (Round::Nearest, Theirs::NearestTiesToEven),
    (Round::Down, Theirs::TowardNegative),
    (Round::Up, Theirs::TowardPositive),
    (Round::Zero, Theirs::TowardZero),
    (Round::Away, Theirs::NearestTiesToAway),
];

const INTEGERS: [IntType; 6] = [
    IntType { bits: 16, signed: true },
    IntType { bits: 16, signed: false },
    IntType { bits: 32, signed: true },
    IntType { bits: 32, signed: false },
    IntType { bits: 64, signed: true },
    IntType { bits: 64, signed: false },
];

fn mode(round: Round) -> Mode {
    Mode { round, ..Mode::default() }
}

/// The bits of a result of LLVM's, in which every NaN is the format's canonical one.
fn bits<F: Float>(f: Format, x: F) -> u64 {
    if x.is_nan() { f.nan() } else { x.to_bits() as u64 }
}

fn of<F: Float>(bits: u64) -> F {
    F::from_bits(u128::from(bits))
}

/// Zeros, the least and the greatest subnormal and normal numbers, one, infinities and a NaN.
fn special(f: Format) -> Vec<u64> {
    let one = f.inf(false) >> 1 & f.inf(false);
    let normal = 1 << f.mant;
    let magnitudes = [0, 1, normal - 1, normal, normal + 1, one - 1, one, one + 1, f.max(false), f.inf(false), f.nan()];
    magnitudes.into_iter().flat_map(|bits| [bits, bits | f.sign_bit()]).collect()
}

/// Calls `check` with all triples of special numbers, and with random ones.
fn triples(f: Format, seed: u64, mut check: impl FnMut(u64, u64, u64)) {
    let list = special(f);
    for a in &list {
        for b in &list {
            list.iter().for_each(|c| check(*a, *b, *c));
        }
    }
    let mut random = Random(seed);
    for _ in 0..RUNS {
        let [a, b, c] = [(); 3].map(|()| random.number(f));
        // A third number near the negated product shows what is lost where the two cancel.
        let product = mul(f, a, b, Mode::default()) ^ f.sign_bit();
        check(a, b, if random.below(4) == 0 { product ^ random.below(4) } else { c });
    }
}

fn arithmetic<F: Float>(f: Format) {
    for (round, theirs) in ROUNDS {
        triples(f, 1 + u64::from(f.bits()), |a, b, c| {
            let how = format!("{f:?} {round:?} {a:x} {b:x} {c:x}");
            let (x, y, z) = (of::<F>(a), of::<F>(b), of::<F>(c));
            let canonical = |ours: u64| if f.is_nan(ours) { f.nan() } else { ours };
            assert_eq!(canonical(add(f, a, b, mode(round))), bits(f, x.add_r(y, theirs).value), "sum {how}");
            assert_eq!(canonical(mul(f, a, b, mode(round))), bits(f, x.mul_r(y, theirs).value), "product {how}");
            let fused = bits(f, x.mul_add_r(y, z, theirs).value);
            assert_eq!(canonical(fma(f, a, b, c, mode(round))), fused, "fused {how}");
            let integral = bits(f, x.round_to_integral(theirs).value);
            assert_eq!(round_float(f, a, f, round, false), integral, "integral {how}");
            let relation = match x.partial_cmp(&y) {
                Some(Ordering::Less) => Relation::Less,
                Some(Ordering::Equal) => Relation::Equal,
                Some(Ordering::Greater) => Relation::Greater,
                None => Relation::Unordered,
            };
            assert_eq!(compare(f, a, b, false), relation, "relation {how}");
        });
    }
}

/// Numbers of a format as integers, and integers as numbers of it.
fn integers<F: Float>(f: Format) {
    for (round, theirs) in ROUNDS {
        for to in INTEGERS {
            triples(f, 100 + u64::from(f.bits()), |a, b, c| {
                let x = of::<F>(a);
                if !x.is_nan() {
                    let width = to.bits as usize;
                    let exact = &mut false;
                    let value = match to.signed {
                        true => x.to_i128_r(width, theirs, exact).value as u64,
                        false => x.to_u128_r(width, theirs, exact).value as u64,
                    };
                    let kept = u64::MAX >> (64 - to.bits.max(32));
                    assert_eq!(float_to_int(f, a, to, round, false), value & kept, "{f:?} {to:?} {round:?} {a:x}");
                }
                let word = b.rotate_left((c % 64) as u32) ^ c;
                let value = to.value(word);
                let wanted =
                    if to.signed { F::from_i128_r(value, theirs) } else { F::from_u128_r(value as u128, theirs) };
                assert_eq!(int_to_float(to, word, f, round), bits(f, wanted.value), "{to:?} {f:?} {round:?} {word:x}");
            });
        }
    }
}

fn converted<F: FloatConvert<T>, T: Float>(from: Format, to: Format) {
    for (round, theirs) in ROUNDS {
        triples(from, 200 + u64::from(to.bits()), |a, b, c| {
            for a in [a, b, c] {
                let wanted = bits(to, of::<F>(a).convert_r(theirs, &mut false).value);
                assert_eq!(from.convert(a, to, round), wanted, "{from:?} {to:?} {round:?} {a:x}");
            }
        });
    }
}

#[test]
fn arithmetic_is_that_of_llvm_in_16_bits() {
    arithmetic::<Half>(F16);
    arithmetic::<BFloat>(BF16);
}

#[test]
fn arithmetic_is_that_of_llvm_in_32_and_64_bits() {
    arithmetic::<Single>(F32);
    arithmetic::<Double>(F64);
}

#[test]
fn integers_convert_as_in_llvm() {
    integers::<Half>(F16);
    integers::<BFloat>(BF16);
    integers::<Single>(F32);
    integers::<Double>(F64);
}

#[test]
fn formats_convert_as_in_llvm() {
    converted::<Half, Single>(F16, F32);
    converted::<Half, Double>(F16, F64);
    converted::<BFloat, Half>(BF16, F16);
    converted::<Single, Half>(F32, F16);
    converted::<Single, BFloat>(F32, BF16);
    converted::<Single, Double>(F32, F64);
    converted::<Double, Half>(F64, F16);
    converted::<Double, BFloat>(F64, BF16);
    converted::<Double, Single>(F64, F32);
}

/// A number as 8 bits by LLVM, where it has any; too large ones become the largest.
fn tiny<T: Float>(to: Tiny, x: Single, theirs: Theirs) -> u8
where
    Single: FloatConvert<T>,
{
    let y: T = x.convert_r(theirs, &mut false).value;
    match x.is_nan() {
        true => to.nan(),
        false if y.is_finite() => y.to_bits() as u8,
        false => to.max() | if x.is_negative() { 0x80 } else { 0 },
    }
}

#[test]
fn numbers_of_8_bits_convert_as_in_llvm() {
    for (round, theirs) in [ROUNDS[0], ROUNDS[3]] {
        triples(F32, 300, |a, b, c| {
            for a in [a, b, c] {
                // Near the numbers that 8 bits have, too.
                let near = a & 0x80ff_ffff | (110 + a % 40) << 23;
                for a in [a, near & 0xffff_ffff, near & 0xfff8_0000, near & 0xfff0_0001] {
                    let x = of::<Single>(a);
                    let how = format!("{round:?} {a:x}");
                    let ours = |to: Tiny| to_tiny(to, F32.unpack(a), round, false);
                    assert_eq!(ours(Tiny::E5m2), tiny::<Float8E5M2>(Tiny::E5m2, x, theirs), "e5m2 {how}");
                    assert_eq!(ours(Tiny::E4m3), tiny::<Float8E4M3FN>(Tiny::E4m3, x, theirs), "e4m3 {how}");
                }
            }
        });
    }
    for byte in 0..=255u8 {
        let e5m2: Half = of::<Float8E5M2>(byte.into()).convert_r(Theirs::TowardZero, &mut false).value;
        let e4m3: Half = of::<Float8E4M3FN>(byte.into()).convert_r(Theirs::TowardZero, &mut false).value;
        assert_eq!(from_tiny(Tiny::E5m2, byte, false), bits(F16, e5m2), "e5m2 {byte:x}");
        assert_eq!(from_tiny(Tiny::E4m3, byte, false), bits(F16, e4m3), "e4m3 {byte:x}");
    }
}
