//! Parses which instructions belong to an operation of the legality matrix, and the messages with
//! which they are rejected.
//!
//! The texts are those of `is` in `legality/instructions.ron` and of `illegal` in the rules. A word
//! outside their grammar is an error that names it (law `names`).

/// Words of which the instruction must have one, or with `absent` none.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// Only compare the type with this index, from 0.
    pub nth: Option<u8>,
    pub absent: bool,
    pub words: Vec<String>,
}

/// Instructions with one of several names, and further conditions.
#[derive(Clone, Debug, Default)]
pub struct Pattern {
    pub names: Vec<String>,
    pub words: Vec<Words>,
    pub operands: Option<u8>,
    /// Whether some operand is a register.
    pub register: Option<bool>,
    /// Whether some operand is `a|b`.
    pub pair: Option<bool>,
}

/// The message of a refusal and the instructions it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wording {
    /// The instruction must contain one word of each list.
    pub words: Vec<Vec<String>>,
    pub text: String,
}

/// Parses the alternatives of `is`.
pub fn patterns(text: &str) -> Result<Vec<Pattern>, String> {
    text.split(" | ").map(pattern).collect()
}

fn pattern(text: &str) -> Result<Pattern, String> {
    let mut pattern = Pattern::default();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = match rest.find(['[', ' ']) {
            Some(at) if rest[at..].starts_with('[') => rest.find(']').ok_or("a `[` without `]`")? + 1,
            Some(at) => at,
            None => rest.len(),
        };
        let (part, behind) = rest.split_at(end);
        rest = behind.trim_start();
        match part {
            "register" | "constant" => pattern.register = Some(part == "register"),
            "pair" | "single" => pattern.pair = Some(part == "pair"),
            _ if part.starts_with('#') => pattern.operands = Some(number(&part[1..], part)?),
            _ => match part.split_once('[') {
                Some((head, words)) => pattern.words.push(group(head, words.trim_end_matches(']'), part)?),
                None => pattern.names.push(part.to_string()),
            },
        }
    }
    if pattern.names.is_empty() { Err("no instruction is named".to_string()) } else { Ok(pattern) }
}

fn number(text: &str, part: &str) -> Result<u8, String> {
    text.parse().map_err(|_| format!("`{part}` is no condition"))
}

/// `[a b]`, `![a b]` or `1[a b]`.
fn group(head: &str, words: &str, part: &str) -> Result<Words, String> {
    let (absent, nth) = match head {
        "" => (false, None),
        "!" => (true, None),
        _ => (false, Some(number(head, part)?)),
    };
    let words: Vec<String> = words.split_whitespace().map(str::to_string).collect();
    if words.is_empty() { Err(format!("`{part}` is no condition")) } else { Ok(Words { nth, absent, words }) }
}

/// Parses the alternatives of a refusal. Each placeholder must be one of the refusal's words.
pub fn wordings(text: &str) -> Result<Vec<Wording>, String> {
    let one = |alternative: &str| {
        let (mut words, mut rest) = (Vec::new(), alternative.trim());
        while let Some((list, behind)) = rest.strip_prefix('[').and_then(|inside| inside.split_once(']')) {
            words.push(list.split_whitespace().map(str::to_string).collect());
            rest = behind.trim_start();
        }
        let names = rest.split('{').skip(1).map(|part| part.split('}').next().unwrap_or(part));
        for name in names {
            let counted = name.parse().is_ok_and(|n: usize| (1..=words.len()).contains(&n));
            if !counted && !["target", "op", "type", "types"].contains(&name) {
                return Err(format!("`{{{name}}}` stands for nothing in the refusal"));
            }
        }
        if rest.is_empty() {
            Err("the refusal has no words".to_string())
        } else {
            Ok(Wording { words, text: rest.to_string() })
        }
    };
    text.split(" | ").map(one).collect()
}
