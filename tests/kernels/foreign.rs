//! PTX that other compilers make of CUDA, CUB, CUTLASS and OpenMP: what ptxas accepts, we accept,
//! and our listing of the code equals nvdisasm's.
//!
//! The input is a folder of PTX, `SASSAFRAS_PTX=FOLDER`, each file for the target that it names and
//! at each level; one with `object` in its name is made an object, one with `debug` is compiled
//! with `-g`. `tests/bench/cuda/make.py` makes such a folder. By default it makes the part that
//! clang can; without Python or clang the test is skipped. Without ptxas nothing may be refused.

use crate::corpus::{Job, prints_as_nvdisasm};
use crate::{ptxas, vendor};
use sassafras::compile::{Options, compile};
use std::path::{Path, PathBuf};
use std::process::Command;

const LEVELS: [u8; 4] = [0, 1, 2, 3];

/// The folder of PTX, made if none is given; `None` if it cannot be.
fn folder(made: &Path) -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("SASSAFRAS_PTX") {
        return Some(given.into());
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/cuda/make.py");
    let words = ["--only", "clang", "--target", "75,80"];
    let ran = Command::new("python3").arg(script).arg(made).args(words).output();
    let said = ran.map_or_else(|error| error.to_string(), |ran| String::from_utf8_lossy(&ran.stdout).into_owned());
    let any = std::fs::read_dir(made).is_ok_and(|mut files| files.next().is_some());
    if !any {
        println!("skipped: no PTX of clang: {}", said.lines().next().unwrap_or_default());
    }
    any.then(|| made.to_path_buf())
}

/// The files of a folder, sorted, with the targets that they name.
fn jobs(folder: &Path) -> Vec<Job> {
    let files = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "ptx")).collect();
    files.sort();
    let one = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a text");
        let target = text.lines().find_map(|line| line.trim_start().strip_prefix(".target"));
        let target = target.and_then(|rest| rest.split(',').next()).expect("a target").trim().to_string();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        Job { path, name, target, raised: false }
    };
    files.into_iter().map(one).collect()
}

/// How a file is compiled at a level: by us, and the words for ptxas.
fn ways(job: &Job, opt_level: u8) -> Option<(Options, Vec<String>)> {
    let (relocatable, debug) = (job.name.contains("object"), job.name.contains("debug"));
    // With -g there is one level.
    if debug && opt_level > 0 {
        return None;
    }
    let line_info = job.name.contains("lines");
    let options = Options { opt_level, relocatable, debug, line_info, verify_ir: true, ..Options::new(&job.target) };
    let mut words = vec![format!("-arch={}", job.target)];
    words.extend((!debug).then(|| format!("-O{opt_level}")));
    let flags = [(relocatable, "-c"), (debug, "-g"), (line_info, "-lineinfo")];
    words.extend(flags.into_iter().filter(|(set, _)| *set).map(|(_, word)| word.to_string()));
    Some((options, words))
}

/// What the oldest ptxas that reads a file's version says against it; `None` if it accepts it.
fn refused(text: &str, words: &[String]) -> Option<String> {
    let version = text.lines().find_map(|line| line.trim().strip_prefix(".version 9."));
    let newer = version.is_some_and(|minor| minor.trim() != "0");
    let program = if newer { vendor::tool(&format!("{}/ptxas", vendor::NEWEST)) } else { vendor::tool("ptxas") }?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let answer = ptxas::ask(&program, text.as_bytes(), &words);
    answer.cubin.is_none().then_some(answer.said)
}

#[test]
fn what_other_compilers_make_is_accepted_and_printed() {
    let made = tempfile::tempdir().expect("a temporary folder");
    let Some(folder) = folder(made.path()) else { return };
    let jobs = jobs(&folder);
    assert!(!jobs.is_empty(), "{} has no PTX", folder.display());
    let (mut cubins, mut wrong) = (Vec::new(), Vec::new());
    for job in &jobs {
        let text = std::fs::read_to_string(&job.path).expect("a text");
        for level in LEVELS {
            let Some((options, words)) = ways(job, level) else { continue };
            let ours = compile(&text, &options).map(|output| output.cubin);
            match (ours, refused(&text, &words)) {
                (Ok(cubin), None) => cubins.push((job, cubin)),
                (Err(_), Some(_)) => {}
                (Ok(_), Some(said)) => wrong.push(format!("{} -O{level}: only ptxas refuses: {said}", job.name)),
                (Err(errors), None) => {
                    let first = errors.first().map(|error| &error.message);
                    wrong.push(format!("{} -O{level}: only we refuse: {first:?}", job.name));
                }
            }
        }
    }
    println!("{} files, {} cubins, {} times not as ptxas", jobs.len(), cubins.len(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    prints_as_nvdisasm(&cubins);
}
