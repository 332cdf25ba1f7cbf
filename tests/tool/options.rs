//! The command line: the options and messages of ptxas, and its equivalence with a library call.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const ONE: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry one() { ret; }\n";
const TWO: &str = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry two() { ret; }\n";
const BAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\nfrob;\nret;\n}\n";

/// A folder with three files, and a check of what remains in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        for (name, text) in [("one.ptx", ONE), ("two.ptx", TWO), ("bad.ptx", BAD), ("rec", "-optf rec")] {
            std::fs::write(place.0.path().join(name), text).unwrap();
        }
        place
    }

    fn run(&self, line: &str) -> Output {
        self.run_as(Path::new(env!("CARGO_BIN_EXE_sassafras")), line)
    }

    fn run_as(&self, program: &Path, line: &str) -> Output {
        let mut child = Command::new(program)
            .args(line.split(' '))
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The program may exit without reading its input.
        _ = child.stdin.take().unwrap().write_all(ONE.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn cubin(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.0.path().join(name)).ok()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn spellings_give_the_same_cubin() {
    let place = Place::new();
    let library = sassafras::compile(ONE, &sassafras::Options::new("sm_90")).unwrap().cubin;
    for line in [
        "-arch=sm_90 one.ptx -o k",
        "-arch sm_90 -O3 -m64 one.ptx -o=k",
        "--gpu-name=sm_90 --output-file k --opt-level=3 -w one.ptx",
        "--gpu-name sm_90 --split-compile=4 --machine 64 -o k -",
    ] {
        _ = std::fs::remove_file(place.0.path().join("k"));
        let output = place.run(line);
        assert!(output.status.success(), "{line}: {}", said(&output));
        assert_eq!(place.cubin("k").as_ref(), Some(&library), "{line}");
    }
    assert!(place.run("-arch=sm_90 one.ptx").status.success());
    assert_eq!(place.cubin("elf.o"), Some(library));
}

/// The calls of Triton, XLA, Julia's CUDA.jl and clang.
#[test]
fn callers_of_ptxas_are_understood() {
    let place = Place::new();
    for line in [
        "-lineinfo -v --regAllocOptLevel=2 --gpu-name=sm_90a one.ptx -o k",
        "-lineinfo -v --fmad=false --opt-level 0 --gpu-name=sm_90a one.ptx -o k",
        "one.ptx -o k -arch=sm_90a --warn-on-spills -v -O2",
        "--verbose --gpu-name sm_90 --output-file k one.ptx --compile-only",
        "-m64 -O3 --gpu-name sm_90 --output-file k one.ptx -c",
        "-m64 -O0 --dont-merge-basicblocks --return-at-end -v --gpu-name sm_90 --output-file k one.ptx",
    ] {
        _ = std::fs::remove_file(place.0.path().join("k"));
        let output = place.run(line);
        assert!(output.status.success() && place.cubin("k").is_some(), "{line}: {}", said(&output));
    }
}

#[test]
fn several_files_become_one_cubin() {
    let place = Place::new();
    let output = place.run("-arch=sm_90 -v one.ptx two.ptx -o k");
    let names: Vec<String> =
        said(&output).lines().filter_map(|l| l.split("entry function '").nth(1)).map(|l| l[..3].to_string()).collect();
    assert_eq!(names, ["two", "one"], "{}", said(&output));
    let output = place.run("-arch=sm_90 --ptxas-compat one.ptx one.ptx -o l");
    let want = "ptxas one.ptx, line 4; error   : Duplicate definition of function 'one'\n\
                ptxas fatal   : Ptx assembly aborted due to errors\n";
    assert_eq!((said(&output).as_str(), output.status.code(), place.cubin("l")), (want, Some(255), None));
}

/// `-o /dev/null` once replaced the device: an output that is not a regular file is written in
/// place, and a link is followed.
#[test]
fn an_output_that_is_no_file_stays_what_it_is() {
    use std::os::unix::fs::FileTypeExt;
    let place = Place::new();
    assert!(place.run("-arch=sm_90 one.ptx -o k").status.success());
    let cubin = place.cubin("k").unwrap();
    let at = |name: &str| place.0.path().join(name);

    let pipe = std::ffi::CString::new(at("pipe").to_str().unwrap()).unwrap();
    // SAFETY: the name is a C string that lives through the call.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    // Held open for reading and writing, so that neither side blocks; the cubin fits into the
    // pipe's buffer.
    let mut held = std::fs::OpenOptions::new().read(true).write(true).open(at("pipe")).unwrap();
    assert!(place.run("-arch=sm_90 one.ptx -o pipe").status.success());
    assert!(at("pipe").symlink_metadata().unwrap().file_type().is_fifo());
    let mut read = vec![0; cubin.len()];
    std::io::Read::read_exact(&mut held, &mut read).unwrap();
    assert!(read == cubin);

    std::fs::write(at("old"), "old").unwrap();
    std::os::unix::fs::symlink("old", at("link")).unwrap();
    assert!(place.run("-arch=sm_90 one.ptx -o link").status.success());
    assert!(at("link").symlink_metadata().unwrap().is_symlink());
    assert!(place.cubin("old").unwrap() == cubin);

    std::fs::create_dir(at("folder")).unwrap();
    let refused = place.run("-arch=sm_90 one.ptx -o folder");
    assert!(!refused.status.success() && said(&refused).contains("Output file 'folder' could not be opened"));
}

#[test]
fn a_program_called_ptxas_speaks_like_it() {
    let place = Place::new();
    let named = Path::new(env!("CARGO_BIN_EXE_ptxas"));
    let ptxas = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/vendor/ptxas");
    for line in [
        "-arch=sm_90 bad.ptx -o k",
        "-arch=sm_90 missing.ptx -o k",
        "-arch=sm_99 one.ptx -o k",
        "-arch=sm_75 one.ptx -o k",
        "-arch=sm_90 -bogus one.ptx",
        "-arch=sm_90 -e nope one.ptx -o k",
        "-arch=sm_90 -Werror -maxrregcount=3 one.ptx -o k",
        "-arch=sm_90 one.ptx -o /no/such/folder/k",
        "-arch=sm_90 missing.ptx gone.ptx -o k",
        "-arch=sm_90 -dlcm=wb one.ptx -o k",
        "-arch=sm_90 -dlcm=xx -fscm=lu -maxrregcount=3 one.ptx -o k",
        "-arch=sm_90 -Ofc=mid -O3 one.ptx -o k",
        "-arch=sm_90 -Ofc=max -O1 one.ptx -o k",
        "-arch=sm_90 -optf rec one.ptx -o k",
        "-arch=sm_90 -O 2 one.ptx -o k",
        "-arch one.ptx -o k",
    ] {
        let output = place.run_as(named, line);
        assert_eq!((output.status.code(), place.cubin("k")), (Some(255), None), "{line}");
        if ptxas.exists() {
            assert_eq!(said(&output), said(&place.run_as(&ptxas, line)), "{line}");
        }
    }
    // Accepted options, and the number of message lines about each.
    for (line, count) in [
        ("-func-maxrregcount=32", 1),
        ("-func-maxrregcount=32 -c", 0),
        ("-legacy-bar-warp-wide-behavior", 2),
        ("-suppress-debug-info", 1),
        ("-suppress-debug-info -lineinfo", 0),
        ("-maxntid=1,2,3,4", 1),
        ("-maxntid=foo", 0),
        ("-maxntid=32 -maxntid=2", 0),
        ("-maxrregcount=0x20", 0),
        ("-maxrregcount=32 -maxntid=32 -minnctapersm=2", 2),
        ("-Ofc=mid -O1", 0),
        ("-dlcm=lu -fscm=wt", 0),
        ("-O", 0),
    ] {
        let line = format!("-arch=sm_90 {line} one.ptx -o ok");
        let output = place.run_as(named, &line);
        assert!(output.status.success() && place.cubin("ok").is_some(), "{line}: {}", said(&output));
        assert_eq!(said(&output).lines().count(), count, "{line}: {}", said(&output));
        if ptxas.exists() {
            assert_eq!(said(&output), said(&place.run_as(&ptxas, &line)), "{line}");
        }
    }
    let output = place.run_as(named, "-arch=compute_90 one.ptx -o k");
    assert_eq!((output.status.code(), place.cubin("k")), (Some(0), None));
}

#[test]
fn errors_show_the_place() {
    let output = Place::new().run("-arch=sm_90 bad.ptx -o k");
    let want = "bad.ptx, line 5; error   : Not a name of any known instruction: 'frob'\n    5:1 | frob;\n        | ^\n\
                sassafras fatal   : Ptx assembly aborted due to errors\n";
    assert_eq!(said(&output), want);
}

/// Without an input, the help is printed as by ptxas, unless the target is invalid.
#[test]
fn options_alone_print_the_help() {
    let place = Place::new();
    for line in ["-arch=sm_90", "-o k", "-arch=sm_90 -v"] {
        let output = place.run(line);
        assert!(output.status.success() && said(&output).is_empty(), "{line}: {}", said(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("--gpu-name"), "{line}");
    }
}

#[test]
fn the_version_is_what_callers_look_for() {
    let place = Place::new();
    let text = |line: &str| String::from_utf8(place.run(line).stdout).unwrap();
    let newest = text("--version");
    assert!(newest.contains("release 13.5, V13.5.37") && newest.contains("sassafras"), "{newest}");
    assert!(text("--toolkit=13.0 --version").contains("release 13.0, V13.0.88"));
    let link = place.0.path().join("ptxas-13.0");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sassafras"), &link).unwrap();
    let output = place.run_as(&link, "--version");
    assert!(String::from_utf8(output.stdout).unwrap().contains("release 13.0, V13.0.88"));
    assert!(said(&place.run_as(&link, "-arch=sm_90 bad.ptx -o k")).starts_with("ptxas bad.ptx, line"));
}

/// Options that ptxas 13.5 has and 13.0 does not: each acts, is accepted or is refused, in its
/// words where it is there.
#[test]
fn options_of_13_5_act_or_are_refused() {
    let place = Place::new();
    let link = place.0.path().join("ptxas");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sassafras"), &link).unwrap();
    let newest = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/vendor/13.5/ptxas");
    for line in [
        "--position-independent-code=true",
        "-pic=true -suppress-position-independent-code-warning",
        "-pic=true -w",
        "-enable-func-clone-sc=true",
        "-enable-func-clone-sc=true -c",
        "-jobserver",
    ] {
        let line = format!("-arch=sm_90 {line} one.ptx -o ok");
        let output = place.run_as(&link, &line);
        assert!(output.status.success() && place.cubin("ok").is_some(), "{line}: {}", said(&output));
        if newest.exists() {
            assert_eq!(said(&output), said(&place.run_as(&newest, &line)), "{line}");
        }
    }
    // 13.0 warns of none of them.
    assert!(said(&place.run("--toolkit=13.0 -arch=sm_90 -pic=true one.ptx -o ok")).is_empty());
    let refused = place.run("-arch=sm_90 -apply-controls=file one.ptx -o no");
    assert!(!refused.status.success() && said(&refused).contains("apply-controls"), "{}", said(&refused));
    assert!(said(&place.run("-arch=sm_90 -v2 one.ptx -o ok")).contains("info    : Processing"));
    let listed = |program: &Path, line: &str| {
        let text = String::from_utf8(place.run_as(program, line).stdout).unwrap();
        text.lines().map(|l| l.parse().unwrap()).collect::<std::collections::BTreeSet<u32>>()
    };
    let ours = listed(&link, "--list-arch");
    assert!(ours.contains(&75) && ours.contains(&107) && ours == listed(&link, "-arch-ls"));
    if newest.exists() {
        assert_eq!(ours, listed(&newest, "--list-arch"));
    }
}

#[test]
fn options_files_are_read() {
    let place = Place::new();
    std::fs::write(place.0.path().join("opts"), "-arch=sm_90\n--opt-level 2 -o 'k'").unwrap();
    assert!(place.run("-optf opts one.ptx").status.success());
    assert!(place.cubin("k").is_some());
}

#[test]
fn threads_may_compile_at_the_same_time() {
    let compiled = |_| sassafras::compile(TWO, &sassafras::Options::new("sm_80")).unwrap().cubin;
    let handles: Vec<_> = (0..4).map(|i| std::thread::spawn(move || compiled(i))).collect();
    let cubins: Vec<Vec<u8>> = handles.into_iter().map(|h| h.join().unwrap()).collect();
    assert!(cubins.windows(2).all(|pair| pair[0] == pair[1]));
}

/// The warnings of ptxas about a module, word for word and in its order.
#[test]
fn warnings_are_ptxas() {
    let place = Place::new();
    let head = ".version 6.3\n.target sm_60\n.address_size 64\n";
    let entry =
        |name: &str, before: &str, inner: &str| format!(".visible .entry {name}() {before} {{ {inner} ret; }}\n");
    let used = ".reg .pred p; vote.all.pred p, p; .loc 1 1 1\n";
    let text = head.to_string()
        + ".func f() { .pragma \"deep\"; ret; }\n.func unused() { .pragma \"dead\"; ret; }\n"
        + &entry("k", ".maxnreg 300 .pragma \"one\";", ".pragma \"nounroll\", \"two\"; call f;")
        + &entry("few", ".maxnreg 5", used);
    std::fs::write(place.0.path().join("w.ptx"), text).unwrap();
    let ptxas = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/vendor/ptxas");
    for (line, count) in [("-arch=sm_75 w.ptx -o k", 8), ("-arch=sm_75 -w w.ptx -o k", 0)] {
        let ours = place.run(&format!("--ptxas-compat {line}"));
        assert!(ours.status.success());
        let words = said(&ours);
        assert_eq!(words.lines().count(), count, "{words}");
        if ptxas.exists() {
            assert_eq!(words, said(&place.run_as(&ptxas, line)), "{line}");
        }
    }
    let refused = place.run("--ptxas-compat -Werror -arch=sm_75 w.ptx -o k2");
    assert!(!refused.status.success() && place.cubin("k2").is_none(), "{}", said(&refused));
}

/// A list option may be repeated without a warning, and all values count; of other options the last
/// value counts, with a warning.
#[test]
fn lists_may_be_given_several_times() {
    let place = Place::new();
    let two = ONE.replace("ret; }", "ret; }\n.visible .entry other() { ret; }");
    std::fs::write(place.0.path().join("two.ptx"), two).unwrap();
    for line in ["-e one -e other", "--knob 464=0 --knob 487=0", "--knob 464=0,487=0", "--knob 464=0 --knob 464=1"] {
        let output = place.run(&format!("-arch=sm_90 -Werror {line} two.ptx -o k"));
        assert!(output.status.success() && said(&output).is_empty(), "{line}: {}", said(&output));
    }
    // The second value is checked, too.
    let output = place.run("-arch=sm_90 --knob 464=0 --knob NoSuchKnob=1 one.ptx -o k");
    assert!(!output.status.success() && said(&output).contains("Knob 'NoSuchKnob' is not known"), "{}", said(&output));
    let output = place.run("-arch=sm_90 -dlcm ca -dlcm cg one.ptx -o k");
    let last = "incompatible redefinition for option 'def-load-cache', the last value of this option was used";
    assert!(output.status.success() && said(&output).contains(last), "{}", said(&output));
}
