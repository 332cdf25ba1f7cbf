//! Law: a name or number identifies one row only.

use crate::model::Model;
use crate::report::Report;
use crate::source::At;
use std::collections::BTreeMap;

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    let ori = &model.ori;
    distinct("opcode number", ori.ops.iter().map(|o| (o.row.num.to_string(), o.row.at)), report);
    distinct("opcode", ori.ops.iter().map(|o| (o.row.op.clone(), o.row.at)), report);
    distinct("property", ori.properties.iter().map(|p| (p.name.clone(), p.at)), report);
    distinct("generation", model.targets.generations.iter().map(|g| (g.name.clone(), g.at)), report);
    distinct("feature", model.targets.features.iter().map(|f| (f.name.clone(), f.at)), report);
    distinct("phase", model.phases.iter().map(|p| (p.name.clone(), p.at)), report);
    distinct("pass", model.passes.iter().map(|p| (p.name.clone(), p.at)), report);
    distinct("step", model.steps.iter().map(|s| (s.name.clone(), s.at)), report);
    distinct("phase order", model.phases.iter().map(|p| (p.order.to_string(), p.at)), report);
}

/// Reports each key that a second row repeats.
pub fn distinct(what: &str, keys: impl Iterator<Item = (String, At)>, report: &mut Report) {
    repeated(what, keys.collect(), report);
}

/// The same of a list: it is compiled once, not for each kind of key.
fn repeated(what: &str, keys: Vec<(String, At)>, report: &mut Report) {
    let mut seen: BTreeMap<String, At> = BTreeMap::new();
    for (key, at) in keys {
        if let Some(first) = seen.get(&key) {
            let both = vec![(*first, "first".to_string()), (at, "again".to_string())];
            report.rows("unique", format!("{what} `{key}` stands for two rows"), both);
        } else {
            seen.insert(key, at);
        }
    }
}
