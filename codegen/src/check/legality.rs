//! Law: every cell of a real column exactly one rule; what is named is used.

use crate::model::Model;
use crate::model::legality::{COLUMNS, Legality, Verdict};
use crate::report::Report;

const STATUS: [&str; 3] = ["published", "derived", "proposed"];

pub fn check(model: &Model, report: &mut Report) {
    let legality = &model.legality;
    operations(legality, report);
    cells(model, report);
    used(legality, report);
    let known = |name: &str| name == "lowering" || model.phases.iter().any(|p| p.name == name);
    for recipe in &legality.recipes {
        if !known(&recipe.phase) {
            report.at("names", format!("{}: no phase is called `{}`", recipe.name, recipe.phase), recipe.at);
        }
    }
}

fn operations(legality: &Legality, report: &mut Report) {
    for (position, row) in legality.operations.iter().enumerate() {
        if row.id as usize != position {
            report.at("legality", format!("`{}` stands at place {position}", row.op), row.at);
        }
        if let Some(other) = legality.operations[..position].iter().find(|o| o.op == row.op) {
            let rows = vec![(other.at, "one".into()), (row.at, "other".into())];
            report.rows("legality", format!("two operations are called `{}`", row.op), rows);
        }
        if !STATUS.contains(&row.status.as_str()) || !["built", "planned"].contains(&row.state.as_str()) {
            report.at(
                "legality",
                format!("`{}`: the status or the state is none of those that there are", row.op),
                row.at,
            );
        }
    }
}

/// A cell without a rule is told once for each operation, with the first such target.
fn cells(model: &Model, report: &mut Report) {
    let legality = &model.legality;
    let real = |column: &usize| model.targets.targets.iter().any(|t| t.col as usize == *column && t.kind == "real");
    for (op, cells) in legality.operations.iter().zip(&legality.cells) {
        let bare: Vec<usize> = (0..COLUMNS).filter(|c| real(c) && cells[*c].is_none()).collect();
        let Some(first) = bare.first() else { continue };
        let target = model.targets.targets.iter().find(|t| t.col as usize == *first && t.kind == "real");
        let name = target.map_or("", |t| t.name.as_str());
        report.at("legality", format!("`{}` has no rule on {} targets, the first {name}", op.op, bare.len()), op.at);
    }
}

fn used(legality: &Legality, report: &mut Report) {
    let said = || legality.rules.iter().flat_map(|r| r.ops.iter().map(|o| &o.1));
    for (number, recipe) in legality.recipes.iter().enumerate() {
        for (variant, name) in recipe.ops.split_whitespace().enumerate() {
            let asked = |v: &Verdict| *v == Verdict::Inline(number, variant) || *v == Verdict::Handler(number, variant);
            if !said().any(asked) {
                report.at("legality", format!("no rule asks `{}` for `{name}`", recipe.name), recipe.at);
            }
        }
        if recipe.class > 0xff || recipe.ops.split_whitespace().count() > 0x100 {
            report.at("legality", format!("`{}`: class and variant have a byte each", recipe.name), recipe.at);
        }
        let class = |other: &&crate::source::Row<crate::rows::legality::RecipeRow>| other.class == recipe.class;
        if let Some(other) = legality.recipes[..number].iter().find(class) {
            let rows = vec![(other.at, "one".into()), (recipe.at, "other".into())];
            report.rows("legality", format!("two recipes have the class {}", recipe.class), rows);
        }
    }
}
