//! Laws of helpers: counts and ids agree with the categories, names are unique, and prototypes
//! follow their convention.

use super::unique::distinct;
use crate::model::Model;
use crate::report::Report;
use crate::rows::helpers::Tier;

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    let all = &model.helpers;
    let at = |family: usize| all.families[family].at;
    distinct("helper", all.helpers.iter().map(|h| (h.name.clone(), at(h.family))), report);
    distinct("category", all.categories.iter().map(|c| (c.category.clone(), c.at)), report);
    if report.errors.iter().any(|e| e.law == "helpers" || e.law == "row") {
        // Some families could not be read, so wrong counts would only repeat that.
        return;
    }
    let mut next = 1;
    for (number, category) in all.categories.iter().enumerate() {
        let ids: Vec<u16> = all.helpers.iter().filter(|h| h.category == number).map(|h| h.id).collect();
        if category.first != next {
            let message = format!(
                "{}: ids begin at {}, and the category before ends at {}",
                category.category,
                category.first,
                next - 1
            );
            report.at("helpers", message, category.at);
        }
        next = category.first + category.count;
        if ids.len() != usize::from(category.count) {
            let message = format!("{}: {} helpers, not {}", category.category, ids.len(), category.count);
            report.at("helpers", message, category.at);
        } else if let Some(id) = ids.iter().find(|id| !(category.first..next).contains(id)) {
            let what = if category.tier == Tier::Call { "the list of names" } else { "its category" };
            let place = usize::from(*id - 1);
            let message = format!("{}: {} is number {id} in {what}", category.category, all.helpers[place].name);
            report.at("helpers", message, category.at);
        }
    }
    for (number, family) in all.families.iter().enumerate() {
        if let Err(message) = convention(model, number) {
            report.at("helpers", message, family.at);
        }
        if let Err(word) = crate::model::targets::terms(&family.on) {
            report.at("helpers", format!("{}: `{word}` names no targets", family.names), family.at);
        }
    }
    for (file, _) in all.files.iter().filter(|f| !f.1) {
        report.plain(format!("helpers/{file}: no family names this body"));
    }
}

/// Checks the prototypes of a family against its convention.
fn convention(model: &Model, family: usize) -> Result<(), String> {
    let row = &model.helpers.families[family];
    if row.slow_path > 0 && row.convention != 'A' {
        return Err(format!("{}: a slow path has its values in registers, convention `A`", row.names));
    }
    for helper in model.helpers.helpers.iter().filter(|h| h.family == family) {
        let all = || helper.returns.iter().chain(&helper.params);
        let right = match row.convention {
            'A' => !helper.returns.is_empty() && all().all(|s| !s.memory),
            'B' => all().any(|s| s.memory),
            'C' => all().all(|s| s.memory),
            'D' => helper.returns.is_empty(),
            'E' => !helper.returns.is_empty() && helper.returns.iter().all(|s| !s.memory),
            _ => false,
        };
        if !right {
            return Err(format!("{}: the prototype is not of convention `{}`", helper.name, row.convention));
        }
    }
    Ok(())
}
