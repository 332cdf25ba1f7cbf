//! `print TABLE [NAME]`: prints rows of a table with their names resolved, one block per row, in
//! table order. An unknown table or name is an error that lists the choices.

use crate::check::bits::{claims, ranges};
use crate::model::Model;
use crate::model::encoding::{Form, GuardKind};
use std::fmt::Write;

/// A row's name and its text.
type Block = (String, String);
type Printer = fn(&Model) -> Vec<Block>;

const TABLES: [(&str, Printer); 10] = [
    ("targets", targets),
    ("generations", generations),
    ("features", features),
    ("ori", ori),
    ("encoding", encoding),
    ("modifiers", modifiers),
    ("phases", phases),
    ("special_registers", specials),
    ("eiattr", attributes),
    ("helpers", helpers),
];

/// The text of one row, or of all. The error lists the choices.
pub fn print(model: &Model, table: &str, name: Option<&str>) -> Result<String, String> {
    let Some((_, printer)) = TABLES.iter().find(|t| t.0 == table) else {
        let names: Vec<&str> = TABLES.iter().map(|t| t.0).collect();
        return Err(format!("no table is called `{table}`; there are: {}", names.join(" ")));
    };
    let blocks = printer(model);
    let wanted = |block: &&Block| name.is_none_or(|n| block.0 == n);
    let text: String = blocks.iter().filter(wanted).map(|b| b.1.as_str()).collect();
    if text.is_empty() {
        let mut names: Vec<&str> = blocks.iter().map(|b| b.0.as_str()).collect();
        names.dedup();
        let name = name.unwrap_or_default();
        return Err(format!("`{table}` has no row called `{name}`; there are: {}", names.join(" ")));
    }
    Ok(text)
}

/// A heading and the lines below it; a line without a value is omitted.
fn block(head: String, lines: &[(&str, String)]) -> String {
    let mut text = format!("{head}\n");
    for (key, value) in lines.iter().filter(|l| !l.1.is_empty()) {
        let _ = writeln!(text, "  {key:<12} {value}");
    }
    text
}

fn targets(model: &Model) -> Vec<Block> {
    let one = |(i, target): (usize, &crate::source::Row<crate::rows::targets::TargetRow>)| {
        let has = model.targets.features.iter().enumerate().filter(|(f, _)| model.targets.has[i][*f]);
        let lines = [
            ("column", target.col.to_string()),
            ("kind", format!("{} {}", target.kind, target.variant)),
            ("parent", target.parent.clone().unwrap_or_default()),
            ("generation", target.generation.clone().unwrap_or_default()),
            ("PTX from", target.min_ptx.clone().unwrap_or_default()),
            ("features", has.map(|f| f.1.name.as_str()).collect::<Vec<_>>().join(" ")),
            ("source", target.src.clone()),
        ];
        (target.name.clone(), block(target.name.clone(), &lines))
    };
    model.targets.targets.iter().enumerate().map(one).collect()
}

fn generations(model: &Model) -> Vec<Block> {
    let offset = |o: Option<u32>| o.map_or(String::new(), |o| format!("c[0x0][{o:#x}]"));
    let one = |row: &crate::source::Row<crate::rows::targets::GenerationRow>| {
        let members = model.targets.built().filter(|(_, t)| t.generation.as_ref() == Some(&row.name));
        let lines = [
            ("targets", members.map(|t| t.1.name.as_str()).collect::<Vec<_>>().join(" ")),
            ("uniform", format!("{} bits, {} registers", row.ur_bits, row.ur_count)),
            ("parameters", offset(Some(row.param_base))),
            ("stack top", offset(Some(row.stack_top))),
            ("global desc", offset(row.global_desc)),
            ("ntid", offset(Some(row.ntid))),
            ("nctaid", offset(Some(row.nctaid))),
            ("shared at", offset(row.shared_window)),
            ("local at", offset(Some(row.local_window))),
            ("shared base", format!("{:#x}", row.shared_base)),
            ("source", row.src.clone()),
        ];
        (row.name.clone(), block(row.name.clone(), &lines))
    };
    model.targets.generations.iter().map(one).collect()
}

fn features(model: &Model) -> Vec<Block> {
    let one = |(f, row): (usize, &crate::source::Row<crate::rows::targets::FeatureRow>)| {
        let has = model.targets.targets.iter().enumerate().filter(|(t, _)| model.targets.has[*t][f]);
        let names: Vec<&str> = has.map(|t| t.1.name.as_str()).collect();
        let lines = [("on", row.on.clone()), ("targets", names.join(" ")), ("source", row.src.clone())];
        (row.name.clone(), block(row.name.clone(), &lines))
    };
    model.targets.features.iter().enumerate().map(one).collect()
}

fn ori(model: &Model) -> Vec<Block> {
    let one = |(i, op): (usize, &crate::model::ori::Op)| {
        let mut lines = vec![("number", op.row.num.to_string()), ("text", op.row.text.clone())];
        for role in &op.roles {
            let direction = match role.direction {
                '>' => "defined",
                '<' => "used",
                _ => "given",
            };
            let default = role.default.as_ref().map_or(String::new(), |d| format!(", absent: {d}"));
            let class = class(role.class);
            lines.push(("role", format!("{:<8} {direction}, {class}, width {}{default}", role.name, role.width)));
        }
        let props: Vec<&str> = op.props.iter().map(|p| model.ori.properties[*p].name.as_str()).collect();
        let recipe = model.operands.recipe(&op.row.recipe).map(|at| &model.operands.recipes[at].row);
        let recipe = recipe.map_or(String::new(), |r| format!("{} (category {}): {}", r.name, r.category, r.steps));
        lines.extend([("properties", props.join(" ")), ("recipe", recipe), ("state", op.row.state.clone())]);
        for form in model.encoding.forms.iter().filter(|f| f.op == i) {
            let args = if form.row.args.is_empty() { "no operands" } else { &form.row.args };
            lines.push(("form", format!("{:#05x} on {}: {args}", form.row.code, form.row.on)));
        }
        lines.push(("source", op.row.src.clone()));
        (op.row.op.clone(), block(op.row.op.clone(), &lines))
    };
    model.ori.ops.iter().enumerate().map(one).collect()
}

fn class(letter: char) -> &'static str {
    match letter {
        'r' => "register",
        'u' => "uniform register",
        'p' => "predicate",
        'b' => "barrier",
        'i' => "immediate",
        'l' => "label",
        _ => "special register",
    }
}

/// A map of the 128 bits of each form, range by range.
fn encoding(model: &Model) -> Vec<Block> {
    let one = |form: &Form| {
        let op = &model.ori.ops[form.op].row.op;
        let on: Vec<&str> = form.generations.iter().map(|g| model.targets.generations[*g].name.as_str()).collect();
        let feature = form.feature.map_or(String::new(), |f| format!(" if {}", model.targets.features[f].name));
        let mut text = format!("{op} {:#05x} `{}` on {}{feature}\n", form.row.code, form.text, on.join(" "));
        for (bits, what) in map(form, model) {
            let _ = writeln!(text, "  {bits:<10} {what}");
        }
        for (what, _) in claims(form, model).iter().filter(|c| c.1 == 0 && !matches!(c.0.as_str(), "fix" | "must")) {
            let _ = writeln!(text, "  {:<10} {what}", "no bits");
        }
        let _ = writeln!(text, "  {:<10} {}", "source", form.row.src);
        (op.clone(), text)
    };
    model.encoding.forms.iter().map(one).collect()
}

/// Adjacent bits with the same owner, from bit 0 on; constants with their value.
fn map(form: &Form, model: &Model) -> Vec<(String, String)> {
    let mut owners: Vec<(String, u128)> = claims(form, model).into_iter().filter(|c| c.1 != 0).collect();
    let control = [("stall cycles", 105, 4), ("stay", 109, 1), ("write barrier", 110, 3), ("read barrier", 113, 3)];
    let more = [("barriers waited for", 116, 6), ("reuse", 122, 3), ("zero", 125, 3)];
    let fields = control.into_iter().chain(more);
    owners.extend(fields.map(|(name, lo, len)| (name.to_string(), ((1u128 << len) - 1) << lo)));
    let owner = |bit: u8| owners.iter().position(|o| o.1 >> bit & 1 != 0);
    let (mut list, mut lo) = (Vec::new(), 0u8);
    while lo < 128 {
        let mut hi = lo;
        while hi + 1 < 128 && owner(hi + 1) == owner(lo) {
            hi += 1;
        }
        let mask = (u128::MAX >> (127 - (hi - lo))) << lo;
        let what = match owner(lo).map(|o| owners[o].0.as_str()) {
            Some("the opcode") => format!("opcode {:#05x}", form.row.code),
            Some("the guard") if form.guard == GuardKind::Uniform => "uniform guard, highest bit: not".into(),
            Some("the guard") => "guard, highest bit: not".into(),
            Some("fix") => format!("always {:#x}", (form.fixed.1 & mask) >> lo),
            Some("must") => format!("unseen, written as {:#x}", (form.must.1 & mask) >> lo),
            Some(other) => other.strip_prefix("the ").unwrap_or(other).to_string(),
            None => "nothing".into(),
        };
        list.push((ranges(mask), what + &part(form, lo, hi)));
        lo = hi + 1;
    }
    list
}

/// The attribute bits of an operand's range: sign, reuse and so on.
fn part(form: &Form, lo: u8, hi: u8) -> String {
    let mut words = Vec::new();
    for arg in form.args.iter().map(|a| &a.arg) {
        let signs = [
            (arg.neg, "minus"),
            (arg.abs, "absolute"),
            (arg.complement, "complement"),
            (arg.not, "not"),
            (arg.reuse, "reuse"),
        ];
        let inside = signs.iter().filter(|s| s.0.is_some_and(|b| (lo..=hi).contains(&b)));
        words.extend(inside.map(|(bit, name)| {
            if lo == hi { format!(", {name}") } else { format!(", {}: {name}", bit.unwrap_or_default()) }
        }));
    }
    words.concat()
}

fn modifiers(model: &Model) -> Vec<Block> {
    let one = |set: &crate::model::ori::ModSet| {
        let kind = &model.ori.kinds[set.kind];
        let codes: Vec<String> = set
            .codes
            .iter()
            .zip(&set.texts)
            .map(|((code, value), text)| {
                let (value, text) = (&kind.values[*value], if text.is_empty() { "-" } else { text });
                if value == text { format!("{code}={value}") } else { format!("{code}={value} (prints {text})") }
            })
            .collect();
        let lines = [
            ("kind", kind.name.clone()),
            ("default", kind.values.first().cloned().unwrap_or_default()),
            ("codes", codes.join(" ")),
            ("source", set.src.clone()),
        ];
        (set.name.clone(), block(set.name.clone(), &lines))
    };
    model.ori.sets.iter().map(one).collect()
}

fn phases(model: &Model) -> Vec<Block> {
    let one = |row: &crate::source::Row<crate::rows::phases::PhaseRow>| {
        let lines = [
            ("order", row.order.to_string()),
            ("seed", row.seed.iter().map(u16::to_string).collect::<Vec<_>>().join(" ")),
            ("category", row.category.clone()),
            ("state", row.state.clone()),
            ("by", row.by.clone()),
            ("why", row.why.clone()),
            ("source", row.src.clone()),
        ];
        (row.name.clone(), block(row.name.clone(), &lines))
    };
    model.phases.iter().map(one).collect()
}

fn specials(model: &Model) -> Vec<Block> {
    let one =
        |(row, on, feature): &(crate::source::Row<crate::rows::encoding::SpecialRow>, Vec<usize>, Option<usize>)| {
            let names: Vec<&str> = on.iter().map(|g| model.targets.generations[*g].name.as_str()).collect();
            let lines = [
                ("number", row.num.to_string()),
                ("on", names.join(" ")),
                ("if", feature.map_or(String::new(), |f| model.targets.features[f].name.clone())),
                ("uniform", if row.uniform { "yes".into() } else { "no".into() }),
                ("row bits", row.row_bits.map_or_else(|| "unknown".into(), |bits| format!("{bits:#x}"))),
                ("counts", if row.counts { "yes".into() } else { "no".into() }),
                ("keeps", if row.keeps { "yes".into() } else { "no".into() }),
                ("source", row.src.clone()),
            ];
            (row.text.clone(), block(row.text.clone(), &lines))
        };
    model.encoding.specials.iter().map(one).collect()
}

fn attributes(model: &Model) -> Vec<Block> {
    let one = |row: &crate::source::Row<crate::rows::elf::AttributeRow>| {
        let lines = [
            ("id", format!("{:#04x}", row.id)),
            ("format", row.format.to_string()),
            ("place", row.place.clone()),
            ("value", row.value.clone()),
            ("of", row.of.clone()),
            ("rel", row.rel.to_string()),
            ("rela", row.rela.to_string()),
            ("payload", row.payload.clone()),
            ("when", row.when.clone()),
            ("driver", row.driver.clone()),
            ("differ", row.differ.clone()),
            ("source", row.src.clone()),
        ];
        (row.name.clone(), block(row.name.clone(), &lines))
    };
    model.elf.attributes.iter().map(one).collect()
}

/// The row of a helper, followed by its PTX.
fn helpers(model: &Model) -> Vec<Block> {
    let one = |h: &crate::model::helpers::Helper| {
        let (category, family) = (&model.helpers.categories[h.category], &model.helpers.families[h.family]);
        let status = format!("name {:?}, prototype {:?}", family.name, family.proto).to_lowercase();
        let lines = [
            ("id", format!("{:#05x}", h.id)),
            ("category", format!("{} ({:?})", category.category, category.tier)),
            ("operation", h.op.clone()),
            ("on", family.on.clone()),
            ("computes", h.computes.clone()),
            ("status", status),
            ("source", family.src.clone()),
        ];
        let body = if h.body.is_empty() { String::new() } else { format!("{}\n{{\n{}}}\n", h.head, h.body) };
        (h.name.clone(), block(h.name.clone(), &lines) + &body)
    };
    model.helpers.helpers.iter().map(one).collect()
}
