//! One case for each kind of error: exact message, line and column.

use super::{kernel, parse};

/// The diagnostics of a text as `line:column message`.
fn said(source: &str) -> Vec<String> {
    let (module, diags) = parse(source);
    assert_eq!(module.is_none(), !diags.is_empty(), "a module comes out exactly when nothing is wrong");
    let place = |p: crate::diag::Pos| format!("{}:{}", p.line, p.col);
    diags.iter().map(|d| format!("{} {}", d.pos.map_or("-".into(), place), d.message)).collect()
}

/// Compares the messages about a body; lines count from the first line of the body.
fn body(text: &str, messages: &[&str]) {
    let text = kernel("8.0", "sm_80", text);
    let shift = |m: String| {
        let (line, rest) = m.split_once(':').unwrap();
        format!("{}:{rest}", line.parse::<u32>().unwrap() - 4)
    };
    assert_eq!(said(&text).into_iter().map(shift).collect::<Vec<_>>(), messages, "{text}");
}

/// Compares the messages about a file after a valid header; lines count from the first one after
/// the header.
fn file(text: &str, messages: &[&str]) {
    let text = format!(".version 8.0\n.target sm_80\n.address_size 64\n{text}");
    let shift = |m: String| {
        let (line, rest) = m.split_once(':').unwrap();
        format!("{}:{rest}", line.parse::<u32>().unwrap() - 3)
    };
    assert_eq!(said(&text).into_iter().map(shift).collect::<Vec<_>>(), messages, "{text}");
}

#[test]
fn headers() {
    assert_eq!(said(""), ["1:1 Missing .version directive at start of file"]);
    assert_eq!(said(".target sm_80"), ["1:1 Missing .version directive at start of file"]);
    assert_eq!(said(".version 8"), ["1:10 Missing .version directive at start of file"]);
    assert_eq!(said(".version 9.9\n.target sm_80"), ["1:10 Unsupported .version 9.9; current version is '9.5'"]);
    assert_eq!(said(".version 8.0\n.entry k() {}"), ["2:1 Missing .target directive at start of file"]);
    assert_eq!(said(".version 8.0\n.target sm_99\n"), ["2:9 Unsupported .target 'sm_99'"]);
    assert_eq!(said(".version 6.0\n.target sm_80\n"), ["2:9 PTX .version 6.0 does not support .target sm_80"]);
    let size = |n| format!(".version 8.0\n.target sm_80\n.address_size {n}\n");
    assert_eq!(said(&size(32)), ["3:15 32-Bit compilation is no longer supported"]);
    assert_eq!(said(&size(48)), ["3:15 Illegal value for .address_size directive (must be 32 or 64)"]);
    assert_eq!(said(&size(64)), [""; 0]);
}

#[test]
fn characters() {
    file("// \u{e9}\n", &["1:4 Unexpected non-ASCII character encountered on line 4"]);
    file("\u{e9}\u{e9} \u{e9}\n", &["1:1 Unexpected non-ASCII character encountered on line 4"]);
    file(".entry k() { ret; # }", &["1:19 Parsing error near '#': syntax error"]);
    file(".entry k() { ret; }\n /* ", &["2:2 Parsing error near '': unexpected EOF while scanning"]);
    file(".pragma \"nounroll\n;", &["1:9 Parsing error near '\"': unterminated string"]);
    body("add.s32 %r1, %r2, 08;", &["1:20 Parsing error near '8': syntax error"]);
    body(
        "add.f32 %f1, %f2, 0f12;",
        &["1:19 Arguments mismatch for instruction 'add'", "1:20 Parsing error near 'f12': syntax error"],
    );
}

#[test]
fn frame() {
    file("bogus", &["1:1 Parsing error near 'bogus': syntax error"]);
    file(".bogus", &["1:1 Parsing error near '.bogus': syntax error"]);
    file(".entry k() .bogus { ret; }", &["1:12 Parsing error near '.bogus': syntax error"]);
    file(".entry k() { ret; ", &["1:19 Parsing error near '': syntax error"]);
    file(".entry k() { ret; } }", &["1:21 Parsing error near '}': syntax error"]);
    file(".entry k() { ret; }\n.entry k() { ret; }", &["2:8 Duplicate definition of function 'k'"]);
    file(".entry k(.param .u32 a, .param .u32 a) { ret; }", &["1:37 Duplicate definition of variable 'a'"]);
    file(".entry k(.reg .u32 a) { ret; }", &["1:20 Entry parameter 'a' must have .param state space"]);
    file(
        ".func f(.param .u32 a);\n.func f(.param .u64 a) { ret; }",
        &["2:7 Inconsistent prototypes of 'f', parameter types differ"],
    );
    file(".entry k() .maxntid 0 { ret; }", &["1:21 Positive non-zero value expected for maxntid"]);
    file(
        ".entry k() .reqntid 32 .maxntid 64 { ret; }",
        &["1:24 Conflicting directives: .maxntid and .reqntid cannot both be specified"],
    );
    file(".entry k() .maxclusterrank 4 { ret; }", &["1:12 Feature '.maxclusterrank' requires .target sm_90 or higher"]);
    file(".alias a, b;", &["1:8 Unknown symbol 'a'"]);
}

#[test]
fn variables() {
    file(".global .align 3 .u32 x;", &["1:16 Alignment must be a power of two"]);
    file(".global .u32 x;\n.global .f32 x;", &["2:14 Duplicate definition of variable 'x'"]);
    file(".global .pred x;", &["1:15 Predicate variable 'x' must be in register state space"]);
    file(".reg .u32 x;", &["1:1 Module-scoped variables in .reg state space are not allowed with ABI"]);
    file(".shared .u32 x = 3;", &["1:14 No initial value is allowed for 'x' in this state space"]);
    file(".global .u32 x = y;", &["1:18 Invalid initial value symbol 'y'"]);
    file(".global .u32 x[2] = {1, 2, 3};", &["1:28 Greater number of elements in array initializer"]);
    file(
        ".func f(.param .b8 a[], .param .b32 b);",
        &["1:20 Only the last input parameter can be an incomplete array."],
    );
    file(".func (.param .b8 a[]) f();", &["1:19 Output parameter cannot be an incomplete array."]);
    file(".entry k(.param .b8 a[]) { ret; }", &["1:21 Parameter to entry function cannot be an incomplete array."]);
    file(".global .u32 y[];", &["1:14 Non-external variable 'y' has incomplete type"]);
    file(".global .f32 x = 1;", &["1:18 Initial value type mismatch"]);
    file(".global .u32 x = 1.0;", &["1:18 Initial value type mismatch"]);
    file(".global .foo x;", &["1:9 Parsing error near '.foo': syntax error"]);
    file(".global .u32 x[99999999999999];", &["1:14 Variable 'x' is too large"]);
    file(".global .u32 x[-1];", &["1:16 Parsing error near '-': syntax error"]);
    body(".reg .u32 %r1;", &["1:11 Duplicate definition of variable '%r1'"]);
    body(".reg .u32 x; .reg .f32 x;", &["1:24 Duplicate definition of variable 'x'"]);
    body(".reg .u32 a<;", &["1:13 Parsing error near ';': syntax error"]);
    body(".reg .b32 z<4294967296>;", &["1:13 Constant overflow"]);
}

#[test]
fn constants() {
    body("add.s32 %r1, %r2, 999999999999999999999999;", &["1:19 Constant overflow"]);
    body("add.s32 %r1, %r2, 1 / 0;", &["1:21 Constant expression has division by zero"]);
    body("add.s32 %r1, %r2, 1.0 % 2;", &["1:23 Constant expression type mismatch"]);
    let deep = format!("add.s32 %r1, %r2, {}1;", "-".repeat(100));
    body(&deep, &["1:83 Constant expression is nested deeper than 64 levels"]);
}

#[test]
fn names() {
    body("foo.s32 %r1, %r2;", &["1:1 Not a name of any known instruction: 'foo'"]);
    let wgmma = "Instruction 'wgmma.mma_async with floating point types' not supported on .target 'sm_80'";
    let product = "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f1,%f2,%f3,%f4}, %rd1, %rd2, 1, 1, 1;";
    body(product, &[&format!("1:1 {wgmma}")]);
    body("add.s32 %r1, %r2, %r11;", &["1:19 Unknown symbol '%r11'"]);
    body("bra L1;", &["1:5 Unknown symbol 'L1'"]);
    body("L1: L1: ret;", &["1:5 Duplicate definition of label 'L1'"]);
    body("{ A: } bra A;", &["1:12 Unknown symbol 'A'"]);
    body("@%p9 ret;", &["1:2 Unknown symbol '%p9'"]);
    body("@%r1 ret;", &["1:2 Predicate expression expected"]);
    body("mov.u32 %r1, %tidd.x;", &["1:14 Unknown symbol '%tidd'"]);
    body("add.s32 %r1.q, %r2, %r3;", &["1:12 Unknown video selector: '.q'"]);
    body("mov.u32 %r1, %clusterid.x;", &["1:14 Feature '%clusterid' requires .target sm_90 or higher"]);
}

#[test]
fn modifiers() {
    body("add.foo.s32 %r1, %r2, %r3;", &["1:4 Unknown modifier '.foo'"]);
    body("add.rn.s32 %r1, %r2, %r3;", &["1:4 Illegal rounding modifier for instruction 'add'"]);
    body("add.ftz.s32 %r1, %r1, %r1;", &["1:4 Illegal modifier '.ftz' for instruction 'add'"]);
    body("add.s32.lt %r1, %r2, %r3;", &["1:8 Comparison qualifier is not allowed for instruction 'add'"]);
    body("add.ftz.ftz.f32 %f1, %f1, %f1;", &["1:8 Duplicate .ftz modifier"]);
    body("fma.rn.rz.f32 %f1, %f1, %f1, %f1;", &["1:7 Multiple rounding modifiers specified"]);
    body("fma.f32 %f1, %f1, %f1, %f1;", &["1:1 Rounding modifier required for instruction 'fma'"]);
    body("cvt.f32.f64 %f1, %d1;", &["1:1 Rounding modifier required for instruction 'cvt'"]);
    body("cvt.rn.s32.f32 %r1, %f1;", &["1:4 Illegal rounding modifier for instruction 'cvt'"]);
    body("cvt.rn.f64.f32 %d1, %f1;", &["1:4 Illegal rounding modifier for instruction 'cvt'"]);
    body("setp.s32 %p1, %r1, %r2;", &["1:1 Comparison modifier required for instruction 'setp'"]);
    body("setp.lo.s32 %p1, %r1, %r2;", &["1:5 Mismatch between instruction type and comparison qualifier"]);
    body("add %r1, %r2, %r3;", &["1:1 Unexpected instruction types specified for 'add'"]);
    body("add.pred %p1, %p2, %p3;", &["1:1 Unexpected instruction types specified for 'add'"]);
    body("add.s32.s32 %r1, %r2, %r3;", &["1:1 Unexpected instruction types specified for 'add'"]);
    body("sin.f32 %f1, %f1;", &["1:1 .approx modifier required for instruction 'sin'"]);
    body("shf.l.b32 %r1, %r1, %r1, %r1;", &["1:1 Clamp modifier required for instruction 'shf'"]);
    body("membar;", &["1:1 Membar level required for instruction 'membar'"]);
    body("fence.sc;", &["1:1 Scope modifier required for instruction 'fence'"]);
    body("atom.global.u32 %r1, [%rd1], 1;", &["1:1 Reduction operation is required for instruction 'atom'"]);
    body("atom.const.add.u32 %r1, [%rd1], 1;", &["1:5 State space incorrect for instruction 'atom'"]);
    body(
        "ld.global.global.u32 %r1, [%rd1];",
        &["1:10 Unexpected number of state spaces specified in instruction 'ld'"],
    );
    body("min.xorsign.abs.f32 %f1, %f2, %f3;", &["1:1 Feature '.abs' requires .target sm_86 or higher"]);
    body("add.bf16 %h1, %h1, %h1;", &["1:1 Feature 'add.bf16' requires .target sm_90 or higher"]);
}

#[test]
fn operands() {
    body("add.s32 %r1, %r2;", &["1:1 Arguments mismatch for instruction 'add'"]);
    body("add.s32 %r1, %f2, %r3;", &["1:14 Arguments mismatch for instruction 'add'"]);
    body("add.s32 %r1, %rd2, %r3;", &["1:14 Arguments mismatch for instruction 'add'"]);
    body("add.s32 5, %r2, %r3;", &["1:9 Result register required for instruction 'add'"]);
    body("add.s32 _, %r2, %r3;", &["1:9 Result discard mode is not allowed for instruction 'add'"]);
    body("add.f32 %f1, %f2, 1;", &["1:19 Arguments mismatch for instruction 'add'"]);
    body("add.s32 %r1, %r2, 1.5;", &["1:19 Arguments mismatch for instruction 'add'"]);
    body("add.s32 %r1, %r2, -%r3;", &["1:19 Operand negation not allowed for instruction 'add'"]);
    body("add.u32 %r1, %tid.x, 1;", &["1:14 Special register argument not allowed for instruction 'add'"]);
    body("mov.u32 %tid.x, 1;", &["1:9 Read-only special register cannot be destination argument"]);
    body("mov.u32 %r1, %f1;", &["1:14 Arguments mismatch for instruction 'mov'"]);
    body("ld.global.u32 %r1, %rd1;", &["1:20 Arguments mismatch for instruction 'ld'"]);
    body("ld.global.u8 %f1, [%rd1];", &["1:14 Arguments mismatch for instruction 'ld'"]);
    body("ld.global.v4.u32 {%r1, %r2}, [%rd1];", &["1:18 Argument vector size mismatch for instruction 'ld'"]);
    body("ld.global.u32 %r1, [n];", &["1:20 State space mismatch between instruction and address in instruction 'ld'"]);
    body("ld.param.u32 %r1, [k];", &["1:19 Illegal operand type to instruction 'ld'"]);
    body("st.param.u32 [n], %r1;", &["1:14 Illegal to write to function input parameter 'n'"]);
    body("bra %r1;", &["1:5 Label expected for argument 0 of instruction 'bra'"]);
    body("call k;", &["1:6 Illegal call target, device function expected"]);
    body("call %rd1, (%r1);", &["1:6 Indirect call requires call prototype"]);
    file(
        ".func (.reg .u32 r) f(.reg .u32 a);\n.entry k() { .reg .u32 x; call (x), f, (x, x); ret; }",
        &["2:37 Call has wrong number of parameters"],
    );
    body("mov.b32 %r1, {%h1, %h2, %h3};", &["1:14 Arguments mismatch for instruction 'mov'"]);
}

#[test]
fn one_error_does_not_hide_the_next() {
    body(
        "add.s32 %r1, %r2, %r3\nfoo;\nadd.foo %r1;\n{ bar.sync; } add.f32 %f1;\n%%",
        &[
            "2:1 Parsing error near 'foo': syntax error",
            "3:4 Unknown modifier '.foo'",
            "4:3 Arguments mismatch for instruction 'bar'",
            "4:15 Arguments mismatch for instruction 'add'",
            "5:1 Parsing error near '%': syntax error",
        ],
    );
    file(
        ".global .u32 x = ;\n.bogus 3;\n.entry k() { bra X; }\n.entry k2(.param .u32 ) { ret; }\n.entry k3() { foo; }",
        &[
            "1:18 Parsing error near ';': syntax error",
            "2:1 Parsing error near '.bogus': syntax error",
            "3:18 Unknown symbol 'X'",
            "4:23 Parsing error near ')': syntax error",
            "5:15 Not a name of any known instruction: 'foo'",
        ],
    );
}

#[test]
fn a_missing_brace_ends_with_the_function() {
    file(
        ".entry k() { ret;\n.visible .entry k2() { foo; }",
        &["2:1 Parsing error near '.visible': syntax error", "2:24 Not a name of any known instruction: 'foo'"],
    );
}

#[test]
fn errors_are_bounded() {
    let text = kernel("8.0", "sm_80", &"foo;\n".repeat(100_000));
    let all = said(&text);
    assert_eq!(all.len(), 501);
    assert_eq!(all[500], "504:1 Too many errors; the rest of the file is not read");
    let all = said(&kernel("8.0", "sm_80", &"\u{e9} \u{e8}\n".repeat(100_000)));
    assert!(all.len() <= 502, "{}", all.len());
}
