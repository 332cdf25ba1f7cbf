//! Tensors whose boxes random programs copy: what is taken, where it begins, and how that is spelt.

use super::arguments::{Image, PLANS, Plan};
use super::families::{OPEN, Place, heap};
use super::make::register;
use super::tensor_memory;
use crate::random::Random;

/// Rows that are gathered.
const ROWS: u64 = 4;

/// Which elements of a tensor a copy takes.
#[derive(Clone, Copy)]
pub enum Kind {
    Box,
    Rows,
    Pixels(&'static Image),
}

/// A map and what is copied with it.
pub struct Tensor {
    number: usize,
    pub plan: &'static Plan,
    pub kind: Kind,
    /// The number of the type of its elements.
    pub ty: u64,
}

impl Tensor {
    /// One that the target has, of each kind as often.
    pub fn one(random: &mut Random, place: &Place) -> Tensor {
        let wanted = random.below(3);
        loop {
            let number = random.below(PLANS.len());
            let plan = &PLANS[number];
            let kind = match &plan.image {
                Some(image) => Kind::Pixels(image),
                None if plan.boxes[1..] == [1] => Kind::Rows,
                None => Kind::Box,
            };
            let (is, has) = match kind {
                Kind::Box => (0, true),
                Kind::Rows => (1, place.from(100)),
                Kind::Pixels(_) => (2, true),
            };
            if has && (is == wanted || wanted == 1 && !place.from(100)) {
                return Tensor { number, plan, kind, ty: plan.ty };
            }
        }
    }

    pub fn rank(&self) -> usize {
        self.plan.sizes.len()
    }

    /// Bytes of a copy.
    pub fn bytes(&self) -> u64 {
        let rows = match self.kind {
            Kind::Box => self.plan.boxes[1..].iter().product(),
            Kind::Rows => ROWS,
            Kind::Pixels(image) => image.count,
        };
        rows * self.plan.boxes[0] * self.plan.bytes
    }

    /// Coordinates of a corner in `TW`: of the tensor, and a little outside of it; rows differ, and
    /// pixels are those that the box of pixels has.
    pub fn corner(&self, random: &mut Random) -> (String, String) {
        let (mut text, mut sizes) = (String::new(), self.plan.sizes.to_vec());
        if let Kind::Rows = self.kind {
            sizes.truncate(1);
        }
        for (i, size) in sizes.iter().enumerate() {
            let (from, count) = match self.kind {
                Kind::Pixels(image) if (1..=image.lower.len()).contains(&i) => {
                    (image.lower[i - 1], *size as i64 + image.upper[i - 1] - image.lower[i - 1])
                }
                Kind::Pixels(_) if i > 0 => (0, *size as i64),
                _ => (-3, *size as i64 + 4),
            };
            text += &match random.below(2) {
                0 => format!("mov.b32 TW{i}, {}; ", random.below(count as usize) as i64 + from),
                _ => {
                    let mask = ((count + 1).ilog2() as usize).min(4);
                    let mask = (1 << mask) - 1;
                    format!("and.b32 TW{i}, {}, {mask}; add.s32 TW{i}, TW{i}, {from}; ", register(random, 'r'))
                }
            };
        }
        let mut list: Vec<String> = (0..sizes.len()).map(|i| format!("TW{i}")).collect();
        if let Kind::Rows = self.kind {
            let part = self.plan.sizes[1] as usize / 4 + 1;
            for i in 0..ROWS as usize {
                let first = (part * ((i + 3) % 4)) as i64 - 2;
                text +=
                    &format!("and.b32 TW{0}, {1}, 3; add.s32 TW{0}, TW{0}, {first}; ", i + 1, register(random, 'r'));
                list.push(match random.below(3) {
                    0 => (first + random.below(part) as i64).to_string(),
                    _ => format!("TW{}", i + 1),
                });
            }
        }
        (text, format!("{{{}}}", list.join(", ")))
    }

    /// The offsets of pixels, in `TX`, as the last operand of a copy.
    pub fn offsets(&self, random: &mut Random) -> (String, String) {
        let Kind::Pixels(image) = self.kind else { return Default::default() };
        let most = [0xffff, 0xff, 0x1f][image.lower.len() - 1];
        let (mut text, mut list) = (String::new(), Vec::new());
        for i in 0..image.lower.len() {
            list.push(match random.below(4) {
                0 => random.below(3).to_string(),
                n => {
                    let mask = if n == 1 { most } else { 3 };
                    text += &format!("and.b32 TD, {}, {mask}; cvt.u16.u32 TX{i}, TD; ", register(random, 'r'));
                    format!("TX{i}")
                }
            });
        }
        (text, format!(", {{{}}}", list.join(", ")))
    }

    pub fn mode(&self, random: &mut Random) -> &'static str {
        match self.kind {
            Kind::Box => ["", ".tile"][random.below(2)],
            Kind::Rows => ".tile::gather4",
            Kind::Pixels(_) => ".im2col",
        }
    }

    /// Asks for a box in the second cache, which changes nothing.
    pub fn prefetched(&self, random: &mut Random, place: &Place) -> String {
        let ours = tensor_memory::fits(place);
        if matches!(self.kind, Kind::Rows) && !ours {
            return String::new();
        }
        let (front, list) = self.corner(random);
        let (more, offsets) = self.offsets(random);
        // With halos these have other offsets, a halo and perhaps a place in it.
        let (mode, offsets) = match (self.kind, random.below(3)) {
            (Kind::Pixels(_), 0) if ours => (".im2col::w", ", {2, 1}".to_string()),
            (Kind::Pixels(_), 1) if ours => (".im2col::w::128", ", {3, 0}".to_string()),
            _ => (self.mode(random), offsets),
        };
        let (policy, hint, operand) = policy(random);
        let rank = self.rank();
        format!(
            "{front}{more}{policy}@TP cp.async.bulk.prefetch.tensor.{rank}d.L2.global{mode}{hint} [TS, {list}]{offsets}{operand}; "
        )
    }

    /// Begins a statement: its registers, the addresses of the heap and of the map.
    pub fn begun(&self, place: &Place) -> String {
        let map = format!("mov.b64 TS, map{0}; cvta.param.u64 TS, TS; ", self.number);
        OPEN.to_string() + ".reg .b16 TX<3>; " + &heap(place) + &map
    }
}

/// A policy of the second cache in `TM`, or none: what makes it, the modifier, and the operand.
pub fn policy(random: &mut Random) -> (&'static str, &'static str, &'static str) {
    match random.below(4) {
        0 => ("createpolicy.fractional.L2::evict_last.b64 TM, 1.0; ", ".L2::cache_hint", ", TM"),
        _ => ("", "", ""),
    }
}
