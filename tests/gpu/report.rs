//! The tables of tests/gpu: what RESULTS.md holds.
//!
//! Input: rows of eight columns with tabs between them, and lines of the loader's experiment. Output: Markdown. Invariant: the same rows
//! give the same text; what was not run is in the table, too, and counted apart.

/// A row: launch, kernel, target, cubin, what the card gave, what the machine gave, milliseconds, ours over theirs.
pub fn row(columns: [&str; 8]) -> String {
    columns.map(|column| column.replace(['\n', '\t'], " ").replace('|', "/")).join("\t") + "\n"
}

/// How many rows say what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The card and the machine both gave the interpreter's numbers.
    pub right: usize,
    pub wrong: usize,
    pub skipped: usize,
}

impl Counts {
    /// Of rows.
    pub fn of(rows: &[String]) -> Counts {
        let mut counts = Counts::default();
        for row in rows {
            let columns: Vec<&str> = row.split('\t').collect();
            let count = match (columns.get(4), columns.get(5)) {
                (Some(said), _) if said.starts_with("skipped") => &mut counts.skipped,
                (Some(&"right"), Some(&"right")) => &mut counts.right,
                _ => &mut counts.wrong,
            };
            *count += 1;
        }
        counts
    }
}

/// How the file is filled.
const HOW: &str = "The file is written by the release binary of this test, in the repository's root, on a machine with a card and its driver:\n\n\
```\nSASSAFRAS_GPU_REPORT=tests/gpu/RESULTS.md target/release/deps/gpu-<hash>\n```\n\n\
It needs `tests/`, the PTX that the cases name, and for the incumbent's rows `target/vendor/ptxas`; neither cargo nor a compiler. \
Its exit status is 0 where all launches are right, 1 where one is not, 3 where there is no card.\n";

/// What the tables mean.
const LAUNCHES: &str = "## Launches\n\n\
`card` and `machine` say whether this cubin gave the interpreter's numbers there; time is the median of 20 runs, and ours is put over that of \
the incumbent's cubin on the same card.\n\n\
| launch | kernel | target | cubin | card | machine | ms | ours / theirs |\n|---|---|---|---|---|---|---|---|\n";

const LOADER: &str = "## Loader\n\n\
What the driver needs of a cubin: `required` where it refuses the file without the part, or the kernel goes wrong.\n\n\
| part left out | verdict | what the driver said |\n|---|---|---|\n";

/// The file as long as no card has been seen.
pub fn unseen() -> String {
    format!(
        "# Results on a card\n\nNo card has been seen yet: nothing here has been run on a GPU by anybody, and there is no figure to show.\n\n\
         {HOW}\n{LAUNCHES}\n{LOADER}"
    )
}

/// The file with what a card gave.
pub fn results(card: &str, rows: &[String], parts: &str) -> String {
    let line = |row: &str| format!("| {} |\n", row.replace('\t', " | "));
    let table: String = rows.iter().map(|row| line(row)).collect();
    let parts: String = parts.lines().map(line).collect();
    let Counts { right, wrong, skipped } = Counts::of(rows);
    format!(
        "# Results on a card\n\n{card}\n\n{right} right, {wrong} wrong, {skipped} skipped\n\n{HOW}\n{LAUNCHES}{table}\n{LOADER}{parts}"
    )
}
