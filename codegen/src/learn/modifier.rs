//! Finds modifiers: which bits form a modifier field, and the text of every value of the field.
//!
//! From a word and its effects it derives modifier fields with all values, bits that reveal
//! operands, and remarks. Two bits are independent only if flipping one has the same effect
//! whatever the other is.

use super::ask::{Ask, Seen};
use super::effect::Effect;
use super::text::{Token, diff, show};

/// A modifier field with all of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modifier {
    /// Lowest first.
    pub bits: Vec<u8>,
    /// Token that the suffix follows: the mnemonic, or an operand.
    pub behind: usize,
    /// Number of suffixes before it.
    pub order: usize,
    /// (code, suffixes without the first dot; empty for none)
    pub values: Vec<(u64, String)>,
}

impl Modifier {
    /// The field's bits as a mask.
    pub fn mask(&self) -> u128 {
        self.bits.iter().fold(0, |m, b| m | 1 << b)
    }

    /// A code moved to the field's bits.
    pub fn place(&self, code: u64) -> u128 {
        self.bits.iter().enumerate().fold(0, |w, (i, b)| w | u128::from(code >> i & 1) << b)
    }

    /// The field's code in a word.
    pub fn code(&self, word: u128) -> u64 {
        self.bits.iter().enumerate().fold(0, |v, (i, b)| v | ((word >> b & 1) as u64) << i)
    }

    fn text(&self, word: u128) -> &str {
        self.values.iter().find(|v| v.0 == self.code(word)).map_or("", |v| &v.1)
    }
}

/// The modifiers of a word.
#[derive(Default)]
pub struct Modifiers {
    pub list: Vec<Modifier>,
    /// Bits that change suffixes but also select forms, or cannot be swept, and the reason.
    pub forms: Vec<(u128, String)>,
    pub remarks: Vec<String>,
}

/// Largest number of bits that are swept together.
const WIDEST: usize = 10;

/// Finds and sweeps the modifier fields of a word.
pub fn modifiers(ask: &mut Ask, seen: &Seen) -> Result<Modifiers, String> {
    let mut found = Modifiers::default();
    for bits in groups(ask, seen, &mut found)? {
        let mask = bits.iter().fold(0, |m: u128, b| m | 1 << b);
        if bits.len() > WIDEST {
            found.forms.push((mask, format!("{} bits depend on each other: too many to sweep", bits.len())));
            continue;
        }
        match sweep(ask, seen, bits, &mut found.remarks)? {
            Ok(modifier) => found.list.push(modifier),
            Err(why) => found.forms.push((mask, why)),
        }
    }
    order(ask, seen, &mut found)?;
    Ok(found)
}

/// Sets of dependent bits, found by testing every pair of a suffix bit and another bit.
fn groups(ask: &mut Ask, seen: &Seen, found: &mut Modifiers) -> Result<Vec<Vec<u8>>, String> {
    let at = |effect: Effect| -> Vec<u8> {
        seen.bits.iter().filter(|b| b.1 == effect && (16..=super::ask::LAST).contains(&b.0)).map(|b| b.0).collect()
    };
    let (mut mods, others) = (at(Effect::Suffix), [at(Effect::Silent), at(Effect::Illegal)].concat());
    for bit in mods.extract_if(.., |b| single_place(seen, *b).is_none()) {
        found.forms.push((1 << bit, "it changes suffixes in several places".into()));
    }
    let pairs: Vec<(u8, u8)> =
        mods.iter().flat_map(|j| mods.iter().filter(move |i| *i > j).chain(&others).map(move |i| (*j, *i))).collect();
    let words: Vec<u128> = pairs.iter().map(|(j, i)| seen.word ^ 1 << j ^ 1 << i).collect();
    let singles: Vec<u128> = mods.iter().map(|j| seen.word ^ 1 << j).collect();
    let (both, alone) = (ask.tokens(&words)?, ask.tokens(&singles)?);
    let single = |bit: u8| mods.iter().position(|m| *m == bit).and_then(|i| alone[i].as_deref());
    let mut together = Vec::new();
    let mut uncover: Vec<(u8, u128, String)> = Vec::new();
    for ((j, i), both) in pairs.iter().zip(&both) {
        match relation(seen, single(*j), single(*i), seen.effect(*i), both.as_deref()) {
            Relation::Apart => {}
            Relation::Together => together.push((*j, *i)),
            Relation::Uncovers => match uncover.iter_mut().find(|u| u.0 == *j) {
                Some(known) => known.1 |= 1 << i,
                None => uncover.push((*j, 1 << i, show(both.as_deref().unwrap_or_default()))),
            },
            Relation::Odd(why) => found.remarks.push(format!("bits {j} and {i} flipped together: {why}")),
        }
    }
    for (j, bits, text) in uncover {
        let ranges = crate::check::bits::ranges(bits);
        let why = format!("with it flipped, bits {ranges} are no longer silent ({text}): a form of its own");
        found.forms.push((1 << j, why));
        mods.retain(|b| *b != j);
        together.retain(|(a, b)| *a != j && *b != j);
    }
    let mut sets: Vec<Vec<u8>> = mods.iter().map(|m| vec![*m]).collect();
    together.into_iter().for_each(|(a, b)| join(&mut sets, a, b));
    Ok(sets)
}

enum Relation {
    Apart,
    Together,
    /// The second bit belongs to an operand once the first is flipped.
    Uncovers,
    Odd(String),
}

fn relation(
    seen: &Seen,
    first: Option<&[Token]>,
    second: Option<&[Token]>,
    effect: &Effect,
    both: Option<&[Token]>,
) -> Relation {
    let Some(first) = first else { return Relation::Apart };
    let change = |a: &[Token], b: &[Token]| diff(a, b).map(|c| (c.removed, c.added));
    match (effect, both) {
        (Effect::Suffix, None) => Relation::Together,
        (Effect::Suffix, Some(both)) => {
            let Some(second) = second else { return Relation::Apart };
            let same = change(&seen.tokens, second) == change(first, both)
                && change(&seen.tokens, first) == change(second, both);
            if same { Relation::Apart } else { Relation::Together }
        }
        (Effect::Silent, None) => Relation::Odd("illegal, although the second does nothing alone".into()),
        (_, None) => Relation::Apart,
        (_, Some(both)) if both == first && *effect == Effect::Silent => Relation::Apart,
        (_, Some(both)) if both == first => Relation::Odd("the second is legal, and does nothing".into()),
        (_, Some(both)) if bare(both) == bare(first) && places(&seen.tokens, first) == places(first, both) => {
            Relation::Together
        }
        (Effect::Silent, Some(_)) => Relation::Uncovers,
        (_, Some(both)) => Relation::Odd(format!("another form, {}", show(both))),
    }
}

/// The tokens that are not suffixes.
fn bare(tokens: &[Token]) -> Vec<&Token> {
    tokens.iter().filter(|t| !matches!(t, Token::Suffix(_))).collect()
}

fn join(sets: &mut Vec<Vec<u8>>, a: u8, b: u8) {
    let mut union = vec![a, b];
    sets.retain(|set| {
        let meets = set.contains(&a) || set.contains(&b);
        if meets {
            union.extend(set);
        }
        !meets
    });
    union.sort_unstable();
    union.dedup();
    sets.push(union);
    sets.sort();
}

/// Every value of a set of bits.
fn sweep(
    ask: &mut Ask,
    seen: &Seen,
    bits: Vec<u8>,
    remarks: &mut Vec<String>,
) -> Result<Result<Modifier, String>, String> {
    let mut modifier = Modifier { bits, behind: 0, order: 0, values: Vec::new() };
    let clear = seen.word & !modifier.mask();
    let words: Vec<u128> = (0..1u64 << modifier.bits.len()).map(|v| clear | modifier.place(v)).collect();
    let mut lists = Vec::new();
    for (code, tokens) in ask.tokens(&words)?.into_iter().enumerate() {
        let Some(tokens) = tokens else { continue };
        if bare(&tokens) == bare(&seen.tokens) {
            lists.push((code as u64, suffixes(&tokens)));
        } else {
            let bits = crate::check::bits::ranges(modifier.mask());
            remarks.push(format!("bits {bits} = {code} is another form: {}", show(&tokens)));
        }
    }
    let here = suffixes(&seen.tokens);
    let Some(place) = modifier.bits.iter().find_map(|b| single_place(seen, *b)) else {
        return Ok(Err("its suffixes stand in several places".into()));
    };
    lists.retain(|(code, list)| {
        let odd = (0..here.len()).any(|p| p != place && list[p] != here[p]);
        if odd {
            let bits = crate::check::bits::ranges(modifier.mask());
            remarks.push(format!("bits {bits} = {code} changes suffixes in other places too: left out"));
        }
        !odd
    });
    let columns: Vec<&Vec<String>> = lists.iter().map(|l| &l.1[place]).collect();
    let shortest = columns.iter().map(|c| c.len()).min().unwrap_or(0);
    let same = |at: &dyn Fn(&[String], usize) -> Option<String>, most: usize| {
        (0..most).take_while(|i| columns.iter().all(|c| at(c, *i) == at(columns[0], *i))).count()
    };
    let front = same(&|c, i| c.get(i).cloned(), shortest);
    let back = same(&|c, i| c.len().checked_sub(i + 1).map(|i| c[i].clone()), shortest - front);
    modifier.values = lists.iter().map(|(v, l)| (*v, l[place][front..l[place].len() - back].join("."))).collect();
    modifier.order = front;
    modifier.behind =
        (0..seen.tokens.len()).filter(|i| !matches!(seen.tokens[*i], Token::Suffix(_))).nth(place).unwrap_or_default();
    Ok(Ok(modifier))
}

/// The only token after which flipping a bit changes suffixes; `None` if there are several, or
/// something else changes.
fn single_place(seen: &Seen, bit: u8) -> Option<usize> {
    let flipped = seen.bits.iter().find(|b| b.0 == bit && b.1 == Effect::Suffix)?.3.as_ref()?;
    let places = places(&seen.tokens, flipped);
    if places.len() == 1 { places.first().copied() } else { None }
}

/// The non-suffix tokens after which two lines have different suffixes.
fn places(a: &[Token], b: &[Token]) -> Vec<usize> {
    let (a, b) = (suffixes(a), suffixes(b));
    (0..a.len()).filter(|p| a.get(*p) != b.get(*p)).collect()
}

/// For each non-suffix token, the suffixes after it.
fn suffixes(tokens: &[Token]) -> Vec<Vec<String>> {
    let mut list: Vec<Vec<String>> = Vec::new();
    for token in tokens {
        match (token, list.last_mut()) {
            (Token::Suffix(text), Some(last)) => last.push(text.clone()),
            _ => list.push(Vec::new()),
        }
    }
    list
}

/// Sorts by printing order; if the word prints neither of two modifiers, a word that prints both is
/// queried.
fn order(ask: &mut Ask, seen: &Seen, found: &mut Modifiers) -> Result<(), String> {
    let list = &mut found.list;
    list.sort_by_key(|m| (m.behind, m.order, m.text(seen.word).is_empty(), m.bits.clone()));
    // Insertion sort over pairwise queries: there are few modifiers.
    for i in 1..list.len() {
        for k in (0..i).rev() {
            let (a, b) = (&list[k], &list[k + 1]);
            if a.behind != b.behind || !after(ask, seen, a, b)? {
                break;
            }
            list.swap(k, k + 1);
        }
    }
    Ok(())
}

/// Whether `a` is printed after `b` in a word that prints both.
fn after(ask: &mut Ask, seen: &Seen, a: &Modifier, b: &Modifier) -> Result<bool, String> {
    let mut tries = Vec::new();
    for (x, s) in a.values.iter().filter(|v| !v.1.is_empty()) {
        for (y, t) in b.values.iter().filter(|v| !v.1.is_empty() && v.1 != *s) {
            tries.push((seen.word & !a.mask() & !b.mask() | a.place(*x) | b.place(*y), s, t));
        }
    }
    tries.truncate(16);
    let words: Vec<u128> = tries.iter().map(|t| t.0).collect();
    for (tokens, (_, s, t)) in ask.tokens(&words)?.into_iter().zip(&tries) {
        let Some(text) = tokens.map(|t| show(&t) + ".") else { continue };
        let find = |word: &str| text.find(&format!(".{word}.")).or_else(|| text.find(&format!(".{word}")));
        if let (Some(x), Some(y)) = (find(s), find(t)) {
            return Ok(x > y);
        }
    }
    Ok(false)
}
