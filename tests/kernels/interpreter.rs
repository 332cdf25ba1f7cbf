//! The PTX interpreter on kernels with literal expected values.
//!
//! The input is every launch under `tests/cases/exec`, and small texts here for what those do not
//! cover: calls, branch tables, barriers with counts, printed text, faults with their lines.
//! `SASSAFRAS_CASE` narrows the former.

use sassafras::sim::fault::Kind;
use sassafras::sim::launch::{ArgValue, LaunchFile};
use sassafras::sim::ptx::{Outcome, parse, run, run_within};
use sassafras::sim::run::Shape;
use std::path::{Path, PathBuf};

fn descriptions() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/exec");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "ron"));
    paths.sort();
    paths
}

#[test]
fn cases_give_the_expected_numbers() {
    let wanted = std::env::var("SASSAFRAS_CASE").ok();
    let mut wrong = Vec::new();
    let mut launches = 0;
    for path in descriptions() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if wanted.as_ref().is_some_and(|list| !list.split(',').any(|item| item == name)) {
            continue;
        }
        let file = LaunchFile::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let (module, diagnostics) = parse(&std::fs::read(&file.module).unwrap());
        let Some(module) = module else {
            wrong.push(format!("{name}: {diagnostics:?}"));
            continue;
        };
        for launch in &file.launches {
            launches += 1;
            let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
            let mut values = launch.arg_values();
            let message = match run(&module, &launch.kernel, shape, &mut values) {
                Err(fault) => fault.to_string(),
                Ok(outcome) if !outcome.reports.is_empty() => {
                    outcome.reports.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
                }
                Ok(_) => match launch.check(&values) {
                    Ok(()) => continue,
                    Err(differences) => differences.iter().map(|d| d.to_string()).collect::<Vec<_>>().join("; "),
                },
            };
            wrong.push(format!("{name} {}: {message}", launch.kernel));
        }
    }
    assert!(wrong.is_empty(), "{} of {launches} launches went wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(launches > 0);
}

/// Everything in our own texts must be executed. `SASSAFRAS_CORPUS` names a folder whose texts are
/// read too; unsupported instructions in them are printed with their number of occurrences.
#[test]
fn nothing_is_refused() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/exec");
    let mut folders = vec![root.clone()];
    folders.extend(std::env::var_os("SASSAFRAS_CORPUS").map(PathBuf::from));
    let mut refused = std::collections::BTreeMap::<String, usize>::new();
    let (mut read, mut unread, mut whole) = (0, 0, 0);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
            if path.is_dir() {
                folders.push(path.clone());
            }
            if path.extension().is_none_or(|e| e != "ptx") {
                continue;
            }
            let Some(module) = parse(&std::fs::read(&path).unwrap()).0 else {
                unread += 1;
                continue;
            };
            let found = sassafras::sim::ptx::refusals(&module);
            (read, whole) = (read + 1, whole + usize::from(found.is_empty()));
            assert!(found.is_empty() || !path.starts_with(&root), "{}: {found:?}", path.display());
            found.into_iter().for_each(|(_, name)| *refused.entry(name).or_default() += 1);
        }
    }
    println!("{read} texts read and {unread} not; {whole} executed in full; refused: {refused:#?}");
    assert!(read > 40);
}

/// Runs kernel `k` of a module, given without its header, over one block; its parameter is a buffer
/// of words.
fn outcome(body: &str, threads: u32, words: usize) -> Result<(Vec<u32>, Outcome), String> {
    let source = format!(".version 9.0\n.target sm_90\n.address_size 64\n{body}");
    let (module, diagnostics) = parse(source.as_bytes());
    let module = module.unwrap_or_else(|| panic!("{diagnostics:?}"));
    let mut args = [ArgValue::Buffer { bytes: vec![0; 4 * words], writable: true }];
    let shape = Shape { grid: [1; 3], block: [threads, 1, 1], smem: 0 };
    let outcome = run(&module, "k", shape, &mut args).map_err(|fault| fault.to_string())?;
    let [ArgValue::Buffer { bytes, .. }] = args else { panic!("the buffer is gone") };
    Ok((bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect(), outcome))
}

fn words(body: &str, threads: u32, count: usize) -> Vec<u32> {
    outcome(body, threads, count).unwrap_or_else(|fault| panic!("{fault}")).0
}

fn fault(body: &str, threads: u32) -> String {
    outcome(body, threads, 4).expect_err("a fault")
}

const HEAD: &str = ".visible .entry k(.param .u64 p) {\n.reg .b64 %io, %a, %b; .reg .b32 %t, %x, %y, %z; .reg .pred %p, %q;\n\
    ld.param.u64 %io, [p];\nmov.u32 %t, %tid.x;\nmad.wide.u32 %io, %t, 4, %io;\n";

#[test]
fn functions_call_themselves_and_each_other() {
    let body = format!(
        ".func (.param .b32 r) fib(.param .b32 n) {{\n.reg .b32 %n, %a, %b; .reg .pred %p;\nld.param.b32 %n, [n];\n\
         setp.gt.u32 %p, %n, 1;\n@%p bra more;\nst.param.b32 [r], %n;\nret;\nmore:\n\
         {{ .param .b32 x; .param .b32 y;\nsub.u32 %a, %n, 1;\nst.param.b32 [x], %a;\ncall.uni (y), fib, (x);\nld.param.b32 %a, [y];\n\
         sub.u32 %n, %n, 2;\nst.param.b32 [x], %n;\ncall.uni (y), fib, (x);\nld.param.b32 %b, [y];\n}}\n\
         add.u32 %a, %a, %b;\nst.param.b32 [r], %a;\nret;\n}}\n\
         .func (.reg .b32 %r) twice(.reg .b32 %n) {{\nadd.u32 %r, %n, %n;\nret;\n}}\n{HEAD}\
         {{ .param .b32 x; .param .b32 y;\nst.param.b32 [x], %t;\ncall (y), fib, (x);\nld.param.b32 %x, [y];\n}}\n\
         proto: .callprototype (.reg .b32 _) _ (.reg .b32 _);\nmov.u64 %a, twice;\ncall (%y), %a, (%x), proto;\n\
         st.global.u32 [%io], %y;\nret;\n}}\n"
    );
    assert_eq!(words(&body, 10, 10), [0, 2, 2, 4, 6, 10, 16, 26, 42, 68]);
}

#[test]
fn tables_of_branches() {
    let body = format!(
        "{HEAD}mov.u32 %x, 0;\nand.b32 %y, %t, 3;\nts: .branchtargets a, b, c, a;\nbrx.idx %y, ts;\na:\nadd.u32 %x, %x, 1;\n\
         b:\nadd.u32 %x, %x, 10;\nc:\nadd.u32 %x, %x, 100;\nst.global.u32 [%io], %x;\nret;\n}}\n"
    );
    assert_eq!(words(&body, 4, 4), [111, 110, 100, 111]);
    let beyond = body.replace("and.b32 %y, %t, 3;", "mov.u32 %y, 4;");
    assert!(fault(&beyond, 1).contains("index 4 is beyond the 4 targets"));
}

#[test]
fn barriers_with_counts_and_reductions() {
    // The first warp produces, the second consumes; the third does not participate.
    let body = format!(
        ".shared .align 4 .b32 s[32];\n{HEAD}mov.u32 %x, s;\nand.b32 %y, %t, 31;\nmad.lo.u32 %x, %y, 4, %x;\nsetp.ge.u32 %p, %t, 64;\n\
         @%p bra end;\nsetp.ge.u32 %p, %t, 32;\n@%p bra use;\nst.shared.u32 [%x], %t;\nbar.arrive 3, 64;\nbra end;\n\
         use:\nbar.sync 3, 64;\nld.shared.u32 %z, [%x];\nst.global.u32 [%io], %z;\nend:\nsetp.lt.u32 %q, %t, 5;\n\
         barrier.red.popc.u32 %z, 1, %q;\n@!%p st.global.u32 [%io], %z;\nret;\n}}\n"
    );
    let got = words(&body, 96, 96);
    assert_eq!(got[..32], [5; 32]);
    assert_eq!(got[32..64].to_vec(), (0..32).collect::<Vec<u32>>());
}

#[test]
fn lanes_that_end_are_not_waited_for() {
    let body = format!(
        "{HEAD}setp.ge.u32 %p, %t, 20;\n@%p exit;\nbar.sync 0;\nshfl.sync.bfly.b32 %x|%q, %t, 1, 31, -1;\n\
         activemask.b32 %y;\nadd.u32 %x, %x, %y;\nst.global.u32 [%io], %x;\nret;\n}}\n"
    );
    assert_eq!(words(&body, 32, 32)[..3], [0x10_0000, 0xf_ffff, 0x10_0002]);
}

#[test]
fn carries_follow_the_isa() {
    let body = format!(
        "{HEAD}mov.u32 %x, -1;\nadd.cc.u32 %y, %x, 1;\naddc.cc.u32 %y, %x, 0;\naddc.u32 %y, %y, 5;\nsub.cc.u32 %z, 0, 1;\n\
         subc.u32 %z, 10, 0;\nshl.b32 %z, %z, 8;\nor.b32 %y, %y, %z;\nst.global.u32 [%io], %y;\nret;\n}}\n"
    );
    assert_eq!(words(&body, 1, 1), [0x906]);
}

#[test]
fn text_is_printed() {
    let body = format!(
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n\
         .global .align 1 .b8 text[12] = {{37, 100, 32, 37, 46, 49, 102, 32, 37, 115, 10, 0}};\n\
         .global .align 1 .b8 name[3] = {{111, 107, 0}};\n{HEAD}\
         .local .align 8 .b8 box[24]; .reg .f64 %f;\nmov.f64 %f, 0d4002000000000000;\n\
         mov.u64 %a, box;\nst.local.u32 [%a], -7;\nst.local.f64 [%a+8], %f;\nmov.u64 %b, name;\ncvta.global.u64 %b, %b;\n\
         st.local.u64 [%a+16], %b;\ncvta.local.u64 %a, %a;\nmov.u64 %b, text;\ncvta.global.u64 %b, %b;\n\
         {{ .param .b64 f; .param .b64 a; .param .b32 r;\nst.param.b64 [f], %b;\nst.param.b64 [a], %a;\ncall.uni (r), vprintf, (f, a);\n\
         ld.param.b32 %x, [r];\n}}\nst.global.u32 [%io], %x;\nret;\n}}\n"
    );
    let (got, outcome) = outcome(&body, 1, 1).unwrap();
    assert_eq!((got[0], String::from_utf8(outcome.printed).unwrap().as_str()), (3, "-7 2.2 ok\n"));
}

#[test]
fn faults_name_the_line() {
    let run = |text: &str| fault(&format!("{HEAD}{text}\nret;\n}}\n"), 1);
    let beyond = run("st.global.u32 [%io+16], %t;");
    assert!(beyond.contains("out of bounds") && beyond.contains("line 9 of k"), "{beyond}");
    assert!(run("ld.global.u32 %x, [%io+2];").contains("misaligned global access of 4 bytes"));
    assert!(run("mov.u64 %a, 4096;\nld.shared.u32 %x, [%a];").contains("shared access of 4 bytes out of bounds"));
    assert!(run("trap;").contains("trap at line 9"));
    assert!(run("shfl.sync.idx.b32 %x, %t, 0, 31, 2;").contains("not in the mask"));
    let stuck = format!("{HEAD}setp.eq.u32 %p, %t, 0;\n@%p bar.warp.sync -1;\n@!%p bar.warp.sync 3;\nret;\n}}\n");
    assert!(fault(&stuck, 2).contains("deadlock"));
}

/// Faults have the simulator's kinds, with line, lane and address; a launch is aborted after the
/// given number of instructions.
#[test]
fn faults_have_kind_and_place() {
    let fault = |text: &str, limit: u64| {
        let source = format!(".version 9.0\n.target sm_90\n.address_size 64\n{HEAD}{text}\nret;\n}}\n");
        let module = parse(source.as_bytes()).0.expect("a module");
        let mut args = [ArgValue::Buffer { bytes: vec![0; 128], writable: true }];
        let shape = Shape { grid: [1; 3], block: [32, 1, 1], smem: 0 };
        let (outcome, done) = run_within(&module, "k", shape, &mut args, limit);
        (outcome.instructions, done.expect_err("a fault"))
    };
    let endless = "again:\nadd.u32 %x, %x, 1;\nbra again;";
    let (instructions, stopped) = fault(endless, 5000);
    assert_eq!((instructions, stopped.kind), (5000, Kind::StepLimit));
    for (text, kind, lane, about) in [
        // Each thread may execute 2048 instructions before the next one runs.
        (endless, Kind::StepLimit, 100_000 / 2048 % 32, false),
        ("setp.eq.u32 %p, %t, 5;\n@%p trap;", Kind::Trap, 5, false),
        ("st.global.u32 [%io+256], %t;", Kind::OutOfBounds, 0, true),
        ("ld.global.u32 %x, [%io+2];", Kind::Misaligned, 0, true),
        ("setp.eq.u32 %p, %t, 0;\n@%p bar.warp.sync -1;\n@!%p bar.sync 0;", Kind::Deadlock, 0, false),
        ("bar.sync 0, 64;", Kind::Deadlock, 0, false),
    ] {
        let (_, fault) = fault(text, 100_000);
        let place = fault.place.expect("a place");
        assert_eq!((fault.kind, fault.lane, fault.address.is_some()), (kind, Some(lane), about), "{fault}");
        assert_eq!((place.block, place.warp, place.pc), ([0; 3], 0, None), "{fault}");
        assert!(fault.source.as_ref().is_some_and(|source| source.line >= 9), "{fault}");
    }
}

#[test]
fn windows_and_parameters() {
    let body = format!(
        ".const .align 4 .b32 c[2] = {{7, 8}};\n.shared .align 4 .b32 s;\n{HEAD}.local .align 4 .b32 l;\n\
         mov.u32 %x, 5;\nst.shared.u32 [s], %x;\ncvta.shared.u64 %a, s;\nld.u32 %y, [%a];\nmov.u64 %b, l;\ncvta.local.u64 %b, %b;\n\
         st.u32 [%b], %y;\nld.local.u32 %x, [l];\ncvta.const.u64 %a, c;\nld.u32 %y, [%a+4];\nadd.u32 %x, %x, %y;\n\
         isspacep.shared %p, %b;\n@%p add.u32 %x, %x, 1000;\nisspacep.local %p, %b;\n@%p add.u32 %x, %x, 100;\n\
         st.global.u32 [%io], %x;\nret;\n}}\n"
    );
    assert_eq!(words(&body, 1, 1), [113]);
}
