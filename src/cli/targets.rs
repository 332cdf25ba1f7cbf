//! `sassafras targets`: lists the targets, and how each operation is compiled there.

use crate::tables::Target;
use crate::tables::legality::{Cell, OPERATION_BY_NAME, OPERATIONS, Recipe, Rule, Verdict};
use crate::tables::targets::{TARGET_BY_NAME, TARGETS};
use serde_json::{Value, json};
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Options {
    /// The legality matrix: all of it, a row, or a cell with its rule.
    #[arg(long, num_args = 0..=2, value_names = ["OPERATION", "SM"])]
    matrix: Option<Vec<String>>,
    /// The matrix as JSON: operations, columns (all 128), cells; a column that is no target is
    /// `unused`.
    #[arg(long, requires = "matrix")]
    json: bool,
}

/// Prints one line per target with an encoder (name, generation, lowest PTX version), or the
/// matrix.
pub fn targets(options: &Options) -> Result<ExitCode, String> {
    match &options.matrix {
        Some(asked) => super::print(&matrix(asked, options.json)?),
        None => {
            for target in TARGETS.iter().filter(|t| t.real) {
                if let Some(generation) = target.generation {
                    let (major, minor) = target.min_ptx;
                    super::print(&format!("{:<8} encoder {:<6} PTX {major}.{minor}\n", target.name, generation.name()));
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The part of the matrix for the given operation and target; all of it without arguments.
fn matrix(asked: &[String], json: bool) -> Result<String, String> {
    let operation = asked.first().map(|name| {
        OPERATION_BY_NAME.get(name).copied().ok_or_else(|| format!("no operation of the matrix is called '{name}'"))
    });
    let target = asked.get(1).map(|name| {
        let found = TARGET_BY_NAME.get(name).map(|i| &TARGETS[*i]).filter(|t| t.real);
        found.ok_or_else(|| format!("no target is called '{name}'"))
    });
    let (operation, target) = (operation.transpose()?, target.transpose()?);
    let operations: Vec<u16> = operation.map_or_else(|| (0..OPERATIONS.len() as u16).collect(), |op| vec![op]);
    let columns: Vec<&Target> = target.map_or_else(columns, |target| vec![target]);
    let columns = if json && target.is_none() { all_columns() } else { columns };
    Ok(match (json, operation, target) {
        (true, ..) => format!("{:#}\n", as_json(&operations, &columns)),
        (_, Some(op), Some(target)) => cell_text(op, target),
        (_, Some(op), None) => row_text(op, &columns),
        _ => grid(&operations, &columns),
    })
}

/// All real targets, in the order of their columns.
fn columns() -> Vec<&'static Target> {
    let mut real: Vec<&Target> = TARGETS.iter().filter(|t| t.real && t.column < 128).collect();
    crate::sorted::by_key(&mut real, |t| t.column);
    real
}

/// All 128 columns: the real target of each, or its reserved row.
fn all_columns() -> Vec<&'static Target> {
    let mut all: Vec<&Target> = TARGETS.iter().filter(|t| t.column < 128).collect();
    crate::sorted::by_key(&mut all, |t| (t.column, !t.real));
    all.dedup_by_key(|t| t.column);
    all
}

/// `built`; `planned` if the operation is not implemented or the target has no encoder; `unused` if
/// the column is not a target.
fn state(operation: u16, target: &Target) -> &'static str {
    match (target.real, target.generation, OPERATIONS[usize::from(operation)].built) {
        (false, ..) => "unused",
        (_, Some(_), true) => "built",
        _ => "planned",
    }
}

fn cell(operation: u16, target: &Target) -> Cell {
    Cell { operation, column: target.column as u8 }
}

/// A cell's double word and meaning, the rule's wording, and its source.
fn cell_text(op: u16, target: &Target) -> String {
    let (cell, operation) = (cell(op, target), &OPERATIONS[usize::from(op)]);
    let state = match (state(op, target), target.generation) {
        ("planned", None) => "planned (the target has no encoder yet)",
        (state, _) => state,
    };
    let mut text = format!(
        "{} on {}: {} (0x{:08x})\n  forms    {}\n  PTX      {}\n  state    {state}, {}\n",
        operation.name,
        target.name,
        said(cell),
        cell.word(),
        operation.forms,
        operation.min_ptx,
        operation.status
    );
    if let Some(rule) = cell.rule() {
        text += &format!("  rule     on `{}`: {}\n  source   {}\n", rule.on, rule.verdict, rule.source);
        text += &cell.refusal(target).map_or(String::new(), |words| format!("  message  {words}\n"));
    }
    if let Verdict::Inline { class, .. } | Verdict::Handler { class, .. } = cell.verdict()
        && let Some(info) = Recipe::of(class).map(Recipe::info)
    {
        text += &format!("  recipe   {} (at {})\n", info.what, info.phase);
    }
    text
}

/// The meaning of a cell: the opcodes of a native operation, or class and variant of a recipe.
fn said(cell: Cell) -> String {
    match cell.verdict() {
        Verdict::Native => {
            let names = cell.rule().map_or(&[][..], |rule| rule.native).iter().map(|op| op.name());
            names.fold("native".to_string(), |text, name| text + " " + name)
        }
        Verdict::Inline { class, variant } => format!("inline {class:#04x}<<8 | {variant}"),
        Verdict::Handler { class, variant } => format!("handler {class:#04x}<<8 | {variant}"),
        Verdict::Illegal => "illegal".to_string(),
    }
}

/// A row; targets with the same rule are grouped.
fn row_text(op: u16, columns: &[&Target]) -> String {
    let mut rules: Vec<(*const Rule, String, Vec<&str>)> = Vec::new();
    for target in columns {
        let cell = cell(op, target);
        let rule = cell.rule().map_or(std::ptr::null(), |r| r as *const Rule);
        match rules.iter_mut().find(|r| r.0 == rule) {
            Some(found) => found.2.push(target.name),
            None => rules.push((rule, said(cell), vec![target.name])),
        }
    }
    let line = |(_, said, names): &(_, String, Vec<&str>)| format!("{said}\n    {}\n", names.join(" "));
    format!("{}: {}\n", OPERATIONS[usize::from(op)].name, OPERATIONS[usize::from(op)].forms)
        + &rules.iter().map(line).collect::<String>()
}

/// One letter per cell of a real column; the column names are above.
fn grid(operations: &[u16], columns: &[&Target]) -> String {
    let names: Vec<&str> = columns.iter().map(|t| t.name.trim_start_matches("sm_")).collect();
    let mut text = format!("N native, E inline recipe, H handler, X illegal; columns: {}\n", names.join(" "));
    for op in operations {
        let letters: String = columns.iter().map(|t| cell(*op, t).verdict().letter()).collect();
        text += &format!("{:3} {:<26} {letters}\n", op, OPERATIONS[usize::from(*op)].name);
    }
    text
}

fn as_json(operations: &[u16], columns: &[&Target]) -> Value {
    let names: Vec<&str> = columns.iter().map(|t| t.name).collect();
    let rows: Vec<Value> = operations
        .iter()
        .map(|op| {
            let o = &OPERATIONS[usize::from(*op)];
            let state = if o.built { "built" } else { "planned" };
            json!({ "id": op, "name": o.name, "family": o.family, "forms": o.forms, "min_ptx": o.min_ptx, "state": state, "status": o.status })
        })
        .collect();
    let one = |op: u16, target: &Target| {
        let cell = cell(op, target);
        let verdict = match cell.verdict() {
            _ if !target.real => "unused",
            Verdict::Native => "native",
            Verdict::Inline { .. } => "inline",
            Verdict::Handler { .. } => "handler",
            Verdict::Illegal => "illegal",
        };
        let (state, says) = (state(op, target), if target.real { said(cell) } else { verdict.to_string() });
        json!({ "verdict": verdict, "state": state, "word": cell.word(), "says": says, "message": cell.refusal(target) })
    };
    let cells: Vec<Vec<Value>> =
        operations.iter().map(|op| columns.iter().map(|target| one(*op, target)).collect()).collect();
    json!({ "operations": rows, "columns": names, "cells": cells })
}
