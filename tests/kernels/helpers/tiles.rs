//! Tests of `wmma` and `ldmatrix` helpers: a whole matrix multiplication through memory, of which
//! the helper does one step and PTX instructions the others.
//!
//! For `wmma`, the stored result for random matrices must be exact; for address helpers, the
//! element at the address must be the first of the lane's fragment; for `ldmatrix`, the words must
//! be those of the rows.

use super::fragments::f16;
use super::harness::{Bench, MEMORY, Random, call, copy, head, kernel, loads, registers, stores};
use sassafras::sim::ops::format::{Exact, F16, F64, Round};
use sassafras::tables::helpers::Helper;

/// The parts of a helper's name.
struct Tile {
    shape: &'static str,
    m: usize,
    n: usize,
    k: usize,
    /// PTX type and bits of the A and B operands, and of the accumulator.
    factor: (&'static str, usize),
    summand: (&'static str, usize),
    result: (&'static str, usize),
    /// Registers of a, b, c, d.
    counts: [usize; 4],
}

const SHAPES: [(&str, [usize; 3]); 7] = [
    ("m16n16k16", [16, 16, 16]),
    ("m32n8k16", [32, 8, 16]),
    ("m8n32k16", [8, 32, 16]),
    ("m16n16k8", [16, 16, 8]),
    ("m8n8k4", [8, 8, 4]),
    ("m8n8k32", [8, 8, 32]),
    ("m8n8k128", [8, 8, 128]),
];

fn tile(name: &str) -> Option<Tile> {
    let (shape, [m, n, k]) = *SHAPES.iter().find(|s| name.contains(&format!("_{}_", s.0)))?;
    let width = |t: &'static str| {
        (
            t,
            match t {
                "f16" | "bf16" => 16,
                "s8" | "u8" => 8,
                "s4" | "u4" => 4,
                "b1" => 1,
                "f64" => 64,
                _ => 32,
            },
        )
    };
    let (factor, summand, counts) = if name.contains("sm70_wmma") {
        ("f16", "f32", [8, 8, 8, 8])
    } else if name.contains("sm72_") {
        let ty = if name.ends_with("_u8") { "u8" } else { "s8" };
        (ty, "s32", [[2, 4, 1][shape_place(m)], [2, 1, 4][shape_place(m)], 8, 8])
    } else if name.contains("_tf32_") {
        ("tf32", "f32", [4, 4, 8, 8])
    } else if name.contains("_bf16_") {
        ("bf16", "f32", [[4, 8, 2][shape_place(m)], [4, 2, 8][shape_place(m)], 8, 8])
    } else if name.contains("_f64_") {
        ("f64", "f64", [1, 1, 2, 2])
    } else if name.contains("sub_byte_wmma") {
        (if name.contains("_u4") { "u4" } else { "s4" }, "s32", [1, 1, 2, 2])
    } else if name.contains("bit_wmma") {
        ("b1", "s32", [1, 1, 2, 2])
    } else {
        return None;
    };
    Some(Tile { shape, m, n, k, factor: width(factor), summand: width(summand), result: width(summand), counts })
}

/// m16n16k16, m32n8k16, m8n32k16 in this order.
fn shape_place(m: usize) -> usize {
    match m {
        16 => 0,
        32 => 1,
        _ => 2,
    }
}

/// The step that a helper does, with its layouts.
#[derive(PartialEq)]
enum Step {
    Load(char),
    Store,
    Product,
}

fn list(letter: &str, count: usize) -> String {
    (0..count).map(|i| format!("{letter}{i}")).collect::<Vec<_>>().join(", ")
}

fn encode(ty: &str, x: i64) -> u64 {
    match ty {
        "f16" => f16(x),
        "bf16" => u64::from((x as f32).to_bits() >> 16),
        "f32" | "tf32" => (x as f32).to_bits().into(),
        "f64" => (x as f64).to_bits(),
        _ => x as u64,
    }
}

/// Byte offsets of the matrices in the memory.
const A: usize = 0;
const B: usize = 2048;
const C: usize = 4096;
const D: usize = 8192;

fn put(memory: &mut [u8], at: usize, index: usize, bits: usize, value: u64) {
    for i in 0..bits {
        let bit = index * bits + i;
        let mask = 1 << (bit % 8);
        let byte = &mut memory[at + bit / 8];
        *byte = *byte & !mask | if value >> i & 1 == 1 { mask } else { 0 };
    }
}

fn get(memory: &[u8], at: usize, index: usize, bits: usize) -> u64 {
    (0..bits).fold(0, |v, i| {
        let bit = index * bits + i;
        v | u64::from(memory[at + bit / 8] >> (bit % 8) & 1) << i
    })
}

/// A sum as f16: exact products, added in the order of k and rounded after each step of `each`
/// elements, as a tensor-core instruction that covers a part of k does (8 on the oldest target, all
/// of it on the others; with an f32 accumulator, once at the end). `finite`: infinities saturate to
/// the largest number of their sign.
fn half_sum(c: i64, terms: &[i64], each: usize, finite: bool) -> u64 {
    let half = |sum: f64| F64.convert(sum.to_bits(), F16, Round::Nearest);
    let sum = terms.chunks(each).fold(c as f64, |sum, part| {
        f64::from_bits(F16.convert(half(sum + part.iter().sum::<i64>() as f64), F64, Round::Nearest))
    });
    half(if finite { sum.clamp(-65504.0, 65504.0) } else { sum })
}

/// One step of a sum in f64: integer products, added and rounded once. A zero sum is -0 when
/// rounding down, unless both terms were +0.
fn fused(sum: f64, a: i64, b: i64, round: Round) -> f64 {
    let (product, neg) = (i128::from(a) * i128::from(b), (a < 0) != (b < 0));
    let exact = sum as i128 + product;
    if exact == 0 {
        let negative = [sum.is_sign_negative(), neg];
        let minus = if round == Round::Down { negative != [false; 2] } else { negative == [true; 2] };
        return if minus { -0.0 } else { 0.0 };
    }
    let exact = Exact { neg: exact < 0, mant: exact.unsigned_abs(), exp: 0 };
    f64::from_bits(F64.pack(exact, round))
}

/// One multiplication that uses the helper; `None` for other helpers.
pub fn product(helper: &'static Helper, target: &str, r: &mut Random) -> Option<Result<(), String>> {
    let name = helper.name;
    let mut tile = tile(name)?;
    if name.ends_with("update_ptr") && helper.family().convention != 'D'
        || name.contains("_popc")
        || name.contains("sub_byte_mma")
        || name.contains("sub_byte_wmma") && name.contains("_mma_row_col_")
    {
        return None;
    }
    let step = if name.contains("_load_a_") {
        Step::Load('a')
    } else if name.contains("_load_b_") {
        Step::Load('b')
    } else if name.contains("_load_c_") {
        Step::Load('c')
    } else if name.contains("_store_d_") || name.ends_with("update_ptr") {
        Step::Store
    } else if name.contains("_mma_") {
        Step::Product
    } else {
        return None;
    };
    let words: Vec<&str> = name.split('_').collect();
    let layouts: Vec<&str> = words.iter().copied().filter(|w| *w == "row" || *w == "col").collect();
    let [mut la, mut lb, mut lc, mut ld] = ["row", "col", "row", "row"];
    match (&step, &layouts[..]) {
        (Step::Load('a'), [l]) => la = l,
        (Step::Load('b'), [l]) => lb = l,
        (Step::Load(_), [l]) => lc = l,
        (Step::Store, [l]) => ld = l,
        (Step::Product, [a, b]) => (la, lb) = (a, b),
        _ => return Some(Err(format!("{name}: layouts"))),
    }
    if name.contains("sm70_wmma") {
        let types: Vec<&str> = words.iter().copied().filter(|w| *w == "f16" || *w == "f32").collect();
        let width = |t: &str| if t == "f16" { ("f16", 16) } else { ("f32", 32) };
        match (&step, &types[..]) {
            (Step::Load('c'), [t]) | (Step::Store, [t]) => (tile.summand, tile.result) = (width(t), width(t)),
            (Step::Product, [d, c]) => (tile.result, tile.summand) = (width(d), width(c)),
            _ => {}
        }
        tile.counts[2] = if tile.summand.1 == 16 { 4 } else { 8 };
        tile.counts[3] = if tile.result.1 == 16 { 4 } else { 8 };
    }
    Some(run(helper, target, &tile, step, [la, lb, lc, ld], r).map_err(|e| format!("{name} {target}: {e}")))
}

fn run(
    helper: &'static Helper,
    target: &str,
    tile: &Tile,
    step: Step,
    [la, lb, lc, ld]: [&str; 4],
    r: &mut Random,
) -> Result<(), String> {
    let name = helper.name;
    let shared = name.ends_with("_shared") || name.ends_with("_shared_desc");
    let desc = name.ends_with("_desc");
    let Tile { shape, m, n, k, factor, summand, result, counts } = *tile;
    let (row_a, row_b, row_c, row_d) = (la == "row", lb == "row", lc == "row", ld == "row");
    let ldm =
        [if row_a { k } else { m }, if row_b { n } else { k }, if row_c { n } else { m }, if row_d { n } else { m }];
    let (fill, dims) = ([A, B, C, D], ldm);
    let (declarations, called) = call(helper);
    let kind = if factor.0 == "f64" { "f64" } else { "b32" };
    let letters = ["a", "b", "c", "d"];
    let mut declare = format!(".reg .b64 place; .reg .b32 lead;\n{declarations}");
    let own: Vec<String> = registers(helper.returns).into_iter().chain(registers(helper.params)).map(|x| x.1).collect();
    for (letter, count) in letters.iter().zip(counts) {
        let missing: Vec<String> = (0..count).map(|i| format!("{letter}{i}")).filter(|x| !own.contains(x)).collect();
        if !missing.is_empty() {
            declare += &format!(".reg .{kind} {};\n", missing.join(", "));
        }
    }
    let base = if shared { "place_of_tile" } else { "mem" };
    let mut body = String::new();
    let mut text = head(helper, target);
    if shared {
        text += &format!(".shared .align 16 .b8 tile[{MEMORY}];\n");
        declare += ".reg .b64 place_of_tile;\n";
        body += &copy("mem", "tile", ".global", ".shared");
        body += "mov.u64 place_of_tile, tile;\n";
    }
    let space = if shared { ".shared" } else { "" };
    // The helper's pointer, leading dimension and other parameters.
    let given = |i: usize| {
        let at = if desc {
            format!("add.u64 ptr, {base}, {};\nmov.b64 desc, 16;\n", fill[i] as i64 - 16)
        } else {
            format!("add.u64 ptr, {base}, {};\n", fill[i])
        };
        format!("{at}mov.b32 ldm, {};\n", dims[i])
    };
    for (i, part) in ['a', 'b', 'c'].into_iter().enumerate() {
        let ty = if i == 2 { summand.0 } else { factor.0 };
        if step == Step::Load(part) {
            body += &given(i);
            body += &called;
            let bits = if kind == "f64" { "f64" } else { "b32" };
            for j in 0..counts[i] {
                body += &format!("mov.{bits} {part}{j}, dst{j};\n");
            }
            continue;
        }
        let layout = [la, lb, lc][i];
        body += &format!(
            "add.u64 place, {base}, {};\nmov.b32 lead, {};\nwmma.load.{part}.sync.aligned.{layout}.{shape}{space}.{ty} {{{}}}, [place], lead;\n",
            fill[i],
            dims[i],
            list(letters[i], counts[i])
        );
    }
    let types = match factor.0 {
        "f16" => format!("{}.{}", result.0, summand.0),
        "b1" => "s32.b1.b1.s32".into(),
        f => format!("{}.{f}.{f}.{}", result.0, summand.0),
    };
    let saturate = name.contains("satfinite");
    let finite_flag = r.below(2);
    let mut round = Round::Nearest;
    if step == Step::Product {
        if own.contains(&"satfinite".to_string()) {
            body += &format!("mov.b32 satfinite, {finite_flag};\n");
        }
        if own.contains(&"rnd".to_string()) {
            let number = r.below(5);
            round = [Round::Nearest, Round::Zero, Round::Down, Round::Up, Round::Up][number as usize];
            body += &format!("mov.b32 rnd, {number};\n");
        }
        body += &called;
    } else {
        let bit = if factor.0 == "b1" { ".xor.popc" } else { "" };
        body += &format!(
            "wmma.mma{bit}.sync.aligned.{la}.{lb}.{shape}.{types} {{{}}}, {{{}}}, {{{}}}, {{{}}};\n",
            list("d", counts[3]),
            list("a", counts[0]),
            list("b", counts[1]),
            list("c", counts[2])
        );
    }
    if step == Step::Store {
        body += &given(3);
        for j in 0..counts[3] {
            body += &format!("mov.{kind} sreg{j}, d{j};\n");
        }
        body += &called;
    } else {
        body += &format!(
            "add.u64 place, {base}, {};\nmov.b32 lead, {};\nwmma.store.d.sync.aligned.{ld}.{shape}{space}.{} [place], {{{}}}, lead;\n",
            fill[3],
            dims[3],
            result.0,
            list("d", counts[3])
        );
    }
    if shared {
        body += "bar.sync 0;\n";
        body += &copy("tile", "mem", ".shared", ".global");
    }
    text += &kernel(&declare, &body);
    let bench = Bench::text(&text, target, 32, [0, 0])?;
    // The matrices. Float matrices hold integers: small ones, ones whose sums round in f16, and
    // ones whose sums overflow it. In f32 all sums are exact. In f64 the largest ones make sums
    // that round at each step.
    let reach = [8, 40, if factor.0 == "f64" { 1 << 30 } else { 200 }][r.below(3) as usize];
    let number = |r: &mut Random, most: u64| r.below(2 * most + 1) as i64 - most as i64;
    let of_factor = |r: &mut Random| match factor.0 {
        "s8" => r.below(256) as i64 - 128,
        "u8" => r.below(256) as i64,
        "s4" => r.below(16) as i64 - 8,
        "u4" => r.below(16) as i64,
        "b1" => r.below(2) as i64,
        _ => number(r, reach),
    };
    let mut memory = vec![0u8; MEMORY];
    let matrix = |r: &mut Random, rows: usize, cols: usize, f: &dyn Fn(&mut Random) -> i64| -> Vec<Vec<i64>> {
        (0..rows).map(|_| (0..cols).map(|_| f(r)).collect()).collect()
    };
    let a = matrix(r, m, k, &of_factor);
    let b = matrix(r, k, n, &of_factor);
    let integers = summand.0 == "s32";
    let c = matrix(r, m, n, &|r| {
        if integers {
            match r.below(3) {
                0 => i64::from(i32::MAX) - r.below(9000) as i64,
                1 => i64::from(i32::MIN) + r.below(9000) as i64,
                _ => i64::from(r.next() as i32),
            }
        } else if reach == 8 {
            number(r, reach)
        } else if factor.0 == "f64" {
            number(r, (1 << 53) - 1) << r.below(8)
        } else {
            // At most 65504 in f16, with 11 significant bits.
            number(r, 2047) << r.below(6)
        }
    });
    let mut fill_in = |at: usize, x: &[Vec<i64>], by_row: bool, lead: usize, (ty, bits): (&str, usize)| {
        for (i, row) in x.iter().enumerate() {
            for (j, v) in row.iter().enumerate() {
                put(&mut memory, at, if by_row { i * lead + j } else { j * lead + i }, bits, encode(ty, *v));
            }
        }
    };
    fill_in(A, &a, row_a, ldm[0], factor);
    fill_in(B, &b, row_b, ldm[1], factor);
    fill_in(C, &c, row_c, ldm[2], summand);
    // With saturation some elements are infinite or NaN.
    let odd: Vec<(usize, usize, u64)> = if saturate && !integers {
        let of = |r: &mut Random| {
            if summand.1 == 16 {
                [0x7c00, 0xfc00, 0x7e01][r.below(3) as usize]
            } else {
                [0x7f800000, 0xff800000, 0x7fc00001][r.below(3) as usize]
            }
        };
        (0..6).map(|_| (r.below(m as u64) as usize, r.below(n as u64) as usize, of(r))).collect()
    } else {
        Vec::new()
    };
    for (i, j, v) in &odd {
        put(&mut memory, C, if row_c { i * ldm[2] + j } else { j * ldm[2] + i }, summand.1, *v);
    }
    let (_, after) = bench.run(&vec![Vec::new(); 32], &memory, r.next())?;
    for i in 0..m {
        for j in 0..n {
            let terms = (0..k).map(|t| if factor.0 == "b1" { a[i][t] ^ b[t][j] } else { a[i][t] * b[t][j] });
            let terms: Vec<i64> = terms.collect();
            let sum = c[i][j] + terms.iter().sum::<i64>();
            let got = get(&after, D, if row_d { i * ldm[3] + j } else { j * ldm[3] + i }, result.1);
            if result.1 == 16 && !odd.iter().any(|o| (o.0, o.1) == (i, j)) {
                let steps = if summand.1 == 16 { vec![k, 8] } else { vec![k] };
                let finite = step == Step::Product && saturate;
                if !steps.iter().any(|each| half_sum(c[i][j], &terms, *each, finite) == got) {
                    return Err(format!("element {i},{j}: {got:#x} and not f16 of {sum}"));
                }
                continue;
            }
            if factor.0 == "f64" {
                let want = (0..k).fold(c[i][j] as f64, |sum, t| fused(sum, a[i][t], b[t][j], round)).to_bits();
                if got != want {
                    return Err(format!("element {i},{j}: {got:#x} and not {want:#x}, {round:?}"));
                }
                continue;
            }
            let want = match odd.iter().rev().find(|o| o.0 == i && o.1 == j) {
                Some((_, _, v)) => match (
                    v & 0x7fff == 0x7c00 && summand.1 == 16 || v & 0x7fffffff == 0x7f800000,
                    v >> (summand.1 - 1) & 1 == 1,
                    result.1,
                ) {
                    (false, ..) => 0,
                    (true, neg, 16) => 0x7bff | if neg { 0x8000 } else { 0 },
                    (true, neg, _) => 0x7f7fffff | if neg { 0x80000000 } else { 0 },
                },
                None if integers && step == Step::Product && finite_flag == 1 => {
                    sum.clamp(i32::MIN.into(), i32::MAX.into()) as u32 as u64
                }
                None if integers => sum as u32 as u64,
                None => encode(result.0, sum),
            };
            if got != want {
                return Err(format!("element {i},{j}: {got:#x} and not {want:#x}"));
            }
        }
    }
    Ok(())
}

/// The element at a lane's address is the first of its fragment.
pub fn place(helper: &'static Helper, target: &str, r: &mut Random) -> Option<Result<(), String>> {
    let name = helper.name;
    if !name.ends_with("update_ptr") || helper.family().convention == 'D' {
        return None;
    }
    let tile = tile(name)?;
    let layout = if name.contains("_row") { "row" } else { "col" };
    let (part, ty, count) = if name.contains("_a_") {
        ("a", tile.factor, tile.counts[0])
    } else if name.contains("_b_") {
        ("b", tile.factor, tile.counts[1])
    } else {
        let ty = if name.contains("_f16_") { ("f16", 16) } else { tile.summand };
        ("c", ty, if ty.0 == "f16" { 4 } else { tile.counts[2] })
    };
    let [rows, cols] = match part {
        "a" => [tile.m, tile.k],
        "b" => [tile.k, tile.n],
        _ => [tile.m, tile.n],
    };
    // Also leading dimensions above the minimum, if the alignment of 16 bytes allows.
    let least = if layout == "row" { cols } else { rows };
    let stride = least + r.below(3) as usize * (128 / ty.1).max(1);
    let (declarations, called) = call(helper);
    let kind = if ty.0 == "f64" { "f64" } else { "b32" };
    let load = if ty.1 >= 8 { format!("ld.b{} piece, [at];\n", ty.1) } else { "ld.u8 piece, [at];\n".into() };
    let piece = format!(".reg .b{} piece;\n", ty.1.max(16));
    let wide = if ty.1 == 64 {
        "mov.b64 w, piece;\n".into()
    } else if ty.1 == 32 {
        "cvt.u64.u32 w, piece;\n".into()
    } else if ty.1 == 8 {
        "cvt.u64.u16 w, piece;\nand.b64 w, w, 255;\n".to_string()
    } else {
        "cvt.u64.u16 w, piece;\n".into()
    };
    let first = if kind == "f64" { "mov.b64 v, frag0;\n" } else { "mov.b32 x32, frag0;\ncvt.u64.u32 v, x32;\n" };
    let text = head(helper, target)
        + &kernel(
            &format!("{declarations}{piece}.reg .b64 v, place;\n.reg .{kind} {};\n", list("frag", count))
                .replace(".reg .b64 at;\n", ""),
            &format!(
                "mov.u64 ptr, mem;\nmov.b32 stride, {stride};\nmov.u64 place, to;\n{called}{load}{wide}\
                 wmma.load.{part}.sync.aligned.{layout}.{}.{} {{{}}}, [mem], {stride};\n{first}\
                 mul.wide.u32 to, t, 16;\nadd.u64 to, to, place;\nst.global.b64 [to], w;\nst.global.b64 [to+8], v;\n",
                tile.shape,
                ty.0,
                list("frag", count)
            ),
        );
    let run = || -> Result<(), String> {
        let bench = Bench::text(&text, target, 32, [0, 2])?;
        let memory: Vec<u8> = (0..MEMORY).map(|_| r.next() as u8).collect();
        // NaNs of f16 or f32 must keep their payload, because bits are only moved.
        let (lanes, _) = bench.run(&vec![Vec::new(); 32], &memory, r.next())?;
        let mask = if ty.1 >= 64 { u64::MAX } else { (1u64 << ty.1.min(32)) - 1 };
        for (lane, got) in lanes.iter().enumerate() {
            if (got[0] ^ got[1]) & mask != 0 {
                return Err(format!("lane {lane}: {:#x} lies there, the fragment has {:#x}", got[0], got[1]));
            }
        }
        Ok(())
    };
    let mut run = run;
    Some(run().map_err(|e| format!("{name} {target}: {e}")))
}

/// `ldmatrix`
pub fn matrices(helper: &'static Helper, target: &str, r: &mut Random) -> Option<Result<(), String>> {
    let rest = helper.name.strip_prefix("__cuda_sm7x_ldmatrix_m8n8_x")?;
    let (count, turned) = (rest[..1].parse::<usize>().ok()?, rest.contains("_trans"));
    let run = |r: &mut Random| -> Result<(), String> {
        let shared = helper.name.ends_with("_shared");
        let bench = if shared {
            Bench::of(helper, target, 32)?
        } else {
            // A generic address of shared memory.
            let (declarations, called) = call(helper);
            let body = loads(&registers(helper.params))
                + &copy("mem", "tile", ".global", ".shared")
                + "mov.u64 w, tile;\ncvta.shared.u64 w, w;\nadd.u64 ptr, ptr, w;\n"
                + &called
                + &stores(&registers(helper.returns));
            let text = head(helper, target)
                + &format!(".shared .align 16 .b8 tile[{MEMORY}];\n")
                + &kernel(&declarations, &body);
            Bench::text(&text, target, 32, [1, count])?
        };
        let memory: Vec<u8> = (0..MEMORY).map(|_| r.next() as u8).collect();
        let rows: Vec<Vec<u64>> = (0..32).map(|_| vec![16 * r.below(MEMORY as u64 / 16)]).collect();
        let (lanes, _) = bench.run(&rows, &memory, r.next())?;
        for (lane, got) in lanes.iter().enumerate() {
            for (i, got) in got.iter().enumerate() {
                let element = |row: usize, col: usize| {
                    let at = rows[8 * i + row][0] as usize + 2 * col;
                    u64::from(memory[at]) | u64::from(memory[at + 1]) << 8
                };
                let (g, t) = (lane / 4, lane % 4 * 2);
                let want = if turned {
                    element(t, g) | element(t + 1, g) << 16
                } else {
                    element(g, t) | element(g, t + 1) << 16
                };
                if *got != want {
                    return Err(format!("lane {lane} word {i}: {got:#x} and not {want:#x}"));
                }
            }
        }
        Ok(())
    };
    Some(run(r).map_err(|e| format!("{} {target}: {e}", helper.name)))
}
