//! Random programs whose result the ISA fixes.
//!
//! Input: a seed. Output: a module with one kernel of [`THREADS`] threads a block, which loads registers of every kind from its thread's row
//! of the buffer, executes a random tree of statements (the forms of `tests/cases/lowering/forms.txt`, branches on values that differ by lane,
//! bounded loops, guards, accesses to memory of its own, calls), and stores every register and the memory back into its row.
//! Invariant: every register has a value before it is read, every loop ends, no access leaves the thread's own bytes, and nothing
//! in a program is left to the implementation: operations with an error bound, those across lanes and the bits of a NaN of 64 bits are not
//! taken.

use crate::random::Random;

/// Threads of a block.
pub const THREADS: usize = 32;
/// Bytes of global memory per thread.
pub const STRIDE: usize = 512;
/// Registers of each kind: letter, type, bytes, how many, and where they are loaded from.
const KINDS: [(char, &str, usize, usize, usize); 5] = [
    ('r', "b32", 4, 12, 0),
    ('d', "b64", 8, 8, 48),
    ('f', "f32", 4, 8, 112),
    ('e', "f64", 8, 6, 144),
    ('h', "b16", 2, 8, 192),
];
/// Predicates.
const PREDICATES: usize = 6;
/// Where results begin, and where the thread's own memory lies.
pub const RESULTS: usize = 256;
const SCRATCH: usize = 480;
/// Nested branches and loops.
const DEPTH: usize = 4;

/// A statement of a program.
#[derive(Clone, Debug)]
pub enum Statement {
    /// Text as it stands, each instruction with its semicolon.
    Plain(String),
    /// `@p { … } else { … }`; the guard's text.
    If(String, Vec<Statement>, Vec<Statement>),
    /// So many times, plus those low bits of a register.
    Loop { times: u32, more: Option<(String, u32)>, body: Vec<Statement> },
}

/// One program: the kernel's statements, and those of each function that it calls.
#[derive(Clone, Debug)]
pub struct Program {
    body: Vec<Statement>,
    functions: Vec<Vec<Statement>>,
}

/// What may stand in a list of statements.
#[derive(Clone, Copy)]
struct Place<'p> {
    pool: &'p [String],
    /// Memory of the thread's own has names.
    memory: bool,
    /// Functions that may be called: those from this number on.
    calls: usize,
}

/// Most functions of a program.
const FUNCTIONS: usize = 3;

/// Words in a form by which its result is not fixed, or it acts on more than its thread's registers.
const LEFT_OUT: [&str; 34] = [
    "[",
    ".sync",
    "approx",
    "ex2",
    "lg2",
    "tanh",
    "sin",
    "cos",
    "rsqrt",
    "bar",
    "vote",
    "shfl",
    "match",
    "activemask",
    "fence",
    "div.",
    "rem.",
    "membar",
    "prefetch",
    "pmevent",
    "nanosleep",
    "isspacep",
    "cvta",
    "atom",
    "red",
    "%",
    ":",
    "discard",
    "mov.b64",
    "abs.f",
    "neg.f",
    "abs.b",
    "neg.b",
    "copysign.f64",
];

/// Forms that take registers and constants alone.
pub fn pool(forms: &str, target: u32) -> Vec<String> {
    let mut out = Vec::new();
    for line in forms.lines().filter(|l| !l.starts_with("//") && !l.is_empty()) {
        let (text, note) = line.split_once(" // ").unwrap_or((line, ""));
        let (range, text) = text.strip_prefix('[').and_then(|t| t.split_once("] ")).unwrap_or(("0", text));
        let (from, to) = range.split_once('-').unwrap_or((range, "999"));
        // A form of the targets with their own set of instructions: these programs are for the others.
        let own_set = range.ends_with('a');
        let here = !own_set && (from.parse().unwrap_or(0)..=to.parse().unwrap_or(999)).contains(&target);
        let words = |t: &str| {
            t.split(|c: char| !c.is_ascii_alphanumeric())
                .any(|w| matches!(w, "io" | "s" | "lo" | "t" | "gv" | "cv" | "sh"))
        };
        if here && note.is_empty() && !LEFT_OUT.iter().any(|w| text.contains(w)) && !words(text) && !text.contains('{')
        {
            out.push(text.to_string());
        }
    }
    out
}

/// A random program.
pub fn program(seed: u64, pool: &[String]) -> Program {
    let mut random = Random::new(seed);
    let size = 4 + random.below(36);
    let calls = random.below(FUNCTIONS + 1);
    let place = Place { pool, memory: true, calls };
    let body = list(&mut random, place, size, 0);
    let function = |number| {
        // A function calls those behind it, so that there is no recursion.
        let place = Place { memory: false, calls: number + 1, ..place };
        let size = 2 + random.below(12);
        list(&mut random, place, size, 1)
    };
    Program { body, functions: (0..FUNCTIONS).map(function).collect() }
}

fn list(random: &mut Random, place: Place, size: usize, depth: usize) -> Vec<Statement> {
    (0..size).map(|_| statement(random, place, depth)).collect()
}

fn statement(random: &mut Random, place: Place, depth: usize) -> Statement {
    let inner = |random: &mut Random| 1 + random.below(8 / (depth + 1));
    match random.below(20) {
        0 | 1 if depth < DEPTH => {
            let (guard, yes, no) = (guard(random), inner(random), random.below(3));
            Statement::If(guard, list(random, place, yes, depth + 1), list(random, place, no, depth + 1))
        }
        2 if depth < DEPTH => {
            let more = (random.below(2) == 0).then(|| (register(random, 'r'), [1, 3][random.below(2)]));
            let (times, size) = (1 + random.below(3) as u32, inner(random));
            Statement::Loop { times, more, body: list(random, place, size, depth + 1) }
        }
        3 | 4 if place.memory => Statement::Plain(access(random)),
        6 if place.calls < FUNCTIONS => Statement::Plain(call(random, place.calls)),
        5 => Statement::Plain(transfer(random)),
        n => {
            let form = &place.pool[random.below(place.pool.len())];
            let single = form.matches(';').count() == 1;
            let text = rename(random, form);
            Statement::Plain(if n < 8 && single && !text.starts_with('@') {
                format!("@{} {text}", guard(random))
            } else {
                text
            })
        }
    }
}

fn register(random: &mut Random, kind: char) -> String {
    let count = KINDS.iter().find(|k| k.0 == kind).map_or(PREDICATES, |k| k.3);
    format!("{kind}{}", random.below(count))
}

fn guard(random: &mut Random) -> String {
    let sign = if random.below(2) == 0 { "!" } else { "" };
    sign.to_string() + &register(random, 'p')
}

/// A value from one kind of register to another.
fn transfer(random: &mut Random) -> String {
    let [r, r2, d, f, e, h, h2] = ['r', 'r', 'd', 'f', 'e', 'h', 'h'].map(|kind| register(random, kind));
    let texts = [
        format!("mov.b32 {f}, {r};"),
        format!("mov.b32 {r}, {f};"),
        format!("mov.b64 {e}, {d};"),
        format!("mov.b64 {d}, {{{r}, {r2}}};"),
        format!("mov.b32 {r}, {{{h}, {h2}}};"),
        format!("mov.u32 {r}, {};", [0u32, 1, 31, 0x8000_0000, 0xffff_ffff, 7, 0x1_0000][random.below(7)]),
        format!("mov.u64 {d}, {};", [0u64, 1, 0xffff_ffff, 1 << 63, u64::MAX][random.below(5)]),
        format!("mov.u16 {h}, {};", [0, 1, 0x8000, 0xff][random.below(4)]),
        format!("cvt.u64.u32 {d}, {r};"),
        format!("cvt.s64.s32 {d}, {r};"),
        format!("cvt.u32.u64 {r}, {d};"),
        format!("cvt.u16.u32 {h}, {r};"),
    ];
    texts[random.below(texts.len())].clone()
}

/// A load or a store in the thread's own bytes of one space.
fn access(random: &mut Random) -> String {
    let (kind, ty, bytes) = [
        ('r', "u8", 1),
        ('r', "s8", 1),
        ('h', "u16", 2),
        ('r', "s16", 2),
        ('r', "b32", 4),
        ('f', "f32", 4),
        ('d', "s32", 4),
        ('d', "b64", 8),
    ][random.below(8)];
    let (space, base, wide) =
        [("shared", "own", false), ("local", "stack", false), ("global", "scratch", true), ("", "scratch", true)]
            [random.below(4)];
    let (index, data) = (register(random, 'r'), register(random, kind));
    let mask = 31 & !(bytes - 1);
    let address = if wide {
        format!("and.b32 a, {index}, {mask}; cvt.u64.u32 b, a; add.u64 b, b, {base};")
    } else {
        format!("and.b32 a, {index}, {mask}; add.u32 a, a, {base};")
    };
    let at = if wide { "b" } else { "a" };
    let space = if space.is_empty() { String::new() } else { format!(".{space}") };
    match random.below(2) {
        0 => format!("{address} ld{space}.{ty} {data}, [{at}];"),
        _ => format!("{address} st{space}.{ty} [{at}], {data};"),
    }
}

/// A call of one of the functions from a number on.
fn call(random: &mut Random, from: usize) -> String {
    let number = from + random.below(FUNCTIONS - from);
    let [r, r2, r3] = [(); 3].map(|()| register(random, 'r'));
    let [d, d2, d3] = [(); 3].map(|()| register(random, 'd'));
    format!(
        "{{ .param .b32 x; .param .b64 y; .param .align 8 .b8 z[16]; .param .align 8 .b8 out[16]; st.param.b32 [x], {r}; \
         st.param.b64 [y], {d}; st.param.b32 [z+4], {r2}; st.param.b64 [z+8], {d2}; call (out), fun{number}, (x, y, z); \
         ld.param.b32 {r3}, [out+4]; ld.param.b64 {d3}, [out+8]; }}"
    )
}

/// A function: registers of every kind made from its parameters, its statements, two of its registers as the result.
fn function(number: usize, body: &[Statement], labels: &mut usize) -> String {
    let parameters = "(.param .b32 x, .param .b64 y, .param .align 8 .b8 z[16])";
    let mut text = format!(".func (.param .align 8 .b8 out[16]) fun{number}{parameters}\n{{\n{}", declarations());
    text += "ld.param.b32 r0, [x];\nld.param.b64 d0, [y];\nld.param.b32 r1, [z+4];\nld.param.b64 d1, [z+8];\n";
    for (kind, _, bytes, count, _) in KINDS {
        for i in 0..count {
            text += &match (kind, i) {
                ('r' | 'd', 0 | 1) => String::new(),
                ('r' | 'd', _) => {
                    let (bits, one, two) = (8 * bytes, i - 1, i - 2);
                    format!("mad.lo.u{bits} {kind}{i}, {kind}{one}, {}, {kind}{two};\n", 77 + i)
                }
                ('h', _) => format!("cvt.u16.u32 h{i}, r{i};\n"),
                ('f', _) => format!("mov.b32 f{i}, r{i};\n"),
                _ => format!("mov.b64 {kind}{i}, d{i};\n"),
            };
        }
    }
    text += &predicates();
    write(body, 1, labels, &mut text);
    text + "st.param.b32 [out+4], r3;\nst.param.b64 [out+8], d2;\nret;\n}\n"
}

/// Every register that a list of statements may name.
fn declarations() -> String {
    let kinds = KINDS.iter().map(|(kind, ty, _, count, _)| format!(".reg .{ty} {kind}<{count}>;\n"));
    let words = format!("a, t, own, stack, amount, c<{0}>, n<{0}>", DEPTH + 1);
    let rest = format!(".reg .pred p<{PREDICATES}>, q;\n.reg .b32 {words};\n.reg .b64 b, io, scratch;\n");
    kinds.collect::<String>() + &rest
}

/// The first values of the predicates, and a number from 0 to 63.
fn predicates() -> String {
    let one = |i| format!("setp.lt.s32 p{i}, r{i}, r{};\n", i + 5);
    (0..PREDICATES).map(one).collect::<String>() + "and.b32 amount, r3, 63;\n"
}

/// A form with other registers. The second and later names of a register in a form of several instructions stay the same register.
fn rename(random: &mut Random, form: &str) -> String {
    let mut names: Vec<(String, String)> = Vec::new();
    let mut out = String::new();
    let mut rest = form;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric() || c == '_') {
        out += &rest[..start];
        rest = &rest[start..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind;
        let kind = match word.chars().next() {
            Some('x') => 'r',
            Some('g') => 'h',
            Some(c) => c,
            None => ' ',
        };
        let numbered = word.len() == 2 && word[1..].chars().all(|c| c.is_ascii_digit());
        // What stands behind a dot is a modifier or a type: `.f64` has three letters, `.s8` and the like are no registers of ours.
        let is_register = numbered && "rdfehp".contains(kind) && !out.ends_with('.');
        if !is_register {
            out += word;
            continue;
        }
        let known = names.iter().find(|n| n.0 == word).map(|n| n.1.clone());
        let new = known.unwrap_or_else(|| if word == "r9" { "amount".to_string() } else { register(random, kind) });
        names.push((word.to_string(), new.clone()));
        out += &new;
    }
    out + rest
}

impl Program {
    /// Number of statements.
    pub fn count(&self) -> usize {
        count(&self.body) + self.functions.iter().map(|f| count(f)).sum::<usize>()
    }

    /// The program without its statement of that number; or, of a branch or a loop, with what is in it in its place.
    pub fn without(&self, mut number: usize, flatten: bool) -> Program {
        let body = without(&self.body, &mut number, flatten);
        let functions = self.functions.iter().map(|f| without(f, &mut number, flatten)).collect();
        Program { body, functions }
    }

    /// The module for a target.
    pub fn text(&self, target: &str) -> String {
        let mut labels = 0;
        let head = format!(".version 9.0\n.target {target}\n.address_size 64\n\n");
        // What is called stands before.
        let functions = self.functions.iter().enumerate().rev();
        let functions = functions.map(|(number, body)| function(number, body, &mut labels)).collect::<String>();
        let mut text = head + &functions + ".visible .entry k(.param .u64 p)\n{\n" + &declarations();
        text += &format!(".shared .align 16 .b8 sh[{}];\n.local .align 16 .b8 lo[32];\n", 32 * THREADS);
        text += "ld.param.u64 io, [p];\nmov.u32 t, %tid.x;\n";
        text += &format!("mad.wide.u32 io, t, {STRIDE}, io;\nadd.u64 scratch, io, {SCRATCH};\n");
        text += "mov.u32 own, sh;\nmad.lo.u32 own, t, 32, own;\nmov.u32 stack, lo;\n";
        for (kind, ty, bytes, count, from) in KINDS {
            (0..count).for_each(|i| text += &format!("ld.global.{ty} {kind}{i}, [io+{}];\n", from + bytes * i));
        }
        text += &predicates();
        for i in 0..4 {
            text += &format!(
                "st.shared.b64 [own+{0}], d{i};\nst.local.b64 [stack+{0}], d{1};\nst.global.b64 [scratch+{0}], d{2};\n",
                8 * i,
                i + 1,
                i + 2
            );
        }
        write(&self.body, 0, &mut labels, &mut text);
        for (kind, ty, bytes, count, from) in KINDS {
            (0..count)
                .for_each(|i| text += &format!("st.global.{ty} [io+{}], {kind}{i};\n", RESULTS + from + bytes * i));
        }
        text += "mov.u32 a, 0;\n";
        (0..PREDICATES).for_each(|i| text += &format!("selp.b32 t, {}, 0, p{i};\nor.b32 a, a, t;\n", 1 << i));
        text += &format!("st.global.b32 [io+{}], a;\n", RESULTS + 212);
        for i in 0..4 {
            text += &format!(
                "ld.shared.b64 b, [own+{0}];\nst.global.b64 [io+{0}], b;\nld.local.b64 b, [stack+{0}];\nst.global.b64 [io+{1}], b;\n",
                8 * i,
                32 + 8 * i
            );
        }
        text + "ret;\n}\n"
    }
}

fn write(list: &[Statement], depth: usize, labels: &mut usize, text: &mut String) {
    for statement in list {
        match statement {
            Statement::Plain(line) => *text += &format!("{line}\n"),
            Statement::If(guard, yes, no) => {
                let label = *labels;
                *labels += 1;
                *text += &format!("@{guard} bra YES{label};\n");
                write(no, depth + 1, labels, text);
                *text += &format!("bra END{label};\nYES{label}:\n");
                write(yes, depth + 1, labels, text);
                *text += &format!("END{label}:\n");
            }
            Statement::Loop { times, more, body } => {
                let label = *labels;
                *labels += 1;
                let more = more.as_ref().map_or(String::new(), |(reg, mask)| {
                    format!("and.b32 n{depth}, {reg}, {mask};\nadd.u32 n{depth}, n{depth}, {times};\n")
                });
                let bound = if more.is_empty() { format!("mov.u32 n{depth}, {times};\n") } else { more };
                *text += &format!("{bound}mov.u32 c{depth}, 0;\nTOP{label}:\n");
                write(body, depth + 1, labels, text);
                *text += &format!(
                    "add.u32 c{depth}, c{depth}, 1;\nsetp.lt.u32 q, c{depth}, n{depth};\n@q bra TOP{label};\n"
                );
            }
        }
    }
}

/// Number of statements in a tree.
fn count(list: &[Statement]) -> usize {
    let inner = |s: &Statement| match s {
        Statement::Plain(_) => 1,
        Statement::If(_, yes, no) => 1 + count(yes) + count(no),
        Statement::Loop { body, .. } => 1 + count(body),
    };
    list.iter().map(inner).sum()
}

/// The tree without its statement of that number, in order of the text; or, of a branch or a loop, with what is in it in its place.
fn without(list: &[Statement], number: &mut usize, flatten: bool) -> Vec<Statement> {
    let mut out = Vec::new();
    for statement in list {
        let here = *number == 0;
        *number = number.wrapping_sub(1);
        match statement {
            Statement::Plain(_) if here => {}
            Statement::If(_, yes, no) if here && flatten => out.extend(yes.iter().chain(no).cloned()),
            Statement::Loop { body, .. } if here && flatten => out.extend(body.iter().cloned()),
            _ if here => {}
            Statement::Plain(_) => out.push(statement.clone()),
            Statement::If(guard, yes, no) => {
                let yes = without(yes, number, flatten);
                out.push(Statement::If(guard.clone(), yes, without(no, number, flatten)));
            }
            Statement::Loop { times, more, body } => {
                let body = without(body, number, flatten);
                out.push(Statement::Loop { times: *times, more: more.clone(), body });
            }
        }
    }
    out
}
