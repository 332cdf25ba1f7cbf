//! Laws of the legality matrix: every cell of a real column has exactly one rule; everything that
//! is named is used; a recipe is expanded by its phase on each target where a cell uses it, and a
//! phase first expands only what some cell of its backend uses there.

use crate::model::Model;
use crate::model::legality::{COLUMNS, Legality, Verdict};
use crate::report::Report;
use crate::rows::targets::TargetRow;

const STATUS: [&str; 3] = ["published", "derived", "proposed"];

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    let legality = &model.legality;
    operations(legality, report);
    cells(model, report);
    used(legality, report);
    recipe_phases(model, report);
    expansions(model, report);
}

/// The phases that may be the first to expand an operation.
const FIRST: [&str; 3] = ["ConvertUnsupportedOps", "MidExpansion", "LateExpansion"];

/// A recipe belongs to lowering, or names one of those phases and a family.
fn recipe_phases(model: &Model, report: &mut Report) {
    for recipe in &model.legality.recipes {
        if recipe.phase == "lowering" {
            if !recipe.expands.is_empty() {
                report.at("legality", format!("{}: lowering expands no family", recipe.name), recipe.at);
            }
        } else if !FIRST.contains(&recipe.phase.as_str()) {
            let message = format!("{}: `{}` is none of lowering, {}", recipe.name, recipe.phase, FIRST.join(", "));
            report.at("names", message, recipe.at);
        } else if !model.legal.expansions.iter().any(|e| e.name == recipe.expands) {
            report.at("names", format!("{}: no family is called `{}`", recipe.name, recipe.expands), recipe.at);
        }
    }
}

fn is_real(target: &TargetRow) -> bool {
    target.kind == "real" && (target.col as usize) < COLUMNS
}

/// Recipes and backends agree; reported once for each pair of rows.
fn expansions(model: &Model, report: &mut Report) {
    let (legality, targets) = (&model.legality, &model.targets);
    for backend in &model.legal.backends {
        let on = targets.columns(&backend.on);
        let real: Vec<_> = targets.targets.iter().filter(|t| is_real(t) && on >> t.col & 1 != 0).collect();
        if real.is_empty() {
            continue;
        }
        let asks = |recipe: usize| {
            real.iter().find(|t| legality.cells.iter().enumerate().any(|(op, c)| asks(legality, op, c, t.col, recipe)))
        };
        let asked: Vec<_> =
            (0..legality.recipes.len()).filter_map(|r| Some((&legality.recipes[r], asks(r)?))).collect();
        for (phase, families) in backend.slots().into_iter().filter(|s| FIRST.contains(&s.0)) {
            let families: Vec<&str> = families.unwrap_or_default().split_whitespace().collect();
            for (recipe, target) in asked.iter().filter(|a| a.0.phase == phase) {
                if !families.contains(&recipe.expands.as_str()) {
                    let rows = vec![(recipe.at, "asked for".into()), (backend.at, "not expanded".into())];
                    let what =
                        format!("`{}` on {}: {phase} does not expand `{}`", recipe.name, target.name, recipe.expands);
                    report.rows("legality", what, rows);
                }
            }
            let known = |name: &&str| model.legal.expansions.iter().any(|e| e.name == *name);
            for family in families.into_iter().filter(known) {
                if !asked.iter().any(|(recipe, _)| recipe.phase == phase && recipe.expands == family) {
                    let recipes = legality.recipes.iter().filter(|r| r.expands == family);
                    let mut rows = vec![(backend.at, "expanded".to_string())];
                    rows.extend(recipes.map(|r| (r.at, format!("asked for in {}", r.phase))));
                    let what = format!("{}: {phase} expands `{family}`, which no cell asks for there", backend.name);
                    report.rows("legality", what, rows);
                }
            }
        }
    }
}

/// Whether a recipe implements an operation in a column.
fn asks(legality: &Legality, op: usize, cells: &[Option<usize>], column: u32, recipe: usize) -> bool {
    let rule = cells.get(column as usize).copied().flatten();
    rule.and_then(|rule| legality.said(rule, op)).is_some_and(|said| match said {
        Verdict::Inline(r, _) | Verdict::Handler(r, _) => *r == recipe,
        _ => false,
    })
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

/// A missing rule is reported once per operation, with the first such target.
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
