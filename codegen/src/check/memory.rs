//! Laws of the memory tables: every name resolves, words belong to their set, and no two rows are
//! duplicates.

use super::unique::distinct;
use crate::model::Model;
use crate::model::memory::{instruction, modifier, words};
use crate::report::Report;
use crate::source::At;

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    let l = &model.memory;
    let mut order = Vec::new();
    for row in &l.order {
        one_of(report, row.at, "access", &row.access, &["ld", "st", "atom", "fence", "map"]);
        one_of(report, row.at, "space", &row.space, &["device", "shared"]);
        text(model, report, row.at, "semantics", &row.semantics);
        words(&row.scope).into_iter().for_each(|scope| {
            if !scope.is_empty() {
                text(model, report, row.at, "scope", scope);
            }
            let key = format!("{} {} {scope} {} {}", row.access, row.semantics, row.space, row.feature);
            order.push((key, row.at));
        });
        if !row.feature.is_empty() && !model.targets.features.iter().any(|f| f.name == row.feature) {
            report.at("names", format!("no feature is called `{}`", row.feature), row.at);
        }
        modifiers(model, report, row.at, &row.mods);
        for word in row.before.split_whitespace().chain(row.after.split_whitespace()) {
            if instruction(&model.ori, word).is_none() {
                report.at("names", format!("`{word}` is not OP:KIND=VALUE:… of known names"), row.at);
            }
        }
    }
    distinct("memory order", order.into_iter(), report);
    for row in &l.cache {
        one_of(report, row.at, "access", &row.access, &["ld", "ld.nc", "st", "cp.async"]);
        modifiers(model, report, row.at, &row.mods);
    }
    distinct("cache control", l.cache.iter().map(|r| (format!("{} {}", r.access, r.text), r.at)), report);
    let mut atomics = Vec::new();
    for row in &l.atomic {
        one_of(report, row.at, "space", &row.space, &["global", "shared", "generic"]);
        one_of(report, row.at, "how", &row.how, &["unit", "loop", "half", "split"]);
        if !row.size.is_empty() && modifier(&model.ori, &format!("size={}", row.size)).is_none() {
            report.at("names", format!("modifier `size` has no value `{}`", row.size), row.at);
        }
        for op in words(&row.op) {
            text(model, report, row.at, "atom_op", op);
            for ty in words(&row.types) {
                if !model.ptx.types.iter().any(|t| t.name == ty) {
                    report.at("names", format!("no PTX type is called `{ty}`"), row.at);
                }
                let kept = if row.keeps { " with noftz" } else { "" };
                atomics.push((format!("{op}.{ty}.v{} {}{kept}", row.vector, row.space), row.at));
            }
        }
    }
    distinct("atomic operation", atomics.into_iter(), report);
    let froms = [
        "s2r",
        "cs2r32",
        "cs2r64",
        "word",
        "pair",
        "cga",
        "less",
        "most",
        "most_cga",
        "value",
        "flag",
        "nibble",
        "quotient",
        "remainder",
    ];
    for row in &l.special {
        one_of(report, row.at, "from", &row.from, &froms);
        crate::model::encoding::generations(&row.on, &model.targets, |what| report.at("names", what, row.at));
        if !model.ptx.specials.iter().any(|s| s.name == row.name) {
            report.at("names", format!("no special register is called `{}`", row.name), row.at);
        }
        if !row.sr.is_empty() && !model.encoding.specials.iter().any(|(s, ..)| s.text == row.sr) {
            report.at("names", format!("no numbered register is called `{}`", row.sr), row.at);
        }
    }
    let specials = l.special.iter().map(|r| (format!("{} on {}", r.name, r.on), r.at));
    distinct("special register", specials, report);
}

fn one_of(report: &mut Report, at: At, column: &str, value: &str, set: &[&str]) {
    if !set.contains(&value) {
        report.at("lowering", format!("{column} `{value}` is not one of {}", set.join(", ")), at);
    }
}

fn text(model: &Model, report: &mut Report, at: At, group: &str, text: &str) {
    let group_of = model.ptx.groups.iter().find(|g| g.row.group == group);
    if !group_of.is_some_and(|g| g.texts.iter().any(|t| t.text == text)) {
        report.at("names", format!("group `{group}` has no text `{text}`"), at);
    }
}

fn modifiers(model: &Model, report: &mut Report, at: At, words: &str) {
    for word in words.split_whitespace().filter(|word| modifier(&model.ori, word).is_none()) {
        report.at("names", format!("`{word}` is not KIND=VALUE of known names"), at);
    }
}
