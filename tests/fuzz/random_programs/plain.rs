//! Random statements of one thread: register copies, memory, calls, atomics.
//!
//! The rules of `make.rs` hold; the scratch registers `a`, `w`, `b`, `b2` and `q` carry no value
//! from one statement to the next.

use super::make::{guard, register};
use super::tree::{FUNCTIONS, OWN, PROTOTYPE, call_text};
use crate::random::Random;

/// Copies a value from one kind of register to another.
pub fn transfer(random: &mut Random) -> String {
    let [r, r2, d, f, e, h, h2] = ['r', 'r', 'd', 'f', 'e', 'h', 'h'].map(|kind| register(random, kind));
    let [p, p2] = ['p', 'p'].map(|kind| register(random, kind));
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
        format!("and.pred {p}, {p2}, {p};"),
        format!("xor.pred {p}, {p2}, {p};"),
        format!("setp.lt.s32 {p}, {r}, {r2};"),
        format!("setp.ge.xor.u32 {p}|q, {r}, {r2}, !{p2};"),
        format!("selp.b32 {r}, {r}, {r2}, {p};"),
        format!("selp.f64 {e}, {e}, 0d0000000000000000, {p};"),
    ];
    texts[random.below(texts.len())].clone()
}

/// A load or store in the thread's own bytes of one space.
pub fn access(random: &mut Random) -> String {
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
        [("shared", "s", false), ("local", "stack", false), ("global", "scratch", true), ("", "scratch", true)]
            [random.below(4)];
    let (index, data, other) = (register(random, 'r'), register(random, kind), register(random, kind));
    let elements = if bytes >= 2 && data != other && random.below(3) == 0 { 2 } else { 1 };
    let mask = (OWN - 1) & !(bytes * elements - 1);
    let address = if wide {
        format!("and.b32 a, {index}, {mask}; cvt.u64.u32 b, a; add.u64 b, b, {base};")
    } else {
        format!("and.b32 a, {index}, {mask}; add.u32 a, a, {base};")
    };
    let at = if wide { "b" } else { "a" };
    let space = if space.is_empty() { String::new() } else { format!(".{space}") };
    let (vector, data) = if elements == 2 { (".v2", format!("{{{data}, {other}}}")) } else { ("", data) };
    match random.below(2) {
        0 => format!("{address} ld{space}{vector}.{ty} {data}, [{at}];"),
        _ => format!("{address} st{space}{vector}.{ty} [{at}], {data};"),
    }
}

/// An indexed load of constant memory.
pub fn constant(random: &mut Random) -> String {
    let (index, r, d) = (register(random, 'r'), register(random, 'r'), register(random, 'd'));
    let load = [
        format!("ld.const.u32 {r}, [b];"),
        format!("ld.const.u16 {r}, [b];"),
        format!("ld.const.s8 {r}, [b+1];"),
        format!("and.b64 b, b, -8; ld.const.b64 {d}, [b];"),
        format!("cvta.const.u64 b, b; ld.u32 {r}, [b];"),
    ];
    format!("and.b32 a, {index}, 12; cvt.u64.u32 b, a; mov.u64 b2, cv; add.u64 b, b, b2; {}", load[random.below(5)])
}

/// Updates the totals that all threads share. Every word has one commutative operation, and no
/// thread reads it before the end.
pub fn add_to_all(random: &mut Random, early: bool) -> String {
    let (op, at, kind) = [
        ("add.u32", 0, 'r'),
        ("min.s32", 4, 'r'),
        ("max.u32", 8, 'r'),
        ("or.b32", 12, 'r'),
        ("and.b32", 16, 'r'),
        ("xor.b32", 20, 'r'),
        ("add.u64", 24, 'd'),
        ("min.u64", 32, 'd'),
        ("max.s64", 40, 'd'),
        ("and.b64", 48, 'd'),
        ("or.b64", 56, 'd'),
    ][random.below(11)];
    let value = match random.below(4) {
        0 => "1".to_string(),
        _ => register(random, kind),
    };
    let (word, nothing) = if kind == 'r' { ("w", "w") } else { ("b2", "b2") };
    // Shared memory is not read if threads may exit before the others.
    let (space, place, front) = match random.below(3) {
        0 if kind == 'r' && !early => (".shared", format!("a+{at}"), "mov.u32 a, common; "),
        1 => ("", format!("acc+{at}"), ""),
        _ => (".global", format!("acc+{at}"), ""),
    };
    let bits = if kind == 'r' { 32 } else { 64 };
    match random.below(3) {
        0 => format!("{front}mov.b{bits} {word}, {value}; atom{space}.{op} {nothing}, [{place}], {word};"),
        _ => format!("{front}mov.b{bits} {word}, {value}; red{space}.{op} [{place}], {word};"),
    }
}

/// Calls one of the functions from an index on, by name or through a pointer that differs by lane.
pub fn call(random: &mut Random, from: usize) -> String {
    let number = |random: &mut Random| from + random.below(FUNCTIONS - from);
    let (one, two) = (number(random), number(random));
    let r = [(); 3].map(|()| register(random, 'r'));
    let d = [(); 3].map(|()| register(random, 'd'));
    let (r, d) = (r.each_ref().map(String::as_str), d.each_ref().map(String::as_str));
    let again = random.below(3).to_string();
    if random.below(4) > 0 {
        return call_text(&format!("fun{one}"), r, d, &again, "");
    }
    let p = register(random, 'p');
    let call = call_text("b", r, d, &again, ", shape");
    format!("{{ {PROTOTYPE} mov.u64 b, fun{one}; mov.u64 b2, fun{two}; selp.b64 b, b, b2, {p}; {call} }}")
}

/// Exits the thread, or returns from the function, under a guard.
pub fn leave(random: &mut Random, kernel: bool) -> String {
    let (guard, r, d) = (guard(random), register(random, 'r'), register(random, 'd'));
    match (kernel, random.below(3)) {
        (true, 0) => format!("@{guard} exit;"),
        (true, 1) => format!("@{guard} ret;"),
        (true, _) => format!("{{ @{guard} bra GO; st.global.b32 [io+324], {r}; ret; GO: }}"),
        _ => format!("{{ @{guard} bra GO; st.param.b32 [out+4], {r}; st.param.b64 [out+8], {d}; ret; GO: }}"),
    }
}
