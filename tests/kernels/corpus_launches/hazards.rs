//! Explained hazards of ptxas's cubins by our latency tables.
//!
//! Each line of tests/oracle/ptxas_hazards.txt is `CASE KERNEL TARGET LEVEL FIRST SECOND WHAT:
//! why`. FIRST is the mnemonic of the instruction in flight (`-` if the report names none), SECOND
//! that of the one that issues too early. WHAT is `read` or `written` (or `waits`, `reuse`,
//! `stalls`) and, after a comma, what signals the completion of the first: `cycles`, `scoreboard`
//! or `none`. `*` matches any word, `a|b` one of several. A hazard is explained only by a line that
//! matches in all words; unused lines are tracked.

use sassafras::cubin::Cubin;
use sassafras::sass;
use sassafras::sim::report::Report;
use sassafras::sim::run::target_of;
use std::collections::BTreeSet;
use std::sync::Mutex;

pub struct Explained {
    lines: Vec<(usize, Vec<String>)>,
    used: Mutex<BTreeSet<usize>>,
}

impl Explained {
    pub fn parse(text: &str) -> Explained {
        let lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#'));
        let line = |(i, text): (usize, &str)| {
            let (key, why) = text.split_once(": ").unwrap_or_else(|| panic!("ptxas_hazards.txt:{}: no why", i + 1));
            let words: Vec<String> = key.split_whitespace().map(String::from).collect();
            assert!(words.len() == 7 && !why.trim().is_empty(), "ptxas_hazards.txt:{}: seven words and why", i + 1);
            (i + 1, words)
        };
        Explained { lines: lines.map(line).collect(), used: Mutex::default() }
    }

    /// Whether a line matches; marks all matching lines as used.
    pub fn explains(&self, key: &str) -> bool {
        let words: Vec<&str> = key.split_whitespace().collect();
        let fits = |line: &Vec<String>| {
            let word = |(pattern, word): (&String, &&str)| pattern.split('|').any(|p| p == "*" || p == *word);
            line.len() == words.len() && line.iter().zip(&words).all(word)
        };
        let found: Vec<usize> = self.lines.iter().filter(|(_, line)| fits(line)).map(|(number, _)| *number).collect();
        self.used.lock().unwrap().extend(&found);
        !found.is_empty()
    }

    /// Lines that explained nothing.
    pub fn stale(&self) -> Vec<String> {
        let used = self.used.lock().unwrap();
        let stale = self.lines.iter().filter(|(number, _)| !used.contains(number));
        stale.map(|(number, words)| format!("ptxas_hazards.txt:{number}: not found: {}", words.join(" "))).collect()
    }
}

/// The last three words of a report's key.
pub fn key(cubin: &Cubin, kernel: &str, report: &Report) -> String {
    let text = &report.fault.what;
    let mnemonic = |text: &str| {
        let word = text.split(' ').find(|w| !w.starts_with('@')).unwrap_or("-");
        word.split(['.', ';']).next().unwrap_or("-").to_string()
    };
    let at = |pc: usize| -> Option<String> {
        let function = cubin.functions.iter().find(|f| f.name == kernel)?;
        let bytes = function.code.get(pc..pc + 16)?;
        let word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte));
        Some(sass::decode(target_of(cubin).ok()?, word).ok()?.op.name().to_string())
    };
    let place = text
        .rsplit_once("at pc 0x")
        .and_then(|(_, pc)| usize::from_str_radix(pc.split(|c: char| !c.is_ascii_hexdigit()).next()?, 16).ok());
    let first = place.and_then(at).unwrap_or_else(|| "-".into());
    format!("{first} {} {}", mnemonic(&report.instruction), what(text))
}

/// The kind of a hazard in one word, derived from the simulator's message.
fn what(text: &str) -> String {
    let told = [("cycles after", "cycles"), ("was not waited for", "scoreboard"), ("has no scoreboard", "none")];
    let by = told.iter().find(|(part, _)| text.contains(part)).map_or("-", |(_, word)| *word);
    let kinds = [
        ("kept for reuse", "reuse"),
        ("is waited for before", "waits"),
        ("stalls for", "stalls"),
        ("still to be read, is written", "written"),
        ("did not wait for that", "overtaken"),
        ("is read", "read"),
    ];
    let kind = kinds.iter().find(|(part, _)| text.contains(part)).map_or("-", |(_, word)| *word);
    format!("{kind},{by}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let list =
            Explained::parse("# comment\na * sm_90|sm_80 -O3 LDG IADD3 read,cycles: why\nb k * * - * waits,-: why\n");
        assert!(list.explains("a k sm_80 -O3 LDG IADD3 read,cycles"));
        assert!(
            !list.explains("a k sm_80 -O0 LDG IADD3 read,cycles")
                && !list.explains("a k sm_80 -O3 LDG IADD3 read,none")
        );
        assert_eq!(list.stale(), ["ptxas_hazards.txt:3: not found: b k * * - * waits,-"]);
    }

    #[test]
    fn hazards_in_a_word() {
        assert_eq!(what("R4 is read 3 cycles after the instruction at pc 0x50, and 4 are needed"), "read,cycles");
        assert_eq!(
            what("R4, still to be read, is written and the instruction at pc 0x50 has no scoreboard to wait for"),
            "written,none"
        );
    }
}
