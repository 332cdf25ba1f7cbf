//! Line tables, read back by nvdisasm.
//!
//! The input is `tests/cases/lines/lines.ptx`. If nvdisasm is installed, it must print the expected
//! source lines before the instructions, with the calls of inlined code, and the PTX lines; the
//! same after nvlink has linked an object. Without the tools: a file without `.loc` gets tables
//! only if they are requested.

use crate::vendor::wanted as tool;
use sassafras::tables::{Feature, Target};
use sassafras::{Options, compile};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn source() -> String {
    std::fs::read_to_string(root().join("tests/cases/lines/lines.ptx")).unwrap()
}

/// The lines that nvdisasm prints for each section of code, with their addresses.
fn printed(nvdisasm: &Path, file: &Path, flag: &str) -> Vec<(String, Vec<(u64, String)>)> {
    let output = Command::new(nvdisasm).args([flag, "-c"]).arg(file).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut sections: Vec<(String, Vec<(u64, String)>)> = Vec::new();
    let mut waiting = Vec::new();
    for line in String::from_utf8(output.stdout).unwrap().lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("//--------------------- .text.") {
            sections.push((rest.split_whitespace().next().unwrap().to_string(), Vec::new()));
        } else if let Some(rest) = line.strip_prefix("//## File ") {
            waiting.push(rest.to_string());
        } else if let Some((address, _)) = line.strip_prefix("/*").and_then(|rest| rest.split_once("*/")) {
            let address = u64::from_str_radix(address, 16).unwrap_or(u64::MAX);
            if let Some((_, found)) = sections.last_mut() {
                found.extend(waiting.drain(..).map(|text| (address, text)));
            }
        }
    }
    sections
}

/// Only the lines, in the order of the code.
fn lines(sections: &[(String, Vec<(u64, String)>)], name: &str) -> Vec<String> {
    let (_, found) = sections.iter().find(|(section, _)| section == name).unwrap();
    found.iter().map(|(_, text)| text.clone()).collect()
}

const INLINED: [&str; 9] = [
    "\"src/first.cu\", line 10",
    "\"src/first.cu\", line 12",
    "\"include/second.cuh\", line 20 inlined at \"src/first.cu\", line 12",
    "\"src/first.cu\", line 12",
    "\"include/second.cuh\", line 30 inlined at \"include/second.cuh\", line 20",
    "\"include/second.cuh\", line 20 inlined at \"src/first.cu\", line 12",
    "\"src/first.cu\", line 12",
    "\"src/first.cu\", line 13",
    "\"src/first.cu\", line 14",
];

#[test]
fn nvdisasm_prints_the_lines_of_the_text() {
    let Some(nvdisasm) = tool("nvdisasm") else { return };
    let folder = tempfile::tempdir().unwrap();
    for arch in ["sm_75", "sm_90", "sm_120"] {
        for level in [0, 3] {
            let options = Options { opt_level: level, ..Options::new(arch) };
            let cubin = compile(&source(), &options).unwrap().cubin;
            let file = folder.path().join("k.cubin");
            std::fs::write(&file, &cubin).unwrap();
            let sections = printed(&nvdisasm, &file, "-gi");
            agrees(&lines(&sections, "inlined"), level, arch);
            let called = lines(&sections, "calls");
            // The parameter is loaded directly into its register: line 3 has no instruction.
            for line in [20, 22, 24, 400, 402] {
                let text = format!("\"src/first.cu\", line {line}");
                assert!(called.contains(&text), "{arch} -O{level}: {text} in {called:?}");
            }
            ptx_lines(&printed(&nvdisasm, &file, "-gp"), arch);
        }
    }
}

/// Compares the lines of the code: in order at -O0, as a set from -O1 on, where instructions are
/// reordered. If instructions access constant banks directly, a line that only reads parameters
/// has no instruction.
fn agrees(found: &[String], level: u8, arch: &str) {
    if level == 0 {
        assert_eq!(found, INLINED, "{arch} -O0");
    }
    let named = level > 0 && Target::by_name(arch).is_some_and(|t| t.has(Feature::ConstantOperandsPreferred));
    let set = |lines: &[&str]| lines.iter().map(|line| line.to_string()).collect::<BTreeSet<_>>();
    let wanted = if named { &INLINED[1..] } else { &INLINED[..] };
    assert_eq!(found.iter().cloned().collect::<BTreeSet<_>>(), set(wanted), "{arch} -O{level}");
}

/// Every store comes after the PTX line that it came from.
fn ptx_lines(sections: &[(String, Vec<(u64, String)>)], arch: &str) {
    let text = source();
    for (name, statement) in [("inlined", "st.global.u32 [%rd3], %r3;"), ("calls", "st.global.u32 [%rd1], %r1;")] {
        let line = text.lines().position(|line| line.trim() == statement).unwrap() + 1;
        let wanted = format!("\".nv_debug_ptx_txt\", line {line}");
        let found = lines(sections, name);
        assert!(found.contains(&wanted), "{arch} {name}: {wanted} in {found:?}");
    }
}

#[test]
fn lines_of_objects_are_linked() {
    let (Some(nvdisasm), Some(nvlink)) = (tool("nvdisasm"), tool("nvlink")) else { return };
    let folder = tempfile::tempdir().unwrap();
    for arch in ["sm_75", "sm_90", "sm_120"] {
        let options = Options { relocatable: true, ..Options::new(arch) };
        let object = folder.path().join("k.o");
        std::fs::write(&object, compile(&source(), &options).unwrap().cubin).unwrap();
        let linked = folder.path().join("k.cubin");
        let output = Command::new(&nvlink).arg(format!("-arch={arch}")).arg(&object).arg("-o").arg(&linked).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{arch}: {}", String::from_utf8_lossy(&output.stdout));
        let sections = printed(&nvdisasm, &linked, "-gi");
        agrees(&lines(&sections, "inlined"), options.opt_level, arch);
    }
}

#[test]
fn tables_are_written_where_there_are_lines_or_they_are_wanted() {
    let has = |cubin: &[u8]| cubin.windows(12).any(|bytes| bytes == b".debug_line\0");
    let plain = ".version 8.0 .target sm_80 .address_size 64 .visible .entry k() { ret; }";
    assert!(has(&compile(&source(), &Options::new("sm_90")).unwrap().cubin));
    assert!(!has(&compile(plain, &Options::new("sm_90")).unwrap().cubin));
    assert!(has(&compile(plain, &Options { line_info: true, ..Options::new("sm_90") }).unwrap().cubin));
}

/// Lines of all kinds, and what ptxas 13.0.88 keeps of them.
const ODD: &str = "// a comment first\r\n.version 8.0\r\n.target sm_75\n.address_size 64\n\t.file 1 \"a.cu\"  // behind\n/* two\n \
    lines */ .global .b8 x[2];\n.global\n.b32 y;\n.visible .entry k()   \n{\n\t.local .align 4 .b8 depot[8];\n.reg\n .b32 r1; // .loc\n\
    .loc 1 10 3\n\tmov.u32 r1, 1;\tst.local.u32 [depot], r1;\n.loc\t1 11 3\nret; }\n.section .debug_str {\nname: .b8 0\n.b8 1\n\
    .b16 2\n}\n\n// end\n  \n";
const KEPT: &str = "\n.version 8.0\n.target sm_75\n.address_size 64\n\n/* two\nlines */ .global .b8 x[2];\n.global\n\n\
    .visible .entry k()   \n{\n.local .align 4 .b8 depot[8];\n.reg\n\n\nmov.u32 r1, 1;\tst.local.u32 [depot], r1;\n\nret; }\n\
    .section .debug_str {\nname: .b8 0\n\n.b16 2\n}\n";

/// Name and bytes of the sections of line tables.
fn line_sections(cubin: &[u8]) -> Vec<(String, Vec<u8>)> {
    use object::{Object, ObjectSection};
    let file = object::File::parse(cubin).unwrap();
    let sections = file.sections().filter(|section| section.name().unwrap().contains("debug"));
    sections.map(|section| (section.name().unwrap().to_string(), section.data().unwrap().to_vec())).collect()
}

#[test]
fn the_text_is_kept_as_ptxas_keeps_it() {
    let ptxas = root().join("target/vendor/ptxas");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("odd.ptx");
    std::fs::write(&file, ODD).unwrap();
    for relocatable in [false, true] {
        let ours = compile(ODD, &Options { relocatable, ..Options::new("sm_90") }).unwrap().cubin;
        let ours = line_sections(&ours);
        let (name, text) = ours.iter().find(|(name, _)| name.starts_with(".nv_debug_ptx_txt")).unwrap();
        assert_eq!(String::from_utf8_lossy(text).replace('\0', "\n"), KEPT, "{name}");
        if !ptxas.exists() {
            println!("skipped: target/vendor/ptxas is missing");
            continue;
        }
        let out = folder.path().join("theirs");
        let kind: &[&str] = if relocatable { &["-c"] } else { &[] };
        let done = Command::new(&ptxas).arg("-arch=sm_90").args(kind).arg(&file).arg("-o").arg(&out).status().unwrap();
        assert!(done.success());
        let theirs = line_sections(&std::fs::read(out).unwrap());
        let theirs: Vec<_> = theirs.iter().filter(|(name, _)| !name.starts_with(".nv.merc")).collect();
        let names = |sections: &[&(String, Vec<u8>)]| sections.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
        assert_eq!(names(&ours.iter().collect::<Vec<_>>()), names(&theirs));
        let theirs_text = theirs.iter().find(|(name, _)| name.starts_with(".nv_debug_ptx_txt")).unwrap();
        assert_eq!(*text, theirs_text.1);
    }
}

#[test]
fn suppressed_tables_are_not_written() {
    let plain = ".version 8.0 .target sm_80 .address_size 64 .visible .entry k() { ret; }";
    for (text, line_info) in [(source().as_str(), false), (source().as_str(), true), (plain, true)] {
        let options = Options { line_info, suppress_debug_info: true, ..Options::new("sm_90") };
        let output = compile(text, &options).unwrap();
        assert!(!output.cubin.windows(12).any(|bytes| bytes == b".debug_line\0") && output.diagnostics.is_empty());
    }
    let options = Options { suppress_debug_info: true, ..Options::new("sm_90") };
    assert!(compile(plain, &options).unwrap().diagnostics[0].message.contains("suppress-debug-info"));
}
