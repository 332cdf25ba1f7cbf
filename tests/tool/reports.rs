//! Each kind of report, from a program that causes it, and none from a similar program that does
//! not.
//!
//! The input is small kernels compiled by us. The test checks the kinds of the reports, the output
//! of the command line, and its exit status.

use sassafras::compile::{Options, compile};
use sassafras::cubin::{self, Cubin};
use sassafras::sass::{self, hazards};
use sassafras::sim::fault::Kind;
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{How, Outcome, Shape, decode, run_decoded};
use sassafras::tables::Target;
use std::process::Command;

const TARGETS: [&str; 4] = ["sm_75", "sm_80", "sm_90", "sm_100"];

fn source(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n\
         .shared .align 8 .b8 memory[1024];\n.local .align 8 .b8 stack[32];\n\
         .reg .pred %p<4>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<8>;\n\
         ld.param.u64 %rd1, [out];\ncvta.to.global.u64 %rd1, %rd1;\nmov.u32 %r1, %tid.x;\n\
         mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\nshl.b32 %r2, %r1, 2;\nmov.u32 %r3, memory;\nadd.u32 %r4, %r3, %r2;\n\
         {body}\nret;\n}}\n"
    )
}

fn cubin_of(body: &str, target: &str, level: u8) -> Cubin {
    let text = source(body);
    let options = Options { opt_level: level, line_info: true, ..Options::new(target) };
    let output = compile(&text, &options)
        .unwrap_or_else(|all| panic!("{}", all.iter().map(|d| d.render("k", &text)).collect::<String>()));
    cubin::read(&output.cubin).expect("our own cubin")
}

fn run(cubin: &Cubin, threads: u32, how: How) -> Outcome {
    let mut args = [ArgValue::Buffer { bytes: vec![0; 4 * 256], writable: true }];
    let shape = Shape { grid: [1; 3], block: [threads, 1, 1], smem: 0 };
    let code = decode(cubin, "k").expect("decodes");
    run_decoded(cubin, "k", shape, &mut args, &code, how).expect("a launch")
}

fn kinds(outcome: &Outcome) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = outcome.reports.iter().map(|report| report.fault.kind).collect();
    kinds.dedup();
    kinds
}

/// A body, threads of the block, and the kind of its first report.
const CASES: &[(&str, &str, u32, Option<Kind>)] = &[
    (
        "shared memory that is written",
        "st.shared.u32 [%r4], %r1;\nld.shared.u32 %r5, [%r4];\nst.global.u32 [%rd3], %r5;",
        64,
        None,
    ),
    (
        "shared memory that nobody writes",
        "ld.shared.u32 %r5, [%r4];\nst.global.u32 [%rd3], %r5;",
        32,
        Some(Kind::Uninitialised),
    ),
    (
        "what has no value and is discarded",
        "ld.shared.u32 %r5, [%r4];\nand.b32 %r5, %r5, 0;\nst.global.u32 [%rd3], %r5;",
        32,
        None,
    ),
    (
        "a neighbour's word behind a barrier",
        "st.shared.u32 [%r4], %r1;\nbar.sync 0;\nxor.b32 %r6, %r2, 128;\nadd.u32 %r6, %r3, %r6;\nld.shared.u32 %r5, [%r6];\nst.global.u32 [%rd3], %r5;",
        64,
        None,
    ),
    (
        "a neighbour's word without one",
        "st.shared.u32 [%r4], %r1;\nxor.b32 %r6, %r2, 128;\nadd.u32 %r6, %r3, %r6;\nst.shared.u32 [%r6], %r1;",
        64,
        Some(Kind::Race),
    ),
    ("atomics of all", "atom.shared.add.u32 %r5, [%r4], 1;\nred.shared.add.u32 [memory], 1;", 64, None),
    (
        "a barrier in one arm",
        "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra other;\nst.global.u32 [%rd3], %r1;\nbar.sync 0;\nbra both;\nother:\nst.global.u32 [%rd3], %r2;\nbar.sync 0;\nboth:",
        32,
        Some(Kind::DivergentBarrier),
    ),
    (
        "a barrier in one arm and none in the other",
        "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra both;\nbar.sync 0;\nboth:\nst.global.u32 [%rd3], %r1;",
        32,
        Some(Kind::DivergentBarrier),
    ),
    ("one word from all lanes", "st.shared.u32 [memory], %r1;", 32, Some(Kind::Race)),
    (
        "one word from two lanes",
        "and.b32 %r5, %r2, 124;\nsetp.eq.u32 %p1, %r1, 9;\n@%p1 mov.u32 %r5, 20;\nadd.u32 %r5, %r3, %r5;\nst.shared.u32 [%r5], %r1;",
        32,
        Some(Kind::Race),
    ),
    ("one word from two warps", "shr.u32 %r5, %r1, 5;\nst.shared.u32 [memory], %r5;", 64, Some(Kind::Race)),
    (
        "a word that another warp stored the same, and reads itself",
        "mov.u32 %r5, 7;\nst.shared.u32 [memory], %r5;\nld.shared.u32 %r6, [memory];\nst.global.u32 [%rd3], %r6;",
        64,
        None,
    ),
    (
        "a word that another warp stored the same, and a third one reads",
        "setp.ge.u32 %p1, %r1, 64;\nmov.u32 %r5, 7;\n@!%p1 st.shared.u32 [memory], %r5;\nmov.u32 %r6, 0;\n@%p1 ld.shared.u32 %r6, [memory];\nst.global.u32 [%rd3], %r6;",
        96,
        Some(Kind::Race),
    ),
    (
        "a bit field in a byte that nobody has written",
        "ld.local.u8 %r5, [stack+1];\nand.b32 %r5, %r5, 248;\nand.b32 %r6, %r1, 7;\nor.b32 %r5, %r5, %r6;\nst.local.u8 [stack+1], %r5;\n\
         ld.local.u8 %r5, [stack+1];\nand.b32 %r5, %r5, 7;\nst.global.u32 [%rd3], %r5;",
        32,
        None,
    ),
    (
        "a bit more than the field has",
        "ld.local.u8 %r5, [stack+1];\nand.b32 %r5, %r5, 248;\nand.b32 %r6, %r1, 7;\nor.b32 %r5, %r5, %r6;\nst.local.u8 [stack+1], %r5;\n\
         ld.local.u8 %r5, [stack+1];\nand.b32 %r5, %r5, 15;\nst.global.u32 [%rd3], %r5;",
        32,
        Some(Kind::Uninitialised),
    ),
    (
        "a byte beside padding, loaded as a half",
        "st.local.u8 [stack], %r1;\nld.local.u16 %r5, [stack];\nshl.b32 %r5, %r5, 24;\nshr.s32 %r5, %r5, 24;\nst.global.u32 [%rd3], %r5;",
        32,
        None,
    ),
    (
        "the padding beside a byte",
        "st.local.u8 [stack], %r1;\nld.local.u16 %r5, [stack];\nshr.u32 %r5, %r5, 8;\nst.global.u32 [%rd3], %r5;",
        32,
        Some(Kind::Uninitialised),
    ),
    (
        "a sign that is known",
        "ld.local.u8 %r5, [stack];\nor.b32 %r5, %r5, 128;\nst.local.u8 [stack], %r5;\nld.local.s8 %r5, [stack];\nshr.s32 %r5, %r5, 8;\nst.global.u32 [%rd3], %r5;",
        32,
        None,
    ),
    (
        "a sign that is not",
        "ld.local.u8 %r5, [stack];\nand.b32 %r5, %r5, 240;\nst.local.u8 [stack], %r5;\nld.local.s8 %r5, [stack];\nshr.s32 %r5, %r5, 8;\nst.global.u32 [%rd3], %r5;",
        32,
        Some(Kind::Uninitialised),
    ),
    (
        "bytes picked, shifted and compared where they have values",
        "st.local.u8 [stack], %r1;\nst.local.u8 [stack+3], %r1;\nld.local.u32 %r5, [stack];\nprmt.b32 %r6, %r5, %r5, 0x3030;\nbfe.u32 %r7, %r5, 24, 8;\n\
         shf.l.wrap.b32 %r8, %r5, %r1, 8;\nshf.r.wrap.b32 %r9, %r5, %r1, 24;\nand.b32 %r10, %r5, 255;\nsetp.eq.u32 %p1, %r10, 5;\nselp.b32 %r11, %r6, %r7, %p1;\n\
         and.b32 %r9, %r9, 255;\nshr.u32 %r8, %r8, 8;\nshl.b32 %r8, %r8, 8;\nadd.u32 %r11, %r11, %r9;\nadd.u32 %r11, %r11, %r8;\nmul.lo.u32 %r12, %r5, 16777216;\nadd.u32 %r11, %r11, %r12;\nst.global.u32 [%rd3], %r11;",
        32,
        None,
    ),
    (
        "a carry out of bits without values",
        "st.local.u8 [stack+1], %r1;\nld.local.u16 %r5, [stack];\nadd.u32 %r5, %r5, 1;\nand.b32 %r5, %r5, 65280;\nst.global.u32 [%rd3], %r5;",
        32,
        Some(Kind::Uninitialised),
    ),
    (
        "an exchange into what nobody has written",
        "atom.shared.exch.b32 %r5, [%r4], %r1;\nld.shared.u32 %r6, [%r4];\nst.global.u32 [%rd3], %r6;",
        32,
        None,
    ),
    ("the same word from all lanes", "mov.u32 %r5, 7;\nst.shared.u32 [memory], %r5;", 32, None),
    (
        "the same byte from all lanes",
        "add.u32 %r5, %r2, 256;\nshl.b32 %r5, %r5, 6;\nst.shared.u8 [memory], %r5;",
        32,
        None,
    ),
    ("words in another order", "xor.b32 %r6, %r2, 60;\nadd.u32 %r6, %r3, %r6;\nst.shared.u32 [%r6], %r1;", 32, None),
    ("beyond shared memory", "st.shared.u32 [%r4+65536], %r1;", 32, Some(Kind::OutOfBounds)),
    ("beyond local memory", "mov.u32 %r6, stack;\nst.local.u32 [%r6+1048576], %r1;", 32, Some(Kind::OutOfBounds)),
    ("an odd address", "st.global.u32 [%rd3+2], %r1;", 32, Some(Kind::Misaligned)),
    ("trap", "setp.eq.u32 %p1, %r1, 5;\n@%p1 trap;", 32, Some(Kind::Trap)),
    ("a barrier for twice as many", "bar.sync 1, 64;", 32, Some(Kind::Deadlock)),
    ("a loop without end", "again:\natom.global.add.u32 %r5, [%rd3], 1;\nbra again;", 32, Some(Kind::StepLimit)),
];

#[test]
fn programs_get_the_report_that_they_deserve() {
    let mut wrong = Vec::new();
    for (name, body, threads, kind) in CASES {
        wrong.extend(not_as_deserved(name, body, *threads, *kind));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The error of the first report of a body, on each target and level. Each report has instruction,
/// line and lane, and for memory an address.
fn not_as_deserved(name: &str, body: &str, threads: u32, kind: Option<Kind>) -> Vec<String> {
    let mut wrong = Vec::new();
    for target in TARGETS {
        for level in [0, 3] {
            let how = How { step_limit: 100_000, ..How::default() };
            let outcome = run(&cubin_of(body, target, level), threads, how);
            let first = outcome.reports.first();
            let whole = first.is_none_or(|report| {
                let fault = &report.fault;
                let about = matches!(fault.kind, Kind::OutOfBounds | Kind::Misaligned | Kind::Race);
                let placed = fault.place.is_some() && fault.source.is_some() && fault.lane.is_some_and(|l| l < 32);
                placed && !report.instruction.is_empty() && (fault.address.is_some() || !about)
            });
            if first.map(|report| report.fault.kind) != kind || !whole {
                let reports: Vec<String> = outcome.reports.iter().map(ToString::to_string).collect();
                wrong.push(format!("{name}, {target} -O{level}: {reports:?}"));
            }
        }
    }
    wrong
}

/// The interpreter checks values and races like the simulator, except between the lanes of one
/// warp.
#[test]
fn the_interpreter_says_the_same() {
    let mut wrong = Vec::new();
    for (name, body, threads, kind) in CASES {
        let judged = matches!(kind, None | Some(Kind::Uninitialised | Kind::Race));
        if !judged || name.starts_with("one word from all lanes") || name.starts_with("one word from two lanes") {
            continue;
        }
        let module = sassafras::sim::ptx::parse(source(body).as_bytes()).0.expect("parses");
        let mut args = [ArgValue::Buffer { bytes: vec![0; 4 * 256], writable: true }];
        let shape = Shape { grid: [1; 3], block: [*threads, 1, 1], smem: 0 };
        let (outcome, done) = sassafras::sim::ptx::run_within(&module, "k", shape, &mut args, 1 << 20);
        let first = outcome.reports.first().map(|report| report.fault.kind);
        if done.is_err() || first != *kind {
            wrong.push(format!("{name}: {done:?}, {:?}", outcome.reports));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Warps that store the same value to the same address cause a note, not an error.
#[test]
fn the_same_value_from_several_warps_is_a_note() {
    let body = "mov.u32 %r5, 7;\nst.shared.u32 [memory], %r5;";
    for target in TARGETS {
        for level in [0, 3] {
            let outcome = run(&cubin_of(body, target, level), 64, How::default());
            assert!(outcome.reports.is_empty(), "{target} -O{level}: {:?}", outcome.reports);
            let kinds: Vec<Kind> = outcome.notes.iter().map(|note| note.fault.kind).collect();
            assert_eq!(kinds, [Kind::Race], "{target} -O{level}");
            assert!(outcome.notes[0].to_string().contains("the value is the same"), "{}", outcome.notes[0]);
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("k.ptx");
    std::fs::write(&path, source(body)).expect("a file");
    for engine in ["sass", "ptx"] {
        let run = Command::new(env!("CARGO_BIN_EXE_sassafras"))
            .args(["run", "--kernel", "k", "--grid", "1", "--block", "64", "--json", "--engine", engine])
            .arg(&path)
            .arg("--arg")
            .arg(format!("out:{}:1024", folder.path().join("out").display()))
            .output()
            .expect("runs");
        let (said, json) = (String::from_utf8_lossy(&run.stderr), String::from_utf8_lossy(&run.stdout));
        assert!(run.status.success(), "{engine}: {said}");
        assert!(said.contains("sassafras note    : shared-memory race: shared address"), "{engine}: {said}");
        assert!(json.contains("\"severity\": \"note\"") && !json.contains("\"error\""), "{engine}: {json}");
    }
}

/// Uses of a predicate or value that depends on the uninitialised `%r5`.
const USES: [(&str, &str); 5] = [
    ("selected", "selp.u32 %r6, 1, 2, %p1;\nst.global.u32 [%rd3], %r6;"),
    ("a branch", "@%p1 bra past;\nst.global.u32 [%rd3], %r1;\nbar.sync 0;\npast:"),
    ("a store", "@%p1 st.global.u32 [%rd3], %r1;"),
    ("an atomic", "@%p1 atom.global.add.u32 %r6, [%rd3], 1;"),
    ("a trap", "@%p1 trap;"),
];

/// Comparisons of `%r5` that depend on its uninitialised value.
const COMPARED: [(&str, &str); 8] = [
    ("with a number", "setp.eq.u32 %p1, %r5, 7;"),
    ("with another register", "setp.ne.s32 %p1, %r1, %r5;"),
    ("with the least number", "setp.le.s32 %p1, %r5, -2147483648;"),
    ("with one below the greatest", "setp.gt.u32 %p1, %r5, 4294967294;"),
    ("of a part", "and.b32 %r5, %r5, 255;\nsetp.eq.u32 %p1, %r5, 77;"),
    ("as a float", "mov.b32 %f1, %r5;\nneg.f32 %f1, %f1;\nsetp.eq.f32 %p1, %f1, 0f40e00000;"),
    ("as a long number", "mov.b64 %rd4, {%r5, %r5};\nsetp.eq.u64 %p1, %rd4, 30064771079;"),
    ("as halves", "mov.b32 %r6, 0x47004500;\nsetp.eq.f16x2 %p1|%p2, %r5, %r6;"),
];

#[test]
fn outcomes_that_hang_on_nothing_are_reported() {
    let load = "ld.shared.u32 %r5, [%r4];\n.reg .f32 %f1;\n";
    let mut wrong = Vec::new();
    for (how, compared) in COMPARED {
        for (what, used) in USES {
            let body = format!("{load}{compared}\n{used}");
            wrong.extend(not_as_deserved(&format!("{how}, {what}"), &body, 32, Some(Kind::Uninitialised)));
        }
    }
    // A result that is the same for any value is not reported.
    for (name, compared) in [
        ("itself", "setp.eq.u32 %p1, %r5, %r5;"),
        ("a difference", "xor.b32 %r5, %r5, %r5;\nsetp.eq.u32 %p1, %r5, 7;"),
        ("what is masked", "and.b32 %r5, %r5, 0;\nsetp.eq.u32 %p1, %r5, 7;"),
        ("bits that are never there", "and.b32 %r5, %r5, 3;\nsetp.eq.u32 %p1, %r5, 7;"),
        ("below the least", "setp.lt.u32 %p1, %r5, 0;"),
        ("without weight", "setp.gt.u32 %p2, %r1, 99;\nsetp.eq.and.u32 %p1, %r5, 7, %p2;"),
    ] {
        for (what, used) in &USES[..4] {
            wrong.extend(not_as_deserved(&format!("{name}, {what}"), &format!("{load}{compared}\n{used}"), 32, None));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A deadlock report says who waits where, and for whom.
#[test]
fn those_who_wait_are_named() {
    let body = "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra both;\nbar.sync 0;\nboth:\nst.global.u32 [%rd3], %r1;";
    for target in TARGETS {
        let report = run(&cubin_of(body, target, 0), 32, How::default()).reports.remove(0);
        assert!(report.instruction.contains("BAR"), "{target}: {report}");
        assert!(report.fault.what.contains("lanes 0x0000ffff of the warp do not reach"), "{target}: {report}");
        assert_eq!(report.fault.lane, Some(16), "{target}: {report}");
    }
    let body = "setp.eq.u32 %p1, %r1, 5;\n@%p1 bra other;\nbar.warp.sync 3;\nbra both;\nother:\nbar.warp.sync 33;\nboth:\nst.global.u32 [%rd3], %r1;";
    for target in TARGETS {
        let report = run(&cubin_of(body, target, 0), 32, How::default()).reports.remove(0);
        let what = &report.fault.what;
        assert!(report.fault.kind == Kind::Deadlock && what.contains("lanes 0x00000020 at pc"), "{target}: {report}");
    }
    let report =
        run(&cubin_of("setp.eq.u32 %p1, %r1, 5;\n@%p1 trap;", "sm_90", 3), 32, How::default()).reports.remove(0);
    assert_eq!(report.fault.lane, Some(5), "{report}");
}

#[test]
fn schedules_without_waits_are_hazards() {
    let body = "ld.global.u32 %r5, [%rd3];\nadd.u32 %r5, %r5, %r1;\nst.global.u32 [%rd3], %r5;";
    for target in TARGETS {
        for level in [0, 3] {
            let right = cubin_of(body, target, level);
            assert!(run(&right, 32, How::default()).reports.is_empty(), "{target} -O{level}");
            let mut hasty = right.clone();
            for word in hasty.functions[0].code.chunks_exact_mut(16) {
                // The mask of scoreboards is in bits 116 to 121.
                word[14] &= 0x0f;
                word[15] &= !0x03;
            }
            assert!(kinds(&run(&hasty, 32, How::default())).contains(&Kind::Hazard), "{target} -O{level}");
            let untimed = How { timed: false, ..How::default() };
            assert!(
                run(&hasty, 32, untimed).reports.is_empty(),
                "{target} -O{level}: without time nothing is wrong with it"
            );
        }
    }
}

#[test]
fn registers_are_declared() {
    let mut cubin = cubin_of("st.global.u32 [%rd3], %r1;", "sm_90", 3);
    cubin.functions[0].registers = 2;
    assert!(kinds(&run(&cubin, 32, How::default())).contains(&Kind::Register));
}

#[test]
fn the_command_line_says_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |body: &str, more: &[&str]| {
        let path = folder.path().join("k.ptx");
        std::fs::write(&path, source(body)).expect("written");
        let out = format!("out:{}:1024", folder.path().join("out").display());
        let usual = ["--kernel", "k", "--grid", "1", "--block", "64", "--gpu-name", "sm_90", "--arg", &out];
        let mut command = Command::new(env!("CARGO_BIN_EXE_sassafras"));
        let output = command.arg("run").arg(path).args(usual).args(more).output().expect("starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, _, errors) = run("st.global.u32 [%rd3], %r1;", &[]);
    assert!(code == Some(0) && errors.contains("cycles a block"), "{errors}");
    let race = "st.shared.u32 [%r4], %r1;\nxor.b32 %r6, %r2, 128;\nadd.u32 %r6, %r3, %r6;\nst.shared.u32 [%r6], %r1;";
    let (code, json, errors) = run(race, &["--json"]);
    assert!(code == Some(1) && errors.contains("shared-memory race") && errors.contains("STS"), "{errors}");
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["reports"][0]["kind"], "shared-memory race");
    assert!(
        value["opcodes"]["STS"].as_u64().is_some_and(|count| count >= 4)
            && value["cycles"]["block"].as_u64().is_some_and(|c| c > 0)
    );
    let (_, _, trace) = run(race, &["--trace"]);
    assert!(trace.contains("warp 1") && trace.contains("cycle") && trace.contains("EXIT"), "{trace}");
    // Both engines write JSON of the same shape, whatever the fault is.
    let shape = |json: &str| {
        let value: serde_json::Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
        let names =
            |value: &serde_json::Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
        let all: Vec<String> = names(&value).into_iter().filter(|name| name != "cycles").collect();
        (all, names(&value["reports"][0]), value)
    };
    for (body, kind) in [
        ("again:\natom.global.add.u32 %r5, [%rd3], 1;\nbra again;", "step limit"),
        ("setp.eq.u32 %p1, %r1, 5;\n@%p1 trap;", "trap"),
        ("st.global.u32 [%rd3+2], %r1;", "misaligned"),
        ("st.global.u32 [%rd3+4096], %r1;", "out of bounds"),
        ("bar.sync 1, 96;", "deadlock"),
    ] {
        let (code, json, _) = run(body, &["--json", "--steps", "5000"]);
        let (interpreted, text, _) = run(body, &["--json", "--steps", "5000", "--engine", "ptx"]);
        let ((all, one, machine), (all_too, one_too, value)) = (shape(&json), shape(&text));
        assert_eq!((code, interpreted, &all, &one), (Some(1), Some(1), &all_too, &one_too), "{kind}");
        for value in [&machine, &value] {
            let report = &value["reports"][0];
            assert!(value["instructions"].as_u64().is_some_and(|count| count > 0 && count <= 5001), "{value}");
            assert!(report["kind"] == kind && value["ended"] == false && report["instruction"].is_string(), "{report}");
            assert!(
                report["lane"].is_u64() && report["warp"].is_u64() && report["source"]["line"].is_u64(),
                "{report}"
            );
            assert_eq!(report["address"].is_u64(), ["misaligned", "out of bounds"].contains(&kind), "{report}");
        }
    }
    let (code, json, errors) = run("st.global.u32 [%rd3], %r1;", &["--json", "--arg", "u32:1"]);
    assert!(code == Some(1) && errors.contains("1 parameters and gets 2 arguments"), "{errors}");
    assert!(shape(&json).2["reports"][0]["message"].as_str().is_some_and(|text| text.contains("gets 2 arguments")));
    let same = |seed| run(race, &["--json", "--jitter", seed]).1;
    assert_eq!(same("3"), same("3"));
    // Options without effect in the engine are rejected, before a GPU is looked for.
    for (engine, options) in [("ptx", &["--trace", "--untimed", "--jitter=3"][..]), ("gpu", &["--json", "--steps=9"])] {
        for option in options {
            let (code, json, errors) = run(race, &["--engine", engine, option]);
            let told = format!("--engine {engine} knows no {}", option.split('=').next().unwrap_or_default());
            assert!(code == Some(255) && json.is_empty() && errors.contains(&told), "{option}: {errors}");
        }
    }
}

/// A kernel for sm_90 from instructions, each with its stall, write barrier, read barrier and wait
/// mask. Returns the word that the launch stores first, and the reports.
fn assembled(lines: &[(&str, u8, [u8; 2], u8)]) -> (Cubin, u32, Outcome) {
    let target = Target::by_name("sm_90").expect("a target");
    let mut cubin = cubin_of("st.global.u32 [%rd3], %r1;", "sm_90", 3);
    cubin.functions[0].registers = 32;
    cubin.functions[0].code = lines
        .iter()
        .flat_map(|(line, stall, [write, read], wait)| {
            let mut inst = sass::parse(target, line, 0, None).unwrap_or_else(|e| panic!("{line}: {}", e.message));
            inst.ctrl =
                sass::Ctrl { stall: *stall, stay: *stall < 12, write_bar: *write, read_bar: *read, wait: *wait };
            sass::encode(target, &inst).unwrap_or_else(|e| panic!("{line}: {e}")).to_le_bytes()
        })
        .collect();
    let mut args = [ArgValue::Buffer { bytes: vec![0; 4 * 256], writable: true }];
    let shape = Shape { grid: [1; 3], block: [1, 1, 1], smem: 0 };
    let code = decode(&cubin, "k").expect("decodes");
    let outcome = run_decoded(&cubin, "k", shape, &mut args, &code, How::default()).expect("a launch");
    let ArgValue::Buffer { bytes, .. } = &args[0] else { unreachable!() };
    let word = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"));
    (cubin, word, outcome)
}

/// No scoreboards.
const IDLE: [u8; 2] = [7, 7];
/// The store address and the descriptor.
const START: [(&str, u8, [u8; 2], u8); 3] = [
    ("MOV R2, c[0x0][0x210]", 15, IDLE, 0),
    ("MOV R3, c[0x0][0x214]", 15, IDLE, 0),
    ("ULDC.64 UR4, c[0x0][0x208]", 15, IDLE, 0),
];

#[test]
fn a_value_kept_for_reuse_is_the_old_one() {
    let of = |first: &'static str| {
        let rest = [
            ("MOV R5, 0x1", 15, IDLE, 0),
            (first, 2, IDLE, 0),
            ("MOV R5, 0x7", 15, IDLE, 0),
            ("IADD3 R7, R5, 0x1, RZ", 15, IDLE, 0),
            ("STG.E desc[UR4][R2.64], R7", 15, IDLE, 0),
            ("EXIT", 15, IDLE, 0),
        ];
        let (cubin, word, outcome) = assembled(&[&START[..], &rest].concat());
        let statically = hazards::check(&cubin).expect("a target with a decoder");
        (word, outcome.reports, statically)
    };
    let (word, reports, statically) = of("IADD3 R6, R5, 0x1, RZ");
    assert!(word == 8 && reports.is_empty() && statically.is_empty(), "{word} {reports:?} {statically:?}");
    let (word, reports, statically) = of("IADD3 R6, R5.reuse, 0x1, RZ");
    assert_ne!(word, 8);
    let text = "R5 is read as it was kept for reuse";
    assert!(reports[0].fault.kind == Kind::Hazard && reports[0].fault.what.contains(text), "{reports:?}");
    assert!(statically.len() == 1 && statically[0].message.contains(text), "{statically:?}");
}

#[test]
fn what_is_read_late_and_overwritten_is_no_value() {
    let of = |read: u8, wait: u8| {
        let rest = [
            ("MOV R5, 0x1", 15, IDLE, 0),
            ("STG.E desc[UR4][R2.64], R5", 15, [7, read], 0),
            ("MOV R5, 0x7", 15, IDLE, wait),
            ("EXIT", 15, IDLE, 0),
        ];
        let (_, word, outcome) = assembled(&[&START[..], &rest].concat());
        (word, outcome.reports)
    };
    let (word, reports) = of(0, 1);
    assert!(word == 1 && reports.is_empty(), "{word} {reports:?}");
    for (read, wait) in [(0, 0), (7, 0)] {
        let (word, reports) = of(read, wait);
        assert!(![1, 7].contains(&word), "{word}");
        assert!(
            reports[0].fault.kind == Kind::Hazard && reports[0].fault.what.contains("still to be read"),
            "{reports:?}"
        );
    }
}

#[test]
fn a_queue_has_read_what_stands_before_its_last_result() {
    let of = |wait: u8| {
        let rest = [
            ("MOV R5, 0x1", 15, IDLE, 0),
            ("SHFL.UP PT, R8, R5, 0x1, RZ", 4, IDLE, 0),
            // It reads no register, and stands in the same queue.
            ("S2R R11, SR_TID.X", 2, [0, 7], 0),
            ("MOV R5, 0x7", 15, IDLE, wait),
            ("STG.E desc[UR4][R2.64], R5", 15, IDLE, 0),
            ("EXIT", 15, IDLE, 0),
        ];
        let (_, word, outcome) = assembled(&[&START[..], &rest].concat());
        (word, outcome.reports)
    };
    let (word, reports) = of(1);
    assert!(word == 7 && reports.is_empty(), "{word} {reports:?}");
    let (_, reports) = of(0);
    assert!(reports[0].fault.what.contains("still to be read"), "{reports:?}");
}

#[test]
fn copies_are_there_when_their_group_was_waited_for() {
    let copy = "cp.async.ca.shared.global [%r4], [%rd3], 4;\ncp.async.commit_group;\n";
    let load = "ld.shared.u32 %r5, [%r4];\nst.global.u32 [%rd3], %r5;";
    let two =
        format!("{copy}add.u32 %r6, %r4, 512;\ncp.async.ca.shared.global [%r6], [%rd3], 4;\ncp.async.commit_group;\n");
    let other = load.replace("[%r4]", "[%r6]");
    for (name, body, kind) in [
        ("after its group", format!("{copy}cp.async.wait_group 0;\n{load}"), None),
        ("without a wait", format!("{copy}{load}"), Some(Kind::Hazard)),
        ("the first of two", format!("{two}cp.async.wait_group 1;\n{load}"), None),
        ("the second of two", format!("{two}cp.async.wait_group 1;\n{other}"), Some(Kind::Hazard)),
        (
            "a group that is open",
            format!("{copy}cp.async.ca.shared.global [%r4], [%rd3], 4;\ncp.async.wait_group 0;\n{load}"),
            Some(Kind::Hazard),
        ),
        ("all", format!("{two}cp.async.wait_all;\n{other}"), None),
        ("overwritten", format!("{copy}st.shared.u32 [%r4], %r1;"), Some(Kind::Hazard)),
    ] {
        for target in ["sm_80", "sm_90", "sm_100"] {
            for level in [0, 3] {
                for jitter in [None, Some(1), Some(2)] {
                    let text = source(&body).replace("sm_75", "sm_80");
                    let options = Options { opt_level: level, ..Options::new(target) };
                    let output = compile(&text, &options).unwrap_or_else(|all| {
                        panic!("{}", all.iter().map(|d| d.render("k", &text)).collect::<String>())
                    });
                    let outcome =
                        run(&cubin::read(&output.cubin).expect("our own"), 32, How { jitter, ..How::default() });
                    let first = outcome.reports.first().map(|report| report.fault.kind);
                    assert_eq!(first, kind, "{name}, {target} -O{level}: {:?}", outcome.reports);
                }
            }
        }
    }
}

#[test]
fn reports_name_the_line_of_the_source() {
    let odd = ".loc 1 12 3\nst.global.u32 [%rd3], %r1;\n.loc 1 14 3\nst.global.u32 [%rd3+2], %r1;";
    let text = source(odd).replace(".visible", ".file 1 \"src/first.cu\"\n.visible");
    for target in TARGETS {
        let output = compile(&text, &Options::new(target)).expect("compiles");
        let cubin = cubin::read(&output.cubin).expect("our own");
        let outcome = run(&cubin, 64, How::default());
        let source = outcome.reports[0].fault.source.clone().expect("a line");
        assert_eq!((source.file.as_str(), source.line), ("src/first.cu", 14), "{target}");
        assert!(outcome.reports[0].to_string().contains("(src/first.cu:14)"), "{}", outcome.reports[0]);
        // The static checker reports it too.
        let mut hasty = cubin.clone();
        hasty.functions[0]
            .code
            .chunks_exact_mut(16)
            .for_each(|word| (word[14], word[15]) = (word[14] & 0x0f, word[15] & !3));
        let reports = hazards::check(&hasty).expect("a target with a decoder");
        assert!(!reports.is_empty(), "{target}");
        let named = |r: &hazards::Report| r.source.as_ref().is_some_and(|s| r.to_string().contains(&s.to_string()));
        assert!(reports.iter().any(named), "{target}: {reports:?}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let run = |text: &str, more: &[&str]| {
        let path = folder.path().join("k.ptx");
        std::fs::write(&path, text).expect("written");
        let out = format!("out:{}:1024", folder.path().join("out").display());
        let usual = ["--kernel", "k", "--grid", "1", "--block", "64", "--gpu-name", "sm_90", "--arg", &out];
        let mut command = Command::new(env!("CARGO_BIN_EXE_sassafras"));
        let output = command.arg("run").arg(path).args(usual).args(more).output().expect("starts");
        (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (json, errors) = run(&text, &["--json"]);
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["reports"][0]["source"], serde_json::json!({ "file": "src/first.cu", "line": 14 }));
    assert!(errors.contains("(src/first.cu:14)"), "{errors}");
    assert!(run(&text, &["--trace"]).1.contains("// src/first.cu:14"));
    // Without `.loc`, the line is one of the PTX text.
    let text = source("st.global.u32 [%rd3+2], %r1;");
    let line = 1 + text.lines().position(|line| line.starts_with("st.global")).expect("a line");
    let (_, errors) = run(&text, &[]);
    assert!(errors.contains(&format!("(line {line})")), "{errors}");
}

/// A profile has how often the launch executed each instruction, and cycles of the slowest block or
/// of all blocks, by instruction and by source line, with whom it waited for.
#[test]
fn profiles_say_where_cycles_went() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n\
        .reg .b64 %rd<3>;\n.reg .b32 %r<4>;\n.reg .pred %p1;\n\
        ld.param.u64 %rd1, [p];\n\
        mov.u32 %r1, %ctaid.x;\n\
        mov.u32 %r2, 0;\n\
        again: .pragma \"nounroll\";\n\
        ld.global.u32 %r3, [%rd1];\n\
        add.s32 %r2, %r2, %r3;\n\
        sub.s32 %r1, %r1, 1;\n\
        setp.ge.s32 %p1, %r1, 0;\n\
        @%p1 bra again;\n\
        st.global.u32 [%rd1+4], %r2;\nret;\n}\n";
    std::fs::write(folder.path().join("k.ptx"), text).expect("written");
    let run = |more: &[&str]| {
        let usual = ["run", "k.ptx", "--kernel", "k", "--grid", "3", "--block", "32", "--gpu-name", "sm_90"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_sassafras"));
        command.args(usual).args(["--arg", "out:out:64"]).args(more).current_dir(folder.path());
        let output = command.output().expect("starts");
        (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let json = |more: &[&str]| -> serde_json::Value {
        serde_json::from_str(&run(&[&["--json"], more].concat()).0).expect("JSON")
    };
    let of = |profile: &serde_json::Value, text: &str| {
        let lines = profile["profile"].as_array().expect("a profile").iter();
        lines.filter(|l| l["instruction"].as_str().unwrap().contains(text)).cloned().collect::<Vec<_>>()
    };
    let number = |line: &serde_json::Value, what: &str| line[what].as_u64().unwrap();
    let (slowest, all) = (json(&["--profile"]), json(&["--profile", "--every-block"]));
    // Of three blocks the last one goes round three times, the launch six times.
    let (load, sum) = (of(&slowest, "LDG"), of(&all, "LDG"));
    assert_eq!((load.len(), number(&load[0], "executed"), number(&load[0], "issued")), (1, 6, 3), "{load:?}");
    assert_eq!((number(&sum[0], "executed"), number(&sum[0], "issued")), (6, 6));
    let whole = |profile: &serde_json::Value, what| -> u64 { of(profile, "").iter().map(|l| number(l, what)).sum() };
    assert_eq!(whole(&slowest, "cycles"), slowest["cycles"]["block"].as_u64().unwrap());
    assert_eq!(whole(&all, "issued"), all["instructions"].as_u64().unwrap());
    assert!(whole(&all, "cycles") > whole(&slowest, "cycles"));
    // What adds the loaded value waits for the load.
    let pc = number(&load[0], "pc");
    let waiting = of(&slowest, "").into_iter().filter(|l| l["waits"][0]["pc"].as_u64() == Some(pc)).collect::<Vec<_>>();
    assert!(!waiting.is_empty() && number(&waiting[0], "wait") > 0);

    let line = |text: &str, what: &str| {
        text.lines().find(|l| l.contains(what)).unwrap_or_else(|| panic!("{text}")).to_string()
    };
    let (shown, _) = run(&["--profile"]);
    assert_eq!(
        shown.lines().next().unwrap().split_whitespace().collect::<Vec<_>>(),
        ["executed", "cycles", "issued", "stall", "wait", "pipe", "instruction"]
    );
    assert_eq!(line(&shown, "LDG").split_whitespace().next(), Some("6"));
    assert!(shown.contains(&format!("// waits for {pc:04x}: ")), "{shown}");
    let (shown, _) = run(&["--lines"]);
    assert_eq!(line(&shown, "  line 12").split_whitespace().next(), Some("6"), "{shown}");
    assert!(line(&shown, "  line 13").contains("// waits for line 12: "), "{shown}");
    let (_, errors) = run(&["--every-block"]);
    assert_eq!(errors, "sassafras fatal   : --engine sass knows no --every-block without a profile\n");
}
