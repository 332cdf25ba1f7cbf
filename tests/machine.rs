//! The machine executes the incumbent's cubins of every kernel and gives the expected numbers.
//!
//! This anchors what the machine thinks instructions mean: the numbers come from the kernels' mathematics, the code from
//! another compiler, the decoding from the vendor's disassembler. `SASSAFRAS_CASE` and `SASSAFRAS_SM` narrow the run.

mod machine_support;

use machine_support::{Decoder, Tools, cases, check, compile, tool};
use sassafras::sim::launch::LaunchFile;
use std::path::{Path, PathBuf};

/// One target per behaviour that the machine has to know.
const TARGETS: [&str; 10] = ["75", "80", "86", "89", "90", "100", "103", "110", "120", "121"];

fn wanted(variable: &str, name: &str) -> bool {
    std::env::var(variable).map_or(true, |list| list.split(',').any(|item| item == name))
}

fn one(path: &Path, tools: &Tools, decoder: Decoder) -> Vec<String> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let file = match LaunchFile::load(path) {
        Ok(file) => file,
        Err(error) => return vec![format!("{name}: {error}")],
    };
    let mut wrong = Vec::new();
    for sm in TARGETS.into_iter().filter(|sm| wanted("SASSAFRAS_SM", sm)) {
        for level in ["-O0", "-O3"] {
            let messages = match compile(tools, &file.module, sm, level) {
                Ok(made) => check(&file, &made, decoder),
                Err(error) => vec![error],
            };
            wrong.extend(messages.into_iter().map(|message| format!("{name} sm_{sm} {level}: {message}")));
        }
    }
    wrong
}

/// Runs every case on two threads; what went wrong, or `None` without the vendor's tools.
fn all(decoder: Decoder) -> Option<Vec<String>> {
    let tools = Tools { ptxas: tool("ptxas")?, nvdisasm: tool("nvdisasm")? };
    let files: Vec<PathBuf> = cases()
        .into_iter()
        .filter(|path| wanted("SASSAFRAS_CASE", &path.file_stem().unwrap_or_default().to_string_lossy()))
        .collect();
    assert!(!files.is_empty(), "no cases");
    let part = |files: &[PathBuf]| files.iter().flat_map(|f| one(f, &tools, decoder)).collect::<Vec<_>>();
    let (left, right) = files.split_at(files.len() / 2);
    Some(std::thread::scope(|scope| {
        let other = scope.spawn(|| part(right));
        let mut wrong = part(left);
        wrong.extend(other.join().unwrap_or_else(|_| vec!["the machine panicked".to_string()]));
        wrong
    }))
}

#[test]
fn incumbent_cubins_give_the_expected_numbers() {
    let Some(wrong) = all(Decoder::Vendor) else { return };
    assert!(wrong.is_empty(), "{} launches went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The same through our own decoder.
#[test]
fn decoded_by_the_tables_they_give_them_too() {
    let Some(wrong) = all(Decoder::Tables) else { return };
    assert!(wrong.is_empty(), "{} launches went wrong:\n{}", wrong.len(), wrong.join("\n"));
}
