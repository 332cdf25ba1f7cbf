//! References of warp-wide helpers: votes, shuffles, reductions, matrix multiplications.
//!
//! For a helper's name and the inputs of the 32 lanes of a warp, it gives the expected result of
//! each lane; `None` for a lane that does not participate. Source: PTX ISA 9.0, 9.7.13 for the
//! warp, 9.7.14.5 and 9.7.14.6 for fragment layouts.

use super::harness::Random;

type Lanes = Vec<Vec<u64>>;

/// Random words for a warp.
pub fn inputs(name: &str, params: &[(&'static str, String)], r: &mut Random) -> Lanes {
    let small = r.below(2) == 0;
    let mask = match r.below(4) {
        0 => 0xffff_ffff,
        1 => 1 << r.below(32),
        2 => 0xffff << r.below(16),
        _ => r.next() & 0xffff_ffff,
    };
    let uniform = r.below(3) == 0;
    let (same, clamp) = (r.next(), [0x1f, 0, 0x1c1f, 0x181f, 0x1c00, r.next() & 0x1f1f][r.below(6) as usize]);
    let mut word = |ty: &str, param: &str| -> u64 {
        let bits = if ty.ends_with("64") { 64 } else { 32 };
        let full = u64::MAX >> (64 - bits);
        match param {
            "mask" => mask,
            "c" if name.contains("shflsync") => clamp,
            "b" if name.contains("shflsync") => r.below(if small { 4 } else { 40 }),
            "parg" => {
                if uniform {
                    same & 1
                } else {
                    r.below(2) * r.below(1 << 31).max(1)
                }
            }
            "arg" => {
                if uniform {
                    same & full
                } else {
                    (same.rotate_left(r.below(2) as u32 * 8)) & full
                }
            }
            "lane" => r.below(32),
            "f_temp" => 0,
            _ if name.contains("reduxsync_f32") => float(r),
            _ => (r.next() >> if small { r.below(30) } else { 0 }) & full,
        }
    };
    (0..32).map(|_| params.iter().map(|(ty, n)| word(ty, n)).collect()).collect()
}

fn float(r: &mut Random) -> u64 {
    match r.below(8) {
        0 => 0,
        1 => 0x8000_0000,
        2 => [0x7fc0_0000, 0xffff_ffff, 0x7f80_0001][r.below(3) as usize],
        3 => [0x7f80_0000, 0xff80_0000][r.below(2) as usize],
        4 => r.next() & 0x807f_ffff,
        _ => r.next() & 0xffff_ffff,
    }
}

/// The expected result of each lane.
pub fn reference(name: &str, lanes: &Lanes) -> Option<Vec<Option<Vec<u64>>>> {
    let name = name.strip_prefix("__cuda_")?;
    if let Some(rest) = name.strip_prefix("reduxsync_") {
        return Some(per_mask(lanes, 1, |_, within| {
            vec![reduced(rest, &within.iter().map(|l| lanes[*l][0] as u32).collect::<Vec<_>>()).into()]
        }));
    }
    let rest = name.strip_prefix("sm70_");
    if let Some(rest) = rest.and_then(|r| r.strip_prefix("matchsync_")) {
        let rest = rest.trim_start_matches("aligned_");
        return Some(per_mask(lanes, 1, |lane, within| {
            let equal: Vec<usize> = within.iter().copied().filter(|l| lanes[*l][0] == lanes[lane][0]).collect();
            let bits = |list: &[usize]| list.iter().fold(0u64, |m, l| m | 1 << l);
            let all = equal.len() == within.len();
            match (rest.starts_with("any"), rest.ends_with("_p")) {
                (true, _) => vec![bits(&equal)],
                (false, false) => vec![if all { bits(within) } else { 0 }],
                (false, true) => vec![if all { bits(within) } else { 0 }, all.into()],
            }
        }));
    }
    if let Some(rest) = rest.and_then(|r| r.strip_prefix("votesync_")) {
        return Some(per_mask(lanes, 1, |_, within| {
            let set = within.iter().filter(|l| lanes[**l][0] != 0);
            vec![match rest.trim_start_matches("aligned_") {
                "all" => (set.count() == within.len()).into(),
                "any" => (set.count() > 0).into(),
                "uni" => {
                    let n = set.count();
                    (n == 0 || n == within.len()).into()
                }
                _ => set.fold(0, |m, l| m | 1 << l),
            }]
        }));
    }
    if let Some(rest) = rest.and_then(|r| r.strip_prefix("shflsync_")) {
        return Some(per_mask(lanes, 3, |lane, within| {
            let (source, inside) = shuffled(rest, lane, lanes[lane][1], lanes[lane][2]);
            // The value of a lane outside the mask is ignored.
            if inside && !within.contains(&source) {
                return vec![u64::MAX];
            }
            let value = if inside { lanes[source][0] } else { lanes[lane][0] };
            if rest.ends_with("_p") { vec![value, inside.into()] } else { vec![value] }
        }));
    }
    if name.starts_with("sm_8x_mma_shfl") {
        let words = lanes[0].len() - 1;
        return Some((0..32).map(|l| Some(lanes[lanes[l][words] as usize][..words].to_vec())).collect());
    }
    if name == "sm7x_movmatrix_m8n8_trans_b16" {
        let element = |row: usize, col: usize| lanes[row * 4 + col / 2][0] >> (16 * (col % 2)) & 0xffff;
        return Some(
            (0..32).map(|l| Some(vec![element(l % 4 * 2, l / 4) | element(l % 4 * 2 + 1, l / 4) << 16])).collect(),
        );
    }
    None
}

fn per_mask(lanes: &Lanes, at: usize, f: impl Fn(usize, &[usize]) -> Vec<u64>) -> Vec<Option<Vec<u64>>> {
    let within: Vec<usize> = (0..32).filter(|l| lanes[0][at] >> l & 1 == 1).collect();
    (0..32).map(|l| within.contains(&l).then(|| f(l, &within))).collect()
}

fn reduced(what: &str, list: &[u32]) -> u32 {
    let fold = |f: fn(u32, u32) -> u32| list.iter().copied().reduce(f).unwrap_or(0);
    match what {
        "b32_and" => fold(|a, b| a & b),
        "b32_or" => fold(|a, b| a | b),
        "b32_xor" => fold(|a, b| a ^ b),
        "s32_add" | "u32_add" => fold(u32::wrapping_add),
        "u32_max" => fold(u32::max),
        "u32_min" => fold(u32::min),
        "s32_max" => fold(|a, b| (a as i32).max(b as i32) as u32),
        "s32_min" => fold(|a, b| (a as i32).min(b as i32) as u32),
        _ => {
            let list: Vec<u32> =
                list.iter().map(|x| if what.contains("_abs") { x & 0x7fff_ffff } else { *x }).collect();
            let nan = |x: &u32| f32::from_bits(*x).is_nan();
            if list.iter().all(nan) || what.contains("_NaN") && list.iter().any(nan) {
                return 0x7fff_ffff;
            }
            // In the order of these integers +0 is greater than -0.
            let key = |x: &u32| if x >> 31 == 1 { !x } else { x | 1 << 31 };
            let numbers = list.into_iter().filter(|x| !nan(x));
            if what.starts_with("f32_max") { numbers.max_by_key(key) } else { numbers.min_by_key(key) }.unwrap_or(0)
        }
    }
}

/// The source lane of a shuffle, and whether it is in range.
fn shuffled(mode: &str, lane: usize, b: u64, c: u64) -> (usize, bool) {
    let (lane, b, clamp, segment) = (lane as i64, (b & 31) as i64, (c & 31) as i64, (c >> 8 & 31) as i64);
    let most = lane & segment | clamp & !segment;
    let least = lane & segment;
    let (source, inside) = match mode.trim_end_matches("_p") {
        "up" => (lane - b, lane - b >= most),
        "down" => (lane + b, lane + b <= most),
        "bfly" => (lane ^ b, (lane ^ b) <= most),
        _ => {
            let j = least | b & !segment;
            (j, j <= most)
        }
    };
    (if inside { source as usize } else { lane as usize }, inside)
}
