//! Quotients and roots on the simulator, compared with exact integer arithmetic.
//!
//! The input is edge values and random numbers (with all exponents, and with only those that give
//! subnormal results or have a mantissa of all ones). Each result of `div`, `rcp` and `sqrt` in
//! four rounding modes must equal the exact one, rounded once by the simulator's own formats, whose
//! rounding is tested elsewhere. Integer `div` and `rem` must equal those of the host, also for 64
//! bits and for constant divisors: all up to 1,000, powers of two and their neighbours, with
//! dividends at the edges and next to multiples.

use crate::exact::{Random, quotient};
use sassafras::compile::{Options, compile};
use sassafras::sim::launch::ArgValue;
use sassafras::sim::ops::format::{Exact, F32, F64, Format, Round, Value};
use sassafras::sim::run::{Shape, run};

const MODES: [(&str, Round); 4] = [("rn", Round::Nearest), ("rz", Round::Zero), ("rm", Round::Down), ("rp", Round::Up)];
const BLOCK: usize = 256;

fn divided(f: Format, a: u64, b: u64, round: Round) -> Option<u64> {
    let neg = (a ^ b) & f.sign_bit() != 0;
    Some(match (f.unpack(a), f.unpack(b)) {
        (Value::Nan, _) | (_, Value::Nan) | (Value::Inf(_), Value::Inf(_)) | (Value::Zero(_), Value::Zero(_)) => {
            return None;
        }
        (Value::Inf(_), _) | (_, Value::Zero(_)) => f.inf(neg),
        (Value::Zero(_), _) | (_, Value::Inf(_)) => f.zero(neg),
        (Value::Num(a), Value::Num(b)) => f.pack(quotient(a, b), round),
    })
}

fn root(f: Format, a: u64, round: Round) -> Option<u64> {
    Some(match f.unpack(a) {
        Value::Zero(_) => a,
        Value::Inf(false) => a,
        Value::Num(x) if !x.neg => {
            // An even exponent and about 120 bits: the root has 60.
            let mut shift = 120 - (127 - x.mant.leading_zeros() as i32);
            shift += (x.exp - shift) & 1;
            let mant = x.mant << shift;
            let whole = mant.isqrt();
            f.pack(
                Exact {
                    neg: false,
                    mant: whole << 1 | u128::from(whole * whole != mant),
                    exp: (x.exp - shift) / 2 - 1,
                },
                round,
            )
        }
        _ => return None,
    })
}

fn execute(target: &str, body: &str, words: usize, results: usize, inputs: &[u64]) -> Vec<u64> {
    let threads = inputs.len() / words;
    let loads: String = (0..words).map(|i| format!("ld.global.b64 d{}, [at+{}];\n", i + 1, 8 * i)).collect();
    let stores: String = (0..results).map(|i| format!("st.global.b64 [to+{}], x{i};\n", 8 * i)).collect();
    let source = format!(
        ".version 9.0\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b) {{\n\
         .reg .b64 d<9>, x<{}>, at, to; .reg .b32 r<9>, t, n, c; .reg .f32 f<9>; .reg .f64 e<9>;\n\
         ld.param.u64 at, [a];\nld.param.u64 to, [b];\nmov.u32 t, %tid.x;\nmov.u32 n, %ntid.x;\nmov.u32 c, %ctaid.x;\nmad.lo.u32 t, c, n, t;\n\
         mad.wide.u32 at, t, {}, at;\nmad.wide.u32 to, t, {}, to;\n{loads}{body}{stores}ret;\n}}\n",
        results.max(8) + 1,
        8 * words,
        8 * results
    );
    let cubin =
        compile(&source, &Options::new(target)).unwrap_or_else(|d| panic!("{}", d[0].render("k", &source))).cubin;
    let bytes = inputs.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut args = [
        ArgValue::Buffer { bytes, writable: false },
        ArgValue::Buffer { bytes: vec![0; threads * results * 8], writable: true },
    ];
    let shape = Shape { grid: [(threads / BLOCK) as u32, 1, 1], block: [BLOCK as u32, 1, 1], smem: 0 };
    run(&cubin, "k", shape, &mut args).unwrap_or_else(|fault| panic!("{fault}"));
    match args {
        [_, ArgValue::Buffer { bytes, .. }] => {
            bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect()
        }
        _ => unreachable!(),
    }
}

fn floats(target: &str, f: Format, blocks: usize, seed: u64) {
    let mut random = Random(seed);
    let inputs: Vec<u64> = (0..2 * BLOCK * blocks).map(|_| random.number(f)).collect();
    let (ty, reg) = if f == F32 { ("f32", 'f') } else { ("f64", 'e') };
    let unpack = if f == F32 {
        "cvt.u32.u64 r1, d1;\nmov.b32 f1, r1;\ncvt.u32.u64 r1, d2;\nmov.b32 f2, r1;\n"
    } else {
        "mov.b64 e1, d1;\nmov.b64 e2, d2;\n"
    };
    let pack = |i: usize| {
        if f == F32 { format!("mov.b32 r1, f3;\ncvt.u64.u32 x{i}, r1;\n") } else { format!("mov.b64 x{i}, e3;\n") }
    };
    for (mode, round) in MODES {
        let body = format!(
            "{unpack}div.{mode}.{ty} {reg}3, {reg}1, {reg}2;\n{}rcp.{mode}.{ty} {reg}3, {reg}2;\n{}sqrt.{mode}.{ty} {reg}3, {reg}1;\n{}",
            pack(0),
            pack(1),
            pack(2)
        );
        let one = if f == F32 { 1f32.to_bits().into() } else { 1f64.to_bits() };
        let got = execute(target, &body, 2, 3, &inputs);
        for (pair, got) in inputs.chunks_exact(2).zip(got.chunks_exact(3)) {
            let [a, b] = [pair[0], pair[1]];
            let want = [divided(f, a, b, round), divided(f, one, b, round), root(f, a, round)];
            for (name, (want, got)) in ["div", "rcp", "sqrt"].iter().zip(want.iter().zip(got)) {
                let right = want.map_or(f.is_nan(*got), |want| want == *got);
                assert!(right, "{target} {name}.{mode}.{ty} of {a:x}, {b:x}: {got:x} and not {want:x?}");
            }
        }
    }
}

#[test]
fn quotients_and_roots_of_f32_are_rounded_right() {
    floats("sm_90", F32, 160, 1);
    floats("sm_75", F32, 24, 2);
    floats("sm_120", F32, 24, 3);
}

#[test]
fn quotients_and_roots_of_f64_are_rounded_right() {
    floats("sm_90", F64, 160, 4);
    floats("sm_75", F64, 24, 5);
    floats("sm_100", F64, 24, 6);
}

#[test]
fn quotients_of_long_integers_are_right() {
    for (target, blocks) in [("sm_90", 400), ("sm_75", 40), ("sm_120", 40)] {
        let mut random = Random(7);
        let mut number = || {
            let (bits, kind) = (random.next(), random.next() >> 20);
            let bits = bits >> (kind % 64);
            match (kind >> 8) % 4 {
                0 => bits.wrapping_neg(),
                1 => (1u64 << (kind >> 16 & 63)).wrapping_add(bits & 3).wrapping_sub(2),
                _ => bits,
            }
        };
        let inputs: Vec<u64> = (0..BLOCK * blocks).flat_map(|_| [number(), number().max(1)]).collect();
        let body = "div.u64 x0, d1, d2;\nrem.u64 x1, d1, d2;\ndiv.s64 x2, d1, d2;\nrem.s64 x3, d1, d2;\n";
        let got = execute(target, body, 2, 4, &inputs);
        for (pair, got) in inputs.chunks_exact(2).zip(got.chunks_exact(4)) {
            let [a, b] = [pair[0], pair[1]];
            let (x, y) = (a as i64, b as i64);
            let want = [a / b, a % b, x.wrapping_div(y) as u64, x.wrapping_rem(y) as u64];
            assert_eq!(got, want, "{target} {a:x} {b:x}");
        }
    }
}

/// Dividends next to zero, to the limits of both ranges and to multiples of the divisors, and
/// random ones.
fn dividends(divisors: &[u32]) -> Vec<u64> {
    let mut random = Random(11);
    let mut all: Vec<u32> = [0u32, 1 << 31, 0x8000, 0x10000]
        .into_iter()
        .flat_map(|x| (0..5).map(move |i| x.wrapping_add(i).wrapping_sub(2)))
        .collect();
    for by in divisors {
        let last = (u32::MAX / by) * by;
        let middle = ((1 << 31) / by) * by;
        all.extend([
            by.wrapping_sub(1),
            *by,
            last.wrapping_sub(1),
            last,
            middle.wrapping_sub(1),
            middle,
            middle.wrapping_neg(),
        ]);
    }
    all.resize_with(all.len().next_multiple_of(BLOCK), || random.next() as u32);
    all.into_iter().map(u64::from).collect()
}

/// The results of PTX's four divisions of one width by constants, and the expected values; the
/// results are sign-extended from their width.
fn by_known(target: &str, bits: u32, divisors: &[u64], inputs: &[u64]) {
    let ops = ["div.u", "rem.u", "div.s", "rem.s"];
    let (from, to) = match bits {
        16 => ("cvt.u16.u64 h1, d1;\n", "cvt.s64.s16"),
        32 => ("cvt.u32.u64 r1, d1;\n", "cvt.s64.s32"),
        _ => ("mov.b64 l1, d1;\n", "mov.b64"),
    };
    let reg = if bits == 16 {
        'h'
    } else if bits == 32 {
        'r'
    } else {
        'l'
    };
    let mut body = format!(".reg .b16 h<3>; .reg .b64 l<3>;\n{from}");
    for (i, (by, op)) in divisors.iter().flat_map(|by| ops.map(|op| (by, op))).enumerate() {
        let by = if op.ends_with('s') { extended(*by, bits) as i64 as i128 } else { i128::from(*by) };
        body += &format!("{op}{bits} {reg}2, {reg}1, {by};\n{to} x{i}, {reg}2;\n");
    }
    let got = execute(target, &body, 1, 4 * divisors.len(), inputs);
    for (x, got) in inputs.iter().zip(got.chunks_exact(4 * divisors.len())) {
        for (by, got) in divisors.iter().zip(got.chunks_exact(4)) {
            let mask = u64::MAX >> (64 - bits);
            let (a, b) = (x & mask, by & mask);
            let (x, y) = (extended(a, bits) as i64, extended(b, bits) as i64);
            let want = [a / b, a % b, x.wrapping_div(y) as u64, x.wrapping_rem(y) as u64].map(|w| extended(w, bits));
            assert_eq!(got, want, "{target} {bits} bits: {a:x} by {b:x}");
        }
    }
}

/// The low bits of a number, sign-extended.
fn extended(value: u64, bits: u32) -> u64 {
    ((value << (64 - bits)) as i64 >> (64 - bits)) as u64
}

#[test]
fn quotients_by_known_integers_are_right() {
    let powers = (0..32).flat_map(|i| [(1u32 << i).wrapping_sub(1), 1 << i, (1 << i) + 1]);
    let others = [641, 6_700_417, 0x7fff_ffff, 0xffff_fff0, 0xaaaa_aaab, 1_000_000_007, 0xfffe_0000].into_iter();
    // As signed numbers, these include negative ones.
    let mut all: Vec<u32> = (1..=1000).chain((1..=100u32).map(u32::wrapping_neg)).chain(powers).chain(others).collect();
    all.retain(|by| *by != 0);
    for (i, some) in all.chunks(50).enumerate() {
        let target = ["sm_90", "sm_75", "sm_120", "sm_80"][i % 4];
        let wide: Vec<u64> = some.iter().map(|by| u64::from(*by)).collect();
        by_known(target, 32, &wide, &dividends(some));
        let short: Vec<u64> = wide.iter().map(|by| by & 0xffff).filter(|by| *by != 0).collect();
        by_known(target, 16, &short, &dividends(some));
    }
    let long: Vec<u64> = (0..64).map(|i| 1 << i).flat_map(|by: u64| [by, by.wrapping_neg()]).collect();
    let mut random = Random(12);
    let mut inputs: Vec<u64> = long.iter().flat_map(|x| [x.wrapping_sub(1), *x, x.wrapping_add(1)]).collect();
    inputs.resize_with(4 * BLOCK, || random.next());
    for (target, some) in ["sm_90", "sm_75", "sm_120", "sm_80"].into_iter().zip(long.chunks(32)) {
        by_known(target, 64, some, &inputs);
    }
}
