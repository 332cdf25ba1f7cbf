//! Laws of the ELF tables: each broken by one edit of the real tables, with the exact line that reports it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// File under `tables`, what is replaced once, by what, and what an error line has behind its place.
const BROKEN: [(&str, &str, &str, &str); 17] = [
    ("elf/layouts.ron", "name: \"rela\"", "name: \"new\"", "[elf] name `new` is not one of rel, rela"),
    ("elf/layouts.ron", "headers: \"last\"", "headers: \"mid\"", "[elf] headers `mid` is not one of first, last"),
    ("elf/targets.ron", "sm: 80", "sm: 75", "[unique] SM number of an ELF row `75` stands for two rows (and elf/"),
    ("elf/targets.ron", "sm: 121", "sm: 122", "[elf] sm_121: no row of elf/targets.ron has sm 121"),
    ("elf/targets.ron", "layout: \"rela\"", "layout: \"rea\"", "[names] sm 90: no layout is called `rea`"),
    ("elf/targets.ron", "SW_WAR=0x1", "SW_WA=0x1", "[names] sm 75: no attribute is called `SW_WA`"),
    ("elf/targets.ron", "SW_WAR=0x1", "SW_WAR=1", "[elf] sm 75: `SW_WAR=1` is not NAME or NAME=0xVALUE"),
    (
        "elf/targets.ron",
        "SW_WAR=0x1",
        "SW_WAR",
        "[elf] sm 75: `SW_WAR` is not a constant of this form (and eiattr.ron:",
    ),
    ("elf/sections.ron", "scope: \"module\"", "scope: \"file\"", "[elf] scope `file` is not one of module, function"),
    ("elf/sections.ron", "link: \".strtab\"", "link: \".str\"", "[names] .symtab: no section is called `.str`"),
    (
        "elf/sections.ron",
        "info: \".nv.compat\"",
        "info: \".nv\"",
        "[names] .note.nv.cuinfo: no section is called `.nv`",
    ),
    (
        "elf/sections.ron",
        "\".strtab\", scope",
        "\".shstrtab\", scope",
        "[unique] section of layout rel `.shstrtab` stands for two rows (and elf/",
    ),
    (
        "elf/sections.ron",
        "bytes: \"73",
        "bytes: \"7",
        "[elf] .nv.rel.action: bytes `7000000000000000000001125000536` are not hexadecimal",
    ),
    (
        "elf/compat.ron",
        "value: \"0101\"",
        "value: \"01x\"",
        "[elf] MERCURY_ISA_MAJOR_MINOR_VERSION: value `01x` is not hexadecimal",
    ),
    (
        "elf/reserved.ron",
        "sms: [90]",
        "sms: [91]",
        "[names] .nv.reservedSmem.offset0: no row of elf/targets.ron has sm 91",
    ),
    ("eiattr.ron", "id: 0x23", "id: 0x2f", "[unique] attribute `0x2f` stands for two rows (and eiattr.ron:"),
    (
        "eiattr.ron",
        "driver: \"unknown\"",
        "driver: \"maybe\"",
        "[elf] driver `maybe` is not one of required, ignored, unknown",
    ),
];

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The error lines of the real tables with one edit.
fn broken(file: &str, from: &str, to: &str) -> String {
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tables");
    // Tests run side by side: each needs a folder of its own.
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let folder: PathBuf = std::env::temp_dir().join(format!("sassafras-elf-laws-{}-{number}", std::process::id()));
    copy(&real, &folder);
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} has no {from}");
    std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
    let result = sassafras_codegen::generate(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    result.map(|_| String::new()).unwrap_or_else(|failure| failure.lines)
}

#[test]
fn each_broken_law_is_reported() {
    let mut wrong = Vec::new();
    for (file, from, to, expected) in BROKEN {
        let lines = broken(file, from, to);
        if !lines.lines().any(|line| line.contains(expected) && line.contains(".ron:")) {
            wrong.push(format!("{file}: {from} -> {to}\n  expected: {expected}\n  got: {lines}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
