//! Tensor memory (`tcgen05`) in random programs.
//!
//! The first warp allocates columns, which every warp fills in its own lanes; then come loads and
//! stores of other shapes, copies from the tile, or a product (`tensor_products.rs`), which needs
//! the lanes of four warps. A barrier tells the end of copies and products. All cells are written
//! before they are read. Two blocks of such a size are a pair, which multiplies together.

use super::counts::waited;
use super::descriptors::{descriptor, factor, fill};
use super::families::{OPEN, Place, meet, taken};
use super::make::register;
use super::matrix::FLOATS;
use super::tensor_products::{ALLOTTED, product};
use crate::random::Random;
use sassafras::tables::Feature;

/// Columns that are filled, of those allocated.
const COLUMNS: usize = 32;

/// Whether the target has tensor memory.
pub fn fits(place: &Place) -> bool {
    place.own() && place.target.has(Feature::TensorMemory)
}

/// Blocks that a product is of: all that a kernel asks of tensor memory is for so many.
pub fn blocks(place: &Place) -> usize {
    if (place.threads, place.cluster) == (128, 2) { 2 } else { 1 }
}

/// A barrier of the blocks that a product is of.
pub fn all_meet(place: &Place) -> &'static str {
    match blocks(place) {
        2 => "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ",
        _ => "bar.sync 0; ",
    }
}

/// Whether the block has the lanes of a product.
pub fn multiplies(place: &Place) -> bool {
    fits(place) && place.threads == 128
}

/// A product of tensor memory.
pub fn products(random: &mut Random, place: &Place) -> String {
    within(random, place, 3)
}

/// A statement of tensor memory that is none.
pub fn statement(random: &mut Random, place: &Place) -> String {
    // A pair only multiplies.
    let kind = if blocks(place) == 2 { 3 } else { random.below(3) };
    within(random, place, kind)
}

/// A statement of a kind, with columns that are allotted for it.
fn within(random: &mut Random, place: &Place, kind: usize) -> String {
    let blocks = blocks(place);
    let columns = if kind > 1 { ALLOTTED } else { [32, 64, 128][random.below(3)] };
    let mut text = OPEN.to_string() + meet(random) + "setp.ge.u32 TP, t, 32; @TP bra ALLOTTED; ";
    let space = ["", ".shared::cta"][random.below(2)];
    let place_of = match space {
        "" => "mov.u64 TM, columns; cvta.shared.u64 TM, TM; ",
        _ => "mov.u32 TD, columns; ",
    };
    let at = if space.is_empty() { "[TM]" } else { "[TD]" };
    text += &format!("{place_of}tcgen05.alloc.cta_group::{blocks}.sync.aligned{space}.b32 {at}, {columns}; ALLOTTED: ");
    text += "setp.eq.u32 TQ, t, 0; @TQ mbarrier.init.shared.b64 [mb], 1; ";
    if blocks == 2 {
        text += "@TQ fence.mbarrier_init.release.cluster; ";
    }
    text += "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; ";
    text += "ld.shared.b32 TN, [columns]; and.b32 TR, t, 96; shl.b32 TR, TR, 16; add.u32 TR, TR, TN; ";
    text += &match kind {
        0 => filled(random, "", COLUMNS) + &pieces(random, place),
        1 => filled(random, "", COLUMNS) + &copies(random, place),
        2 => wide(random, place),
        _ => product(random, place),
    };
    text += &format!("tcgen05.fence::before_thread_sync; {}", all_meet(place));
    text += "setp.eq.u32 TQ, t, 0; @TQ mbarrier.inval.shared.b64 [mb]; setp.ge.u32 TP, t, 32; @TP bra FREED; ";
    text += &format!("tcgen05.dealloc.cta_group::{blocks}.sync.aligned.b32 TN, {columns}; FREED: {}}}", meet(random));
    text
}

/// The end of a kernel whose statements have allotted columns: its block allots no more.
pub fn allots_no_more(random: &mut Random, place: &Place) -> String {
    let blocks = blocks(place);
    format!(
        "{OPEN}setp.ge.u32 TP, t, 32; @TP bra CLOSED; \
         tcgen05.relinquish_alloc_permit.cta_group::{blocks}.sync.aligned; CLOSED: {}}}",
        meet(random)
    )
}

pub fn list(count: usize) -> String {
    let all: Vec<String> = (0..count).map(|i| format!("E{i}")).collect();
    format!("{{{}}}", all.join(", "))
}

/// Fills the warp's lanes of columns, patterns of a float if it has a name.
pub fn filled(random: &mut Random, float: &str, columns: usize) -> String {
    let mut text = format!("{{ .reg .b32 E<{columns}>; ");
    let patterns = FLOATS.iter().find(|f| f.0 == float);
    for i in 0..columns {
        text += &format!("add.u32 E{i}, {}, {i}; ", register(random, 'r'));
        if let Some((_, mask, base)) = patterns {
            text += &format!("and.b32 E{i}, E{i}, {mask:#x}; or.b32 E{i}, E{i}, {base:#x}; ");
        }
    }
    let each = [8, 16, 32][random.below(3)].min(columns);
    for from in (0..columns).step_by(each) {
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
fn pieces(random: &mut Random, place: &Place) -> String {
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
            let at = format!("[TR+{from}]{apart}");
            text += &load(random, place, (shape, times, count), &at);
        }
        text += "} ";
    }
    text
}

/// A load of a shape, so many times, to so many registers; it may find the least or greatest of
/// each thread's, where the target and the shape have that. Any bits do, as none is rounded.
fn load(random: &mut Random, place: &Place, what: (&str, usize, usize), at: &str) -> String {
    let (shape, times, count) = what;
    let all = list(count);
    let finds = place.from(101) && shape.contains("32b") && times > 1 && random.below(2) == 0;
    let mut text = if finds {
        let which = ["min", "max"][random.below(2)];
        let of = match random.below(3) {
            0 => [".u32", ".s32"][random.below(2)].to_string(),
            _ => format!("{}{}.f32", ["", ".abs"][random.below(2)], ["", ".NaN"][random.below(2)]),
        };
        format!("tcgen05.ld.red.sync.aligned.{shape}.x{times}.{which}{of} {all}, TA, {at}; ")
    } else {
        format!("tcgen05.ld.sync.aligned.{shape}.x{times}.b32 {all}, {at}; ")
    };
    text += "tcgen05.wait::ld.sync.aligned; ";
    if finds {
        text += &taken(random, "TA");
    }
    (0..count).for_each(|i| text += &taken(random, &format!("E{i}")));
    text
}

/// Stores and loads many columns at once.
fn wide(random: &mut Random, place: &Place) -> String {
    let (shape, registers, columns, _) = SHAPES[random.below(SHAPES.len())];
    let times = (ALLOTTED / columns) >> [0, 1, 1, 2, 2, 3][random.below(6)];
    let count = registers * times;
    let apart = if shape == "16x32bx2" { ", 0" } else { "" };
    let mut text = format!("{{ .reg .b32 E<{count}>; ");
    (0..count).for_each(|i| text += &format!("add.u32 E{i}, {}, {i}; ", register(random, 'r')));
    let all = list(count);
    text +=
        &format!("tcgen05.st.sync.aligned.{shape}.x{times}.b32 [TR]{apart}, {all}; tcgen05.wait::st.sync.aligned; ");
    text += &load(random, place, (shape, times, count), &format!("[TR]{apart}"));
    text + "} "
}

/// Loads columns of the warp's lanes, at most so many at once.
pub fn loaded(random: &mut Random, columns: usize) -> String {
    let mut text = String::new();
    let count = columns.min(COLUMNS);
    for from in (0..columns).step_by(count) {
        text += &format!(
            "{{ .reg .b32 E<{count}>; tcgen05.ld.sync.aligned.32x32b.x{count}.b32 {}, [TR+{from}]; ",
            list(count)
        );
        text += "tcgen05.wait::ld.sync.aligned; ";
        for i in 0..count {
            text += &taken(random, &format!("E{i}"));
        }
        text += "} ";
    }
    text
}

/// Waits for what the unit was asked for.
pub fn finished(random: &mut Random, place: &Place) -> String {
    let commit = match random.below(2) {
        _ if blocks(place) == 2 => {
            "{ .reg .b16 TX; mov.u16 TX, 3; \
             tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [mb], TX; } ISSUED: "
        }
        0 => "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [mb]; ISSUED: ",
        _ => {
            "mov.u64 TM, mb; cvta.shared.u64 TM, TM; tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [TM]; ISSUED: "
        }
    };
    commit.to_string() + &waited(random, place, "mb", 0, false) + "tcgen05.fence::after_thread_sync; "
}

/// Begins what one thread asks of the unit, of a pair one of the first block.
pub fn issue(place: &Place) -> String {
    let meets = all_meet(place);
    let first = match blocks(place) {
        2 => "mov.u32 TC, %cluster_ctarank; setp.ne.u32 TQ, TC, 0; @TQ bra ISSUED; ",
        _ => "",
    };
    format!(
        "tcgen05.fence::before_thread_sync; {meets}tcgen05.fence::after_thread_sync; \
         {first}@TP bra ISSUED; elect.sync _|TQ, 0xffffffff; @!TQ bra ISSUED; "
    )
}

/// Copies from the tile, and shifts.
fn copies(random: &mut Random, place: &Place) -> String {
    let mut text = fill(random, "") + &issue(place);
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
            0 | 1 if words == 4 => ([".b8x16.b4x16_p64", ".b8x16.b6x16_p32"][random.below(2)], 4),
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
