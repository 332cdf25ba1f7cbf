//! The legalization phases: what the third seed says about them, rows S3-1 to S3-18 and S3-34 of
//! the feature list.
//!
//! The input is small kernels, and functions in text form. Each statement is checked on the tables,
//! on single phases or on whole compilations.

use sassafras::compile::{Options, compile};
use sassafras::legal::{Legalization, OuterBackend, SmBackend, backend::Inner};
use sassafras::ori::{Function, text};
use sassafras::pass::{self, Event, PassControl};
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{How, Shape, run_as};
use sassafras::tables::legal::Knob;
use sassafras::tables::passes::When;
use sassafras::tables::targets::TARGETS;
use sassafras::tables::{Op, Pass, Phase, Slot, backend};
use std::sync::Arc;

/// A division of each kind that the tests use, of values that the compiler does not know.
const QUOTIENTS: &str = "
.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 x, .param .u64 y, .param .f64 f)
{
    .reg .b64 %a, %x, %y, %q<3>;
    .reg .f64 %f, %g;
    ld.param.u64 %a, [out];
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.f64 %f, [f];
    div.s64 %q0, %x, %y;
    div.s64 %q1, %x, %y;
    add.s64 %q2, %q0, %q1;
    st.global.u64 [%a], %q2;
    div.rn.f64 %g, %f, 0d4008000000000000;
    sqrt.rn.f64 %g, %g;
    st.global.f64 [%a+8], %g;
    ret;
}";

/// Two divisions in one block, out of SSA form.
const BLOCK: &str = "function k SM
b0:
  LDC d=r1 c=c[0][0x160]
  LDC d=r2 c=c[0][0x164]
  IDIV_16{sign=U32} d=r1 a=r1 b=r2
  IREM_16{sign=U32} d=r2 a=r1 b=r2
  EXIT
";

/// Two divisions in each of two blocks, the second of which in the text runs first, and one in an
/// unreachable block.
const BLOCKS: &str = "function k sm_80
b0:
  LDC d=r1 c=c[0][0x160]
  LDC d=r2 c=c[0][0x164]
  BRA target=b2
b1:
  IDIV_16{sign=U32} d=r1 a=r1 b=r2
  IREM_16{sign=U32} d=r2 a=r1 b=r2
  EXIT
b2:
  IDIV_16{sign=U32} d=r1 a=r1 b=r2
  IREM_16{sign=U32} d=r2 a=r1 b=r2
  BRA target=b1
b3:
  IREM_16{sign=U32} d=r2 a=r1 b=r2
  EXIT
";

/// The operation of each member of the family `atomics` before ConvertUnsupportedOps, and the
/// operations after it; the loops start with a load.
const ATOMICS: [(&str, &[&str]); 6] = [
    ("ATOMS_LOOP{aop=ADD size=F32.FTZ.RN} d=r3 a=r4 off=0x8 b=r1", &["LDS", "FADD", "ATOMS{aop=CAS}"]),
    ("ATOMS_LOOP{aop=MIN size=S64} d={r5,r6} a=r4 off=0x0 b={r1,r2}", &["LDS", "SEL", "ATOMS{size=64 aop=CAS}"]),
    ("ATOMS_HALF{aop=CAS} d=r3 a=r4 off=0x0 b=r1 c=r2", &["LDS", "PRMT", "ATOMS{aop=CAS}"]),
    ("ATOMG_HALF{aop=ADD e=E size=F16x2.RN} d=Z a={r1,r2} off=0x2 b=r4", &["LDG", "HADD2", "ATOMG{e=E aop=CAS}"]),
    ("ATOM_HALF{aop=ADD e=E size=BF16x2.RN} d=r3 a={r1,r2} off=0x0 b=r4", &["LD{e=E}", "HADD2", "ATOM{e=E aop=CAS}"]),
    ("ATOM_SPLIT{aop=ADD e=E size=64} d={r5,r6} a={r1,r2} off=0x0 b={r3,r4}", &["QSPC", "LDS", "ATOM{", "ATOMS{"]),
];

/// The same for `policies` and MidExpansion.
const POLICIES: [(&str, &[&str]); 3] = [
    ("POLICY_FRACTION d={r5,r6} a=r1 b=0x14000000", &["FMUL", "F2I", "LOP3"]),
    ("POLICY_FRACTION d={r5,r6} a=0x3f000000 b=0x14000000", &["0x14700000"]),
    ("POLICY_RANGE d={r5,r6} a={r1,r2} b=r3 c=r4 e=0x1c000000", &["FLO", "SHF", "LOP3"]),
];

fn options(target: &str) -> Options {
    Options { verify_ir: true, ..Options::new(target) }
}

fn block(target: &str) -> Function {
    text::parse(&BLOCK.replace("SM", target)).unwrap()
}

fn divisions(function: &Function) -> usize {
    let insts = function.layout().iter().flat_map(|b| &function[*b]);
    insts.filter(|i| matches!(function[**i].op, Op::IDIV_16 | Op::IREM_16)).count()
}

/// One operation in a function whose registers are all defined, in or out of SSA form.
fn one(operation: &str, target: &str) -> Function {
    let loads: String = (1..=4).map(|i| format!("  LDC d=r{i} c=c[0][{:#x}]\n", 0x160 + 4 * i)).collect();
    let ssa = if operation.starts_with("POLICY") { " ssa" } else { "" };
    text::parse(&format!("function k {target}{ssa}\nb0:\n{loads}  {operation}\n  EXIT\n")).unwrap()
}

/// The result of one operation after a single phase.
fn alone(operation: &str, phase: &str, target: &str) -> String {
    let mut function = one(operation, target);
    pass::run_one(&mut function, phase).unwrap();
    text::print(&function)
}

fn seed(number: u16) -> Phase {
    Phase::ALL.into_iter().find(|p| p.info().seed.first() == Some(&number)).unwrap()
}

#[test]
fn s2_1_and_s2_20_the_analysis_runs_twice_on_every_function() {
    for (name, number) in [("divergence", 53), ("divergence.2", 70)] {
        let info = Pass::by_name(name).unwrap().info();
        assert!(info.phase == seed(number) && matches!(info.when, When::Always) && !info.optional, "{name}");
    }
    // The same code: both give a function the same flags, and they are not all alike.
    let flags = |pass: &str| {
        let text = "function k sm_90 ssa\nb0:\n  S2R d=r0 s=s33\n  LDC d=r1 c=c[0][0x210]\n  EXIT\n";
        let mut function = text::parse(text).unwrap();
        pass::run_one(&mut function, pass).unwrap();
        text::print(&function)
    };
    assert!(flags("divergence").contains("\nuniform r1\n"));
    assert_eq!(flags("divergence"), flags("divergence.2"));
    // At every level, and with knob 487 off: nothing else writes a line `uniform` of general
    // registers.
    for target in ["sm_75", "sm_90", "sm_120"] {
        for level in [0, 3] {
            let mut asked = Options { opt_level: level, ..options(target) };
            asked.knobs.set("487=0").unwrap();
            assert!(after("OriPropagateVaryingFirst", target, asked).contains("\nuniform r0 "), "{target} -O{level}");
        }
    }
}

#[test]
fn s2_23_s2_24_and_s4_26_phases_stand_in_the_published_order() {
    let names = [
        "GvnCse",
        "OriReassociateAndCommon",
        "ExtractShaderConstsFinal",
        "OriReplaceEquivMultiDefMov",
        "OriPropagateVaryingFirst",
        "OriDoRematEarly",
        "LateExpansion",
        "SpeculativeHoistComInsts",
        "RemoveASTToDefaultValues",
        "GeneralOptimizeLate",
        "OriLoopFusion",
        "DoVTGMultiViewExpansion",
        "OriPerformLiveDeadThird",
        "OriRemoveRedundantMultiDefMov",
        "OriDoPredication",
        "LateOriCommoning",
        "GeneralOptimizeLate2",
        "OriHoistInvariantsLate",
        "DoKillMovement",
        "DoTexMovement",
        "OriDoRemat",
        "OriPropagateVaryingSecond",
        "OptimizeSyncInstructions",
        "ConvertToUniformReg",
    ];
    let phases: Vec<Phase> = (49..=71).chain([74]).map(seed).collect();
    assert_eq!(phases.iter().map(|phase| phase.name()).collect::<Vec<_>>(), names);
    assert!(phases.is_sorted());
    let early = [33, 34, 35].map(seed);
    let published = ["OriPerformLiveDeadSecond", "ExtractShaderConstsFirst", "OriHoistInvariantsEarly"];
    assert_eq!(early.map(Phase::name), published);
    let at = |number| Phase::ALL.into_iter().position(|phase| phase == seed(number)).unwrap();
    for [before, here, behind] in [[33, 34, 35], [50, 51, 52], [52, 53, 54], [69, 70, 71]] {
        assert_eq!([at(before) + 1, at(here) + 1], [at(here), at(behind)], "{here}");
    }
}

/// A function after phases 77 and 78.
fn behind_78(text: &str, knobs: &[&str]) -> Function {
    let mut asked = Legalization::default();
    knobs.iter().for_each(|knob| asked.knobs.set(knob).unwrap());
    let mut function = text::parse(text).unwrap();
    for number in [77, 78] {
        pass::run_one_as(&mut function, seed(number).name(), &asked).unwrap();
    }
    function
}

/// The remainder of the two divisions after phases 77 and 78.
fn left_by_78(knobs: &[&str]) -> usize {
    divisions(&behind_78(&BLOCK.replace("SM", "sm_80"), knobs))
}

/// The function after a phase, in text form.
fn after(phase: &str, target: &str, options: Options) -> String {
    let options = Options { dump_phases: vec![phase.to_string()], target: target.to_string(), ..options };
    let output = compile(QUOTIENTS, &options).unwrap_or_else(|e| panic!("{target}: {}", e[0].message));
    output.dumps.concat()
}

#[test]
fn s3_1_the_six_phases_have_their_names_and_places() {
    let six = [
        (5, "ConvertUnsupportedOps", 5),
        (45, "MidExpansion", 51),
        (55, "LateExpansion", 63),
        (78, "LateExpansionUnsupportedOps", 90),
        (93, "LateExpansionUnsupportedOps2", 109),
        (137, "LateExpansionUnsupportedOpsMid", 93),
    ];
    for (number, name, order) in six {
        let phase = seed(number);
        assert_eq!((phase.name(), phase as u16, phase.info().runs()), (name, order, true));
    }
}

#[test]
fn s3_2_the_mark_is_set_by_95_from_level_2_and_nothing_without_encoding_is_left() {
    for (level, marked) in [(0, false), (1, false), (2, true), (3, true)] {
        let mut function = block("sm_90");
        let asked = Legalization { opt_level: level, ..Legalization::default() };
        for number in [77, 78, 93, 95] {
            assert!(!function.stage().legalized);
            pass::run_one_as(&mut function, seed(number).name(), &asked).unwrap();
        }
        assert_eq!((function.stage().legalized, divisions(&function)), (marked, 0), "-O{level}");
    }
    let mut function = block("sm_90");
    let error = pass::run_one(&mut function, "SetAfterLegalization").unwrap_err();
    assert!(error.contains("operation IDIV_16 has no encoding on sm_90"), "{error}");
}

/// Keeps every division away from the phases that do not consult an outer backend, and has the
/// operands legalized.
#[derive(Debug)]
struct Suppresses;

impl OuterBackend for Suppresses {
    fn late_expansion(&self, _: &dyn SmBackend, _: &mut Function) {}
    fn late_expansion_unsupported_ops2(&self, inner: &dyn SmBackend, function: &mut Function) {
        inner.legalize_operands(function);
    }
}

/// Inserts an operation before the inner backend's expansion.
#[derive(Debug)]
struct Adds;

impl OuterBackend for Adds {
    fn convert_unsupported_ops(&self, inner: &dyn SmBackend, function: &mut Function) {
        let (entry, fence) = (function.entry(), function.make(Op::ERRBAR));
        function[entry].insert(0, fence);
        inner.convert_unsupported_ops(function);
    }
}

#[test]
fn s3_3_an_outer_backend_may_override_what_the_inner_one_does() {
    let mut suppressed = Options { outer_backend: Some(Arc::new(Suppresses)), ..options("sm_80") };
    // LateExpansionUnsupportedOps consults only the inner backend, and expands what was left.
    assert!(!after("LateExpansionUnsupportedOps", "sm_80", suppressed.clone()).contains("IDIV_64"));
    suppressed.knobs.set("DisableLateExpansionUnsupportedOps=1").unwrap();
    let refused = compile(QUOTIENTS, &suppressed).unwrap_err();
    let said = &refused[0].message;
    assert!(
        said.contains("SetAfterLegalization") && said.contains("operation IDIV_64 has no encoding on sm_80"),
        "{said}"
    );
    let added = Options { outer_backend: Some(Arc::new(Adds)), ..options("sm_80") };
    assert!(after("SetAfterLegalization", "sm_80", added).contains("ERRBAR"));
    assert!(!after("SetAfterLegalization", "sm_80", options("sm_80")).contains("ERRBAR"));
}

#[test]
fn s3_5_five_backends_share_the_targets() {
    let rows = [
        ("sm_75", "sm70"),
        ("sm_80", "sm80"),
        ("sm_86", "sm80"),
        ("sm_89", "sm89"),
        ("sm_90a", "sm90"),
        ("sm_121", "sm90"),
    ];
    for (target, name) in rows {
        assert_eq!(backend(target).unwrap().legalizer().name, name);
    }
    assert_eq!(sassafras::tables::legal::LEGALIZERS.len(), 5);
}

#[test]
fn s3_6_phase_5_always_runs_and_says_so() {
    assert!(seed(4) < seed(5) && seed(5) < seed(7));
    for knob in ["499=0", "499=1"] {
        let mut asked = Legalization::default();
        asked.knobs.set(knob).unwrap();
        let mut function = block("sm_80");
        pass::run_one_as(&mut function, "ConvertUnsupportedOps", &asked).unwrap();
        assert!(function.stage().converted);
    }
}

#[test]
fn s3_7_phase_5_makes_loops_of_atomics_that_no_unit_does() {
    for target in ["sm_75", "sm_80", "sm_90", "sm_120"] {
        for (operation, parts) in ATOMICS {
            let name = operation.split('{').next().unwrap();
            assert!(text::print(&one(operation, target)).contains(name));
            let after = alone(operation, "ConvertUnsupportedOps", target);
            assert!(!after.contains(name), "{target}: {after}");
            assert!(parts.iter().all(|part| after.contains(part)), "{target}: {operation}: {after}");
            // A loop branches to an earlier block.
            assert!(after.lines().any(|l| l.trim().starts_with("@p") && l.contains("BRA")), "{after}");
            // The other phases have nothing to expand.
            for phase in ["MidExpansion", "LateExpansion"] {
                assert!(alone(operation, phase, target).contains(name), "{target}: {phase}");
            }
        }
    }
}

#[test]
fn s3_7_an_atomic_is_one_operation_before_phase_5_under_its_guard_too() {
    let kernel = |lines: &str| {
        format!(
            ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 x) {{
            .reg .b64 %a, %q; .reg .b32 %x; .reg .b16 %h; .reg .f32 %f; .reg .pred %p; .shared .align 8 .b8 s[64];
            ld.param.u64 %a, [out]; ld.param.u32 %x, [x]; setp.ne.u32 %p, %x, 3; mov.b32 %f, %x; cvt.u64.u32 %q, %x;
            cvt.u16.u32 %h, %x; {lines} ret; }}"
        )
    };
    let forms = [
        ("atom.shared.add.f32 %f, [s], %f;", "ATOMS_LOOP"),
        ("red.shared.max.s64 [s+8], %q;", "ATOMS_LOOP"),
        ("atom.global.cas.b16 %h, [%a], %h, %h;", "ATOMG_HALF"),
        ("atom.shared.add.noftz.f16 %h, [s+2], %h;", "ATOMS_HALF"),
        ("atom.add.noftz.f16 %h, [%a], %h;", "ATOM_HALF"),
        ("atom.add.u64 %q, [%a], %q;", "ATOM_SPLIT"),
    ];
    for (form, name) in forms {
        for guard in ["", "@%p "] {
            let ptx = kernel(&format!("{guard}{form}"));
            let dump = |phase: &str, knobs: &[&str]| {
                let mut options = Options { dump_phases: vec![phase.to_string()], ..options("sm_80") };
                knobs.iter().for_each(|knob| options.knobs.set(knob).unwrap());
                compile(&ptx, &options).unwrap_or_else(|e| panic!("{form}: {}", e[0].message)).dumps.concat()
            };
            assert_eq!(dump("OriCheckInitialProgram", &[]).matches(name).count(), 1, "{guard}{form}");
            assert!(!dump("ConvertUnsupportedOps", &[]).contains(name), "{guard}{form}");
            // Without phase 5 it passes the optimiser unchanged, and phase 93 expands it.
            assert_eq!(dump("LateExpansionUnsupportedOps", &["499=0"]).matches(name).count(), 1, "{guard}{form}");
            assert!(!dump("LateExpansionUnsupportedOps2", &["499=0"]).contains(name), "{guard}{form}");
        }
    }
}

#[test]
fn s3_9_phase_45_runs_behind_42_to_44_and_before_46() {
    assert!([42, 43, 44].map(seed).into_iter().all(|phase| phase < seed(45)) && seed(45) < seed(46));
    let nothing = Some(&[][..]);
    // Only the two backends before sm_80.
    for target in TARGETS.iter().filter(|target| target.real && target.sm < 80) {
        let Some(backend) = backend(target.name) else { continue };
        assert_eq!(backend.legalizer().families(Slot::MidExpansion), nothing, "{}", target.name);
    }
    for name in ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"] {
        assert_ne!(backend(name).unwrap().legalizer().families(Slot::MidExpansion), nothing, "{name}");
    }
}

#[test]
fn s3_9_phase_45_makes_cache_policies() {
    for target in ["sm_80", "sm_90", "sm_120"] {
        for (operation, parts) in POLICIES {
            let name = operation.split(' ').next().unwrap();
            let after = alone(operation, "MidExpansion", target);
            assert!(!after.contains(name) && parts.iter().all(|part| after.contains(part)), "{target}: {after}");
            for phase in ["ConvertUnsupportedOps", "LateExpansion"] {
                assert!(alone(operation, phase, target).contains(name), "{target}: {phase}");
            }
        }
    }
    let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out, .param .f32 f) {
        .reg .b64 %a, %q<2>; .reg .f32 %f; ld.param.u64 %a, [out]; ld.param.f32 %f, [f];
        createpolicy.fractional.L2::evict_last.b64 %q0, %f; createpolicy.fractional.L2::evict_last.b64 %q1, %f;
        st.global.b64 [%a], %q0; st.global.b64 [%a+8], %q1; ret; }";
    let dump = |phase: &str| {
        let options = Options { dump_phases: vec![phase.to_string()], ..options("sm_80") };
        compile(ptx, &options).unwrap().dumps.concat().matches("POLICY_FRACTION").count()
    };
    // GVN has merged equal ones by then.
    assert_eq!(["OriCheckInitialProgram", "GeneralOptimize", "MidExpansion"].map(dump), [2, 1, 0]);
}

#[test]
fn s3_10_and_s3_34_the_counter_of_stages_goes_up() {
    let mut function = block("sm_80");
    let (mut seen, asked) = (Vec::new(), Legalization::default());
    // The registers are not in SSA form yet; the phases that need it construct it.
    let mut note = |event: Event| {
        if let Event::AfterPhase(phase, function) = event {
            seen.push((phase, function.stage().progress));
        }
    };
    pass::run(&mut function, &asked, &PassControl::default(), &mut note).unwrap();
    let at = |name: &str| seen.iter().find(|(phase, _)| phase.name() == name).unwrap().1;
    assert_eq!([at("MidExpansion"), at("OriPropagateVaryingFirst"), at("LateExpansion")], [0, 3, 7]);
    assert_eq!([at("LateExpansionUnsupportedOps2"), at("SetAfterLegalization")], [9, 12]);
    assert!(seen.windows(2).all(|pair| pair[0].1 <= pair[1].1));
}

#[test]
fn s3_11_phase_55_makes_sequences_of_division_and_roots() {
    for target in ["sm_75", "sm_90", "sm_120"] {
        let names = ["IDIV_64", "DDIV", "DSQRT"];
        let before = after("OriPropagateVaryingFirst", target, options(target));
        assert!(names.iter().all(|name| before.contains(name)), "{before}");
        for level in [0, 3] {
            let late = after("LateExpansion", target, Options { opt_level: level, ..options(target) });
            assert!(!names.iter().any(|name| late.contains(name)) && late.contains("MUFU"), "{late}");
        }
    }
}

#[test]
fn s3_12_a_division_is_one_operation_until_then_and_two_equal_ones_are_one() {
    let before = after("OriPropagateVaryingFirst", "sm_90", options("sm_90"));
    let live = |text: &str| text.matches("DDIV").count();
    assert_eq!(live(&before), 1, "{before}");
    // The second integer division is dead.
    let sum = before.lines().filter(|line| line.contains("IDIV_64")).count();
    assert_eq!(sum, 1, "{before}");
}

/// Sums, over a given number of iterations, two loop-invariant divisions, and one in a branch that
/// is never taken.
const LOOP: &str = ".version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 x, .param .u64 y, .param .f32 f, .param .u32 n)
{
    .reg .b64 %a, %x, %y, %q, %s; .reg .f32 %f, %r, %t; .reg .b32 %i, %n, %z, %w; .reg .pred %p;
    ld.param.u64 %a, [out]; ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.f32 %f, [f]; ld.param.u32 %n, [n];
    mov.b32 %i, 0; mov.b64 %s, 0; mov.f32 %t, 0f00000000; sub.u32 %z, %n, %n; mov.b32 %w, 0;
AGAIN:
    div.s64 %q, %x, %y;
    add.s64 %s, %s, %q;
    div.rn.f32 %r, %f, 0f40400000;
    add.rn.f32 %t, %t, %r;
    setp.ne.u32 %p, %i, 1000;
    @%p bra NEXT;
    div.u32 %w, %n, %z;
NEXT:
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, %n;
    @%p bra AGAIN;
    st.global.u64 [%a], %s;
    st.global.f32 [%a+8], %t;
    st.global.u32 [%a+12], %w;
    ret;
}";

/// Number of executed reciprocals for this many iterations.
fn reciprocals(target: &str, level: u8, iterations: u32) -> u64 {
    let output = compile(LOOP, &Options { opt_level: level, ..options(target) }).unwrap();
    let scalar = |bytes: &[u8]| ArgValue::Scalar { bytes: bytes.to_vec() };
    let mut args = vec![
        ArgValue::Buffer { bytes: vec![0xff; 16], writable: true },
        scalar(&(-1_000_000_000_007i64).to_le_bytes()),
        scalar(&10_000_000_019i64.to_le_bytes()),
        scalar(&1.5f32.to_le_bytes()),
        scalar(&iterations.to_le_bytes()),
    ];
    let shape = Shape { grid: [1, 1, 1], block: [32, 1, 1], smem: 0 };
    let outcome = run_as(&output.cubin, "k", shape, &mut args, How::default()).unwrap();
    assert!(outcome.ended && outcome.reports.is_empty(), "{target}: {:?}", outcome.reports);
    let ArgValue::Buffer { bytes, .. } = &args[0] else { panic!("no buffer") };
    assert_eq!(bytes[..8], (-99 * i64::from(iterations)).to_le_bytes(), "{target}");
    assert_eq!(bytes[8..12], (0.5 * iterations as f32).to_le_bytes(), "{target}");
    assert_eq!(bytes[12..], [0; 4], "{target}");
    outcome.counts.get("MUFU").copied().unwrap_or(0)
}

#[test]
fn s3_12_a_loop_divides_once_what_it_does_not_change() {
    for target in ["sm_75", "sm_80", "sm_90", "sm_120"] {
        let once = reciprocals(target, 3, 1);
        assert_eq!([reciprocals(target, 3, 2), reciprocals(target, 3, 9)], [once; 2], "{target}");
        // Nothing is hoisted at -O0.
        assert_eq!(reciprocals(target, 0, 9), 9 * reciprocals(target, 0, 1), "{target}");
        let dump = |phase: &str| {
            let options = Options { dump_phases: vec![phase.to_string()], ..options(target) };
            compile(LOOP, &options).unwrap().dumps.concat()
        };
        // Blocks of each operation: the hoisted one is before the loop, those of the loop in it;
        // divisions that few iterations execute stay.
        let block_of = |text: &str, op: &str| text[..text.find(op).unwrap()].matches("BRA").count();
        let (before, after) = (dump("GeneralOptimize"), dump("OriHoistInvariantsEarly"));
        for op in ["IDIV_64", "FDIV"] {
            assert_eq!([block_of(&before, op), block_of(&after, op)], [1, 0], "{target}: {after}");
        }
        assert!(block_of(&after, "IDIV{") > 1, "{target}: {after}");
    }
}

#[test]
fn s3_13_phase_78_has_its_gates() {
    assert_eq!(left_by_78(&[]), 0);
    for gate in [
        "ConvertUnsupportedOps=0",
        "499=0",
        "DisableLateExpansionUnsupportedOps=1",
        "214=1",
        "GeneralOptimization=0",
        "487=0",
    ] {
        assert_eq!(left_by_78(&[gate]), 2, "{gate}");
    }
    // Phase 77 has nothing to do.
    let mut function = block("sm_80");
    pass::run_one(&mut function, "LateExpansionUnsupportedOps").unwrap();
    assert_eq!(divisions(&function), 2);
}

#[test]
fn s3_14_phase_78_converges_unless_knob_464_is_off() {
    assert_eq!(left_by_78(&["464=0"]), 1);
    assert_eq!(left_by_78(&["MergeEquivalentConditionalFlowBudget=1"]), 0);
    // One for each reachable block.
    assert_eq!(divisions(&behind_78(BLOCKS, &["464=0"])), 2);
    assert_eq!(divisions(&behind_78(BLOCKS, &[])), 0);
}

/// The instructions of a block of a function in text form.
fn lines_of<'a>(printed: &'a str, block: &str) -> Vec<&'a str> {
    let from = printed.lines().skip_while(|line| *line != format!("{block}:")).skip(1);
    from.take_while(|line| line.starts_with("  ")).collect()
}

#[test]
fn s3_14_phase_78_takes_blocks_in_reverse_post_order_and_cleans_up_only_what_it_changed() {
    let printed = text::print(&behind_78(BLOCKS, &[]));
    // Registers are numbered in the order of their creation: those of the second block in the text
    // come first.
    let made = |block: &str| {
        let words = lines_of(&printed, block).into_iter().flat_map(str::split_whitespace);
        let numbers = words.filter_map(|w| w.strip_prefix("d=r")?.parse::<u32>().ok()).filter(|n| *n > 2);
        let numbers: Vec<u32> = numbers.collect();
        [*numbers.iter().min().unwrap(), *numbers.iter().max().unwrap()]
    };
    assert!(printed.find("b1:") < printed.find("b2:") && made("b2")[1] < made("b1")[0], "{printed}");
    // Unreachable blocks are removed if a reachable block changed; otherwise all stay.
    assert!(!printed.contains("b3:"), "{printed}");
    let few: Vec<&str> =
        BLOCKS.lines().enumerate().filter(|(i, l)| *i > 13 || !l.contains("_16")).map(|l| l.1).collect();
    let few = few.join("\n") + "\n";
    let untouched = behind_78(&few, &[]);
    let few = few.replacen(" sm_80\n", " sm_80 unsupported\n", 1);
    assert_eq!((divisions(&untouched), text::print(&untouched)), (1, few));
}

#[test]
fn s3_16_phase_93_asks_the_outer_backend_and_runs_behind_92_and_before_94() {
    assert!(seed(92) < seed(93) && seed(93) < seed(94));
    for (outer, left) in [(Arc::new(Suppresses) as Arc<dyn OuterBackend>, 2), (Legalization::default().outer, 0)] {
        let mut function = block("sm_80");
        let asked = Legalization { outer, ..Legalization::default() };
        pass::run_one_as(&mut function, "LateExpansionUnsupportedOps2", &asked).unwrap();
        assert_eq!(divisions(&function), left);
    }
}

#[test]
fn s3_17_phase_137_has_a_handler_from_sm_90_on_only() {
    for target in TARGETS.iter().filter(|target| target.generation.is_some()) {
        let inner = Inner(backend(target.name).unwrap(), &|_, _| true);
        let mut function = block(target.name);
        pass::run_one(&mut function, "LateExpansionUnsupportedOpsMid").unwrap();
        assert_eq!(inner.has_mid_handler(), target.sm >= 90, "{}", target.name);
        assert_eq!(divisions(&function), if inner.has_mid_handler() { 0 } else { 2 }, "{}", target.name);
    }
}

#[test]
fn s3_18_phase_132_does_nothing_by_default() {
    let (mut function, before) = (block("sm_90"), BLOCK.replace("SM", "sm_90"));
    pass::run_one(&mut function, "UpdateAfterConvertUnsupportedOps").unwrap();
    assert_eq!(text::print(&function), before);
}

#[test]
fn knobs_are_set_by_name_or_number_and_others_are_refused() {
    let mut knobs = sassafras::legal::Knobs::default();
    knobs.set("464=0").unwrap();
    assert!(!knobs.is_on(Knob::MergeEquivalentConditionalFlowBudget));
    let error = knobs.set("NoSuchKnob=1").unwrap_err();
    assert!(error.starts_with("Knob 'NoSuchKnob' is not known; known are "), "{error}");
    assert!(Knob::ALL.iter().all(|knob| error.contains(knob.name())), "{error}");
    assert!(knobs.set("464").is_err() && knobs.set("464=x").is_err());
}
