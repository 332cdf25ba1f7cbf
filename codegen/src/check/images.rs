//! Laws of the driver's functions for textures and surfaces: no two of a name, or of a purpose, a
//! geometry, a type and arguments; no place is taken twice; words of the stack are aligned and
//! without gaps; the bits of a field are in its mask; fields of a word are the same or apart; no
//! value stands twice.

use crate::model::Model;
use crate::model::images::{Field, Function, Place};
use crate::report::Report;
use std::collections::BTreeSet;

/// What a function takes and gives back, wherever it is.
fn taken(function: &Function) -> BTreeSet<usize> {
    function.args.iter().chain(&function.results).map(|(argument, _)| *argument).collect()
}

/// Reports the rows that violate these laws.
pub fn check(model: &Model, report: &mut Report) {
    let images = &model.images;
    for (i, function) in images.functions.iter().enumerate() {
        let purpose = |f: &Function| (f.what, f.geometry, f.element, taken(f));
        let same = |f: &Function| f.name == function.name || purpose(f) == purpose(function);
        if images.functions[..i].iter().any(same) {
            report.at("images", format!("`{}` is the second function for this", function.name), function.at);
        }
        for list in [&function.args, &function.results] {
            let twice = |n: usize| list[..n].iter().any(|(_, place)| *place == list[n].1);
            if (0..list.len()).any(twice) {
                report.at("images", format!("a place is taken twice in a call of `{}`", function.name), function.at);
            }
            let mut stack = list.iter().filter_map(|(_, place)| match place {
                Place::Stack(at) => Some(u32::from(*at)),
                Place::Register(_) => None,
            });
            if !(0..).step_by(4).zip(&mut stack).all(|(expected, at)| expected == at) {
                report.at("images", format!("the stack has a gap in a call of `{}`", function.name), function.at);
            }
        }
    }
    for (i, field) in images.fields.iter().enumerate() {
        if field.bits & !field.mask != 0 {
            report.at("images", format!("{:?} has bits outside of its mask", field.part), field.at);
        }
        let clashes =
            |f: &Field| f.of == field.of && f.mask & field.mask != 0 && (f.mask != field.mask || f.bits == field.bits);
        if images.fields[..i].iter().any(|f| clashes(f) || (f.of, f.part) == (field.of, field.part)) {
            report.at("images", format!("{:?} clashes with an earlier row", field.part), field.at);
        }
    }
}
