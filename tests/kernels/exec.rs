//! Kernels with launches and literal expected values, under `tests/cases/exec`.
//!
//! The input is every NAME.ron there and the PTX file that it names. Our cubins must give the
//! values on the simulator, on eleven targets; the values must equal those of the reference
//! implementations (`expected.py`); ptxas must accept every module for every target. If Python or
//! ptxas is missing, the test says so and skips that part.
//!
//! By default a module takes one target of each group (`support/turns.rs`), and the architecture
//! that it is for alone; `SASSAFRAS_ORACLE=all` takes every target.

use crate::simulate_ptxas_support::each;
use crate::{ours, ptxas, turns, vendor};
use sassafras::compile::{Options, compile};
use sassafras::sim::launch::LaunchFile;
use sassafras::sim::run::{How, Shape, run, run_as};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// The targets that a module allows and one of its launches wants, one of each group in turn, and
/// its own if that is not a base architecture.
fn targets_of(file: &LaunchFile) -> Vec<String> {
    let own = file.own_target().filter(|own| !own.ends_with(|c: char| c.is_ascii_digit()));
    let fits = |sm: &str| {
        let target = format!("sm_{sm}");
        file.allows(&target) && file.launches.iter().any(|launch| launch.wants(&target))
    };
    turns::of(&file.module, fits).into_iter().map(|sm| format!("sm_{sm}")).chain(own).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All descriptions, by file name.
fn descriptions() -> Vec<(PathBuf, LaunchFile)> {
    let entries = std::fs::read_dir(root().join("tests/cases/exec")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "ron"));
    paths.sort();
    let load = |path: PathBuf| {
        let file = LaunchFile::load(&path).unwrap_or_else(|error| panic!("{error}"));
        (path, file)
    };
    paths.into_iter().map(load).collect()
}

#[test]
fn numbers_are_those_of_the_references() {
    let script = root().join("tests/cases/exec/expected.py");
    match Command::new("python3").arg(script).arg("--check").output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
        Err(error) => println!("skipped: python3: {error}"),
    }
}

#[test]
fn ptxas_accepts_every_module() {
    if vendor::tool("ptxas").is_none() {
        println!("skipped: target/vendor/ptxas is missing");
        return;
    }
    let cases = descriptions();
    let failures = each(&cases, |(_, file)| {
        let mut failures = String::new();
        let text = std::fs::read(&file.module).unwrap();
        for target in targets_of(file) {
            let Some(program) = ptxas_for(file, &target) else { continue };
            let answer = ptxas::ask(&program, &text, &[&format!("-arch={target}"), "-O3"]);
            let quiet = |l: &str| l.contains("warning : ") || l.contains(": Advisory: ");
            if answer.cubin.is_none() || !answer.said.lines().all(quiet) {
                failures += &format!("{} {target}: {}\n", file.module.display(), answer.said);
            }
        }
        failures
    });
    assert!(failures.concat().is_empty(), "{}", failures.concat());
}

/// The ptxas that knows the module's version and a target, where it is installed.
fn ptxas_for(file: &LaunchFile, target: &str) -> Option<PathBuf> {
    let text = std::fs::read_to_string(&file.module).unwrap();
    if text.lines().any(|l| l.strip_prefix(".version 9.").is_some_and(|minor| minor != "0")) {
        return vendor::tool(&format!("{}/ptxas", vendor::NEWEST));
    }
    vendor::tool_of("ptxas", target.trim_start_matches("sm_"))
}

/// The failures of one module on one target: compiled by us with the verifier on, perhaps with a
/// limit on registers, run on the simulator.
fn limited(file: &LaunchFile, name: &str, target: &str, max_registers: Option<u32>) -> Vec<String> {
    let source = std::fs::read_to_string(&file.module).unwrap();
    let made = match max_registers {
        None => ours::cubin(&source, target),
        Some(_) => Arc::new(ours::compiled(&source, Options { max_registers, ..Options::new(target) })),
    };
    let cubin = match made.as_ref() {
        Ok(cubin) => cubin,
        Err(diagnostics) => {
            let shown = diagnostics.iter().map(|d| d.render(name, &source)).collect::<String>();
            return vec![format!("{name} {target}: {shown}")];
        }
    };
    let mut wrong = Vec::new();
    for launch in file.launches.iter().filter(|l| l.wants(target)) {
        let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
        for jitter in std::iter::once(None).chain(seeds(file, name, target).map(Some)) {
            let mut values = launch.arg_values();
            let how = How { jitter, ..How::default() };
            let ran = run_as(cubin, &launch.kernel, shape, &mut values, how).and_then(|ran| ran.clean());
            let message = match ran {
                Err(fault) => fault.to_string(),
                Ok(_) => match launch.check(&values) {
                    Ok(()) => continue,
                    Err(differences) => differences.iter().map(|d| d.to_string()).collect::<Vec<_>>().join("; "),
                },
            };
            let seed = jitter.map_or(String::new(), |seed| format!(" seed {seed}"));
            wrong.push(format!("{name} {target} {}{seed}: {message}", launch.kernel));
        }
    }
    wrong
}

/// Seeds of the jittered runs: `SASSAFRAS_JITTER` of them, or by default one per case on one of
/// its targets.
fn seeds(file: &LaunchFile, name: &str, target: &str) -> std::ops::Range<u64> {
    let place = name.bytes().map(u64::from).sum::<u64>();
    let told = std::env::var("SASSAFRAS_JITTER").ok().and_then(|n| n.parse().ok());
    let own = targets_of(file);
    let turn = own[place as usize % own.len()] == target;
    100 * place..100 * place + told.unwrap_or(u64::from(turn))
}

fn wanted(variable: &str, name: &str) -> bool {
    std::env::var(variable).map_or(true, |list| list.split(',').any(|item| item == name))
}

/// Least number of modules that run on a target.
const LEAST: usize = 35;

/// `SASSAFRAS_CASE` and `SASSAFRAS_SM` (lists, such as `saxpy` and `sm_90`) narrow the run;
/// `SASSAFRAS_JITTER=10` adds ten jittered runs to each.
#[test]
fn our_cubins_give_the_expected_numbers() {
    let cases = descriptions();
    let own: Vec<String> = cases.iter().flat_map(|(_, file)| targets_of(file)).collect();
    turns::assert_covered(own.iter().map(|target| target.trim_start_matches("sm_")), LEAST);
    let wrong = each(&cases, |(path, file)| {
        let mut wrong = Vec::new();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if wanted("SASSAFRAS_CASE", &name) {
            for target in targets_of(file).iter().filter(|t| wanted("SASSAFRAS_SM", t)) {
                wrong.extend(limited(file, &name, target, None));
            }
        }
        wrong
    })
    .concat();
    assert!(wrong.is_empty(), "{} went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// A multiplication and an addition without explicit rounding are fused only if contraction is
/// enabled, as it is by default.
#[test]
fn contraction_is_the_callers_choice() {
    use sassafras::sim::launch::ArgValue;
    let text = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<2>;\n\
                .reg .f32 %f<4>;\nld.param.u64 %rd1, [p];\nld.global.v2.f32 {%f0, %f1}, [%rd1];\nmul.f32 %f2, %f0, %f0;\n\
                sub.f32 %f3, %f2, %f1;\nst.global.f32 [%rd1], %f3;\nret;\n}\n";
    // (1 + e)² = 1 + 2e + e²; rounding the product loses the last term.
    let e = f32::EPSILON;
    let input: Vec<u8> = [1.0 + e, 1.0 + 2.0 * e].iter().flat_map(|x: &f32| x.to_le_bytes()).collect();
    for (fmad, expected) in [(true, e * e), (false, 0.0)] {
        let output = compile(text, &Options { fmad, ..Options::new("sm_75") }).unwrap();
        let mut values = [ArgValue::Buffer { bytes: input.clone(), writable: true }];
        run(&output.cubin, "k", Shape { grid: [1; 3], block: [1; 3], smem: 0 }, &mut values).unwrap();
        let [ArgValue::Buffer { bytes, .. }] = &values else { unreachable!() };
        assert_eq!(f32::from_le_bytes(bytes[..4].try_into().unwrap()), expected, "fmad {fmad}");
    }
}

/// Every kernel with few registers; `SASSAFRAS_SM` adds targets to the default one,
/// `SASSAFRAS_CASE` narrows the kernels.
#[test]
fn few_registers_give_the_same_numbers() {
    let targets = std::env::var("SASSAFRAS_SM").unwrap_or("sm_90".to_string());
    let cases = descriptions();
    let wrong = each(&cases, |(path, file)| {
        let mut wrong = Vec::new();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        // An f64 matrix multiplication and the sum of a warp group hold more registers at once than
        // these limits allow; ptxas rejects them too.
        let tensors =
            ["tensor_chosen", "tensor_extremes", "tensor_memory", "tensor_pairs", "tensor_unit", "tensor_unit_107"];
        let large = ["matrix_products_double", "group_products"].iter().chain(&tensors).any(|large| *large == name);
        if wanted("SASSAFRAS_CASE", &name) && !large {
            let own = targets_of(file);
            let among: Vec<&str> = targets.split(',').filter(|t| own.iter().any(|own| own == t)).collect();
            for target in if among.is_empty() { vec![own[0].as_str()] } else { among } {
                for most in [24, 32, 64] {
                    let found = limited(file, &name, target, Some(most));
                    wrong.extend(found.into_iter().map(|w| format!("{most} registers: {w}")));
                }
            }
        }
        wrong
    })
    .concat();
    assert!(wrong.is_empty(), "{} went wrong:\n{}", wrong.len(), wrong.join("\n"));
}
