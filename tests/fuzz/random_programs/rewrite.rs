//! Rewrites a program into an equivalent one.
//!
//! Each statement stays or is replaced by another form of itself; the program leaves the same
//! memory. No rewrite changes which lanes reach an operation of a warp or block, and none makes
//! scratch registers live across statements.

use super::crowd;
use super::make::{guard, register};
use super::names::{names, registers};
use super::tree::{Program, Statement};
use crate::random::Random;

/// An equivalent program.
pub fn rewritten(program: &Program, random: &mut Random) -> Program {
    let mut new = Program { renamed: random.below(2) == 0, ..program.clone() };
    new.body = list(&new.body, random);
    for function in &mut new.functions {
        function.body = list(&function.body, random);
    }
    new
}

fn list(old: &[Statement], random: &mut Random) -> Vec<Statement> {
    let mut out: Vec<Statement> = Vec::new();
    for statement in old {
        let statement = inside(statement, random);
        if random.below(6) == 0 {
            out.push(Statement::Plain(nothing(random)));
        }
        let swaps = out.last().is_some_and(|last| independent(last, &statement)) && random.below(3) == 0;
        if swaps {
            let last = out.pop();
            out.push(statement);
            out.extend(last);
        } else if random.below(3) == 0 {
            out.extend(otherwise(statement, random));
        } else {
            out.push(statement);
        }
    }
    out
}

/// A statement with its contents rewritten.
fn inside(statement: &Statement, random: &mut Random) -> Statement {
    match statement {
        Statement::Plain(_) | Statement::Apart(_) => statement.clone(),
        Statement::If { guard, mask, yes, no } => {
            Statement::If { guard: guard.clone(), mask: *mask, yes: list(yes, random), no: list(no, random) }
        }
        Statement::Loop { times, more, body } => {
            Statement::Loop { times: *times, more: more.clone(), body: list(body, random) }
        }
        Statement::Crowd { size, body } => Statement::Crowd { size: *size, body: list(body, random) },
        Statement::Graph(nodes) => {
            let mut nodes = nodes.clone();
            nodes.iter_mut().for_each(|node| node.body = list(&node.body, random));
            Statement::Graph(nodes)
        }
    }
}

/// The same statement in another form.
fn otherwise(statement: Statement, random: &mut Random) -> Vec<Statement> {
    match statement {
        Statement::If { guard, mask, yes, no } => {
            let guard = guard.strip_prefix('!').map_or_else(|| format!("!{guard}"), str::to_string);
            vec![Statement::If { guard, mask, yes: no, no: yes }]
        }
        Statement::Loop { times, more: None, body } if times > 1 => {
            let first = 1 + random.below(times as usize - 1) as u32;
            let part = |times| Statement::Loop { times, more: None, body: body.clone() };
            vec![part(first), part(times - first)]
        }
        Statement::Plain(text) => {
            let alone = !together(&text);
            match random.below(3) {
                0 if alone => {
                    let both = vec![Statement::Plain(text)];
                    vec![Statement::If { guard: guard(random), mask: None, yes: both.clone(), no: both }]
                }
                1 => vec![Statement::Loop { times: 1, more: None, body: vec![Statement::Plain(text)] }],
                _ => vec![Statement::Plain(swapped(&text).unwrap_or(text))],
            }
        }
        other => vec![other],
    }
}

/// Whether it synchronises lanes.
fn together(text: &str) -> bool {
    ["sync", "bar", "activemask", "elect", "vote", "mma", "matrix", "%lanemask"].iter().any(|part| text.contains(part))
}

/// One instruction with its commutative sources swapped.
fn swapped(text: &str) -> Option<String> {
    const COMMUTATIVE: [&str; 16] = [
        "add.",
        "mul.",
        "mul24.",
        "mad.lo",
        "mad.hi",
        "mad.wide",
        "fma.",
        "and.b",
        "or.b",
        "xor.b",
        "min.",
        "max.",
        "setp.eq.",
        "setp.ne.",
        "sad.",
        "dp4a.u32.u32",
    ];
    let (op, operands) = text.strip_suffix(';')?.split_once(' ')?;
    let one = text.matches(';').count() == 1 && !text.contains(['[', '{']);
    let fits = one && COMMUTATIVE.iter().any(|some| op.starts_with(some));
    let parts: Vec<&str> = operands.split(',').collect();
    // Mixed-precision instructions have sources of two kinds.
    let kinds = || [parts[1].trim().chars().next(), parts[2].trim().chars().next()];
    let plain = |part: &&str| registers(part).len() == 1 && !part.contains(['!', '-']) && kinds()[0] == kinds()[1];
    if !fits || op.contains("oob") || parts.len() < 3 || !parts[1..3].iter().all(plain) || op.contains(".cc") {
        return None;
    }
    let mut swapped = parts.clone();
    swapped.swap(1, 2);
    Some(format!("{op} {};", swapped.join(",")))
}

/// Whether two statements may be swapped: single-thread texts without a common register, at most
/// one of which accesses memory.
fn independent(one: &Statement, two: &Statement) -> bool {
    let (Statement::Plain(one), Statement::Plain(two)) = (one, two) else { return false };
    let memory = |text: &str| text.contains('[') || text.contains("call") || text.contains(".cc");
    let ends = |text: &str| {
        text.contains("ret;") || text.contains("exit;") || text.contains("fence") || text.contains("membar")
    };
    if [one, two].iter().any(|text| together(text) || ends(text)) || memory(one) && memory(two) {
        return false;
    }
    let (first, second) = (names(one), registers(two));
    let amount = |text: &str| text.contains("amount");
    let meet = second.iter().any(|name| first.contains(name)) || crowd::named(one) && crowd::named(two);
    !(meet || amount(one) && amount(two))
}

/// A statement without observable effect.
fn nothing(random: &mut Random) -> String {
    let [r, r2, d, f, e, h] = ['r', 'r', 'd', 'f', 'e', 'h'].map(|kind| register(random, kind));
    let p = register(random, 'p');
    let texts = [
        format!("add.u32 {r}, {r}, 0;"),
        format!("and.b32 a, t, 0x400; add.u32 {r}, {r}, a;"),
        format!("and.b32 a, t, 0x400; xor.b32 {r}, a, {r};"),
        format!("mul.lo.u32 {r}, {r}, 1;"),
        format!("not.b32 {r}, {r}; not.b32 {r}, {r};"),
        format!("sub.u32 a, {r}, {r2}; add.u32 {r}, a, {r2};"),
        format!("xor.b32 a, {r}, {r2}; xor.b32 {r}, a, {r2};"),
        format!("selp.b32 {r}, {r}, {r}, {p};"),
        format!("min.u32 {r}, {r}, {r};"),
        format!("mov.b64 {{a, w}}, {d}; mov.b64 {d}, {{a, w}};"),
        format!("shl.b64 b, {d}, 32; shr.u64 b, b, 32; shr.u64 b2, {d}, 32; shl.b64 b2, b2, 32; or.b64 {d}, b, b2;"),
        format!("add.u64 {d}, {d}, 0;"),
        format!("neg.s64 b, {d}; neg.s64 {d}, b;"),
        format!("mov.b32 a, {f}; mov.b32 {f}, a;"),
        format!("mov.b64 b, {e}; mov.b64 {e}, b;"),
        format!("cvt.u32.u16 a, {h}; cvt.u16.u32 {h}, a;"),
        format!("not.pred {p}, {p}; not.pred {p}, {p};"),
        format!("setp.eq.u32 q, t, 1077; @q mov.u32 {r}, 5;"),
        // Defines only registers that nothing reads.
        format!("mad.lo.u32 a, {r}, {r2}, 7;"),
        format!("setp.lt.u32 q, {r}, {r2};"),
        "ld.global.b32 a, [io+16];".to_string(),
        format!("popc.b64 a, {d}; add.u32 a, a, 1; clz.b32 w, a;"),
    ];
    texts[random.below(texts.len())].clone()
}
