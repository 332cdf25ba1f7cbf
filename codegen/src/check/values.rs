//! Laws of what values of modifiers mean: the rows of `values.ron` name kinds and values of theirs,
//! and where a row of a kind answers a question, each value of the kind has one row that does.

use crate::model::Model;
use crate::report::Report;
use crate::source::At;

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    let rows = &model.ori.meanings;
    for row in rows {
        let Some(kind) = model.ori.kinds.iter().find(|kind| kind.name == row.kind) else {
            report.at("names", format!("no kind of modifier is called `{}`", row.kind), row.at);
            continue;
        };
        for value in row.values.split_whitespace().filter(|value| !kind.values.iter().any(|known| known == value)) {
            report.at("names", format!("`{}` has no value `{value}`", row.kind), row.at);
        }
    }
    for kind in &model.ori.kinds {
        for question in model.ori.questions() {
            let own: Vec<_> = rows.iter().filter(|row| row.kind == kind.name && row.says == question).collect();
            let Some(first) = own.first() else { continue };
            for value in &kind.values {
                let has = |values: &str| values.split_whitespace().filter(|word| word == value).count();
                let found: Vec<At> = own.iter().flat_map(|row| vec![row.at; has(&row.values)]).collect();
                match found[..] {
                    [] => report.at(
                        "values",
                        format!("{} of `{value}` of `{}` is missing", question, kind.name),
                        first.at,
                    ),
                    [_] => {}
                    [first, second, ..] => {
                        let both = vec![(first, "first".to_string()), (second, "again".to_string())];
                        report.rows("values", format!("{question} of `{value}` of `{}` stands twice", kind.name), both);
                    }
                }
            }
        }
    }
}
