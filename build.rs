//! Regenerates the Rust code of the tables in OUT_DIR whenever a table changes. A wrong row fails
//! the build with its file and line.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=tables");
    link_at_a_fixed_address();
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    match sassafras_codegen::generate(&root.join("tables")) {
        Ok(files) => files.iter().for_each(|(name, text)| write(&out.join(name), text)),
        Err(failure) => {
            for line in failure.lines.lines() {
                println!("cargo::error=tables/{line}");
            }
            eprint!("{}", failure.pictures);
            std::process::exit(1);
        }
    }
}

/// The tables hold tens of thousands of pointers, which a program that loads at any address must
/// correct before it starts: half of the time that a small file takes, and all pages of the tables.
fn link_at_a_fixed_address() {
    let target = |part: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}

/// Leaves an unchanged file alone, so that editing one table recompiles only the modules that
/// include its output.
fn write(path: &Path, text: &str) {
    if std::fs::read_to_string(path).is_ok_and(|old| old == text) {
        return;
    }
    if let Err(error) = std::fs::write(path, text) {
        println!("cargo::error=cannot write {}: {error}", path.display());
    }
}
