//! The grammar of the columns `fix`, `must`, `mods` and `args` of encoding rows.
//!
//! It parses a column into bit ranges, numbers and operand words with their attributes; no names
//! are resolved here. The legend on top of each file in `tables/encoding` describes the grammar.

/// Bit ranges of a field, lowest part first. The value is shifted left by `shift` when read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    /// (lowest bit, number of bits)
    pub pieces: Vec<(u8, u8)>,
    pub shift: u8,
}

impl Bits {
    /// Total number of bits.
    pub fn width(&self) -> u32 {
        self.pieces.iter().map(|p| u32::from(p.1)).sum()
    }

    /// Whether a value fits the width.
    pub fn fits(&self, value: u128) -> bool {
        self.width() >= 128 || value >> self.width() == 0
    }

    /// The field's bits as a mask.
    pub fn mask(&self) -> u128 {
        self.place(u128::MAX)
    }

    /// A value at the field's position in the word.
    pub fn place(&self, mut value: u128) -> u128 {
        let mut word = 0;
        for (lo, len) in &self.pieces {
            word |= (value & ((1 << len) - 1)) << lo;
            value >>= len;
        }
        word
    }
}

/// One operand word of the column `args`.
#[derive(Clone, Debug, Default)]
pub struct GroupedArg {
    pub role: String,
    /// Name of the kind; `lit` for a word that is only printed, `word` for a modifier that is
    /// printed as an operand.
    pub kind: String,
    pub bits: Option<Bits>,
    pub neg: Option<u8>,
    pub abs: Option<u8>,
    pub complement: Option<u8>,
    pub not: Option<u8>,
    pub reuse: Option<u8>,
    /// The value with which it is not printed.
    pub elide: Option<(u64, bool)>,
    /// Required, and kept in the instruction even if it equals its role's default.
    pub kept: bool,
    /// Modifier words printed after the operand.
    pub suffixes: Vec<String>,
    /// Modifier words printed after the bracket that ends with the operand.
    pub behind: Vec<String>,
    /// Literal text printed after the operand, or the literal itself.
    pub literal: String,
    /// Number of the enclosing bracket, from 1; 0 for none.
    pub group: u8,
    /// Text that opens the bracket.
    pub open: String,
    /// Separator from the previous operand.
    pub join: &'static str,
}

/// Operand kinds with the number of bits that a bare `KIND@LO` stands for.
const KINDS: &[(&str, u8)] = &[
    ("R", 8),
    ("U", 8),
    ("P", 3),
    ("UP", 3),
    ("UQ", 3),
    ("UN", 0),
    ("URN", 8),
    ("B", 4),
    ("I", 32),
    ("S", 32),
    ("N", 32),
    ("F", 32),
    ("H", 32),
    ("G", 32),
    ("FH", 16),
    ("FG", 16),
    ("D", 32),
    ("L", 32),
    ("SR", 8),
    ("RN", 8),
    ("RH", 8),
    ("SD", 32),
    ("SU", 32),
    ("RR", 8),
    ("SB", 3),
    ("M", 6),
    ("REL", 32),
    ("C", 0),
    ("X", 0),
    ("K", 5),
    ("O", 16),
];

/// The two constant kinds: offset in the bank, and the bank or the uniform register with the
/// handle.
pub fn constant_bits(kind: &str) -> Option<(Bits, Bits)> {
    let offset = Bits { pieces: vec![(40, 14)], shift: 2 };
    match kind {
        "C" => Some((offset, Bits { pieces: vec![(54, 5)], shift: 0 })),
        "X" => Some((offset, Bits { pieces: vec![(32, 8)], shift: 0 })),
        _ => None,
    }
}

/// `5`, `5..9`, `16..23+34..81`, `34..81*4`.
pub fn bits(text: &str) -> Option<Bits> {
    let (text, shift) = match text.split_once('*') {
        Some((text, scale)) => {
            (text, scale.parse::<u32>().ok().filter(|s| s.is_power_of_two())?.trailing_zeros() as u8)
        }
        None => (text, 0),
    };
    let piece = |part: &str| {
        let (lo, hi) = part.split_once("..").unwrap_or((part, part));
        let (lo, hi) = (lo.parse::<u8>().ok()?, hi.parse::<u8>().ok()?);
        (lo <= hi && hi < 128).then(|| (lo, hi - lo + 1))
    };
    let pieces = text.split('+').map(piece).collect::<Option<Vec<_>>>()?;
    Some(Bits { pieces, shift })
}

/// A number in decimal, hexadecimal (`0x`) or binary (`0b`).
pub fn number(text: &str) -> Option<u64> {
    match (text.strip_prefix("0x"), text.strip_prefix("0b")) {
        (Some(hex), _) => u64::from_str_radix(hex, 16).ok(),
        (_, Some(bin)) => u64::from_str_radix(bin, 2).ok(),
        _ => text.parse().ok(),
    }
}

/// As the value of `?`: the operand is never printed.
pub const NEVER_PRINTED: u64 = u64::MAX;

/// A number or the name of a register's special value; the flag is set by `!`.
pub fn value(text: &str) -> Option<(u64, bool)> {
    match text {
        "RZ" | "URZ" => Some((255, false)),
        "PT" | "UPT" => Some((7, false)),
        "!PT" | "!UPT" => Some((7, true)),
        "*" => Some((NEVER_PRINTED, false)),
        _ => number(text).map(|n| (n, false)),
    }
}

/// The operand words of a column `args`, brackets resolved.
pub fn args(text: &str) -> Result<Vec<GroupedArg>, String> {
    let mut list = Vec::new();
    let mut group = 0;
    for word in words(text) {
        if !word.contains('[') {
            list.push(joined(word)?);
            continue;
        }
        let mut rest = word;
        let mut join = ", ";
        while !rest.is_empty() {
            let parts = rest.split_once('[').and_then(|(open, r)| Some((open, r.split_once(']')?)));
            let (open, (inner, after)) = parts.ok_or_else(|| format!("`{word}` has a bracket too few"))?;
            group += 1;
            for part in inner.split_whitespace() {
                list.push(GroupedArg { group, open: format!("{open}["), join, ..operand(part)? });
            }
            let end = if after.starts_with('.') { after.find('[').unwrap_or(after.len()) } else { 0 };
            let (behind, after) = after.split_at(end);
            if let Some(last) = list.last_mut() {
                last.behind = suffixes(behind);
            }
            (rest, join) = (after, "");
        }
    }
    Ok(list)
}

/// An operand outside brackets. A `_` before it means that a blank, not a comma, separates it from
/// the previous one.
fn joined(word: &str) -> Result<GroupedArg, String> {
    match word.strip_prefix('_') {
        Some(word) => Ok(GroupedArg { join: " ", ..operand(word)? }),
        None => Ok(GroupedArg { join: ", ", ..operand(word)? }),
    }
}

/// The modifier words of `.SET@BITS.SET@BITS`.
fn suffixes(mut text: &str) -> Vec<String> {
    let mut list = Vec::new();
    while let Some(body) = text.strip_prefix('.') {
        let (suffix, rest) = body.split_at(suffix_end(body));
        list.push(suffix.into());
        text = rest;
    }
    list
}

/// Splits at blanks outside brackets.
fn words(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut list) = (0i32, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ' ' if depth <= 0 => {
                list.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    list.push(&text[start..]);
    list.retain(|w| !w.is_empty());
    list
}

/// `role:KIND@BITS` with its attributes, `'WORD`, or `#SET@BITS`.
fn operand(word: &str) -> Result<GroupedArg, String> {
    if let Some(set) = word.strip_prefix('#') {
        return Ok(GroupedArg { kind: "word".into(), suffixes: vec![set.into()], ..GroupedArg::default() });
    }
    if let Some(literal) = word.strip_prefix('\'') {
        return Ok(GroupedArg { kind: "lit".into(), literal: literal.into(), ..GroupedArg::default() });
    }
    let wrong = || format!("`{word}` is not ROLE:KIND@BITS with attributes");
    let (role, rest) = word.split_once(':').ok_or_else(wrong)?;
    let end = rest.find(|c: char| !c.is_ascii_uppercase()).unwrap_or(rest.len());
    let (kind, mut rest) = rest.split_at(end);
    let width =
        KINDS.iter().find(|k| k.0 == kind).ok_or_else(|| format!("`{word}`: no kind of operand is called `{kind}`"))?.1;
    let mut arg = GroupedArg { role: role.into(), kind: kind.into(), ..GroupedArg::default() };
    if let Some(at) = rest.strip_prefix('@') {
        let end = range_end(at);
        let mut field = bits(&at[..end]).ok_or_else(wrong)?;
        if field.pieces.len() == 1 && field.pieces[0].1 == 1 && width > 1 {
            field.pieces[0].1 = width;
        }
        (arg.bits, rest) = (Some(field), &at[end..]);
    }
    if arg.bits.is_none() == (width > 0) {
        return Err(wrong());
    }
    while let Some(sign) = rest.chars().next() {
        let body = &rest[1..];
        let end = match sign {
            // The value may itself start with `!`.
            '?' => body
                .get(1..)
                .and_then(|b| b.find(['-', '|', '~', '^', '.', '?', '!', '=']))
                .map_or(body.len(), |i| i + 1),
            '.' => suffix_end(body),
            _ => body.find(|c: char| !c.is_ascii_digit()).unwrap_or(body.len()),
        };
        let text = &body[..end];
        let bit = || text.parse::<u8>().ok().filter(|b| *b < 128).ok_or_else(wrong);
        match sign {
            '-' => arg.neg = Some(bit()?),
            '|' => arg.abs = Some(bit()?),
            '~' => arg.complement = Some(bit()?),
            '!' => arg.not = Some(bit()?),
            '^' => arg.reuse = Some(bit()?),
            '=' if text.is_empty() => arg.kept = true,
            '?' => arg.elide = Some(value(text).ok_or_else(wrong)?),
            '.' if text.starts_with('\'') => arg.literal = format!(".{}", &text[1..]),
            '.' => arg.suffixes.push(text.into()),
            _ => return Err(wrong()),
        }
        rest = &body[end..];
    }
    Ok(arg)
}

/// End of a bit range at the start of a text: digits, `..`, `+` and `*`.
fn range_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'0'..=b'9' | b'+' | b'*' => i += 1,
            b'.' if bytes.get(i + 1) == Some(&b'.') => i += 2,
            _ => break,
        }
    }
    i
}

/// End of a suffix: a literal extends to the next attribute, a set to the end of its bits.
fn suffix_end(text: &str) -> usize {
    match text.split_once('@') {
        Some((head, bits)) if !head.starts_with('\'') => head.len() + 1 + range_end(bits),
        _ => text.find(['-', '|', '~', '^', '?', '!']).unwrap_or(text.len()),
    }
}
