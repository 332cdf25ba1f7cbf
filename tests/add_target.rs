//! Adding takes rows, no code: a copy of the repository with one more target, one more operation of the legality matrix and rules for it builds,
//! compiles and runs a kernel for that target, and shows the new cells.

use std::path::{Path, PathBuf};
use std::process::Command;

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn copy_of_the_repository(to: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["tables", "codegen", "src"] {
        copy_folder(&root.join(name), &to.join(name));
    }
    for name in ["Cargo.toml", "Cargo.lock", "build.rs"] {
        std::fs::copy(root.join(name), to.join(name)).unwrap();
    }
}

/// The row of an existing target under another name, number and column.
fn add_row(targets: &Path) {
    let text = std::fs::read_to_string(targets).unwrap();
    let row = "  (col: 127, name: \"sm_122\", sm: 122, variant: \"base\", kind: \"real\", parent: Some(\"sm_120\"), \
               generation: Some(\"sm100\"), min_ptx: Some(\"9.0\"), src: \"made up by a test\"),\n]";
    let end = text.rfind(']').unwrap();
    std::fs::write(targets, format!("{}{row}\n", &text[..end])).unwrap();
}

/// Puts a row behind the last one of a table.
fn append(table: &Path, row: &str) {
    let text = std::fs::read_to_string(table).unwrap();
    let end = text.rfind(']').unwrap();
    std::fs::write(table, format!("{}  {row},\n]\n", &text[..end])).unwrap();
}

/// An operation of the matrix with a rule for each kind of verdict that needs no code.
fn add_operation(legality: &Path) {
    append(
        &legality.join("operations.ron"),
        "(id: 236, op: \"made.up\", family: \"integer\", forms: \"made.up\", min_ptx: \"9.0\", state: \"built\", status: \"proposed\", \
         src: \"made up by a test\")",
    );
    for (on, verdict) in [("sm_30..sm_121", "illegal No '{target}' makes up"), ("sm_122", "native IADD3")] {
        let row = format!(
            "(ops: \"made.up\", on: \"{on}\", verdict: \"{verdict}\", status: \"proposed\", src: \"made up by a test\")"
        );
        append(&legality.join("integer.ron"), &row);
    }
}

fn cell(sassafras: &Path, operation: &str, target: &str) -> String {
    let shown = Command::new(sassafras).args(["targets", "--matrix", operation, target]).output().unwrap();
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    String::from_utf8(shown.stdout).unwrap()
}

fn build(folder: &Path) -> PathBuf {
    // A target folder of its own that survives the test, so that only the first run builds the dependencies.
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/add-target");
    let output = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--bin", "sassafras"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", &target)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.join("debug/sassafras")
}

#[test]
fn rows_add_a_target_and_an_operation() {
    let temp = tempfile::tempdir().unwrap();
    copy_of_the_repository(temp.path());
    add_row(&temp.path().join("tables/targets.ron"));
    add_operation(&temp.path().join("tables/legality"));
    let sassafras = build(temp.path());
    assert!(cell(&sassafras, "made.up", "sm_122").starts_with("made.up on sm_122: native IADD3 (0x00000000)"));
    assert!(cell(&sassafras, "made.up", "sm_90").contains("message  No 'sm_90' makes up"));
    assert!(cell(&sassafras, "div.s64", "sm_122").contains("handler"));
    let saxpy = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/saxpy.ptx");
    let cubin = temp.path().join("saxpy.cubin");
    let compiled = Command::new(&sassafras).arg("-arch=sm_122").arg(&saxpy).arg("-o").arg(&cubin).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));

    let (x, y) = (temp.path().join("x"), temp.path().join("y"));
    let bytes = |values: [f32; 3]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    std::fs::write(&x, bytes([1.0, 2.0, 3.0])).unwrap();
    std::fs::write(&y, bytes([10.0, 20.0, 30.0])).unwrap();
    let run = Command::new(&sassafras)
        .arg("run")
        .arg(&cubin)
        .args(["--kernel", "saxpy", "--grid", "1", "--block", "32", "--arg", "u32:3", "--arg", "f32:2"])
        .arg("--arg")
        .arg(format!("in:{}", x.display()))
        .arg("--arg")
        .arg(format!("inout:{}", y.display()))
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(std::fs::read(&y).unwrap(), bytes([12.0, 24.0, 36.0]));
}
