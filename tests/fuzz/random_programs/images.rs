//! Textures and surfaces in random programs.
//!
//! The images are those of `arguments.rs`. A read of a texture takes its coordinates from a
//! register, in range and out of it. Of a surface each thread has its own texels, from 16 bytes on;
//! of the one with sums, each word has one commutative operation, and no thread loads it.

use super::arguments::READ;
use super::families::{Place, taken};
use super::make::{guard, register};
use crate::random::Random;

/// Geometry, coordinates, kind of the results, whether numbers of texels name them, and whether
/// four texels may be asked for; by the number of an image.
const TEXTURES: [(&str, usize, &str, bool, bool); READ] = [
    ("1d", 1, "s32", true, false),
    ("1d", 1, "f32", false, false),
    ("2d", 2, "f32", false, true),
    ("3d", 3, "f32", false, false),
    ("a2d", 2, "u32", true, true),
    ("2d", 2, "f32", false, true),
    ("cube", 3, "u32", false, false),
    ("2d", 2, "u32", true, true),
    ("a1d", 1, "s32", true, false),
];

const OPEN: &str = "{ .reg .b32 TA, TB, TC, TD, TR, TW<5>; .reg .b16 TV<5>; .reg .b32 TY<4>; .reg .f32 TX<4>; .reg .b64 TG, TM; .reg .pred TQ;\n";

/// Several reads, or what is known of an image.
pub fn read(random: &mut Random, place: &Place) -> String {
    let mut text = OPEN.to_string();
    for _ in 0..1 + random.below(3) {
        text += &match random.below(8) {
            0 => asked(random),
            _ => one(random, place),
        };
    }
    text + "}"
}

/// A handle in `TG`: a parameter, or one of two by a predicate.
fn handle(random: &mut Random, one: usize, two: usize) -> String {
    let first = format!("ld.param.u64 TG, [image{one}]; ");
    if one == two {
        return first;
    }
    format!("{first}ld.param.u64 TM, [image{two}]; selp.b64 TG, TG, TM, {}; ", register(random, 'p'))
}

/// A query.
fn asked(random: &mut Random) -> String {
    let number = random.below(READ + 4);
    // Depth and layers only of images that have them.
    let what = ["width", "height", "channel_data_type", "channel_order"][random.below(4)];
    let op = if number < READ { "txq" } else { "suq" };
    let what = if number < READ && random.below(3) == 0 {
        ["normalized_coords", "filter_mode", "addr_mode_0", "num_mipmap_levels"][random.below(4)]
    } else {
        what
    };
    format!("ld.param.u64 TG, [image{number}]; {op}.{what}.b32 TD, [TG]; {}", taken(random, "TD"))
}

/// Coordinates: numbers of texels in `TW`, or floats in `TX`.
fn coordinates(random: &mut Random, integer: bool, count: usize) -> String {
    let mut text = String::new();
    for i in 0..count {
        let r = register(random, 'r');
        text += &format!("and.b32 TA, {r}, 15; add.s32 TW{i}, TA, -3; ");
        if !integer {
            let scale = ["0f3E000000", "0f3F200000", "0f3F800000", "0fBE800000"][random.below(4)];
            text += &format!("cvt.rn.f32.s32 TX{i}, TW{i}; fma.rn.f32 TX{i}, TX{i}, {scale}, 0f3D800000; ");
        }
    }
    text
}

/// A read of a texture.
fn one(random: &mut Random, place: &Place) -> String {
    let number = random.below(READ);
    let (geometry, count, kind, numbered, gathered) = TEXTURES[number];
    let other = if [2, 5].contains(&number) { [2, 5][random.below(2)] } else { number };
    let integer = numbered && random.below(2) == 0;
    let mut text = handle(random, number, other) + &coordinates(random, integer, count);
    let name = if integer { "TW" } else { "TX" };
    let mut list: Vec<String> = (0..count).map(|i| format!("{name}{i}")).collect();
    // The fourth place of three coordinates is not read.
    if list.len() == 3 {
        list.push(list[2].clone());
    }
    if geometry.starts_with('a') {
        text += &format!("and.b32 TB, {}, 7; ", register(random, 'r'));
        list.insert(0, "TB".to_string());
        if count == 2 {
            list.push(list[2].clone());
        }
    }
    let at = format!("[TG, {{{}}}]", list.join(", "));
    let coordinate = if integer { "s32" } else { "f32" };
    let offsets = match (count, geometry) {
        (2, "2d") if random.below(4) == 0 => {
            format!(", {{{}, {}}}", random.below(16) as i32 - 8, random.below(16) as i32 - 8)
        }
        _ => String::new(),
    };
    if gathered && !integer && random.below(3) == 0 {
        let part = ["r", "g", "b", "a"][random.below(4)];
        text += &format!("tld4.{part}.{geometry}.v4.{kind}.f32 {{TY0, TY1, TY2, TY3}}, {at}{offsets}; ");
        return text + &results(random, kind, "TY");
    }
    let (op, level) = level(random, place, number, integer, geometry);
    text += &level.0;
    let level = level.1;
    match (kind, random.below(4)) {
        ("f32", 0) => {
            text += &format!("{op}.{geometry}.v4.f16.{coordinate} {{TV0, TV1, TV2, TV3}}, {at}{level}{offsets}; ");
            text += "mov.b32 TD, {TV0, TV1}; mov.b32 TC, {TV2, TV3}; ";
            text + &taken(random, "TD") + &taken(random, "TC")
        }
        ("f32", 1) => {
            text += &format!("{op}.{geometry}.v2.f16x2.{coordinate} {{TC, TD}}, {at}{level}{offsets}; ");
            text + &taken(random, "TD") + &taken(random, "TC")
        }
        _ => {
            let guarded = if random.below(6) == 0 {
                text += "mov.b32 TY0, 0; mov.b32 TY1, 1; mov.b32 TY2, 2; mov.b32 TY3, 3; ";
                format!("@{} ", guard(random))
            } else {
                String::new()
            };
            text += &format!(
                "{guarded}{op}.{geometry}.v4.{kind}.{coordinate} {{TY0, TY1, TY2, TY3}}, {at}{level}{offsets}; "
            );
            text + &results(random, kind, "TY")
        }
    }
}

/// The operation with its level: the text before, the operand.
fn level(
    random: &mut Random,
    _place: &Place,
    number: usize,
    integer: bool,
    geometry: &str,
) -> (&'static str, (String, String)) {
    match random.below(5) {
        0 => ("tex.base", Default::default()),
        1 if integer => ("tex.level", ("mov.b32 TC, 0; ".to_string(), ", TC".to_string())),
        1 if number == 5 => {
            let r = register(random, 'r');
            let front = format!("and.b32 TC, {r}, 3; cvt.rn.f32.u32 TX3, TC; ");
            ("tex.level", (front, ", TX3".to_string()))
        }
        1 => ("tex.level", (String::new(), ", 0f00000000".to_string())),
        2 if number == 5 && geometry == "2d" => {
            let front = "mov.f32 TX3, 0f3E800000; mov.f32 TX2, 0f00000000; ".to_string();
            ("tex.grad", (front, ", {TX3, TX2}, {TX2, TX3}".to_string()))
        }
        _ => ("tex", Default::default()),
    }
}

/// Takes one or two of the four results.
fn results(random: &mut Random, kind: &str, name: &str) -> String {
    let first = random.below(4);
    let mut text = format!("mov.b32 TD, {name}{first}; {}", taken(random, "TD"));
    if kind == "f32" && random.below(2) == 0 {
        text += &format!("mov.b32 TD, {name}{}; {}", random.below(4), taken(random, "TD"));
    }
    text
}

/// The thread's number in the grid in `TR`.
fn number(place: &Place) -> String {
    match place.cluster {
        0 => "mov.u32 TR, t; ".to_string(),
        _ => format!("mov.u32 TR, %ctaid.x; mad.lo.u32 TR, TR, {}, t; ", place.threads),
    }
}

/// Stores and loads of the thread's own texels, or sums of all threads.
pub fn surface(random: &mut Random, place: &Place) -> String {
    let text = OPEN.to_string() + &number(place);
    if random.below(4) == 0 {
        return text + &summed(random) + "}";
    }
    let (image, geometry, bytes) = [(9, "1d", 16), (10, "2d", 16), (11, "a1d", 8)][random.below(3)];
    let mut text = text
        + &match image {
            9 => "shl.b32 TA, TR, 4; ".to_string(),
            10 => "and.b32 TA, TR, 7; shl.b32 TA, TA, 4; shr.u32 TB, TR, 3; ".to_string(),
            _ => "and.b32 TA, TR, 63; shl.b32 TA, TA, 3; shr.u32 TB, TR, 6; ".to_string(),
        };
    text += &format!("ld.param.u64 TG, [image{image}]; ");
    let at = |offset: &str| match geometry {
        "1d" => format!("[TG, {{{offset}}}]"),
        "2d" => format!("[TG, {{{offset}, TB}}]"),
        _ => format!("[TG, {{TB, {offset}}}]"),
    };
    for _ in 0..1 + random.below(3) {
        let (ty, width, kind) =
            [("b8", 1, "TV"), ("b16", 2, "TV"), ("b32", 4, "TW"), ("b64", 8, "TM")][random.below(4)];
        let count = [1, 2, 4][random.below(if ty == "b64" { 2 } else { 3 })];
        let count = if width * count > bytes { 1 } else { count };
        let part = width * count * random.below(bytes / (width * count));
        let beyond = random.below(6) == 0;
        let mode = if beyond { "zero" } else { ["trap", "clamp", "zero"][random.below(3)] };
        text += &format!("add.s32 TC, TA, {}; ", if beyond { 1 << 16 } else { part });
        text += "{ .reg .b64 TN<2>; ";
        let names: Vec<String> =
            (0..count).map(|i| if kind == "TM" { format!("TN{i}") } else { format!("{kind}{i}") }).collect();
        let vector = if count == 1 { String::new() } else { format!(".v{count}") };
        let list = if count == 1 { names[0].clone() } else { format!("{{{}}}", names.join(", ")) };
        if random.below(2) == 0 {
            for name in &names {
                text += &match kind {
                    "TV" => format!("mov.b16 {name}, {}; ", register(random, 'h')),
                    "TW" => format!("mov.b32 {name}, {}; ", register(random, 'r')),
                    _ => format!("mov.b64 {name}, {}; ", register(random, 'd')),
                };
            }
            let cache = ["", ".wb", ".cg", ".cs", ".wt"][random.below(5)];
            text += &format!("sust.b.{geometry}{cache}{vector}.{ty}.{mode} {}, {list}; }} ", at("TC"));
        } else {
            let cache = ["", ".ca", ".cg", ".cs", ".cv"][random.below(5)];
            text += &format!("suld.b.{geometry}{cache}{vector}.{ty}.{mode} {list}, {}; ", at("TC"));
            text += &match kind {
                "TV" => format!("cvt.u32.u16 TD, {}; ", names[count - 1]),
                "TW" => format!("mov.b32 TD, {}; ", names[count - 1]),
                _ => format!("mov.b64 {{TD, TC}}, {}; ", names[0]),
            };
            text += &(taken(random, "TD") + "} ");
        }
    }
    text + "}"
}

/// Sums of all threads, each word with its own operation.
fn summed(random: &mut Random) -> String {
    let (op, ty, word) = [
        ("add", "u32", 0),
        ("add", "s32", 1),
        ("min", "s32", 2),
        ("max", "u32", 3),
        ("and", "b32", 4),
        ("or", "b32", 5),
        ("min", "u32", 6),
        ("max", "s32", 7),
        ("add", "u64", 8),
        ("min", "u64", 10),
        ("max", "s64", 12),
    ][random.below(11)];
    let value = if ty.ends_with("64") { register(random, 'd') } else { register(random, 'r') };
    let mode = ["trap", "clamp", "zero"][random.below(3)];
    format!("ld.param.u64 TG, [image12]; mov.u32 TA, {}; sured.b.{op}.1d.{ty}.{mode} [TG, {{TA}}], {value}; ", 4 * word)
}
