//! What ptxas's code of real programs has and our tables once denied: distances shorter than their
//! rows, results that one pipe writes in order, and words that were unknown.
//!
//! The input is short SASS texts, each with its control fields. The checker and the simulator must
//! say nothing of them; where a distance is one cycle shorter, or the writer is of another pipe,
//! both must say so.

use sassafras::compile::{Options, compile};
use sassafras::cubin::{self, Cubin};
use sassafras::sass::{self, hazards};
use sassafras::sim::fault::Kind;
use sassafras::sim::run::{How, Shape, decode, run_decoded};
use sassafras::tables::Target;

/// An instruction, its stall, its write and read barrier (7 for none), and its wait mask.
type Line<'a> = (&'a str, u8, [u8; 2], u8);

const IDLE: [u8; 2] = [7, 7];
const EXIT: Line<'static> = ("EXIT", 5, IDLE, 0);

/// A kernel of these instructions.
fn assembled(target: &str, lines: &[Line]) -> Cubin {
    let empty = ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }";
    let made = compile(empty, &Options::new(target)).expect("compiles");
    let mut cubin = cubin::read(&made.cubin).expect("our cubin");
    let target = Target::by_name(target).expect("a target");
    let word = |(at, (line, stall, [write, read], wait)): (usize, &Line)| {
        let mut inst = sass::parse(target, line, 16 * at as u64, None).unwrap_or_else(|e| panic!("{}", e.message));
        inst.ctrl = sass::Ctrl { stall: *stall, stay: *stall < 12, write_bar: *write, read_bar: *read, wait: *wait };
        sass::encode(target, &inst).unwrap_or_else(|e| panic!("{} {line}: {e}", target.name)).to_le_bytes()
    };
    cubin.functions[0].registers = 40;
    cubin.functions[0].code = lines.iter().enumerate().flat_map(word).collect();
    cubin
}

/// What the checker and the simulator say of a kernel.
fn told(cubin: &Cubin) -> [Vec<String>; 2] {
    let code = decode(cubin, "k").expect("decodes");
    let shape = Shape { grid: [1; 3], block: [1; 3], smem: 0 };
    let outcome = run_decoded(cubin, "k", shape, &mut [], &code, How::default()).expect("a launch");
    let hazards_alone = outcome.reports.iter().filter(|report| report.fault.kind == Kind::Hazard);
    let checked = hazards::check(cubin).expect("checked");
    [checked.iter().map(ToString::to_string).collect(), hazards_alone.map(ToString::to_string).collect()]
}

const AMPERE: &[&str] = &["sm_80", "sm_86", "sm_87", "sm_89"];
const HALVES: &[&str] = &["sm_80", "sm_86", "sm_89", "sm_90", "sm_103"];

/// Targets, a writer, a reader, and the fewest cycles between them that ptxas has.
const DISTANCES: &[(&[&str], &str, &str, u8)] = &[
    (AMPERE, "UPLOP3.LUT UP0, UPT, UP1, UP2, UPT, 0x80, 0x0", "PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0", 6),
    (
        &["sm_90", "sm_100"],
        "UPLOP3.LUT UP0, UPT, UP1, UP2, UPT, 0x80, 0x0",
        "PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0",
        7,
    ),
    (&["sm_86", "sm_100"], "UPLOP3.LUT UP0, UPT, UP1, UP2, UPT, 0x80, 0x0", "USEL UR4, UR5, UR6, UP0", 4),
    (&["sm_100", "sm_120", "sm_121"], "UPLOP3.LUT UP0, UPT, UP1, UP2, UPT, 0x80, 0x0", "BRA.U UP0, 0x20", 9),
    (&["sm_120", "sm_121"], "CS2R R6, SRZ", "ISETP.NE.S64.AND P1, PT, R6, RZ, PT", 6),
    (&["sm_121"], "IADD.64 R10, R2, R4", "R2UR UR4, R10", 5),
    (HALVES, "HADD2 R0, R8, R9", "HADD2 R4, R0, R9", 4),
    (HALVES, "HFMA2 R0, R8, R9, R10", "HFMA2 R4, R0, R9, R10", 4),
    (HALVES, "HFMA2.BF16_V2 R0, R8, R9, R10", "HFMA2.BF16_V2 R4, R0, R9, R10", 4),
    (HALVES, "HMNMX2 R3, R8, R9, PT", "HMNMX2 R4, R3, R9, PT", 4),
    (&["sm_75"], "ISETP.NE.AND P0, PT, R2, RZ, PT", "@P0 MOV R0, R4", 12),
    (&["sm_75"], "FSETP.GT.AND P0, PT, R2, RZ, PT", "@P0 MOV R0, R4", 12),
    (&["sm_75"], "R2P PR, R2, 0x1", "@P0 MOV R0, R4", 12),
];

#[test]
fn distances_of_ptxas_are_long_enough() {
    let mut wrong = Vec::new();
    for &(targets, first, second, cycles) in DISTANCES {
        for target in targets {
            let of = |stall| told(&assembled(target, &[(first, stall, IDLE, 0), (second, 15, IDLE, 0), EXIT]));
            let (kept, short) = (of(cycles), of(cycles - 1));
            if kept.iter().any(|told| !told.is_empty()) || short.iter().any(Vec::is_empty) {
                wrong.push(format!("{target} {cycles} {first}; {second}: {kept:?}, one cycle less {short:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_uniform_register_is_written_again_after_as_many_cycles_as_ptxas_has() {
    for target in ["sm_90", "sm_100", "sm_103", "sm_121"] {
        let of = |stall| {
            let lines = ["UMOV UR4, URZ", "R2UR UR4, R30", "UMOV UR5, UR4"];
            let stalls = [stall, 15, 15];
            let lines: Vec<Line> = lines.into_iter().zip(stalls).map(|(line, stall)| (line, stall, IDLE, 0)).collect();
            told(&assembled(target, &[&lines[..], &[EXIT]].concat()))
        };
        let (kept, short) = (of(3), of(2));
        assert!(kept.concat().is_empty() && !short.iter().any(Vec::is_empty), "{target}: {kept:?} {short:?}");
    }
}

/// Stalls of one cycle, which cannot be shorter, and where they are too short.
#[test]
fn stalls_of_one_cycle_are_long_enough_where_ptxas_has_them() {
    const CALL: &str = "CALL.REL.NOINC 0x20";
    let none = |target: &str, lines: &[Line]| told(&assembled(target, lines)).concat().is_empty();
    let called = |guard: &str| format!("{guard}{CALL}");
    for target in ["sm_80", "sm_86", "sm_89"] {
        let call = |guard: &str| none(target, &[(&called(guard), 1, IDLE, 0), EXIT, EXIT]);
        assert!(call("@!P0 ") && !call(""), "{target}");
        assert!(
            none(target, &[("BSSY B0, 0x20", 1, IDLE, 0), ("BMOV.32.CLEAR R6, B0", 15, [0, 7], 0), EXIT]),
            "{target}"
        );
    }
    assert!(!none("sm_90", &[(&called("@!P0 "), 1, IDLE, 0), EXIT, EXIT]));
    assert!(!none("sm_90", &[("BSSY B0, 0x20", 1, IDLE, 0), ("BMOV.32.CLEAR R6, B0", 15, [0, 7], 0), EXIT]));
}

/// A pipe that works in order reads before a later operation of it writes, and its results come in
/// order; what another pipe writes has to wait.
#[test]
fn one_pipe_overwrites_what_it_has_read() {
    const USE: Line<'static> = ("MOV R0, R8", 15, IDLE, 0b11);
    let first = ("DADD R4, R8, R10", 5, [0, 7], 0);
    const BRANCH: Line<'static> = ("@!P0 BRA 0x30", 5, IDLE, 0b10);
    const COMPARED: Line<'static> = ("DSETP.GT.AND P0, PT, R8, R10, PT", 5, [0, 7], 0);
    for target in ["sm_75", "sm_80"] {
        for second in ["DMUL R8, R8, R32", "DADD R8, R12, R14"] {
            let told = told(&assembled(target, &[first, (second, 5, [1, 7], 0), USE, EXIT]));
            assert!(told.concat().is_empty(), "{target} {second}: {told:?}");
        }
        let moved = told(&assembled(target, &[first, ("MOV R8, R12", 15, IDLE, 0), USE, EXIT]));
        assert!(moved.iter().all(|told| told.len() == 1), "{target}: {moved:?}");
        let again =
            told(&assembled(target, &[COMPARED, ("DSETP.LT.AND P0, PT, R12, R14, PT", 5, [1, 7], 0), BRANCH, EXIT]));
        assert!(again.concat().is_empty(), "{target}: {again:?}");
        let other =
            told(&assembled(target, &[COMPARED, ("ISETP.LT.AND P0, PT, R12, R14, PT", 15, IDLE, 0), BRANCH, EXIT]));
        assert!(other.iter().all(|told| !told.is_empty()), "{target}: {other:?}");
    }
}

/// Words that were unknown: the target, the low twelve bits, and the text.
const WORDS: &[(&str, u128, &str)] = &[
    ("sm_103", 0x411, "LEA.HI R5, -R0, R5, 0x10, 0xd"),
    ("sm_103", 0x491, "ULEA.HI UR4, UR4, UR6, 0x1d5, 0x17"),
    ("sm_100", 0x44b, "FADD2 R14, R14.F32x2.HI_LO, 1.5"),
    ("sm_100", 0x24b, "FADD2 R14, R14.F32x2.HI_LO, -R6.F32"),
    ("sm_100", 0x449, "FFMA2 R10, R6.F32x2.HI_LO, R10.F32, 3"),
    ("sm_100", 0x849, "FFMA2 R4, R4.F32x2.HI_LO, 0.25, R6.F32x2.HI_LO"),
    ("sm_100a", 0x2cc, "CREDUX.MAX.F32 UR4, R4"),
    ("sm_80", 0x950, "@!P0 RET.REL.NODEC P1, R2 0x0"),
    ("sm_87", 0x956, "BMOV.32 B0, 0xffffffff"),
];

#[test]
fn words_of_ptxas_are_known() {
    let mut wrong = Vec::new();
    for &(name, code, text) in WORDS {
        let target = Target::by_name(name).expect("a target");
        let word = sass::parse(target, text, 0, None).map_err(|e| e.message);
        let word = word.and_then(|inst| sass::encode(target, &inst).map_err(|e| e.to_string()));
        let back = word.clone().and_then(|word| sass::decode(target, word).map_err(|e| e.to_string()));
        let printed = back.map(|inst| sass::text(target, &inst, 0, None));
        if word.as_ref().map(|word| word & 0xfff) != Ok(code) || printed.as_deref() != Ok(text) {
            wrong.push(format!("{name} {text}: {:x?}, {printed:?}", word.map(|word| word & 0xfff)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A funnel shift of uniform registers by a number, with a number above it, and a sum.
#[test]
fn uniform_funnels_with_a_number_are_executed() {
    let right = (((0x1d5_u64 << 32 | 0x1234_5678) << 23) >> 32) as u32 + 99;
    for (expected, traps) in [(right, false), (right ^ 1, true)] {
        let expected = format!("MOV R2, {expected:#x}");
        let slow = |line| (line, 15, IDLE, 0);
        let lines = [
            "UMOV UR4, 0x12345678",
            "UMOV UR6, 0x63",
            "ULEA.HI UR4, UR4, UR6, 0x1d5, 0x17",
            "MOV R0, UR4",
            &expected,
            "ISETP.NE.U32.AND P0, PT, R0, R2, PT",
            "@P0 BPT.TRAP 0x1",
        ];
        let lines: Vec<Line> = lines.into_iter().map(slow).chain([EXIT]).collect();
        let cubin = assembled("sm_103", &lines);
        let shape = Shape { grid: [1; 3], block: [1; 3], smem: 0 };
        let outcome = run_decoded(&cubin, "k", shape, &mut [], &decode(&cubin, "k").unwrap(), How::default()).unwrap();
        let kinds: Vec<Kind> = outcome.reports.iter().map(|report| report.fault.kind).collect();
        assert_eq!(kinds, if traps { vec![Kind::Trap] } else { vec![] });
    }
}
