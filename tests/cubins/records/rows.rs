//! The rows of `tests/oracle/records.txt`: what may differ, where, and why.
//!
//! A row has five columns between bars: who says it alone, what, of which file and function, what
//! the code must have for it, and the reason. `*` stands for any text in the second and third. The
//! fourth is empty, `ours X,Y` or `theirs X,Y` (that code has one of these instructions), or
//! `apart X,Y` (the two codes have other numbers of them); an instruction is named with as many of
//! its modifiers as matter, and with `.*` before one that stands further behind. A reason that
//! begins with `all:` is of a row that only a run on all targets needs.

use super::Difference;
use std::collections::BTreeMap;

pub struct Row {
    /// The line, as a failure shows it.
    pub line: String,
    side: String,
    what: String,
    place: String,
    when: String,
    /// Whether only a run on all targets needs it.
    pub rare: bool,
}

/// The rows of a table; lines with `#` are about it.
pub fn read(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [side, what, place, when, why] = columns[..] else { panic!("no five columns: {line}") };
        assert!(["ours", "theirs"].contains(&side) && !why.is_empty(), "{line}");
        let own = |column: &str| column.to_string();
        Row {
            line: own(line),
            side: own(side),
            what: own(what),
            place: own(place),
            when: own(when),
            rare: why.starts_with("all: "),
        }
    };
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(row).collect()
}

/// Whether a text is of a pattern, in which `*` stands for any text.
pub fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => {
            let Some(text) = text.strip_prefix(start) else { return false };
            (0..=text.len()).any(|at| text.get(at..).is_some_and(|text| fits(rest, text)))
        }
    }
}

/// How many instructions of some code have one of the names.
pub fn count(names: &str, code: &BTreeMap<String, usize>) -> usize {
    let named = |mnemonic: &str| names.split(',').any(|name| fits(&format!("{name}.*"), &format!("{mnemonic}.")));
    code.iter().filter(|(mnemonic, _)| named(mnemonic)).map(|(_, count)| count).sum()
}

impl Row {
    pub fn explains(&self, difference: &Difference) -> bool {
        let [ours, theirs] = &difference.code;
        let when = match self.when.split_once(' ') {
            None => self.when.is_empty(),
            Some(("ours", names)) => count(names, ours) > 0,
            Some(("theirs", names)) => count(names, theirs) > 0,
            Some(("apart", names)) => count(names, ours) != count(names, theirs),
            Some(_) => false,
        };
        when && self.side == difference.side
            && fits(&self.what, &difference.what)
            && fits(&self.place, &difference.place)
    }
}

#[test]
fn patterns_and_instructions() {
    assert!(fits("a*c", "abc") && fits("*", "") && fits("a*b*c", "abbc") && !fits("a*c", "abd") && !fits("ab", "abc"));
    let code = BTreeMap::from([("BRA.U.ANY".to_string(), 2), ("BRA".to_string(), 3), ("BRX".to_string(), 5)]);
    let counts = ["BRA", "BRA.U", "BRX,CALL", "BRA.*.ANY", "BR"].map(|names| count(names, &code));
    assert_eq!(counts, [5, 2, 5, 2, 0]);
    let difference = |side| Difference {
        place: "a.sm_90 k".into(),
        side,
        what: "CRS_STACK_SIZE 00000000".into(),
        code: [code.clone(), BTreeMap::new()],
    };
    for (row, explained) in [
        ("ours | CRS_STACK_SIZE * | * | ours BRX | why", true),
        ("ours | CRS_STACK_SIZE * | a.* | apart BRA | why", true),
        ("theirs | CRS_STACK_SIZE * | * | | why", false),
        ("ours | CRS_STACK_SIZE * | * | theirs BRX | why", false),
        ("ours | CRS_STACK_SIZE * | b.* | | why", false),
        ("ours | CRS_STACK_SIZE | * | | why", false),
    ] {
        assert_eq!(read(row)[0].explains(&difference("ours")), explained, "{row}");
    }
}
