//! Limits of registers that launch bounds and options imply, as the cubin states them: the figures
//! of ptxas 13.0.88, which is asked again where it is there.

use crate::cubin_support::tool;
use sassafras::compile::{Options, compile};
use sassafras::cubin::read;
use std::process::Command;

/// Directives, `--maxrregcount`, and the limit that the cubin states.
const LIMITS: &[(&str, Option<u32>, Option<u16>)] = &[
    ("", None, None),
    ("", Some(32), Some(32)),
    (".maxnreg 40", Some(32), Some(40)),
    (".maxntid 768,1,1 .maxnreg 40", Some(32), Some(40)),
    // Threads alone imply a limit, and an option does not count beside them.
    (".maxntid 128,1,1", Some(32), None),
    (".maxntid 1024,1,1", Some(32), Some(64)),
    (".maxntid 1024,1,1", None, Some(64)),
    (".reqntid 768,1,1", Some(200), Some(80)),
    // Nine warps are three of one scheduler, as twelve are.
    (".maxntid 288,1,1", None, Some(168)),
    (".maxntid 384,1,1", None, Some(168)),
    (".maxntid 288,1,1 .minnctapersm 2", None, Some(96)),
    (".maxntid 288,1,1 .minnctapersm 3", None, Some(72)),
    (".maxntid 128,1,1 .minnctapersm 5", Some(32), Some(96)),
    (".maxntid 96,1,1 .minnctapersm 5", None, Some(128)),
    (".maxntid 32,1,1 .minnctapersm 9", None, Some(168)),
    (".maxntid 64,1,1 .minnctapersm 7", None, Some(128)),
    (".maxntid 64,1,1 .minnctapersm 1", Some(32), None),
];

fn text(directives: &str) -> String {
    let lines = directives.replace(" .", "\n.");
    format!(".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k()\n{lines}\n{{\nret;\n}}\n")
}

fn stated(cubin: &[u8]) -> Option<u16> {
    read(cubin).unwrap().functions[0].launch.max_registers
}

#[test]
fn launch_bounds_limit_registers_and_win_over_the_option() {
    for target in ["sm_75", "sm_80", "sm_90", "sm_120"] {
        for (directives, max_registers, limit) in LIMITS {
            let options = Options { max_registers: *max_registers, ..Options::new(target) };
            let cubin = compile(&text(directives), &options).unwrap().cubin;
            assert_eq!(stated(&cubin), *limit, "{target} {directives} {max_registers:?}");
        }
    }
}

#[test]
fn ptxas_states_the_same_limits() {
    let Some(ptxas) = tool("ptxas") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (source, cubin) = (folder.path().join("k.ptx"), folder.path().join("k.cubin"));
    for target in ["sm_75", "sm_80", "sm_90", "sm_120"] {
        for (directives, max_registers, limit) in LIMITS {
            std::fs::write(&source, text(directives)).unwrap();
            let mut command = Command::new(&ptxas);
            command.arg(format!("-arch={target}")).arg(&source).arg("-o").arg(&cubin);
            command.args(max_registers.map(|most| format!("--maxrregcount={most}")));
            assert!(command.output().unwrap().status.success());
            assert_eq!(stated(&std::fs::read(&cubin).unwrap()), *limit, "{target} {directives} {max_registers:?}");
        }
    }
}
