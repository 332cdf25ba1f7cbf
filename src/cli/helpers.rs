//! `sassafras helpers`: lists the helper functions, or prints one with its users, body and SASS
//! code.

use crate::compile::{Options as Compiling, compile};
use crate::cubin;
use crate::helper;
use crate::sass::listing;
use crate::tables::Target;
use crate::tables::helpers::{HELPERS, Helper, Tier};
use crate::tables::targets::TARGETS;
use serde::Serialize;
use std::fmt::Write;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Options {
    /// One helper: its row, its users, its body, its code
    name: Option<String>,
    /// The target that its code is for (also -arch): the lowest that uses it, unless stated
    #[arg(long)]
    gpu_name: Option<String>,
    /// The list as JSON: id, name, tier, category, status (of the name), prototype (its status),
    /// state
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    id: u16,
    name: &'static str,
    tier: u8,
    category: &'static str,
    /// Source of the name: published, derived, proposed.
    status: &'static str,
    /// Source of the prototype and meaning, likewise.
    prototype: &'static str,
    state: &'static str,
}

fn row(helper: &'static Helper) -> Row {
    Row {
        id: helper.id,
        name: helper.name,
        tier: if helper.tier() == Tier::Call { 1 } else { 2 },
        category: helper.category().name,
        status: helper.family().name.name(),
        prototype: helper.family().proto.name(),
        state: if helper.built() { "built" } else { "planned" },
    }
}

/// Prints the list, or one helper.
pub fn helpers(options: &Options) -> Result<ExitCode, String> {
    let wanted = |h: &&Helper| options.name.as_ref().is_none_or(|name| name == h.name);
    let found: Vec<&'static Helper> = HELPERS.iter().filter(wanted).collect();
    if let (Some(name), true) = (&options.name, found.is_empty()) {
        return Err(format!("no helper is called '{name}'"));
    }
    if options.json {
        let rows: Vec<Row> = found.into_iter().map(row).collect();
        super::print(&(serde_json::to_string(&rows).map_err(|e| e.to_string())? + "\n"));
    } else if options.name.is_some() {
        super::print(&described(found[0], options.gpu_name.as_deref())?);
    } else {
        super::print(&table(&found));
    }
    Ok(ExitCode::SUCCESS)
}

fn table(helpers: &[&'static Helper]) -> String {
    let mut text = String::new();
    for helper in helpers {
        let Row { id, name, tier, category, status, prototype, state } = row(helper);
        let _ = writeln!(text, "{id:#05x} {tier} {category:<13} {status:<9} {prototype:<9} {state:<7} {name}");
    }
    let built = helpers.iter().filter(|h| h.built()).count();
    let _ = writeln!(text, "{} helpers, {built} built", helpers.len());
    text += "(id, tier, category, where the name and where the prototype come from, state, name)\n";
    text
}

/// A helper's row, users, body and code.
fn described(helper: &'static Helper, target: Option<&str>) -> Result<String, String> {
    let (family, category) = (helper.family(), helper.category());
    let (kind, state) = match helper.tier() {
        Tier::Call => ("weak function", row(helper).state),
        Tier::Inline => ("inline template", row(helper).state),
    };
    let users: Vec<&str> = TARGETS.iter().filter(|t| t.real && helper.used_on(t.column)).map(|t| t.name).collect();
    let mut text = format!("{}\n", helper.name);
    let lines = [
        ("id", format!("{:#05x}, category {}, {kind}, {state}", helper.id, category.name)),
        ("status", format!("name {}, prototype {}", family.name.name(), family.proto.name())),
        ("family", format!("{}, convention {}", family.names, family.convention)),
        ("operation", helper.op.to_string()),
        ("users", users.join(" ")),
        ("computes", helper.computes.to_string()),
        ("source", family.src.to_string()),
    ];
    for (key, value) in lines {
        let _ = writeln!(text, "  {key:<10} {value}");
    }
    if let Some(why) = family.planned {
        let _ = writeln!(text, "  {:<10} {why}", "planned");
        return Ok(text);
    }
    let uses = |t: &&Target| t.generation.is_some() && helper.used_on(t.column);
    let lowest = || TARGETS.iter().find(uses).unwrap_or(Target::lowest_built()).name;
    let target = target.unwrap_or_else(lowest);
    let source = helper::source(helper, target);
    let _ = write!(text, "\n{source}\n");
    let options = Compiling { relocatable: true, ..Compiling::new(target) };
    let told =
        |list: Vec<crate::diag::Diagnostic>| list.iter().map(|d| d.message.clone()).collect::<Vec<_>>().join("; ");
    let output = compile(&source, &options).map_err(told)?;
    let cubin = cubin::read(&output.cubin).map_err(|e| e.to_string())?;
    Ok(text + &listing::text(&cubin)?)
}
