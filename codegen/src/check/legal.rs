//! Laws of legalization: each implemented target has one backend; each pseudo-operation is in one
//! family or has the property `bookkeeping`; a backend names existing families and expands each of
//! them, in LateExpansionUnsupportedOps2 at the latest; knob names and numbers are unique.

use super::unique::distinct;
use crate::model::Model;
use crate::model::ori::Op;
use crate::report::Report;

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    targets(model, report);
    families(model, report);
    slots(model, report);
    distinct("knob", model.legal.knobs.iter().map(|k| (k.name.clone(), k.at)), report);
    distinct("knob number", model.legal.knobs.iter().map(|k| (k.number.to_string(), k.at)), report);
    distinct("backend", model.legal.backends.iter().map(|b| (b.name.clone(), b.at)), report);
    let ops = model.legal.expansions.iter().flat_map(|e| e.ops.split_whitespace().map(|op| (op.to_string(), e.at)));
    distinct("expansion of", ops, report);
}

fn targets(model: &Model, report: &mut Report) {
    // Invalid or duplicate columns and invalid kinds are reported by the laws of targets.
    let alone = |col: u32| model.targets.targets.iter().filter(|t| t.col == col && t.kind == "real").count() == 1;
    for (_, target) in model.targets.built() {
        if target.col >= u128::BITS || target.kind != "real" || !alone(target.col) {
            continue;
        }
        let on: Vec<_> =
            model.legal.backends.iter().filter(|b| model.targets.columns(&b.on) & 1 << target.col != 0).collect();
        match on.as_slice() {
            [_] => {}
            [] => report.at("legal", format!("{} has no backend", target.name), target.at),
            [first, second, ..] => {
                let rows = vec![(first.at, "first".to_string()), (second.at, "again".to_string())];
                report.rows("legal", format!("{} has two backends", target.name), rows);
            }
        }
    }
}

fn families(model: &Model, report: &mut Report) {
    let has = |op: &Op, name: &str| op.props.iter().any(|p| model.ori.properties[*p].name == name);
    for row in &model.legal.expansions {
        for name in row.ops.split_whitespace() {
            if !model.ori.op(name).is_some_and(|op| has(&model.ori.ops[op], "pseudo")) {
                report.at("legal", format!("`{name}` is no pseudo-operation"), row.at);
            }
        }
    }
    for op in model.ori.ops.iter().filter(|op| has(op, "pseudo")) {
        if has(op, "bookkeeping") == model.legal.family(&op.row.op).is_some() {
            let message = format!("`{}` must be in a family of expansions.ron, or else be bookkeeping", op.row.op);
            report.at("legal", message, op.row.at);
        }
    }
}

fn slots(model: &Model, report: &mut Report) {
    for row in &model.legal.backends {
        for (slot, families) in row.slots() {
            for family in families.unwrap_or_default().split_whitespace() {
                if !model.legal.expansions.iter().any(|e| e.name == family) {
                    report.at("legal", format!("{}: {slot}: no family is called `{family}`", row.name), row.at);
                }
            }
        }
        let last = &row.late_expansion_unsupported_ops2;
        for family in model.legal.expansions.iter().filter(|e| !last.split_whitespace().any(|name| name == e.name)) {
            let message = format!("{}: `{}` must be expanded by LateExpansionUnsupportedOps2", row.name, family.name);
            report.at("legal", message, row.at);
        }
    }
}
