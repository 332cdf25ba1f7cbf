//! Laws of the properties of opcodes: what `properties.ron` says that one needs or excludes is so
//! in each row of an opcode that has it; each property has an opcode; a fused opcode is that of one
//! product and one sum, and takes what they take.

use super::unique::distinct;
use crate::model::Model;
use crate::model::memory::modifier;
use crate::model::ori::Op;
use crate::report::Report;
use crate::rows::ori::PropertyRow;
use crate::source::Row;

/// The properties are the bits of one word.
const MOST: usize = 128;

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    for (number, row) in model.ori.properties.iter().enumerate() {
        names(model, row, report);
        let mut with = model.ori.ops.iter().filter(|op| op.props.contains(&number)).peekable();
        if with.peek().is_none() {
            report.at("property", format!("no opcode has the property `{}`", row.name), row.at);
        }
        with.for_each(|op| one(model, op, row, report));
        if number == MOST {
            report.at("property", format!("more than {MOST} properties"), row.at);
        }
    }
    model.ori.ops.iter().for_each(|op| repeats(model, op, report));
    let fused = || model.ori.ops.iter().filter(|op| !op.row.fused.is_empty());
    fused().for_each(|op| fuses(model, op, report));
    for (what, other) in [("multiplies", "adds"), ("adds", "multiplies")] {
        let only = fused().filter(|op| model.ori.has(op, what) && !model.ori.has(op, other));
        distinct(
            &format!("opcode that {what} and is part of"),
            only.map(|op| (op.row.fused.clone(), op.row.at)),
            report,
        );
    }
}

/// Each law of a property names properties.
fn names(model: &Model, row: &Row<PropertyRow>, report: &mut Report) {
    for name in [&row.needs, &row.needs_one, &row.excludes].into_iter().flat_map(|list| list.split_whitespace()) {
        if !model.ori.properties.iter().any(|other| other.name == name) {
            report.at("names", format!("{}: no property is called `{name}`", row.name), row.at);
        }
    }
}

/// What limits an idempotent opcode is a modifier.
fn repeats(model: &Model, op: &Op, report: &mut Report) {
    let word = &op.row.idempotent_with;
    if !word.is_empty() && (modifier(&model.ori, word).is_none() || !model.ori.has(op, "idempotent")) {
        report.at("names", format!("{}: `{word}` limits no idempotent opcode", op.row.op), op.row.at);
    }
}

/// The laws of one property, for an opcode that has it.
fn one(model: &Model, op: &Op, row: &Row<PropertyRow>, report: &mut Report) {
    let has = |name: &&str| model.ori.has(op, name);
    let wrong = |report: &mut Report, what: String| {
        let rows = vec![(op.row.at, "the opcode".to_string()), (row.at, "the law".to_string())];
        report.rows("property", format!("{}: `{}` {what}", op.row.op, row.name), rows);
    };
    let known = |name: &&str| model.ori.properties.iter().any(|other| other.name == *name);
    for name in row.needs.split_whitespace().filter(|name| known(name) && !has(name)) {
        wrong(report, format!("needs `{name}`"));
    }
    for name in row.excludes.split_whitespace().filter(has) {
        wrong(report, format!("excludes `{name}`"));
    }
    if !row.needs_one.is_empty() && !row.needs_one.split_whitespace().any(|name| has(&name)) {
        wrong(report, format!("needs one of `{}`", row.needs_one));
    }
}

/// What an opcode of two operands is fused into multiplies and adds, and has a third operand.
fn fuses(model: &Model, op: &Op, report: &mut Report) {
    let ori = &model.ori;
    let Some(fused) = ori.op(&op.row.fused).map(|fused| &ori.ops[fused]) else {
        report.at("names", format!("{}: no opcode is called `{}`", op.row.op, op.row.fused), op.row.at);
        return;
    };
    let wrong = |report: &mut Report, what: &str| {
        let rows = vec![(op.row.at, "the opcode".to_string()), (fused.row.at, "what it is part of".to_string())];
        report.rows("property", format!("{}: {what}", op.row.op), rows);
    };
    if ori.has(op, "multiplies") == ori.has(op, "adds") {
        wrong(report, "what is fused has one of the properties `multiplies` and `adds`");
    }
    if !ori.has(fused, "multiplies") || !ori.has(fused, "adds") {
        wrong(report, "what it is fused into has the properties `multiplies` and `adds`");
    }
    let same = op.roles.iter().all(|role| fused.roles.contains(role));
    if !same || !fused.roles.iter().any(|role| role.name == "c" && role.direction == '<') {
        wrong(report, "what it is fused into has its operands, and `c`");
    }
}
