//! Functions and calls: which ones ptxas accepts, its messages about the others, and predicate
//! arguments.
//!
//! A case is a function, the instructions of an entry that calls it, and the expected message (none
//! if accepted). Our messages must match literally; if ptxas is installed, it must give the same.
//! Predicate arguments, which ptxas 13.0.88 passes wrongly, are executed by the interpreter and by
//! our cubins.

use crate::cubin_support::{compile as theirs, tool};
use sassafras::compile::{Options, compile};
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{Shape, run};

const TWO: &str = ".func (.reg .u32 o, .reg .u32 o2) f (.reg .u32 q) { mov.u32 o, q; mov.u32 o2, q; ret; }";
const ONE: &str = ".func (.reg .u32 o) f (.reg .u32 q) { mov.u32 o, q; ret; }";
const VECTOR: &str = ".func (.reg .u32 o) f (.reg .v2 .u32 i) { add.u32 o, i.x, i.y; ret; }";

/// Function, call, whether to compile an object, expected message.
const CASES: [(&str, &str, bool, &str); 37] = [
    (TWO, "call (%t, %u), f, (%t);", false, ""),
    (TWO, "call (%t, %t), f, (7);", false, ""),
    (TWO, "call (_, %u), f, (-7);", false, ""),
    (TWO, "", false, ""),
    (TWO, "call (%t, %u), f, (%t);", true, "'Compile only(-c)' requires ABI"),
    (TWO, "alloca.u64 %d, 16; call (%t, %u), f, (%t);", false, ""),
    (TWO, "mov.u64 %d, f; call (%t, %u), f, (%t);", false, "Indirect function call requires ABI"),
    (
        TWO,
        "P: .calltargets f; mov.u64 %d, f; call (%t, %u), %d, (%t), P;",
        false,
        "'Indirect Functions or Extern Functions' requires ABI",
    ),
    (
        "",
        "P: .callprototype (.reg .u32 a, .reg .u32 b) _ (.reg .u32 c); mov.u64 %d, 5; call (%t, %u), %d, (%t), P;",
        false,
        "'Indirect Functions or Extern Functions' requires ABI",
    ),
    (
        ".func (.reg .u32 o, .reg .u32 o2) f (.reg .u32 q) { mov.u32 o2, q; call (o, o2), f, (o2); ret; }",
        "call (%t, %u), f, (%t);",
        false,
        "Function 'f' is recursive",
    ),
    (
        ".func (.reg .u32 o, .reg .u32 o2) f (.reg .u32 q);",
        "call (%t, %u), f, (%t);",
        false,
        "Unresolved extern function 'f'",
    ),
    (
        ".func (.param .u32 o, .param .u32 o2) f (.reg .u32 q) { ret; }",
        "",
        false,
        "Multiple return parameters require .register state space",
    ),
    (VECTOR, "call (%t), f, (%v);", false, ""),
    (VECTOR, "call (%t), f, (%v);", true, ""),
    (VECTOR, ".reg .v2 .f32 %w; call (%t), f, (%w);", false, ""),
    (VECTOR, "call (%t), f, (%d);", false, "!"),
    (VECTOR, "call (%t), f, ({%t, %u});", false, "Parsing error near '{': syntax error"),
    (VECTOR, "call (%t), f, (%v4);", false, "Type of argument does not match formal parameter 'i'"),
    (VECTOR, "{ .param .align 8 .b8 a[8]; call (%t), f, (a); }", false, "Inconsistent state space for parameter 'a'"),
    (".func (.reg .v4 .b8 o) f (.reg .v4 .b8 i) { mov.b8 o.x, i.y; ret; }", "", false, "!"),
    (
        ".func (.reg .v2 .u32 o) f (.reg .v2 .u32 i) { mov.v2.u32 o, i; ret; }",
        "P: .callprototype (.reg .v2 .u32 a) _ (.reg .v2 .u32 b); mov.u64 %d, f; call (%v), %d, (%v), P;",
        true,
        "",
    ),
    (ONE, "call (%v.x), f, (%t);", false, "Parsing error near '.x': syntax error"),
    (ONE, "call (%t), f, (%v.x);", false, "Parsing error near '.x': syntax error"),
    (ONE, "call (%t), f, (%tid.x);", false, "Parsing error near '.x': syntax error"),
    (ONE, "call (%t), f, (p+4);", false, "Parsing error near '+': syntax error"),
    (ONE, "call (%t), f, (3+4);", false, ""),
    (ONE, "call (%t), f, (_);", false, "Illegal argument for formal parameter 'q'"),
    (ONE, "call (_), f, (%t);", false, ""),
    (ONE, "call (%t), f, (%t, %t);", false, "Call has wrong number of parameters"),
    (
        ".global .u64 g; .func (.reg .u64 o) f (.reg .u64 q) { mov.u64 o, q; ret; }",
        "call (%d), f, (g);",
        false,
        "Call argument 'g' has illegal state space",
    ),
    (
        ".func (.reg .u32 o) f (.reg .pred q) { selp.u32 o, 1, 2, q; ret; }",
        "call (%t), f, (%p);",
        false,
        "In ABI compilation, passing predicate, 8-bit and 16-bit parameters to device functions is not supported",
    ),
    (
        ".func (.reg .pred o) f (.reg .u32 q) { setp.eq.u32 o, q, 1; ret; }",
        "call (%p), f, (%t);",
        false,
        "In ABI compilation, returning predicate, 8-bit and 16-bit values from device functions is not supported",
    ),
    (
        ".func (.reg .u32 o) f (.reg .pred q) { selp.u32 o, 1, 2, q; ret; }",
        "call (%t), f, (!%p);",
        false,
        "Parsing error near '%p': syntax error",
    ),
    (
        ".func (.reg .u32 o, .reg .pred o2) f (.reg .pred q) { selp.u32 o, 1, 2, q; not.pred o2, q; ret; }",
        "call (%t, %p), f, (%p);",
        false,
        "",
    ),
    (
        ".func (.reg .u32 o) f (.reg .v2 .pred i) { mov.u32 o, 1; ret; }",
        "",
        false,
        "Predicate type can only be used to define scalar register variables",
    ),
    (".func f(.param .v2 .u32 i) { ret; }", "", false, "Variable 'i' cannot be allocated in .param state space"),
    (".extern .func g(.reg .u32 a); .func f(.reg .v4 .f32 i) { ret; }", "", true, ""),
];

fn body(function: &str, call: &str) -> String {
    format!(
        "{function}\n.visible .entry k(.param .u64 p) {{ .reg .u64 %r, %d; .reg .u32 %t, %u; .reg .pred %p; .reg .v2 .u32 %v;\n\
         .reg .v4 .u32 %v4; ld.param.u64 %r, [p]; mov.u32 %t, 5; setp.eq.u32 %p, %t, 5;\n{call}\nret; }}\n"
    )
}

#[test]
fn verdicts_are_those_of_ptxas() {
    let ptxas = tool("ptxas");
    let mut wrong = Vec::new();
    for (function, call, object, says) in CASES {
        let text = body(function, call);
        let head = ".version 9.0\n.target sm_90\n.address_size 64\n";
        let options = Options { relocatable: object, verify_ir: true, ..Options::new("sm_90") };
        let ours: Result<(), String> = compile(&format!("{head}{text}"), &options)
            .map(|_| ())
            .map_err(|list| list.iter().map(|d| d.message.clone()).collect::<Vec<_>>().join("\n"));
        let agrees = |said: &Result<(), String>| match said {
            Ok(()) => says.is_empty(),
            // Rejected by us; ptxas crashes or prints nothing useful.
            Err(text) => !says.is_empty() && (says == "!" || text.contains(says)),
        };
        if !agrees(&ours) {
            wrong.push(format!("{function} {call}: {ours:?}, not {says:?}"));
        }
        if let Some(ptxas) = &ptxas {
            let more: &[&str] = if object { &["-c"] } else { &[] };
            let theirs = theirs(ptxas, &text, "90", more).map(|_| ());
            if !agrees(&theirs) {
                wrong.push(format!("{function} {call}: ptxas says {theirs:?}, not {says:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Functions with several results disable the ABI, with a warning about the first of them.
#[test]
fn several_results_are_warned_of() {
    let text = format!(".version 9.0\n.target sm_90\n.address_size 64\n{}", body(TWO, "call (%t, %u), f, (%t);"));
    let output = compile(&text, &Options::new("sm_90")).expect("compiled");
    let said: Vec<&str> = output.diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(said, ["Function 'f' with multiple return values found, disabling ABI"]);
}

#[test]
fn predicates_are_passed() {
    let text = ".version 7.0\n.target sm_75\n.address_size 64\n\
        .func (.reg .pred o, .reg .u32 sum, .reg .pred o2) f(.reg .pred a, .reg .u32 x, .reg .pred b) {\n\
        xor.pred o, a, b; selp.u32 sum, x, 100, a; @b add.u32 sum, sum, 1000; not.pred o2, a; ret; }\n\
        .visible .entry k(.param .u64 out) { .reg .u64 %o, %w; .reg .u32 %t, %x; .reg .pred %p, %q, %r;\n\
        ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %w, %t, 4; add.u64 %o, %o, %w;\n\
        and.b32 %x, %t, 1; setp.ne.u32 %p, %x, 0; setp.gt.u32 %q, %t, 3;\n\
        call (%r, %x, %q), f, (%p, %t, %q);\n@%r add.u32 %x, %x, 10000; @%q add.u32 %x, %x, 20000;\n\
        st.global.u32 [%o], %x; ret; }\n";
    let value = |t: u32| {
        let (a, b) = (t & 1 == 1, t > 3);
        let sum = if a { t } else { 100 } + if b { 1000 } else { 0 };
        sum + if a != b { 10000 } else { 0 } + if a { 0 } else { 20000 }
    };
    let expected: Vec<u32> = (0..8).map(value).collect();
    let shape = Shape { grid: [1; 3], block: [8, 1, 1], smem: 0 };
    let words = |args: &[ArgValue]| match &args[0] {
        ArgValue::Buffer { bytes, .. } => {
            bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    let buffer = || [ArgValue::Buffer { bytes: vec![0; 32], writable: true }];
    for (target, level) in ["sm_75", "sm_90", "sm_120"].into_iter().flat_map(|t| [(t, 0), (t, 3)]) {
        let output = compile(text, &Options { opt_level: level, ..Options::new(target) }).expect("compiled");
        let mut args = buffer();
        run(&output.cubin, "k", shape, &mut args).expect("run");
        assert_eq!(words(&args), expected, "{target} -O{level}");
    }
    let mut args = buffer();
    let parsed = sassafras::sim::ptx::parse(text.as_bytes()).0.expect("parsed");
    sassafras::sim::ptx::run(&parsed, "k", shape, &mut args).expect("interpreted");
    assert_eq!(words(&args), expected);
}

/// Seven thousand constants each in an entry and in a function that it calls: together more than
/// the compiler's bank has room for. The rest stays in registers.
#[test]
fn constants_of_a_kernel_and_its_functions_share_the_bank() {
    let sums = |high: u32| -> String {
        (1..7000).map(|i| format!("fma.rn.f64 %d1, %d1, %d2, 0d3F{high:02X}{i:012X};\n")).collect()
    };
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .func (.param .f64 r) f(.param .f64 a)\n{{\n.reg .f64 %d1, %d2;\nld.param.f64 %d1, [a];\n\
         mul.f64 %d2, %d1, %d1;\n{}st.param.f64 [r], %d1;\nret;\n}}\n\
         .visible .entry k(.param .u64 p)\n{{\n.reg .f64 %d1, %d2;\n.reg .u64 %p;\nld.param.u64 %p, [p];\n\
         ld.global.f64 %d1, [%p];\nmul.f64 %d2, %d1, %d1;\n{}\
         {{ .param .f64 a; .param .f64 b; st.param.f64 [a], %d1; call (b), f, (a); ld.param.f64 %d1, [b]; }}\n\
         st.global.f64 [%p], %d1;\nret;\n}}\n",
        sums(0x11),
        sums(0x22),
    );
    let output = compile(&text, &Options::new("sm_80")).unwrap_or_else(|e| panic!("{}", e[0].message));
    let bytes = output.functions[0].constant2_bytes;
    assert!((32_768..=65_536).contains(&bytes), "{bytes}");
}

/// What an object says of the functions of the driver that read with gradients of a volume: how
/// they are called, in the same words as ptxas's objects.
#[test]
fn functions_of_the_driver_have_their_prototypes() {
    let Some(ptxas) = tool("ptxas") else {
        println!("skipped: target/vendor/ptxas is missing");
        return;
    };
    let slopes = "{%f4, %f5, %f6, %f6}, {%f7, %f8, %f9, %f9}";
    let reads = [
        ("", format!("3d.v4.f32.f32 {{%f0, %f1, %f2, %f3}}, [%h, {{%f0, %f1, %f2, %f2}}], {slopes}")),
        ("", format!("3d.v4.f32.f32 {{%f0, %f1, %f2, %f3}}, [%h, {{%f0, %f1, %f2, %f2}}], {slopes}, {{1, 2, 3, 3}}")),
        ("", format!("cube.v4.f32.f32 {{%f0, %f1, %f2, %f3}}, [%h, {{%f0, %f1, %f2, %f2}}], {slopes}, %f4")),
        ("", format!("acube.v4.u32.f32 {{%r0, %r1, %r2, %r3}}, [%h, {{%r0, %f0, %f1, %f2}}], {slopes}")),
        (
            ", texmode_independent",
            format!("3d.v4.f32.f32 {{%f0, %f1, %f2, %f3}}, [%h, %s, {{%f0, %f1, %f2, %f2}}], {slopes}"),
        ),
    ];
    for (mode, read) in reads {
        let body = format!(
            ".visible .entry k(.param .u64 h, .param .u64 s) {{ .reg .b64 %h, %s, %p; .reg .f32 %f<10>; .reg .b32 %r<4>;\n\
             ld.param.u64 %h, [h]; ld.param.u64 %s, [s]; mov.u64 %p, 64; ld.global.f32 %f4, [%p];\n\
             tex.grad.{read};\nst.global.f32 [%p], %f0; st.global.b32 [%p], %r0; ret; }}\n"
        );
        let target = format!("90{mode}");
        let bytes = theirs(&ptxas, &body, &target, &["-c"]).unwrap_or_else(|said| panic!("{read}: {said}"));
        let text = format!(".version 9.0\n.target sm_{target}\n.address_size 64\n{body}");
        let options = Options { relocatable: true, verify_ir: true, ..Options::new("sm_90") };
        let ours = compile(&text, &options).unwrap_or_else(|list| panic!("{read}: {list:?}")).cubin;
        let [theirs, ours] = [bytes, ours].map(|bytes| sassafras::cubin::read(&bytes).expect("an object").prototypes);
        assert!(!theirs.is_empty(), "{read}");
        assert_eq!(ours, theirs, "{read}");
    }
}
