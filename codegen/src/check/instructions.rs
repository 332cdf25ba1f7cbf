//! Laws: every operation of the matrix matches some instruction, and the names, modifiers and types
//! of `instructions.ron` exist.

use crate::model::Model;
use crate::model::instructions::Pattern;
use crate::report::Report;
use crate::source::At;

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    let legality = &model.legality;
    for (position, operation) in legality.operations.iter().enumerate() {
        if !legality.patterns.iter().any(|p| p.1 == position) {
            report.at("legality", format!("`{}` is no instruction", operation.op), operation.at);
        }
    }
    for (row, _, pattern) in &legality.patterns {
        names(model, pattern, legality.instructions[*row].at, report);
    }
}

fn names(model: &Model, pattern: &Pattern, at: At, report: &mut Report) {
    let ptx = &model.ptx;
    let known = |name: &String| ptx.operations.iter().any(|o| o.op == *name);
    let special = |name: &str| ptx.specials.iter().any(|s| s.name == name);
    let planned =
        |name: &String| ptx.planned.iter().any(|o| o.op == *name) || name.strip_prefix('%').is_some_and(special);
    for name in pattern.names.iter().filter(|name| !known(name) && !planned(name)) {
        report.at("names", format!("no instruction is called `{name}`"), at);
    }
    if pattern.names.iter().any(planned) {
        return;
    }
    let exists = |word: &String| {
        let modifier = ptx.groups.iter().any(|group| group.texts.iter().any(|text| text.text == *word));
        modifier || ptx.types.iter().any(|ty| ty.name == *word)
    };
    for word in pattern.words.iter().flat_map(|words| &words.words).filter(|word| !exists(word)) {
        report.at("names", format!("no modifier or type is called `{word}`"), at);
    }
}
