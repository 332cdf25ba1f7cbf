//! Tests of the front end.

use super::*;
use std::path::{Path, PathBuf};

/// Every PTX file under a folder, in order.
fn ptx_files(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            ptx_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "ptx") {
            out.push(path);
        }
    }
}

#[test]
fn real_files_have_no_syntax_errors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    let mut files = Vec::new();
    ptx_files(&folder, &mut files);
    if files.is_empty() {
        println!("skipped: no corpus at ../shared/corpus");
        return;
    }
    let mut bad = Vec::new();
    for path in &files {
        let Ok(source) = std::fs::read_to_string(path) else { continue };
        for d in check_syntax(&source).iter().take(3) {
            bad.push(d.render(&path.display().to_string(), &source));
        }
    }
    assert!(bad.is_empty(), "{} files, {} diagnostics:\n{}", files.len(), bad.len(), bad[..bad.len().min(40)].concat());
}

#[test]
fn real_files_match_rows_or_are_refused_by_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    let mut files = Vec::new();
    ptx_files(&folder, &mut files);
    if files.is_empty() {
        println!("skipped: no corpus at ../shared/corpus");
        return;
    }
    let mut bad = Vec::new();
    let mut whole = 0;
    for path in &files {
        let Ok(source) = std::fs::read_to_string(path) else { continue };
        let (module, diags) = parse(&source);
        whole += usize::from(module.is_some());
        for d in diags.iter().filter(|d| !d.message.ends_with("is not supported yet")) {
            bad.push(d.render(&path.display().to_string(), &source));
        }
    }
    println!("{whole} of {} files parse whole", files.len());
    assert!(bad.is_empty(), "{} diagnostics:\n{}", bad.len(), bad[..bad.len().min(40)].concat());
}
