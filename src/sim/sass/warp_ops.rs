//! Executes operations across the lanes of a group: shuffle, vote, match, reduction, elect.
//!
//! Only the lanes of the group participate. A value read from another lane is 0.

use super::super::ops::format::F32;
use super::super::ops::real::{self, Mode};
use super::code::{Code, Exec, Redux, Shuffle, Vote};
use super::exec::lowest_if_uniform;
use super::warp::{LANES, SQUARE, Warp, lanes_of};

/// Executes a warp operation for the active lanes.
pub fn execute(w: &mut Warp, code: &Code, active: u32) {
    match code.exec {
        Exec::Shuffle(mode) => shuffle(w, code, active, mode),
        Exec::Vote(vote) => {
            let ballot = w.pred(code.pp) & active;
            let holds = match vote {
                Vote::All => ballot == active,
                Vote::Any => ballot != 0,
                Vote::Eq => ballot == 0 || ballot == active,
            };
            give_all(w, code, active, ballot, holds);
        }
        Exec::Match { all } => match_lanes(w, code, active, all),
        Exec::Redux(op) => {
            let values: Vec<u32> = lanes_of(active).map(|lane| w.get(&code.a, lane) as u32).collect();
            give_all(w, code, active, reduce(op, &values), true);
        }
        Exec::Spread => {
            let lowest = w.get(&code.a, active.trailing_zeros() as usize % LANES);
            let others =
                lanes_of(active).filter(|lane| w.get(&code.a, *lane) != lowest).fold(0, |m, lane| m | 1 << lane);
            let before = w.pred(code.pp);
            w.set(code.d, 0, 0, lowest as u32);
            w.set_pred(code.pu, active, others | before & active);
        }
        Exec::Elect => {
            let lowest = active & active.wrapping_neg();
            for lane in lanes_of(lowest_if_uniform(code, active)) {
                w.set(code.d, 0, lane, lowest.trailing_zeros());
            }
            w.set_pred(code.pu, active, lowest);
        }
        _ => {}
    }
}

/// FSWZADD: sums with the signs of the lane in its square, two bits each, the first lane highest.
pub fn add_in_squares(w: &mut Warp, code: &Code, active: u32, signs: u8) {
    const SIGN: u64 = 1 << 31;
    for lane in lanes_of(active) {
        let (a, b) = (w.get(&code.a, lane), w.get(&code.b, lane));
        let (a, b) = match signs >> (2 * (SQUARE - 1 - lane % SQUARE)) & 3 {
            0 => (a, b),
            1 => (a, b ^ SIGN),
            2 => (a ^ SIGN, b),
            _ => (0, b),
        };
        w.set(code.d, 0, lane, real::add(F32, a, b, Mode::default()) as u32);
    }
}

fn give_all(w: &mut Warp, code: &Code, active: u32, value: u32, holds: bool) {
    for lane in lanes_of(lowest_if_uniform(code, active)) {
        w.set(code.d, 0, lane, value);
    }
    w.set_pred(code.pu, active, if holds { active } else { 0 });
}

fn reduce(op: Redux, values: &[u32]) -> u32 {
    let of = |f: fn(u32, u32) -> u32| values.iter().copied().reduce(f).unwrap_or(0);
    match op {
        Redux::Add => of(u32::wrapping_add),
        Redux::And => of(|a, b| a & b),
        Redux::Or => of(|a, b| a | b),
        Redux::Xor => of(|a, b| a ^ b),
        Redux::Min(false) => of(u32::min),
        Redux::Max(false) => of(u32::max),
        Redux::Min(true) => of(|a, b| (a as i32).min(b as i32) as u32),
        Redux::Max(true) => of(|a, b| (a as i32).max(b as i32) as u32),
        Redux::Float { min, abs, nan } => {
            let magnitude = if abs { i32::MAX as u32 } else { u32::MAX };
            let values = values.iter().map(|v| u64::from(v & magnitude));
            let one = |a, b| real::min_max(F32, a, b, min, nan, Mode::default());
            values.reduce(one).map_or(0, |bits| one(bits, bits) as u32)
        }
    }
}

/// The lane to read, and whether it is inside the segment.
fn source_lane(mode: Shuffle, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let low = lane & segment;
    let high = low | clamp & !segment;
    let (from, inside) = match mode {
        Shuffle::Up => (lane.wrapping_sub(b), lane as i32 - b as i32 >= high as i32),
        Shuffle::Down => (lane + b, lane + b <= high),
        Shuffle::Bfly => (lane ^ b, lane ^ b <= high),
        Shuffle::Idx => (low | b & !segment, low | b & !segment <= high),
    };
    if inside { (from, true) } else { (lane, false) }
}

fn shuffle(w: &mut Warp, code: &Code, active: u32, mode: Shuffle) {
    let values: [u32; LANES] =
        std::array::from_fn(|lane| if active >> lane & 1 != 0 { w.get(&code.a, lane) as u32 } else { 0 });
    let mut pu = 0;
    let mut picked = [0; LANES];
    for lane in lanes_of(active) {
        let (b, c) = (w.get(&code.b, lane) as u32, w.get(&code.c, lane) as u32);
        let (from, inside) = source_lane(mode, lane as u32, b, c);
        picked[lane] = values[from as usize % LANES];
        pu |= u32::from(inside) << lane;
    }
    for lane in lanes_of(active) {
        w.set(code.d, 0, lane, picked[lane]);
    }
    w.set_pred(code.pu, active, pu);
}

fn match_lanes(w: &mut Warp, code: &Code, active: u32, all: bool) {
    let values: [u64; LANES] = std::array::from_fn(|lane| w.get(&code.a, lane));
    let same = |lane: usize| w.lanes_where(active, |other| values[other] == values[lane]);
    let masks: [u32; LANES] = std::array::from_fn(same);
    for lane in lanes_of(active) {
        let mask = if all && masks[lane] != active { 0 } else { masks[lane] };
        w.set(code.d, 0, lane, mask);
    }
    let agree = lanes_of(active).all(|lane| masks[lane] == active);
    w.set_pred(code.pu, active, if agree { active } else { 0 });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffle_sources() {
        assert_eq!(source_lane(Shuffle::Down, 30, 1, 0x1f), (31, true));
        assert_eq!(source_lane(Shuffle::Down, 31, 1, 0x1f), (31, false));
        assert_eq!(source_lane(Shuffle::Up, 3, 4, 0), (3, false));
        assert_eq!(source_lane(Shuffle::Up, 4, 4, 0), (0, true));
        assert_eq!(source_lane(Shuffle::Bfly, 5, 16, 0x1f), (21, true));
        // Segments of eight lanes.
        assert_eq!(source_lane(Shuffle::Down, 7, 1, 0x1807), (7, false));
        assert_eq!(source_lane(Shuffle::Up, 8, 1, 0x1800), (8, false));
        assert_eq!(source_lane(Shuffle::Idx, 13, 2, 0x1807), (10, true));
        assert_eq!(source_lane(Shuffle::Idx, 13, 9, 0x1807), (9, true));
    }

    #[test]
    fn reductions() {
        assert_eq!(reduce(Redux::Min(true), &[3, u32::MAX]), u32::MAX);
        assert_eq!(reduce(Redux::Min(false), &[3, u32::MAX]), 3);
        assert_eq!(reduce(Redux::Add, &[u32::MAX, 2]), 1);
        assert_eq!(reduce(Redux::Xor, &[5, 3]), 6);
    }
}
