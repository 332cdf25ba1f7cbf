//! The legality matrix agrees with the compiler: 236 operations on every implemented target.
//!
//! The input is `tables/legality/`, and the forms of `tests/cases/legality/forms.txt`, one kernel
//! each. The test checks the sizes. An illegal cell must be rejected with its message, which must
//! equal that of ptxas for every form if ptxas is installed. A native cell must become one
//! instruction with one of the cell's opcodes, besides moves, for each of its forms; an inline one
//! a sequence without branches and a handler one with branches, for each form except those of
//! `lighter.txt` (`SASSAFRAS_BLESS=1` with all targets rewrites it). Some form must be one
//! operation of the family of the cell's recipe until the recipe's phase expands it, or of no
//! family if the recipe belongs to lowering. An unimplemented operation must be rejected by name.
//! Seven targets by default, all with `SASSAFRAS_ORACLE=all`.

use crate::forms;
use crate::forms::{Form, folder, forms, kernel};
use crate::vendor;
use sassafras::compile::{Options, compile};
use sassafras::tables::instructions::{Seen, Wording};
use sassafras::tables::legality::{
    Cell, OPERATIONS, Recipe, Verdict, double_words, known as known_of, planned, special,
};
use sassafras::tables::ptx::OP_BY_NAME;
use sassafras::tables::targets::TARGETS;
use sassafras::tables::{Family, Slot, Target, backend};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The phase after which nothing is left to legalize.
const PHASE: &str = "SetAfterLegalization";

/// The phase name for the output of lowering.
const FIRST: &str = "OriCheckInitialProgram";

/// Opcodes that move or fetch operands, and those without effect.
const MOVES: [&str; 15] = [
    "MOV", "COPY", "PHI", "UNDEF", "UMOV", "R2UR", "LDC", "LDCU", "ULDC", "CS2R", "S2R", "S2UR", "SYNCMASK", "NOP",
    "RET",
];

/// Statements behind which one lane of the warp is left.
const ELECTION: &str = "elect.sync _|%p7, -1; @!%p7 ret; ";

/// What these statements become.
const ELECTED: [&str; 2] = ["ELECT", "EXIT"];

/// Number of instructions per opcode in a function, without unreachable code.
type Counts = BTreeMap<String, i32>;

fn head(target: &str) -> String {
    let version = forms::version(target);
    format!(".version {version}\n.target {target}\n.address_size 64\n")
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

/// A kernel like that of a form, with zeros for its results.
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

/// The opcodes of a form's operation: those of its kernel minus those of the surrounding kernel,
/// minus moves, and minus the selections and comparisons with which the form converts between
/// predicates and numbers. Where lanes take turns although the cell has no branches, they are those
/// of the operation behind an election.
fn own(target: &str, form: &Form, cell: Cell, around: &Counts) -> Result<Counts, String> {
    let mut left = counts(target, &form.kernel, PHASE)?;
    let branches = matches!(cell.verdict(), Verdict::Handler { .. });
    let turns = left.contains_key("BREV") || left.contains_key("ELECT") && left.contains_key("BRA");
    if turns && !branches {
        let elected = form.kernel.replacen(&form.body, &format!("{ELECTION}{}", form.body), 1);
        // No lanes take turns on a target without elections.
        if let Ok(alone) = counts(target, &elected, PHASE) {
            left = alone;
            ELECTED.iter().for_each(|op| *left.entry(op.to_string()).or_insert(0) -= 1);
        }
    }
    around.iter().for_each(|(op, n)| *left.entry(op.clone()).or_insert(0) -= n);
    *left.entry("SEL".into()).or_insert(0) -= form.kernel.matches("selp").count() as i32;
    if !form.name.starts_with("setp") {
        *left.entry("ISETP".into()).or_insert(0) -= form.kernel.matches("setp.").count() as i32;
    }
    // What is loaded from tensor memory is waited for by another operation.
    if form.operation == "tcgen05.ld.red" {
        left.remove("ACQUIRE");
    }
    let meets = left.get("SYNCMASK").is_some_and(|n| *n > 0);
    left.retain(|op, n| *n > 0 && !MOVES.contains(&op.as_str()));
    // Inserted as an instruction of its own once all regions are known; before another operation it
    // is part of that operation's requirements.
    if left.is_empty() && meets {
        left.insert("WARPSYNC".into(), 1);
    }
    Ok(left)
}

/// Whether the form itself branches, so that branches of its kernel prove nothing.
fn branches(form: &Form) -> bool {
    form.kernel.contains("bra") || form.name.contains("divergent")
}

fn built_targets() -> Vec<&'static Target> {
    let all = std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all");
    let few = ["sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120", "sm_107a"];
    TARGETS.iter().filter(|t| t.real && t.generation.is_some() && (all || few.contains(&t.name))).collect()
}

/// The forms of each operation, by the operation's name.
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

/// Operations of which forms are refused by name on some targets only, and those of which the
/// code has not been held against the verdicts.
const PARTLY: [&str; 11] = [
    "istypep",
    "bulk.g2s.multicast",
    "tma.multicast",
    "tex.basic",
    "tex.sparse",
    "txq",
    "tex.grad",
    "tld4",
    "sust_suld.b",
    "sust.p",
    "sured",
];

/// The error of a cell, given the code of its forms, if any.
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
            let partly = PARTLY.contains(&OPERATIONS[usize::from(cell.operation)].name);
            (named.is_empty() && !partly || !other.is_empty())
                .then(|| format!("planned, refused by {named:?} and {other:?}"))
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

/// The forms of a cell that need less than its recipe: one instruction instead of a sequence, or no
/// branch.
fn lighter<'f>(cell: Cell, all: &[(&'f Form, Result<Counts, String>)]) -> Vec<&'f Form> {
    let is = |counts: &Counts| match cell.verdict() {
        Verdict::Inline { .. } => counts.values().sum::<i32>() <= 1,
        Verdict::Handler { .. } => !counts.contains_key("BRA") && !counts.contains_key("CALL"),
        _ => false,
    };
    let built = all.iter().filter(|(form, _)| !branches(form)).filter_map(|(f, c)| Some((*f, c.as_ref().ok()?)));
    built.filter(|(_, counts)| is(counts)).map(|(form, _)| form).collect()
}

/// A form, its operation, and the targets on which it needs less than the cell's recipe.
type Lighter = BTreeMap<String, BTreeSet<String>>;

/// Compares the findings on some targets with `lighter.txt`, or rewrites it.
fn check_lighter(found: &Lighter, tested: &[&str]) {
    let path = folder().join("lighter.txt");
    let line = |(form, targets): (&String, &BTreeSet<String>)| {
        format!("{form}: {}\n", targets.iter().map(String::as_str).collect::<Vec<&str>>().join(" "))
    };
    if std::env::var_os("SASSAFRAS_BLESS").is_some() {
        assert!(std::env::var_os("SASSAFRAS_ORACLE").is_some(), "SASSAFRAS_ORACLE=all: a list of all targets");
        let legend = "// Forms whose cell is a recipe, on targets where they need less: one instruction where it is a sequence (E), no branch where it has some (H).\n";
        std::fs::write(&path, found.iter().map(line).fold(legend.to_string(), |text, line| text + &line)).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let mut listed = Lighter::new();
    for (form, targets) in text.lines().filter(|l| !l.starts_with("//")).filter_map(|l| l.rsplit_once(": ")) {
        let targets: BTreeSet<String> = targets.split(' ').filter(|t| tested.contains(t)).map(str::to_string).collect();
        if !targets.is_empty() {
            listed.insert(form.to_string(), targets);
        }
    }
    let new: String = found.iter().filter(|(form, targets)| listed.get(*form) != Some(*targets)).map(line).collect();
    let stale: String = listed.iter().filter(|(form, targets)| found.get(*form) != Some(*targets)).map(line).collect();
    assert!(new.is_empty() && stale.is_empty(), "found:\n{new}listed:\n{stale}");
}

#[test]
fn every_cell_is_what_the_compiler_does() {
    let forms = forms().1;
    let (operations, targets) = (by_operation(&forms), built_targets());
    let (mut cells, mut bad) = ([0; 4], Vec::new());
    let mut less = Lighter::new();
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
                    (*form, own(target.name, form, cell, around))
                })
                .collect();
            for form in lighter(cell, &all) {
                let name = format!("{} {operation} | {}", cell.verdict().letter(), form.name);
                less.entry(name).or_default().insert(target.name.to_string());
            }
            bad.extend(
                wrong(cell, &all).map(|what| format!("{operation} on {}: {:?}: {what}", target.name, cell.verdict())),
            );
        }
    }
    println!("{} targets: {cells:?} cells are native, inline, handler, illegal", targets.len());
    assert!(bad.is_empty(), "{} cells are not so:\n{}", bad.len(), bad.join("\n"));
    check_lighter(&less, &targets.iter().map(|t| t.name).collect::<Vec<&str>>());
}

/// The families of pseudo-operations that lowering makes of a form.
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

/// The first error about a form on a target.
fn refused(target: &str, form: &Form) -> Option<String> {
    compile(&(head(target) + &form.kernel), &Options::new(target)).err().map(|errors| errors[0].message.clone())
}

/// Whether a message matches a wording, with any text for each pair of braces.
fn is_worded(wording: &str, target: &str, message: &str) -> bool {
    let wording = wording.replace("{target}", target);
    let mut rest = message;
    let mut pieces = wording
        .split('{')
        .enumerate()
        .map(|(i, part)| if i == 0 { part } else { part.split('}').nth(1).unwrap_or("") });
    let Some(behind) = pieces.next().and_then(|first| rest.strip_prefix(first)) else { return false };
    rest = behind;
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.is_empty() || wording.ends_with('}')
}

#[test]
fn an_illegal_cell_is_refused_in_its_words() {
    let forms = forms().1;
    let (mut own, mut others, mut bad) = (0, 0, Vec::new());
    for target in built_targets() {
        let rules: Vec<(&str, &[Wording])> = OPERATIONS
            .iter()
            .filter_map(|o| Some((o.name, Cell::named(o.name, target)?.rule()?.refusal)))
            .filter(|(_, refusal)| !refusal.is_empty())
            .collect();
        for form in forms.iter().filter(|form| rules.iter().any(|(name, _)| *name == form.operation)) {
            let message = refused(target.name, form).unwrap_or_default();
            let said = |refusal: &[Wording]| refusal.iter().any(|w| is_worded(w.text, target.name, &message));
            // A form belongs to several operations, and another one may be reported as illegal
            // first.
            match rules.iter().filter(|(_, refusal)| said(refusal)).map(|(name, _)| *name).collect::<Vec<&str>>() {
                names if names.contains(&form.operation.as_str()) => own += 1,
                names if names.is_empty() => bad.push(format!("{} on {}: {message:?}", form.name, target.name)),
                _ => others += 1,
            }
        }
    }
    println!("{own} forms are refused in the words of their cell, {others} in those of another cell of theirs");
    assert!(own > 10 * others && bad.is_empty(), "{} are not:\n{}", bad.len(), bad.join("\n"));
}

#[test]
fn every_form_is_of_its_operation() {
    let forms = forms().1;
    let mut bad = Vec::new();
    for form in &forms {
        let operation = OPERATIONS.iter().position(|o| o.name == form.operation).unwrap() as u16;
        let body = form.body.replace(['{', '['], "(").replace(['}', ']'], ")");
        let specials = body
            .split('%')
            .skip(1)
            .map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(""));
        let mut of: Vec<u16> = Vec::new();
        for name in specials {
            let seen = Seen { name, words: &[], operands: 0, register: false, pair: false };
            of.extend(special(name).into_iter().flat_map(|named| named.operations(&seen)));
        }
        for statement in body.split(';') {
            of.extend(operations_of(statement));
        }
        if !of.contains(&operation) {
            bad.push(format!("{}: {}", form.operation, form.name));
        }
    }
    assert!(bad.is_empty(), "{} are not:\n{}", bad.len(), bad.join("\n"));
}

/// The operations that an instruction belongs to, by its text and operands.
fn operations_of(statement: &str) -> Vec<u16> {
    let text = statement.trim();
    let text = text.split_once(": ").map_or(text, |(_, behind)| behind);
    let text = if text.starts_with('@') { text.split_once(' ').map_or("", |(_, behind)| behind) } else { text };
    let (name, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let mut parts: Vec<&str> = name.split('.').collect();
    let known = |count: usize| OP_BY_NAME.get_entry(parts[..count].join(".").as_str());
    let mut found = (1..=parts.len()).rev().find_map(|count| known(count).map(|entry| (count, entry)));
    let with_sync = format!("{}.sync", parts[0]);
    let (place, entry) = (parts.iter().position(|p| *p == "sync"), OP_BY_NAME.get_entry(with_sync.as_str()));
    if let (false, Some(place), Some(entry)) = (found.is_some_and(|f| f.1.1.is_some()), place, entry) {
        parts.remove(place);
        found = Some((1, entry));
    }
    // The last part of some names may be anywhere among the others.
    if found.is_none() {
        let anywhere = (1..parts.len()).flat_map(|place| (1..=place).map(move |count| (place, count)));
        let named = |(place, count): (usize, usize)| {
            let name = format!("{}.{}", parts[..count].join("."), parts[place]);
            OP_BY_NAME.get_entry(name.as_str()).map(|entry| (place, count, entry))
        };
        if let Some((place, count, entry)) = anywhere.filter_map(named).max_by_key(|named| named.1) {
            parts.remove(place);
            found = Some((count, entry));
        }
    }
    let Some((count, (name, op))) = found else { return Vec::new() };
    let mut depth = 0;
    let commas = operands.chars().filter(|c| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        *c == ',' && depth == 0
    });
    let (operand_count, outer) =
        (commas.count() + usize::from(!operands.is_empty()), |part: &str| part.trim().starts_with('%'));
    let (register, pair) = (operands.split(',').any(outer), operands.contains('|'));
    let seen = Seen { name, words: &parts[count..], operands: operand_count, register, pair };
    let named = op.map_or_else(|| planned(name), |op| Some(known_of(op)));
    named.into_iter().flat_map(|named| named.operations(&seen)).collect()
}

/// The first message of ptxas about each form, by the line of its kernel.
fn by_ptxas(ptxas: &Path, target: &str, forms: &[&Form]) -> BTreeMap<usize, String> {
    let text = forms.iter().fold(head(target), |text, form| text + &form.kernel);
    let folder = tempfile::tempdir().unwrap();
    let (source, cubin) = (folder.path().join("k.ptx"), folder.path().join("k.cubin"));
    std::fs::write(&source, text).unwrap();
    let run = Command::new(ptxas).args(["-arch", target]).arg(&source).arg("-o").arg(cubin).output().unwrap();
    let mut first = BTreeMap::new();
    for line in String::from_utf8_lossy(&run.stderr).lines() {
        let told = line.split_once(", line ").and_then(|(_, rest)| rest.split_once("; error   : "));
        if let Some((number, message)) = told.and_then(|(number, message)| Some((number.parse().ok()?, message))) {
            first.entry(number).or_insert_with(|| message.to_string());
        }
    }
    first
}

#[test]
fn refusals_are_in_ptxas_words() {
    if vendor::tool("ptxas").is_none() {
        println!("skipped: target/vendor/ptxas is missing");
        return;
    }
    let (columns, forms) = forms();
    let (mut compared, mut bad) = (0, Vec::new());
    for target in built_targets() {
        let Some(column) = columns.iter().position(|name| target.name.strip_prefix("sm_") == Some(name)) else {
            continue;
        };
        let Some(ptxas) = vendor::tool_of("ptxas", &columns[column]) else { continue };
        let illegal: Vec<&Form> = forms.iter().filter(|form| form.verdicts[column] == 'X').collect();
        let theirs = by_ptxas(&ptxas, target.name, &illegal);
        for (i, form) in illegal.iter().enumerate() {
            compared += 1;
            let (ours, theirs) = (refused(target.name, form), theirs.get(&(i + 4)));
            if ours.as_ref() != theirs {
                bad.push(format!("{} on {}: {ours:?}, not {theirs:?}", form.name, target.name));
            }
        }
    }
    println!("{compared} refusals compared");
    assert!(compared > 0 && bad.is_empty(), "{} differ:\n{}", bad.len(), bad.join("\n"));
}
