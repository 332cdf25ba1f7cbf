//! Addresses as initial values: which ones ptxas accepts, and the resulting data and relocations.
//!
//! The input is a variable of each space and type, initialised with each kind of address of each
//! kind of symbol, in a cubin or in a relocatable object, in turn (in both with
//! `SASSAFRAS_ORACLE=all`): each two of space, type, kind of address, kind of symbol and kind of
//! file meet. If ptxas is installed, it must accept
//! the same ones, with the same bytes and relocations of the element. Addresses truncated to 32
//! bits differ on purpose: ptxas writes eight bytes there, over the following element.

use crate::cubin_support::{compile as theirs, tool};
use sassafras::compile::{Options, compile};
use sassafras::cubin::{Cubin, Image, Space, read};
use sassafras::sim::launch::ArgValue;
use sassafras::sim::run::{Shape, run};

/// The value of the initialised variable's second element.
#[derive(Debug, PartialEq)]
struct Element {
    bytes: Vec<u8>,
    /// Offset in the element, relocation number, symbol, addend.
    relocs: Vec<(u64, u32, String, i64)>,
}

const SYMBOLS: [&str; 9] = [
    ".visible .const .align 8 .b8 X[16] = {7};",
    ".visible .global .align 8 .b8 X[16];",
    ".visible .global .align 8 .b8 X[16] = {7};",
    ".weak .global .align 8 .b8 X[16];",
    ".global .align 8 .b8 X[16];",
    ".visible .shared .align 8 .b8 X[16];",
    ".visible .func (.reg .u32 r) X(.reg .u32 a) { mov.u32 r, a; ret; }",
    ".visible .entry X() { ret; }",
    ".extern .func (.reg .u32 r) X(.reg .u32 a);",
];

const VALUES: [&str; 14] = [
    "X",
    "X+4",
    "X-4",
    "generic(X)",
    "generic(X)+4",
    "generic(X+4)",
    "0xFF(X)",
    "0xFF00(X)",
    "0xFF0000(X+4)",
    "0xFF000000(generic(X))",
    "0xFF00000000000000(X)",
    "0xFFFF(X)",
    "0xFF(X)+1",
    "65280(X)",
];

const TYPES: [&str; 7] = ["u8", "b8", "u16", "u32", "s64", "u64", "f64"];

fn module(space: &str, ty: &str, symbol: &str, value: &str) -> String {
    format!(
        ".visible .const .u64 first = 1;\n{symbol}\n\
         .visible .{space} .{ty} V[2] = {{ 0, {value} }};\n\
         .visible .entry k(.param .u64 out) {{ .reg .u64 %o, %v; .reg .u32 %r; ld.param.u64 %o, [out]; mov.u64 %v, V;\n\
         P: .callprototype (.reg .u32 r) _ (.reg .u32 a); ld.{space}.u64 %v, [%v]; call (%r), %v, (1), P;\n\
         st.global.u64 [%o], %v; ret; }}\n"
    )
}

fn element(bytes: &[u8]) -> Element {
    let cubin: Cubin = read(bytes).expect("a cubin");
    let variable = cubin.variable("V").expect("the variable");
    let image: &Image = match variable.space {
        Space::Constant => cubin.constant3.as_ref(),
        Space::GlobalInit => cubin.global_init.as_ref(),
        Space::Global => cubin.global.as_ref(),
    }
    .expect("its image");
    let (start, end) = (variable.offset + variable.size / 2, variable.offset + variable.size);
    let mut all = image.bytes.clone();
    all.resize(image.size as usize, 0);
    let own = image.relocs.iter().filter(|r| (start..end).contains(&r.offset));
    let mut relocs: Vec<_> = own.map(|r| (r.offset - start, r.kind, r.symbol.clone(), r.addend)).collect();
    relocs.sort();
    Element { bytes: all[start as usize..end as usize].to_vec(), relocs }
}

#[test]
fn initial_values_are_those_of_ptxas() {
    let Some(ptxas) = tool("ptxas") else { return };
    let all = std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all");
    let (mut wrong, mut taken, mut asked) = (Vec::new(), 0, 0);
    for (object, target) in [(false, "90"), (true, "90"), (false, "80"), (true, "80")] {
        for (p, space) in ["const", "global"].into_iter().enumerate() {
            let pairs = SYMBOLS.iter().enumerate().flat_map(|s| TYPES.iter().enumerate().map(move |t| (s, t)));
            for ((s, symbol), (t, ty)) in pairs {
                // On the second target only the relocations differ, and the types not listed here
                // are rejected alike.
                if target == "80" && !(*ty == "u64" && space == "const") {
                    continue;
                }
                for (v, value) in VALUES.into_iter().enumerate() {
                    if !all && (p + s + t + v) % 2 != usize::from(object) {
                        continue;
                    }
                    let text = module(space, ty, symbol, value);
                    let options = Options { relocatable: object, ..Options::new(&format!("sm_{target}")) };
                    let head = format!(".version 9.0\n.target sm_{target}\n.address_size 64\n");
                    let ours = compile(&(head + &text), &options).ok().map(|output| element(&output.cubin));
                    let more: &[&str] = if object { &["-c"] } else { &[] };
                    let theirs = theirs(&ptxas, &text, target, more).ok().map(|bytes| element(&bytes));
                    (asked, taken) = (asked + 1, taken + usize::from(theirs.is_some()));
                    let cut = *ty == "u32" && theirs.as_ref().is_some_and(|e| !e.relocs.is_empty());
                    // If a program has only one function pointer, ptxas calls without a table and
                    // numbers it differently.
                    let pointer = !object && symbol.contains(".func");
                    let same = if cut || pointer { ours.is_some() == theirs.is_some() } else { ours == theirs };
                    if !same {
                        wrong.push(format!(
                            "{target} {object} {space} {ty} {value} of {symbol}: {ours:?}, not {theirs:?}"
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {asked} differ:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
    assert!(taken > 300 && asked > taken + 300, "{taken} of {asked}");
}

/// Addresses in 32-bit elements leave the next element unchanged, unlike in ptxas 13.0.88.
#[test]
fn addresses_cut_to_32_bits() {
    let text = ".version 7.1\n.target sm_75\n.address_size 64\n.global .u64 g = 5;\n.const .u64 c[2] = {6, 7};\n\
        .global .u32 cut[4] = {g, 1, generic(c), 2};\n.const .u32 bank[3] = {c+8, 3, g};\n\
        .visible .entry k(.param .u64 out) { .reg .u64 %o, %v; .reg .u32 %a, %b;\nld.param.u64 %o, [out];\n\
        mov.u64 %v, g;\ncvt.u32.u64 %a, %v;\nld.global.u32 %b, [cut];\nsub.u32 %a, %a, %b;\nst.global.u32 [%o], %a;\n\
        ld.global.u32 %a, [cut+4];\nst.global.u32 [%o+4], %a;\nmov.u64 %v, c;\ncvta.const.u64 %v, %v;\ncvt.u32.u64 %a, %v;\n\
        ld.global.u32 %b, [cut+8];\nsub.u32 %a, %a, %b;\nst.global.u32 [%o+8], %a;\nld.global.u32 %a, [cut+12];\n\
        st.global.u32 [%o+12], %a;\nld.const.u32 %v, [bank];\nld.const.u32 %a, [%v];\nst.global.u32 [%o+16], %a;\n\
        ld.const.u32 %a, [bank+4];\nst.global.u32 [%o+20], %a;\nld.const.u32 %a, [bank+8];\nld.global.u32 %b, [cut];\n\
        sub.u32 %a, %a, %b;\nst.global.u32 [%o+24], %a;\nret; }\n";
    let expected = [0u32, 1, 0, 2, 7, 3, 0];
    let shape = Shape { grid: [1; 3], block: [1; 3], smem: 0 };
    let words = |args: &[ArgValue]| match &args[0] {
        ArgValue::Buffer { bytes, .. } => {
            bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    let buffer = || [ArgValue::Buffer { bytes: vec![0xee; 4 * expected.len()], writable: true }];
    for target in ["sm_75", "sm_90", "sm_120"] {
        let output = compile(text, &Options::new(target)).expect("compiled");
        let mut args = buffer();
        run(&output.cubin, "k", shape, &mut args).expect("run");
        assert_eq!(words(&args), expected, "{target}");
    }
    let mut args = buffer();
    let parsed = sassafras::sim::ptx::parse(text.as_bytes()).0.expect("parsed");
    sassafras::sim::ptx::run(&parsed, "k", shape, &mut args).expect("interpreted");
    assert_eq!(words(&args), expected);
}

/// Private variables that only other initialisers refer to, with and without functions in the
/// module.
#[test]
fn private_variables_of_initialisers_are_there() {
    let data = ".version 9.0\n.target sm_90\n.address_size 64\n.const .align 1 .u8 s[4] = {71, 77, 84, 0};\n.global .u64 b = 3;\n\
        .global .u64 a = b;\n.visible .global .align 8 .u64 t[3] = {generic(s), a, b};\n";
    for (object, code) in [(false, ""), (true, ""), (false, ".visible .entry k() { ret; }\n")] {
        let options = Options { relocatable: object, ..Options::new("sm_90") };
        let output = compile(&format!("{data}{code}"), &options).expect("compiled");
        let cubin = read(&output.cubin).expect("a cubin");
        let relocs = &cubin.global_init.as_ref().expect("an image").relocs;
        let mut names: Vec<&str> = relocs.iter().map(|r| r.symbol.as_str()).collect();
        names.sort();
        assert_eq!(names, ["a", "b", "b", "s"]);
    }
}
