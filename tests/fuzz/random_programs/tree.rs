//! A random program as a tree of statements, and the text of its module.
//!
//! Every thread has a row of the buffer: its inputs, its results, and slots for results that are
//! judged separately. After the rows come the totals that all threads add to. A program with parts
//! removed is still a valid program, which the reducer relies on.

use super::arguments::{self, Argument};
use super::coverage::VERSION;
use super::crowd;
use super::names::{names, register, replaced};
use super::pool::Judged;
use sassafras::tables::Target;
use std::collections::BTreeSet;

/// Bytes of global memory per thread.
pub const STRIDE: usize = 1536;
/// Registers of each kind: letter, type, bytes, count, and offset of their inputs.
pub const KINDS: [(char, &str, usize, usize, usize); 5] = [
    ('r', "b32", 4, 12, 0),
    ('d', "b64", 8, 8, 48),
    ('f', "f32", 4, 8, 112),
    ('e', "f64", 8, 6, 144),
    ('h', "b16", 2, 8, 192),
];
/// Predicates.
pub const PREDICATES: usize = 6;
/// Memory of the thread's own for forms: 32 bytes.
const SCRATCH: usize = 128;
/// Scratch bytes that forms may overwrite and nothing compares.
pub const LOST: std::ops::Range<usize> = 384..512;
/// Offset of the results.
pub const RESULTS: usize = 512;
/// Result slots that are judged separately: first offset, bytes of each, count.
pub const SLOTS: (usize, usize, usize) = (768, 128, 6);
/// Bytes after the rows: the shared totals, and then read-only data.
pub const SHARED_BY_ALL: usize = 128 + 256;
/// A thread's own bytes in shared and local memory.
pub const OWN: usize = 32;
/// A thread's part of the block's tile of shared memory.
pub const OWN_TILE: usize = 128;
/// Maximum nesting of branches and loops.
pub const DEPTH: usize = 4;
/// Maximum number of functions of a program.
pub const FUNCTIONS: usize = 3;
/// Maximum number of backward branches of a graph.
const FUEL: u32 = 3;

/// A statement of a program.
#[derive(Clone, Debug)]
pub enum Statement {
    /// Literal text; each instruction ends in a semicolon.
    Plain(String),
    /// Text whose results go only into a slot.
    Apart(String),
    /// `@p { … } else { … }`: the guard, whether the lanes inside get their mask, and the nesting
    /// depth of those masks.
    If { guard: String, mask: Option<usize>, yes: Vec<Statement>, no: Vec<Statement> },
    /// A loop: a fixed count plus the low bits of a register.
    Loop { times: u32, more: Option<(String, u32)>, body: Vec<Statement> },
    /// Blocks with arbitrary branches between them.
    Graph(Vec<Node>),
    /// Statements during which a crowd of values of their own (`crowd.rs`) is alive.
    Crowd { size: usize, body: Vec<Statement> },
}

/// A block of a graph and its terminator.
#[derive(Clone, Debug)]
pub struct Node {
    pub body: Vec<Statement>,
    pub end: End,
}

/// A terminator. Block numbers past the last one mean the end of the graph; a branch that is not
/// taken falls through to the next block.
#[derive(Clone, Debug)]
pub enum End {
    Next,
    Jump(usize),
    /// A guarded branch.
    Branch(String, usize),
    /// An indexed branch by the low bits of a register.
    Switch(String, Vec<usize>),
}

/// A function that can be called.
#[derive(Clone, Debug, Default)]
pub struct Function {
    pub body: Vec<Statement>,
    /// Whether it calls itself at its end.
    pub again: bool,
}

/// A slot for a result that is judged separately.
#[derive(Clone, Debug)]
pub struct Slot {
    pub form: String,
    pub judged: Judged,
}

/// One program: the statements of the kernel and of each function.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub body: Vec<Statement>,
    pub functions: Vec<Function>,
    pub slots: Vec<Slot>,
    pub threads: usize,
    /// Blocks of the cluster that the grid is; 0 if it is one block without a cluster.
    pub cluster: usize,
    /// Whether threads may exit early; nothing then waits for all of them.
    pub early: bool,
    /// Whether only the registers that statements name are loaded and stored.
    pub lean: bool,
    /// Whether the registers of each kind are renamed in rotation.
    pub renamed: bool,
}

impl Program {
    /// Blocks of the grid.
    pub fn blocks(&self) -> usize {
        self.cluster.max(1)
    }

    /// Threads of the grid, each with a row of the buffer.
    pub fn rows(&self) -> usize {
        self.threads * self.blocks()
    }

    /// Size of the buffer in bytes.
    pub fn bytes(&self) -> usize {
        STRIDE * self.rows() + SHARED_BY_ALL
    }

    /// The arguments beside the buffer: those that the kernel names.
    pub fn arguments(&self) -> Vec<Argument> {
        arguments::named(&names(&self.bodies(false).1))
    }

    /// Calls `f` on every list of statements, outer ones first.
    pub fn lists(&mut self, f: &mut impl FnMut(&mut Vec<Statement>)) {
        each_list(&mut self.body, f);
        self.functions.iter_mut().for_each(|function| each_list(&mut function.body, f));
    }

    /// The module for a target; for the interpreter, without the statements it does not support.
    pub fn text(&self, target: &str, interpreted: bool) -> String {
        let (functions, body) = self.bodies(interpreted);
        // Statements that the interpreter skips may name registers; both modules must load and
        // store the same ones.
        let (all_functions, all_body) = if interpreted { self.bodies(false) } else { Default::default() };
        let named = if interpreted { [&all_functions, &all_body] } else { [&functions, &body] };
        let own: BTreeSet<String> = names(named[1]).into_iter().collect();
        let all = names(named[0]).into_iter().chain(own.iter().cloned()).collect();
        let head = self.head(target, &all);
        let text = functions.clone() + &self.kernel(&body, &own, &all);
        head + &if self.renamed { turned(&text) } else { text }
    }

    /// The called functions, and the statements of the kernel.
    fn bodies(&self, interpreted: bool) -> (String, String) {
        let mut writer = Writer { labels: 0, interpreted, text: String::new() };
        writer.list(&self.body, 0);
        let body = std::mem::take(&mut writer.text);
        let mut functions = String::new();
        // Callees come before their callers.
        for (number, function) in self.functions.iter().enumerate().rev() {
            let name = format!("fun{number}");
            let called = body.contains(&name) || self.functions.iter().any(|f| format!("{f:?}").contains(&name));
            if called {
                writer.function(number, function);
                functions += &std::mem::take(&mut writer.text);
            }
        }
        (functions, body)
    }

    fn head(&self, target: &str, rest: &BTreeSet<String>) -> String {
        let sh = OWN * self.threads;
        let version = version(target);
        let mut text =
            format!(".version {version}\n.target {target}\n.address_size 64\n\n.shared .align 16 .b8 sh[{sh}];\n");
        let named = |name: &str| !self.lean || rest.contains(name);
        if named("common") {
            text += ".shared .align 16 .b8 common[64];\n";
        }
        if named("tile") {
            text += &format!(".shared .align 1024 .b8 tile[{}];\n", OWN_TILE * self.threads);
        }
        if named("mb") {
            text += ".shared .align 8 .b64 mb[4];\n";
        }
        if named("newmap") {
            text += ".shared .align 128 .b8 newmap[128];\n";
        }
        if named("slot") {
            text += ".global .align 128 .b8 slot[128];\n";
        }
        if named("columns") {
            text += ".shared .align 4 .b32 columns;\n";
        }
        if named("gv") || named("cv") {
            text += ".global .align 8 .b32 gv[4];\n.const .align 8 .b32 cv[4] = {1, 2, 3, 4};\n";
        }
        if named("fv") {
            text += crate::lowering_support::forms::FUNCTION;
        }
        text
    }

    /// The names that are loaded and stored.
    fn live(&self, body: &BTreeSet<String>) -> impl Fn(&str) -> bool {
        let (lean, named) =
            (self.lean, body.iter().filter(|name| register(name).is_some()).cloned().collect::<BTreeSet<_>>());
        // Predicates are computed from other registers.
        let from =
            |p: &str| p[1..].parse::<usize>().map(|i| [format!("r{i}"), format!("r{}", i + 5)]).unwrap_or_default();
        let needed: BTreeSet<String> = named.iter().filter(|n| n.starts_with('p')).flat_map(|p| from(p)).collect();
        let amount = lean && body.contains("amount");
        move |name: &str| !lean || named.contains(name) || needed.contains(name) || amount && name == "r3"
    }

    /// The kernel around a body: it loads and stores the registers that `own` names, and
    /// initialises the memory that `all` names.
    fn kernel(&self, body: &str, own: &BTreeSet<String>, all: &BTreeSet<String>) -> String {
        let live = self.live(own);
        let named = |name: &str| !self.lean || own.contains(name);
        let more: String = self.arguments().iter().map(|argument| format!(", {}", argument.parameter())).collect();
        let cluster = match self.cluster {
            0 => String::new(),
            blocks => format!(" .reqnctapercluster {blocks}, 1, 1"),
        };
        // Only a kernel that states its threads may change the registers of its warps. Of large
        // blocks an SM holds few: registers are saved there that are not elsewhere.
        let stated = match own.contains("setmaxnreg") {
            true => format!(" .reqntid {}, 1, 1 .minnctapersm 1", self.threads),
            false if body.len().is_multiple_of(2) => " .maxntid 384, 1, 1".to_string(),
            false => String::new(),
        };
        let mut text = format!(".visible .entry k(.param .u64 p{more}){stated}{cluster}\n{{\n");
        text += &(declarations() + &apart_declarations());
        text += ".local .align 16 .b8 lo[64];\n";
        text += "ld.param.u64 io, [p];\nmov.u32 t, %tid.x;\n";
        text += &format!("add.u64 acc, io, {};\n", STRIDE * self.rows());
        text += &match self.cluster {
            0 => format!("mad.wide.u32 io, t, {STRIDE}, io;\n"),
            _ => {
                let threads = self.threads;
                format!("mov.u32 a, %ctaid.x;\nmad.lo.u32 a, a, {threads}, t;\nmad.wide.u32 io, a, {STRIDE}, io;\n")
            }
        };
        text += &format!(
            "add.u64 fixed, acc, 128;\nadd.u64 scratch, io, {SCRATCH};\nmov.u32 s, sh;\nmad.lo.u32 s, t, {OWN}, s;\n"
        );
        text += "mov.u32 stack, lo;\nmov.u32 m0, -1;\n";
        for (kind, ty, bytes, count, from) in KINDS {
            let some = (0..count).filter(|i| live(&format!("{kind}{i}")));
            some.for_each(|i| text += &format!("ld.global.{ty} {kind}{i}, [io+{}];\n", from + bytes * i));
        }
        text += &predicates(&live, named("amount"));
        let memory = !self.lean || ["s", "lo", "stack", "sh"].iter().any(|name| all.contains(*name));
        if memory {
            text += &fill();
        }
        let common = named("common") && !self.early;
        if common {
            text += "setp.lt.u32 q, t, 16;\nshl.b32 a, t, 2;\nmov.u32 w, common;\nadd.u32 a, a, w;\n@q st.shared.b32 [a], 0;\nbar.sync 0;\n";
        }
        text += body;
        self.results(&live, memory, common, text)
    }

    fn results(&self, live: &impl Fn(&str) -> bool, memory: bool, common: bool, mut text: String) -> String {
        for (kind, ty, bytes, count, from) in KINDS {
            let some = (0..count).filter(|i| live(&format!("{kind}{i}")));
            some.for_each(|i| text += &format!("st.global.{ty} [io+{}], {kind}{i};\n", RESULTS + from + bytes * i));
        }
        let some: Vec<usize> = (0..PREDICATES).filter(|i| live(&format!("p{i}"))).collect();
        if !some.is_empty() {
            text += "mov.u32 a, 0;\n";
            some.iter().for_each(|i| text += &format!("selp.b32 w, {}, 0, p{i};\nor.b32 a, a, w;\n", 1 << i));
            text += &format!("st.global.b32 [io+{}], a;\n", RESULTS + 212);
        }
        for i in (0..4).filter(|_| memory) {
            text += &format!(
                "ld.shared.b64 b, [s+{0}];\nst.global.b64 [io+{1}], b;\nld.local.b64 b, [stack+{0}];\nst.global.b64 [io+{2}], b;\n",
                8 * i,
                256 + 8 * i,
                288 + 8 * i
            );
        }
        if common {
            text += "bar.sync 0;\nsetp.lt.u32 q, t, 16;\nshl.b32 a, t, 2;\nmov.u32 w, common;\nadd.u32 a, a, w;\n@q ld.shared.b32 w, [a];\n@q st.global.b32 [io+320], w;\n";
        }
        text + "ret;\n}\n"
    }
}

/// The PTX version of a program: 9.0, or a later one that the target needs.
fn version(target: &str) -> String {
    let (major, minor) = Target::by_name(target).map_or(VERSION, |target| target.min_ptx.max(VERSION));
    format!("{major}.{minor}")
}

fn each_list(list: &mut Vec<Statement>, f: &mut impl FnMut(&mut Vec<Statement>)) {
    f(list);
    for statement in list {
        match statement {
            Statement::Plain(_) | Statement::Apart(_) => {}
            Statement::If { yes, no, .. } => {
                each_list(yes, f);
                each_list(no, f);
            }
            Statement::Loop { body, .. } | Statement::Crowd { body, .. } => each_list(body, f),
            Statement::Graph(nodes) => nodes.iter_mut().for_each(|node| each_list(&mut node.body, f)),
        }
    }
}

/// Statements moved out of a branch that gave them masks one deeper than `depth`.
pub fn shallower(list: &[Statement], depth: usize) -> Vec<Statement> {
    let up = |text: &str| {
        replaced(text, |word| {
            let deep = word.strip_prefix('m').and_then(|n| n.parse::<usize>().ok()).filter(|n| *n > depth)?;
            Some(format!("m{}", deep - 1))
        })
    };
    let one = |statement: &Statement| match statement {
        Statement::Plain(text) => Statement::Plain(up(text)),
        Statement::Apart(_) | Statement::Graph(_) => statement.clone(),
        Statement::If { guard, mask, yes, no } => Statement::If {
            guard: guard.clone(),
            mask: mask.map(|m| if m > depth { m - 1 } else { m }),
            yes: shallower(yes, depth),
            no: shallower(no, depth),
        },
        Statement::Loop { times, more, body } => {
            Statement::Loop { times: *times, more: more.clone(), body: shallower(body, depth) }
        }
        Statement::Crowd { size, body } => Statement::Crowd { size: *size, body: shallower(body, depth) },
    };
    list.iter().map(one).collect()
}

/// Rotates register names: the last register of each kind gets the name of the first, and so on.
fn turned(text: &str) -> String {
    replaced(text, |word| {
        let (kind, number) = register(word)?;
        let count = KINDS.iter().find(|k| k.0 == kind).map_or(PREDICATES, |k| k.3);
        (number < count).then(|| format!("{kind}{}", count - 1 - number))
    })
}

/// Every register that a list of statements may name.
fn declarations() -> String {
    let kinds = KINDS.iter().map(|(kind, ty, _, count, _)| format!(".reg .{ty} {kind}<{count}>;\n"));
    let words = format!("a, t, s, w, stack, amount, more, c<{0}>, n<{0}>, u<{0}>, m<{0}>", 2 * DEPTH + 2);
    let rest =
        format!(".reg .pred p<{PREDICATES}>, q;\n.reg .b32 {words};\n.reg .b64 b, b2, io, scratch, acc, fixed;\n");
    kinds.collect::<String>() + &rest + &crowd::declarations()
}

/// Registers of forms whose results are judged separately.
fn apart_declarations() -> String {
    let kinds = KINDS.iter().map(|(kind, ty, ..)| format!(".reg .{ty} y{kind}<10>;\n"));
    kinds.collect::<String>() + ".reg .b32 yx<10>;\n.reg .b16 yg<10>;\n.reg .pred yp<5>;\n"
}

/// Instructions that set the predicates, and `amount`, a number from 0 to 63.
fn predicates(live: &impl Fn(&str) -> bool, amount: bool) -> String {
    let one = |i| format!("setp.lt.s32 p{i}, r{i}, r{};\n", i + 5);
    let all = (0..PREDICATES).filter(|i| live(&format!("p{i}"))).map(one).collect::<String>();
    all + if amount { "and.b32 amount, r3, 63;\n" } else { "" }
}

/// Initial contents of the thread's own memory.
fn fill() -> String {
    let one = |i: usize| {
        format!(
            "ld.global.b64 b, [io+{}];\nst.shared.b64 [s+{1}], b;\nst.local.b64 [stack+{1}], b;\nst.local.b64 [stack+{2}], b;\n",
            48 + 8 * i,
            8 * i,
            32 + 8 * i
        )
    };
    (0..4).map(one).collect()
}

/// Writes statements as text.
struct Writer {
    labels: usize,
    interpreted: bool,
    text: String,
}

impl Writer {
    fn label(&mut self) -> usize {
        self.labels += 1;
        self.labels
    }

    fn list(&mut self, list: &[Statement], depth: usize) {
        for statement in list {
            match statement {
                Statement::Plain(line) => self.text += &format!("{line}\n"),
                Statement::Apart(text) => {
                    if !(self.interpreted && text.contains(HIDDEN)) {
                        self.text += &format!("{}\n", text.replace(HIDDEN, ""));
                    }
                }
                Statement::If { guard, mask, yes, no } => self.branch(guard, *mask, yes, no, depth),
                Statement::Loop { times, more, body } => self.repeated(*times, more.as_ref(), body, depth),
                Statement::Graph(nodes) => self.graph(nodes, depth),
                Statement::Crowd { size, body } => {
                    self.text += &crowd::loaded(*size);
                    self.list(body, depth);
                    self.text += &crowd::folded(*size);
                }
            }
        }
    }

    fn branch(&mut self, guard: &str, mask: Option<usize>, yes: &[Statement], no: &[Statement], depth: usize) {
        let label = self.label();
        if let Some(m) = mask {
            self.text += &format!("vote.sync.ballot.b32 m{}, {guard}, m{m};\n", m + 1);
        }
        self.text += &format!("@{guard} bra YES{label};\n");
        if let Some(m) = mask {
            self.text += &format!("xor.b32 m{0}, m{0}, m{m};\n", m + 1);
        }
        self.list(no, depth + 1);
        self.text += &format!("bra END{label};\nYES{label}:\n");
        self.list(yes, depth + 1);
        self.text += &format!("END{label}:\n");
    }

    fn repeated(&mut self, times: u32, more: Option<&(String, u32)>, body: &[Statement], depth: usize) {
        let label = self.label();
        self.text += &match more {
            Some((register, mask)) => {
                format!("and.b32 n{depth}, {register}, {mask};\nadd.u32 n{depth}, n{depth}, {times};\n")
            }
            None => format!("mov.u32 n{depth}, {times};\n"),
        };
        self.text += &format!("mov.u32 c{depth}, 0;\nTOP{label}:\n");
        self.list(body, depth + 1);
        self.text +=
            &format!("add.u32 c{depth}, c{depth}, 1;\nsetp.lt.u32 q, c{depth}, n{depth};\n@q bra TOP{label};\n");
    }

    fn graph(&mut self, nodes: &[Node], depth: usize) {
        let label = self.label();
        self.text += &format!("mov.u32 u{depth}, 0;\n");
        for (number, node) in nodes.iter().enumerate() {
            self.text += &format!("G{label}_{number}:\n");
            self.list(&node.body, depth + 1);
            let back = |to: usize| to <= number;
            let fuel = format!("add.u32 u{depth}, u{depth}, 1;\nsetp.lt.u32 q, u{depth}, {FUEL};\n");
            self.text += &match &node.end {
                End::Next => String::new(),
                End::Jump(to) if back(*to) => format!("{fuel}@q bra G{label}_{to};\n"),
                End::Jump(to) => format!("bra G{label}_{to};\n"),
                End::Branch(guard, to) if back(*to) => {
                    format!(
                        "{}@q bra G{label}_{to};\n",
                        fuel.replace("setp.lt.u32", "setp.lt.and.u32")
                            .replace(&format!(" {FUEL};"), &format!(" {FUEL}, {guard};"))
                    )
                }
                End::Branch(guard, to) => format!("@{guard} bra G{label}_{to};\n"),
                End::Switch(register, to) => {
                    let list: Vec<String> = to.iter().map(|to| format!("G{label}_{to}")).collect();
                    format!(
                        "and.b32 a, {register}, {};\nLIST{label}_{number}: .branchtargets {};\nbrx.idx a, LIST{label}_{number};\n",
                        to.len() - 1,
                        list.join(", ")
                    )
                }
            };
        }
        self.text += &format!("G{label}_{}:\n", nodes.len());
    }

    /// A function: registers of every kind computed from its parameters, its statements, and two of
    /// its registers as the result.
    fn function(&mut self, number: usize, function: &Function) {
        self.text += &format!(".func (.param .align 8 .b8 out[16]) fun{number}{PARAMETERS}\n{{\n{}", declarations());
        self.text += ".local .align 16 .b8 lo[64];\nld.param.b64 io, [row];\nld.param.b32 more, [again];\n";
        self.text += &format!(
            "add.u64 scratch, io, {SCRATCH};\nmov.u32 t, %tid.x;\nmov.u32 s, sh;\nmad.lo.u32 s, t, {OWN}, s;\n"
        );
        self.text += "mov.u32 stack, lo;\nld.param.b32 r0, [x];\nld.param.b64 d0, [y];\nld.param.b32 r1, [z+4];\nld.param.b64 d1, [z+8];\n";
        for (kind, _, bytes, count, _) in KINDS {
            for i in 0..count {
                self.text += &match (kind, i) {
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
        self.text += &predicates(&|_: &str| true, true);
        for i in 0..8 {
            self.text += &format!("st.local.b64 [stack+{}], d{i};\n", 8 * i);
        }
        self.list(&function.body, 1);
        if function.again {
            let call = call_text(&format!("fun{number}"), ["r2", "r4", "r5"], ["d3", "d4", "d5"], "a", "");
            self.text += &format!("{{ setp.eq.u32 q, more, 0; @q bra GO; sub.u32 a, more, 1; {call} GO: }}\n");
        }
        self.text += "st.param.b32 [out+4], r3;\nst.param.b64 [out+8], d2;\nret;\n}\n";
    }
}

/// Marks the text of a statement that the interpreter does not support.
pub const HIDDEN: &str = "/*hidden*/";
/// Of every function.
const PARAMETERS: &str =
    "(.param .b32 x, .param .b64 y, .param .align 8 .b8 z[16], .param .b64 row, .param .b32 again)";

/// A call in braces: the callee, two 32-bit arguments and one result, the same for 64 bits, the
/// recursion depth, its prototype's name.
pub fn call_text(to: &str, r: [&str; 3], d: [&str; 3], again: &str, prototype: &str) -> String {
    format!(
        "{{ .param .b32 gx; .param .b64 gy; .param .align 8 .b8 gz[16]; .param .b64 grow; .param .b32 gagain; .param .align 8 .b8 gout[16]; \
         st.param.b32 [gx], {}; st.param.b64 [gy], {}; st.param.b32 [gz+4], {}; st.param.b64 [gz+8], {}; st.param.b64 [grow], io; \
         st.param.b32 [gagain], {again}; call (gout), {to}, (gx, gy, gz, grow, gagain){prototype}; ld.param.b32 {}, [gout+4]; \
         ld.param.b64 {}, [gout+8]; }}",
        r[0], d[0], r[1], d[1], r[2], d[2]
    )
}

/// The prototype of every function, as a statement with that name.
pub const PROTOTYPE: &str = "shape: .callprototype (.param .align 8 .b8 _[16]) _ (.param .b32 _, .param .b64 _, .param .align 8 .b8 _[16], .param .b64 _, .param .b32 _);";
