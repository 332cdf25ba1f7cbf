//! Lowers small PTX texts and compares the Ori; lowers every kernel of the repository and verifies
//! the result.

use super::{LoweredModule, lower};
use crate::diag::Diagnostic;
use crate::ori::{text, verify};
use crate::tables::Feature;
use crate::tables::elf::ElfTarget;
use crate::tables::targets::{TARGETS, Target, Variant};
use std::path::Path;

fn lowered(source: &str, target: &str) -> Result<LoweredModule, Vec<Diagnostic>> {
    let (module, diagnostics) = crate::ptx::parse(source);
    lower(&module.ok_or(diagnostics)?, Target::by_name(target).unwrap(), false)
}

/// Forms that are refused by name on some targets.
const REFUSED: [&str; 5] = [
    "'cp.async.bulk.shared::cluster.global' is not implemented",
    "'cp.async.bulk.tensor.shared::cluster.global' is not implemented",
    "'redux.sync.max.f32' is not implemented",
    "'redux.sync.max.NaN.f32' is not implemented",
    "'redux.sync.min.f32' is not implemented",
];

/// What needs tensor memory to be allocated.
const ALLOCATION: [&str; 3] = ["'tcgen05.alloc.", "'tcgen05.dealloc.", "'tcgen05.relinquish_alloc_permit'"];

/// Reads of textures that are refused where they are calls of the driver.
const TEXTURES: [&str; 2] = ["with a comparison", "'tex.2dms'"];

/// Where a word tells the chosen lane from the others, no lanes take turns: only the barrier is
/// made lane by lane.
#[test]
fn lanes_that_words_choose_take_no_turns() {
    for (case, copies) in [("elections_told", 3), ("elections_later", 3)] {
        let path = format!("{}/tests/cases/exec/{case}.ptx", env!("CARGO_MANIFEST_DIR"));
        let module = lowered(&std::fs::read_to_string(path).unwrap(), "sm_90").unwrap();
        let text = text::print(&module.functions[0].function);
        let turns = |line: &&str| line.contains("ELECT") && !line.contains(" d=");
        assert_eq!(text.lines().filter(turns).count(), 1, "{text}");
        assert_eq!(text.matches("UBLKCP").count(), copies, "{text}");
    }
}

/// What publishes a tensor map for a block or a cluster reaches the device.
#[test]
fn tensor_maps_are_published_to_the_device() {
    for (scope, reached) in [("cta", "GPU"), ("cluster", "GPU"), ("gpu", "GPU"), ("sys", "SYS")] {
        let source = format!(
            ".version 8.3\n.target sm_90\n.address_size 64\n.entry k(.param .u64 to) {{\n\
             .shared .align 128 .b8 map[128];\n.reg .b64 %d;\nld.param.u64 %d, [to];\n\
             fence.proxy.tensormap::generic.release.{scope};\n\
             tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{scope}.sync.aligned [%d], [map], 128;\n\
             ret;\n}}\n"
        );
        let module = lowered(&source, "sm_90").unwrap();
        let text = text::print(&module.functions[0].function);
        let fences: Vec<&str> = text.lines().filter(|line| line.contains("MEMBAR")).collect();
        assert!(fences.len() == 2 && fences.iter().all(|line| line.contains(&format!("scope={reached}"))), "{text}");
        assert!(text.contains(&format!("mem=STRONG.{reached}")), "{text}");
    }
}

/// `nounroll` in a body names the loop around its block, in front of one or of all functions all
/// their loops.
#[test]
fn nounroll_names_loops() {
    let source = |module: &str, entry: &str, body: &str| {
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n{module}\n.visible .entry k() {entry} {{\n\
             .reg .pred %p; .reg .b32 %r;\nmov.u32 %r, 0;\nL: {body}\nadd.u32 %r, %r, 1;\n\
             setp.lt.u32 %p, %r, 9;\n@%p bra L;\nret; }}\n"
        )
    };
    let pragma = ".pragma \"nounroll\";";
    let rolled = |module: &str, entry: &str, body: &str| {
        let module = lowered(&source(module, entry, body), "sm_80").unwrap();
        module.functions[0].function.attributes().rolled.clone()
    };
    let none = rolled("", "", "");
    assert!(!none.all && none.blocks.is_empty());
    let body = rolled("", "", pragma);
    assert!(!body.all && body.blocks.len() == 1);
    assert!(rolled(pragma, "", "").all && rolled("", pragma, "").all);
}

/// Every kernel lowers for every target, and the result passes the verifier.
#[test]
fn kernels_lower_and_verify() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let folders = [root.join("corpus"), root.join("cases/exec")];
    let mut files: Vec<_> =
        folders.iter().flat_map(|f| std::fs::read_dir(f).unwrap()).map(|e| e.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "ptx"));
    files.sort();
    assert!(files.len() > 40);
    let mut wrong = String::new();
    for file in &files {
        let source = std::fs::read_to_string(file).unwrap();
        let own = crate::ptx::parse(&source).0.and_then(|m| Target::by_name(&m.target.name)).map_or(0, |t| t.sm);
        let built = TARGETS.iter().filter(|t| t.generation.is_some() && t.variant == Variant::Base);
        for target in built.filter(|t| t.sm >= own) {
            let textures: &[&str] = if target.has(Feature::TextureOpcodes) { &[] } else { &TEXTURES };
            let allocates = ElfTarget::of_sm(target.sm).is_some_and(|elf| elf.tensor_partition().is_some());
            let allocation: &[&str] = if allocates { &[] } else { &ALLOCATION };
            let target = target.name;
            match lowered(&source, target) {
                Err(diagnostics) => {
                    let refused = |d: &Diagnostic| {
                        REFUSED.iter().chain(textures).chain(allocation).any(|form| d.message.contains(form))
                    };
                    let built = |d: &&Diagnostic| !refused(d);
                    diagnostics
                        .iter()
                        .filter(built)
                        .for_each(|d| wrong += &d.render(&file.display().to_string(), &source));
                }
                Ok(module) => {
                    for f in &module.functions {
                        let errors = verify::verify(&f.function);
                        if !errors.is_empty() {
                            wrong += &format!("{} {target}: {errors:?}\n{}", file.display(), text::print(&f.function));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The first kernel, instruction by instruction.
#[test]
fn saxpy_on_sm_90() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/saxpy.ptx");
    let module = lowered(&std::fs::read_to_string(root).unwrap(), "sm_90").unwrap();
    let function = &module.functions[0];
    println!("{}", text::print(&function.function));
    assert_eq!(verify::verify(&function.function), Vec::<String>::new());
    let places: Vec<_> = function.params.iter().map(|p| (p.offset, p.size)).collect();
    assert_eq!(places, [(0, 4), (4, 4), (8, 8), (16, 8)]);
    let ops: Vec<&str> = function
        .function
        .layout()
        .iter()
        .flat_map(|b| &function.function[*b])
        .map(|i| function.function[*i].op.info().text)
        .collect();
    let expected = "ULDC LDC LDC LDC LDC S2R COPY LDC COPY S2R COPY IMAD ISETP EXIT COPY COPY IMAD.WIDE IADD3 IADD3 LDG COPY COPY IADD3 IADD3 LDG FFMA STG BRA EXIT";
    assert_eq!(ops.join(" "), expected);
}

/// A kernel with these statements, its registers declared.
fn kernel(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_75\n.address_size 64\n.extern .shared .align 16 .b8 dyn[];\n\
         .global .align 4 .u32 counter;\n.const .align 8 .u64 where = counter;\n\
         .visible .entry k(.param .u32 n, .param .align 16 .b8 s[32], .param .u64 p) {{\n\
         .reg .pred p<4>; .reg .b16 h<4>; .reg .b32 r<8>; .reg .b64 d<8>; .reg .f32 f<4>; .reg .f64 e<4>;\n\
         .shared .align 4 .b32 fixed[3]; .local .align 8 .b8 own[12];\n{body}\nret;\n}}\n"
    )
}

/// The instructions of a kernel with these statements, without their line numbers.
fn instructions(body: &str, target: &str) -> Vec<String> {
    let module = lowered(&kernel(body), target).unwrap();
    let printed = text::print(&module.functions[0].function);
    assert_eq!(verify::verify(&module.functions[0].function), Vec::<String>::new(), "{printed}");
    printed.lines().filter(|l| l.starts_with("  ")).map(|l| l.split(" ;").next().unwrap().trim().to_string()).collect()
}

fn mnemonics(body: &str, target: &str) -> String {
    let word = |line: &String| line.split([' ', '{']).find(|w| !w.starts_with('@')).unwrap_or("").to_string();
    instructions(body, target).iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The carry flag is the carry of the adder, after a subtraction too, whatever reads it.
#[test]
fn carry_flag_is_the_adders() {
    let lines = instructions("sub.cc.u32 r0, r1, r2; addc.u32 r3, r4, 0; subc.u32 r5, r6, r7;", "sm_90");
    let carry = lines[0].split("pu=").nth(1).unwrap().split(' ').next().unwrap();
    let flag = lines[1].split("d=").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(lines[1], format!("COPY d={flag} a={carry}"));
    assert!(lines[2].ends_with(&format!("pp={flag} pq=!Z")), "{lines:?}");
    assert!(lines[3].ends_with(&format!("pp={flag} pq=!Z")) && lines[3].contains("b=!r"), "{lines:?}");
}

/// Only instructions that write PTX-visible registers, access memory or are convergent keep their
/// guard.
#[test]
fn guards_stand_where_they_must() {
    let body = "@p0 add.u64 d0, d1, d2; @!p1 ld.shared.u32 r3, [fixed+4]; @p2 bra L; mov.u32 r0, 7; L: mov.u32 r1, 8;";
    let lines = instructions(body, "sm_80");
    let guards: Vec<&str> = lines.iter().map(|l| l.split(' ').next().unwrap()).collect();
    assert!(guards[0].starts_with("@p") && guards[1] == guards[0], "{lines:?}");
    assert!(guards[2].starts_with("@!p") && lines[2].contains("LDS"), "{lines:?}");
    assert!(guards[3].starts_with("@p") && lines[3].contains("BRA"), "{lines:?}");
    assert!(guards[4] == "BRA", "{lines:?}");
}

/// A branch to a label followed by a return ends the thread at once.
#[test]
fn branch_to_return_is_exit() {
    assert_eq!(mnemonics("@p0 bra L; mov.u32 r0, r1; L:", "sm_90"), "EXIT COPY BRA EXIT");
}

/// Shared addresses start at zero, or after the reserved bytes in the block's part of the cluster
/// window.
#[test]
fn shared_addresses_by_target() {
    let body = "st.shared.u32 [fixed+8], r0; mov.u32 r1, dyn;";
    let old = instructions(body, "sm_89");
    assert!(old[0].starts_with("STS a=Z off=0x8"), "{old:?}");
    assert!(old[1].ends_with("a=0x10"), "{old:?}");
    let new = instructions(body, "sm_90");
    assert!(new[0].starts_with("S2R") && new[1].starts_with("SHF"), "{new:?}");
    assert!(new[2].contains("off=0x408") && new[3].contains("b=0x410"), "{new:?}");
    let module = lowered(&kernel(body), "sm_90").unwrap();
    let shared = module.functions[0].shared.unwrap();
    assert_eq!((shared.size, shared.align, module.functions[0].dynamic_shared), (0x410, 16, true));
}

/// Parameters are aligned by their address in the bank; addresses of globals come from bank 4 and
/// relocations.
#[test]
fn variables_have_their_places() {
    for (target, offsets) in [("sm_75", [0, 16, 48]), ("sm_90", [0, 16, 48]), ("sm_100", [0, 16, 48])] {
        let module = lowered(&kernel("mov.u64 d0, counter; ld.const.u64 d1, [where];"), target).unwrap();
        let params: Vec<u16> = module.functions[0].params.iter().map(|p| p.offset).collect();
        assert_eq!(params, offsets, "{target}");
        assert_eq!(module.global.as_ref().unwrap().size, 4);
        let slots = &module.constant4.unwrap().relocs;
        assert_eq!((slots.len(), slots[0].symbol.as_str(), slots[0].kind), (1, "counter", 2));
        assert_eq!(module.constant3.unwrap().relocs[0].symbol, "counter");
    }
}

/// A 64-bit shared atomic add is one operation, which legalization expands to a loop; under a
/// guard, too.
#[test]
fn shared_sum_of_64_bits_is_one_operation() {
    for guard in ["", "@p0 "] {
        assert_eq!(mnemonics(&format!("{guard}atom.shared.add.u64 d0, [r0], d1;"), "sm_80"), "ATOMS_LOOP EXIT");
    }
}

/// Every unimplemented instruction is reported at its position, by its name.
#[test]
fn refusals_are_complete() {
    let body = "tex.grad.3d.v4.f32.s32 {f0, f1, f2, f3}, [d0, {r0, r1, r2, r3}], {f0, f1, f2, f3}, {f0, f1, f2, f3};\n\
        add.u32 r0, r1, r2;\n\
        tex.grad.1d.v4.f32.s32 {f0, f1, f2, f3}, [d0, {r0}], {f0}, {f1};";
    let diagnostics = lowered(&kernel(body).replace("sm_75", "sm_80"), "sm_80").err().unwrap();
    let said: Vec<(u32, &str)> = diagnostics.iter().map(|d| (d.pos.unwrap().line, d.message.as_str())).collect();
    let expected =
        [(10, "Instruction 'tex.grad.3d' is not implemented"), (12, "Instruction 'tex.grad.1d' is not implemented")];
    assert_eq!(said, expected);
}

/// A sampler apart is refused in unified mode, whether an opcode or the driver reads.
#[test]
fn samplers_in_unified_mode_are_refused() {
    let texels = "{f0, f1, f2, f3}";
    let reads = [
        format!("tex.3d.v4.f32.f32 {texels}, [d0, d1, {texels}];"),
        format!("tex.grad.3d.v4.f32.f32 {texels}, [d0, d1, {texels}], {texels}, {texels};"),
    ];
    for read in reads {
        let said = lowered(&kernel(&read).replace("sm_75", "sm_90"), "sm_90").err().unwrap();
        assert!(said[0].message.ends_with("with a sampler in unified mode is not implemented"), "{said:?}");
    }
}

/// Offsets near the end of their range wrap, as in ptxas.
#[test]
fn offsets_wrap() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n) {\n\
        .reg .b32 %r<2>; .reg .b64 %rd<2>; .shared .b32 s[4]; .local .b32 l[4];\n\
        ld.param.u32 %r1, [n+0x7fffffffffffffff];\nld.shared.u32 %r1, [s+0x7fffffffffffffff];\n\
        ld.local.u32 %r1, [l+0x7fffffffffffffff];\nld.param.u64 %rd1, [p];\n\
        st.global.u32 [%rd1+0x7fffffffffffffff], %r1;\nret; }\n";
    assert!(lowered(text, "sm_90").is_ok());
}
