//! `.nv_debug_info_reg_sass` and `.nv_debug_info_reg_type`: which physical register holds a
//! register of the PTX text, and the types of those registers.
//!
//! For each function its name with a NUL, the number of records, and the records. A record of the
//! first: which 32-bit part, the name with a NUL, class and number of the physical register, and
//! the byte offsets of the code for which it is there. A record of the second is one byte, in the
//! same order. The ranges are ours: a value is there from the instruction behind the one that
//! writes it on; ptxas counts from that one.

use super::{Facts, section};
use crate::cubin::{Cubin, KeptSection};
use crate::pipeline::values::Value;

/// Register classes, in the top byte of a location.
const PREDICATE: u32 = 2;
const GENERAL: u32 = 5;

/// Both sections.
pub fn sections(cubin: &Cubin, facts: &Facts) -> [KeptSection; 2] {
    let (mut places, mut types) = (Vec::new(), Vec::new());
    for function in &cubin.functions {
        let Some(found) = facts.functions.get(&function.name) else { continue };
        if found.values.is_empty() {
            continue;
        }
        for bytes in [&mut places, &mut types] {
            bytes.extend(function.name.bytes().chain([0]));
            bytes.extend((found.values.len() as u32).to_le_bytes());
        }
        types.extend(found.values.iter().map(|value| value.kind));
        found.values.iter().for_each(|value| record(value, &mut places));
    }
    let image = |bytes| crate::cubin::Image::new(bytes, 1);
    [section(".nv_debug_info_reg_sass", image(places)), section(".nv_debug_info_reg_type", image(types))]
}

fn record(value: &Value, out: &mut Vec<u8>) {
    let class = if value.predicate { PREDICATE } else { GENERAL };
    out.extend(value.word.to_le_bytes());
    out.extend(value.name.bytes().chain([0]));
    for number in [class << 24 | u32::from(value.number), value.range.0 as u32, value.range.1 as u32] {
        out.extend(number.to_le_bytes());
    }
}
