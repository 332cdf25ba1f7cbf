//! `sassafras compare`, and the live registers that it shows.
//!
//! A case (`tests/cases/compare/*.txt`) is a comment, a line `# target: NAME`, the code of two
//! functions behind `A:` and `B:`, a line `----`, and all parts of their comparison as text.
//! `SASSAFRAS_BLESS=1` rewrites the last part; review it before committing. Live registers of
//! cubins of both compilers are compared with the life ranges that nvdisasm prints: of each file
//! that of one compiler, in turn, or with `SASSAFRAS_ORACLE=all` of both; where nvdisasm is
//! missing, that test is skipped.

use crate::cases;
use crate::vendor;
use sassafras::compare::{Side, text};
use sassafras::cubin::{self, Cubin, Function};
use sassafras::sass::flow::WORD;
use sassafras::sass::liveness::{Liveness, Register};
use sassafras::sass::{Inst, decode, encode, hazards, parse};
use sassafras::tables::latency::RegFile;
use sassafras::tables::{Op, Prop, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn texts_are_those_of_the_cases() {
    cases::all("compare", "--test sass compare", case);
}

/// The comparison of the code of a case.
fn case(head: &str) -> Result<String, String> {
    let target = cases::value(head, "target")?;
    let (_, both) = head.split_once("A:\n").ok_or("no A")?;
    let (a, b) = both.split_once("B:\n").ok_or("no B")?;
    let (a, b) = (assembled(target, a), assembled(target, b));
    let (a, b) = (Side::new("a", &a)?, Side::new("b", &b)?);
    let (a, b) = (a.code("k")?, b.code("k")?);
    let parts = [text::figures("k", &a.figures(), &b.figures()), text::opcodes(&a, &b), text::peaks(&a, &b)];
    Ok(parts.concat() + &text::listing(&a, &b))
}

/// A cubin with one kernel of these lines.
fn assembled(name: &str, lines: &str) -> Cubin {
    let target = Target::by_name(name).unwrap();
    let word = |(at, line): (usize, &str)| {
        let inst = parse(target, line.trim(), at as u64 * WORD, None);
        let inst = inst.unwrap_or_else(|error| panic!("{line}: {}", error.message));
        encode(target, &inst).unwrap_or_else(|error| panic!("{line}: {}", error.message)).to_le_bytes()
    };
    let code: Vec<u8> = lines.lines().filter(|line| !line.trim().is_empty()).enumerate().flat_map(word).collect();
    let function = Function { name: "k".to_string(), kernel: true, code, registers: 10, ..Function::default() };
    Cubin { sm: target.sm, functions: vec![function], ..Cubin::default() }
}

/// Sets of registers by byte offset.
type Lives = BTreeMap<u64, BTreeSet<Register>>;

/// Where a table has the marks of each register of a file.
type Columns = Vec<(Range<usize>, u8)>;

/// The life ranges that nvdisasm prints, by function: the registers beside each instruction that
/// are in use, and how many it says there are.
fn printed(nvdisasm: &Path, cubin: &Path) -> BTreeMap<String, Lives> {
    let output = Command::new(nvdisasm).args(["-c", "-plr"]).arg(cubin).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let (mut all, mut name) = (BTreeMap::new(), String::new());
    let mut files: Vec<(RegFile, Columns)> = Vec::new();
    for line in shown.lines() {
        if let Some(rest) = line.strip_prefix("//---").and_then(|rest| rest.split(".text.").nth(1)) {
            name = rest.split_whitespace().next().unwrap_or_default().to_string();
            files.clear();
        }
        let Some((code, table)) = line.split_once("// |") else { continue };
        let cells: Vec<&str> = table.split('|').collect();
        let titles: Vec<RegFile> = cells.iter().filter_map(|cell| file_of(cell.trim())).collect();
        if !titles.is_empty() {
            files = titles.into_iter().map(|file| (file, Vec::new())).collect();
            continue;
        }
        if cells[0].trim_start().starts_with('#') {
            files.iter_mut().zip(&cells).for_each(|((_, columns), cell)| *columns = numbers(cell));
            continue;
        }
        let offset = code.split_once("/*").and_then(|(_, rest)| rest.split_once("*/"));
        let Some(offset) = offset.and_then(|(hex, _)| u64::from_str_radix(hex, 16).ok()) else { continue };
        let mut used = BTreeSet::new();
        for ((file, columns), cell) in files.iter().zip(&cells) {
            let marked = |at: &Range<usize>| cell.get(at.clone()).is_some_and(|text| !text.trim().is_empty());
            let marks = columns.iter().filter(|(at, _)| marked(at));
            let numbers: Vec<u8> = marks.map(|(_, number)| *number).collect();
            let count = cell.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
            assert_eq!(numbers.len(), count, "{line}");
            used.extend(numbers.into_iter().map(|number| (*file, number)));
        }
        all.entry(name.clone()).or_insert_with(Lives::new).insert(offset, used);
    }
    all
}

fn file_of(title: &str) -> Option<RegFile> {
    Some(match title {
        "GPR" => RegFile::R,
        "UGPR" => RegFile::UR,
        "PRED" => RegFile::P,
        "UPRED" => RegFile::UP,
        _ => return None,
    })
}

/// The columns of a heading, ` # 0 1 10`: where each number is, its marks are below.
fn numbers(cell: &str) -> Columns {
    let begins = |at: usize| cell[..at].ends_with(' ') && !cell[at..].starts_with(' ');
    let number = |at: usize| {
        let text = cell[at..].split(' ').next()?;
        Some((at..at + text.len(), text.parse().ok()?))
    };
    (1..cell.len()).filter(|at| begins(*at)).filter_map(number).collect()
}

/// Our live registers of a function.
fn ours(target: &'static Target, function: &Function) -> (Vec<Option<Inst>>, Liveness) {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0u128, |word, byte| word << 8 | u128::from(*byte));
    let insts: Vec<_> = function.code.chunks(WORD as usize).map(|bytes| decode(target, word(bytes)).ok()).collect();
    let live = Liveness::new(function, &insts);
    (insts, live)
}

/// Whether nvdisasm and we mean the same by a register in use: it takes a called function for one
/// that it does not know, does not see what P2R reads, and counts a value that only lanes need
/// whose guard does not hold.
fn is_comparable(insts: &[Option<Inst>]) -> bool {
    let leaves = |inst: &Inst| inst.op.has(Prop::Control) && !matches!(inst.op, Op::CALL | Op::RET);
    let plain =
        |inst: &Inst| !inst.is_guarded() && !inst.op.has(Prop::ReadsPredicates) && !inst.op.has(Prop::WritesPredicates);
    insts.iter().flatten().all(|inst| leaves(inst) || plain(inst) && !matches!(inst.op, Op::CALL | Op::RET))
}

#[test]
fn live_registers_are_those_of_nvdisasm() {
    let (Some(nvdisasm), Some(ptxas)) = (vendor::tool("nvdisasm"), vendor::tool("ptxas")) else {
        eprintln!("skipped: no nvdisasm or ptxas in target/vendor");
        return;
    };
    let (folder, ours_at) = (tempfile::tempdir().unwrap(), PathBuf::from(env!("CARGO_BIN_EXE_sassafras")));
    let all = std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all");
    let (mut functions, mut lines, mut wrong) = ([0usize; 2], 0usize, Vec::new());
    for (turn, source) in sources().into_iter().enumerate() {
        let file = source.file_stem().unwrap().to_string_lossy().into_owned();
        let arch = format!("-arch={}", file.rsplit('.').next().filter(|sm| sm.starts_with("sm_")).unwrap_or("sm_90"));
        for (who, program) in [&ptxas, &ours_at].into_iter().enumerate().filter(|(who, _)| all || *who == turn % 2) {
            let path = folder.path().join("k.cubin");
            assert!(Command::new(program).arg(&arch).arg(&source).arg("-o").arg(&path).status().unwrap().success());
            let cubin = cubin::read(&std::fs::read(&path).unwrap()).unwrap();
            let target = hazards::target_of(&cubin).unwrap();
            let theirs = printed(&nvdisasm, &path);
            for function in &cubin.functions {
                let (insts, live) = ours(target, function);
                if !is_comparable(&insts) {
                    continue;
                }
                functions[who] += 1;
                // What nvdisasm has in use before the first instruction has no value yet.
                let theirs = &theirs[&function.name];
                let own = |offset: u64| -> BTreeSet<Register> {
                    let all = live.occupied((offset / WORD) as usize).registers();
                    all.filter(|register| register.0 != RegFile::B).collect()
                };
                let unset: BTreeSet<Register> = theirs[&0].difference(&own(0)).copied().collect();
                for (offset, used) in theirs {
                    let own = own(*offset);
                    lines += 1;
                    let more: Vec<_> = own.difference(used).collect();
                    let less: Vec<_> = used.difference(&own).filter(|register| !unset.contains(register)).collect();
                    if !more.is_empty() || !less.is_empty() {
                        wrong.push(format!("{file} {} {offset:04x}: more {more:?}, less {less:?}", function.name));
                    }
                }
            }
        }
    }
    eprintln!("{lines} instructions of {functions:?} functions");
    let shown = if std::env::var_os("SASSAFRAS_SHOW").is_some() { usize::MAX } else { 20 };
    let few: Vec<&String> = wrong.iter().take(shown).collect();
    assert!(
        wrong.is_empty() && functions.iter().all(|count| *count > 30) && functions[0] + functions[1] > 100,
        "{} of {lines} differ:\n{few:#?}",
        wrong.len()
    );
}

/// Files of the corpus that take little time.
fn sources() -> Vec<PathBuf> {
    let all = std::fs::read_dir(root().join("tests/corpus")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = all.filter(|path| path.extension().is_some_and(|e| e == "ptx")).collect();
    files.retain(|path| path.metadata().unwrap().len() < 200_000);
    files.sort();
    files
}

fn run(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sassafras")).args(words).current_dir(folder).output().unwrap()
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const KERNEL: &str = ".version 8.0\n.target sm_80\n.address_size 64\n\
    .visible .entry k(.param .u64 p) {\n.reg .b64 %rd<3>;\n.reg .b32 %r<4>;\n\
    ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd1, %rd1, %rd2;\n\
    ld.global.u32 %r2, [%rd1];\nadd.s32 %r3, %r2, VALUE;\nst.global.u32 [%rd1], %r3;\nret;\n}\n\
    .visible .entry OTHER() { ret; }\n";

/// A folder with two cubins of alike kernels, one of them of level 0, and what is not a cubin.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, value, other, level) in [("a", "1", "x", "-O3"), ("b", "1", "x", "-O0"), ("c", "2", "y", "-O3")] {
        let text = KERNEL.replace("VALUE", value).replace("OTHER", other);
        std::fs::write(folder.path().join(format!("{name}.ptx")), text).unwrap();
        let output = run(folder.path(), &["-arch=sm_90", level, "-lineinfo", &format!("{name}.ptx"), "-o", name]);
        assert!(output.status.success(), "{}", said(&output.stderr));
    }
    std::fs::write(folder.path().join("x.bin"), (0..32u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
    folder
}

#[test]
fn parts_are_chosen_by_options() {
    let folder = place();
    let shown = |words: &[&str]| {
        let output = run(folder.path(), &[&["compare", "a", "b"], words].concat());
        assert!(output.status.success(), "{}", said(&output.stderr));
        said(&output.stdout)
    };
    let usual = shown(&[]);
    // The figures of all functions come first.
    let summary = shown(&["--summary"]);
    assert!(usual.starts_with(&summary) && summary.starts_with("A: a (sm_90)\nB: b (sm_90)\n"), "{usual}");
    assert!(summary.contains("\nk\n") && summary.contains("\nx\n") && !summary.contains("opcode"));
    for (words, opcodes, peak, listing) in [
        (&[][..], true, true, false),
        (&["--opcodes"], true, false, false),
        (&["--peak"], false, true, false),
        (&["--listing", "--kernel", "k"], false, false, true),
    ] {
        let text = shown(words);
        assert_eq!(text.contains("  opcode "), opcodes, "{words:?}");
        assert_eq!(text.contains("  most registers of A: "), peak, "{words:?}");
        assert_eq!(text.contains("  R UR  P UP"), listing, "{words:?}");
    }
    // An instruction of the peak has its line of the text.
    assert!(shown(&["--peak", "--kernel", "k"]).contains(" [line 1"), "{usual}");
    assert!(!shown(&["--kernel", "k"]).contains("\nx\n"));
}

#[test]
fn a_launch_shows_what_it_costs() {
    let folder = place();
    let launch = ["--kernel", "k", "--grid", "1", "--block", "32", "--arg", "inout:x.bin"];
    let output = run(folder.path(), &[&["compare", "a", "b", "--summary"], &launch[..]].concat());
    let text = said(&output.stdout);
    assert!(output.status.success(), "{}", said(&output.stderr));
    let row = |what: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(what)).unwrap_or_else(|| panic!("{text}"));
        line[22..].split_whitespace().map(|n| n.parse().unwrap()).collect::<Vec<i64>>()
    };
    for what in ["cycles of a block", "executed"] {
        let [a, b, difference] = row(what)[..] else { panic!("{text}") };
        assert!(a > 0 && a < b && difference == a - b, "{text}");
    }
    for side in text.split("most cycles in ").skip(1) {
        let first = |line: &str| line.split_whitespace().next().and_then(|n| n.parse().ok());
        let hot: Vec<u64> = side.lines().filter(|line| line.contains("  /*")).filter_map(first).collect();
        assert!(hot.len() >= 8 && hot.len() <= 10 && hot.is_sorted_by(|a, b| a >= b), "{text}");
    }
    assert!(text.contains("most cycles in A") && text.contains("STG.E") && text.contains("[line "));
    // No buffer is written to its file, and other results are an error.
    assert_eq!(std::fs::read(folder.path().join("x.bin")).unwrap()[..8], [0, 0, 0, 0, 1, 0, 0, 0]);
    let output = run(folder.path(), &[&["compare", "a", "c", "--summary"], &launch[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(said(&output.stderr), "sassafras error   : the results differ in argument 0\n");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = place();
    for (words, message) in [
        (&["a", "a.ptx"][..], "sassafras fatal   : a.ptx: offset 0x0: not an ELF file"),
        (&["a", "gone"], "sassafras fatal   : Could not open input file 'gone': "),
        (&["a", "b", "--kernel", "z"], "sassafras fatal   : a: the cubin has no function z\n"),
        (&["a", "c", "--kernel", "x"], "sassafras fatal   : c: the cubin has no function x\n"),
        (
            &["a", "b", "--kernel", "k", "--grid", "1", "--block", "32"],
            "sassafras fatal   : a: k has 1 parameters and gets 0 arguments",
        ),
        (
            &["a", "b", "--grid", "1", "--block", "32"],
            "error: the following required arguments were not provided:\n  --kernel <KERNEL>",
        ),
        (&["a", "b", "--arg", "u32:1"], "error: the following required arguments were not provided:"),
        (
            &["a", "b", "--kernel", "k", "--grid", "1"],
            "error: the following required arguments were not provided:\n  --block <BLOCK>",
        ),
    ] {
        let output = run(folder.path(), &[&["compare"], words].concat());
        assert_eq!(output.status.code(), Some(255), "{words:?}");
        assert!(said(&output.stderr).starts_with(message), "{words:?}: {}", said(&output.stderr));
    }
}
