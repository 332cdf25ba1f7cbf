//! Matrix multiplication helpers: the fragments of a warp are built from whole matrices, and the
//! results are read as one.
//!
//! For a helper's name (shape, types, sparsity) it gives the inputs of the lanes and their exact
//! results: integers of any size, floats that are small integers. Source of the fragment layouts:
//! PTX ISA 9.0, 9.7.14.5 and 9.7.14.6.

use super::harness::Random;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Type {
    S(u32),
    U(u32),
    Bit,
    F16,
    Bf16,
    Tf32,
    F64,
}

impl Type {
    fn bits(self) -> usize {
        match self {
            Type::S(n) | Type::U(n) => n as usize,
            Type::Bit => 1,
            Type::F16 | Type::Bf16 => 16,
            Type::Tf32 => 32,
            Type::F64 => 64,
        }
    }

    fn random(self, r: &mut Random) -> i64 {
        match self {
            Type::S(n) => r.below(1 << n) as i64 - (1 << (n - 1)),
            Type::U(n) => r.below(1 << n) as i64,
            Type::Bit => r.below(2) as i64,
            _ => r.below(17) as i64 - 8,
        }
    }

    fn encode(self, x: i64) -> u64 {
        match self {
            Type::S(_) | Type::U(_) | Type::Bit => x as u64 & ((1 << self.bits()) - 1),
            Type::F16 => f16(x),
            Type::Bf16 => u64::from((x as f32).to_bits() >> 16),
            Type::Tf32 => (x as f32).to_bits().into(),
            Type::F64 => (x as f64).to_bits(),
        }
    }
}

/// A small integer as f16.
pub fn f16(x: i64) -> u64 {
    use sassafras::sim::ops::format::{F16, F32, Round};
    F32.convert((x as f32).to_bits().into(), F16, Round::Nearest)
}

/// One matrix multiplication: its shape, types and variant.
struct Product {
    m: usize,
    k: usize,
    a: Type,
    b: Type,
    /// Whether the result is f16.
    halves: bool,
    saturate: bool,
    xor: bool,
    sparse: Option<usize>,
}

fn product(name: &str) -> Option<Product> {
    let mut p = Product {
        m: 16,
        k: 0,
        a: Type::F16,
        b: Type::F16,
        halves: false,
        saturate: name.contains("satfinite"),
        xor: name.contains("_xor"),
        sparse: None,
    };
    let words: Vec<&str> = name.split('_').collect();
    let shape = words
        .iter()
        .find(|w| w.starts_with('m') && w.contains('n') && w.contains('k') && w[1..2].parse::<u8>().is_ok())?;
    let (m, rest) = shape[1..].split_once('n')?;
    p.m = m.parse().ok()?;
    p.k = rest.split_once('k')?.1.parse().ok()?;
    let types: Vec<Type> = words
        .iter()
        .filter_map(|w| match *w {
            "s4" => Some(Type::S(4)),
            "u4" => Some(Type::U(4)),
            "s8" => Some(Type::S(8)),
            "u8" => Some(Type::U(8)),
            _ => None,
        })
        .collect();
    if let [a, b] = types[..] {
        (p.a, p.b) = (a, b);
    } else if name.contains("_bit_") {
        (p.a, p.b) = (Type::Bit, Type::Bit);
    } else if name.contains("half_mma") {
        p.halves = name.ends_with("f16");
    } else if name.contains("bf16_mma") {
        (p.a, p.b) = (Type::Bf16, Type::Bf16);
    } else if name.contains("tf32_mma") {
        (p.a, p.b) = (Type::Tf32, Type::Tf32);
    } else if name.contains("f64_mma") {
        (p.a, p.b) = (Type::F64, Type::F64);
    } else {
        return None;
    }
    if name.contains("sparse") {
        p.sparse = Some(if name.ends_with("_1") { 1 } else { 0 });
    }
    Some(p)
}

/// Words per lane.
pub type Lanes = Vec<Vec<u64>>;

/// Inputs of the 32 lanes in the order of the prototype (a, b, c, e), and the expected result of
/// each.
pub fn case(name: &str, r: &mut Random) -> Option<(Lanes, Lanes)> {
    if name.contains("wmma") && !name.contains("_mma_row_col_") || name.contains("mdata") || name.contains("mma_shfl") {
        return None;
    }
    let p = product(name)?;
    let dense = |r: &mut Random, t: Type, rows: usize, cols: usize| -> Vec<Vec<i64>> {
        (0..rows).map(|_| (0..cols).map(|_| t.random(r)).collect()).collect()
    };
    // The kept elements of a sparse operand, and their columns.
    let kept = if p.sparse.is_some() { p.k / 2 } else { p.k };
    let a = dense(r, p.a, p.m, kept);
    let b = dense(r, p.b, p.k, 8);
    let unit = if p.a.bits() == 4 { 2 } else { 1 };
    let groups = p.k / 4 / unit;
    let pairs: Vec<Vec<(u64, u64)>> = (0..p.m)
        .map(|_| {
            (0..groups)
                .map(|_| {
                    let x = r.below(3);
                    (x, x + 1 + r.below(3 - x))
                })
                .collect()
        })
        .collect();
    let column = |row: usize, col: usize| -> usize {
        if p.sparse.is_none() {
            return col;
        }
        let place = col / unit;
        let (first, second) = pairs[row][place / 2];
        (place / 2 * 4 + if place.is_multiple_of(2) { first } else { second } as usize) * unit + col % unit
    };
    let integers = matches!(p.a, Type::S(_) | Type::U(_) | Type::Bit);
    let c: Vec<Vec<i64>> = (0..p.m)
        .map(|_| {
            (0..8)
                .map(|_| {
                    if integers {
                        match r.below(4) {
                            0 => i64::from(i32::MAX) - r.below(4000) as i64,
                            1 => i64::from(i32::MIN) + r.below(4000) as i64,
                            _ => i64::from(r.next() as i32),
                        }
                    } else {
                        r.below(33) as i64 - 16
                    }
                })
                .collect()
        })
        .collect();
    let sum = |row: usize, col: usize| -> i64 {
        let terms = (0..kept).map(|i| {
            let (x, y) = (a[row][i], b[column(row, i)][col]);
            if p.a == Type::Bit { if p.xor { x ^ y } else { x & y } } else { x * y }
        });
        c[row][col] + terms.sum::<i64>()
    };
    let result = |row: usize, col: usize| -> u64 {
        let x = sum(row, col);
        if integers {
            let x = if p.saturate { x.clamp(i32::MIN.into(), i32::MAX.into()) } else { x };
            return x as u32 as u64;
        }
        if p.a == Type::F64 {
            (x as f64).to_bits()
        } else if p.halves {
            f16(x)
        } else {
            (x as f32).to_bits().into()
        }
    };
    let bits = p.a.bits();
    let each = (32 / bits).max(1);
    let pack = |elements: Vec<u64>| elements.iter().enumerate().fold(0, |w, (i, x)| w | x << (i * bits % 64));
    let across = p.m / 8;
    let mut lanes = Vec::new();
    let mut want = Vec::new();
    for lane in 0..32usize {
        let (g, t) = (lane / 4, lane % 4);
        let mut words = Vec::new();
        for i in 0..across * kept / (4 * each) {
            let (row, block) = (g + 8 * (i % across), i / across);
            words.push(pack((0..each).map(|j| p.a.encode(a[row][block * 4 * each + t * each + j])).collect()));
        }
        for i in 0..p.k / (4 * each) {
            words.push(pack((0..each).map(|j| p.b.encode(b[i * 4 * each + t * each + j][g])).collect()));
        }
        let places: Vec<(usize, usize)> = (0..2 * across).map(|i| (g + 8 * (i / 2), t * 2 + i % 2)).collect();
        let summand = |(row, col): (usize, usize)| {
            let x = c[row][col];
            if integers {
                x as u32 as u64
            } else if p.a == Type::F64 {
                (x as f64).to_bits()
            } else if p.halves {
                f16(x)
            } else {
                (x as f32).to_bits().into()
            }
        };
        let fragment = |of: &dyn Fn((usize, usize)) -> u64| -> Vec<u64> {
            let single: Vec<u64> = places.iter().map(|at| of(*at)).collect();
            if p.halves { single.chunks(2).map(|x| x[0] | x[1] << 16).collect() } else { single }
        };
        words.extend(fragment(&summand));
        if let Some(selector) = p.sparse {
            words.push(metadata(&pairs, lane, groups / 8 * 2, selector, r));
        }
        lanes.push(words);
        want.push(fragment(&|(row, col)| result(row, col)));
    }
    Some((lanes, want))
}

/// A lane's metadata: 8 groups of a row; the rows 8 further down are in the next lane, further
/// columns two lanes on. `holders`: lanes of each four that hold metadata.
fn metadata(pairs: &[Vec<(u64, u64)>], lane: usize, holders: usize, selector: usize, r: &mut Random) -> u64 {
    let first = selector * holders;
    let t = lane % 4;
    if !(first..first + holders).contains(&t) {
        return r.next() & 0xffff_ffff;
    }
    let at = t - first;
    let (row, block) = (lane / 4 + 8 * (at % 2), at / 2);
    (0..8).fold(0, |w, i| {
        let (x, y) = pairs[row][block * 8 + i];
        w | (x | y << 2) << (4 * i)
    })
}

/// The reordering of metadata: inputs (a, e, selector), and the expected results (a, and e in
/// order).
pub fn in_order(name: &str, r: &mut Random) -> Option<(Lanes, Lanes)> {
    let (bits, words, holders) = match name.strip_prefix("__cuda_sm_10x_")? {
        "hmma_mdata_m16n8k16" => (16, 2, 1),
        "hmma_mdata_m16n8k32" => (16, 4, 2),
        "imma_mdata_m16n8k32" => (8, 2, 2),
        "imma_mdata_m16n8k64" => (8, 4, 4),
        _ => return None,
    };
    let selector = r.below(4 / holders as u64) as usize;
    // Every pair of different indices, in any order.
    let e: Vec<u64> = (0..32)
        .map(|_| {
            (0..8).fold(0, |w, i| {
                let x = r.below(4);
                let y = (x + 1 + r.below(3)) % 4;
                w | (x | y << 2) << (4 * i)
            })
        })
        .collect();
    let swapped = |lane: usize, pair: usize| e[lane] >> (4 * pair) & 3 > e[lane] >> (4 * pair + 2) & 3;
    let mut lanes = Vec::new();
    let mut want = Vec::new();
    for (lane, codes) in e.iter().enumerate() {
        let a: Vec<u64> = (0..words).map(|_| r.next() & 0xffff_ffff).collect();
        let (quad, t) = (lane & 28, lane % 4);
        let mut out: Vec<u64> = a
            .iter()
            .enumerate()
            .map(|(i, w)| {
                if bits == 16 {
                    // One pair per word: columns 2t and 2t+1 of a block of 8, of row g or, in odd
                    // words, 8 further down.
                    let from = quad + selector * holders + i / 2;
                    if swapped(from, t + 4 * (i % 2)) { (w >> 16 | w << 16) & 0xffff_ffff } else { *w }
                } else {
                    let from = quad + selector * holders + i;
                    let half = |n: u32, pair: usize| {
                        let h = w >> (16 * n) & 0xffff;
                        if swapped(from, pair) { (h >> 8 | h << 8) & 0xffff } else { h }
                    };
                    half(0, 2 * t) | half(1, 2 * t + 1) << 16
                }
            })
            .collect();
        out.push((0..8).fold(0, |w, i| {
            let (x, y) = (*codes >> (4 * i) & 3, *codes >> (4 * i + 2) & 3);
            w | (x.min(y) | x.max(y) << 2) << (4 * i)
        }));
        lanes.push(a.into_iter().chain([*codes, selector as u64]).collect());
        want.push(out);
    }
    Some((lanes, want))
}

/// m8n8k4: four multiplications, each by lanes n to n+3 and n+16 to n+19.
pub fn quarters(name: &str, r: &mut Random) -> Option<(Lanes, Lanes)> {
    let rest = name.strip_prefix("__cuda_sm_8x_mma_")?;
    let words: Vec<&str> = rest.split('_').collect();
    let [row, col, d, _, _, c] = words[..] else { return None };
    let number = |r: &mut Random| r.below(17) as i64 - 8;
    let mut matrix = |rows: usize, cols: usize| -> Vec<Vec<Vec<i64>>> {
        (0..4).map(|_| (0..rows).map(|_| (0..cols).map(|_| number(r)).collect()).collect()).collect()
    };
    let (a, b, cs) = (matrix(8, 4), matrix(4, 8), matrix(8, 8));
    let mut lanes = Vec::new();
    let mut want = Vec::new();
    for lane in 0..32usize {
        let (q, upper, t) = (lane / 4 % 4, 4 * (lane / 16), lane % 4);
        let pair = |x: i64, y: i64| f16(x) | f16(y) << 16;
        let mut words = Vec::new();
        let of_a = |i: usize| if row == "row" { a[q][t + upper][i] } else { a[q][i + upper][t] };
        let of_b = |i: usize| if col == "row" { b[q][t][i + upper] } else { b[q][i][t + upper] };
        words.extend([pair(of_a(0), of_a(1)), pair(of_a(2), of_a(3)), pair(of_b(0), of_b(1)), pair(of_b(2), of_b(3))]);
        let fragment = |ty: &str, of: &dyn Fn(usize, usize) -> i64| -> Vec<u64> {
            if ty == "f16" {
                return (0..4).map(|i| pair(of(t + upper, 2 * i), of(t + upper, 2 * i + 1))).collect();
            }
            (0..8)
                .map(|i| of((lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1)))
                .map(|x| (x as f32).to_bits().into())
                .collect()
        };
        words.extend(fragment(c, &|i, j| cs[q][i][j]));
        want.push(fragment(d, &|i, j| cs[q][i][j] + (0..4).map(|k| a[q][i][k] * b[q][k][j]).sum::<i64>()));
        lanes.push(words);
    }
    Some((lanes, want))
}
