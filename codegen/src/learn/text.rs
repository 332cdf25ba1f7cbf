//! Splits a disassembled line into tokens, and computes the difference of two lines.
//!
//! The input is one instruction as nvdisasm prints it, without the semicolon. Tokens distinguish
//! registers, numbers and suffixes. [`show`] of the tokens is the text again except for blanks.

/// One token of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// Mnemonic, `desc`, `c`, `cx`, and any other word.
    Word(String),
    /// A word after a dot.
    Suffix(String),
    /// A register: its file (`R`, `UR`, `P`, `UP`, `B`, `SB`, `SR`) and number. RZ and PT have the
    /// numbers of their codes.
    Reg(String, u32),
    /// A number, and whether it was printed in hexadecimal.
    Int(i128, bool),
    /// A number with a decimal point, an exponent or a name (`+INF`).
    Float(String),
    Punct(char),
}

impl Token {
    /// Whether a field can hold the token.
    pub fn is_atom(&self) -> bool {
        !matches!(self, Token::Suffix(_) | Token::Punct(_))
    }

    /// Whether it is this sign.
    pub fn is(&self, c: char) -> bool {
        *self == Token::Punct(c)
    }
}

/// What the tokenizer needs to know about the target: the number that prints as URZ, and the names
/// of the special registers.
pub struct Names {
    pub urz: u32,
    pub specials: Vec<(String, u32)>,
}

/// The tokens of a line.
pub fn tokens(line: &str, names: &Names) -> Vec<Token> {
    let (mut rest, mut list) = (line.trim_start(), Vec::new());
    while let Some(c) = rest.chars().next() {
        let signed = matches!(c, '-' | '+')
            && (rest[1..].starts_with(|d: char| d.is_ascii_digit())
                || ["INF", "QNAN", "SNAN"].iter().any(|n| rest[1..].starts_with(n)));
        let after_word = matches!(list.last(), Some(Token::Reg(..) | Token::Suffix(_) | Token::Int(..)));
        let len = match c {
            '+' if signed && after_word => 1,
            _ if signed => 1 + number_end(&rest[1..]),
            '0'..='9' => number_end(rest),
            '.' => 1 + word_end(&rest[1..]),
            _ if c.is_ascii_alphabetic() || c == '_' => match special(rest, names) {
                Some((len, number)) => {
                    list.push(Token::Reg("SR".into(), number));
                    rest = rest[len..].trim_start();
                    continue;
                }
                None => word_end(rest),
            },
            _ => c.len_utf8(),
        };
        let (text, after) = rest.split_at(len);
        list.push(token(text, names));
        rest = after.trim_start();
    }
    list
}

fn special(text: &str, names: &Names) -> Option<(usize, u32)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(text.len());
    names.specials.iter().find(|s| s.0 == text[..end]).map(|s| (end, s.1))
}

fn word_end(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '?').unwrap_or(text.len())
}

/// End of a number; an exponent may have a sign.
fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let hex = text.starts_with("0x");
    (0..bytes.len())
        .find(|i| match bytes[*i] {
            b'-' | b'+' => hex || *i == 0 || bytes[i - 1] != b'e',
            b => !b.is_ascii_alphanumeric() && b != b'.',
        })
        .unwrap_or(bytes.len())
}

fn token(text: &str, names: &Names) -> Token {
    if let Some(suffix) = text.strip_prefix('.') {
        return Token::Suffix(suffix.into());
    }
    if let Some(reg) = register(text, names.urz) {
        return reg;
    }
    let (minus, body) = text.strip_prefix('-').map_or((false, text), |b| (true, b));
    let number = match body.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok().map(|n| (n, true)),
        None => body.parse().ok().map(|n| (n, false)),
    };
    match number {
        // nvdisasm prints the float -0 like this; no integer has this text.
        Some((0, false)) if minus => Token::Float(text.into()),
        Some((n, hex)) => Token::Int(if minus { -n } else { n }, hex),
        None if float(text).is_some() || text.ends_with("QNAN") || text.ends_with("SNAN") => Token::Float(text.into()),
        None if text.len() == 1 && !text.starts_with(|c: char| c.is_ascii_alphanumeric()) => {
            Token::Punct(text.chars().next().unwrap_or(' '))
        }
        None => Token::Word(text.into()),
    }
}

fn register(text: &str, urz: u32) -> Option<Token> {
    let named = match text {
        "RZ" => Some(("R", 255)),
        "URZ" => Some(("UR", urz)),
        "PT" => Some(("P", 7)),
        "UPT" => Some(("UP", 7)),
        _ => None,
    };
    let (file, number) = match named {
        Some((file, number)) => (file, number),
        None => {
            let file = ["R", "UR", "P", "UP", "B", "SB", "SR"].into_iter().find(|f| {
                text.strip_prefix(f).is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
            })?;
            (file, text[file.len()..].parse().ok()?)
        }
    };
    Some(Token::Reg(file.into(), number))
}

/// The value of a float text; none for a NaN.
pub fn float(text: &str) -> Option<f64> {
    match text {
        "+INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        _ if text.ends_with(|c: char| c.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

/// The tokens as text for messages.
pub fn show(tokens: &[Token]) -> String {
    let mut text = String::new();
    for (i, token) in tokens.iter().enumerate() {
        let behind = i.checked_sub(1).map(|i| &tokens[i]);
        if token.is_atom() && behind.is_some_and(|b| b.is_atom() || matches!(b, Token::Suffix(_))) {
            text.push(' ');
        }
        text += &one(token);
    }
    text
}

fn one(token: &Token) -> String {
    match token {
        Token::Word(text) | Token::Float(text) => text.clone(),
        Token::Suffix(text) => format!(".{text}"),
        Token::Reg(file, number) => match (file.as_str(), number) {
            ("P" | "UP", 7) => format!("{file}T"),
            ("R", 255) => "RZ".into(),
            ("UR", 63 | 255) => "URZ".into(),
            _ => format!("{file}{number}"),
        },
        Token::Int(n, true) if *n < 0 => format!("-{:#x}", -n),
        Token::Int(n, true) => format!("{n:#x}"),
        Token::Int(n, false) => n.to_string(),
        Token::Punct(',') => ", ".into(),
        Token::Punct(c) => c.to_string(),
    }
}

/// The difference of two lines: `removed` tokens at index `at` of the first are replaced by
/// `added`.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub at: usize,
    pub removed: Vec<Token>,
    pub added: Vec<Token>,
}

/// The shortest range in which two lines differ; `None` if they are equal.
pub fn diff(a: &[Token], b: &[Token]) -> Option<Change> {
    if a == b {
        return None;
    }
    let front = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let most = a.len().min(b.len()) - front;
    let back = a.iter().rev().zip(b.iter().rev()).take(most).take_while(|(x, y)| x == y).count();
    let (removed, added) = (a[front..a.len() - back].to_vec(), b[front..b.len() - back].to_vec());
    Some(Change { at: front, removed, added })
}

/// Index of the mnemonic (after a guard), and the end of its suffixes.
pub fn mnemonic(tokens: &[Token]) -> (usize, usize) {
    let head = tokens.iter().position(|t| matches!(t, Token::Word(_))).unwrap_or(0);
    let suffixes = tokens[(head + 1).min(tokens.len())..].iter().take_while(|t| matches!(t, Token::Suffix(_))).count();
    (head, head + 1 + suffixes)
}
