//! The legality matrix says what the compiler does: 236 operations on every target that is built.
//!
//! Input: `tables/legality/`, and the forms of `tests/cases/legality/forms.txt`, one kernel each. Checked: the sizes; an illegal cell is refused, and in ptxas's
//! words where it is there; a native one becomes one instruction of the cell's opcodes besides moves, for each of its forms; an inline one
//! a sequence without branches, a handler one with them, for one form at least; some form is one operation of the family that the cell's recipe names until
//! the recipe's phase expands it, or of none where the recipe is lowering's; a planned operation is refused by name. Six targets by default, all with `SASSAFRAS_ORACLE=all`.

#[allow(dead_code, reason = "tests/legality.rs reads the rest")]
#[path = "support/forms.rs"]
mod forms;
#[allow(dead_code, reason = "this test disassembles nothing")]
#[path = "support/vendor.rs"]
mod vendor;

use forms::{Form, forms, kernel};
use sassafras::compile::{Options, compile};
use sassafras::tables::legality::{Cell, OPERATIONS, Recipe, Verdict, double_words};
use sassafras::tables::targets::TARGETS;
use sassafras::tables::{Family, Slot, Target, backend};
use std::collections::BTreeMap;
use std::process::Command;

/// After it nothing is left to legalize.
const PHASE: &str = "SetAfterLegalization";

/// What lowering made, before any other phase.
const FIRST: &str = "OriCheckInitialProgram";

/// Opcodes that move or fetch what an operation reads, and what stands for nothing.
const MOVES: [&str; 15] = [
    "MOV", "COPY", "PHI", "UNDEF", "UMOV", "R2UR", "LDC", "LDCU", "ULDC", "CS2R", "S2R", "S2UR", "SYNCMASK", "NOP",
    "RET",
];

/// How often a function has each opcode; what nothing executes is not counted.
type Counts = BTreeMap<String, i32>;

fn head(target: &str) -> String {
    format!(".version 9.0\n.target {target}\n.address_size 64\n")
}

fn counts(target: &str, kernel: &str, phase: &str) -> Result<Counts, String> {
    let mut options = Options::new(target);
    options.dump_phases = vec![phase.to_string()];
    let output = compile(&(head(target) + kernel), &options).map_err(|e| e[0].message.clone())?;
    let mut counts = Counts::new();
    for line in output.dumps.iter().flat_map(|d| d.lines()).filter(|l| l.starts_with("  ")) {
        let (guard, text) = match line.trim().split_once(' ') {
            Some((guard, rest)) if guard.starts_with('@') => (guard, rest),
            _ => ("", line.trim()),
        };
        if guard != "@!PT" {
            *counts.entry(text.split([' ', '{']).next().unwrap_or("").to_string()).or_insert(0) += 1;
        }
    }
    Ok(counts)
}

/// A kernel like a form's, with zeros for its results.
fn without_operation(form: &Form) -> String {
    let zero = |(i, kind)| match kind {
        'r' => format!("mov.b32 %o{i}, 0; "),
        'l' => format!("mov.b64 %o{i}, 0; "),
        'h' => format!("mov.b16 %o{i}, 0; "),
        'f' => format!("mov.f32 %o{i}, 0f00000000; "),
        _ => format!("mov.f64 %o{i}, 0d0000000000000000; "),
    };
    let body: String = form.registers[0].chars().enumerate().map(zero).collect();
    kernel(0, [&form.registers[0], &form.registers[1]], "", &body)
}

/// The opcodes that a form's operation became: those of its kernel without those of the kernel around it, without moves, and without the
/// selections and comparisons with which the form makes predicates of numbers and numbers of predicates.
fn own(target: &str, form: &Form, around: &Counts) -> Result<Counts, String> {
    let mut left = counts(target, &form.kernel, PHASE)?;
    around.iter().for_each(|(op, n)| *left.entry(op.clone()).or_insert(0) -= n);
    *left.entry("SEL".into()).or_insert(0) -= form.kernel.matches("selp").count() as i32;
    if !form.name.starts_with("setp") {
        *left.entry("ISETP".into()).or_insert(0) -= form.kernel.matches("setp.").count() as i32;
    }
    let meets = left.get("SYNCMASK").is_some_and(|n| *n > 0);
    left.retain(|op, n| *n > 0 && !MOVES.contains(&op.as_str()));
    // An instruction of its own, made when all regions are known; before another operation it is part of what that needs.
    if left.is_empty() && meets {
        left.insert("WARPSYNC".into(), 1);
    }
    Ok(left)
}

/// Whether the form itself branches, so that its kernel's branches say nothing.
fn branches(form: &Form) -> bool {
    form.kernel.contains("bra") || form.name.contains("divergent")
}

fn built_targets() -> Vec<&'static Target> {
    let all = std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all");
    let few = ["sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120"];
    TARGETS.iter().filter(|t| t.real && t.generation.is_some() && (all || few.contains(&t.name))).collect()
}

/// The forms of each operation, by its name.
fn by_operation(forms: &[Form]) -> BTreeMap<&str, Vec<&Form>> {
    let mut all: BTreeMap<&str, Vec<&Form>> = BTreeMap::new();
    forms.iter().for_each(|form| all.entry(&form.operation).or_default().push(form));
    all
}

#[test]
fn the_matrix_has_its_size() {
    let words: Vec<[u32; 2]> = double_words().collect();
    assert_eq!((OPERATIONS.len(), words.len(), 2 * words.len()), (236, 236 * 128, 60_416));
    let classes = words.iter().fold([0; 4], |mut counts, [_, word]| {
        counts[match word {
            0 => 0,
            1..0x1_0000 => 1,
            0x0100_0000..0x0200_0000 => 2,
            0x0800_0000 => 3,
            _ => panic!("{word:#x} is in no class"),
        }] += 1;
        counts
    });
    println!("native, inline, handler, illegal (targets that are none among them): {classes:?}");
    let reserved = words.chunks(128).flat_map(|row| row.iter().enumerate()).filter(|(column, [_, word])| {
        !TARGETS.iter().any(|t| t.real && t.column as usize == *column) && *word != 0x0800_0000
    });
    assert_eq!(reserved.count(), 0);
    let forms = forms().1;
    let unknown: Vec<&str> =
        by_operation(&forms).into_keys().filter(|op| OPERATIONS.iter().all(|o| o.name != *op)).collect();
    assert!(unknown.is_empty() && by_operation(&forms).len() == OPERATIONS.len(), "{unknown:?}");
}

/// What is wrong with a cell, given what its forms became.
fn wrong(cell: Cell, all: &[(&Form, Result<Counts, String>)]) -> Option<String> {
    let built = OPERATIONS[usize::from(cell.operation)].built;
    let by_name = |message: &str| message.ends_with("is not supported yet") || message.ends_with("is not implemented");
    let straight = || all.iter().filter(|(form, _)| !branches(form)).filter_map(|(f, c)| Some((f, c.as_ref().ok()?)));
    let total = |counts: &Counts| counts.values().sum::<i32>();
    let flows = |counts: &Counts| counts.contains_key("BRA") || counts.contains_key("CALL");
    match cell.verdict() {
        Verdict::Illegal => {
            let accepted = all.iter().find(|(_, counts)| counts.is_ok())?;
            Some(format!("{} is accepted", accepted.0.name))
        }
        _ if !built => {
            let refused = all.iter().filter_map(|(_, counts)| counts.as_ref().err());
            let (named, other): (Vec<&String>, Vec<&String>) = refused.partition(|message| by_name(message));
            (named.is_empty() || !other.is_empty()).then(|| format!("planned, refused by {named:?} and {other:?}"))
        }
        _ if all.iter().any(|(_, counts)| counts.is_err()) => Some("a form is refused".into()),
        Verdict::Native => {
            let native = cell.rule().map_or(&[][..], |rule| rule.native);
            let named = |op: &str| native.iter().any(|n| n.name() == op);
            let fits = |counts: &Counts| match total(counts) {
                0 => named("MOV"),
                total => total == 1 && counts.keys().all(|op| named(op)),
            };
            let (form, counts) = straight().find(|(_, counts)| !fits(counts))?;
            Some(format!("{} became {counts:?}", form.name))
        }
        Verdict::Inline { .. } => {
            let flow = straight().find(|(_, counts)| flows(counts));
            let single = straight().all(|(_, counts)| total(counts) <= 1).then(|| "every form is native".to_string());
            flow.map(|(form, _)| format!("{} branches", form.name)).or(single)
        }
        Verdict::Handler { .. } => (!straight().any(|(_, c)| flows(c))).then(|| "no form branches".to_string()),
    }
}

#[test]
fn every_cell_is_what_the_compiler_does() {
    let forms = forms().1;
    let (operations, targets) = (by_operation(&forms), built_targets());
    let (mut cells, mut bad) = ([0; 4], Vec::new());
    for target in &targets {
        let mut around: BTreeMap<[String; 2], Counts> = BTreeMap::new();
        for (operation, forms) in &operations {
            let cell = Cell::named(operation, target).unwrap();
            cells["NEHX".find(cell.verdict().letter()).unwrap()] += 1;
            let all: Vec<(&Form, Result<Counts, String>)> = forms
                .iter()
                .map(|form| {
                    let frame = || counts(target.name, &without_operation(form), PHASE).unwrap();
                    let around = around.entry(form.registers.clone()).or_insert_with(frame);
                    (*form, own(target.name, form, around))
                })
                .collect();
            bad.extend(
                wrong(cell, &all).map(|what| format!("{operation} on {}: {:?}: {what}", target.name, cell.verdict())),
            );
        }
    }
    println!("{} targets: {cells:?} cells are native, inline, handler, illegal", targets.len());
    assert!(bad.is_empty(), "{} cells are not so:\n{}", bad.len(), bad.join("\n"));
}

/// The families of pseudo-operations that lowering made of a form.
fn families(target: &str, form: &Form) -> Vec<&'static str> {
    let made = counts(target, &form.kernel, FIRST).unwrap_or_default();
    let of = |op: &String| Family::ALL.into_iter().find(|family| family.ops().iter().any(|o| o.name() == op));
    made.keys().filter_map(of).map(Family::name).collect()
}

#[test]
fn the_phase_of_a_recipe_expands_what_its_operations_are_until_then() {
    let forms = forms().1;
    let (mut seen, mut bad) = (BTreeMap::<&str, usize>::new(), Vec::new());
    for (operation, forms) in by_operation(&forms) {
        for target in ["sm_75", "sm_80", "sm_90a", "sm_120"].map(|name| Target::by_name(name).unwrap()) {
            let cell = Cell::named(operation, target).unwrap();
            let (Verdict::Inline { class, .. } | Verdict::Handler { class, .. }) = cell.verdict() else { continue };
            let recipe = Recipe::of(class).unwrap().info();
            let first = backend(target.name).and_then(|backend| {
                let slot = Slot::ALL.into_iter().find(|slot| slot.name() == recipe.phase)?;
                backend.legalizer().families(slot)
            });
            let fits = |found: Vec<&str>| match first {
                Some(expands) => expands.iter().any(|family| found.contains(&family.name())),
                None => found.is_empty(),
            };
            *seen.entry(recipe.phase).or_insert(0) += 1;
            if OPERATIONS[usize::from(cell.operation)].built && !forms.iter().any(|f| fits(families(target.name, f))) {
                bad.push(format!("{operation} on {}: {}", target.name, recipe.phase));
            }
        }
    }
    println!("{seen:?} cells by phase");
    assert!(seen.len() == 4 && bad.is_empty(), "{} cells are not so:\n{}", bad.len(), bad.join("\n"));
}

#[test]
fn refusals_are_in_the_incumbents_words() {
    let Some(ptxas) = vendor::tool("ptxas") else {
        println!("skipped: target/vendor/ptxas is missing");
        return;
    };
    let forms = forms().1;
    let operations = by_operation(&forms);
    let (mut compared, mut bad) = (0, Vec::new());
    for target in built_targets() {
        let cells = operations.iter().filter_map(|(op, forms)| {
            let words = Cell::named(op, target)?.refusal(target)?;
            Some((*op, forms[0], words))
        });
        let cells: Vec<(&str, &Form, String)> = cells.collect();
        let text = cells.iter().fold(head(target.name), |text, (_, form, _)| text + &form.kernel);
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("k.ptx");
        std::fs::write(&source, text).unwrap();
        let cubin = folder.path().join("k.cubin");
        let run = Command::new(&ptxas).args(["-arch", target.name]).arg(&source).arg("-o").arg(cubin).output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        for (i, (op, _, words)) in cells.iter().enumerate() {
            compared += 1;
            let line = format!(", line {}; error   : {words}", i + 4);
            if !said.lines().any(|l| l.ends_with(&line)) {
                let theirs = said.lines().find(|l| l.contains(&format!(", line {};", i + 4)));
                bad.push(format!("{op} on {}: `{words}`, not {theirs:?}", target.name));
            }
        }
    }
    println!("{compared} refusals compared");
    assert!(compared > 0 && bad.is_empty(), "{} differ:\n{}", bad.len(), bad.join("\n"));
}
