//! The pass manager: the output of `--print-phases`, the effect of each option about passes, and
//! that bisecting finds the pass after which a fault was planted.

use sassafras::bisect::{Launch, Verdict, bisect};
use sassafras::compile::{Options, compile};
use sassafras::ori::{Function, text};
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{How, Shape, run_as};
use sassafras::tables::{Op, Pass, Phase, Role};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Contains work for every optional pass: a division by a constant, a repeated product, an address
/// with an offset, an atomic operation without a result, a loop with an invariant division, a short
/// conditional.
const KERNEL: &str = "
.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n)
{
    .reg .b64 %a, %o; .reg .b32 %t, %n, %x, %y, %z, %i, %s; .reg .pred %p, %q;
    ld.param.u64 %a, [out]; ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %o, %t, 4;
    add.u64 %a, %a, %o;
    div.u32 %x, %t, 7;
    mul.lo.u32 %y, %t, %n;
    mul.lo.u32 %z, %t, %n;
    add.u32 %y, %y, %z;
    add.u32 %x, %x, %y;
    mov.u32 %i, 0;
    mov.u32 %s, %x;
LOOP:
    div.u32 %z, %t, %n;
    add.u32 %s, %s, %z;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 4;
    @%p bra LOOP;
    setp.gt.u32 %q, %s, 40;
    @!%q bra END;
    add.u32 %s, %s, 3;
END:
    st.global.u32 [%a+128], %s;
    atom.global.add.u32 %z, [%a], 5;
    ret;
}
";

const SHAPE: Shape = Shape { grid: [1, 1, 1], block: [32, 1, 1], smem: 0 };

fn arguments() -> Vec<ArgValue> {
    let out = ArgValue::Buffer { bytes: vec![0; 512], writable: true };
    vec![out, ArgValue::Scalar { bytes: 3u32.to_le_bytes().to_vec() }]
}

/// Moves the address of a function's first store by four bytes.
fn spoil(function: &mut Function) {
    let stores = function.layout().iter().flat_map(|b| function[*b].clone());
    let store = stores.into_iter().find(|inst| function[*inst].op == Op::STG);
    let store = store.expect("the kernel stores");
    let old = function.imm_value(function.arg(store, Role::Off)).unwrap_or(0);
    let new = function.imm(old + 4);
    function.set_arg(store, Role::Off, new);
}

fn verdict(faulty: Option<Pass>) -> Verdict {
    let mut options = Options::new("sm_80");
    if let Some(faulty) = faulty {
        options.passes.tamper = Some(Arc::new(move |pass, function| {
            if pass == faulty {
                spoil(function);
            }
        }));
    }
    let arguments = arguments();
    let launch = Launch { source: KERNEL.as_bytes(), kernel: "k", shape: SHAPE, arguments: &arguments };
    bisect(&launch, &options).unwrap()
}

#[test]
fn bisect_finds_a_fault_planted_behind_each_optional_pass() {
    assert_eq!(verdict(None), Verdict::Right);
    let optional: Vec<Pass> = Pass::ALL.into_iter().filter(|pass| pass.info().optional).collect();
    assert!(optional.len() >= 10);
    for pass in optional {
        assert_eq!(verdict(Some(pass)), Verdict::Pass(pass));
    }
    let lowest = Pass::by_name("construct_ssa").unwrap();
    assert_eq!(verdict(Some(lowest)), Verdict::Always);
}

#[test]
fn the_result_is_right_without_each_optional_pass() {
    let run = |options: &Options| {
        let cubin = compile(KERNEL, options).unwrap().cubin;
        let mut values = arguments();
        let outcome = run_as(&cubin, "k", SHAPE, &mut values, How::default()).unwrap();
        assert!(outcome.reports.is_empty(), "{:?}", outcome.reports);
        values
    };
    let usual = Options { verify_ir: true, ..Options::new("sm_90") };
    let wanted = run(&usual);
    for pass in Pass::ALL.into_iter().filter(|pass| pass.info().optional) {
        let mut options = usual.clone();
        options.passes.disabled = vec![pass];
        assert_eq!(run(&options), wanted, "without {}", pass.name());
    }
}

/// Printing a function and parsing the text gives the same function: the compiler goes on with what
/// was parsed behind every pass, and makes the same cubins: of each file at one of the levels in
/// turn, or with `SASSAFRAS_ORACLE=all` at both.
#[test]
fn the_text_form_is_the_function_behind_every_pass() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<_> = std::fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "ptx"));
    files.sort();
    let all = std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all");
    let mut compared = [0; 2];
    for (turn, path) in files.iter().enumerate() {
        let source = std::fs::read_to_string(path).unwrap();
        if source.len() > 60_000 {
            continue;
        }
        let own = source.split(".target ").nth(1).unwrap().split([',', '\n', ' ']).next().unwrap();
        for (which, level) in [0, 3].into_iter().enumerate().filter(|(which, _)| all || turn % 2 == *which) {
            let usual = Options { opt_level: level, ..Options::new(own) };
            let mut options = usual.clone();
            options.passes.tamper = Some(Arc::new(|pass, function| {
                let text = text::print(function);
                let parsed = text::parse(&text).unwrap_or_else(|e| panic!("behind {}: {e}\n{text}", pass.name()));
                assert_eq!(text::print(&parsed), text, "behind {}", pass.name());
                *function = parsed;
            }));
            let (wanted, cubin) = (compile(&source, &usual).unwrap().cubin, compile(&source, &options).unwrap().cubin);
            assert!(cubin == wanted, "{} -O{level}: another cubin", path.display());
            compared[which] += 1;
        }
    }
    assert!(compared.iter().all(|count| *count > 15), "{compared:?} compilations");
}

/// The program's standard output and exit status.
fn printed(arguments: &[&str]) -> (String, bool) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("k.ptx");
    std::fs::write(&source, KERNEL).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sassafras"));
    let output = command.args(arguments).arg(&source).arg("-o").arg(folder.path().join("k.cubin")).output().unwrap();
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.success())
}

#[test]
fn print_phases_lists_159_phases_and_every_pass_under_its_own() {
    let output = Command::new(env!("CARGO_BIN_EXE_sassafras")).arg("--print-phases").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (mut phases, mut passes) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match line.strip_prefix("      ") {
            Some(pass) => passes.push((*phases.last().unwrap(), pass)),
            None => phases.push(words[1]),
        }
    }
    assert_eq!(phases, Phase::ALL.map(Phase::name));
    assert_eq!(phases.len(), 159);
    assert_eq!(passes, Pass::ALL.map(|pass| (pass.info().phase.name(), pass.name())));
    for start in [
        " 10 ReportInitialRepresentation  done by dump: --dump-before=check_input prints",
        " 27 OriPipelining  planned, in part done by unroll pressure_scheduler: ",
        " 45 ConvertVTGReadWrite  none: graphics: ",
        " 67 OriLoopFusion  planned: two loops",
        "114 ScheduleInstructions  also done by pressure_scheduler prepass_scheduler: ",
    ] {
        assert!(text.lines().any(|line| line.starts_with(start)), "no line begins with `{start}`");
    }
    let mute = |phase: &Phase| text.lines().any(|line| line == format!("{:>3} {}", *phase as u16, phase.name()));
    let wrong: Vec<Phase> = Phase::ALL.into_iter().filter(|phase| mute(phase) && !phase.info().runs()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn options_about_passes_do_what_they_say() {
    let (text, _) = printed(&["-arch=sm_80", "--dump-before=gvn", "--dump-after=gvn,LateExpansion"]);
    let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("# ")).collect();
    assert_eq!(heads, ["# before gvn", "# after gvn", "# after LateExpansion"]);
    let (text, done) = printed(&["-arch=sm_80", "--stop-after=construct_ssa"]);
    assert!(done && text.starts_with("# stopped after construct_ssa\nfunction k sm_80 ssa "), "{text}");
    let (text, done) = printed(&["-arch=sm_80", "--time-passes"]);
    assert!(done && text.lines().any(|line| line.starts_with("allocate_registers ")), "{text}");
    assert!(!printed(&["-arch=sm_80", "--disable-pass=allocate_registers"]).1);
    assert!(!printed(&["-arch=sm_80", "--disable-pass=no_such_pass"]).1);
    let (with, without) = (
        printed(&["-arch=sm_80", "--dump-after=licm"]).0,
        printed(&["-arch=sm_80", "--disable-pass=licm", "--dump-after=licm"]).0,
    );
    assert!(with.starts_with("# after licm\n") && without.is_empty());
}

/// Levels 0 and 1 leave shader constants out, although there is a map.
#[test]
fn shader_constants_want_a_level_above_one() {
    let case = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/phases/shader_constants.ori"));
    let case = case.unwrap();
    let body: String = case
        .lines()
        .skip_while(|line| line.starts_with('#'))
        .take_while(|line| *line != "----")
        .map(|line| format!("{line}\n"))
        .collect();
    for (opt_level, extracts) in [(0, false), (1, false), (2, true), (3, true)] {
        let mut function = sassafras::ori::text::parse(&body).unwrap();
        let options = sassafras::legal::Legalization { opt_level, ..Default::default() };
        for name in ["shader_constants", "shader_constants.2"] {
            sassafras::pass::run_one_as(&mut function, name, &options).unwrap();
        }
        let map = function.attributes().shader_constants.as_ref().unwrap();
        assert_eq!((!map.words.is_empty(), map.finalised), (extracts, extracts), "level {opt_level}");
    }
}

/// With its knobs on, the validator stops a function whose map and code do not agree.
#[test]
fn the_validator_of_shader_constants_stops_a_wrong_map() {
    let text =
        "function k sm_80 ssa constants=8:8190 patched=0:8:8,0=param:4\nb0:\n  LDC d=r0 c=c[2][0x4]\n  BRA target=b0\n";
    let run = |knobs: &str| {
        let mut options = sassafras::legal::Legalization::default();
        knobs.split(',').for_each(|knob| options.knobs.set(knob).unwrap());
        let mut function = sassafras::ori::text::parse(text).unwrap();
        sassafras::pass::run_one_as(&mut function, "shader_constants", &options)
    };
    assert_eq!([run("488=1,489=0"), run("488=0,489=1")], [Ok(()), Ok(())]);
    assert!(run("488=1,489=1").unwrap_err().contains("reads the word at 4, which nobody patches"));
}
