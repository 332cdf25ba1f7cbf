//! The generator's command line: `check` the tables, `print` their rows, `learn` encoding rows,
//! `emit` the generated files.
//!
//! The tables are in `tables` of the workspace: the current directory, or that of this crate. Exit
//! status: 0 success, 1 wrong tables or words, 2 wrong command line.

use sassafras_codegen::learn::{self, disasm::NvDisasm, known};
use sassafras_codegen::{model::Model, print, report::Report, source::Sources};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: codegen check [TABLES]
       codegen emit OUT_DIR [TABLES]
       codegen print TABLE [NAME]
       codegen learn SM WORD...   (WORD: 32 hexadecimal digits, or two 64-bit halves, low half first)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let tables = |given: Option<&&str>| given.map_or_else(|| root().join("tables"), PathBuf::from);
    match words.as_slice() {
        ["check", rest @ ..] if rest.len() < 2 => run(&tables(rest.first()), None),
        ["emit", out, rest @ ..] if rest.len() < 2 => run(&tables(rest.first()), Some(Path::new(out))),
        ["print", table, rest @ ..] if rest.len() < 2 => print(table, rest.first().copied()),
        ["learn", sm, words @ ..] if !words.is_empty() => learn(sm, words),
        _ => complain(USAGE, 2),
    }
}

fn complain(message: &str, code: u8) -> ExitCode {
    eprintln!("{message}");
    ExitCode::from(code)
}

/// The workspace: the current directory if it has tables, otherwise the directory in which this
/// crate was built.
fn root() -> PathBuf {
    if Path::new("tables").is_dir() { PathBuf::new() } else { Path::new(env!("CARGO_MANIFEST_DIR")).join("..") }
}

fn run(tables: &Path, out: Option<&Path>) -> ExitCode {
    let files = match sassafras_codegen::generate(tables) {
        Ok(files) => files,
        Err(failure) => {
            eprint!("{}", failure.pictures);
            return ExitCode::FAILURE;
        }
    };
    if out.is_none() {
        recipes(tables);
    }
    for (name, text) in &files {
        match out {
            None => println!("{name}: {} lines", text.lines().count()),
            Some(out) => {
                if let Err(error) = std::fs::write(out.join(name), text) {
                    return complain(&format!("{}: {error}", out.join(name).display()), 1);
                }
            }
        }
    }
    ExitCode::SUCCESS
}

/// Number of operand recipes and of opcodes in each category.
fn recipes(tables: &Path) {
    let model = Model::load(&mut Sources::new(tables), &mut Report::default());
    for category in ["A", "B", "C", "D", "E", "F", "G"] {
        let of = |name: &str| model.operands.recipes.iter().any(|r| r.row.name == name && r.row.category == category);
        let ops = model.ori.ops.iter().filter(|op| of(&op.row.recipe)).count();
        let recipes = model.operands.recipes.iter().filter(|r| r.row.category == category).count();
        println!("operands, category {category}: {recipes} recipes, {ops} opcodes");
    }
}

/// The resolved tables, or the printed errors. Laws are not checked, so that a row can be learned
/// while another is wrong.
fn load() -> Option<(Model, Sources)> {
    let mut sources = Sources::new(&root().join("tables"));
    let mut report = Report::default();
    let model = Model::load(&mut sources, &mut report);
    eprint!("{}", report.render(&sources, true));
    report.is_empty().then_some((model, sources))
}

fn print(table: &str, name: Option<&str>) -> ExitCode {
    let Some((model, _)) = load() else { return ExitCode::FAILURE };
    match print::print(&model, table, name) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => complain(&message, 2),
    }
}

fn learn(sm: &str, words: &[&str]) -> ExitCode {
    let words = match learn::words(words) {
        Ok(words) => words,
        Err(message) => return complain(&message, 2),
    };
    let Some((model, sources)) = load() else { return ExitCode::FAILURE };
    let sm = sm.strip_prefix("sm_").unwrap_or(sm);
    let target = match known::target(&model, sm) {
        Ok(target) => target,
        Err(message) => return complain(&message, 2),
    };
    let tool = root().join("target/vendor/nvdisasm");
    let learned = NvDisasm::new(&tool, sm).and_then(|mut nv| learn::learn(&model, &target, &words, &mut nv));
    match learned {
        Ok((proposal, seen)) => {
            print!("{}", learn::report(&model, &sources, &target, &proposal, &seen));
            ExitCode::SUCCESS
        }
        Err(message) => complain(&message, 1),
    }
}
