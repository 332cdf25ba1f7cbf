//! The same input gives the same bytes, whatever the file's name, directory and time of
//! compilation.

use std::path::Path;
use std::process::Command;

fn compile(source: &str, folder: &Path, name: &str, target: &str) -> Vec<u8> {
    std::fs::create_dir_all(folder).unwrap();
    let input = folder.join(name);
    let output = folder.join(format!("{name}.out"));
    std::fs::write(&input, source).unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_sassafras"))
        .arg(format!("-arch={target}"))
        .args([&input, Path::new("-o"), &output])
        .current_dir(folder)
        .status()
        .unwrap();
    assert!(status.success(), "{name} for {target}");
    std::fs::read(output).unwrap()
}

#[test]
fn names_places_and_times_leave_no_trace() {
    let temp = tempfile::tempdir().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/exec");
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|p| p.extension().is_some_and(|e| e == "ptx"));
    names.sort();
    assert!(!names.is_empty());
    for path in names {
        let source = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let own = source.lines().find_map(|l| l.strip_prefix(".target ")).unwrap();
        let own = own.split(',').next().unwrap_or(own);
        // A module of a base architecture also compiles for a later one; any other only for its own
        // target.
        let number = own.trim().trim_start_matches("sm_").parse::<u32>();
        let target = if number.is_ok_and(|n| n <= 90) { "sm_90" } else { own.trim() };
        let first = compile(&source, &temp.path().join("a"), name, target);
        let second = compile(&source, &temp.path().join("b/deeper"), "other name.ptx", target);
        assert_eq!(first, second, "{name}");
    }
}

/// Several threads give the bytes, resources and dumps of one, in the same order.
#[test]
fn the_number_of_threads_leaves_no_trace() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/exec");
    let mut several = 0;
    for name in ["many_kernels", "calls", "convert", "small_programs", "warp_neighbours", "stack_calls"] {
        let source = std::fs::read_to_string(folder.join(format!("{name}.ptx"))).unwrap();
        let compiled = |threads: usize, relocatable: bool| {
            let all = || vec!["all".to_string()];
            let options =
                sassafras::Options { threads, relocatable, dump_after: all(), ..sassafras::Options::new("sm_90") };
            let output = sassafras::compile(&source, &options).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
            let counts: Vec<_> = output.records.iter().map(|r| (r.functions, r.before, r.after)).collect();
            (output.cubin, output.functions, output.dumps, counts, format!("{:?}", output.diagnostics))
        };
        for relocatable in [false, true] {
            let one = compiled(1, relocatable);
            several += usize::from(one.1.len() > 2);
            for threads in [2, 3, 16] {
                assert!(compiled(threads, relocatable) == one, "{name} with {threads} threads");
            }
        }
    }
    assert!(several > 4, "{several} of these have more than two functions");
}

/// With `--jobserver` the jobs that make has left are taken for the time of the compilation, and
/// the cubin is the same.
#[test]
#[cfg(target_os = "linux")]
fn jobs_of_make_are_given_back() {
    use std::io::{Read, Write};
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("jobs");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let mut pipe = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    pipe.write_all(b"abc").unwrap();
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/exec/many_kernels.ptx");
    let flags = format!(" -j4 --jobserver-auth=fifo:{}", path.display());
    let cubin = |options: &[&str], flags: &str| {
        let output = temp.path().join("k.cubin");
        let mut command = Command::new(env!("CARGO_BIN_EXE_sassafras"));
        command.arg("-arch=sm_90").args(options).args([&input, Path::new("-o"), &output]).env("MAKEFLAGS", flags);
        assert!(command.status().unwrap().success(), "{options:?} {flags}");
        std::fs::read(output).unwrap()
    };
    let one = cubin(&[], "");
    for (options, flags) in [(&["--jobserver"][..], flags.as_str()), (&["--jobserver", "--split-compile=3"], &flags)] {
        assert_eq!(one, cubin(options, flags), "{options:?}");
    }
    for (options, flags) in [(&["--jobserver"][..], ""), (&["--split-compile=4"], ""), (&["--split-compile=0"], "")] {
        assert_eq!(one, cubin(options, flags), "{options:?}");
    }
    let mut bytes = [0; 3];
    pipe.read_exact(&mut bytes).unwrap();
    bytes.sort();
    assert_eq!(&bytes, b"abc", "all jobs are back");
}
