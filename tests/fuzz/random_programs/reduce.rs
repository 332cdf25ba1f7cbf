//! Reduces a failing program.
//!
//! Given a program and a test for the failure, it returns one from which nothing more can be
//! removed: it removes runs of statements, halves first; replaces branches, loops and graphs by
//! their contents; shortens loops; replaces registers by constants; and drops unused loads and
//! stores. Each step preserves that the ISA determines the program's result.

use super::names::{names, register, replaced};
use super::tree::{End, Program, Statement, shallower};

/// The smallest failing program found.
pub fn reduced(mut program: Program, fails: &dyn Fn(&Program) -> bool) -> Program {
    let lean = Program { lean: true, ..program.clone() };
    if fails(&lean) {
        program = lean;
    }
    loop {
        let before = size(&program);
        program = without_runs(program, fails);
        for change in [simpler as fn(&Statement) -> Vec<Vec<Statement>>, constants] {
            program = changed(program, fails, change);
        }
        let slim = Program { threads: 32, ..program.clone() };
        if program.threads > 32 && fails(&slim) {
            program = slim;
        }
        let alone = Program { cluster: 0, ..program.clone() };
        if program.cluster > 0 && fails(&alone) {
            program = alone;
        }
        for f in 0..program.functions.len() {
            let mut once = program.clone();
            once.functions[f].again = false;
            if program.functions[f].again && fails(&once) {
                program = once;
            }
        }
        if size(&program) >= before {
            return program;
        }
    }
}

/// The kind of a failure, from the message without numbers and names; a smaller program must fail
/// in the same way.
pub fn kind(said: &str) -> String {
    let said = said.split_once("jitter ").map_or(said, |(_, rest)| rest);
    if said.contains(" and not ") {
        return "a difference".to_string();
    }
    let words = said.split_once(": ").map_or(said, |(_, what)| what).split_whitespace();
    let plain = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == ',');
    let stage = ["the program:", "the interpreter:"].iter().find(|stage| said.starts_with(*stage)).unwrap_or(&"");
    stage.to_string() + &words.filter(plain).take(6).collect::<Vec<_>>().join(" ")
}

/// Removes unused definitions, and stores of irrelevant results.
pub fn fewer_lines(mut text: String, fails: &dyn Fn(&str) -> bool) -> String {
    loop {
        let lines: Vec<&str> = text.lines().collect();
        let without = |n: usize| {
            let rest: Vec<&str> = lines.iter().enumerate().filter(|(i, _)| *i != n).map(|(_, line)| *line).collect();
            rest.join("\n") + "\n"
        };
        let takes = |n: &usize| droppable(&lines, *n);
        let less = (0..lines.len()).rev().filter(takes).map(without).find(|less| fails(less));
        match less {
            Some(less) => text = less,
            None => return text,
        }
    }
}

/// Whether a line stores a result, or defines or declares a name that no other line uses.
fn droppable(lines: &[&str], n: usize) -> bool {
    let line = lines[n];
    if line.starts_with("st.") {
        return true;
    }
    if line.starts_with(['@', '{', '}', '.']) && !line.starts_with(".reg") && !line.starts_with(".local")
        || line.contains(['{', ':'])
        || line.matches(';').count() != 1
    {
        return false;
    }
    let Some((_, operands)) = line.split_once(' ') else { return false };
    let made = names(operands).into_iter().next().unwrap_or_default();
    // A new function may reuse names of another one, so its first line stays.
    !line.starts_with('.')
        && !made.is_empty()
        && !lines
            .iter()
            .enumerate()
            .any(|(i, other)| i != n && names(other).contains(&made) && !other.starts_with(".reg"))
}

/// Size measure: characters of the statements.
fn size(program: &Program) -> usize {
    program.text("sm_90", false).len()
}

/// Number of statement lists.
fn list_count(program: &Program) -> usize {
    let mut count = 0;
    program.clone().lists(&mut |_| count += 1);
    count
}

/// The program with one list changed.
fn with_list(program: &Program, number: usize, change: impl Fn(&mut Vec<Statement>)) -> Program {
    let (mut new, mut at) = (program.clone(), 0);
    new.lists(&mut |list| {
        if at == number {
            change(list);
        }
        at += 1;
    });
    new
}

fn list_len(program: &Program, number: usize) -> usize {
    let (mut at, mut len) = (0, 0);
    program.clone().lists(&mut |list| {
        if at == number {
            len = list.len();
        }
        at += 1;
    });
    len
}

/// Removes runs of statements, halves of each list first.
fn without_runs(mut program: Program, fails: &dyn Fn(&Program) -> bool) -> Program {
    let mut number = 0;
    while number < list_count(&program) {
        let mut run = list_len(&program, number).max(1);
        loop {
            let mut from = 0;
            while from < list_len(&program, number) {
                let less = with_list(&program, number, |list| {
                    let to = (from + run).min(list.len());
                    list.drain(from..to);
                });
                if fails(&less) {
                    program = less;
                } else {
                    from += run;
                }
            }
            if run == 1 {
                break;
            }
            run /= 2;
        }
        number += 1;
    }
    program
}

/// For each statement, tries the replacements that `change` gives.
fn changed(
    mut program: Program,
    fails: &dyn Fn(&Program) -> bool,
    change: fn(&Statement) -> Vec<Vec<Statement>>,
) -> Program {
    let mut number = 0;
    while number < list_count(&program) {
        let mut at = 0;
        while at < list_len(&program, number) {
            let mut tries = Vec::new();
            with_list(&program, number, |_| {}).lists(&mut {
                let mut n = 0;
                let tries = &mut tries;
                move |list: &mut Vec<Statement>| {
                    if n == number {
                        *tries = change(&list[at]);
                    }
                    n += 1;
                }
            });
            let fits = tries
                .into_iter()
                .map(|new| with_list(&program, number, |list| _ = list.splice(at..=at, new.iter().cloned()).count()));
            match fits.into_iter().find(|less| size(less) < size(&program) && fails(less)) {
                Some(less) => program = less,
                None => at += 1,
            }
        }
        number += 1;
    }
    program
}

/// The possible replacements of a compound statement.
fn simpler(statement: &Statement) -> Vec<Vec<Statement>> {
    match statement {
        Statement::Plain(text) => pieces(text),
        Statement::Apart(_) => Vec::new(),
        Statement::If { guard, mask, yes, no } => {
            let out = |list: &[Statement]| match mask {
                Some(m) => shallower(list, *m),
                None => list.to_vec(),
            };
            let only = |yes: &[Statement], no: &[Statement]| {
                vec![Statement::If { guard: guard.clone(), mask: *mask, yes: yes.to_vec(), no: no.to_vec() }]
            };
            vec![[out(yes), out(no)].concat(), out(yes), out(no), only(yes, &[]), only(&[], no)]
        }
        Statement::Loop { times, more, body } => {
            let again = |times: u32| vec![Statement::Loop { times, more: None, body: body.clone() }];
            let mut all = vec![body.clone()];
            if more.is_some() || *times > 1 {
                all.extend([again(1), again(2)]);
            }
            all
        }
        // Its statements name values that only it loads.
        Statement::Crowd { .. } => Vec::new(),
        Statement::Graph(nodes) => {
            let mut all = vec![nodes.iter().flat_map(|node| node.body.clone()).collect()];
            for n in 0..nodes.len() {
                let mut next = nodes.clone();
                next[n].end = End::Next;
                all.push(vec![Statement::Graph(next)]);
            }
            all
        }
    }
}

/// A multi-instruction text without one of its instructions, except declarations and labels.
fn pieces(text: &str) -> Vec<Vec<Statement>> {
    // Address, carry and barrier sequences must stay complete.
    let whole = ["cv", "gv", "sh", "lo", "acc", "mapa", ".cc", "sync", "bar"];
    if text.contains(['{', ':']) || text.matches(';').count() < 2 || whole.iter().any(|part| text.contains(part)) {
        return Vec::new();
    }
    let all: Vec<&str> = text.split_inclusive(';').collect();
    let without = |n: usize| {
        let rest: Vec<&str> = all.iter().enumerate().filter(|(i, _)| *i != n).map(|(_, t)| t.trim()).collect();
        vec![Statement::Plain(rest.join(" "))]
    };
    // A definition of a scratch register must stay, because later instructions would read an
    // undefined value.
    let scratch = ["a", "b", "w", "q", "b2"];
    let makes = |text: &str| {
        let (_, operands) = text.trim().split_once(' ').unwrap_or_default();
        names(operands).first().is_some_and(|first| scratch.contains(&first.as_str()))
    };
    (0..all.len()).filter(|n| !makes(all[*n])).map(without).collect()
}

/// An instruction with one source replaced by a constant.
fn constants(statement: &Statement) -> Vec<Vec<Statement>> {
    let Statement::Plain(text) = statement else { return Vec::new() };
    if text.contains(['{', '[', ':']) || text.matches(';').count() != 1 {
        return Vec::new();
    }
    let Some((front, sources)) = text.split_once(',') else { return Vec::new() };
    let mut out = Vec::new();
    for name in names(sources).into_iter().filter(|name| register(name).is_some_and(|(kind, _)| "rdh".contains(kind))) {
        let new = replaced(sources, |word| (word == name).then(|| "1".to_string()));
        out.push(vec![Statement::Plain(format!("{front},{new}"))]);
    }
    out
}
