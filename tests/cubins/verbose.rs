//! Compares the lines of `-v` with those of ptxas.
//!
//! The input is `tests/cases/verbose`, the corpus and the executed cases (and `../shared/corpus` if
//! present), as objects for sm_90 and as cubins for sm_80 or sm_90 in turn (for both with
//! `SASSAFRAS_ORACLE=all`). The output must equal that of ptxas line by line. What
//! depends on the code itself is normalised: registers, frames, spills, times, and the banks of
//! branch tables and addresses. Without ptxas: the recorded lines of `kinds.ptx`.
//!
//! Intended differences: if a module calls through pointers, ptxas orders the entries of a cubin by
//! a hash of its own (ours: the last of the text first); helpers (`__cuda_*`) that ptxas adds to
//! objects are inlined in our code, or behind their callers; bytes of `gmem`, because ptxas sorts
//! variables by alignment and ours stay in text order, with more padding; bytes of `smem` in
//! objects, where ptxas reserves space for an alignment that the linker redoes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

const WHOLE: &[&str] = &[];
const OBJECT: &[&str] = &["-c"];

/// Cases that are not compared, and why.
const LEFT_OUT: [(&str, &str); 4] = [
    ("several_results.ptx", "ptxas gives up the calling convention and says nothing of the functions"),
    ("calls_without_abi.ptx", "ptxas gives up the calling convention and says nothing of the functions"),
    ("samplers.ptx", "behind the parameters of a kernel that asks a sampler by name ptxas has 20 bytes, we 24"),
    ("small_programs.ptx", "functions that only an initialiser names are behind no kernel of ours"),
];

/// The resource lines that a compiler prints; `None` if it rejects the input.
fn said(program: &Path, options: &[&str], file: &Path, out: &Path) -> Option<Vec<String>> {
    let output = Command::new(program).arg("-v").args(options).arg(file).arg("-o").arg(out).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = text.lines().filter(|line| line.starts_with("ptxas info    : ") || line.starts_with("    "));
    output.status.success().then(|| lines.map(|line| normal(line, options.contains(&"-c"))).collect())
}

fn ours(arch: &str, more: &[&str], file: &Path, out: &Path) -> Option<Vec<String>> {
    let options = [&["--ptxas-compat", "-arch", arch][..], more].concat();
    said(Path::new(env!("CARGO_BIN_EXE_sassafras")), &options, file, out)
}

/// A line with the code-dependent parts removed.
fn normal(line: &str, object: bool) -> String {
    if line.contains("Compile time = ") {
        let number = line.rsplit("= ").next().and_then(|rest| rest.strip_suffix(" ms"));
        assert!(number.is_some_and(|n| n.parse::<f64>().is_ok() && n.split('.').nth(1).map(str::len) == Some(3)));
        return "Compile time".to_string();
    }
    let code_alone = ["cumulative stack size", "cmem[2]", "cmem[4]"];
    let parts: Vec<String> =
        line.split(", ").filter(|part| !code_alone.iter().any(|end| part.ends_with(end))).map(part).collect();
    let line = parts.join(", ");
    match line.split_once(" bytes smem").filter(|_| object) {
        Some((head, rest)) => format!("{} bytes smem{rest}", head.trim_end_matches(|c: char| c.is_ascii_digit())),
        None => line,
    }
}

fn part(text: &str) -> String {
    let code = ["bytes gmem", "stack frame", "spill stores", "spill loads", " registers"]
        .iter()
        .any(|end| text.ends_with(end));
    if code { text.replace(|c: char| c.is_ascii_digit(), "") } else { text.to_string() }
}

/// The lines of each function or entry, without helpers.
fn blocks(lines: &[String]) -> Vec<Vec<String>> {
    let mut blocks: Vec<Vec<String>> = vec![Vec::new()];
    let mut entry = false;
    for line in lines {
        if line.contains("Compiling entry function") || !entry && line.contains("Function properties for") {
            blocks.push(Vec::new());
        }
        // An entry's own properties follow its first line; those of its functions have blocks of
        // their own.
        entry = line.contains("Compiling entry function");
        blocks.last_mut().unwrap().push(line.clone());
    }
    blocks.retain(|block| !block.first().is_some_and(|line| line.contains("Function properties for __cuda_")));
    blocks
}

fn ptx_files() -> Vec<PathBuf> {
    let mut folders = vec!["tests/cases/verbose", "tests/corpus", "tests/cases/exec", "tests/cases/linking"];
    folders.extend(["../shared/corpus/cuda", "../shared/corpus/llvm", "../shared/corpus/numba"]);
    let read = folders.into_iter().filter_map(|folder| std::fs::read_dir(root().join(folder)).ok());
    let paths = read.flatten().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "ptx")).collect();
    let left_out = |path: &Path| LEFT_OUT.iter().any(|(name, _)| path.file_name().is_some_and(|file| file == *name));
    paths.retain(|path| !left_out(path));
    paths.sort();
    paths
}

/// The difference; `None` if the two agree or one of them rejects the input.
fn difference(ptxas: &Path, arch: &str, more: &[&str], file: &Path, folder: &Path) -> Option<String> {
    let mut theirs = blocks(&said(ptxas, &[&["-arch", arch][..], more].concat(), file, &folder.join("theirs"))?);
    let mut ours = blocks(&ours(arch, more, file, &folder.join("ours"))?);
    if std::fs::read_to_string(file).unwrap().contains(".callprototype") {
        theirs.sort();
        ours.sort();
    }
    if theirs == ours {
        return None;
    }
    let place = theirs.iter().zip(&ours).position(|(a, b)| a != b).unwrap_or(theirs.len().min(ours.len()));
    let (a, b) = (theirs.get(place), ours.get(place));
    Some(format!("{} {arch} {more:?}:\n  ptxas {a:?}\n  ours  {b:?}", file.display()))
}

#[test]
fn lines_are_those_of_ptxas() {
    let ptxas = root().join("target/vendor/ptxas");
    if !ptxas.exists() {
        println!("skipped: target/vendor/ptxas is missing");
        return;
    }
    let files = ptx_files();
    let ways = [("sm_80", WHOLE), ("sm_90", WHOLE), ("sm_90", OBJECT)];
    let all = std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all");
    let turn = |file: usize, way: usize| all || way == 2 || file % 2 == way;
    let (next, compared) = (AtomicUsize::new(0), [(); 3].map(|()| AtomicUsize::new(0)));
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(|| {
                let folder = tempfile::tempdir().unwrap();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(at) else { break };
                    let taken = ways.iter().enumerate().filter(|(way, _)| turn(at, *way));
                    let found = taken.filter_map(|(way, (arch, more))| {
                        compared[way].fetch_add(1, Ordering::Relaxed);
                        difference(&ptxas, arch, more, file, folder.path())
                    });
                    let found: Vec<String> = found.collect();
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    let (wrong, compared) = (wrong.into_inner().unwrap(), compared.map(AtomicUsize::into_inner));
    assert!(compared.iter().all(|count| *count > 100), "{compared:?}");
    assert!(wrong.is_empty(), "{} of {compared:?}:\n{}", wrong.len(), wrong.join("\n"));
}

/// The output of ptxas 13.0.88 for `kinds.ptx`, normalised.
#[test]
fn lines_are_the_recorded_ones() {
    let folder = tempfile::tempdir().unwrap();
    let file = root().join("tests/cases/verbose/kinds.ptx");
    for (arch, more, name) in [("sm_80", WHOLE, "kinds.sm_80.txt"), ("sm_90", OBJECT, "kinds.sm_90.c.txt")] {
        let mut found = blocks(&ours(arch, more, &file, &folder.path().join("k")).unwrap());
        let recorded = std::fs::read_to_string(root().join("tests/cases/verbose").join(name)).unwrap();
        let mut wanted = blocks(&recorded.lines().map(|line| normal(line, !more.is_empty())).collect::<Vec<_>>());
        if more.is_empty() {
            found.sort();
            wanted.sort();
        }
        assert_eq!(found, wanted, "{name}");
    }
}

/// The stack that each entry needs with everything that it calls, by name or by pointer.
#[test]
fn stacks_of_calls_are_added_up() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (root().join("tests/cases/verbose/virtual.ptx"), folder.path().join("k"));
    let ptxas = root().join("target/vendor/ptxas");
    let ours = (PathBuf::from(env!("CARGO_BIN_EXE_sassafras")), vec!["--ptxas-compat"]);
    let theirs = ptxas.exists().then(|| (ptxas, vec![]));
    for (program, more) in [ours].into_iter().chain(theirs) {
        for arch in ["-arch=sm_80", "-arch=sm_90"] {
            let output =
                Command::new(&program).args(&more).args(["-v", arch, "-o"]).args([&out, &file]).output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let stack = |entry: &str| {
                let own = text.split_once(&format!("Compiling entry function '{entry}'"))?.1;
                let used = own.lines().find(|line| line.contains("Used "))?;
                used.split(", ").find_map(|part| part.strip_suffix(" bytes cumulative stack size"))
            };
            let found = ["virtual", "direct", "none"].map(stack);
            assert_eq!(found, [Some("400"), Some("400"), None], "{} {arch}:\n{text}", program.display());
        }
    }
}
