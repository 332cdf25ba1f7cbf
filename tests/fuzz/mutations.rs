//! Mutates PTX texts: bytes, tokens, statements.
//!
//! The result is usually close to valid PTX. The same seed and texts give the same mutation.

use crate::random::Random;

/// Boundary values.
const NUMBERS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "2",
    "7",
    "8",
    "15",
    "16",
    "31",
    "32",
    "33",
    "63",
    "64",
    "65",
    "127",
    "255",
    "256",
    "65535",
    "65536",
    "0x7fffffff",
    "0x80000000",
    "0xffffffff",
    "0x7fffffffffffffff",
    "0xffffffffffffffff",
];

/// Types of registers and instructions.
const TYPES: [&str; 22] = [
    ".b8", ".b16", ".b32", ".b64", ".b128", ".u8", ".u16", ".u32", ".u64", ".s8", ".s16", ".s32", ".s64", ".f16",
    ".f16x2", ".bf16", ".bf16x2", ".f32", ".f64", ".pred", ".u16x2", ".tf32",
];

/// Modifiers, spaces, directives and signs.
const PIECES: [&str; 90] = [
    ".cluster",
    ".shared::cta",
    ".shared::cluster",
    ".mbarrier::complete_tx::bytes",
    ".bulk_group",
    ".multicast::cluster",
    ".L2::cache_hint",
    ".expect_tx",
    ".parity",
    ".tensor",
    ".2d",
    ".a2d",
    ".tile",
    ".cta_group::1",
    ".cta_group::2",
    ".kind::f16",
    ".x16",
    ".reqnctapercluster 2, 1, 1",
    ".global",
    ".shared",
    ".local",
    ".const",
    ".param",
    ".volatile",
    ".relaxed",
    ".acquire",
    ".release",
    ".gpu",
    ".sys",
    ".cta",
    ".v2",
    ".v4",
    ".v8",
    ".rn",
    ".rz",
    ".rm",
    ".rp",
    ".rni",
    ".rzi",
    ".ftz",
    ".sat",
    ".approx",
    ".full",
    ".lo",
    ".hi",
    ".wide",
    ".cc",
    ".eq",
    ".ne",
    ".lt",
    ".ltu",
    ".and",
    ".or",
    ".xor",
    ".add",
    ".cas",
    ".exch",
    ".min",
    ".sync",
    ".aligned",
    ".uni",
    ".x",
    ".y",
    ".idx",
    ".bfly",
    ".reg",
    ".entry k()",
    ".func",
    ".align 16",
    ".maxntid 32",
    ".loc 1 2 3",
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
    "_",
    "-",
    "+",
    "\"",
    "/*",
];

/// The mutated text of a seed.
pub fn mutate(seed: u64, texts: &[String]) -> String {
    let mut random = Random::new(seed);
    let mut text = texts[random.below(texts.len())].clone();
    let other = &texts[random.below(texts.len())];
    for _ in 0..1 + random.below(3) / 2 {
        text = match random.below(10) {
            0 => bytes(&mut random, &text),
            1..=4 => tokens(&mut random, &text),
            _ => statements(&mut random, &text, other),
        };
        if text.is_empty() {
            break;
        }
    }
    text
}

fn bytes(random: &mut Random, text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let at = random.below(bytes.len());
    match random.below(5) {
        0 => _ = bytes.drain(at..(at + random.below(30)).min(bytes.len())),
        1 => bytes[at] = random.below(256) as u8,
        2 => bytes.insert(at, 32 + random.below(95) as u8),
        3 => bytes.truncate(at),
        _ => {
            let from = random.below(bytes.len());
            let piece = bytes[from..(from + random.below(80)).min(bytes.len())].to_vec();
            bytes.splice(at..at, piece).for_each(drop);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Start and end of each word, number, suffix and sign after the header.
fn ranges(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'%');
    let mut out = Vec::new();
    let mut at = text.find(".address_size").map_or(0, |i| i + 16).min(bytes.len());
    while at < bytes.len() {
        let start = at;
        at += 1;
        if bytes[start].is_ascii_whitespace() {
            continue;
        }
        if word(bytes[start]) || bytes[start] == b'.' {
            while at < bytes.len() && word(bytes[at]) {
                at += 1;
            }
        }
        if text.is_char_boundary(start) && text.is_char_boundary(at) {
            out.push((start, at));
        }
    }
    out
}

fn tokens(random: &mut Random, text: &str) -> String {
    let all = ranges(text);
    if all.is_empty() {
        return text.to_string();
    }
    let kind = |text: &str| match text.as_bytes()[0] {
        b'0'..=b'9' => 0,
        b'.' if TYPES.contains(&text) => 1,
        b'.' => 2,
        b'%' => 3,
        b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => 4,
        _ => 5,
    };
    let (start, end) = all[random.below(all.len())];
    let old = &text[start..end];
    let alike: Vec<&str> = all.iter().map(|r| &text[r.0..r.1]).filter(|t| kind(t) == kind(old)).collect();
    let new = match (kind(old), random.below(8)) {
        (_, 0) => "",
        (_, 1) => random.pick(&PIECES),
        (0, 2..=5) => random.pick(&NUMBERS),
        (1, 2..=5) => random.pick(&TYPES),
        _ => random.pick(&alike),
    };
    [&text[..start], new, &text[end..]].concat()
}

/// Removes, duplicates, swaps and inserts statements, which end in `;`.
fn statements(random: &mut Random, text: &str, other: &str) -> String {
    let mut parts: Vec<&str> = text.split_inclusive(';').collect();
    let others: Vec<&str> = other.split_inclusive(';').collect();
    let (a, b) = (random.below(parts.len()), random.below(parts.len()));
    match random.below(6) {
        0 => _ = parts.remove(a),
        1 => parts.insert(b, parts[a]),
        2 => parts.swap(a, b),
        3 => {
            let moved = parts.remove(a);
            parts.insert(b.min(parts.len()), moved);
        }
        4 => parts.insert(b, others[random.below(others.len())]),
        _ => {
            // Repeats a run of statements, like an unrolled loop.
            let run: Vec<&str> = parts[a..(a + random.below(12)).min(parts.len())].to_vec();
            parts.splice(b..b, run).for_each(drop);
        }
    }
    parts.concat()
}
