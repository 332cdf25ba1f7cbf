//! Kernels whose host patches constants before a launch: they give the same numbers, with fewer
//! instructions; the evaluators in Rust and C agree; what is damaged is an error.

use crate::simulate_ptxas_support::each;
use crate::{ours, vendor};
use sassafras::compile::Options;
use sassafras::cubin::patches::{PatchTable, SECTION};
use sassafras::cubin::{self, KeptSection};
use sassafras::shader_info::ShaderInfo;
use sassafras::sim::launch::{ArgValue, LaunchFile};
use sassafras::sim::patches::{Inputs, patched, sizes, words};
use sassafras::sim::run::{How, Shape, run_as};
use sassafras::tables::patches::{PatchedWord, Program, Step};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The options of a compile whose host patches so many bytes of every kernel.
fn options(target: &str, capacity: u32) -> Options {
    let shader_info = ShaderInfo::parse(&format!("bank 2 capacity {capacity}\n")).ok();
    assert!(shader_info.is_some());
    Options { shader_info, ..Options::new(target) }
}

/// The kernels of `cases/exec`, by file name.
fn descriptions() -> Vec<(PathBuf, LaunchFile)> {
    let entries = std::fs::read_dir(root().join("tests/cases/exec")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "ron"));
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), LaunchFile::load(&path).unwrap())).collect()
}

/// Runs the launches of a file with patched constants. Returns what went wrong, and the words.
fn launched(path: &Path, file: &LaunchFile, target: &str, capacity: u32) -> (Vec<String>, usize) {
    let source = std::fs::read_to_string(&file.module).unwrap();
    let made = ours::compiled(&source, options(target, capacity));
    let name = path.display();
    let Ok(bytes) = made else { return (vec![format!("{name} {target}: {made:?}")], 0) };
    let (mut wrong, mut count) = (Vec::new(), 0);
    let cubin = cubin::read(&bytes).unwrap();
    for launch in file.launches.iter().filter(|launch| launch.wants(target)) {
        let table = PatchTable::of(&cubin, &launch.kernel).unwrap();
        count += table.map_or(0, |table| table.words.len());
        let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
        let mut values = launch.arg_values();
        let ran = run_as(&bytes, &launch.kernel, shape, &mut values, How::default()).and_then(|ran| ran.clean());
        let message = match ran {
            Err(fault) => fault.to_string(),
            Ok(_) => match launch.check(&values) {
                Ok(()) => continue,
                Err(differences) => format!("{} values differ", differences.len()),
            },
        };
        wrong.push(format!("{name} {target} {}: {message}", launch.kernel));
    }
    (wrong, count)
}

/// `SASSAFRAS_CASE` and `SASSAFRAS_SM` narrow the run.
#[test]
fn every_kernel_gives_the_same_numbers_with_patched_constants() {
    let told = |variable: &str| std::env::var(variable).ok();
    let wanted = |list: Option<String>, name: &str| list.is_none_or(|list| list.split(',').any(|item| item == name));
    let all = each(&descriptions(), |(path, file)| {
        let (mut wrong, mut count) = (Vec::new(), 0);
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if wanted(told("SASSAFRAS_CASE"), &name) {
            for (target, capacity) in [("sm_80", 4096), ("sm_90", 24), ("sm_120", 4096)] {
                if file.allows(target) && wanted(told("SASSAFRAS_SM"), target) {
                    let (more, words) = launched(path, file, target, capacity);
                    wrong.extend(more);
                    count += words;
                }
            }
        }
        (wrong, count)
    });
    let wrong: Vec<&String> = all.iter().flat_map(|(wrong, _)| wrong).collect();
    assert!(wrong.is_empty(), "{} went wrong: {wrong:#?}", wrong.len());
    let count: usize = all.iter().map(|(_, count)| count).sum();
    println!("{count} words were patched");
    assert!(count > 0 || told("SASSAFRAS_CASE").is_some());
}

/// The kernel of this feature, its launches, and its source.
fn own() -> (LaunchFile, String) {
    let file = LaunchFile::load(&root().join("tests/cases/exec/shader_constants.ron")).unwrap();
    let source = std::fs::read_to_string(&file.module).unwrap();
    (file, source)
}

#[test]
fn a_loop_takes_fewer_instructions_and_cycles() {
    let (file, source) = own();
    let launch = &file.launches[0];
    let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
    for target in ["sm_75", "sm_80", "sm_90", "sm_120"] {
        let ran = |options: Options| {
            let bytes = ours::compiled(&source, options).unwrap();
            let mut values = launch.arg_values();
            let ran = run_as(&bytes, &launch.kernel, shape, &mut values, How::default()).unwrap();
            launch.check(&values).unwrap();
            assert!(ran.reports.is_empty());
            (ran.stats.instructions, ran.cycles.unwrap().block)
        };
        let (plain, patched) = (ran(Options::new(target)), ran(options(target, 64)));
        println!("{target}: {plain:?} instructions and cycles, {patched:?} with patched constants");
        assert!(patched.0 < plain.0 && patched.1 < plain.1);
    }
}

#[test]
fn without_a_file_or_where_it_does_not_apply_the_bytes_are_the_same() {
    let (_, source) = own();
    let plain = ours::compiled(&source, Options::new("sm_80")).unwrap();
    let other = ShaderInfo::parse("bank 2 capacity 64\nkernel other\n").ok();
    let low = Options { opt_level: 1, ..options("sm_80", 64) };
    let level = Options { opt_level: 1, ..Options::new("sm_80") };
    assert_eq!(ours::compiled(&source, Options { shader_info: other, ..Options::new("sm_80") }).unwrap(), plain);
    assert_eq!(ours::compiled(&source, low).unwrap(), ours::compiled(&source, level).unwrap());
    assert_eq!(ours::compiled(&source, options("sm_80", 0)).unwrap(), plain);
    assert_ne!(ours::compiled(&source, options("sm_80", 64)).unwrap(), plain);
}

#[test]
fn the_knob_of_the_span_leaves_functions_out() {
    let (_, source) = own();
    let with = |knob: &str| {
        let mut options = options("sm_80", 64);
        options.knobs.set(knob).unwrap();
        let bytes = ours::compiled(&source, options).unwrap();
        PatchTable::of(&cubin::read(&bytes).unwrap(), "shader_constants").unwrap().is_some()
    };
    assert_eq!(["453=0", "453=4", "453=5"].map(with), [true, false, true]);
}

/// The parameters of a launch whose buffers stand at addresses of our own, as a host has them.
fn parameters() -> Vec<Vec<u8>> {
    [&0x7f00_1234_5678u64.to_le_bytes()[..], &(-7i32).to_le_bytes(), &3u32.to_le_bytes()].map(<[u8]>::to_vec).to_vec()
}

#[test]
fn a_cubin_for_a_driver_has_the_words_in_its_bank() {
    let (_, source) = own();
    let bytes = ours::compiled(&source, options("sm_80", 64)).unwrap();
    let shape = Shape { grid: [5, 1, 1], block: [32, 1, 1], smem: 0 };
    let ready = patched(&bytes, "shader_constants", shape, &parameters()).unwrap();
    let cubin = cubin::read(&ready).unwrap();
    let table = PatchTable::of(&cubin, "shader_constants").unwrap().unwrap();
    let buffer = parameters().concat();
    let words = words(&table, &Inputs { parameters: &buffer, sizes: sizes(shape) });
    let bank = &cubin.function("shader_constants").unwrap().constant2.as_ref().unwrap().bytes;
    assert!(!words.is_empty() && words.iter().any(|(_, word)| *word != 0));
    for (offset, word) in words {
        assert_eq!(bank[offset as usize..][..4], word.to_le_bytes());
    }
    let plain = ours::compiled(&source, Options::new("sm_80")).unwrap();
    assert_eq!(*patched(&plain, "shader_constants", shape, &parameters()).unwrap(), plain);
}

#[test]
fn damaged_tables_are_errors() {
    let (file, source) = own();
    let bytes = ours::compiled(&source, options("sm_80", 64)).unwrap();
    let good = cubin::read(&bytes).unwrap();
    let own = |section: &KeptSection| section.name.starts_with(SECTION);
    let at = good.kept.sections.iter().position(own).unwrap();
    let launch = &file.launches[0];
    let shape = Shape { grid: [1; 3], block: [1; 3], smem: 0 };
    let length = good.kept.sections[at].image.bytes.len();
    let mut refused = 0;
    for (i, new) in (0..length).flat_map(|i| [0, 1, 7, 0x80, 0xff].map(|new| (i, new))) {
        let mut cubin = good.clone();
        cubin.kept.sections[at].image.bytes[i] = new;
        let damaged = cubin::write(&cubin).unwrap();
        let mut values = launch.arg_values();
        let how = How { step_limit: 10_000, ..How::default() };
        let ran = run_as(&damaged, &launch.kernel, shape, &mut values, how);
        if let Err(fault) = ran {
            assert!(fault.to_string().contains("section .sassafras.patch.shader_constants: "), "{fault}");
            refused += 1;
        }
        _ = patched(&damaged, &launch.kernel, shape, &parameters());
    }
    assert!(refused > length, "{refused} of {}", 5 * length);
}

#[test]
fn nvidias_tools_accept_the_section() {
    let (_, source) = own();
    for target in ["sm_75", "sm_80", "sm_90", "sm_120"] {
        let bytes = ours::compiled(&source, options(target, 64)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.cubin");
        std::fs::write(&path, bytes).unwrap();
        for (tool, options) in [("nvdisasm", &[][..]), ("cuobjdump", &["-sass"]), ("cuobjdump", &["-elf"])] {
            let Some(program) = vendor::wanted(tool) else { continue };
            let output = Command::new(program).args(options).arg(&path).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("shader_constants"), "{tool} {target}");
        }
    }
}

/// A compiler of C, of which any will do.
fn c_compiler() -> Option<&'static str> {
    let works = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    let found = ["cc", "clang", "gcc"].into_iter().find(works);
    if found.is_none() {
        println!("skipped: no cc, clang or gcc");
    }
    found
}

/// Reads cases from standard input and writes the words of each.
const MAIN: &str = "
#include \"patches.c\"
#include <stdio.h>
static unsigned char table[1 << 20], params[64], bank[1 << 16], head[8];
int main(void) {
    while (fread(head, 1, 8, stdin) == 8) {
        size_t size = word_at(head), param_size = word_at(head + 4);
        uint32_t sizes[6] = {1, 2, 3, 4, 5, 0x80000000u};
        if (size > sizeof table || param_size > sizeof params) return 2;
        if (fread(table, 1, size, stdin) != size || fread(params, 1, param_size, stdin) != param_size) return 2;
        long count = sassafras_patch(table, size, params, param_size, sizes, bank, sizeof bank);
        printf(\"%ld\", count);
        for (long i = 0; i < count; i++) printf(\" %lu\", (unsigned long)word_at(bank + 4 * i));
        printf(\"\\n\");
    }
    return 0;
}
";

/// Random words, many of which are edges.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as u32
    }

    fn word(&mut self) -> u32 {
        const EDGES: [u32; 9] = [0, 1, 2, 31, 32, 64, i32::MAX as u32, 1 << 31, u32::MAX];
        let word = self.next();
        if word.is_multiple_of(2) { EDGES[word as usize / 2 % EDGES.len()] } else { word << 1 ^ self.next() }
    }

    /// A program that passes the checks.
    fn program(&mut self, param_bytes: u32) -> Program {
        loop {
            let steps = (0..1 + self.next() % 12).map(|_| {
                let kind = Step::kind_of(1 + (self.next() % 13) as u8).unwrap();
                let operand = match Step::plain(kind).operand_bytes() {
                    0 => 0,
                    1 => self.next() % 6 + if Step::plain(kind).takes() > 0 { self.next() % 250 } else { 0 },
                    2 => self.next() % param_bytes / 4 * 4,
                    _ => self.word(),
                };
                Step { kind, operand }
            });
            let program = Program(steps.collect());
            if program.check(param_bytes).is_ok() {
                return program;
            }
        }
    }
}

#[test]
fn the_evaluator_in_c_gives_the_words_of_ours() {
    let Some(compiler) = c_compiler() else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.c"), MAIN).unwrap();
    let program = folder.path().join("main");
    let mut command = Command::new(compiler);
    command.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-I"]).arg(root().join("src/sim"));
    let made = command.arg(folder.path().join("main.c")).arg("-o").arg(&program).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut random = Random(1);
    let (mut input, mut expected) = (Vec::new(), String::new());
    let mut kinds = std::collections::BTreeSet::new();
    for number in 0..2000u32 {
        let parameters: Vec<u8> = (0..6).flat_map(|_| random.word().to_le_bytes()).collect();
        let words_of = |i: u32| PatchedWord { offset: 4 * i, program: random.program(24) };
        let table = PatchTable { bank: 2, words: (0..4u32).map(words_of).collect() };
        kinds.extend(table.words.iter().flat_map(|word| word.program.0.iter().map(|step| step.kind)));
        let mut bytes = table.section("k").image.bytes;
        let inputs = Inputs { parameters: &parameters, sizes: [1, 2, 3, 4, 5, 1 << 31] };
        if number % 10 == 9 {
            bytes.pop();
            expected += "-1\n";
        } else {
            let texts = words(&table, &inputs).into_iter().map(|(_, word)| format!(" {word}"));
            expected += &format!("4{}\n", texts.collect::<String>());
        }
        input.extend((bytes.len() as u32).to_le_bytes());
        input.extend((parameters.len() as u32).to_le_bytes());
        input.extend(bytes.into_iter().chain(parameters));
    }
    assert_eq!(kinds.len(), 13);
    let path = folder.path().join("input");
    std::fs::write(&path, input).unwrap();
    let output = Command::new(&program).stdin(std::fs::File::open(&path).unwrap()).output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

/// The interpreter knows nothing of patched constants and gives what the kernel computes of them.
#[test]
fn sizes_of_the_launch_and_parameters_are_those_of_each_launch() {
    let (_, source) = own();
    let bytes = ours::compiled(&source, options("sm_90", 64)).unwrap();
    let module = sassafras::sim::ptx::parse(source.as_bytes()).0.unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for (grid, block, a, b) in [(1, 4, -7, 3), (2, 4, 5, 0), (3, 2, i32::MIN, -1), (2, 8, 1 << 20, 77)] {
        let shape = Shape { grid: [grid, 1, 1], block: [block, 1, 1], smem: 0 };
        let scalar = |value: i32| ArgValue::Scalar { bytes: value.to_le_bytes().to_vec() };
        let buffer = ArgValue::Buffer { bytes: (0..64 * 4).map(|i| i as u8).collect(), writable: true };
        let mut ours = [buffer, scalar(a), scalar(b)];
        let mut theirs = ours.clone();
        run_as(&bytes, "shader_constants", shape, &mut ours, How::default()).unwrap().clean().unwrap();
        let (_, done) = sassafras::sim::ptx::run_within(&module, "shader_constants", shape, &mut theirs, 1 << 20);
        done.unwrap();
        let [ArgValue::Buffer { bytes: ours, .. }, ..] = ours else { unreachable!() };
        let [ArgValue::Buffer { bytes: theirs, .. }, ..] = theirs else { unreachable!() };
        assert_eq!(ours, theirs);
        seen.insert(ours);
    }
    assert_eq!(seen.len(), 4);
}
