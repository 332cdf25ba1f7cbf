//! `--shader-info FILE` on the command line: what it makes, what a wrong file says, and that
//! `sassafras run` honours it.

use std::path::Path;
use std::process::{Command, Output};

/// Files of a folder, and a call there.
struct Place(tempfile::TempDir);

impl Place {
    fn new(info: &str) -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/exec");
        std::fs::copy(cases.join("shader_constants.ptx"), place.0.path().join("k.ptx")).unwrap();
        std::fs::write(place.0.path().join("host.txt"), info).unwrap();
        std::fs::write(place.0.path().join("words"), (0..96).collect::<Vec<u8>>()).unwrap();
        place
    }

    fn call(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sassafras"));
        command.args(line.split(' ')).current_dir(self.0.path()).output().unwrap()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const HOST: &str = "bank 2 capacity 64\n";
const COMPILE: &str = "-arch=sm_80 --shader-info host.txt k.ptx -o k.cubin";

#[test]
fn a_wrong_file_is_shown_with_line_column_and_caret() {
    let place = Place::new("# the host\nbank 3 capacity 64\nkernel\n");
    let expected = "host.txt, line 2; error   : Nothing is extracted to bank 3; it must be 2\n    2:6 | bank 3 capacity 64\n        |      ^\n\
                    host.txt, line 3; error   : The name of a kernel is missing\n    3:7 | kernel\n        |       ^\n";
    for line in [COMPILE, "run --kernel shader_constants --grid 1 --block 1 --shader-info host.txt k.ptx"] {
        let output = place.call(line);
        assert!(!output.status.success());
        assert!(said(&output).starts_with(expected), "{}", said(&output));
    }
    assert!(!place.0.path().join("k.cubin").exists());
    let missing = place.call("-arch=sm_80 --shader-info none.txt k.ptx");
    assert!(said(&missing).contains("'none.txt' could not be opened"));
}

#[test]
fn objects_and_debug_information_are_refused() {
    let place = Place::new(HOST);
    for more in ["-c", "-g"] {
        let output = place.call(&format!("{COMPILE} {more}"));
        assert!(said(&output).contains("Option 'shader-info' is refused"), "{more}: {}", said(&output));
    }
}

#[test]
fn phases_say_what_they_did_and_knobs_are_known() {
    let place = Place::new(HOST);
    let output = place.call(&format!("{COMPILE} --print-phases --verify-ir --knob 453=100,488=1,489=1"));
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for (phase, pass) in
        [("ExtractShaderConstsFirst", "shader_constants "), ("ExtractShaderConstsFinal", "shader_constants.2 ")]
    {
        let mut lines = text.lines().skip_while(|line| !line.ends_with(phase));
        assert!(lines.nth(1).unwrap().trim().starts_with(pass), "{text}");
    }
}

#[test]
fn a_run_patches_what_a_cubin_or_a_text_asks_for() {
    let place = Place::new(HOST);
    assert!(place.call(COMPILE).status.success());
    let run = "run --kernel shader_constants --grid 3 --block 8 --arg inout:words:OUT --arg s32:-7 --arg s32:3 --gpu-name sm_80";
    for (i, rest) in ["k.cubin", "k.ptx", "k.ptx --shader-info host.txt", "k.ptx --engine ptx"].into_iter().enumerate()
    {
        let output = place.call(&format!("{} {rest}", run.replace("OUT", &format!("out{i}"))));
        assert!(output.status.success(), "{rest}: {}", said(&output));
    }
    let result = |i: usize| std::fs::read(place.0.path().join(format!("out{i}"))).unwrap();
    assert_ne!(result(0), std::fs::read(place.0.path().join("words")).unwrap());
    assert_eq!([result(0), result(1), result(2)], [result(3), result(3), result(3)]);
}
