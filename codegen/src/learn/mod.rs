//! `learn SM WORD...`: proposes an encoding row by flipping bits through a disassembler.
//!
//! The input is an SM number and words of one form. The report has the row, new modifier sets, bits
//! without a name, and the rows that decode the words already. It claims only what was observed and
//! never writes the tables.

pub mod args;
pub mod ask;
pub mod disasm;
pub mod effect;
pub mod field;
pub mod known;
pub mod modifier;
pub mod row;
pub mod syntax;
pub mod text;

use crate::check::bits::ranges;
use crate::model::Model;
use crate::source::Sources;
use ask::{Ask, Seen};
use disasm::Disassembler;
use effect::Effect;
use row::{Learned, Proposal};
use text::{Names, mnemonic};

/// Parses the words of the command line: 32 hexadecimal digits, most significant first, or two
/// halves of at most 16, low half first (both halves with 0x or 16 digits).
pub fn words(args: &[&str]) -> Result<Vec<u128>, String> {
    let (mut list, mut rest) = (Vec::new(), args);
    while let [first, tail @ ..] = rest {
        let digits = |text: &str| text.strip_prefix("0x").unwrap_or(text).to_string();
        let number = |text: &str| {
            let number = u128::from_str_radix(&digits(text), 16);
            number.map_err(|_| format!("`{text}` is not a number in hexadecimal"))
        };
        match (digits(first).len(), tail) {
            (32, _) => (list.push(number(first)?), rest = tail).1,
            (1..=16, [second, tail @ ..]) if digits(second).len() <= 16 => {
                (list.push(number(second)? << 64 | number(first)?), rest = tail).1
            }
            _ => return Err(format!("`{first}` is neither 32 hexadecimal digits nor the low one of two halves")),
        }
    }
    if list.is_empty() { Err("no word is given".into()) } else { Ok(list) }
}

/// What the tokenizer needs to know about a target.
pub fn names(model: &Model, target: &known::Target) -> Names {
    let specials = model.encoding.specials.iter().filter(|(_, on, feature)| {
        on.contains(&target.generation) && feature.is_none_or(|f| model.targets.has[target.index][f])
    });
    let specials = specials.map(|(row, ..)| (row.text.clone(), u32::from(row.num))).collect();
    Names { urz: (1 << target.ur_bits) - 1, specials }
}

/// Learns one row from words of one form.
pub fn learn(
    model: &Model,
    target: &known::Target,
    words: &[u128],
    disassembler: &mut dyn Disassembler,
) -> Result<(Proposal, Vec<Seen>), String> {
    let names = names(model, target);
    let version = disassembler.version();
    let mut ask = Ask { disassembler, names: &names };
    let mut all = words.iter().map(|w| ask.flips(*w)).collect::<Result<Vec<_>, _>>()?;
    // The word that prints most tokens is the most informative.
    all.sort_by_key(|s| usize::MAX - s.tokens.len());
    let seen = &all[0];
    for other in &all[1..] {
        let name = |s: &Seen| s.tokens.get(mnemonic(&s.tokens).0).cloned();
        if other.word & 0xfff != seen.word & 0xfff || name(other) != name(seen) {
            return Err(format!("`{}` and `{}` are not of one form", seen.text, other.text));
        }
    }
    let modifiers = modifier::modifiers(&mut ask, seen)?;
    let effects: Vec<(u8, Effect)> =
        seen.bits.iter().filter(|b| !(0..16).contains(&b.0)).map(|b| (b.0, b.1.clone())).collect();
    let (fields, refused) = field::fields(&effects, &seen.tokens, seen.word, &names);
    let differ = all.iter().fold(0, |m, s| m | s.word ^ seen.word);
    let elsewhere = all[1..].iter().flat_map(|s| elsewhere(seen, s)).collect();
    let learned =
        Learned { model, target, names: &names, seen, fields, refused, modifiers, differ, elsewhere, version };
    let proposal = row::propose(learned);
    Ok((proposal, all))
}

/// Bits without effect in one word but with an effect in another.
fn elsewhere(seen: &Seen, other: &Seen) -> Vec<(u128, String)> {
    let named = |bit: &&ask::Bit| {
        bit.0 >= 16
            && bit.0 <= ask::LAST
            && *seen.effect(bit.0) == Effect::Silent
            && !matches!(bit.1, Effect::Silent | Effect::Illegal)
    };
    let told = |bit: &ask::Bit| {
        let text = bit.2.as_deref().unwrap_or("illegal");
        (1 << bit.0, format!("nothing in `{}`, but `{}` -> `{text}`", seen.text, other.text))
    };
    other.bits.iter().filter(named).map(told).collect()
}

/// Prints the report.
pub fn report(model: &Model, sources: &Sources, target: &known::Target, proposal: &Proposal, seen: &[Seen]) -> String {
    let mut text = String::new();
    for one in seen {
        text += &format!("// {:032x}  {}\n", one.word, one.text);
    }
    text += &format!("{}\n", proposal.row);
    let mut list = |title: &str, lines: &[String]| {
        if !lines.is_empty() {
            text += &format!("\n{title}\n");
            lines.iter().for_each(|l| text += &format!("  {l}\n"));
        }
    };
    list("new rows for tables/encoding/modifiers.ron:", &proposal.sets);
    list("sets of the tables that say the same:", &proposal.known);
    let mut unnamed = proposal.unnamed.clone();
    if proposal.open != 0 {
        unnamed.push(format!("the row is incomplete: bits {} are in no column", ranges(proposal.open)));
    }
    list("without a name:", &unnamed);
    list("remarks:", &proposal.remarks);
    for one in seen {
        let rows: Vec<String> = known::decoders(model, target, one.word)
            .iter()
            .map(|form| {
                let must = (one.word ^ form.must.1) & form.must.0;
                let odd =
                    if must == 0 { String::new() } else { format!(" (but `must` says otherwise: {})", ranges(must)) };
                format!("{}  {}{odd}", known::place(sources, form.row.at), form.row.op)
            })
            .collect();
        let none = vec!["none".to_string()];
        list(&format!("rows that decode `{}`:", one.text), if rows.is_empty() { &none } else { &rows });
    }
    text
}
