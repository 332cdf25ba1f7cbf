//! Laws of register classes: descriptors agree with the published table, and the forms of an opcode
//! use only the register files that it allows.

use crate::model::Model;
use crate::model::regclass::Category;
use crate::report::Report;
use crate::source::At;

/// Highest category and highest field.
const LAST: (u16, u16) = (542, 341);
/// Letters of register files in forms.
const FILES: [char; 4] = ['R', 'U', 'P', 'B'];

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    let r = &model.regclass;
    once(r.categories.iter().map(|c| (c.row.num, c.row.at)), "opcode", report);
    once(r.fields.iter().map(|(f, _)| (f.id, f.at)), "field", report);
    once(r.path.iter().flat_map(|(row, nums)| nums.iter().map(|n| (*n, row.at))), "opcode of the memory path", report);
    let known = |id: &u16| r.fields.iter().any(|(f, _)| f.id == *id);
    for category in &r.categories {
        if category.row.category > LAST.0 {
            report.at(
                "regclass",
                format!("category {} is past the last, {}", category.row.category, LAST.0),
                category.row.at,
            );
        }
        for id in category.fields.iter().filter(|id| !known(id)) {
            report.at("regclass", format!("there is no field {id}"), category.row.at);
        }
        contract(model, category, report);
    }
    for (field, place) in &r.fields {
        let group = r.groups.iter().find(|g| g.name == field.group);
        let outside =
            group.is_some_and(|g| !(g.from..=g.to).contains(&field.id)) || group.is_none() && !field.group.is_empty();
        if outside || field.id > LAST.1 {
            report.at("regclass", format!("field {} is not in the group `{}`", field.id, field.group), field.at);
        }
        if let Some(name) = field.values.strip_prefix("lut ") {
            let lut = r.luts.iter().find(|(l, fields)| l.name == name && fields.contains(&field.id));
            let narrow = lut.zip(*place).is_some_and(|((l, _), p)| u32::from(l.size) > 1 << p.bits);
            if lut.is_none() || narrow {
                report.at("regclass", format!("field {} has no room or no entry in `{name}`", field.id), field.at);
            }
        }
    }
}

fn once(ids: impl Iterator<Item = (u16, At)>, what: &str, report: &mut Report) {
    let mut seen: Vec<(u16, At)> = Vec::new();
    for (id, at) in ids {
        match seen.iter().find(|s| s.0 == id) {
            Some((_, other)) => {
                let rows = vec![(*other, "one".into()), (at, "other".into())];
                report.rows("regclass", format!("two rows for {what} {id}"), rows);
            }
            None => seen.push((id, at)),
        }
    }
}

/// The register operands of each form are in the files that the contract allows.
fn contract(model: &Model, category: &Category, report: &mut Report) {
    let Some(op) = model.ori.ops.iter().position(|o| o.row.num == category.row.num) else {
        if !category.contract.is_empty() {
            report.at("regclass", format!("no opcode has the number {}", category.row.num), category.row.at);
        }
        return;
    };
    for (role, _) in &category.contract {
        if !model.ori.ops[op].roles.iter().any(|r| r.name == *role) {
            let message = format!("{} has no operand `{role}`", model.ori.ops[op].row.op);
            report.at("regclass", message, category.row.at);
        }
    }
    for form in model.encoding.forms.iter().filter(|f| f.op == op) {
        for word in form.row.args.split_whitespace() {
            let Some((role, rest)) = word.split_once(':') else { continue };
            let file = rest.chars().next().filter(|c| FILES.contains(c));
            let allowed = category.contract.iter().find(|(r, _)| r == role);
            if let (Some(file), Some((_, files))) = (file, allowed)
                && !files.contains(file)
            {
                let message = format!("{}: `{role}` is in {file}, the contract has {files}", form.row.op);
                let rows = vec![(category.row.at, "contract".into()), (form.row.at, "form".into())];
                report.rows("regclass", message, rows);
            }
        }
    }
}
