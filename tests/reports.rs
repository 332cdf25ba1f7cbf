//! Each kind of report, from a program that deserves it; and none from its neighbour that does not.
//!
//! Input: small kernels compiled by us. Checked: the kinds of the reports, what the command line prints, its exit status.

use sassafras::compile::{Options, compile};
use sassafras::cubin::{self, Cubin};
use sassafras::sim::fault::Kind;
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{How, Outcome, Shape, decode, run_decoded};
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
    let options = Options { opt_level: level, ..Options::new(target) };
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
const CASES: [(&str, &str, u32, Option<Kind>); 13] = [
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
        for target in TARGETS {
            for level in [0, 3] {
                let how = How { step_limit: 100_000, ..How::default() };
                let outcome = run(&cubin_of(body, target, level), threads, how);
                let first = outcome.reports.first().map(|report| report.fault.kind);
                if first != kind {
                    let reports: Vec<String> = outcome.reports.iter().map(ToString::to_string).collect();
                    wrong.push(format!("{name}, {target} -O{level}: {reports:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
    let same = |seed| run(race, &["--json", "--jitter", seed]).1;
    assert_eq!(same("3"), same("3"));
}
