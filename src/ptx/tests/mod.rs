//! Tests of the front end: real files, syntax trees of small files, messages, malformed input, and
//! comparison with the verdicts of ptxas.

mod forms;
mod fuzz;
mod messages;
mod oracle;
mod total;
mod tree;

use super::*;
use std::path::{Path, PathBuf};

/// A kernel with registers of every kind around some instructions, the first of which is on line 5.
fn kernel(version: &str, target: &str, body: &str) -> String {
    // Not every version has `.b128`.
    let wide = if body.contains("%q") { ".reg .b128 %q<4>; " } else { "" };
    format!(
        ".version {version}\n.target {target}\n.address_size 64\n\
         .visible .entry k(.param .u64 p, .param .u32 n) {{ {wide}{REGISTERS}\n{body}\nret;\n}}\n"
    )
}

const REGISTERS: &str = ".reg .pred %p<4>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; \
    .reg .f32 %f<9>; .reg .f64 %d<9>; .reg .b8 %c<2>; \
    .reg .u16 %uh<2>; .reg .s16 %sh<2>; .reg .f16 %fh<2>; .reg .u32 %ur<2>; .reg .s32 %sr<2>; .reg .f16x2 %fr<2>; \
    .reg .u64 %ul<2>; .reg .s64 %sl<2>; .shared .align 16 .b8 sm[64];";

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

#[test]
fn our_own_kernels_parse() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut files = Vec::new();
    ptx_files(&root.join("cases/exec"), &mut files);
    ptx_files(&root.join("corpus"), &mut files);
    assert!(!files.is_empty());
    for path in files {
        let source = std::fs::read_to_string(&path).unwrap();
        let (module, diags) = parse(&source);
        let text: String = diags.iter().map(|d| d.render(&path.display().to_string(), &source)).collect();
        // Some kernels are outdated on purpose, so warnings are allowed.
        let errors = diags.iter().filter(|d| d.severity != crate::diag::Severity::Warning);
        assert!(module.is_some() && errors.count() == 0, "{text}");
    }
}
