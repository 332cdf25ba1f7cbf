//! The tables of tests/gpu, as in RESULTS.md.
//!
//! From tab-separated rows of eight columns, and lines of the loader's experiment, it makes
//! Markdown. The same rows give the same text; launches that were not run are in the table too, and
//! counted separately.

use super::case::AS_THEIRS;

/// A row: launch, kernel, target, cubin, result of the GPU, result of the simulator, milliseconds,
/// ratio of ours to ptxas's.
pub fn row(columns: [&str; 8]) -> String {
    columns.map(|column| column.replace(['\n', '\t'], " ").replace('|', "/")).join("\t") + "\n"
}

/// Counts of rows by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The GPU and the simulator, if it ran, both gave the expected values.
    pub right: usize,
    /// The GPU gave the values of ptxas's cubin, which are not the interpreter's.
    pub as_theirs: usize,
    pub wrong: usize,
    pub skipped: usize,
}

impl Counts {
    /// Counts the outcomes of rows.
    pub fn of(rows: &[String]) -> Counts {
        let mut counts = Counts::default();
        for row in rows {
            let columns: Vec<&str> = row.split('\t').collect();
            let count = match (columns.get(4), columns.get(5)) {
                (Some(said), _) if said.starts_with("skipped") => &mut counts.skipped,
                (Some(&"right"), Some(&("right" | "-"))) => &mut counts.right,
                (Some(said), Some(&("right" | "-"))) if said.starts_with(AS_THEIRS) => &mut counts.as_theirs,
                _ => &mut counts.wrong,
            };
            *count += 1;
        }
        counts
    }
}

/// How to produce the file.
const HOW: &str = "The file is written by the release binary of this test, in the repository's root, on a machine with a GPU and its driver:\n\n\
```\nSASSAFRAS_GPU_REPORT=tests/gpu/RESULTS.md target/release/deps/gpu-<hash>\n```\n\n\
It needs `tests/`, the PTX that the cases name, and for ptxas's rows `target/vendor/ptxas`; neither cargo nor a compiler. \
Its exit status is 0 where all launches are right, 1 where one is not, 3 where there is no GPU.\n";

/// Explanation of the tables.
const LAUNCHES: &str = "## Launches\n\n\
`GPU` and `simulator` say whether this cubin gave the interpreter's values there; time is the median of 20 runs, and ours is divided by that of \
ptxas's cubin on the same GPU. The launches that are right have no line here if nothing was timed.\n\n\
| launch | kernel | target | cubin | GPU | simulator | ms | ours / ptxas |\n|---|---|---|---|---|---|---|---|\n";

const LOADER: &str = "## Loader\n\n\
What the driver needs of a cubin: `required` where it refuses the file without the part, or the kernel goes wrong.\n\n\
| part left out | verdict | what the driver said |\n|---|---|---|\n";

/// The file as long as no GPU has been used.
pub fn unseen() -> String {
    format!(
        "# Results on a GPU\n\nNo GPU has been seen yet: nothing here has been run on a GPU by anybody, and there is no figure to show.\n\n\
         {HOW}\n{LAUNCHES}\n{LOADER}"
    )
}

/// The file with the results of a GPU.
pub fn results(gpu: &str, rows: &[String], parts: &str) -> String {
    let line = |row: &str| format!("| {} |\n", row.replace('\t', " | "));
    let timed = |row: &str| row.split('\t').nth(6).is_some_and(|ms| ms != "-");
    let told = rows.iter().filter(|row| timed(row) || Counts::of(&[row.to_string()]).right == 0);
    let table: String = told.map(|row| line(row)).collect();
    let parts: String = parts.lines().map(line).collect();
    let Counts { right, as_theirs, wrong, skipped } = Counts::of(rows);
    format!(
        "# Results on a GPU\n\n{gpu}\n\n{right} right, {as_theirs} as ptxas's, {wrong} wrong, {skipped} skipped\n\n{HOW}\n{LAUNCHES}{table}\n{LOADER}{parts}"
    )
}
