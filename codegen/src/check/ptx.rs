//! Laws of PTX: every operation has a form, the operands of a form name existing suffixes, no two
//! forms of an operation are the same, a group has as many texts as its kind requires, and the
//! texts of one operation are unambiguous.

use super::unique::distinct;
use crate::model::Model;
use crate::model::ptx::{ArgType, Form, Ptx, version};
use crate::report::Report;
use crate::rows::ptx::{GroupKind, TypeClass};

/// Types and texts are stored as bit sets of one word.
const MAX_TYPES: usize = 64;
const MAX_TEXTS: usize = 32;

/// Reports the rows that violate this law.
pub fn check(model: &Model, report: &mut Report) {
    let ptx = &model.ptx;
    names(ptx, report);
    places(ptx, report);
    fields(model, report);
    groups(ptx, report);
    forms(ptx, report);
    for row in &ptx.stray {
        report.at("names", format!("no modifier group is called `{}`", row.group), row.at);
    }
}

fn names(ptx: &Ptx, report: &mut Report) {
    let operations = ptx.operations.iter().flat_map(|o| {
        let names = std::iter::once(o.op.as_str()).chain(o.also.split_whitespace());
        names.map(|name| (name.to_string(), o.at))
    });
    let planned = ptx.planned.iter().map(|o| (o.op.clone(), o.at));
    distinct("PTX operation", operations.chain(planned), report);
    distinct("modifier group", ptx.groups.iter().map(|g| (g.row.group.clone(), g.row.at)), report);
    let sets = ptx.sets.iter().map(|s| (s.set.clone(), s.at));
    distinct("PTX type", ptx.types.iter().map(|t| (t.name.clone(), t.at)).chain(sets), report);
    distinct("special register", ptx.specials.iter().map(|s| (s.name.clone(), s.at)), report);
    distinct("directive", ptx.directives.iter().map(|d| (d.name.clone(), d.at)), report);
    distinct("PTX version", ptx.versions.iter().map(|v| (v.version.clone(), v.at)), report);
    if ptx.types.len() > MAX_TYPES {
        report.plain(format!("ptx/types.ron: more than {MAX_TYPES} types"));
    }
    for row in &ptx.specials {
        if !ptx.types.iter().any(|t| t.name == row.ty) {
            report.at("names", format!("{}: no PTX type is called `{}`", row.name, row.ty), row.at);
        }
    }
    let versions = ptx.versions.iter().map(|v| (&v.version, v.at));
    let used = ptx.specials.iter().map(|s| (&s.ptx, s.at)).chain(ptx.directives.iter().map(|d| (&d.ptx, d.at)));
    let used = used.chain(ptx.limits.iter().map(|l| (&l.ptx, l.at)));
    let gone = ptx.operations.iter().filter_map(|o| Some((&o.gone.as_ref()?.0, o.at)));
    for (text, at) in versions.chain(used).chain(gone) {
        if version(text).is_none() {
            report.at("names", format!("`{text}` is not a PTX version"), at);
        }
    }
}

/// Checks that the fields of references are of types and records that there are, and that no two
/// claim one byte.
fn fields(model: &Model, report: &mut Report) {
    let ptx = &model.ptx;
    distinct("field", ptx.fields.iter().map(|f| (f.field.clone(), f.at)), report);
    distinct("value of a field", ptx.field_values.iter().map(|v| (v.name.clone(), v.at)), report);
    distinct("number of a value", ptx.field_values.iter().map(|v| (v.value.to_string(), v.at)), report);
    let told = ptx.fields.iter().filter(|f| !f.record.is_empty());
    distinct("byte of a record", told.map(|f| (format!("{} {}", f.record, f.byte), f.at)), report);
    for row in &ptx.fields {
        let types: Vec<&str> = row.of.split_whitespace().collect();
        if types.is_empty()
            || !types.iter().all(|ty| ptx.types.iter().any(|t| t.name == *ty && t.class == TypeClass::Opaque))
        {
            report.at("ptx", format!("{}: `{}` are no types of references", row.field, row.of), row.at);
        }
        if !row.record.is_empty() && !model.elf.attributes.iter().any(|a| a.name == row.record) {
            report.at("names", format!("{}: no attribute is called `{}`", row.field, row.record), row.at);
        }
        if row.byte > 4 {
            report.at("ptx", format!("{}: a value has no byte {}", row.field, row.byte), row.at);
        }
    }
}

/// Checks that directives are allowed somewhere and ranges are not empty.
fn places(ptx: &Ptx, report: &mut Report) {
    for d in &ptx.directives {
        if d.on.is_empty()
            || !d.on.split_whitespace().all(|word| matches!(word, "entry" | "func" | "pragma" | "module" | "value"))
        {
            report.at(
                "names",
                format!("{}: `{}` is not entry, func, pragma, module or several of them", d.name, d.on),
                d.at,
            );
        }
    }
    for r in &ptx.range_rows {
        match r.spans() {
            Ok(spans) if spans.is_empty() => report.at("ptx", "`is` says nothing".to_string(), r.at),
            Ok(_) => {}
            Err(word) => report.at("ptx", format!("`{word}` is no range that holds a number"), r.at),
        }
        let words = r.words().concat().into_iter().map(|word| word.strip_prefix('-').unwrap_or(word));
        for word in words.filter(|word| !ptx.is_suffix(word)) {
            report.at("names", format!("no modifier or type is written `{word}`"), r.at);
        }
    }
}

fn groups(ptx: &Ptx, report: &mut Report) {
    for group in &ptx.groups {
        let (name, count) = (&group.row.group, group.texts.len());
        let before = &group.row.before;
        if !before.is_empty() && (before == name || !ptx.groups.iter().any(|g| g.row.group == *before)) {
            report.at("names", format!("no other modifier group is called `{before}`"), group.row.at);
        }
        let right = if group.row.kind == GroupKind::Flag { count == 1 } else { (2..=MAX_TEXTS).contains(&count) };
        if !right {
            report.at("ptx", format!("group `{name}` is a {:?} and has {count} texts", group.row.kind), group.row.at);
        }
        distinct("modifier", group.texts.iter().map(|t| (format!("{name}.{}", t.text), t.at)), report);
    }
}

fn forms(ptx: &Ptx, report: &mut Report) {
    for (i, row) in ptx.operations.iter().enumerate() {
        let forms: Vec<&Form> = ptx.forms.iter().filter(|f| f.op == i).collect();
        if forms.is_empty() {
            report.at("ptx", format!("operation `{}` has no form", row.op), row.at);
        }
        if row.free && !row.op.contains('.') {
            report.at("ptx", format!("the name `{}` has no last part that could be free", row.op), row.at);
        }
        for (n, form) in forms.iter().enumerate() {
            if let Some(same) = forms[..n].iter().find(|other| equal(form, other)) {
                let both = vec![(same.at, "first".to_string()), (form.at, "again".to_string())];
                report.rows("ptx", format!("two forms of `{}` are the same", row.op), both);
            }
        }
        ambiguous(ptx, &row.op, &forms, report);
    }
    for form in &ptx.forms {
        let bad = form.args.iter().any(|a| matches!(a.ty, ArgType::Suffix(n) if n >= form.types.len()));
        if bad || form.args.iter().any(|a| a.ty == ArgType::Wide) && form.types.is_empty() {
            report.at("ptx", "an operand has the type of a suffix that the form does not have", form.at);
        }
        let address = |i: u8| form.args.get(usize::from(i)).is_some_and(|a| ptx.roles[a.role].role == "mem");
        if let Some(whole) = form.whole.filter(|whole| !address(*whole)) {
            report.at("ptx", format!("operand {whole} is no address, and `whole` names it"), form.at);
        }
    }
}

/// Whether two forms accept exactly the same instructions.
fn equal(a: &Form, b: &Form) -> bool {
    let rules = |f: &Form| {
        let mut rules: Vec<_> = f.rules.iter().map(|r| (r.group, r.mask, r.required)).collect();
        rules.sort();
        rules
    };
    let args =
        |f: &Form| f.args.iter().map(|a| (a.role, a.ty.clone(), a.count, a.by_shape, a.optional)).collect::<Vec<_>>();
    a.types == b.types && rules(a) == rules(b) && args(a) == args(b)
}

/// An operation accepts a text in only one group, so that the order of modifiers does not matter.
fn ambiguous(ptx: &Ptx, op: &str, forms: &[&Form], report: &mut Report) {
    let mut seen: Vec<(&str, usize)> = Vec::new();
    for form in forms {
        for rule in &form.rules {
            for (i, text) in ptx.groups[rule.group].texts.iter().enumerate() {
                if rule.mask >> i & 1 == 0 {
                    continue;
                }
                match seen.iter().find(|(t, _)| *t == text.text) {
                    Some((_, group)) if *group != rule.group && !two_of_a_kind(ptx, *group, rule.group) => {
                        let groups = (&ptx.groups[*group].row.group, &ptx.groups[rule.group].row.group);
                        let message = format!("`{op}` takes `.{}` as {} and as {}", text.text, groups.0, groups.1);
                        report.at("ptx", message, form.at);
                    }
                    Some(_) => {}
                    None => seen.push((&text.text, rule.group)),
                }
            }
        }
    }
}

/// Whether one of two groups takes a text that the other one has already, in any order of forms.
fn two_of_a_kind(ptx: &Ptx, a: usize, b: usize) -> bool {
    follows(ptx, a, b) || follows(ptx, b, a)
}

/// Whether a text that both groups have belongs to the second group once the first is set:
/// `.row.col`.
fn follows(ptx: &Ptx, first: usize, second: usize) -> bool {
    first < second && ptx.groups[first].row.then == ptx.groups[second].row.group
}
