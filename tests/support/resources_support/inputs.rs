//! Generates huge and hostile inputs of any size.
//!
//! For the name of a kind and a size it gives a PTX text; the same name and size give the same
//! text.

// The newline belongs to the PTX text.
#![allow(clippy::write_with_newline)]

use std::io::{Result, Write};

/// One kind of input.
pub struct Kind {
    pub name: &'static str,
    /// Sizes in the unit of the kind: of the bench, and of the test.
    pub full: usize,
    pub reduced: usize,
    /// Whether it must compile at the reduced size; otherwise it must be rejected.
    pub compiles: bool,
    pub write: fn(&mut dyn Write, usize) -> Result<()>,
}

impl Kind {
    /// The program's options for this kind: an object where its name begins so.
    pub fn options(&self) -> &'static [&'static str] {
        if self.name.starts_with("object_") { &["-arch=sm_80", "-c"] } else { &["-arch=sm_80"] }
    }
}

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";
const MB: usize = 1_000_000;

/// A pseudo-random number generator (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Every kind. Those whose unit is bytes have sizes of millions.
#[rustfmt::skip]
pub const KINDS: &[Kind] = &[
    // Data.
    Kind { name: "initialised_tebibyte", full: 1 << 40, reduced: 1 << 40, compiles: false, write: initialised },
    Kind { name: "initialised_gigabytes", full: 3_000_000_000, reduced: 2_000_000_000, compiles: false, write: initialised },
    Kind { name: "initialised_megabytes", full: 50 * MB, reduced: 20 * MB, compiles: true, write: initialised },
    Kind { name: "plain_tebibytes", full: 1000, reduced: 1000, compiles: true, write: plain_tebibytes },
    Kind { name: "variables", full: 100 * MB, reduced: 3 * MB, compiles: true, write: variables },
    Kind { name: "initialised_variables", full: 100 * MB, reduced: 3 * MB, compiles: true, write: initialised_variables },
    Kind { name: "shared_beyond", full: 1 << 40, reduced: 1 << 40, compiles: false, write: |w, n| in_entry(w, n, ".shared") },
    Kind { name: "local_beyond", full: 1 << 40, reduced: 1 << 40, compiles: false, write: |w, n| in_entry(w, n, ".local") },
    Kind { name: "const_beyond", full: 1 << 40, reduced: 1 << 40, compiles: false, write: const_beyond },
    Kind { name: "numbers", full: 100 * MB, reduced: 4 * MB, compiles: true, write: numbers },
    // Text.
    Kind { name: "random_bytes", full: 100 * MB, reduced: 4 * MB, compiles: false, write: random_bytes },
    Kind { name: "random_bytes_behind_header", full: 100 * MB, reduced: 4 * MB, compiles: false, write: random_behind_header },
    Kind { name: "errors", full: 100 * MB, reduced: 4 * MB, compiles: false, write: errors },
    Kind { name: "one_line", full: 100 * MB, reduced: MB, compiles: true, write: one_line },
    Kind { name: "line_comments", full: 100 * MB, reduced: 4 * MB, compiles: true, write: line_comments },
    Kind { name: "block_comment", full: 100 * MB, reduced: 4 * MB, compiles: true, write: block_comment },
    Kind { name: "newlines", full: 100 * MB, reduced: 4 * MB, compiles: true, write: newlines },
    Kind { name: "long_name", full: 100 * MB, reduced: 4 * MB, compiles: true, write: long_name },
    Kind { name: "section_string", full: 100 * MB, reduced: 4 * MB, compiles: true, write: section_string },
    Kind { name: "section_lines", full: 100 * MB, reduced: 4 * MB, compiles: true, write: section_lines },
    Kind { name: "locations", full: 100 * MB, reduced: 4 * MB, compiles: true, write: locations },
    Kind { name: "files", full: 100 * MB, reduced: 4 * MB, compiles: true, write: files },
    // Nesting.
    Kind { name: "parentheses", full: 10_000_000, reduced: 1_000_000, compiles: false, write: parentheses },
    Kind { name: "minus_signs", full: 10_000_000, reduced: 1_000_000, compiles: false, write: minus_signs },
    Kind { name: "braces", full: 100 * MB, reduced: MB, compiles: false, write: braces },
    Kind { name: "braces_of_initialiser", full: 100 * MB, reduced: MB, compiles: false, write: initialiser_braces },
    Kind { name: "vector_braces", full: 100 * MB, reduced: MB, compiles: false, write: vector_braces },
    Kind { name: "long_sum", full: 100 * MB, reduced: 4 * MB, compiles: true, write: long_sum },
    // Declarations.
    Kind { name: "register_range", full: 100_000_000, reduced: 100_000_000, compiles: true, write: register_range },
    Kind { name: "register_ranges", full: 100 * MB, reduced: 4 * MB, compiles: true, write: register_ranges },
    Kind { name: "registers", full: 100 * MB, reduced: 4 * MB, compiles: true, write: registers },
    Kind { name: "declarations", full: 10_000_000, reduced: 100_000, compiles: true, write: declarations },
    Kind { name: "parameters", full: 100 * MB, reduced: MB, compiles: false, write: parameters },
    // Functions.
    Kind { name: "entries", full: 100 * MB, reduced: MB / 4, compiles: true, write: entries },
    Kind { name: "entries_beyond", full: 100 * MB, reduced: MB, compiles: false, write: entries },
    Kind { name: "functions", full: 100 * MB, reduced: MB / 4, compiles: true, write: functions },
    // One large function.
    Kind { name: "instructions", full: 100 * MB, reduced: MB, compiles: true, write: instructions },
    Kind { name: "one_block", full: 1_000_000, reduced: 30_000, compiles: true, write: one_block },
    Kind { name: "straight_line", full: 300_000, reduced: 30_000, compiles: true, write: straight_line },
    Kind { name: "labels", full: 100 * MB, reduced: MB / 4, compiles: true, write: labels },
    Kind { name: "random_branches", full: 100_000, reduced: 200, compiles: true, write: random_branches },
    Kind { name: "forward_branches", full: 50_000, reduced: 2_000, compiles: true, write: forward_branches },
    Kind { name: "near_branches", full: 50_000, reduced: 2_000, compiles: true, write: near_branches },
    Kind { name: "loops", full: 50_000, reduced: 2_000, compiles: true, write: loops },
    Kind { name: "nested_ifs", full: 10_000, reduced: 200, compiles: true, write: nested_ifs },
    Kind { name: "nested_loops", full: 5_000, reduced: 50, compiles: true, write: nested_loops },
    Kind { name: "calls", full: 100_000, reduced: 2_000, compiles: true, write: calls },
    Kind { name: "live_values", full: 100_000, reduced: 3_000, compiles: true, write: live_values },
    Kind { name: "switch", full: 20_000, reduced: 20_000, compiles: true, write: switch },
    Kind { name: "chain_of_calls", full: 21_000, reduced: 1_000, compiles: true, write: chain_of_calls },
    Kind { name: "object_functions", full: 14_000, reduced: 500, compiles: true, write: object_functions },
    Kind { name: "functions_beyond", full: 100_000, reduced: 21_001, compiles: false, write: chain_of_calls },
    Kind { name: "shared_symbols", full: 50_000, reduced: 6_000, compiles: true, write: shared_symbols },
    Kind { name: "constants_in_code", full: 100_000, reduced: 5_000, compiles: true, write: constants_in_code },
];

/// Repeats a piece until about this many bytes are written.
fn fill(w: &mut dyn Write, bytes: usize, mut piece: impl FnMut(usize) -> String) -> Result<()> {
    let (mut done, mut i) = (0, 0);
    while done < bytes {
        let text = piece(i);
        w.write_all(text.as_bytes())?;
        done += text.len();
        i += 1;
    }
    Ok(())
}

/// The start of an entry with a buffer at `%rd1` and a number in `%r1`.
fn open_entry(w: &mut dyn Write, registers: usize) -> Result<()> {
    write!(
        w,
        "{HEAD}.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<3>;\n.reg .b32 %r<{registers}>;\n.reg .b64 %rd<3>;\n\
         ld.param.u64 %rd1, [out];\ncvta.to.global.u64 %rd1, %rd1;\nmov.u32 %r1, %tid.x;\n"
    )
}

fn close_entry(w: &mut dyn Write) -> Result<()> {
    w.write_all(b"st.global.u32 [%rd1], %r1;\nret;\n}\n")
}

fn small_entry(w: &mut dyn Write) -> Result<()> {
    w.write_all(b".visible .entry k()\n{\nret;\n}\n")
}

fn initialised(w: &mut dyn Write, n: usize) -> Result<()> {
    write!(w, "{HEAD}.visible .global .b8 s[{n}] = {{1}};\n")?;
    small_entry(w)
}

fn plain_tebibytes(w: &mut dyn Write, n: usize) -> Result<()> {
    w.write_all(HEAD.as_bytes())?;
    (0..n).try_for_each(|i| writeln!(w, ".visible .global .b8 s{i}[{}];", 1u64 << 40))?;
    small_entry(w)
}

fn variables(w: &mut dyn Write, n: usize) -> Result<()> {
    w.write_all(HEAD.as_bytes())?;
    fill(w, n, |i| format!(".visible .global .b32 s{i}[4];\n"))?;
    small_entry(w)
}

fn initialised_variables(w: &mut dyn Write, n: usize) -> Result<()> {
    w.write_all(HEAD.as_bytes())?;
    fill(w, n, |i| format!(".visible .global .b32 s{i}[4] = {{{i}, 1}};\n"))?;
    small_entry(w)
}

fn in_entry(w: &mut dyn Write, n: usize, space: &str) -> Result<()> {
    open_entry(w, 4)?;
    write!(w, "{space} .b8 s[{n}];\nmov.u64 %rd2, s;\nst.u64 [%rd1], %rd2;\n")?;
    close_entry(w)
}

fn const_beyond(w: &mut dyn Write, n: usize) -> Result<()> {
    write!(w, "{HEAD}.visible .const .b8 s[{n}];\n")?;
    small_entry(w)
}

fn numbers(w: &mut dyn Write, n: usize) -> Result<()> {
    write!(w, "{HEAD}.visible .global .b32 s[] = {{0")?;
    fill(w, n, |i| format!(", {i}"))?;
    w.write_all(b"};\n")?;
    small_entry(w)
}

fn noise(w: &mut dyn Write, n: usize) -> Result<()> {
    let mut random = Random(88_172_645_463_325_252);
    for _ in 0..n / 8 {
        w.write_all(&random.next().to_le_bytes())?;
    }
    Ok(())
}

fn random_bytes(w: &mut dyn Write, n: usize) -> Result<()> {
    noise(w, n)
}

fn random_behind_header(w: &mut dyn Write, n: usize) -> Result<()> {
    w.write_all(HEAD.as_bytes())?;
    noise(w, n)
}

fn errors(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, 4)?;
    fill(w, n, |_| "add.u32 %q1, %q2, %q3;\n".into())?;
    close_entry(w)
}

fn one_line(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, 4)?;
    fill(w, n, |_| "add.u32 %r1, %r1, %r1; ".into())?;
    close_entry(w)
}

fn line_comments(w: &mut dyn Write, n: usize) -> Result<()> {
    w.write_all(HEAD.as_bytes())?;
    fill(w, n, |_| "// nothing\n".into())?;
    small_entry(w)
}

fn block_comment(w: &mut dyn Write, n: usize) -> Result<()> {
    write!(w, "{HEAD}/*")?;
    fill(w, n, |_| "nothing / * ".into())?;
    w.write_all(b"*/\n")?;
    small_entry(w)
}

fn newlines(w: &mut dyn Write, n: usize) -> Result<()> {
    w.write_all(HEAD.as_bytes())?;
    fill(w, n, |_| "\n".into())?;
    small_entry(w)
}

fn long_name(w: &mut dyn Write, n: usize) -> Result<()> {
    write!(w, "{HEAD}.visible .global .b32 ")?;
    fill(w, n, |_| "abcdefgh".into())?;
    w.write_all(b";\n")?;
    small_entry(w)
}

fn section_string(w: &mut dyn Write, n: usize) -> Result<()> {
    w.write_all(HEAD.as_bytes())?;
    small_entry(w)?;
    w.write_all(b".section .debug_str\n{\n")?;
    fill(w, n, |i| format!(".b8 {}", 1 + i % 9) + &",65".repeat(999) + "\n")?;
    w.write_all(b"}\n")
}

fn section_lines(w: &mut dyn Write, n: usize) -> Result<()> {
    w.write_all(HEAD.as_bytes())?;
    small_entry(w)?;
    w.write_all(b".section .debug_str\n{\n")?;
    fill(w, n, |i| format!(".b8 {}\n", i % 256))?;
    w.write_all(b"}\n")
}

fn locations(w: &mut dyn Write, n: usize) -> Result<()> {
    write!(w, "{HEAD}.file 1 \"a.cu\"\n.visible .entry k()\n{{\n")?;
    fill(w, n, |i| format!(".loc 1 {i} {}\n", i % 90))?;
    w.write_all(b"ret;\n}\n")
}

fn files(w: &mut dyn Write, n: usize) -> Result<()> {
    w.write_all(HEAD.as_bytes())?;
    fill(w, n, |i| format!(".file {} \"f{i}.cu\"\n", i + 1))?;
    w.write_all(b".visible .entry k()\n{\n.loc 1 1 1\nret;\n}\n")
}

fn nested_constant(w: &mut dyn Write, n: usize, open: &str, close: &str) -> Result<()> {
    open_entry(w, 4)?;
    w.write_all(b"mov.u32 %r1, ")?;
    (0..n).try_for_each(|_| w.write_all(open.as_bytes()))?;
    w.write_all(b"1")?;
    (0..n).try_for_each(|_| w.write_all(close.as_bytes()))?;
    w.write_all(b";\n")?;
    close_entry(w)
}

fn parentheses(w: &mut dyn Write, n: usize) -> Result<()> {
    nested_constant(w, n, "(", ")")
}

fn minus_signs(w: &mut dyn Write, n: usize) -> Result<()> {
    nested_constant(w, n, "- ", "")
}

fn braces(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, 4)?;
    fill(w, n / 2, |_| "{".into())?;
    fill(w, n / 2, |_| "}".into())?;
    close_entry(w)
}

fn initialiser_braces(w: &mut dyn Write, n: usize) -> Result<()> {
    write!(w, "{HEAD}.visible .global .b32 s[1] = ")?;
    fill(w, n / 2, |_| "{".into())?;
    fill(w, n / 2, |_| "}".into())?;
    w.write_all(b";\n")?;
    small_entry(w)
}

fn vector_braces(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, 4)?;
    w.write_all(b"mov.b64 %rd2, ")?;
    fill(w, n / 2, |_| "{".into())?;
    fill(w, n / 2, |_| "}".into())?;
    w.write_all(b";\n")?;
    close_entry(w)
}

fn long_sum(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, 4)?;
    w.write_all(b"mov.u32 %r1, 0")?;
    fill(w, n, |_| "+1".into())?;
    w.write_all(b";\n")?;
    close_entry(w)
}

fn register_range(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, n)?;
    close_entry(w)
}

fn register_ranges(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, 4)?;
    fill(w, n, |i| format!(".reg .b32 %a{i}_<9>;\n"))?;
    close_entry(w)
}

fn registers(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, 4)?;
    fill(w, n, |i| format!(".reg .b32 a{i};\n"))?;
    close_entry(w)
}

fn declarations(w: &mut dyn Write, n: usize) -> Result<()> {
    w.write_all(HEAD.as_bytes())?;
    (0..n).try_for_each(|i| writeln!(w, ".func f{i};"))?;
    small_entry(w)
}

fn parameters(w: &mut dyn Write, n: usize) -> Result<()> {
    write!(w, "{HEAD}.visible .entry k(.param .u32 q")?;
    fill(w, n, |i| format!(",.param .u32 p{i}"))?;
    w.write_all(b")\n{\nret;\n}\n")
}

fn entries(w: &mut dyn Write, n: usize) -> Result<()> {
    w.write_all(HEAD.as_bytes())?;
    fill(w, n, |i| format!(".visible .entry k{i}() {{ ret; }}\n"))
}

fn functions(w: &mut dyn Write, n: usize) -> Result<()> {
    w.write_all(HEAD.as_bytes())?;
    let function = |i: usize| format!(".func (.reg .b32 a) f{i}(.reg .b32 b) {{ add.u32 a, b, {i}; ret; }}\n");
    fill(w, n, function)?;
    small_entry(w)
}

/// Code as a compiler could have written it: loads, arithmetic on a hundred registers, stores.
fn instructions(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, 130)?;
    (2..130).try_for_each(|i| writeln!(w, "add.u32 %r{i}, %r1, {i};"))?;
    let mut random = Random(1);
    fill(w, n, |i| {
        let (a, b, c) = (1 + random.below(40), 1 + random.below(40), 1 + random.below(40));
        match i % 8 {
            0 => format!("ld.global.u32 %r{a}, [%rd1+{}];\n", 4 * random.below(1000)),
            1 => format!("st.global.u32 [%rd1+{}], %r{a};\n", 4 * random.below(1000)),
            2 => format!("mul.lo.u32 %r{a}, %r{b}, %r{c};\n"),
            3 => format!("xor.b32 %r{a}, %r{b}, %r{c};\n"),
            _ => format!("add.u32 %r{a}, %r{b}, %r{c};\n"),
        }
    })?;
    close_entry(w)
}

fn one_block(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, 12)?;
    (2..12).try_for_each(|i| writeln!(w, "add.u32 %r{i}, %r1, {i};"))?;
    for i in 0..n {
        writeln!(w, "mad.lo.u32 %r{}, %r{}, %r{}, {};", 1 + i % 11, 1 + (i + 3) % 11, 1 + (i + 7) % 11, i % 1000)?;
    }
    close_entry(w)
}

fn straight_line(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, n + 3)?;
    for i in 1..=n {
        writeln!(w, "add.u32 %r{}, %r{i}, {};", i + 1, i % 977)?;
    }
    writeln!(w, "mov.u32 %r1, %r{};", n + 1)?;
    close_entry(w)
}

fn labels(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, 4)?;
    fill(w, n, |i| format!("L{i}:\n"))?;
    close_entry(w)
}

fn branches(w: &mut dyn Write, n: usize, mut target: impl FnMut(usize) -> usize) -> Result<()> {
    open_entry(w, 4)?;
    for i in 0..n {
        writeln!(w, "L{i}:\nadd.u32 %r1, %r1, {i};\nsetp.lt.u32 %p1, %r1, {};\n@%p1 bra L{};", i * 3, target(i))?;
    }
    writeln!(w, "L{n}:")?;
    close_entry(w)
}

fn random_branches(w: &mut dyn Write, n: usize) -> Result<()> {
    let mut random = Random(2);
    branches(w, n, |_| random.below(n + 1))
}

fn forward_branches(w: &mut dyn Write, n: usize) -> Result<()> {
    let mut random = Random(3);
    branches(w, n, |i| i + 1 + random.below(n - i))
}

fn near_branches(w: &mut dyn Write, n: usize) -> Result<()> {
    let mut random = Random(4);
    branches(w, n, |i| (i + 1 + random.below(5)).min(n))
}

fn loops(w: &mut dyn Write, n: usize) -> Result<()> {
    branches(w, n, |i| i)
}

fn nested_ifs(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, 4)?;
    for i in 0..n {
        writeln!(w, "setp.lt.u32 %p1, %r1, {};\n@%p1 bra E{i};\nadd.u32 %r1, %r1, {i};", i * 7)?;
    }
    for i in (0..n).rev() {
        writeln!(w, "xor.b32 %r1, %r1, {i};\nE{i}:")?;
    }
    close_entry(w)
}

fn nested_loops(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, n + 3)?;
    for i in 0..n {
        writeln!(w, "mov.u32 %r{}, 0;\nH{i}:\nadd.u32 %r1, %r1, {i};", i + 2)?;
    }
    for i in (0..n).rev() {
        let r = i + 2;
        writeln!(w, "add.u32 %r{r}, %r{r}, 1;\nsetp.lt.u32 %p1, %r{r}, %r1;\n@%p1 bra H{i};")?;
    }
    close_entry(w)
}

fn calls(w: &mut dyn Write, n: usize) -> Result<()> {
    write!(
        w,
        "{HEAD}.func (.param .b32 a) f(.param .b32 b)\n{{\n.reg .b32 %x;\nld.param.b32 %x, [b];\nadd.u32 %x, %x, 1;\nst.param.b32 [a], %x;\nret;\n}}\n"
    )?;
    w.write_all(b".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\n")?;
    let call =
        "{\n.param .b32 p;\n.param .b32 q;\nst.param.b32 [p], %r1;\ncall.uni (q), f, (p);\nld.param.b32 %r1, [q];\n}\n";
    (0..n).try_for_each(|_| w.write_all(call.as_bytes()))?;
    close_entry(w)
}

fn live_values(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, n + 3)?;
    for i in 2..n + 2 {
        writeln!(w, "ld.global.u32 %r{i}, [%rd1+{}];", 4 * i)?;
    }
    for i in (2..n + 2).rev() {
        writeln!(w, "add.u32 %r1, %r1, %r{i};")?;
    }
    close_entry(w)
}

fn switch(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, 4)?;
    let targets: Vec<String> = (0..n).map(|i| format!("L{i}")).collect();
    writeln!(w, "T: .branchtargets {};\nbrx.idx %r1, T;", targets.join(", "))?;
    (0..n).try_for_each(|i| writeln!(w, "L{i}:\nadd.u32 %r1, %r1, {};\nbra END;", i * 5))?;
    w.write_all(b"END:\n")?;
    close_entry(w)
}

/// A chain of functions with the calling convention, each with sections of its own in an object.
fn object_functions(w: &mut dyn Write, n: usize) -> Result<()> {
    w.write_all(HEAD.as_bytes())?;
    for i in 0..n {
        write!(w, ".func (.param .b32 r) f{i}(.param .b32 a)\n{{\n.reg .b32 %x;\nld.param.b32 %x, [a];\n")?;
        if i > 0 {
            write!(w, "{{\n.param .b32 p;\n.param .b32 q;\nst.param.b32 [p], %x;\n")?;
            write!(w, "call (q), f{}, (p);\nld.param.b32 %x, [q];\n}}\n", i - 1)?;
        }
        write!(w, "add.u32 %x, %x, {i};\nst.param.b32 [r], %x;\nret;\n}}\n")?;
    }
    small_entry(w)
}

fn chain_of_calls(w: &mut dyn Write, n: usize) -> Result<()> {
    w.write_all(HEAD.as_bytes())?;
    for i in 0..n {
        write!(w, ".func (.reg .b32 a) f{i}(.reg .b32 b)\n{{\n")?;
        if i > 0 {
            write!(w, "call (a), f{}, (b);\n", i - 1)?;
        }
        write!(w, "add.u32 a, b, {i};\nret;\n}}\n")?;
    }
    write!(
        w,
        ".visible .entry k(.param .u64 out)\n{{\n.reg .b32 %r<3>;\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\n"
    )?;
    if n > 0 {
        write!(w, "call (%r1), f{}, (%r1);\n", n - 1)?;
    }
    close_entry(w)
}

/// Many variables, each used once by the code.
fn shared_symbols(w: &mut dyn Write, n: usize) -> Result<()> {
    w.write_all(HEAD.as_bytes())?;
    (0..n).try_for_each(|i| writeln!(w, ".visible .global .b32 g{i};"))?;
    w.write_all(b".visible .entry k()\n{\n.reg .b32 %r<3>;\n")?;
    (0..n).try_for_each(|i| {
        writeln!(w, "ld.global.u32 %r1, [g{i}];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [g{i}], %r1;")
    })?;
    w.write_all(b"ret;\n}\n")
}

/// Distinct 64-bit constants.
fn constants_in_code(w: &mut dyn Write, n: usize) -> Result<()> {
    open_entry(w, 4)?;
    let mut random = Random(5);
    for i in 0..n {
        writeln!(w, "st.global.u64 [%rd1+{}], {};", 8 * (i % 1000), random.next() >> 1)?;
    }
    close_entry(w)
}
