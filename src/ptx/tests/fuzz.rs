//! Malformed input: every prefix of small files, and random edits of them, get an answer without a
//! panic.

use super::{check_syntax, kernel, parse, parse_bytes};

/// Texts that together cover every construct.
fn seeds() -> Vec<String> {
    let everything = ".version 9.0\n.target sm_90a, texmode_independent\n.address_size 64\n.file 1 \"a\", 1, 2\n\
        .global .align 8 .u64 t[2][2] = {{1, generic(u)+4}, {0xFF(u)}};\n.extern .shared .align 16 .b8 s[];\n\
        .func (.reg .f32 r) g(.reg .f32 a) { neg.f32 r, a; ret; }\n.pragma \"nounroll\";\n\
        .visible .entry k(.param .u64 .ptr .global .align 8 p) .maxntid 1, 2, 3 .pragma \"nounroll\"; {\n\
        .reg .b32 %r<10>; .reg .pred %p<3>; .reg .f32 %f<3>; .reg .b64 %d<3>; .loc 1 2 3 .loc 1 2 3, function_name a+1, inlined_at 1 2 3\n\
        { .reg .v4 .f32 v; mov.f32 %f1, v.x; L: @!%p1 bra L; }\nt: .branchtargets A, B; brx.idx %r1, t;\n\
        A: ld.global.v4.f32 {%f1, _, %f2, %f1}, [%d1+-8]; B: call (%f1), g, (%f1);\n\
        shfl.sync.idx.b32 %r1|%p1, %r2, 0x1F, (1+2)*WARP_SZ?3:4, -1; mov.b64 {%r1, %r2}, %d1; tex.2d.v4.f32.f32 {%r1}, [s, {%r1, %r2}];\n\
        ret; }\n.section .debug_x { .b8 1 } @@DWARF .byte\n";
    vec![everything.to_string(), kernel("8.0", "sm_80", "add.f32 %f1, %f2, 0f3F800000; // c\n/* d */ bar.sync 0, 32;")]
}

#[test]
fn every_prefix_gives_an_answer() {
    for seed in seeds() {
        for end in 0..=seed.len() {
            let (module, diags) = parse(&seed[..end]);
            assert!(module.is_some() || !diags.is_empty());
            check_syntax(&seed[..end]);
        }
    }
}

/// A deterministic pseudo-random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % n.max(1)
    }
}

const PIECES: [&str; 40] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ",",
    ";",
    ":",
    "@",
    "!",
    "|",
    "=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "^",
    "~",
    "?",
    ".",
    "..",
    "\"",
    "0x",
    "0f12",
    "99999999999999999999",
    ".reg",
    ".u32",
    ".entry k()",
    ".func",
    "\u{e9}",
    "\0",
    "//",
    "/*",
    "_",
    "L:",
];

#[test]
fn random_edits_give_an_answer() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for seed in seeds() {
        for _ in 0..4000 {
            let mut bytes = seed.clone().into_bytes();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                match random.below(4) {
                    0 => _ = bytes.drain(at..(at + random.below(20)).min(bytes.len())),
                    1 => bytes.splice(at..at, PIECES[random.below(PIECES.len())].bytes()).for_each(drop),
                    2 => bytes[at] = random.below(256) as u8,
                    _ => {
                        let from = random.below(bytes.len());
                        let piece = bytes[from..(from + random.below(60)).min(bytes.len())].to_vec();
                        bytes.splice(at..at, piece).for_each(drop);
                    }
                }
                if bytes.is_empty() {
                    break;
                }
            }
            let text = String::from_utf8_lossy(&bytes);
            let (module, diags) = parse_bytes(&bytes);
            assert!(module.is_some() || !diags.is_empty());
            for d in diags {
                d.render("f", &text);
            }
        }
    }
}

#[test]
fn deep_and_long_input_gives_an_answer() {
    let body = |text: &str| parse(&kernel("8.0", "sm_80", text)).1.len();
    assert!(body(&"{".repeat(100_000)) > 0);
    assert!(body(&"}".repeat(100_000)) > 0);
    assert!(body(&format!("mov.u32 %r1, {}1;", "(".repeat(100_000))) > 0);
    assert!(body(&format!("mov.u32 %r1, 1{};", "?1:1".repeat(100_000))) > 0);
    assert!(body(&format!("mov.b32 %r1, {{{}}};", "{".repeat(100_000))) > 0);
    assert!(body(&format!("mov.b32 %r1, {{{}1}};", "1,".repeat(100_000))) > 0);
    assert!(body(&format!("add.s32 {}1;", "1,".repeat(100_000))) > 0);
    assert!(body(&format!("add{} %r1;", ".sat".repeat(100_000))) > 0);
    assert_eq!(body(&format!("mov.u32 %r1, 1{};", "+1".repeat(100_000))), 0);
    assert_eq!(body(&"{ .reg .u32 x; L: bra L; }\n".repeat(20_000)), 0);
    let nested = format!("{} bra L; {} L:", "{".repeat(900), "}".repeat(900));
    assert_eq!(body(&nested), 0);
}
