//! Products of warp groups (`wgmma`) and changes of their registers (`setmaxnreg`) in random
//! programs.
//!
//! Factors and sums are ±1 and ±1.5, or integers, so that all sums are exact; one to three products
//! go into the same sums before those return to the program's registers.

use super::descriptors::{descriptor, factor, fill};
use super::families::{OPEN, Place, taken, words};
use super::make::register;
use super::matrix::FLOATS;
use crate::random::Random;

/// Threads of a warp group.
pub const THREADS: usize = 128;

/// Whether the target has products of warp groups, and the block is one.
pub fn fits(place: &Place) -> bool {
    place.own() && place.target.sm == 90 && place.threads == THREADS
}

/// Whether warps may change their registers.
pub fn changes(place: &Place) -> bool {
    place.own() && place.from(90) && place.threads == THREADS
}

/// Types of a product: sums, factors, bits of an element, the depth.
const TYPES: [(&str, &str, &str, usize, usize); 13] = [
    ("f32", "f16", "f16", 16, 16),
    ("f16", "f16", "f16", 16, 16),
    ("f32", "bf16", "bf16", 16, 16),
    ("f32", "tf32", "tf32", 32, 8),
    ("f32", "e4m3", "e4m3", 8, 32),
    ("f16", "e4m3", "e4m3", 8, 32),
    ("f32", "e5m2", "e5m2", 8, 32),
    ("f16", "e5m2", "e5m2", 8, 32),
    ("s32", "s8", "u8", 8, 32),
    ("s32", "u8", "s8", 8, 32),
    ("s32", "s8", "s8", 8, 32),
    ("s32", "u8", "u8", 8, 32),
    ("s32", "b1", "b1", 1, 256),
];

/// A product.
pub fn product(random: &mut Random, place: &Place) -> String {
    let (sum, a, b, bits, depth) = TYPES[random.below(TYPES.len())];
    let sparse = a != "b1" && random.below(4) == 0;
    let columns = 8 * [1, 2, 3, 4, 6, 8][random.below(6)];
    let count = if sum == "f16" { columns / 4 } else { columns / 2 };
    let held = if sum == "f32" { "f32" } else { "b32" };
    let mut text = OPEN.to_string() + &fill(random, a);
    text += &format!("{{ .reg .{held} D<{count}>; .reg .b32 A<4>; ");
    text += &sums(random, sum, count);
    let registers = random.below(2) == 0;
    let deep = if sparse { 2 * depth } else { depth };
    let mut list: Vec<String> = Vec::new();
    text += "wgmma.fence.sync.aligned; ";
    if registers {
        text += &patterns(random, a);
        text += "wgmma.fence.sync.aligned; ";
    }
    let one = factor(random, place, (64, depth), bits, true);
    let two = factor(random, place, (columns, deep), bits, true);
    if !registers {
        text += &descriptor(&one, "TG", 0);
    }
    text += &descriptor(&two, "TH", 0);
    // The first product may begin its sums anew, as a register says that all lanes agree on.
    text += "mov.u32 TD, %nctaid.y; setp.eq.u32 TP, TD, 1; setp.ne.u32 TQ, TD, 1; ";
    list.push(["TP", "TQ", "1", "0"][random.below(4)].to_string());
    if bits != 1 && sum != "s32" {
        list.extend((0..2).map(|_| ["1", "-1"][random.below(2)].to_string()));
    }
    if bits == 16 {
        if !registers {
            list.push(u8::from(one.turned).to_string());
        }
        list.push(u8::from(two.turned).to_string());
    }
    let (sp, metadata) = match sparse {
        true => {
            let held = [0x4444_4444u32, 0xeeee_eeee, 0x4e4e_e4e4, 0xee44_44ee][random.below(4)];
            text += &format!("mov.b32 TC, {held:#x}; ");
            let most = if bits == 8 { 1 } else { 2 };
            (".sp", format!(", TC, {}", random.below(most)))
        }
        false => ("", String::new()),
    };
    let suffix = match (a, random.below(2)) {
        ("b1", _) => ".and.popc",
        (_, 0) if sum == "s32" => ".satfinite",
        _ => "",
    };
    let d: Vec<String> = (0..count).map(|i| format!("D{i}")).collect();
    let first = if registers { "{A0, A1, A2, A3}" } else { "TG" };
    for _ in 0..1 + random.below(3) {
        text += &format!(
            "wgmma.mma_async{sp}.sync.aligned.m64n{columns}k{deep}.{sum}.{a}.{b}{suffix} {{{}}}, {first}, TH{metadata}, {}; ",
            d.join(", "),
            list.join(", ")
        );
        if random.below(3) == 0 {
            text += "wgmma.commit_group.sync.aligned; ";
        }
        list[0] = "1".to_string();
    }
    text += "wgmma.commit_group.sync.aligned; ";
    if random.below(3) == 0 {
        text += "wgmma.wait_group.sync.aligned 1; ";
    }
    text += "wgmma.wait_group.sync.aligned 0; ";
    for i in 0..count {
        text += &format!("mov.b32 TD, D{i}; {}", taken(random, "TD"));
    }
    text + "} bar.sync 0; }"
}

/// The sums at the beginning.
fn sums(random: &mut Random, sum: &str, count: usize) -> String {
    let float = FLOATS.iter().find(|f| f.0 == sum);
    let one = |i: usize| match float {
        Some((_, mask, base)) => {
            let r = register(random, 'r');
            format!("and.b32 TD, {r}, {mask:#x}; or.b32 TD, TD, {base:#x}; mov.b32 D{i}, TD; ")
        }
        None => format!("mov.b32 D{i}, {}; ", register(random, 'r')),
    };
    (0..count).map(one).collect()
}

/// The first factor in registers.
fn patterns(random: &mut Random, element: &str) -> String {
    let mut text = String::new();
    let float = FLOATS.iter().find(|f| f.0 == element);
    for i in 0..4 {
        text += &format!("mov.b32 A{i}, {}; ", register(random, 'r'));
        if let Some((_, mask, base)) = float {
            text += &format!("and.b32 A{i}, A{i}, {mask:#x}; or.b32 A{i}, A{i}, {base:#x}; ");
        }
    }
    text
}

/// Gives registers up and takes them again.
pub fn registers(random: &mut Random, _place: &Place) -> String {
    let (few, many) = (8 * (8 + random.below(5)), 8 * (14 + random.below(6)));
    let mut text = OPEN.to_string() + &words(random, 8);
    text += &format!("setmaxnreg.dec.sync.aligned.u32 {few}; ");
    for i in 0..8 {
        text += &format!("mad.lo.u32 TW{i}, TW{}, TW{}, TW{i}; ", (i + 3) % 8, (i + 5) % 8);
    }
    text += &format!("setmaxnreg.inc.sync.aligned.u32 {many}; ");
    text += &taken(random, "TW3");
    text += &taken(random, "TW6");
    text + "}"
}
