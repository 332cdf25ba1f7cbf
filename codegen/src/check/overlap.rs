//! Law: within a generation no word matches two forms, unless one is declared `alias_of` the
//! other's opcode.

use crate::model::Model;
use crate::model::encoding::Form;
use crate::report::Report;
use std::collections::BTreeMap;

/// Reports the rows that violate this law.
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
                if !collide(model, a, b)
                    || !share_target(model, generation, a, b)
                    || told.contains(&(a.row.at, b.row.at))
                {
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

fn collide(model: &Model, a: &Form, b: &Form) -> bool {
    let alias = a.row.alias_of == b.row.op || b.row.alias_of == a.row.op;
    let differ = (a.fixed.1 ^ b.fixed.1) & a.fixed.0 & b.fixed.0 != 0;
    !alias && !differ && !excludes(model, a, b) && !excludes(model, b, a)
}

/// Whether a modifier of one form has only codes that the other's fixed bits or codes at the same
/// position exclude.
fn excludes(model: &Model, a: &Form, b: &Form) -> bool {
    a.mods.iter().filter(|m| m.only.is_none()).any(|field| {
        let Some(bits) = &field.bits else { return false };
        let codes = &model.ori.sets[field.set].codes;
        let mask = bits.mask();
        let fixed = b.fixed.0 & mask == mask && codes.iter().all(|c| bits.place(c.0.into()) != b.fixed.1 & mask);
        let same = b.mods.iter().find(|m| m.only.is_none() && m.bits.as_ref() == Some(bits));
        let others = same.map(|m| &model.ori.sets[m.set].codes);
        fixed || others.is_some_and(|o| codes.iter().all(|c| o.iter().all(|d| d.0 != c.0)))
    })
}

/// Whether some target of the generation has both forms.
fn share_target(model: &Model, generation: usize, a: &Form, b: &Form) -> bool {
    let name = &model.targets.generations[generation].name;
    model.targets.built().any(|(i, target)| {
        let has = |form: &Form| form.feature.is_none_or(|f| model.targets.has[i][f]);
        target.generation.as_ref() == Some(name) && has(a) && has(b)
    })
}
