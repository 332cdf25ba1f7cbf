//! Products of tensor memory (`tcgen05.mma`) in random programs: of one block or a pair, dense or
//! sparse, with scales, and those that keep the second factor.
//!
//! Elements, scales and sums are such that all sums are exact. A product goes once or twice into
//! the sums, from column 0 on; what else it takes from tensor memory lies behind them.

use super::descriptors::{descriptor, factor, fill};
use super::families::Place;
use super::make::register;
use super::matrix::FLOATS;
use super::tensor_memory::{blocks, filled, finished, issue, list, loaded};
use crate::random::Random;
use sassafras::tables::Feature;

/// Columns that are allotted, and the first ones of a factor, of the numbers of the elements of a
/// sparse one, and of the scales of both.
pub const ALLOTTED: usize = 128;
const FACTOR: usize = 64;
const CHOSEN: usize = 72;
const SCALES: [usize; 2] = [80, 88];

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
/// Floats of at most 8 bits, and their codes.
const SMALL: [(&str, u32); 5] = [("e4m3", 0), ("e5m2", 1), ("e2m3", 3), ("e3m2", 4), ("e2m1", 5)];
/// Products with scales: kind, how the elements under one of them are said, and how many they are
/// of a dense one. The first half have rows of their own, and are drawn twice as often.
const SCALED: [(&str, &str, usize); 10] = [
    ("mxf8f6f4", ".scale_vec::1X", 32),
    ("mxf4", ".scale_vec::2X", 32),
    ("mxf4nvf4", ".scale_vec::2X", 32),
    ("mxf4nvf4", ".scale_vec::4X", 16),
    ("mxf4nvf4", ".block16", 16),
    ("mxf8f6f4", "", 32),
    ("mxf8f6f4", ".block32", 32),
    ("mxf4", "", 32),
    ("mxf4", ".block32", 32),
    ("mxf4nvf4", ".block32", 32),
];
/// Numbers of the elements of a sparse factor, the first four for elements of 32 bits too.
const NUMBERS: [u32; 6] = [0x4444_4444, 0xeeee_eeee, 0x4e4e_e4e4, 0xee44_44ee, 0x6c98_d4e6, 0x8de9_46cd];

/// What kind of product it is.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Plain,
    Scaled,
    /// The unit keeps the second factor.
    Kept,
}

/// A product.
struct Product {
    form: Form,
    kind: String,
    elements: [&'static str; 2],
    /// Bits of an element, the code of the sums, and the descriptor but for how factors lie.
    bits: usize,
    sum: u32,
    of: u32,
    rows: usize,
    columns: usize,
    sparse: bool,
    in_tensor: bool,
    /// Where the words of scales are made from: what is added to each byte, and the bits that vary.
    scales: (u32, u32),
}

impl Product {
    fn one(random: &mut Random, place: &Place) -> Product {
        let blocks = blocks(place);
        // The ones with scales have most rows.
        match random.below(5) {
            0 | 1 => scaled(random, blocks),
            2 if blocks == 1 => plain(random, place, Form::Kept),
            _ => plain(random, place, Form::Plain),
        }
    }

    /// Columns that each lane has of the sums.
    fn width(&self, blocks: usize) -> usize {
        match (self.form, self.rows / blocks) {
            (Form::Kept, rows) => self.columns * rows / 128,
            (_, 64) if blocks == 2 => self.columns / 2,
            _ => self.columns,
        }
    }

    /// The type of the elements that the tile is filled with.
    fn pattern(&self) -> &'static str {
        let known = |name: &&&str| FLOATS.iter().any(|float| float.0 == **name);
        self.elements.iter().find(known).copied().unwrap_or("")
    }
}

/// The shape of a product, whether it is sparse, and whether its first factor is in tensor memory.
fn shape(random: &mut Random, blocks: usize, form: Form) -> (usize, usize, bool, bool) {
    let (rows, columns) = match (form, blocks) {
        (Form::Kept, _) => [(32, 64), (32, 128), (64, 64), (128, 64)][random.below(4)],
        (_, 2) => [(256, 16), (256, 32), (128, 32)][random.below(3)],
        _ => ([64, 128, 128][random.below(3)], 16),
    };
    let whole = rows / blocks == 128;
    (rows, columns, whole && random.below(3) == 0, whole && random.below(3) == 0)
}

fn plain(random: &mut Random, place: &Place, form: Form) -> Product {
    let integers = place.target.has(Feature::TensorMemoryIntegers);
    let (kind, element, bits, code, sum) = TYPES[random.below(TYPES.len() - usize::from(!integers))];
    let (rows, columns, sparse, in_tensor) = shape(random, blocks(place), form);
    let (mut elements, mut codes) = ([element; 2], [code; 2]);
    for i in 0..2 {
        if kind == "i8" {
            codes[i] = random.below(2) as u32;
        } else if kind == "f8f6f4" && sum == 1 && random.below(2) == 0 {
            (elements[i], codes[i]) = SMALL[random.below(SMALL.len())];
        }
    }
    let signs = if kind == "i8" { 0 } else { random.below(4) as u32 };
    let clamp = u32::from(kind == "i8") * random.below(2) as u32;
    let of = u32::from(sparse) << 2 | clamp << 3 | sum << 4 | codes[0] << 7 | codes[1] << 10 | signs << 13;
    let of = of | (columns as u32 / 8) << 17 | (rows as u32 / 16) << 24;
    let kind = kind.to_string();
    Product { form, kind, elements, bits, sum, of, rows, columns, sparse, in_tensor, scales: (0, 0) }
}

fn scaled(random: &mut Random, blocks: usize) -> Product {
    let (kind, said, each) = SCALED[random.below(SCALED.len() + SCALED.len() / 2) % SCALED.len()];
    let bytes = kind == "mxf8f6f4";
    let mut one = || if bytes { SMALL[random.below(SMALL.len())] } else { ("", 1) };
    let (a, b) = (one(), one());
    let power = each == 32 || random.below(2) == 0;
    let mut first = || match (bytes, each) {
        (true, _) => random.below(4) as u32,
        (_, 32) => 2 * random.below(2) as u32,
        _ => 0,
    };
    let ids = [first(), first()];
    let (signs, columns) = (random.below(4) as u32, if blocks == 2 { [16, 32] } else { [8, 16] }[random.below(2)]);
    let sparse = random.below(2) == 0;
    let of = u32::from(sparse) << 2 | ids[1] << 4 | a.1 << 7 | b.1 << 10 | signs << 13 | (columns as u32 / 8) << 17;
    let of = of | u32::from(power) << 23 | (blocks as u32) << 27 | ids[0] << 29;
    Product {
        form: Form::Scaled,
        kind: format!("{kind}.block_scale{said}"),
        elements: [a.0, b.0],
        bits: if bytes { 8 } else { 4 },
        sum: 1,
        of,
        rows: 128 * blocks,
        columns,
        sparse,
        in_tensor: random.below(2) == 0,
        scales: if power { (0x7e7e_7e7e, 0x0101_0101) } else { (0x3838_3838, 0x0404_0404) },
    }
}

/// Words in columns of the warp's lanes.
fn stored(words: &[String], column: usize) -> String {
    let mut text = format!("{{ .reg .b32 E<{}>; ", words.len());
    words.iter().enumerate().for_each(|(i, word)| text += &word.replace('$', &format!("E{i}")));
    let (count, all) = (words.len(), list(words.len()));
    text + &format!(
        "tcgen05.st.sync.aligned.32x32b.x{count}.b32 [TR+{column}], {all}; tcgen05.wait::st.sync.aligned; }} "
    )
}

/// What a product takes from tensor memory beside its sums.
fn beside(random: &mut Random, p: &Product) -> String {
    let mut text = String::new();
    if p.in_tensor {
        let float = FLOATS.iter().find(|f| f.0 == p.elements[0]);
        let word = |_| {
            let masked = float
                .map_or(String::new(), |(_, mask, base)| format!("and.b32 $, $, {mask:#x}; or.b32 $, $, {base:#x}; "));
            format!("mov.b32 $, {}; {masked}", register(random, 'r'))
        };
        text += &stored(&(0..8).map(word).collect::<Vec<_>>(), FACTOR);
    }
    if p.sparse {
        let all = if p.bits == 32 { &NUMBERS[..4] } else { &NUMBERS[..] };
        let mut word = |_| {
            let (one, two) = (all[random.below(all.len())], all[random.below(all.len())]);
            let r = register(random, 'r');
            format!("and.b32 $, {r}, 4; setp.eq.u32 TQ, $, 0; selp.b32 $, {one:#x}, {two:#x}, TQ; ")
        };
        text += &stored(&[word(0), word(1)], CHOSEN);
    }
    if p.form == Form::Scaled {
        // The lanes of all warps have the same scales.
        for at in SCALES {
            let mut word = |_| {
                let (by, from) = (random.below(1 << 16) * 2 + 1, random.below(1 << 16));
                let (base, mask) = p.scales;
                format!(
                    "mov.u32 $, %laneid; mad.lo.u32 $, $, {by}, {from}; mad.lo.u32 $, $, {by}, {from}; \
                     and.b32 $, $, {mask:#x}; add.u32 $, $, {base:#x}; "
                )
            };
            text += &stored(&[word(0), word(1), word(2), word(3)], at);
        }
    }
    text
}

/// How the unit keeps a factor for the products of a statement, whose number is `n`.
fn collector(p: &Product, how: usize, n: usize) -> String {
    let buffer = if p.form == Form::Kept { ["b0", "b1", "b2", "b3"][how / 4 % 4] } else { "a" };
    let what = match (how % 4, n) {
        (1, 0) => "fill",
        (1, _) => ["use", "lastuse"][how / 16 % 2],
        (2, _) => "discard",
        _ => return String::new(),
    };
    format!(".collector::{buffer}::{what}")
}

/// A product of factors in the tile, or of one in tensor memory.
pub fn product(random: &mut Random, place: &Place) -> String {
    let (p, blocks) = (Product::one(random, place), blocks(place));
    let depth = 256 / p.bits;
    let turning = p.bits == 16;
    let width = p.width(blocks);
    let mut text = filled(random, ["f16", "f32", ""][p.sum as usize], width) + &beside(random, &p);
    text += &fill(random, p.pattern());
    text += "mov.u32 TD, %nctaid.y; ";
    text += &issue(place);
    let first = factor(random, place, (p.rows / blocks, depth), p.bits, turning && !p.in_tensor);
    let deep = if p.sparse { 2 * depth } else { depth };
    let second = factor(random, place, (p.columns / blocks, deep), p.bits, turning);
    text += &(descriptor(&first, "TG", 1 << 46) + &descriptor(&second, "TH", 1 << 46));
    let of = p.of | u32::from(first.turned && !p.in_tensor) << 15 | u32::from(second.turned) << 16;
    text += &format!("mov.b32 TC, {of:#x}; setp.ne.u32 TQ, TD, 0; add.u32 TD, TN, {FACTOR}; ");
    let factor = if p.in_tensor { "[TD]" } else { "TG" };
    let chosen = if p.sparse { format!(" [TN+{CHOSEN}],") } else { String::new() };
    let places = match p.form {
        Form::Scaled => format!(" [TN+{}], [TN+{}],", SCALES[0], SCALES[1]),
        _ => String::new(),
    };
    let name = format!("{}{}", if p.form == Form::Kept { ".ws" } else { "" }, if p.sparse { ".sp" } else { "" });
    let how = random.below(32);
    let halved =
        p.form == Form::Plain && ["f16", "tf32"].contains(&p.kind.as_str()) && [100, 103].contains(&place.target.sm);
    for n in 0..1 + random.below(2) {
        let added = if n == 0 { ["TQ", "1", "0"][random.below(3)] } else { "1" };
        let kept = match random.below(4) {
            0 if p.form == Form::Plain => {
                let count = 4 * blocks as u32;
                let masks: Vec<String> = (0..count).map(|i| format!("TW{i}")).collect();
                (0..count).for_each(|i| text += &format!("mov.b32 TW{i}, {:#x}; ", 0xf0ff_000f_u32.rotate_left(7 * i)));
                format!(" {{{}}},", masks.join(", "))
            }
            _ => String::new(),
        };
        // The old sums are halved so often.
        let less = if halved && random.below(4) == 0 { [", 1", ", 2"][random.below(2)] } else { "" };
        text += &format!(
            "tcgen05.mma{name}.cta_group::{blocks}.kind::{}{} [TN], {factor}, TH,{chosen} TC,{places}{kept} {added}{less}; ",
            p.kind,
            collector(&p, how, n)
        );
    }
    text + &finished(random, place) + &loaded(random, width)
}
