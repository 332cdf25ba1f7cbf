//! Law: every row states its source.

use crate::model::Model;
use crate::report::Report;
use crate::source::At;

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    let t = &model.targets;
    let mut sources: Vec<(&str, At)> = Vec::new();
    sources.extend(t.targets.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(t.generations.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(t.features.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(model.ori.ops.iter().map(|o| (o.row.src.as_str(), o.row.at)));
    sources.extend(model.ori.properties.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(model.operands.evidence());
    sources.extend(model.passes.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(model.phases.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(model.steps.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(model.registers.iter().map(|r| (r.src.as_str(), r.at)));
    let elf = &model.elf;
    sources.extend(elf.layouts.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(elf.targets.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(elf.sections.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(elf.compat.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(elf.reserved.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(elf.attributes.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(model.ptx.evidence());
    sources.extend(model.ori.sets.iter().map(|s| (s.src.as_str(), s.at)));
    sources.extend(model.encoding.sources.iter().map(|(src, at)| (src.as_str(), *at)));
    sources.extend(model.lowering.evidence.iter().map(|(src, at)| (src.as_str(), *at)));
    sources.extend(model.choices.evidence.iter().map(|(src, at)| (src.as_str(), *at)));
    sources.extend(model.images.evidence.iter().map(|(src, at)| (src.as_str(), *at)));
    sources.extend(model.latency.evidence.iter().map(|(src, at)| (src.as_str(), *at)));
    sources.extend(model.throughput.rows.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(model.helpers.families.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(model.helpers.categories.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(model.legality.evidence());
    sources.extend(model.regclass.evidence());
    let l = &model.memory;
    sources.extend(l.order.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(l.cache.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(l.atomic.iter().map(|r| (r.src.as_str(), r.at)));
    sources.extend(l.special.iter().map(|r| (r.src.as_str(), r.at)));
    for (src, at) in sources {
        if src.trim().is_empty() {
            report.at("evidence", "the row does not say where it comes from (src is empty)", at);
        }
    }
}
