//! The legalization phases: what the third seed says of them, by rows S3-1 to S3-18 and S3-34 of the feature list.
//!
//! Input: small kernels, and functions in text form. Output: each sentence holds of the tables, of single phases or of whole compilations.

use sassafras::compile::{Options, compile};
use sassafras::legal::{Legalization, OuterBackend, SmBackend, backend::Inner};
use sassafras::ori::{Function, text};
use sassafras::pipeline;
use sassafras::tables::legal::Knob;
use sassafras::tables::targets::TARGETS;
use sassafras::tables::{Op, Phase, Slot, backend};
use std::sync::Arc;

/// A quotient of each family member that the test is about, of values that the compiler does not know.
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

fn options(target: &str) -> Options {
    Options { verify_ir: true, ..Options::new(target) }
}

fn block(target: &str) -> Function {
    text::parse(&BLOCK.replace("SM", target)).unwrap()
}

fn divisions(function: &Function) -> usize {
    let insts = function.layout.iter().flat_map(|b| &function.blocks[*b]);
    insts.filter(|i| matches!(function.insts[**i].op, Op::IDIV_16 | Op::IREM_16)).count()
}

fn seed(number: u16) -> Phase {
    Phase::ALL.into_iter().find(|p| p.info().seed.first() == Some(&number)).unwrap()
}

/// What is left of the two divisions after phases 77 and 78.
fn left_by_78(knobs: &[&str]) -> usize {
    let mut asked = Legalization::default();
    knobs.iter().for_each(|knob| asked.knobs.set(knob).unwrap());
    let mut function = block("sm_80");
    for number in [77, 78] {
        pipeline::run_one_as(&mut function, seed(number).name(), &asked).unwrap();
    }
    divisions(&function)
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
        assert_eq!((phase.name(), phase as u16, phase.info().built), (name, order, true));
    }
}

#[test]
fn s3_2_the_mark_is_set_by_95_from_level_2_and_nothing_without_encoding_is_left() {
    for (level, marked) in [(0, false), (1, false), (2, true), (3, true)] {
        let mut function = block("sm_90");
        let asked = Legalization { opt_level: level, ..Legalization::default() };
        for number in [77, 78, 93, 95] {
            assert!(!function.stage.legalized);
            pipeline::run_one_as(&mut function, seed(number).name(), &asked).unwrap();
        }
        assert_eq!((function.stage.legalized, divisions(&function)), (marked, 0), "-O{level}");
    }
    let mut function = block("sm_90");
    let error = pipeline::run_one(&mut function, "SetAfterLegalization").unwrap_err();
    assert!(error.contains("operation IDIV_16 has no encoding on sm_90"), "{error}");
}

/// Leaves every division to the phases that no outer backend is asked in, and has the operands legalized.
#[derive(Debug)]
struct Suppresses;

impl OuterBackend for Suppresses {
    fn late_expansion(&self, _: &dyn SmBackend, _: &mut Function) {}
    fn late_expansion_unsupported_ops2(&self, inner: &dyn SmBackend, function: &mut Function) {
        inner.legalize_operands(function);
    }
}

/// Adds an operation in front of what the inner backend does.
#[derive(Debug)]
struct Adds;

impl OuterBackend for Adds {
    fn convert_unsupported_ops(&self, inner: &dyn SmBackend, function: &mut Function) {
        let (entry, fence) = (function.entry(), function.make(Op::ERRBAR));
        function.blocks[entry].insert(0, fence);
        inner.convert_unsupported_ops(function);
    }
}

#[test]
fn s3_3_an_outer_backend_may_override_what_the_inner_one_does() {
    let mut suppressed = Options { outer_backend: Some(Arc::new(Suppresses)), ..options("sm_80") };
    // LateExpansionUnsupportedOps asks the inner backend alone, and expands what was left.
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
        pipeline::run_one_as(&mut function, "ConvertUnsupportedOps", &asked).unwrap();
        assert!(function.stage.converted);
    }
}

#[test]
fn s3_9_phase_45_runs_behind_42_to_44_and_before_46() {
    assert!([42, 43, 44].map(seed).into_iter().all(|phase| phase < seed(45)) && seed(45) < seed(46));
    let nothing = Some(&[][..]);
    assert_eq!(backend("sm_75").unwrap().legalizer().families(Slot::MidExpansion), nothing);
}

#[test]
fn s3_10_and_s3_34_the_counter_of_stages_goes_up() {
    let mut function = block("sm_80");
    let (mut seen, asked) = (Vec::new(), Legalization::default());
    // The registers are not in SSA form yet; the phases that need it put them there.
    let watch = pipeline::Watch::default();
    pipeline::run(&mut function, &asked, watch, |phase, function| seen.push((phase, function.stage.progress))).unwrap();
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
    // The second quotient of integers is not read any more.
    let sum = before.lines().filter(|line| line.contains("IDIV_64")).count();
    assert_eq!(sum, 1, "{before}");
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
    // Phase 77 saw nothing to do.
    let mut function = block("sm_80");
    pipeline::run_one(&mut function, "LateExpansionUnsupportedOps").unwrap();
    assert_eq!(divisions(&function), 2);
}

#[test]
fn s3_14_phase_78_converges_unless_knob_464_is_off() {
    assert_eq!(left_by_78(&["464=0"]), 1);
    assert_eq!(left_by_78(&["MergeEquivalentConditionalFlowBudget=1"]), 0);
}

#[test]
fn s3_16_phase_93_asks_the_outer_backend_and_runs_behind_92_and_before_94() {
    assert!(seed(92) < seed(93) && seed(93) < seed(94));
    for (outer, left) in [(Arc::new(Suppresses) as Arc<dyn OuterBackend>, 2), (Legalization::default().outer, 0)] {
        let mut function = block("sm_80");
        let asked = Legalization { outer, ..Legalization::default() };
        pipeline::run_one_as(&mut function, "LateExpansionUnsupportedOps2", &asked).unwrap();
        assert_eq!(divisions(&function), left);
    }
}

#[test]
fn s3_17_phase_137_has_a_handler_from_sm_90_on_only() {
    for target in TARGETS.iter().filter(|target| target.generation.is_some()) {
        let inner = Inner(backend(target.name).unwrap(), &|_, _| true);
        let mut function = block(target.name);
        pipeline::run_one(&mut function, "LateExpansionUnsupportedOpsMid").unwrap();
        assert_eq!(inner.has_mid_handler(), target.sm >= 90, "{}", target.name);
        assert_eq!(divisions(&function), if inner.has_mid_handler() { 0 } else { 2 }, "{}", target.name);
    }
}

#[test]
fn s3_18_phase_132_does_nothing_by_default() {
    let (mut function, before) = (block("sm_90"), BLOCK.replace("SM", "sm_90"));
    pipeline::run_one(&mut function, "UpdateAfterConvertUnsupportedOps").unwrap();
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
