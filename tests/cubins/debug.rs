//! Debug information: its sections beside ptxas's.
//!
//! The inputs are `tests/cases/debug`: programs in C with their PTX, with variables in local memory
//! and in registers. Without ptxas: the sections are there, every name in them has a place, and
//! gimli reads them.

use crate::turns;
use object::{Object, ObjectSection, ObjectSymbol};
use sassafras::tables::Target;
use sassafras::{Options, compile};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGETS: [&str; 5] = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"];
const CASES: [&str; 2] = ["locals", "registers"];
/// Those, and one that is only compared.
const COMPARED: [&str; 3] = ["locals", "registers", "arrays"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn case(name: &str) -> PathBuf {
    root().join(format!("tests/cases/debug/{name}.ptx"))
}

fn source(name: &str) -> String {
    std::fs::read_to_string(case(name)).unwrap()
}

fn options(arch: &str, relocatable: bool) -> Options {
    Options { debug: true, relocatable, ..Options::new(arch) }
}

/// ptxas's cubin of a text; `None` without ptxas.
fn theirs(path: &Path, arch: &str, relocatable: bool) -> Option<Vec<u8>> {
    let ptxas = root().join("target/vendor/ptxas");
    if !ptxas.exists() {
        println!("skipped: target/vendor/ptxas is missing");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let kind: &[&str] = if relocatable { &["-c"] } else { &[] };
    let mut command = Command::new(ptxas);
    let done = command.args(["-g", "-arch", arch]).args(kind).arg(path).arg("-o").arg(&out).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(std::fs::read(out).unwrap())
}

/// A relocation: offset, type, symbol.
type Reloc = (u64, u32, String);

/// A section of debug information.
#[derive(Clone, Debug, Default, PartialEq)]
struct Section {
    bytes: Vec<u8>,
    relocs: Vec<Reloc>,
    /// Addends by offset.
    addends: BTreeMap<u64, i64>,
}

/// The sections of debug information by name, in order.
fn sections(cubin: &[u8]) -> Vec<(String, Section)> {
    let file = object::File::parse(cubin).unwrap();
    let mut found: Vec<(String, Section)> = Vec::new();
    let is_debug = |name: &str| name.starts_with(".debug_") || name.starts_with(".nv_debug_");
    for section in file.sections().filter(|s| is_debug(s.name().unwrap()) && s.name().unwrap() != ".nv_debug.shared") {
        let name = section.name().unwrap();
        // In objects the name ends in a number.
        let name = if name.starts_with(".nv_debug_ptx_txt") { ".nv_debug_ptx_txt" } else { name };
        let mut made = Section { bytes: section.data().unwrap().to_vec(), ..Section::default() };
        for table in tables(&file, section.name().unwrap()) {
            for (offset, kind, symbol, addend) in table {
                made.relocs.push((offset, kind, symbol));
                made.addends.insert(offset, addend);
            }
        }
        found.push((name.to_string(), made));
    }
    found
}

/// The relocations of a section, of both kinds of table.
fn tables(file: &object::File<'_>, of: &str) -> Vec<Vec<(u64, u32, String, i64)>> {
    let mut found = Vec::new();
    for (prefix, size) in [(".rela", 24), (".rel", 16)] {
        let Some(table) = file.section_by_name(&format!("{prefix}{of}")) else { continue };
        let bytes = table.data().unwrap();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let rows = (0..bytes.len()).step_by(size).map(|at| {
            let symbol = file.symbol_by_index(object::SymbolIndex((word(at + 8) >> 32) as usize)).unwrap();
            let name = match symbol.section_index().filter(|_| symbol.kind() == object::SymbolKind::Section) {
                Some(section) => file.section_by_index(section).unwrap().name().unwrap().to_string(),
                None => plain(symbol.name().unwrap()),
            };
            (word(at), word(at + 8) as u32, name, if size == 24 { word(at + 16) as i64 } else { 0 })
        });
        found.push(rows.collect());
    }
    found
}

/// The shared arrays whose sizes launches give: name, binding and section.
fn arrays(cubin: &[u8]) -> BTreeSet<(String, bool, String)> {
    let file = object::File::parse(cubin).unwrap();
    let home = |symbol: &object::Symbol<'_, '_>| {
        let section = file.section_by_index(symbol.section_index()?).ok()?;
        let name = section.name().unwrap().to_string();
        (symbol.size() == 0 && name == ".nv_debug.shared" && symbol.kind() == object::SymbolKind::Data).then_some(name)
    };
    file.symbols()
        .filter_map(|symbol| Some((symbol.name().unwrap().to_string(), symbol.is_global(), home(&symbol)?)))
        .collect()
}

/// The name of a variable in the text: in objects ours gives those of functions unique names.
fn plain(symbol: &str) -> String {
    let own = symbol.strip_prefix("$__").and_then(|rest| rest.rsplit_once("__"));
    own.map_or(symbol, |(name, _)| name).to_string()
}

/// The top byte of the flags.
fn top(cubin: &[u8]) -> u8 {
    cubin[0x33]
}

#[test]
fn sections_are_complete_without_a_tool() {
    for name in CASES {
        for arch in TARGETS {
            for relocatable in [false, true] {
                let made = compile(&source(name), &options(arch, relocatable)).unwrap();
                assert!(made.diagnostics.is_empty(), "{name} {arch}: {:?}", made.diagnostics);
                let all = sections(&made.cubin);
                let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
                for wanted in [
                    ".debug_frame",
                    ".debug_line",
                    ".nv_debug_line_sass",
                    ".nv_debug_ptx_txt",
                    ".debug_abbrev",
                    ".debug_info",
                ] {
                    assert!(names.contains(&wanted), "{name} {arch}: {wanted} in {names:?}");
                }
                assert_eq!(usize::from(top(&made.cubin)), all.len() + 5, "{name} {arch}");
                variables(&all, &format!("{name} {arch}"));
            }
        }
    }
}

/// Every variable and parameter has a location, every function a range.
fn variables(all: &[(String, Section)], what: &str) {
    let patched = |wanted: &str| {
        let found = all.iter().find(|(name, _)| name == wanted);
        let Some((_, section)) = found else { return Vec::new() };
        let mut bytes = section.bytes.clone();
        for (offset, kind, _) in &section.relocs {
            let size = if *kind == 1 { 4 } else { 8 };
            let at = *offset as usize;
            bytes[at..at + size].copy_from_slice(&section.addends[offset].to_le_bytes()[..size]);
        }
        bytes
    };
    let load = |id: gimli::SectionId| -> Result<Vec<u8>, gimli::Error> { Ok(patched(id.name())) };
    let sections = gimli::DwarfSections::load(load).unwrap();
    let dwarf = sections.borrow(|bytes| gimli::EndianSlice::new(bytes, gimli::LittleEndian));
    let mut units = dwarf.units();
    let (mut functions, mut located) = (0, 0);
    while let Some(header) = units.next().unwrap() {
        let unit = dwarf.unit(header).unwrap();
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs().unwrap() {
            match entry.tag() {
                gimli::DW_TAG_subprogram if entry.attr(gimli::DW_AT_low_pc).is_some() => {
                    let value = |name| match entry.attr_value(name) {
                        Some(gimli::AttributeValue::Addr(at)) => at,
                        other => panic!("{what}: {other:?}"),
                    };
                    assert!(value(gimli::DW_AT_low_pc) < value(gimli::DW_AT_high_pc), "{what}");
                    functions += 1;
                }
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                    located += usize::from(entry.attr(gimli::DW_AT_location).is_some());
                }
                _ => {}
            }
        }
    }
    assert!(functions == 2 && located >= 8, "{what}: {functions} functions, {located} variables");
}

/// Offsets of the bytes that hold addresses in ptxas's sections and in ours: relocated fields, and
/// distances in the stack frame, whose size is not ptxas's.
fn addresses(section: &Section) -> BTreeSet<u64> {
    let fields = section.relocs.iter().flat_map(|(at, kind, _)| *at..*at + if *kind == 1 { 4 } else { 8 });
    let mut found: BTreeSet<u64> = fields.collect();
    // DW_OP_fbreg with seven operations behind it that do nothing.
    for at in 0..section.bytes.len().saturating_sub(9) {
        if section.bytes[at] == 0x91 && section.bytes[at + 3..at + 9] == [0x96; 6] {
            found.extend([at as u64 + 1, at as u64 + 2]);
        }
    }
    found
}

/// How the debug information of a text differs from ptxas's; `None` without ptxas.
fn differing(path: &Path, arch: &str, relocatable: bool) -> Option<Vec<String>> {
    let theirs = theirs(path, arch, relocatable)?;
    let name = path.file_stem().unwrap().to_string_lossy();
    let what = format!("{name} {arch}{}", if relocatable { " -c" } else { "" });
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let ours = match compile(&text, &options(arch, relocatable)) {
        Ok(made) => made.cubin,
        Err(said) => return Some(vec![format!("{what}: {}", said[0].message)]),
    };
    let mut wrong = Vec::new();
    if top(&ours) != top(&theirs) || ours[0x10..0x12] != theirs[0x10..0x12] {
        wrong.push(format!("{what}: flags {:#x} {:#x}", top(&ours), top(&theirs)));
    }
    let (ours_arrays, theirs_arrays) = (arrays(&ours), arrays(&theirs));
    let (ours, theirs) = (sections(&ours), sections(&theirs));
    let names = |all: &[(String, Section)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let theirs: Vec<_> = theirs.into_iter().filter(|(name, _)| !name.contains(".merc")).collect();
    if names(&ours) != names(&theirs) {
        wrong.push(format!("{what}: sections {:?} {:?}", names(&ours), names(&theirs)));
        return Some(wrong);
    }
    for ((name, ours), (_, theirs)) in ours.iter().zip(&theirs) {
        wrong.extend(compare(name, ours, theirs).map(|why| format!("{what} {name}: {why}")));
    }
    if !relocatable && ours_arrays != theirs_arrays {
        wrong.push(format!("{what}: arrays that launches size {ours_arrays:?} {theirs_arrays:?}"));
    }
    Some(wrong)
}

#[test]
fn sections_are_those_of_ptxas() {
    let mut wrong = Vec::new();
    for name in COMPARED {
        for (arch, relocatable) in TARGETS.iter().flat_map(|arch| [(*arch, false), (*arch, true)]) {
            let Some(differences) = differing(&case(name), arch, relocatable) else { return };
            wrong.extend(differences);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Allocates and frees tensor memory.
const TENSOR: &str = ".version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u32 n)
{
    .shared .b32 place;
    .reg .b32 %r<3>;
    ld.param.u32 %r2, [n];
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], %r2;
    ld.shared.u32 %r1, [place];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, %r2;
    ret;
}
";

/// The reserved part of shared memory in a file: size, alignment and type of its section; value,
/// size, type and other of its symbols.
type Reserved = (Option<(u64, u64, u32)>, BTreeSet<(String, u64, u64, u8, u8)>);

fn reserved(cubin: &[u8]) -> Reserved {
    use object::elf;
    use object::read::elf::{ElfFile64, FileHeader, SectionHeader, Sym};
    let file = ElfFile64::<object::Endianness>::parse(cubin).unwrap();
    let order = file.endian();
    let sections = file.elf_header().sections(order, cubin).unwrap();
    let named = |s: &&elf::SectionHeader64<_>| sections.section_name(order, s).unwrap() == b".nv.shared.reserved.0";
    let section = sections.iter().find(named);
    let facts = section.map(|s| (s.sh_size(order), s.sh_addralign(order), s.sh_type(order).0));
    let table = sections.symbols(order, cubin, elf::SHT_SYMTAB).unwrap();
    let symbols = table.iter().map(|symbol| {
        let name = String::from_utf8_lossy(table.symbol_name(order, symbol).unwrap()).into_owned();
        (name, symbol.st_value(order), symbol.st_size(order), symbol.st_info().0, symbol.st_other().0)
    });
    (facts, symbols.filter(|symbol| symbol.0.to_lowercase().contains("reserved")).collect())
}

#[test]
fn reserved_shared_memory_is_that_of_ptxas() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tensor.ptx");
    for arch in ["sm_100a", "sm_103a", "sm_110a"] {
        let text = TENSOR.replace("sm_100a", arch);
        std::fs::write(&path, &text).unwrap();
        for relocatable in [false, true] {
            let ours = reserved(&compile(&text, &options(arch, relocatable)).unwrap().cubin);
            assert!(ours.1.iter().any(|symbol| symbol.0.contains("tcgen05_partition")), "{arch}: {ours:?}");
            let Some(theirs) = theirs(&path, arch, relocatable) else { continue };
            assert_eq!(ours, reserved(&theirs), "{arch} {relocatable}");
        }
    }
}

/// The PTX files of a folder that have debug information of their own; none where it is missing.
fn with_information(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    let has = |path: &PathBuf| String::from_utf8_lossy(&std::fs::read(path).unwrap()).contains(".debug_info");
    paths.retain(|path| path.extension().is_some_and(|e| e == "ptx") && has(path));
    paths.sort();
    paths
}

/// Programs that agree at least where the corpora are present.
const LEAST_PROGRAMS: usize = 120;

/// The target that a file takes in turn, and whether as an object.
fn target_of(path: &Path) -> (String, bool) {
    let turn = turns::turn(path);
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let line = text.lines().find_map(|line| line.trim().strip_prefix(".target")).unwrap_or_default();
    let own = line.trim().split([',', ' ', '/']).next().unwrap_or_default();
    let number = |name: &str| Target::by_name(name).map_or(0, |target| target.sm);
    let fits = |arch: &&str| !own.ends_with(['a', 'f']) && number(arch) >= number(own);
    let later: Vec<&str> = TARGETS.into_iter().filter(fits).collect();
    let arch = if later.is_empty() { own } else { later[turn / 2 % later.len()] };
    (arch.to_string(), turn % 2 == 1)
}

#[test]
fn sections_of_programs_are_those_of_ptxas() {
    let shared = root().join("../shared/corpus/triton");
    let mut files = CASES.map(case).to_vec();
    files.extend(with_information(&root().join("tests/corpus")));
    files.extend(with_information(&shared));
    let (mut wrong, mut different) = (Vec::new(), 0);
    for path in &files {
        let (arch, relocatable) = target_of(path);
        let Some(differences) = differing(path, &arch, relocatable) else { return };
        different += usize::from(!differences.is_empty());
        wrong.extend(differences);
    }
    let agree = files.len() - different;
    println!("{agree} of {} files agree", files.len());
    assert!(!shared.is_dir() || agree >= LEAST_PROGRAMS, "{agree} files");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// How two sections differ, besides addresses.
fn compare(name: &str, ours: &Section, theirs: &Section) -> Option<String> {
    match name {
        // The code is not the same.
        ".debug_line" | ".nv_debug_line_sass" | ".nv_debug_info_reg_sass" | ".nv_debug_info_reg_type" => None,
        // Functions that ptxas calls and ours has inline have common entries of their own.
        ".debug_frame" => {
            let ([ours, of_theirs], more) =
                ([ours, theirs].map(|s| common_entries(&s.bytes)), ours.relocs.len() < theirs.relocs.len());
            let same = ours == of_theirs || more && ours.is_subset(&of_theirs);
            (!same).then(|| "common entries".to_string())
        }
        _ => {
            if ours.bytes.len() != theirs.bytes.len() || ours.relocs != theirs.relocs {
                return Some(format!("{:?}\n{:?}", ours.relocs, theirs.relocs));
            }
            let skipped: BTreeSet<u64> = addresses(ours).union(&addresses(theirs)).copied().collect();
            let mut bytes = ours.bytes.iter().zip(&theirs.bytes).zip(0..);
            let other = bytes.find(|((a, b), at)| a != b && !skipped.contains(at));
            other.map(|((a, b), at)| format!("{a:#x} {b:#x} at {at:#x}"))
        }
    }
}

/// The common entries of `.debug_frame`, without padding.
fn common_entries(bytes: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = u64::from_le_bytes(bytes[at + 4..at + 12].try_into().unwrap()) as usize;
        let entry = &bytes[at + 12..at + 12 + length];
        if entry[..8] == [0xff; 8] {
            found.insert(entry.to_vec());
        }
        at += 12 + length;
    }
    found
}

/// The rows of a line table: function and line, without repetition.
fn lines(section: &Section) -> BTreeSet<(String, u64)> {
    let mut bytes = section.bytes.clone();
    // Functions get addresses far from each other.
    let names: Vec<String> = section.relocs.iter().map(|(_, _, name)| name.clone()).collect();
    for (number, (offset, _, _)) in section.relocs.iter().enumerate() {
        let at = *offset as usize;
        bytes[at..at + 8].copy_from_slice(&((number as u64 + 1) << 32).to_le_bytes());
    }
    let section = gimli::DebugLine::new(&bytes, gimli::LittleEndian);
    let program = section.program(gimli::DebugLineOffset(0), 8, None, None).unwrap();
    let mut rows = program.rows();
    let mut found = BTreeSet::new();
    while let Some((_, row)) = rows.next_row().unwrap() {
        let Some(line) = row.line().filter(|_| !row.end_sequence()) else { continue };
        found.insert((names[(row.address() >> 32) as usize - 1].clone(), line.get()));
    }
    found
}

#[test]
fn source_lines_are_those_of_ptxas() {
    let mut wrong = Vec::new();
    for name in COMPARED {
        for arch in TARGETS {
            let Some(theirs) = theirs(&case(name), arch, false) else { return };
            let ours = compile(&source(name), &options(arch, false)).unwrap().cubin;
            let rows = |cubin: &[u8]| {
                let all = sections(cubin);
                lines(&all.iter().find(|(name, _)| name == ".debug_line").unwrap().1)
            };
            let (ours, theirs) = (rows(&ours), rows(&theirs));
            let missing: Vec<_> = theirs.difference(&ours).collect();
            let more: Vec<_> = ours.difference(&theirs).collect();
            if !missing.is_empty() || !more.is_empty() {
                wrong.push(format!("{name} {arch}: ptxas alone {missing:?}, here alone {more:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn levels_and_lines_beside_debug_information() {
    let level = |level_given, opt_level| Options { level_given, opt_level, ..options("sm_90", false) };
    let plain = ".version 8.0 .target sm_80 .address_size 64 .visible .entry k() { ret; }";
    let refused = compile(plain, &level(true, 1)).unwrap_err();
    assert_eq!(refused[0].message, "Optimized debugging not supported");
    for options in [level(true, 0), level(false, 3)] {
        let made = compile(plain, &options).unwrap();
        let texts: Vec<&str> = made.diagnostics.iter().map(|d| d.message.as_str()).collect();
        assert_eq!(texts, [" .debug_abbrev section not found", " .debug_info section not found"]);
    }
    let silent = Options { suppress_debug_info: true, ..options("sm_90", false) };
    assert_eq!(top(&compile(&source("locals"), &silent).unwrap().cubin), 6);
    // The text asks for it by itself.
    let asked = Options { opt_level: 3, ..Options::new("sm_90") };
    let ours = compile(&source("locals"), &asked).unwrap().cubin;
    assert_eq!(ours, compile(&source("locals"), &options("sm_90", false)).unwrap().cubin);
    let optimised = Options { level_given: true, ..asked };
    assert_eq!(compile(&source("locals"), &optimised).unwrap_err()[0].message, "Optimized debugging not supported");
}

/// The rows of `.nv_debug_line_sass` of one function: offset and line of the PTX text.
fn text_rows(all: &[(String, Section)], function: &str) -> Vec<(u64, u64)> {
    let (_, section) = all.iter().find(|(name, _)| name == ".nv_debug_line_sass").unwrap();
    let mut bytes = section.bytes.clone();
    for (number, (offset, _, _)) in section.relocs.iter().enumerate() {
        let at = *offset as usize;
        bytes[at..at + 8].copy_from_slice(&((number as u64 + 1) << 32).to_le_bytes());
    }
    let names: Vec<&str> = section.relocs.iter().map(|(_, _, name)| name.as_str()).collect();
    let table = gimli::DebugLine::new(&bytes, gimli::LittleEndian);
    let mut rows = table.program(gimli::DebugLineOffset(0), 8, None, None).unwrap().rows();
    let mut found = Vec::new();
    while let Some((_, row)) = rows.next_row().unwrap() {
        let Some(line) = row.line().filter(|_| !row.end_sequence()) else { continue };
        if names[(row.address() >> 32) as usize - 1] == function {
            found.push((row.address() & 0xffff_ffff, line.get()));
        }
    }
    found
}

/// Where a part of a register of the text is: predicate or not, number, first and last offset.
#[derive(Clone, Debug)]
struct Record {
    name: String,
    word: u32,
    predicate: bool,
    number: u16,
    range: std::ops::Range<u64>,
}

/// The records of one function in `.nv_debug_info_reg_sass`.
fn records(all: &[(String, Section)], function: &str) -> Vec<Record> {
    let section = |wanted: &str| &all.iter().find(|(name, _)| name == wanted).unwrap().1.bytes;
    let (bytes, types) = (section(".nv_debug_info_reg_sass"), section(".nv_debug_info_reg_type"));
    let mut at = 0;
    let text = |at: &mut usize| {
        let end = bytes[*at..].iter().position(|byte| *byte == 0).unwrap();
        let text = String::from_utf8(bytes[*at..*at + end].to_vec()).unwrap();
        *at += end + 1;
        text
    };
    let number = |at: &mut usize| {
        *at += 4;
        u32::from_le_bytes(bytes[*at - 4..*at].try_into().unwrap())
    };
    let (mut found, mut kinds) = (Vec::new(), 0);
    while at < bytes.len() {
        let name = text(&mut at);
        let count = number(&mut at);
        kinds += name.len() + 1 + 4 + count as usize;
        for _ in 0..count {
            let word = number(&mut at);
            let register = text(&mut at);
            let [place, from, to] = [number(&mut at), number(&mut at), number(&mut at)];
            assert!(matches!(place >> 24, 2 | 5) && from < to, "{register}: {place:#x} {from:#x} {to:#x}");
            let range = u64::from(from)..u64::from(to);
            let record = Record { name: register, word, predicate: place >> 24 == 2, number: place as u16, range };
            found.extend((name == function).then_some(record));
        }
    }
    assert_eq!(kinds, types.len(), "one type for each record");
    found
}

/// A stop of a thread: thread, line, and how often the thread has been there.
type Stop = (u32, u64, u32);
/// The registers at each stop, one value for each part.
type Seen = BTreeMap<Stop, BTreeMap<(String, u32), u32>>;

/// What an observer records; it has no state of its own.
#[derive(Default)]
struct Recorder {
    /// Lines by the offset of their first instruction.
    lines: BTreeMap<u64, u64>,
    records: Vec<Record>,
    function: String,
    counts: BTreeMap<(u32, u64), u32>,
    seen: Seen,
}

impl Recorder {
    fn stop(&mut self, thread: u32, line: u64) -> &mut BTreeMap<(String, u32), u32> {
        let count = self.counts.entry((thread, line)).or_default();
        *count += 1;
        self.seen.entry((thread, line, *count)).or_default()
    }
}

thread_local! {
    static RECORDER: std::cell::RefCell<Recorder> = std::cell::RefCell::default();
}

/// Threads that are looked at.
const THREADS: [u32; 4] = [0, 1, 7, 31];

fn on_machine(stop: &mut sassafras::sim::sass::stop::Stop<'_>) {
    RECORDER.with_borrow_mut(|recorder| {
        let Some(line) = recorder.lines.get(&stop.pc).copied().filter(|_| THREADS.contains(&stop.thread)) else {
            return;
        };
        let here = recorder.records.iter().filter(|record| record.range.contains(&stop.pc));
        let value = |record: &Record| match record.predicate {
            true => u32::from(stop.predicate(record.number)),
            false => stop.register(record.number),
        };
        let values: BTreeMap<_, _> = here.map(|r| ((r.name.clone(), r.word), value(r))).collect();
        recorder.stop(stop.thread, line).extend(values);
    });
}

fn on_text(stop: &sassafras::sim::ptx::Stop<'_>) {
    RECORDER.with_borrow_mut(|recorder| {
        if stop.function != recorder.function || !THREADS.contains(&stop.thread) {
            return;
        }
        let mut values = BTreeMap::new();
        for (name, value) in stop.registers() {
            values.insert((name.to_string(), 0), value as u32);
            values.insert((name.to_string(), 1), (value >> 32) as u32);
        }
        recorder.stop(stop.thread, u64::from(stop.pos.line)).extend(values);
    });
}

/// Bytes of shared memory before those of the program, on newer targets.
const RESERVED: u32 = 0x400;

/// Whether a register holds an address, which is in one of the windows that both engines have.
fn is_address(register: &str, values: &BTreeMap<(String, u32), u32>) -> bool {
    const WINDOWS: std::ops::Range<u32> = 0x7f00..0x8000;
    let high = values.get(&(register.to_string(), 1));
    register == "%SPL" || high.is_some_and(|high| WINDOWS.contains(high))
}

fn arguments() -> Vec<sassafras::sim::launch::ArgValue> {
    use sassafras::sim::launch::ArgValue::{Buffer, Scalar};
    let scalar = |bytes: [u8; 4]| Scalar { bytes: bytes.to_vec() };
    vec![Buffer { bytes: vec![0; 128], writable: true }, scalar(5u32.to_le_bytes()), scalar(1.5f32.to_le_bytes())]
}

/// Stops before every line of the text: the registers that the tables name have the values that the
/// interpreter has there.
#[test]
fn registers_have_the_values_of_the_interpreter() {
    use sassafras::sim::run::{How, Shape, run_as};
    let shape = Shape { grid: [1; 3], block: [32, 1, 1], smem: 0 };
    for name in CASES {
        let (module, _) = sassafras::sim::ptx::parse(source(name).as_bytes());
        RECORDER.set(Recorder { function: name.to_string(), ..Recorder::default() });
        let mut wanted_args = arguments();
        sassafras::sim::ptx::run_inspected(&module.unwrap(), name, shape, &mut wanted_args, on_text).unwrap();
        let wanted = RECORDER.take().seen;
        for arch in TARGETS {
            let options = Options { fmad: false, ..options(arch, false) };
            let cubin = compile(&source(name), &options).unwrap().cubin;
            let all = sections(&cubin);
            let rows = text_rows(&all, name);
            let once = |line: u64| rows.iter().filter(|row| row.1 == line).count() == 1;
            let lines = rows.iter().copied().filter(|row| once(row.1)).collect();
            RECORDER.set(Recorder { lines, records: records(&all, name), ..Recorder::default() });
            let mut args = arguments();
            let how = How { inspect: Some(on_machine), ..How::default() };
            run_as(&cubin, name, shape, &mut args, how).and_then(|ran| ran.clean()).unwrap();
            assert_eq!(args, wanted_args, "{name} {arch}");
            let seen = RECORDER.take().seen;
            let (mut compared, mut wrong) = (0, Vec::new());
            for (stop, values) in &seen {
                let Some(there) = wanted.get(stop) else {
                    wrong.push(format!("{stop:?} is not reached in the text"));
                    continue;
                };
                for (register, value) in values {
                    // A register whose bits are undefined in the text may have any value, and the
                    // two engines do not place memory alike.
                    let Some(expected) = there.get(register).filter(|_| !is_address(&register.0, there)) else {
                        continue;
                    };
                    compared += 1;
                    // The interpreter has no reserved part at the start of shared memory.
                    if expected != value && expected.wrapping_add(RESERVED) != *value {
                        wrong.push(format!("{stop:?} {register:?}: {value:#x}, not {expected:#x}"));
                    }
                }
            }
            println!("{name} {arch}: {} stops, {compared} values", seen.len());
            assert!(wrong.is_empty(), "{name} {arch}: {}", wrong[..wrong.len().min(20)].join("\n"));
            assert!(seen.len() > 200 && compared > 1000, "{name} {arch}: {} stops, {compared} values", seen.len());
        }
    }
}

/// Every kernel of `tests/cases/exec` gives its numbers with debug information too.
#[test]
fn kernels_run_with_debug_information() {
    use sassafras::sim::launch::LaunchFile;
    use sassafras::sim::run::{Shape, run};
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(root().join("tests/cases/exec")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "ron"));
    paths.sort();
    let only = std::env::var("SASSAFRAS_CASE").ok();
    let (mut ran, mut wrong, mut refused) = (0, Vec::new(), Vec::new());
    for path in &paths {
        let file = LaunchFile::load(path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        // The name chooses the target, so that a new case leaves the others where they are.
        let number: usize = name.bytes().map(usize::from).sum();
        if only.as_ref().is_some_and(|only| !only.split(',').any(|one| one == name)) {
            continue;
        }
        let text = std::fs::read_to_string(&file.module).unwrap();
        let own = file.own_target().filter(|own| !own.ends_with(|c: char| c.is_ascii_digit()));
        let usual = (0..TARGETS.len()).map(|i| TARGETS[(number + i) % TARGETS.len()].to_string());
        let mut all = own.into_iter().map(|own| own.to_string()).chain(usual);
        let fits = |target: &String| file.allows(target) && file.launches.iter().any(|l| l.wants(target));
        let Some(target) = all.find(fits) else { continue };
        let made = match compile(&text, &options(&target, false)) {
            Ok(made) => made,
            Err(errors) => {
                refused.push(format!("{name} {target}: {}", errors[0].message));
                continue;
            }
        };
        for launch in file.launches.iter().filter(|launch| launch.wants(&target)) {
            let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
            let mut values = launch.arg_values();
            let done = run(&made.cubin, &launch.kernel, shape, &mut values);
            let problem = match done {
                Err(fault) => Some(fault.to_string()),
                Ok(_) => launch.check(&values).err().map(|differences| differences[0].to_string()),
            };
            wrong.extend(problem.map(|why| format!("{name} {target} {}: {why}", launch.kernel)));
            ran += 1;
        }
    }
    println!("{ran} launches; refused:\n{}", refused.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(only.is_some() || refused.len() <= MOST_REFUSED, "{}", refused.join("\n"));
}

/// What the driver does in place of an instruction is no function that is missing: copies to
/// another block on sm_120, reads of textures on sm_107.
#[test]
fn functions_of_the_driver_are_not_missing() {
    for (name, target, asked) in [
        ("bulk_copies_cluster", "sm_120", "__cuda_syscall_cp_async_bulk_unicast"),
        ("textures_gradients", "sm_107", "__cuda_syscall_tex_grad_pred_3d_v4_f32_f32"),
    ] {
        let text = std::fs::read_to_string(root().join(format!("tests/cases/exec/{name}.ptx"))).unwrap();
        let made = compile(&text, &options(target, false)).unwrap_or_else(|errors| panic!("{:?}", errors[0].message));
        let cubin = sassafras::cubin::read(&made.cubin).unwrap();
        let named = cubin.functions.iter().flat_map(|f| &f.code_relocs).any(|reloc| reloc.symbol == asked);
        assert!(named || cubin.kept.symbols.iter().any(|symbol| symbol.name == asked), "{name}: {asked}");
    }
}

/// Cases that need what a file of separate functions has not, besides tensor memory that is
/// allocated: references and functions of the driver by name, and what else objects do not have.
const MOST_REFUSED: usize = 6;

/// Kernels beside that of `arrays.ptx`, with other sizes of static shared memory.
const MORE_ENTRIES: &str = r"
.func (.param .b32 r) read(.param .b32 at) {
.reg .b32 %r<4>; ld.param.b32 %r1, [at]; mov.u32 %r2, given; add.s32 %r1, %r1, %r2;
ld.shared.u32 %r2, [%r1]; st.param.b32 [r], %r2; ret; }
.visible .entry bigger(.param .u64 p) {
.reg .b64 %rd<3>; .reg .b32 %r<6>; .shared .align 4 .b8 s2[401];
ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; shl.b32 %r1, %r1, 2;
mov.u32 %r2, given; add.s32 %r2, %r2, %r1; st.shared.u32 [%r2], %r1;
mov.u32 %r3, s2; add.s32 %r3, %r3, %r1; st.shared.u32 [%r3], -1;
ld.shared.u32 %r4, [%r2]; cvt.u64.u32 %rd2, %r1; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r4; ret; }
.visible .entry through(.param .u64 p) {
.reg .b64 %rd<3>; .reg .b32 %r<6>; .shared .align 4 .b8 s3[36];
ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; shl.b32 %r1, %r1, 2;
mov.u32 %r2, given; add.s32 %r2, %r2, %r1; st.shared.u32 [%r2], %r1;
{ .param .b32 q; .param .b32 a; st.param.b32 [a], %r1; call (q), read, (a); ld.param.b32 %r4, [q]; }
cvt.u64.u32 %rd2, %r1; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r4; ret; }
.visible .entry without(.param .u64 p) {
.reg .b64 %rd<2>; .reg .b32 %r<2>; .shared .align 4 .b8 s4[1000];
ld.param.u64 %rd1, [p]; st.shared.u32 [s4], 5; ld.shared.u32 %r1, [s4]; st.global.u32 [%rd1], %r1; ret; }
.visible .entry none(.param .u64 p) {
.reg .b64 %rd<2>; ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], 5; ret; }
";

/// An array that the launch sizes is behind the longest static part of the entries that use it, in
/// all of them; entries that do not use it are as long as they are.
#[test]
fn an_array_of_the_launch_is_behind_entries_of_different_sizes() {
    let text = source("arrays").replacen("\t.section", &format!("{MORE_ENTRIES}\n\t.section"), 1);
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("k.ptx"), folder.path().join("k.cubin"));
    std::fs::write(&path, &text).unwrap();
    let sizes = |bytes: &[u8], arch: &str| {
        let cubin = sassafras::cubin::read(bytes).unwrap();
        let base = sassafras::tables::Target::by_name(arch).unwrap().info().unwrap().shared_base;
        let one = |f: &sassafras::cubin::Function| (f.name.clone(), f.shared.map(|s| s.size - u64::from(base)));
        cubin.functions.iter().filter(|f| f.kernel).map(one).collect::<BTreeMap<_, _>>()
    };
    for arch in ["sm_75", "sm_90"] {
        let ours = compile(&text, &options(arch, false)).unwrap().cubin;
        let made = sizes(&ours, arch);
        let want = [
            ("arrays", Some(0x1a0)),
            ("bigger", Some(0x1a0)),
            ("none", None),
            ("through", Some(0x1a0)),
            ("without", Some(1000)),
        ];
        assert_eq!(made, want.map(|(name, size)| (name.to_string(), size)).into(), "{arch}");
        let ptxas = root().join("target/vendor/ptxas");
        if ptxas.exists() {
            let done = Command::new(ptxas).args(["-g", "-arch", arch]).arg(&path).arg("-o").arg(&out).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            assert_eq!(made, sizes(&std::fs::read(&out).unwrap(), arch), "{arch}");
        }
        use sassafras::sim::launch::ArgValue;
        for (kernel, count) in [("bigger", 32), ("through", 32), ("without", 1)] {
            let mut args = [ArgValue::Buffer { bytes: vec![0; 128], writable: true }];
            let shape = sassafras::sim::run::Shape { grid: [1; 3], block: [count, 1, 1], smem: 128 };
            sassafras::sim::run::run(&ours, kernel, shape, &mut args)
                .unwrap_or_else(|e| panic!("{arch} {kernel}: {e}"));
            let ArgValue::Buffer { bytes, .. } = &args[0] else { panic!("no buffer") };
            let want = if count == 1 { 5 } else { 31 * 4 };
            let at = (count as usize - 1) * 4;
            assert_eq!(bytes[at..at + 4], u32::to_le_bytes(want), "{arch} {kernel}");
        }
    }
}
