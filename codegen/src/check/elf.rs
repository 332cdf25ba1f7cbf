//! Laws of the ELF tables: names resolve, words belong to their set, ids are distinct, hexadecimal
//! texts parse, and every SM number with an encoder has its ELF facts.

use super::unique::distinct;
use crate::model::Model;
use crate::model::elf::{Elf, LAYOUTS, RELOCATION_ROLES, bit_ranges, constants, hex};
use crate::report::Report;
use crate::source::At;

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    let elf = &model.elf;
    distinct("layout", elf.layouts.iter().map(|r| (r.name.clone(), r.at)), report);
    distinct("SM number of an ELF row", elf.targets.iter().map(|r| (r.sm.to_string(), r.at)), report);
    distinct("attribute", elf.attributes.iter().map(|r| (format!("{:#04x}", r.id), r.at)), report);
    distinct("attribute name", elf.attributes.iter().map(|r| (r.name.clone(), r.at)), report);
    distinct("compat attribute", elf.compat.iter().map(|r| (r.id.to_string(), r.at)), report);
    sections(elf, report);
    targets(elf, report);
    attributes(elf, report);
    relocations(elf, report);
    for target in model.targets.built().map(|(_, target)| target) {
        if !elf.targets.iter().any(|row| row.sm == target.sm) {
            let text = format!("{}: no row of elf/targets.ron has sm {}", target.name, target.sm);
            report.at("elf", text, target.at);
        }
    }
}

fn word(report: &mut Report, at: At, column: &str, value: &str, set: &[&str]) {
    if !set.contains(&value) {
        report.at("elf", format!("{column} `{value}` is not one of {}", set.join(", ")), at);
    }
}

fn sections(elf: &Elf, report: &mut Report) {
    for (name, rows) in [("rel", elf.sections.iter().map(|r| (r.rel, r)).collect::<Vec<_>>()), {
        ("rela", elf.sections.iter().map(|r| (r.rela, r)).collect())
    }] {
        let there = rows.iter().filter(|(order, _)| order.is_some());
        distinct(&format!("section of layout {name}"), there.map(|(_, r)| (r.name.clone(), r.at)), report);
    }
    let known = |name: &str| elf.sections.iter().any(|r| r.name == name);
    for row in &elf.sections {
        word(report, row.at, "scope", &row.scope, &["module", "function"]);
        word(report, row.at, "symbol", &row.symbol, &["", "yes"]);
        if !row.link.is_empty() && !known(&row.link) {
            report.at("names", format!("{}: no section is called `{}`", row.name, row.link), row.at);
        }
        if !["", "text", "function", "symbols"].contains(&row.info.as_str()) && !known(&row.info) {
            report.at("names", format!("{}: no section is called `{}`", row.name, row.info), row.at);
        }
        if hex(&row.bytes).is_none() {
            report.at("elf", format!("{}: bytes `{}` are not hexadecimal", row.name, row.bytes), row.at);
        }
    }
}

fn targets(elf: &Elf, report: &mut Report) {
    for name in LAYOUTS.iter().filter(|name| !elf.layouts.iter().any(|row| row.name == **name)) {
        report.plain(format!("elf/layouts.ron: there is no row `{name}`"));
    }
    for row in &elf.layouts {
        word(report, row.at, "name", &row.name, &LAYOUTS);
        word(report, row.at, "relocs", &row.relocs, &["split", "rela"]);
        word(report, row.at, "headers", &row.headers, &["first", "last"]);
        word(report, row.at, "text_info", &row.text_info, &["symbol", "symbol+registers"]);
    }
    for row in &elf.targets {
        if !elf.layouts.iter().any(|l| l.name == row.layout) {
            report.at("names", format!("sm {}: no layout is called `{}`", row.sm, row.layout), row.at);
        }
        for item in constants(&row.constants) {
            match item {
                Err(bad) => report.at("elf", format!("sm {}: `{bad}` is not NAME or NAME=0xVALUE", row.sm), row.at),
                Ok((name, value)) => match elf.attributes.iter().find(|a| a.name == name) {
                    None => report.at("names", format!("sm {}: no attribute is called `{name}`", row.sm), row.at),
                    Some(a) if !CONSTANTS.contains(&a.value.as_str()) || (a.format == 1) == value.is_some() => {
                        let text = format!("sm {}: `{name}` is not a constant of this form", row.sm);
                        report.rows("elf", text, vec![(row.at, "here".into()), (a.at, "attribute".into())]);
                    }
                    Some(_) => {}
                },
            }
        }
    }
    for row in &elf.reserved {
        word(report, row.at, "when", &row.when, &["always", "linked", "shared", "tensor", "object", "object_tensor"]);
        if let Some(sm) = row.sms.iter().find(|sm| !elf.targets.iter().any(|t| t.sm == **sm)) {
            report.at("names", format!("{}: no row of elf/targets.ron has sm {sm}", row.name), row.at);
        }
    }
}

/// Values of attributes for which a target may have a constant.
const CONSTANTS: [&str; 6] = ["block_z", "constant", "isa_version", "reserved_used", "sparse_mask", "tensor_count"];

fn attributes(elf: &Elf, report: &mut Report) {
    for row in &elf.attributes {
        word(report, row.at, "place", &row.place, &["module", "function"]);
        word(report, row.at, "of", &row.of, &["kernel", "all"]);
        word(report, row.at, "driver", &row.driver, &["required", "ignored", "unknown"]);
        if row.format > 4 {
            report.at("elf", format!("{}: format {} is not 0 to 4", row.name, row.format), row.at);
        }
    }
    for row in &elf.compat {
        if !["accelerator", "class", "maps", "integers"].contains(&row.value.as_str()) && hex(&row.value).is_none() {
            report.at("elf", format!("{}: value `{}` is not hexadecimal", row.name, row.value), row.at);
        }
    }
}

/// Relocation numbers are distinct, words belong to their set, and each role except those of single
/// bytes has at most one row per layout.
fn relocations(elf: &Elf, report: &mut Report) {
    distinct("relocation", elf.relocations.iter().map(|r| (r.number.to_string(), r.at)), report);
    for row in &elf.relocations {
        word(report, row.at, "applies", &row.applies, &["yes", "no"]);
        for role in row.rel.split_whitespace().chain(row.rela.split_whitespace()) {
            word(report, row.at, "role", role, &RELOCATION_ROLES);
        }
        if bit_ranges(&row.bits).is_none() || row.shift > 63 {
            report.at("elf", format!("{}: `{}` are no ranges of bits", row.name, row.bits), row.at);
        }
    }
    for layout in LAYOUTS {
        let of =
            |row: &crate::rows::elf::RelocationRow| if layout == "rel" { row.rel.clone() } else { row.rela.clone() };
        let roles = elf.relocations.iter().flat_map(|row| {
            let own: Vec<_> = of(row).split_whitespace().map(str::to_string).collect();
            own.into_iter().filter(|role| !role.ends_with("_piece")).map(|role| (role, row.at))
        });
        distinct(&format!("relocation role of layout {layout}"), roles, report);
    }
}
