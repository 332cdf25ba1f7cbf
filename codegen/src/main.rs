//! The generator's own command: `check` the tables, `print` a generated file, `learn` encoding rows.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: codegen check [TABLES]\n       codegen emit OUT_DIR [TABLES]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let tables = |given: Option<&&str>| PathBuf::from(given.copied().unwrap_or("tables"));
    match words.as_slice() {
        ["check", rest @ ..] => run(&tables(rest.first()), None),
        ["emit", out, rest @ ..] => run(&tables(rest.first()), Some(Path::new(out))),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run(tables: &Path, out: Option<&Path>) -> ExitCode {
    let files = match sassafras_codegen::generate(tables) {
        Ok(files) => files,
        Err(failure) => {
            eprint!("{}", failure.pictures);
            return ExitCode::FAILURE;
        }
    };
    for (name, text) in &files {
        match out {
            None => println!("{name}: {} lines", text.lines().count()),
            Some(out) => {
                if let Err(error) = std::fs::write(out.join(name), text) {
                    eprintln!("{}: {error}", out.join(name).display());
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}
