//! Exact references of the helpers that compute each lane independently.
//!
//! For a helper's name, it gives the kinds of its inputs and the expected results: integers by host
//! arithmetic, floats exactly and rounded once (to nearest also by the host's own division and
//! square root).

use super::exact::quotient;
use super::harness::Random;
use sassafras::sim::ops::format::{Exact, F16, F32, F64, Format, Round, Value};

/// The expected result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Want {
    Bits(u64),
    Nan(Format),
}

impl Want {
    pub fn is(self, got: u64) -> bool {
        match self {
            Want::Bits(bits) => bits == got,
            Want::Nan(f) => f.is_nan(got),
        }
    }
}

/// The kind of value for a parameter.
#[derive(Clone, Copy)]
pub enum Kind {
    F32,
    F64,
    Int(u32),
    /// A small count, mostly.
    Count,
    /// Greater than 0 and at most 1, as f32.
    Share,
    Below(u64),
}

impl Kind {
    pub fn edges(self) -> Vec<u64> {
        let bits = |f: Format| {
            let one = (f.bias() as u64) << f.mant;
            let list = [
                0,
                1,
                2,
                (1 << f.mant) - 1,
                1 << f.mant,
                one - 1,
                one,
                one + 1,
                3 << (f.mant - 1) | one,
                f.max(false),
                f.inf(false),
                f.inf(false) | 1,
                f.inf(false) | 2,
                f.nan(),
            ];
            list.iter().flat_map(|b| [*b, *b | f.sign_bit()]).collect::<Vec<_>>()
        };
        match self {
            Kind::F32 => bits(F32),
            Kind::F64 => bits(F64),
            Kind::Int(n) => {
                let mask = u64::MAX >> (64 - n);
                let half = 1u64 << (n - 1);
                let list =
                    [0, 1, 2, 3, half - 1, half, half + 1, mask, mask - 1, 0x7fff, 0x8000, 0xffff, 0x10000, 0xffffffff];
                list.map(|x| x & mask).to_vec()
            }
            Kind::Count => vec![0, 1, 31, 32, 33, 63, 64, 65, 255, 256, 257, 0xffffffff],
            Kind::Share => [1.0f32, 0.5, 0.0625, 1e-3, 0.9999, 0.062, 0.0626].map(|x| x.to_bits().into()).to_vec(),
            Kind::Below(n) => (0..n.min(24)).chain([n - 1]).collect(),
        }
    }

    pub fn random(self, r: &mut Random) -> u64 {
        match self {
            Kind::F32 => r.number(F32),
            Kind::F64 => r.number(F64),
            Kind::Int(n) => {
                let (bits, kind) = (r.next(), r.next() >> 20);
                let bits = bits >> (kind % 64);
                let bits = match (kind >> 8) % 4 {
                    0 => bits.wrapping_neg(),
                    1 => (1u64 << (kind >> 16 & 63)).wrapping_add(bits & 3).wrapping_sub(2),
                    _ => bits,
                };
                bits & u64::MAX >> (64 - n)
            }
            Kind::Count => {
                if r.below(4) == 0 {
                    r.next() & 0xffffffff
                } else {
                    r.below(80)
                }
            }
            Kind::Share => ((r.below(1 << 24) + 1) as f32 / (1 << 24) as f32).to_bits().into(),
            Kind::Below(n) => r.below(n),
        }
    }
}

/// a / b in a format.
fn divided(f: Format, a: u64, b: u64, round: Round) -> Want {
    let neg = (a ^ b) & f.sign_bit() != 0;
    Want::Bits(match (f.unpack(a), f.unpack(b)) {
        (Value::Nan, _) | (_, Value::Nan) | (Value::Inf(_), Value::Inf(_)) | (Value::Zero(_), Value::Zero(_)) => {
            return Want::Nan(f);
        }
        (Value::Inf(_), _) | (_, Value::Zero(_)) => f.inf(neg),
        (Value::Zero(_), _) | (_, Value::Inf(_)) => f.zero(neg),
        (Value::Num(a), Value::Num(b)) => f.pack(quotient(a, b), round),
    })
}

fn root(f: Format, a: u64, round: Round) -> Want {
    Want::Bits(match f.unpack(a) {
        Value::Zero(_) | Value::Inf(false) => a,
        Value::Num(x) if !x.neg => {
            let mut shift = 120 - (127 - x.mant.leading_zeros() as i32);
            shift += (x.exp - shift) & 1;
            let mant = x.mant << shift;
            let whole = mant.isqrt();
            let mant = whole << 1 | u128::from(whole * whole != mant);
            f.pack(Exact { neg: false, mant, exp: (x.exp - shift) / 2 - 1 }, round)
        }
        _ => return Want::Nan(f),
    })
}

/// 1 / the square root of a positive f64, rounded to nearest.
fn inverse_root(x: u64) -> u64 {
    let Value::Num(x) = F64.unpack(x) else { unreachable!("a positive number") };
    // The operand as 63 or 64 bits times an even power of two: the root times 2^86 has 55 bits, and
    // its square times the operand is 2^172.
    let shift = 62 - (127 - x.mant.leading_zeros() as i32);
    let shift = shift + ((x.exp - shift) & 1);
    let (mant, exp) = (x.mant << shift, x.exp - shift);
    let below = |root: u128| {
        let (high, low) = ((root * root) >> 64, (root * root) & u128::from(u64::MAX));
        mant * high + ((mant * low) >> 64) < 1 << (172 - 64)
    };
    let root = (0..55).rev().fold(0u128, |root, bit| if below(root | 1 << bit) { root | 1 << bit } else { root });
    // The sticky bit is always set: `below` is strict, so the remainder is never zero.
    F64.pack(Exact { neg: false, mant: root << 1 | 1, exp: -exp / 2 - 87 }, Round::Nearest)
}

/// The reference of one lane, from its words and its thread's index in the block.
pub type Reference = Box<dyn Fn(&[u64], u64) -> Vec<Want>>;

fn of(f: impl Fn(&[u64]) -> Vec<u64> + 'static) -> Reference {
    Box::new(move |a, _| f(a).into_iter().map(Want::Bits).collect())
}

/// The inputs and results of a helper; `None` if it is not per-lane arithmetic.
pub fn reference(name: &str) -> Option<(Vec<Kind>, Reference)> {
    let name = name.strip_prefix("__cuda_")?;
    rounded(name).or_else(|| integer(name)).or_else(|| parts(name)).or_else(|| guards(name))
}

fn rounded(name: &str) -> Option<(Vec<Kind>, Reference)> {
    let rest = name.strip_prefix("sm20_").or(name.strip_prefix("sm3x_"))?;
    let f = if rest.contains("f64") || rest.starts_with("dblrcp") {
        F64
    } else if rest.contains("f32") {
        F32
    } else {
        return None;
    };
    let kind = if f == F64 { Kind::F64 } else { Kind::F32 };
    let mode = |m: &str| rest.contains(&format!("_{m}_"));
    let round = if mode("rz") {
        Round::Zero
    } else if mode("rd") {
        Round::Down
    } else if mode("ru") {
        Round::Up
    } else {
        Round::Nearest
    };
    let ftz = rest.contains("_ftz_");
    let flush = move |x: u64| if ftz { f.flush(x) } else { x };
    let flushed = move |w: Want| match w {
        Want::Bits(bits) => Want::Bits(flush(bits)),
        other => other,
    };
    let one = (f.bias() as u64) << f.mant;
    if rest.starts_with("div") {
        return Some((
            vec![kind, kind],
            Box::new(move |a, _| {
                let (x, y) = (flush(a[0]), flush(a[1]));
                let want = divided(f, x, y, round);
                if round == Round::Nearest
                    && let Want::Bits(bits) = want
                {
                    let host = if f == F64 {
                        (f64::from_bits(x) / f64::from_bits(y)).to_bits()
                    } else {
                        (f32::from_bits(x as u32) / f32::from_bits(y as u32)).to_bits().into()
                    };
                    assert_eq!(bits, host, "{x:x} / {y:x}");
                }
                vec![flushed(want)]
            }),
        ));
    }
    if rest.starts_with("drsqrt") {
        return Some((
            vec![kind],
            Box::new(move |a, _| {
                let x = f64::from_bits(a[0]);
                vec![if x.is_nan() || x < 0.0 {
                    Want::Nan(F64)
                } else if x == 0.0 {
                    Want::Bits(f64::INFINITY.copysign(x).to_bits())
                } else {
                    Want::Bits(if x.is_finite() { inverse_root(a[0]) } else { 0 })
                }]
            }),
        ));
    }
    let rcp = rest.contains("rcp");
    (rcp || rest.contains("sqrt")).then(|| {
        let reference: Reference = Box::new(move |a, _| {
            let x = flush(a[0]);
            vec![flushed(if rcp { divided(f, one, x, round) } else { root(f, x, round) })]
        });
        (vec![kind], reference)
    })
}

fn integer(name: &str) -> Option<(Vec<Kind>, Reference)> {
    let (i16k, i32k, i64k) = (Kind::Int(32), Kind::Int(32), Kind::Int(64));
    let low = |x: i64| x as u32 as u64;
    Some(match name {
        "sm20_div_s64" => (
            vec![i64k; 2],
            of(|a| vec![if a[1] == 0 { u64::MAX } else { (a[0] as i64).wrapping_div(a[1] as i64) as u64 }]),
        ),
        "sm20_rem_s64" => {
            (vec![i64k; 2], of(|a| vec![if a[1] == 0 { a[0] } else { (a[0] as i64).wrapping_rem(a[1] as i64) as u64 }]))
        }
        "sm20_div_u64" => (vec![i64k; 2], of(|a| vec![a[0].checked_div(a[1]).unwrap_or(u64::MAX)])),
        "sm20_rem_u64" => (vec![i64k; 2], of(|a| vec![a[0].checked_rem(a[1]).unwrap_or(a[0])])),
        "sm20_div_s16" => (
            vec![i16k; 2],
            of(move |a| {
                let (x, y) = (a[0] as i16, a[1] as i16);
                vec![low(if y == 0 { -1 } else { x.wrapping_div(y) }.into())]
            }),
        ),
        "sm20_rem_s16" => (
            vec![i16k; 2],
            of(move |a| {
                let (x, y) = (a[0] as i16, a[1] as i16);
                vec![low(if y == 0 { x } else { x.wrapping_rem(y) }.into())]
            }),
        ),
        "sm20_div_u16" => {
            (vec![i16k; 2], of(|a| vec![(a[0] as u16).checked_div(a[1] as u16).unwrap_or(u16::MAX).into()]))
        }
        "sm20_rem_u16" => {
            (vec![i16k; 2], of(|a| vec![(a[0] as u16).checked_rem(a[1] as u16).unwrap_or(a[0] as u16).into()]))
        }
        "sm20_bfe_u64_" | "sm20_bfe_s64_" => {
            let signed = name.contains("s64");
            (
                vec![i64k, Kind::Count, Kind::Count],
                of(move |a| {
                    let (pos, len) = (a[1] & 255, a[2] & 255);
                    let bit = |i: u64| if i < 64 { a[0] >> i & 1 } else { 0 };
                    let sign = if signed && len > 0 { a[0] >> (pos + len - 1).min(63) & 1 } else { 0 };
                    vec![(0..64).fold(0, |r, i| r | if i < len && pos + i < 64 { bit(pos + i) } else { sign } << i)]
                }),
            )
        }
        "sm20_bfi_u64_" => (
            vec![i64k, i64k, Kind::Count, Kind::Count],
            of(|a| {
                let (pos, len) = (a[2] & 255, a[3] & 255);
                vec![(0..64).fold(0, |r, i| {
                    r | if i >= pos && i - pos < len { a[0] >> (i - pos) & 1 } else { a[1] >> i & 1 } << i
                })]
            }),
        ),
        "sm62_dp4a" => (
            vec![i32k; 3],
            of(move |a| {
                let sum: i64 =
                    (0..4).map(|i| i64::from((a[0] >> (8 * i)) as i8) * i64::from((a[1] >> (8 * i)) as i8)).sum();
                vec![low(sum + a[2] as i64)]
            }),
        ),
        "sm62_dp2a" => (
            vec![i32k, i32k, i32k, Kind::Below(32), Kind::Below(32)],
            of(move |a| {
                // The field may extend past the end of the word: bits beyond it are sign bits.
                let byte = |at: u64| i64::from(((i64::from(a[1] as i32)) >> at) as i8);
                vec![low(i64::from(a[0] as i16) * byte(a[3])
                    + i64::from((a[0] >> 16) as i16) * byte(a[4])
                    + a[2] as i64)]
            }),
        ),
        _ => return None,
    })
}

fn parts(name: &str) -> Option<(Vec<Kind>, Reference)> {
    let (w, l) = (Kind::Int(32), Kind::Int(64));
    if let Some(rest) = name.strip_prefix("scalar_video_emulation_") {
        return Some(match rest {
            "operandExtractAndSignExtend01" => (vec![w, w], of(|a| vec![a[0]])),
            "operandExtractAndSignExtend11" => (vec![w, w], of(|a| vec![a[0] >> (8 * (a[1] & 3)) & 255])),
            "operandExtractAndSignExtend12" => {
                (vec![w, w], of(|a| vec![i64::from((a[0] >> (8 * (a[1] & 3))) as i8) as u64]))
            }
            "operandExtractAndSignExtend22" => {
                (vec![w, w], of(|a| vec![i64::from((a[0] >> (16 * (a[1] & 1))) as i16) as u64]))
            }
            "optionalMerge32" => (
                vec![w, w, Kind::Count],
                of(|a| {
                    let place = |bits: u64, at: u64| {
                        let m = ((1u64 << bits) - 1) << at;
                        a[1] & !m | a[0] << at & m
                    };
                    vec![match a[2] {
                        0..=3 => place(8, 8 * a[2]),
                        4 | 5 => place(16, 16 * (a[2] - 4)),
                        _ => a[0],
                    }]
                }),
            ),
            "saturate64" => (
                vec![l, Kind::Below(2)],
                of(|a| {
                    let r = a[0] as i64;
                    vec![
                        if a[1] != 0 { r.clamp(i32::MIN.into(), i32::MAX.into()) } else { r.clamp(0, u32::MAX.into()) }
                            as u64,
                    ]
                }),
            ),
            "secondOp64" => (
                vec![l, w, Kind::Below(4)],
                of(|a| {
                    let (r, c) = (a[0] as i64, i64::from(a[1] as i32));
                    vec![match a[2] {
                        0 => r.wrapping_add(c),
                        1 => r.min(c),
                        _ => r.max(c),
                    } as u64]
                }),
            ),
            _ => return None,
        });
    }
    Some(match name {
        "sm80_createpolicy_fractional" => {
            (vec![Kind::Share], of(|a| vec![(f32::from_bits(a[0] as u32) * 15.99) as u64]))
        }
        "sm80_createpolicy_fractional_encode" => (vec![Kind::Below(16)], of(|a| vec![0x14000000 << 32 | a[0] << 52])),
        "sm80_createpolicy_range_encode" => (
            vec![Kind::Below(28), l, Kind::Below(128)],
            of(|a| {
                vec![(0x1c000000 | (a[0].wrapping_sub(12) & 15) << 20 | (a[1] & 127) << 12 | (a[2] & 127) << 5) << 32]
            }),
        ),
        "sm80_createpolicy_range" => (
            vec![Kind::Below(1 << 47), Kind::Below(1 << 32), Kind::Below(1 << 32)],
            of(|a| {
                let most = (a[2] as u32).wrapping_sub(1);
                let bits = if most == 0 { 12 } else { (31 - most.leading_zeros() as i32 - 6).max(12) } as u64;
                let (first, end) = (a[0] >> bits, (a[0] + a[1] + (1 << bits) - 1) >> bits);
                vec![bits, first, (end - first).min(127)]
            }),
        ),
        "sm70_wmma_downconvert" | "sm7x_wmma_downconvert" => (vec![Kind::F32; 4], Box::new(|a, _| narrowed(a, false))),
        "sm70_wmma_downconvert_satfinite" | "sm7x_wmma_downconvert_satfinite" => {
            (vec![Kind::F32; 4], Box::new(|a, _| narrowed(a, true)))
        }
        "sm70_wmma_upconvert" | "sm7x_wmma_upconvert" => (
            vec![w; 2],
            Box::new(|a, _| {
                let half = |x: u64| {
                    if F16.is_nan(x) { Want::Nan(F32) } else { Want::Bits(F16.convert(x, F32, Round::Nearest)) }
                };
                [a[0] & 0xffff, a[0] >> 16, a[1] & 0xffff, a[1] >> 16].map(half).to_vec()
            }),
        ),
        _ => return None,
    })
}

fn narrowed(a: &[u64], finite: bool) -> Vec<Want> {
    let half = |x: u64| {
        let number = f32::from_bits(x as u32);
        if number.is_nan() {
            return if finite { 0 } else { 0x7fff };
        }
        let x = if finite { number.clamp(-65504.0, 65504.0).to_bits().into() } else { x };
        F32.convert(x, F16, Round::Nearest)
    };
    (0..2).map(|i| Want::Bits(half(a[2 * i]) | half(a[2 * i + 1]) << 16)).collect()
}

fn guards(name: &str) -> Option<(Vec<Kind>, Reference)> {
    let name = name.strip_prefix("sm10x_")?;
    let columns = Kind::Below(600);
    Some(match name {
        "create_mask_from_bit_idx_and_alloc_size_v1" => {
            (vec![Kind::Below(16), Kind::Below(513)], of(|a| vec![((1u64 << (a[1] / 32)) - 1) << a[0] & 0xffffffff]))
        }
        "tcgen05_guardrails_check_column_allocation" => (
            vec![Kind::Below(513), Kind::Below(128), Kind::Int(32)],
            of(|a| {
                let wanted = (a[0]..a[0] + a[1]).all(|c| a[2] >> (c / 32).min(63) & 1 == 1);
                vec![wanted.into()]
            }),
        ),
        "tcgen05_guardrails_check_physical_bounds" => {
            (vec![Kind::Int(32), columns], of(|a| vec![(a[0] + a[1] <= 512).into()]))
        }
        "tcgen05_guardrails_check_allocation_granularity" => {
            (vec![columns], of(|a| vec![[32, 64, 128, 256, 512].contains(&a[0]).into()]))
        }
        "tcgen05_guardrails_check_datapath_validity" => (
            vec![Kind::Int(32), Kind::Below(2)],
            Box::new(|a, t| {
                let lane = a[0] >> 16;
                vec![Want::Bits((lane / 32 == t / 32 % 4).into())]
            }),
        ),
        "get_warp_rank" => (vec![], Box::new(|_, t| vec![Want::Bits(t / 32)])),
        "tcgen05_guardrails_check_datapath_alignment" => (
            vec![Kind::Int(32), Kind::Int(32), Kind::Below(3), Kind::Below(2), Kind::Below(2), Kind::Below(8)],
            of(|a| {
                let rows = (a[1] >> 24 & 31) * 16 / if a[2] == 2 { 2 } else { 1 };
                let lane = a[0] >> 16;
                vec![
                    match rows {
                        0..=32 => lane < 128 && lane % 32 == 0,
                        33..=64 => lane == 0 || lane == 64,
                        _ => lane == 0,
                    }
                    .into(),
                ]
            }),
        ),
        _ => return None,
    })
}
