//! What a text case expects beside what it gets, as a unified diff.

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// A line of a diff: in both texts, in the expected one, or in the other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// The lines of both texts, those in common in a longest order.
fn lines<'a>(expected: &'a str, got: &'a str) -> Vec<Line<'a>> {
    let (a, b): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), got.lines().collect());
    // `common[i][j]` is how many lines the rest of `a` from `i` and of `b` from `j` have in common.
    let mut common = vec![vec![0u32; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] = if a[i] == b[j] { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            out.push(Line::Same(a[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < a.len() && (j == b.len() || common[i + 1][j] >= common[i][j + 1]) {
            out.push(Line::Gone(a[i]));
            i += 1;
        } else {
            out.push(Line::New(b[j]));
            j += 1;
        }
    }
    out
}

/// The unified diff from the expected text to the other one.
pub fn unified(expected: &str, got: &str) -> String {
    let all = lines(expected, got);
    let near = |i: usize| {
        all[i.saturating_sub(CONTEXT)..all.len().min(i + CONTEXT + 1)].iter().any(|l| !matches!(l, Line::Same(_)))
    };
    let (mut out, mut at, mut inside) = ("--- expected\n+++ got\n".to_string(), [1, 1], false);
    for (i, line) in all.iter().enumerate() {
        if near(i) && !inside {
            let hunk: Vec<&Line> = (i..all.len()).take_while(|i| near(*i)).map(|i| &all[i]).collect();
            let of = |left_out: fn(&Line) -> bool| hunk.iter().filter(|line| !left_out(line)).count();
            let (old, new) = (of(|line| matches!(line, Line::New(_))), of(|line| matches!(line, Line::Gone(_))));
            out += &format!("@@ -{},{old} +{},{new} @@\n", at[0], at[1]);
        }
        inside = near(i);
        let (sign, text, step) = match line {
            Line::Same(text) => (' ', text, [1, 1]),
            Line::Gone(text) => ('-', text, [1, 0]),
            Line::New(text) => ('+', text, [0, 1]),
        };
        if inside {
            out += &format!("{sign}{text}\n");
        }
        at = [at[0] + step[0], at[1] + step[1]];
    }
    out
}

/// Nothing where the texts are equal, else the diff of a case and the command that accepts it.
pub fn compared(name: &str, expected: &str, got: &str, command: &str) -> Result<(), String> {
    if expected == got {
        return Ok(());
    }
    Err(format!("{name}:\n{}to accept it: SASSAFRAS_BLESS=1 {command}", unified(expected, got)))
}

#[test]
fn a_diff_has_what_changed_and_its_surroundings() {
    let before = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n";
    let after = "a\nb\nc\nd\nE\nf\ng\nh\ni\nj\nk\nl\nm\n";
    let wanted =
        "--- expected\n+++ got\n@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n@@ -10,3 +10,4 @@\n j\n k\n l\n+m\n";
    assert_eq!(unified(before, after), wanted);
    assert!(compared("x", after, after, "").is_ok());
}
