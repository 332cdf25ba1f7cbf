//! Emits `helpers.rs`: every helper, its family and category, and the map from names to indices.
//!
//! The rows are written as text rather than tokens, because a thousand bodies are a thousand
//! literals.

use super::phf_map;
use crate::model::Model;
use crate::model::helper_text::Slot;
use crate::rows::helpers::Body;
use quote::quote;
use std::fmt::Write;

/// The text of the generated file.
pub fn emit(model: &Model) -> String {
    let all = &model.helpers;
    let mut text = String::new();
    let count = all.categories.len();
    let _ = writeln!(text, "/// In the order of ids.\npub static CATEGORIES: [Category; {count}] = [");
    for c in &all.categories {
        let (first, count) = (c.first, c.count);
        let _ = writeln!(
            text,
            "    Category {{ name: {:?}, tier: Tier::{:?}, first: {first}, count: {count} }},",
            c.category, c.tier
        );
    }
    let count = all.families.len();
    let _ = writeln!(text, "];\n/// In the order of the tables.\npub static FAMILIES: [Family; {count}] = [");
    for (f, columns) in all.families.iter().zip(&all.columns) {
        let planned = match &f.body {
            Body::Ptx(_) => None,
            Body::Planned(why) => Some(why),
        };
        let _ = writeln!(
            text,
            "    Family {{ names: {:?}, convention: {:?}, columns: {columns:#x}, planned: {planned:?}, slow_path: {}, name: Status::{:?}, proto: Status::{:?}, src: {:?} }},",
            f.names, f.convention, f.slow_path, f.name, f.proto, f.src
        );
    }
    let count = all.helpers.len();
    let _ = writeln!(text, "];\n/// In the order of ids, from 1 on.\npub static HELPERS: [Helper; {count}] = [");
    for h in &all.helpers {
        let (category, family) = (h.category, h.family);
        let _ = writeln!(
            text,
            "    Helper {{ id: {}, name: {:?}, category: {category}, family: {family}, op: {:?}, computes: {:?}, returns: {}, params: {}, head: {:?}, body: {:?} }},",
            h.id,
            h.name,
            h.op,
            h.computes,
            slots(&h.returns),
            slots(&h.params),
            h.head,
            h.body
        );
    }
    let _ = writeln!(text, "];");
    let entries: Vec<_> = all.helpers.iter().enumerate().map(|(i, h)| (h.name.clone(), format!("{i}u16"))).collect();
    text + &super::pretty(phf_map("BY_NAME", "Place in [`HELPERS`] by name.", quote!(u16), &entries))
}

fn slots(slots: &[Slot]) -> String {
    let one = |s: &Slot| {
        let Slot { ty, name, count, memory, align } = s;
        format!("Slot {{ ty: {ty:?}, name: {name:?}, count: {count}, memory: {memory}, align: {align} }}")
    };
    format!("&[{}]", slots.iter().map(one).collect::<Vec<_>>().join(", "))
}
