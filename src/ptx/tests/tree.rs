//! Tests of the syntax tree of small files: scopes, labels, initialisers, operands, calls.

use super::{kernel, parse};
use crate::ptx::ast::*;
use crate::tables::ptx::{Compare, MulMode, Op, ScalarType, Space};

/// The module of a text that must be valid.
fn module(source: &str) -> Module {
    let (module, diags) = parse(source);
    let text: String = diags.iter().map(|d| d.render("test", source)).collect();
    assert!(diags.is_empty(), "{text}");
    module.unwrap()
}

/// The first function of a kernel around a body.
fn function(body: &str) -> Function {
    module(&kernel("9.0", "sm_90", body)).functions.values().next().unwrap().clone()
}

fn instructions(function: &Function) -> Vec<&Instruction> {
    let body = function.body.as_ref().unwrap();
    body.iter().filter_map(|s| if let Statement::Instruction(i) = s { Some(&**i) } else { None }).collect()
}

#[test]
fn modifiers_go_to_fields_in_any_order() {
    let f = function(
        "mad.wide.s32 %rd1, %r1, %r2, %rd2; setp.s32.lt.and %p1|%p2, %r1, 3, !%p3; atom.acq_rel.gpu.add.u32 %r1, [sm], 1;",
    );
    let all = instructions(&f);
    assert_eq!((all[0].op, all[0].mods.mul_mode), (Op::Mad, Some(MulMode::Wide)));
    assert_eq!(all[0].types[..], [ScalarType::S32]);
    assert_eq!(all[1].mods.compare, Some(Compare::Lt));
    assert!(matches!(all[1].operands[0].kind, OperandKind::Pair(_)));
    assert!(matches!(all[1].operands[3].kind, OperandKind::Register(r) if r.not));
    assert_eq!(all[2].row.form().op, Op::Atom);
}

#[test]
fn only_used_registers_are_in_the_table() {
    let f = function("mov.u32 %r3, 1; mov.u32 %r3, %r1;");
    let names: Vec<&str> = f.registers.values().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["%r3", "%r1"]);
    let one = |text: &str| {
        let text = format!(".version 8.0 .target sm_80 .entry k() {{ .reg .b32 %r<3>, %s1<3>; {text} }}");
        parse(&text).1.len()
    };
    assert_eq!(one("mov.b32 %r0, %r2;"), 0);
    assert_eq!(one("mov.b32 %r0, %r3;"), 1);
    assert_eq!(one("mov.b32 %r0, %r;"), 1);
    // All digits at the end of a name are its number, as in ptxas, so no use resolves to these.
    assert_eq!(one("mov.b32 %r0, %s12;"), 1);
}

#[test]
fn scopes_shadow() {
    let f = function("{ .reg .b32 x; mov.b32 x, 1; { .reg .f32 x; mov.f32 x, 0f00000000; } mov.b32 x, 2; }");
    let all = instructions(&f);
    let target = |i: usize| if let OperandKind::Register(r) = all[i].operands[0].kind { r.register } else { panic!() };
    assert_eq!(target(0), target(2));
    assert_ne!(target(0), target(1));
    assert_eq!(f.registers[target(1)].ty, ScalarType::F32);
}

#[test]
fn labels_belong_to_the_innermost_scope_that_defines_them() {
    let f = function("{ bra DONE; DONE: } { { bra DONE; } @%p1 bra OUT; DONE: } bra OUT; OUT:");
    let body = f.body.as_ref().unwrap();
    let mut places = Vec::new();
    for s in body {
        match s {
            Statement::Label(l) => places.push(format!("{}:", l.as_u32())),
            Statement::Instruction(i) => {
                if let Some(OperandKind::Label(l)) = i.operands.first().map(|o| &o.kind) {
                    places.push(l.as_u32().to_string());
                }
            }
            _ => {}
        }
    }
    assert_eq!(places.join(" "), "0 0: 1 2 1: 2 2:");
    assert_eq!(f.labels.len(), 3);
}

#[test]
fn branch_targets() {
    let f = function("ts: .branchtargets A, B;\nbrx.idx %r1, ts;\nA: B: ret;");
    let all = instructions(&f);
    let OperandKind::Label(label) = all[0].operands[1].kind else { panic!() };
    let names: Vec<&str> = f.labels[label].targets.iter().map(|l| f.labels[*l].name.as_str()).collect();
    assert_eq!(names, ["A", "B"]);
}

#[test]
fn addresses() {
    let f = function(
        "ld.global.u32 %r1, [%rd1+-4]; ld.global.u32 %r1, [%rd1+4+4]; ld.shared.u32 %r1, [sm+8]; ld.shared.u8 %r1, sm[3]; ld.local.u32 %r1, [64]; mov.u64 %rd1, sm+12;",
    );
    let all = instructions(&f);
    let at = |i: usize| if let OperandKind::Address(a) = &all[i].operands[1].kind { a.clone() } else { panic!("{i}") };
    assert_eq!((at(0).offset, at(1).offset, at(2).offset, at(3).offset, at(4).offset), (-4, 8, 8, 3, 64));
    assert!(matches!(at(0).base, AddressBase::Register(_)) && matches!(at(3).base, AddressBase::Symbol(_)));
    assert_eq!(at(4).base, AddressBase::Absolute);
    assert!(matches!(all[5].operands[1].kind, OperandKind::Symbol { offset: 12, .. }));
}

#[test]
fn constants_fold() {
    let value = |text: &str| {
        let op = if text.contains("0f") { "mov.f32 %f1" } else { "mov.b64 %rd1" };
        let f = function(&format!("{op}, {text};"));
        let kind = instructions(&f)[0].operands[1].kind.clone();
        if let OperandKind::Constant(c) = kind { c } else { panic!("{text}") }
    };
    let int = |bits: i64| Constant::Int { bits: bits as u64, unsigned: false };
    for (text, want) in [
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("-5", -5),
        ("~0", -1),
        ("!3", 0),
        ("1?2:3", 2),
        ("0 ? 2 : 0 ? 4 : 5", 5),
        ("0x10", 16),
        ("017", 15),
        ("0b101", 5),
        ("10 % 4", 2),
        ("10 %3", 1),
        ("7 >> 1 << 2", 12),
        ("-7 >> 1", -4),
        ("1 < 2 && 3 != 3 || 1", 1),
        ("5 & 3 | 8 ^ 12", 5),
        ("WARP_SZ - 1", 31),
        ("-1 < 1", 1),
        ("-1 < 1U", 0),
        ("(.s64) 2U - 3", -1),
    ] {
        assert_eq!(value(text), int(want), "{text}");
    }
    assert_eq!(value("5U"), Constant::Int { bits: 5, unsigned: true });
    assert_eq!(value("0xFFFFFFFFFFFFFFFF"), Constant::Int { bits: u64::MAX, unsigned: true });
    assert_eq!(value("0f3F800000"), Constant::F32(0x3F80_0000));
    assert_eq!(value("-(0f7FC00001)"), Constant::F32(0xFFC0_0001));
    assert_eq!(value("1.5"), Constant::F64(1.5f64.to_bits()));
    assert_eq!(value(".5"), Constant::F64(0.5f64.to_bits()));
    assert_eq!(value("1e3"), Constant::F64(1000f64.to_bits()));
    assert_eq!(value("0d3FF0000000000000"), Constant::F64(1f64.to_bits()));
}

/// The variable of a given name in a file that consists of declarations.
fn variable(declarations: &str, name: &str) -> Variable {
    let m = module(&format!(".version 9.0\n.target sm_90\n.address_size 64\n{declarations}"));
    let symbol = m.symbols.values().find(|s| s.name == name).unwrap();
    if let SymbolKind::Variable(v) = &symbol.kind { *v.clone() } else { panic!() }
}

#[test]
fn layouts() {
    let v = variable(".visible .global .align 16 .v4 .f32 x[3][2];", "x");
    assert_eq!((v.linkage, v.space, v.align, v.size, v.vector), (Linkage::Visible, Space::Global, 16, 96, 4));
    let v = variable(".extern .shared .align 4 .b8 x[];", "x");
    assert_eq!((v.size, v.dimensions[0]), (0, None));
    let v = variable(".entry k(.param .u64 .ptr .global .align 8 a) { ret; }", "a");
    assert_eq!(v.pointer, Some(PointerAttributes { space: Some(Space::Global), align: 8 }));
    assert!(variable(".global .attribute(.managed) .u32 x;", "x").managed);
}

#[test]
fn initialisers() {
    let offsets = |v: &Variable| v.init.iter().map(|i| i.offset).collect::<Vec<_>>();
    let v = variable(".global .u16 x[2][3] = {{1, 2}, {3}};", "x");
    assert_eq!(offsets(&v), [0, 2, 6]);
    let v = variable(".global .u16 x[4] = {1, 2};", "x");
    assert_eq!(offsets(&v), [0, 2]);
    let v = variable(".global .u32 x[] = {1, 2, 3};", "x");
    assert_eq!((v.size, v.dimensions[0]), (12, Some(3)));
    let v = variable(".global .v2 .f32 x[2] = {{1.0, 2.0}, {3.0, 4.0}};", "x");
    assert_eq!(offsets(&v), [0, 4, 8, 12]);
    let v = variable(".global .u32 y;\n.global .u64 x[3] = {y, y+4, generic(y)+8};", "x");
    let address = |i: usize| match &v.init[i].value {
        InitValue::Address { offset, generic, .. } => (*offset, *generic),
        _ => panic!(),
    };
    assert_eq!([address(0), address(1), address(2)], [(0, false), (4, false), (8, true)]);
    let v = variable(".global .u32 y;\n.global .u8 x[2] = {0xFF(y), 0xFF00(generic(y)+1)};", "x");
    assert!(matches!(v.init[1].value, InitValue::Address { offset: 1, generic: true, mask: Some(0xFF00), .. }));
}

#[test]
fn calls() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n\
        .func (.param .b32 r) f(.param .b32 a, .param .align 8 .b8 s[16]);\n.func g() .noreturn;\n\
        .visible .func (.param .b32 r) f(.param .b32 a, .param .align 8 .b8 s[16]) { st.param.b32 [r], 1; ret; }\n\
        .entry k() .maxntid 256, 2 .minnctapersm 2 { .reg .b64 %rd1; .param .b32 x; .param .align 8 .b8 s[16];\n\
        call.uni (x), f, (x, s); call g; call g, ();\n\
        P: .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 8 .b8 _[16]);\n\
        call (x), %rd1, (x, s), P; ret; }";
    let m = module(text);
    assert_eq!(m.functions.len(), 3);
    let f = m.functions.values().next().unwrap();
    assert!(f.body.is_some() && f.linkage == Linkage::Visible && f.results.len() == 1 && f.params.len() == 2);
    let k = m.functions.values().find(|f| f.is_entry).unwrap();
    assert_eq!(k.directives.max_threads, Some([256, 2, 1]));
    let all = instructions(k);
    let shape = |i: &Instruction| {
        let list = |o: &Operand| if let OperandKind::List(l) = &o.kind { l.len() } else { panic!() };
        (list(&i.operands[0]), list(&i.operands[2]), i.operands.len())
    };
    assert_eq!(all[..4].iter().map(|i| shape(i)).collect::<Vec<_>>(), [(1, 2, 3), (0, 0, 3), (0, 0, 3), (1, 2, 4)]);
    assert!(all[0].mods.uniform);
}

#[test]
fn line_ends_comments_and_debug_text() {
    let text = ".version 8.0\r\n.target sm_80, debug // c\r\n.address_size 64\r\n/* a\r\n b */ .file 1 \"a.cu\", 12, 13\r\n\
        .entry k()\r\n{\r\n.loc 1 7 8\r\n.loc 1 4 5, function_name $L__info+3, inlined_at 1 7 8\r\nret;\r\n}\r\n\
        .section .debug_str\r\n{\r\n$L__info:\r\n.b8 1,2\r\n}\r\n@@DWARF .byte 0\r\n";
    let m = module(text);
    assert!(m.target.debug);
    assert_eq!(m.files[0], File { index: 1, name: "a.cu".into(), timestamp: Some(12), size: Some(13) });
    assert_eq!(m.debug_sections.len(), 2);
    assert_eq!(m.debug_sections[0].lines, ["$L__info:", ".b8 1,2"]);
    let body = m.functions.values().next().unwrap().body.as_ref().unwrap().clone();
    let Statement::Location(l) = &body[1] else { panic!() };
    assert_eq!(
        l.inlined,
        Some(InlinedAt { function_name: "$L__info".into(), name_offset: 3, file: 1, line: 7, column: 8 })
    );
    let Statement::Instruction(i) = &body[2] else { panic!() };
    assert_eq!((i.pos.line, i.pos.col), (10, 1));
}

#[test]
fn vectors_of_one_are_scalars() {
    let f = function(
        "ld.global.b32 { %r1 }, [ %rd1 + 0 ]; st.global.v2.b32 [%rd1], {%r1, 5}; ld.global.v2.b32 {_, %r1}, [%rd1];",
    );
    let all = instructions(&f);
    assert!(matches!(all[0].operands[0].kind, OperandKind::Register(_)));
    assert!(matches!(&all[1].operands[1].kind, OperandKind::Vector(v) if v.len() == 2));
}

/// Tokens come in batches: lookahead must work across every batch boundary.
#[test]
fn a_call_is_read_across_the_end_of_a_batch() {
    let f = ".func (.param .b32 o) f (.param .b32 param1, .param .b32 param2) { ret; }\n";
    let call = "{ .param .b32 a; .param .b32 b; .param .b32 c; call (c), f, (a, b); }\n";
    for fill in 1000..1060 {
        // Three tokens and two.
        let (three, two) = if fill % 2 == 1 { (1, (fill - 3) / 2) } else { (0, fill / 2) };
        let body = "membar.gl;".repeat(three) + &"ret;".repeat(two) + call;
        let text = format!(".version 8.0\n.target sm_80\n.address_size 64\n{f}.entry k() {{\n{body}}}\n");
        assert_eq!(module(&text).functions.len(), 2, "{fill}");
    }
}
