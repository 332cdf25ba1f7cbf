//! Objects of two compilers, linked by nvlink and run on the simulator.
//!
//! The input is every NAME.ron under `tests/cases/linking`, with NAME.caller.ptx, which has the
//! kernels, and NAME.callee.ptx. On six targets, all four combinations of our objects and ptxas's
//! must link with nvlink and give the literal values on the simulator. If ptxas or nvlink is
//! missing, the test says so and stops.

use sassafras::compile::{Options, compile};
use sassafras::sim::launch::LaunchFile;
use sassafras::sim::run::{How, Shape, run, run_as};
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGETS: [&str; 6] = ["sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"];

/// Cases whose caller ptxas 13.0.88 compiles incorrectly: it keeps `alloca` memory in registers
/// although its address is passed to a function.
const NOT_THEIR_CALLER: [&str; 1] = ["stack"];

/// Programs that ptxas cannot compile to objects; neither do we.
const NO_OBJECTS: [&str; 2] = ["calls_without_abi", "several_results"];

/// Programs that this compiler refuses by name as objects: references of textures.
const NOT_YET: [&str; 3] = ["references", "samplers", "textures_addressed"];

/// Which compiler compiles which half.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Maker {
    We,
    They,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Whether the list in an environment variable, if set, includes a name.
fn wanted(variable: &str, name: &str) -> bool {
    std::env::var(variable).map_or(true, |list| list.split(',').any(|item| item == name))
}

fn cases() -> Vec<String> {
    let entries = std::fs::read_dir(root().join("tests/cases/linking")).unwrap();
    let paths = entries.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "ron"));
    let mut names: Vec<String> = paths.map(|p| p.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Runs one of NVIDIA's tools. The error is its output.
fn tool(name: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(root().join("target/vendor").join(name)).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    if output.status.success() { Ok(()) } else { Err(format!("{name}: {} {text}", output.status)) }
}

/// Compiles one object. The error is the compiler's message.
fn object(maker: Maker, source: &Path, target: &str, out: &Path) -> Result<(), String> {
    if maker == Maker::They {
        let (source, out) = (source.to_string_lossy(), out.to_string_lossy());
        return tool("ptxas", &["-c", "-arch", target, &source, "-o", &out]);
    }
    let text = std::fs::read_to_string(source).unwrap();
    let options = Options { relocatable: true, verify_ir: true, ..Options::new(target) };
    let made = compile(&text, &options).map_err(|diagnostics| {
        let name = source.file_name().unwrap_or_default().to_string_lossy();
        diagnostics.iter().map(|d| d.render(&name, &text)).collect::<String>()
    })?;
    std::fs::write(out, made.cubin).map_err(|error| error.to_string())
}

/// Compiles both halves, links them and runs every launch.
fn linked(name: &str, target: &str, makers: [Maker; 2], folder: &Path) -> Result<(), String> {
    let cases = root().join("tests/cases/linking");
    let file = LaunchFile::load(&cases.join(format!("{name}.ron"))).map_err(|error| error.to_string())?;
    let objects: Vec<PathBuf> = ["caller", "callee"].iter().map(|half| folder.join(format!("{half}.o"))).collect();
    for ((half, maker), out) in ["caller", "callee"].iter().zip(makers).zip(&objects) {
        object(maker, &cases.join(format!("{name}.{half}.ptx")), target, out)?;
    }
    // The latency tables are more conservative than ptxas, whose code therefore runs without
    // timing.
    run_linked(&file, &objects, target, folder, makers == [Maker::We; 2])
}

/// Links objects and runs every launch of a description, with timing if all code is ours.
fn run_linked(file: &LaunchFile, objects: &[PathBuf], target: &str, folder: &Path, timed: bool) -> Result<(), String> {
    let cubin = folder.join("linked.cubin");
    let mut arguments = vec!["-arch".to_string(), target.to_string()];
    arguments.extend(objects.iter().map(|p| p.to_string_lossy().into_owned()));
    arguments.extend(["-o".to_string(), cubin.to_string_lossy().into_owned()]);
    tool("nvlink", &arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
    let bytes = std::fs::read(&cubin).map_err(|error| error.to_string())?;
    for launch in file.launches.iter().filter(|launch| launch.wants(target)) {
        let shape = Shape { grid: launch.grid, block: launch.block, smem: launch.smem };
        let mut values = launch.arg_values();
        let how = How { timed, ..How::default() };
        let ran = run_as(&bytes, &launch.kernel, shape, &mut values, how).and_then(|outcome| outcome.clean());
        ran.map_err(|fault| fault.to_string())?;
        let shown = |all: Vec<sassafras::sim::launch::Difference>| {
            all.iter().map(|d| d.to_string()).collect::<Vec<_>>().join("; ")
        };
        launch.check(&values).map_err(shown)?;
    }
    Ok(())
}

/// `SASSAFRAS_CASE` and `SASSAFRAS_SM` (lists) narrow the run.
#[test]
fn objects_of_two_compilers_work_together() {
    for needed in ["ptxas", "nvlink"] {
        if !root().join("target/vendor").join(needed).exists() {
            println!("skipped: target/vendor/{needed} is missing");
            return;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for name in cases().iter().filter(|name| wanted("SASSAFRAS_CASE", name)) {
        for target in TARGETS.into_iter().filter(|target| wanted("SASSAFRAS_SM", target)) {
            for (makers, who) in [
                ([Maker::We, Maker::They], "our caller, their callee"),
                ([Maker::They, Maker::We], "their caller, our callee"),
                ([Maker::We, Maker::We], "both ours"),
                ([Maker::They, Maker::They], "both theirs"),
            ] {
                if makers[0] == Maker::They && NOT_THEIR_CALLER.contains(&name.as_str()) {
                    continue;
                }
                count += 1;
                if let Err(message) = linked(name, target, makers, folder.path()) {
                    wrong.push(format!("{name} {target}, {who}: {message}"));
                }
            }
        }
    }
    println!("{} of {count} links ran", count - wrong.len());
    assert!(wrong.is_empty(), "{} of {count} went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The kernels of `tests/cases/exec` as objects, each linked alone.
#[test]
fn whole_programs_as_objects_give_the_same_numbers() {
    if !root().join("target/vendor/nvlink").exists() {
        println!("skipped: target/vendor/nvlink is missing");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let entries = std::fs::read_dir(root().join("tests/cases/exec")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "ron"));
    paths.sort();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let file = LaunchFile::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let all = ["sm_75", "sm_90", "sm_100", "sm_120"];
        // What only the newest of a generation have, on that one.
        let only = Some("sm_100a").filter(|t| file.allows(t) && !file.allows("sm_100"));
        let targets = all.into_iter().chain(only).filter(|t| wanted("SASSAFRAS_SM", t) && file.allows(t));
        for target in targets.filter(|_| wanted("SASSAFRAS_CASE", &name)) {
            // Functions with several results have no ABI, and therefore no objects.
            if NO_OBJECTS.contains(&name.as_str()) || NOT_YET.contains(&name.as_str()) {
                continue;
            }
            count += 1;
            let out = folder.path().join("whole.o");
            let ran = object(Maker::We, &file.module, target, &out)
                .and_then(|()| run_linked(&file, std::slice::from_ref(&out), target, folder.path(), true));
            wrong.extend(ran.err().map(|message| format!("{name} {target}: {message}")));
        }
    }
    println!("{} of {count} programs ran", count - wrong.len());
    assert!(wrong.is_empty(), "{} of {count} went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Undefined symbols are reported by the linker; without `-c` they are our error.
#[test]
fn an_unresolved_function_is_an_error_only_without_an_object() {
    let source = std::fs::read_to_string(root().join("tests/cases/linking/variables.caller.ptx")).unwrap();
    let whole = compile(&source, &Options::new("sm_90")).unwrap_err();
    assert!(whole.iter().any(|d| d.message.contains("callee")), "{whole:?}");
    let object = Options { relocatable: true, ..Options::new("sm_90") };
    assert!(compile(&source, &object).is_ok());
    let here = source.replace(".extern .func", ".func");
    let missing = compile(&here, &object).unwrap_err();
    assert!(missing.iter().any(|d| d.message == "Unresolved extern function 'callee'"), "{missing:?}");
}

/// Symbols that an object leaves to the linker are local in a whole program, with the warning of
/// ptxas.
#[test]
fn an_unresolved_variable_is_taken_over_with_a_warning() {
    let text = ".version 7.0\n.target sm_75\n.address_size 64\n.extern .global .u32 far;\n.visible .entry k(.param .u64 p)\n{\n\
                .reg .b64 %rd<2>;\n.reg .b32 %r<2>;\nld.param.u64 %rd1, [p];\nld.global.u32 %r1, [far];\n\
                add.u32 %r1, %r1, 3;\nst.global.u32 [%rd1], %r1;\nret;\n}\n";
    let output = compile(text, &Options::new("sm_75")).unwrap();
    let messages: Vec<&str> = output.diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(messages, ["Unresolved extern variable 'far' in whole program compilation, ignoring extern qualifier"]);
    let mut values = [sassafras::sim::launch::ArgValue::Buffer { bytes: vec![9; 4], writable: true }];
    run(&output.cubin, "k", Shape { grid: [1; 3], block: [1; 3], smem: 0 }, &mut values).unwrap();
    let sassafras::sim::launch::ArgValue::Buffer { bytes, .. } = &values[0] else { unreachable!() };
    assert_eq!(bytes, &[3, 0, 0, 0]);
    let object = compile(text, &Options { relocatable: true, ..Options::new("sm_75") }).unwrap();
    assert!(object.diagnostics.is_empty(), "{:?}", object.diagnostics);
}
