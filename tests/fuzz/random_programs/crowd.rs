//! Crowds: more values alive at once than the registers of a program.
//!
//! A program names twelve 32-bit registers, so that its statements meet often; allocation and
//! scheduling under pressure never run on them alone. A crowd loads values of its own, some
//! statements then compute with those instead of the program's registers, and at the end all of
//! them are folded into the program's. No statement outside a crowd names its values.

use super::names::replaced;
use super::tree::Statement;
use crate::random::Random;

/// Values of a crowd: letter, type, the kind of register that they stand for, how many at most, and
/// the share of a crowd's size.
const VALUES: [(char, &str, char, usize, usize); 2] = [('v', "b32", 'r', 72, 1), ('z', "b64", 'd', 18, 4)];
/// Values of a crowd at least: no statement names more registers of a kind.
const LEAST: usize = 40;

/// The size of a random crowd.
pub fn size(random: &mut Random) -> usize {
    LEAST + random.below(VALUES[0].3 - LEAST + 1)
}

/// Declares the values.
pub fn declarations() -> String {
    VALUES.iter().map(|(letter, ty, _, most, _)| format!(".reg .{ty} {letter}<{most}>;\n")).collect()
}

/// Loads the values from the thread's inputs.
pub fn loaded(size: usize) -> String {
    let one = |(letter, ty, _, _, share): &(char, &str, char, usize, usize)| {
        let bytes = 4 * share.min(&2);
        let text = |i: usize| format!("ld.global.{ty} {letter}{i}, [io+{}];\n", bytes * (i % (288 / bytes)));
        (0..size / share).map(text).collect::<String>()
    };
    VALUES.iter().map(one).collect()
}

/// Folds the values into registers of the program.
pub fn folded(size: usize) -> String {
    let one = |(letter, ty, kind, _, share): &(char, &str, char, usize, usize)| {
        let bits = &ty[1..];
        let text = |i: usize| format!("mad.lo.u{bits} {kind}{0}, {kind}{0}, 31, {letter}{i};\n", i % 4);
        (0..size / share).map(text).collect::<String>()
    };
    VALUES.iter().map(one).collect()
}

/// A list in which some statements, also those in branches and loops, use the values.
pub fn mixed(list: &mut [Statement], size: usize, random: &mut Random) {
    for statement in list {
        match statement {
            Statement::Plain(text) if random.below(4) > 0 => *text = renamed(text, size, random),
            Statement::If { yes, no, .. } => [yes, no].into_iter().for_each(|list| mixed(list, size, random)),
            Statement::Loop { body, .. } => mixed(body, size, random),
            Statement::Graph(nodes) => nodes.iter_mut().for_each(|node| mixed(&mut node.body, size, random)),
            _ => {}
        }
    }
}

/// A text with values in place of registers; different registers stay different.
fn renamed(text: &str, size: usize, random: &mut Random) -> String {
    let first = random.below(size);
    replaced(text, |word| {
        let (kind, number) = super::names::register(word)?;
        let (letter, .., share) = VALUES.iter().find(|values| values.2 == kind)?;
        Some(format!("{letter}{}", (first + number) % (size / share)))
    })
}

/// Whether a text names a value of a crowd.
pub fn named(text: &str) -> bool {
    let value = |name: &String| VALUES.iter().any(|values| name.strip_prefix(values.0).is_some_and(numbered));
    super::names::names(text).iter().any(value)
}

fn numbered(rest: &str) -> bool {
    !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn registers_of_a_statement_stay_apart() {
    let text = renamed("mad.lo.u32 r0, r1, r11, r0; add.u64 d0, d7, 1;", LEAST, &mut Random::new(3));
    let names: std::collections::BTreeSet<String> = super::names::names(&text).into_iter().collect();
    assert!(named(&text) && names.iter().filter(|name| named(name)).count() == 5, "{text}");
}
