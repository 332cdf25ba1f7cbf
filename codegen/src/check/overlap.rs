//! Law: within a generation no word fits two forms, unless one says `alias_of` the other's opcode.

use crate::model::Model;
use crate::model::encoding::Form;
use crate::report::Report;
use std::collections::BTreeMap;

pub fn check(model: &Model, report: &mut Report) {
    let mut buckets: BTreeMap<(usize, u16), Vec<&Form>> = BTreeMap::new();
    for form in &model.encoding.forms {
        for generation in &form.generations {
            buckets.entry((*generation, form.row.code)).or_default().push(form);
        }
    }
    let mut told = Vec::new();
    for ((generation, _), forms) in buckets {
        for (i, a) in forms.iter().enumerate() {
            for b in &forms[i + 1..] {
                if !collide(a, b) || !share_target(model, generation, a, b) || told.contains(&(a.row.at, b.row.at)) {
                    continue;
                }
                told.push((a.row.at, b.row.at));
                let (first, second) = if a.row.at < b.row.at { (a, b) } else { (b, a) };
                let name = &model.targets.generations[generation].name;
                let message =
                    format!("a form of {} and a form of {} fit the same word on {name}", first.row.op, second.row.op);
                report.rows("overlap", message, vec![(first.row.at, "one".into()), (second.row.at, "other".into())]);
            }
        }
    }
}

fn collide(a: &Form, b: &Form) -> bool {
    let alias = a.row.alias_of == b.row.op || b.row.alias_of == a.row.op;
    !alias && (a.fixed.1 ^ b.fixed.1) & a.fixed.0 & b.fixed.0 == 0
}

/// Whether a target of the generation has both forms.
fn share_target(model: &Model, generation: usize, a: &Form, b: &Form) -> bool {
    let name = &model.targets.generations[generation].name;
    model.targets.built().any(|(i, target)| {
        let has = |form: &Form| form.feature.is_none_or(|f| model.targets.has[i][f]);
        target.generation.as_ref() == Some(name) && has(a) && has(b)
    })
}
