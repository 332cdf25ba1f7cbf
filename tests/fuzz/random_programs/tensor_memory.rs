//! Tensor memory (`tcgen05`) in random programs.
//!
//! The first warp allocates columns, which every warp fills in its own lanes; then come loads and
//! stores of other shapes, copies from the tile, or a product, which needs the lanes of four warps.
//! A barrier tells the end of copies and products. All cells are written before they are read.

use super::counts::waited;
use super::descriptors::{descriptor, factor, fill};
use super::families::{OPEN, Place, meet, taken};
use super::make::register;
use super::matrix::FLOATS;
use crate::random::Random;
use sassafras::tables::Feature;

/// Columns that are filled, of those allocated.
const COLUMNS: usize = 32;

/// Whether the target has tensor memory.
pub fn fits(place: &Place) -> bool {
    place.own() && place.target.has(Feature::TensorMemory)
}

/// A statement of tensor memory.
pub fn statement(random: &mut Random, place: &Place) -> String {
    let columns = [32, 64, 128][random.below(3)];
    let mut text = OPEN.to_string() + meet(random) + "setp.ge.u32 TP, t, 32; @TP bra ALLOTTED; ";
    let space = ["", ".shared::cta"][random.below(2)];
    let place_of = match space {
        "" => "mov.u64 TM, columns; cvta.shared.u64 TM, TM; ",
        _ => "mov.u32 TD, columns; ",
    };
    let at = if space.is_empty() { "[TM]" } else { "[TD]" };
    text += &format!("{place_of}tcgen05.alloc.cta_group::1.sync.aligned{space}.b32 {at}, {columns}; ALLOTTED: ");
    text += "setp.eq.u32 TQ, t, 0; @TQ mbarrier.init.shared.b64 [mb], 1; ";
    text += "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; ";
    text += "ld.shared.b32 TN, [columns]; and.b32 TR, t, 96; shl.b32 TR, TR, 16; add.u32 TR, TR, TN; ";
    let kind = if place.threads == 128 { random.below(4) } else { random.below(2) };
    text += &match kind {
        0 => filled(random, "") + &pieces(random),
        1 => filled(random, "") + &copies(random, place),
        _ => product(random, place),
    };
    text += "tcgen05.fence::before_thread_sync; bar.sync 0; ";
    text += "setp.eq.u32 TQ, t, 0; @TQ mbarrier.inval.shared.b64 [mb]; setp.ge.u32 TP, t, 32; @TP bra FREED; ";
    text += &format!("tcgen05.dealloc.cta_group::1.sync.aligned.b32 TN, {columns}; FREED: {}}}", meet(random));
    text
}

fn list(count: usize) -> String {
    let all: Vec<String> = (0..count).map(|i| format!("E{i}")).collect();
    format!("{{{}}}", all.join(", "))
}

/// Fills the warp's lanes of the columns, patterns of a float if it has a name.
fn filled(random: &mut Random, float: &str) -> String {
    let mut text = format!("{{ .reg .b32 E<{COLUMNS}>; ");
    let patterns = FLOATS.iter().find(|f| f.0 == float);
    for i in 0..COLUMNS {
        text += &format!("add.u32 E{i}, {}, {i}; ", register(random, 'r'));
        if let Some((_, mask, base)) = patterns {
            text += &format!("and.b32 E{i}, E{i}, {mask:#x}; or.b32 E{i}, E{i}, {base:#x}; ");
        }
    }
    let each = [8, 16, 32][random.below(3)];
    for from in (0..COLUMNS).step_by(each) {
        let some: Vec<String> = (from..from + each).map(|i| format!("E{i}")).collect();
        text += &format!("tcgen05.st.sync.aligned.32x32b.x{each}.b32 [TR+{from}], {{{}}}; ", some.join(", "));
    }
    text + "tcgen05.wait::st.sync.aligned; } "
}

/// A shape: its name, registers of one, columns of one, whether it is of half of the lanes.
const SHAPES: [(&str, usize, usize, bool); 5] = [
    ("32x32b", 1, 1, false),
    ("16x64b", 1, 2, true),
    ("16x128b", 2, 4, true),
    ("16x256b", 4, 8, true),
    ("16x32bx2", 1, 1, true),
];

/// Loads and stores in random shapes, in the columns that are filled.
fn pieces(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..1 + random.below(4) {
        let (shape, registers, columns, half) = SHAPES[random.below(SHAPES.len())];
        let most = COLUMNS / columns / 2;
        let times = 1 << random.below(most.ilog2() as usize + 1);
        let (count, width) = (registers * times, columns * times);
        let lanes = if half && random.below(2) == 0 { 16 << 16 } else { 0 };
        let from = lanes + random.below(COLUMNS / 2 - width.min(COLUMNS / 2) + 1) / columns * columns;
        let apart = if shape == "16x32bx2" { format!(", {}", random.below(COLUMNS / 2)) } else { String::new() };
        text += &format!("{{ .reg .b32 E<{count}>; ");
        if random.below(3) == 0 {
            (0..count).for_each(|i| text += &format!("mov.b32 E{i}, {}; ", register(random, 'r')));
            text += &format!("tcgen05.st.sync.aligned.{shape}.x{times}.b32 [TR+{from}]{apart}, {}; ", list(count));
            text += "tcgen05.wait::st.sync.aligned; ";
        } else {
            text += &format!("tcgen05.ld.sync.aligned.{shape}.x{times}.b32 {}, [TR+{from}]{apart}; ", list(count));
            text += "tcgen05.wait::ld.sync.aligned; ";
            for i in 0..count {
                text += &taken(random, &format!("E{i}"));
            }
        }
        text += "} ";
    }
    text
}

/// Loads all columns of the warp's lanes.
fn loaded(random: &mut Random, count: usize) -> String {
    let mut text =
        format!("{{ .reg .b32 E<{count}>; tcgen05.ld.sync.aligned.32x32b.x{count}.b32 {}, [TR]; ", list(count));
    text += "tcgen05.wait::ld.sync.aligned; ";
    for i in 0..count {
        text += &taken(random, &format!("E{i}"));
    }
    text + "} "
}

/// Waits for what the unit was asked for.
fn finished(random: &mut Random, place: &Place) -> String {
    let commit = match random.below(2) {
        0 => "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [mb]; ISSUED: ",
        _ => {
            "mov.u64 TM, mb; cvta.shared.u64 TM, TM; tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [TM]; ISSUED: "
        }
    };
    commit.to_string() + &waited(random, place, "mb", 0, false) + "tcgen05.fence::after_thread_sync; "
}

/// Begins what one thread asks of the unit.
const ISSUE: &str = "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; \
                     @TP bra ISSUED; elect.sync _|TQ, 0xffffffff; @!TQ bra ISSUED; ";

/// Copies from the tile, and shifts.
fn copies(random: &mut Random, place: &Place) -> String {
    let mut text = fill(random, "") + ISSUE;
    // Rows of the tile lie as those of a factor of 32-bit elements.
    let rows = place.threads.min(128);
    for _ in 0..1 + random.below(3) {
        let (shape, lines, words) = [
            ("128x256b", 128, 8),
            ("128x128b", 128, 4),
            ("64x128b.warpx2::02_13", 64, 4),
            ("64x128b.warpx2::01_23", 64, 4),
            ("32x128b.warpx4", 32, 4),
        ][random.below(5)];
        if lines > rows {
            continue;
        }
        let (narrow, words) = match random.below(4) {
            0 if words == 4 => ([".b8x16.b4x16_p64", ".b8x16.b6x16_p32"][random.below(2)], 4),
            _ => ("", words),
        };
        let from = factor(random, place, (lines, words), 32, false);
        text += &descriptor(&from, "TG", 1 << 46);
        text += &format!("tcgen05.cp.cta_group::1.{shape}{narrow} [TN+{}], TG; ", 8 * random.below(COLUMNS / 8));
    }
    if random.below(3) == 0 {
        text += &format!("tcgen05.shift.cta_group::1.down [TN+{}]; ", 8 * random.below(COLUMNS / 8));
    }
    text + &finished(random, place) + &loaded(random, COLUMNS)
}

/// Types of a product: kind, type of the factors, bits, codes of the factor and of the sums.
const TYPES: [(&str, &str, usize, u32, u32); 8] = [
    ("f16", "f16", 16, 0, 1),
    ("f16", "f16", 16, 0, 0),
    ("f16", "bf16", 16, 1, 1),
    ("tf32", "tf32", 32, 2, 1),
    ("f8f6f4", "e4m3", 8, 0, 1),
    ("f8f6f4", "e5m2", 8, 1, 1),
    ("f8f6f4", "e4m3", 8, 0, 0),
    ("i8", "", 8, 1, 2),
];

/// A product of factors in the tile, or of one in tensor memory.
fn product(random: &mut Random, place: &Place) -> String {
    let integers = place.target.has(Feature::TensorMemoryIntegers);
    let (kind, element, bits, code, sum) = TYPES[random.below(TYPES.len() - usize::from(!integers))];
    let depth = 256 / bits;
    let (rows, columns) = ([64, 128, 128][random.below(3)], 16);
    let turning = bits == 16;
    let sums = ["f16", "f32", ""][sum as usize];
    // The sums, and behind them the first factor if it is in tensor memory.
    let mut text = filled(random, sums);
    let in_tensor = rows == 128 && random.below(3) == 0;
    if in_tensor {
        text += "{ .reg .b32 E<8>; ";
        for i in 0..8 {
            text += &format!("mov.b32 E{i}, {}; ", register(random, 'r'));
            if let Some((_, mask, base)) = FLOATS.iter().find(|f| f.0 == element) {
                text += &format!("and.b32 E{i}, E{i}, {mask:#x}; or.b32 E{i}, E{i}, {base:#x}; ");
            }
        }
        text +=
            &format!("tcgen05.st.sync.aligned.32x32b.x8.b32 [TR+16], {}; tcgen05.wait::st.sync.aligned; }} ", list(8));
    }
    text += &fill(random, element);
    text += "mov.u32 TD, %nctaid.y; setp.eq.u32 TQ, TD, 1; selp.u32 TD, 1, 0, TQ; ";
    text += ISSUE;
    let first = factor(random, place, (rows, depth), bits, turning && !in_tensor);
    let second = factor(random, place, (columns, depth), bits, turning);
    text += &(descriptor(&first, "TG", 1 << 46) + &descriptor(&second, "TH", 1 << 46));
    let signs = if kind == "i8" { 0 } else { random.below(4) as u32 };
    let unsigned = |code: u32, one: bool| if kind == "i8" && one { 0 } else { code };
    let codes = (unsigned(code, random.below(2) == 0), unsigned(code, random.below(2) == 0));
    let of = sum << 4
        | codes.0 << 7
        | codes.1 << 10
        | signs << 13
        | u32::from(first.turned && !in_tensor) << 15
        | u32::from(second.turned) << 16
        | (columns as u32 / 8) << 17
        | (rows as u32 / 16) << 24;
    text += &format!("mov.b32 TC, {of:#x}; setp.ne.u32 TQ, TD, 0; add.u32 TD, TN, 16; ");
    let factor = if in_tensor { "[TD]" } else { "TG" };
    for n in 0..1 + random.below(2) {
        let added = if n == 0 { ["TQ", "1", "0"][random.below(3)] } else { "1" };
        let kept = match random.below(4) {
            0 => {
                let masks: Vec<String> = (0..4).map(|i| format!("TW{i}")).collect();
                (0..4).for_each(|i| text += &format!("mov.b32 TW{i}, {:#x}; ", 0xf0ff_000f_u32.rotate_left(7 * i)));
                format!(" {{{}}},", masks.join(", "))
            }
            _ => String::new(),
        };
        text += &format!("tcgen05.mma.cta_group::1.kind::{kind} [TN], {factor}, TH, TC,{kept} {added}; ");
    }
    text + &finished(random, place) + &loaded(random, columns)
}
