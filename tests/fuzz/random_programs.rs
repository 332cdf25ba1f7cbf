//! Random programs: the interpreter and our cubins on the simulator leave the same memory, and so
//! do equivalent forms of the same program.
//!
//! Each seed gives a program (`random_programs/make.rs`), with statements of the newer families
//! (`random_programs/families.rs`) on targets that have them, and chooses targets, register limits
//! and levels; `random_programs/compare.rs` lists the checks. A failing program is reduced
//! (`random_programs/reduce.rs`) and printed. The test prints how many agree and their coverage
//! (`random_programs/coverage.rs`); a run of 100,000 or more must cover every row of lowering
//! except those of `rows_not_hit.txt`. ptxas is not used here: `oracle_lowering` compares single
//! forms with its cubins. Three quarters of a program's time are spent on compilation, so each is
//! compiled in only one or two ways. Use `cargo test --release` for a long run.
//!
//! `SASSAFRAS_PROGRAMS` is the number of programs (a few by default), `SASSAFRAS_SEED` the first
//! seed, `SASSAFRAS_SHOW=1` prints the first one and all opcodes; `SASSAFRAS_KEEP=FOLDER` keeps
//! failing programs there, with the contents of their arguments; `SASSAFRAS_LAUNCHES=FOLDER` writes
//! the programs there as launches for tests/gpu, each for its target, and runs nothing.

mod arguments;
mod boxes;
mod bulk;
mod checks;
mod clusters;
mod compare;
mod counts;
mod coverage;
mod crowd;
mod descriptors;
mod families;
mod group;
mod images;
mod make;
mod maps;
mod matrix;
mod multimem;
mod names;
mod plain;
mod pool;
mod reduce;
mod rewrite;
mod tensor_memory;
mod tensor_products;
mod tensors;
mod tiles;
mod tree;
mod warp_groups;

use crate::lowering_support::forms::Form;
use crate::random::Random;
use compare::{Case, Way, case, difference, executed, input, interpreted, judged, judged_texts};
use coverage::Coverage;
use make::Matrices;
use pool::Pool;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use tree::Program;

/// Time budget if no number is given.
const SHARE: Duration = Duration::from_secs(1);
/// Number of failures after which a run stops.
const MOST_FAILURES: usize = 5;

/// Shared by all programs of a target.
struct Target {
    pool: Pool,
    matrices: Matrices,
}

/// A run over seeds.
struct Run {
    forms: Vec<Form>,
    targets: BTreeMap<&'static str, Target>,
}

impl Run {
    fn new() -> Run {
        Run { forms: pool::all(), targets: BTreeMap::new() }
    }

    /// The program of a seed, its comparison, its buffer, and its forms.
    fn program(&mut self, seed: u64) -> (Program, Case, Vec<u8>, Vec<usize>) {
        let case = case(seed);
        let new = || Target { pool: pool::pool(&self.forms, case.target), matrices: Matrices::new(case.target) };
        let target = self.targets.entry(case.target).or_insert_with(new);
        let (program, taken) = make::program(seed, &target.pool, &target.matrices);
        let input = input(seed, program.bytes());
        (program, case, input, taken)
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Tries the requested number of seeds; `judge` returns the error and prints it. Returns the
/// numbers of tries and of failures.
fn run(name: &str, mut judge: impl FnMut(u64) -> bool) -> (u64, usize) {
    let (first, most) = (number("SASSAFRAS_SEED").unwrap_or(1), number("SASSAFRAS_PROGRAMS"));
    let (started, mut failed, mut tried) = (Instant::now(), 0, 0u64);
    for seed in first.. {
        let enough = most.map_or(started.elapsed() > SHARE, |most| seed - first >= most);
        if enough || failed >= MOST_FAILURES {
            break;
        }
        tried += 1;
        failed += usize::from(!judge(seed));
        if tried.is_multiple_of(1000) {
            println!("{tried} {name} so far, {failed} failed, {} s", started.elapsed().as_secs());
        }
    }
    println!("{tried} {name}, {failed} failed");
    (tried, failed)
}

#[test]
fn programs_compute_the_same_everywhere() {
    let mut all = Run::new();
    let mut coverage = Coverage::default();
    let mut refused = 0;
    let mut show = std::env::var_os("SASSAFRAS_SHOW").is_some();
    let (programs, failed) = run("programs", |seed| {
        let (program, case, input, taken) = all.program(seed);
        if std::mem::take(&mut show) {
            println!("{}", program.text(case.target, false));
        }
        if let Some(folder) = std::env::var_os("SASSAFRAS_LAUNCHES") {
            launch(Path::new(&folder), seed, &case, &program, &input);
            return true;
        }
        match judged(&program, &case, &input) {
            Ok(none) => {
                refused += none;
                coverage.add(&program.text(case.target, false), &taken);
                true
            }
            Err((way, said)) => {
                let case = Case { ways: vec![case.ways[way].clone()], ..case };
                let says = |less: &Program| judged(less, &case, &input[..less.bytes()]).err().map(|e| e.1);
                let small = reduced(program, &said, &says);
                let texts = |text: &str| [text.to_string(), text.to_string()];
                let says =
                    |text: &str| judged_texts(&small, &texts(text), &case, &input[..small.bytes()]).err().map(|e| e.1);
                let fails = |text: &str| says(text).is_some_and(|now| reduce::kind(&now) == reduce::kind(&said));
                let text = reduce::fewer_lines(small.text(case.target, false), &fails);
                println!("seed {seed}: {}\n{text}", says(&text).unwrap_or(said));
                keep(seed, &text, &input[..small.bytes()], &small);
                false
            }
        }
    });
    println!("{refused} times a product of matrices needed more registers than a limit");
    coverage.print(&all.forms);
    assert!(programs > 0 && failed == 0, "{failed} programs differ");
    coverage.judge(&all.forms, programs);
}

/// Keeps a failing program, if requested.
fn keep(seed: u64, text: &str, input: &[u8], program: &Program) {
    let Some(folder) = std::env::var_os("SASSAFRAS_KEEP") else { return };
    let path = std::path::Path::new(&folder).join(format!("{seed}.ptx"));
    std::fs::write(&path, text).unwrap();
    std::fs::write(path.with_extension("bin"), input).unwrap();
    for argument in program.arguments() {
        std::fs::write(path.with_extension(&argument.name), &argument.bytes).unwrap();
    }
}

/// Writes a program as a launch that expects the interpreter's values.
fn launch(folder: &Path, seed: u64, case: &Case, program: &Program, input: &[u8]) {
    let name = format!("random_{seed}_{}", case.target);
    let more: String = program.arguments().iter().map(|argument| format!(", {}", argument.launched())).collect();
    let text = format!(
        "(module: \"{name}.ptx\", launches: [(kernel: \"k\", grid: ({}, 1, 1), block: ({}, 1, 1), targets: [\"{}\"], \
         args: [inout(type: u8, data: {input:?}, expect: interpreter){more}])])\n",
        program.blocks(),
        program.threads,
        case.target
    );
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join(format!("{name}.ptx")), program.text(case.target, false)).unwrap();
    std::fs::write(folder.join(format!("{name}.ron")), text).unwrap();
}

/// A smaller program that fails in the same way.
fn reduced(program: Program, said: &str, says: &dyn Fn(&Program) -> Option<String>) -> Program {
    reduce::reduced(program, &|less| says(less).is_some_and(|now| reduce::kind(&now) == reduce::kind(said)))
}

#[test]
fn programs_that_mean_the_same_compute_the_same() {
    let mut all = Run::new();
    let (programs, failed) = run("rewritten programs", |seed| {
        let (program, case, input, _) = all.program(seed.wrapping_add(1 << 40));
        // A rewrite may name any register.
        let program = Program { lean: false, ..program };
        let way = Way { checked: false, ..case.ways[0].clone() };
        let other = |program: &Program| {
            let new = rewrite::rewritten(program, &mut Random::new(seed ^ 0x0ddba11));
            let right = interpreted(program, case.target, &input[..program.bytes()])?;
            let Some(mine) = executed(&new, &way, &input[..program.bytes()])? else { return Ok(()) };
            difference(&new, &way, &mine, &right).map_or(Ok(()), Err)
        };
        if let Err(said) = other(&program) {
            // A rewrite may name registers that a lean program does not load.
            let small = reduced(program, &said, &|less| other(less).err().filter(|_| !less.lean));
            let new = rewrite::rewritten(&small, &mut Random::new(seed ^ 0x0ddba11));
            println!("seed {seed}: {}\n{}", other(&small).err().unwrap_or(said), small.text(case.target, false));
            println!("rewritten:\n{}", new.text(case.target, false));
            return false;
        }
        true
    });
    assert!(programs > 0 && failed == 0, "{failed} programs differ");
}
