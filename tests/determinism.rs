//! The same input gives the same bytes, whatever the file's name, directory and time of
//! compilation.

use std::path::Path;
use std::process::Command;

fn compile(source: &str, folder: &Path, name: &str, target: &str) -> Vec<u8> {
    std::fs::create_dir_all(folder).unwrap();
    let input = folder.join(name);
    let output = folder.join(format!("{name}.out"));
    std::fs::write(&input, source).unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_sassafras"))
        .arg(format!("-arch={target}"))
        .args([&input, Path::new("-o"), &output])
        .current_dir(folder)
        .status()
        .unwrap();
    assert!(status.success(), "{name} for {target}");
    std::fs::read(output).unwrap()
}

#[test]
fn names_places_and_times_leave_no_trace() {
    let temp = tempfile::tempdir().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/exec");
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|p| p.extension().is_some_and(|e| e == "ptx"));
    names.sort();
    assert!(!names.is_empty());
    for path in names {
        let source = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let own = source.lines().find_map(|l| l.strip_prefix(".target ")).unwrap();
        // A module of a base architecture also compiles for a later one; any other only for its own
        // target.
        let number = own.trim().trim_start_matches("sm_").parse::<u32>();
        let target = if number.is_ok_and(|n| n <= 90) { "sm_90" } else { own.trim() };
        let first = compile(&source, &temp.path().join("a"), name, target);
        let second = compile(&source, &temp.path().join("b/deeper"), "other name.ptx", target);
        assert_eq!(first, second, "{name}");
    }
}
