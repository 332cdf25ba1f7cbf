//! Memory that several devices share (`multimem`), of which there is one here, in random programs.
//!
//! A thread uses its own line of the heap only, which other statements divide in other ways. From
//! the rows of the PTX tables it takes loads that reduce, stores and reductions; words of floats
//! are patterns whose sums are exact.

use super::families::{OPEN, Place, heap, meet, taken, words};
use super::matrix::{FLOATS, spelling};
use crate::random::Random;
use sassafras::tables::ptx::{FORMS, Form};

/// A statement of one to three operations.
pub fn statement(random: &mut Random, place: &Place) -> String {
    let mut text = OPEN.to_string() + &heap(place);
    for _ in 0..1 + random.below(3) {
        text += &one(random, place);
    }
    text + meet(random) + "}"
}

/// One operation, after its line is written; what it leaves there is read.
fn one(random: &mut Random, place: &Place) -> String {
    let here = |form: &&Form| {
        let on = form.on.is_none_or(|columns| columns >> place.target.column & 1 == 1);
        on && form.needs.ptx <= (9, 0) && form.op.name().starts_with("multimem.")
    };
    let rows: Vec<&'static Form> = FORMS.iter().filter(here).collect();
    let (name, types) = spelling(rows[random.below(rows.len())], random);
    let ty = types.last().map_or("b32", |ty| ty.name());
    let count = [8, 4, 2].into_iter().find(|n| name.contains(&format!(".v{n}"))).unwrap_or(1);
    let bytes = count * element(ty);
    let mut text = filled(random, ty) + "{ ";
    let held = match ty {
        "f16x2" | "bf16x2" | "e4m3x4" | "e5m2x4" => "b32",
        "f16" | "bf16" | "e4m3x2" | "e5m2x2" => "b16",
        _ => ty,
    };
    text += &format!(".reg .{held} TE<{count}>; ");
    let list: Vec<String> = (0..count).map(|i| format!("TE{i}")).collect();
    let list = if count == 1 { list[0].clone() } else { format!("{{{}}}", list.join(", ")) };
    let at = bytes * random.below(32 / bytes);
    let plain = |op: &str, at: usize| match held {
        "b16" => (0..count).map(|i| format!("{op}.global.b16 TE{i}, [TG+{}]; ", at + 2 * i)).collect::<String>(),
        _ => (0..count).map(|i| format!("{op}.global.{held} TE{i}, [TG+{}]; ", at + bytes / count * i)).collect(),
    };
    text += &match name.split('.').nth(1) {
        Some("ld_reduce") => {
            let stores: String =
                (0..count).map(|i| format!("st.global.{held} [TG+{}], TE{i}; ", 64 + bytes / count * i)).collect();
            format!("{name} {list}, [TG+{at}]; {stores}")
        }
        _ => plain("ld", at) + &format!("{name} [TG+{}], {list}; ", 64 + bytes * random.below(32 / bytes)),
    };
    text += "} ";
    text += &format!("ld.global.b32 TD, [TG+{}]; {}", 64 + 4 * random.below(8), taken(random, "TD"));
    text
}

/// Bytes of an element.
fn element(ty: &str) -> usize {
    match ty {
        "f16" | "bf16" | "e4m3x2" | "e5m2x2" => 2,
        "b64" | "u64" | "s64" | "f64" => 8,
        _ => 4,
    }
}

/// Writes 96 bytes of the line.
fn filled(random: &mut Random, ty: &str) -> String {
    let mut text = words(random, 4);
    let float = FLOATS.iter().find(|f| ty.starts_with(f.0));
    if let Some((name, mask, base)) = float {
        for i in 0..4 {
            let (mask, base) = match (*name, i % 2) {
                ("f64", 0) => (0, 0),
                ("f64", _) => (mask >> 32, base >> 32),
                _ => (*mask, *base),
            };
            text += &format!("and.b32 TW{i}, TW{i}, {mask:#x}; or.b32 TW{i}, TW{i}, {base:#x}; ");
        }
    }
    for at in (0..96).step_by(16) {
        text += &format!("st.global.v4.b32 [TG+{at}], {{TW0, TW1, TW2, TW3}}; ");
    }
    text
}
