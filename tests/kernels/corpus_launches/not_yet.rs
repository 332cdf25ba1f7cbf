//! Launches that an engine does not support yet, with the reason.
//!
//! Each line of tests/cases/corpus/not_yet.txt is `CASE KERNEL ENGINE [WHEN …]: REASON`; `*`
//! matches all, ENGINE is `ours`, `ptxas` or `interpreter`, and WHEN are words about the
//! compilation (`sm_90 -O3 24`) that must all match. A refusal is excused only by a line whose
//! reason is part of its message; a wrong value is never excused; a line that excuses what runs is
//! an error.

pub struct NotYet {
    lines: Vec<Line>,
}

struct Line {
    number: usize,
    case: String,
    kernel: String,
    engine: String,
    when: Vec<String>,
    reason: String,
}

/// One launch by one engine; `how` it was compiled is empty for the interpreter.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub case: &'a str,
    pub kernel: &'a str,
    pub engine: &'a str,
    pub how: &'a str,
}

impl NotYet {
    pub fn parse(text: &str) -> NotYet {
        let lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#'));
        let line = |(i, text): (usize, &str)| {
            let (head, reason) = text.split_once(": ").unwrap_or_else(|| panic!("not_yet.txt:{}: no reason", i + 1));
            let words: Vec<&str> = head.split_whitespace().collect();
            let [case, kernel, engine, when @ ..] = words.as_slice() else {
                panic!("not_yet.txt:{}: expected CASE KERNEL ENGINE [WHEN]: REASON", i + 1)
            };
            let when = when.iter().map(|word| word.to_string()).collect();
            let [case, kernel, engine, reason] = [case, kernel, engine, &reason.trim()].map(|text| text.to_string());
            Line { number: i + 1, case, kernel, engine, when, reason }
        };
        NotYet { lines: lines.map(line).collect() }
    }

    fn about<'a>(&'a self, s: Subject<'a>) -> impl Iterator<Item = &'a Line> {
        let fits = |pattern: &str, name: &str| pattern == "*" || pattern == name;
        self.lines.iter().filter(move |l| {
            let when = l.when.iter().all(|word| s.how.split_whitespace().any(|w| w == word));
            fits(&l.case, s.case) && fits(&l.kernel, s.kernel) && fits(&l.engine, s.engine) && when
        })
    }

    /// Whether a refusal with this message is listed.
    pub fn excuses(&self, subject: Subject, message: &str) -> bool {
        self.about(subject).any(|line| message.contains(&line.reason))
    }

    /// The line that excuses this run.
    pub fn outdated(&self, subject: Subject) -> Option<usize> {
        self.about(subject).find(|line| line.case != "*" && line.kernel != "*").map(|line| line.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let list = NotYet::parse("# comment\n\na k ours sm_75 24: is not built\n* * interpreter: missing\n");
        let subject = |engine, how| Subject { case: "a", kernel: "k", engine, how };
        assert!(list.excuses(subject("ours", "sm_75 -O3 24 registers"), "call is not built"));
        assert!(!list.excuses(subject("ours", "sm_75 -O3 24 registers"), "else"));
        assert!(!list.excuses(subject("ours", "sm_75 -O3"), "call is not built"));
        assert!(list.excuses(subject("interpreter", ""), "missing"));
        assert_eq!(list.outdated(subject("ours", "sm_75 -O3 24 registers")), Some(3));
        assert_eq!(list.outdated(subject("ours", "sm_90 -O0")), None);
        assert_eq!(list.outdated(subject("interpreter", "")), None);
    }
}
