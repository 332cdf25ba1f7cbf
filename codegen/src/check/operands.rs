//! Laws of operand recipes: each opcode names a recipe, whose steps refer to operands of the opcode
//! and cover all that it reads; a recipe has the category of its steps; recipes and backends name
//! the same hooks; moves use existing files and kinds.

use super::unique::distinct;
use crate::model::Model;
use crate::model::operands::Recipe;
use crate::model::ori::Op;
use crate::report::Report;

/// Possible sources of a move; the register files are also the possible destinations.
const KINDS: [&str; 8] = ["imm", "zero", "const", "special", "R", "UR", "P", "UP"];
const FILES: [&str; 4] = ["R", "UR", "P", "UP"];

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    let operands = &model.operands;
    distinct("recipe", operands.recipes.iter().map(|r| (r.row.name.clone(), r.row.at)), report);
    for recipe in &operands.recipes {
        let row = &recipe.row;
        if row.category != recipe.category() {
            let message =
                format!("{}: its steps are of category {}, not {}", row.name, recipe.category(), row.category);
            report.at("recipe", message, row.at);
        }
        if !["published", "derived", "proposed"].contains(&row.status.as_str()) {
            report.at("recipe", format!("{}: status is published, derived or proposed", row.name), row.at);
        }
        if !model.ori.ops.iter().any(|op| op.row.recipe == row.name) {
            report.at("recipe", format!("no opcode has the recipe `{}`", row.name), row.at);
        }
    }
    for op in &model.ori.ops {
        match operands.recipe(&op.row.recipe) {
            Some(recipe) => covers(model, op, &operands.recipes[recipe], report),
            None => {
                let message = format!("{}: no recipe is called `{}`", op.row.op, op.row.recipe);
                report.at("recipe", message, op.row.at);
            }
        }
    }
    for op in &model.ori.ops {
        for name in op.row.uniform.split_whitespace().filter(|name| model.ori.op(name).is_none()) {
            report.at("names", format!("{}: no opcode is called `{name}`", op.row.op), op.row.at);
        }
    }
    for one in &operands.moves {
        if !FILES.contains(&one.row.to.as_str()) || !KINDS.contains(&one.row.from.as_str()) {
            let message = format!(
                "from `{}` to `{}` is not from one of {} to one of {}",
                one.row.from,
                one.row.to,
                KINDS.join(" "),
                FILES.join(" ")
            );
            report.at("move", message, one.row.at);
        }
    }
    hooks(model, report);
}

/// Checks the steps of a recipe against the operands of an opcode.
fn covers(model: &Model, op: &Op, recipe: &Recipe, report: &mut Report) {
    let wrong = |report: &mut Report, what: String| {
        let rows = vec![(op.row.at, "the opcode".to_string()), (recipe.row.at, "its recipe".to_string())];
        report.rows("recipe", format!("{}: {what}", op.row.op), rows);
    };
    if op.props.iter().any(|p| model.ori.properties[*p].name == "bookkeeping") {
        if !recipe.steps.is_empty() {
            wrong(report, "bookkeeping has no operands to legalize".to_string());
        }
        return;
    }
    let role = |name: &str| op.roles.iter().find(|r| r.name == name);
    for step in recipe.steps.iter().filter(|s| s.name != "backend") {
        for name in step.of.iter().filter(|name| role(name).is_none()) {
            wrong(report, format!("`{}({name})`: it has no operand `{name}`", step.name));
        }
    }
    for step in recipe.materials() {
        let Some(role) = role(&step.of[0]) else { continue };
        let fits = match step.name.as_str() {
            "mat" | "try" => role.class == 'r',
            "uniform" => role.class == 'u',
            "pred" => role.class == 'p',
            "arch" => role.class == 'i',
            _ => matches!(role.class, 's' | 'b'),
        };
        if !fits || (role.direction == '>') {
            wrong(report, format!("`{}({})` is not for an operand of class {}", step.name, role.name, role.class));
        }
        let optional = role.class == 'r' && role.default.is_some();
        if optional != step.optional {
            wrong(
                report,
                format!("`{}({})` has a `?` where the operand may be absent, and only there", step.name, role.name),
            );
        }
        let several = matches!(role.width.as_str(), "size" | "fragment");
        if role.class == 'r' && several != step.many {
            wrong(
                report,
                format!(
                    "`{}({})` has `..` where the instruction says how many words, and only there",
                    step.name, role.name
                ),
            );
        }
    }
    for role in op.roles.iter().filter(|r| r.direction == '<') {
        match recipe.materials().filter(|s| s.of[0] == role.name).count() {
            1 => {}
            0 => wrong(report, format!("no step is about the operand `{}`", role.name)),
            _ => wrong(report, format!("two steps are about the operand `{}`", role.name)),
        }
    }
}

fn hooks(model: &Model, report: &mut Report) {
    let known = model.operands.hooks();
    for row in &model.legal.backends {
        for hook in row.operand_hooks.split_whitespace().filter(|hook| !known.contains(hook)) {
            report.at("recipe", format!("{}: no recipe asks for the hook `{hook}`", row.name), row.at);
        }
    }
    for recipe in &model.operands.recipes {
        let Some(hook) = recipe.hook() else { continue };
        if !model.legal.backends.iter().any(|row| row.operand_hooks.split_whitespace().any(|name| name == hook)) {
            let message = format!("{}: no backend has the hook `{hook}`", recipe.row.name);
            report.at("recipe", message, recipe.row.at);
        }
    }
}
