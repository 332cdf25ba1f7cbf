//! Adding an SM of a known generation takes one row: a copy of the repository with one more row in `tables/targets.ron`
//! builds, and compiles and runs a kernel for it.

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
fn one_row_adds_a_target() {
    let temp = tempfile::tempdir().unwrap();
    copy_of_the_repository(temp.path());
    add_row(&temp.path().join("tables/targets.ron"));
    let sassafras = build(temp.path());
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
