//! Estimated cycles of our code and of ptxas's, over the launches of the corpus.
//!
//! The input is tests/cases/corpus/NAME.ron (`cargo bench --bench cycles -- [--only TEXT] [--sm
//! sm_90] [--launches] [--disable-pass NAME] [--tune NAME=VALUE] [--search-steps N]`); both
//! compilers run at -O3 with contraction. Per target it prints the ratio of the total cycles of all
//! launches that both compile and that run, the geometric mean of the ratios, the reports about our
//! code, the launches that are excluded with the reasons, and the launches with the worst ratios
//! (`--launches`: all). Exit status 1 if there is a report about our code, the budget is missed, a
//! launch fails only with our code, or nothing was compared. The estimate is that of `sassafras
//! run` (one block on a multiprocessor, the longest of a launch); its rows are frozen
//! (`tests/sass/estimate.rs`).

use sassafras::compile::{Options as Compile, compile};
use sassafras::sim::launch::{Launch, LaunchFile};
use sassafras::sim::run::{How, Outcome, Shape, run_as};
use sassafras::tables::{Pass, Tuning};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const TARGETS: [&str; 6] = ["sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"];
/// Upper limit of the total ratio.
const BUDGET: f64 = 1.3;
/// Number of launches with the worst ratios that are printed.
const WORST: usize = 25;

struct Options {
    only: Option<String>,
    sm: Option<String>,
    launches: bool,
    disabled: Vec<Pass>,
    tuning: Tuning,
    steps: u32,
}

fn options() -> Options {
    let mut options =
        Options { only: None, sm: None, launches: false, disabled: Vec::new(), tuning: Tuning::default(), steps: 0 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--only" => options.only = words.next(),
            "--sm" => options.sm = words.next(),
            "--disable-pass" => {
                let name = words.next().unwrap_or_default();
                options.disabled.push(Pass::by_name(&name).unwrap_or_else(|| panic!("no pass is called `{name}`")));
            }
            "--tune" => {
                let text = words.next().unwrap_or_default();
                options.tuning.set(&text).unwrap_or_else(|error| panic!("{error}"));
            }
            "--search-steps" => options.steps = words.next().and_then(|n| n.parse().ok()).unwrap_or(0),
            "--launches" => options.launches = true,
            _ => {}
        }
    }
    options
}

/// The cubin of ptxas for a text.
fn theirs(ptxas: &Path, source: &str, target: &str, folder: &Path) -> Option<Vec<u8>> {
    let (from, to) = (folder.join("a.ptx"), folder.join("a.cubin"));
    std::fs::write(&from, source).ok()?;
    let mut command = Command::new(ptxas);
    command.args(["-arch", target, "-O3"]).arg(&from).arg("-o").arg(&to);
    command.output().ok()?.status.success().then(|| std::fs::read(&to).ok())?
}

/// Runs a launch with the cycle estimate; `None` if the simulator cannot.
fn run(cubin: &[u8], launch: &Launch) -> Option<Outcome> {
    let mut values = launch.arg_values();
    let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
    run_as(cubin, &launch.kernel, shape, &mut values, How::default()).ok().filter(|outcome| outcome.ended)
}

/// One launch on one target.
struct Row {
    name: String,
    target: &'static str,
    ours: u64,
    theirs: u64,
    instructions: [u64; 2],
    reports: usize,
}

impl Row {
    fn ratio(&self) -> f64 {
        self.ours as f64 / self.theirs.max(1) as f64
    }
}

fn print(label: &str, rows: &[&Row]) {
    let sum = |f: fn(&Row) -> u64| rows.iter().map(|row| f(row)).sum::<u64>();
    let (ours, theirs) = (sum(|r| r.ours), sum(|r| r.theirs));
    let mean = (rows.iter().map(|r| r.ratio().ln()).sum::<f64>() / rows.len().max(1) as f64).exp();
    let ratio = ours as f64 / theirs.max(1) as f64;
    let (i, j) = (sum(|r| r.instructions[0]), sum(|r| r.instructions[1]));
    println!(
        "{label:<8} {:>4} launches  cycles {ours:>9} / {theirs:>9} = {ratio:.3} (mean of ratios {mean:.3})  \
         executed {i:>9} / {j:>9} = {:.3}  reports {}",
        rows.len(),
        i as f64 / j.max(1) as f64,
        rows.iter().map(|r| r.reports).sum::<usize>(),
    );
}

/// The number of a target's name, and whether it is one of an architecture alone.
fn architecture(name: &str) -> (u32, bool) {
    let digits: String = name.chars().filter(char::is_ascii_digit).collect();
    (digits.parse().unwrap_or(0), name.ends_with(|c: char| c.is_ascii_alphabetic()))
}

/// Whether a launch of a module runs on a target.
fn fits(source: &str, launch: &Launch, target: &str) -> bool {
    let own = source.lines().find_map(|l| l.trim().strip_prefix(".target")).unwrap_or("");
    let (lowest, special) = architecture(own.split([',', ' ']).find(|w| !w.is_empty()).unwrap_or("").trim());
    let number = architecture(target).0;
    let named = launch.targets.is_empty() || launch.targets.iter().any(|name| name == target);
    named && if special { number == lowest } else { number >= lowest }
}

/// Launches excluded from the sums, by name and by which side fails (ours, ptxas), with their
/// targets.
type Left = BTreeMap<(String, [bool; 2]), Vec<&'static str>>;

/// Prints the excluded launches; returns how many only our side fails.
fn print_left(left: &Left) -> usize {
    let mut counts = [0; 3];
    for ((name, who), targets) in left {
        let (kind, text) = match who {
            [true, true] => (0, "neither runs"),
            [true, false] => (1, "ours does not run"),
            _ => (2, "theirs does not run"),
        };
        counts[kind] += targets.len();
        println!("left out: {name}: {text}, on {}", targets.join(" "));
    }
    let [neither, ours, theirs] = counts;
    println!(
        "left out of the sums: {ours} that ours does not run, {theirs} that theirs does not, {neither} that neither does"
    );
    ours
}

fn main() -> ExitCode {
    let options = options();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ptxas = root.join("target/vendor/ptxas");
    if !ptxas.exists() {
        println!("skipped: target/vendor/ptxas is missing");
        return ExitCode::SUCCESS;
    }
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let entries = std::fs::read_dir(root.join("tests/cases/corpus")).expect("the corpus's launches");
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "ron"));
    paths.sort();
    let (mut rows, mut left) = (Vec::new(), Left::new());
    for path in paths {
        let case = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let file = LaunchFile::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let Ok(module) = std::fs::read_to_string(&file.module) else {
            println!("skipped: {case} ({} launches): its module is not there", file.launches.len());
            continue;
        };
        for target in TARGETS.into_iter().filter(|t| options.sm.as_deref().is_none_or(|sm| sm == *t)) {
            let wanted = |launch: &&Launch| {
                let name = format!("{case}.{}", launch.kernel);
                fits(&module, launch, target) && options.only.as_deref().is_none_or(|text| name.contains(text))
            };
            let launches: Vec<&Launch> = file.launches.iter().filter(wanted).collect();
            if launches.is_empty() {
                continue;
            }
            let mut how = Compile::new(target);
            how.passes.disabled.clone_from(&options.disabled);
            (how.tuning, how.search.steps) = (options.tuning, options.steps);
            let ours = compile(&module, &how).ok().map(|output| output.cubin);
            let theirs = theirs(&ptxas, &module, target, scratch.path());
            for launch in launches {
                let name = format!("{case}.{}", launch.kernel);
                let both = (ours.as_ref().and_then(|c| run(c, launch)), theirs.as_ref().and_then(|c| run(c, launch)));
                let (Some(us), Some(them)) = both else {
                    let what = [both.0.is_none(), both.1.is_none()];
                    left.entry((name, what)).or_default().push(target);
                    continue;
                };
                rows.push(Row {
                    name,
                    target,
                    ours: us.cycles.map_or(0, |c| c.block),
                    theirs: them.cycles.map_or(0, |c| c.block),
                    instructions: [us.stats.instructions, them.stats.instructions],
                    reports: us.reports.len(),
                });
            }
        }
    }
    rows.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
    let shown = if options.launches { rows.len() } else { WORST };
    for row in rows.iter().take(shown) {
        let (ratio, [i, j]) = (row.ratio(), row.instructions);
        println!(
            "{:<44} {:<7} {:>8} / {:>8} = {ratio:.2}  executed {i:>8} / {j:>8}",
            row.name, row.target, row.ours, row.theirs
        );
    }
    let unrun = print_left(&left);
    for target in TARGETS {
        print(target, &rows.iter().filter(|r| r.target == target).collect::<Vec<_>>());
    }
    let all: Vec<&Row> = rows.iter().collect();
    print("all", &all);
    let ratio =
        all.iter().map(|r| r.ours).sum::<u64>() as f64 / all.iter().map(|r| r.theirs).sum::<u64>().max(1) as f64;
    let reports: usize = all.iter().map(|r| r.reports).sum();
    let kept = ratio <= BUDGET && !all.is_empty();
    println!("budget {BUDGET}: {}; {reports} reports about ours", if kept { "kept" } else { "MISSED" });
    if kept && reports == 0 && unrun == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
