//! Compares our cubins with those of ptxas for the same kernels: attributes, sections, symbols, and
//! the output of NVIDIA's tools.
//!
//! The input is small kernels for all 23 targets, compiled by ptxas. The facts of each kernel
//! (code, registers, parameters, offsets) are taken from there, and the writer generates everything
//! else. The attribute records and payloads, sections, symbols, and the output of nvdisasm and
//! cuobjdump must be equal: the code as one of the two shows it, by turns of the targets, or with
//! `SASSAFRAS_ORACLE=all` as both do. Intended differences are in the column `differ` of
//! `eiattr.ron` or `elf/compat.ron`, which this test reads.

use crate::cubin_support::{KERNELS, TARGETS, all_jobs, compile, failures, show, sm, tool};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{LittleEndian as LE, elf};
use sassafras::compile::Options;
use sassafras::cubin::{
    Attribute, Cubin, Function, Kept, Listing, Param, Sites, Stack, ToolNote, listing, read, write,
};
use sassafras::tables::elf::{AttributeRow, AttributeValue, COMPAT, ElfTarget};
use sassafras::tables::targets::Target;
use std::collections::BTreeMap;
use std::path::Path;

/// The facts of a cubin, without anything that was only kept.
fn facts_only(cubin: &Cubin) -> Cubin {
    let mut cubin = Cubin { kept: Kept::default(), ..cubin.clone() };
    cubin.functions.iter_mut().for_each(|function| function.kept_attributes.clear());
    cubin
}

/// The file of ptxas, regenerated from its facts.
fn from_nothing(bytes: &[u8]) -> Result<Vec<u8>, String> {
    write(&facts_only(&read(bytes).map_err(|e| e.to_string())?)).map_err(|e| e.to_string())
}

fn same(what: &str, theirs: &str, ours: &str) -> Result<(), String> {
    if theirs == ours {
        return Ok(());
    }
    let lines = || theirs.lines().zip(ours.lines());
    let (before, after) = lines().find(|(a, b)| a != b).unwrap_or(("(shorter)", "(longer)"));
    Err(format!("{what} differs\n    theirs: {before}\n    ours:   {after}"))
}

/// The output of the tools for ptxas's file and for ours: of nvdisasm and of cuobjdump, which runs
/// it, with `both` or one of them, by turn.
fn tools_agree(bytes: &[u8], [nvdisasm, cuobjdump]: [&Path; 2], turn: usize, both: bool) -> Result<(), String> {
    let ours = from_nothing(bytes)?;
    show(cuobjdump, &["-elf"], &ours).map_err(|e| format!("cuobjdump -elf: {e}"))?;
    let code = [(nvdisasm, "nvdisasm", "-c"), (cuobjdump, "cuobjdump", "-sass")];
    let code = code.into_iter().enumerate().filter(|(i, _)| both || (turn + i).is_multiple_of(2)).map(|(_, call)| call);
    for (tool, name, option) in std::iter::once((cuobjdump, "cuobjdump", "-res-usage")).chain(code) {
        let after = show(tool, &[option], &ours).map_err(|e| format!("{name} {option}: {e}"))?;
        same(&format!("{name} {option}"), &show(tool, &[option], bytes)?, &after)?;
    }
    Ok(())
}

/// All kernels in one module, on every target.
#[test]
fn the_tools_read_cubins_made_from_nothing() {
    let (Some(ptxas), Some(nvdisasm), Some(cuobjdump)) = (tool("ptxas"), tool("nvdisasm"), tool("cuobjdump")) else {
        return;
    };
    let all: String = KERNELS.iter().map(|(_, body)| *body).collect();
    let both = std::env::var("SASSAFRAS_ORACLE").is_ok_and(|v| v == "all");
    let wrong = failures(TARGETS.into_iter().enumerate().collect(), |(turn, target)| {
        let tools = [nvdisasm.as_path(), cuobjdump.as_path()];
        let result = compile(&ptxas, &all, target, &[]).and_then(|bytes| tools_agree(&bytes, tools, turn, both));
        result.map_err(|e| format!("sm_{target}: {e}"))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A record as text: name, format, payload; a leading symbol index is replaced by the symbol's
/// name. `None` if the table says that ours differs.
fn shown(record: &Attribute, section: &str, symbols: &[String]) -> Option<String> {
    if section == ".nv.compat" {
        let row = COMPAT.iter().find(|row| row.id == record.id);
        let name = row.map_or("not in the table", |row| row.name);
        let bytes = row.is_none_or(|row| row.differ.is_empty()).then_some(&record.payload);
        return Some(format!("{name} {} {bytes:x?}", record.format));
    }
    let row = AttributeRow::of(record.id);
    if row.is_some_and(|row| row.value == AttributeValue::Kept && !row.differ.is_empty()) {
        return None;
    }
    use AttributeValue::{Externs, FrameSize, MaxStack, MinStack, ParamBank, RegisterCount};
    let symbolic = [Externs, FrameSize, MaxStack, MinStack, ParamBank, RegisterCount];
    let name = row.map_or("not in the table", |row| row.name);
    let head = row.filter(|row| symbolic.contains(&row.value)).and_then(|_| record.payload.first_chunk::<4>());
    let symbol = head.and_then(|head| symbols.get(u32::from_le_bytes(*head) as usize));
    let rest = &record.payload[if symbol.is_some() { 4 } else { 0 }..];
    Some(format!("{name} {} {symbol:?} {rest:x?}", record.format))
}

/// All records of a file by section, in order.
fn records(listing: &Listing) -> BTreeMap<String, Vec<String>> {
    let shown = |section: &str, records: &[Attribute]| {
        records.iter().filter_map(|record| shown(record, section, &listing.symbols)).collect()
    };
    listing.sections.iter().map(|(section, list)| (section.clone(), shown(section, list))).collect()
}

fn attributes_agree(bytes: &[u8], ours: &[u8]) -> Result<(), String> {
    let theirs = records(&listing(bytes).map_err(|e| e.to_string())?);
    let ours = records(&listing(ours).map_err(|e| e.to_string())?);
    let lines = |records: &BTreeMap<String, Vec<String>>| {
        records.iter().flat_map(|(s, list)| list.iter().map(move |r| format!("{s}: {r}\n"))).collect::<String>()
    };
    same("the attributes", &lines(&theirs), &lines(&ours))
}

/// Every record of every kernel on every target, in the order of ptxas and with its payload.
#[test]
fn attributes_are_ptxas() {
    let Some(ptxas) = tool("ptxas") else { return };
    let wrong = failures(all_jobs(), |(target, (name, body))| {
        let bytes = compile(&ptxas, body, target, &[])?;
        let result = from_nothing(&bytes).and_then(|ours| attributes_agree(&bytes, &ours));
        result.map_err(|e| format!("{name} sm_{target}: {e}"))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The functions of a file that say that they use the shared memory the driver reserves.
fn reserving(bytes: &[u8]) -> Result<Vec<String>, String> {
    let sections = listing(bytes).map_err(|e| e.to_string())?.sections;
    let reserves =
        |record: &Attribute| AttributeRow::of(record.id).is_some_and(|row| row.value == AttributeValue::ReservedUsed);
    let mut names: Vec<String> =
        sections.into_iter().filter(|(_, records)| records.iter().any(reserves)).map(|(name, _)| name).collect();
    names.sort();
    Ok(names)
}

/// A kernel that asks where the reserved shared memory is, itself or through a function, says so,
/// and so does a function of an object.
#[test]
fn reserved_memory_is_stated_as_ptxas_states_it() {
    let Some(ptxas) = tool("ptxas") else { return };
    let body = include_str!("cubin_support/reserved.ptx");
    let targets = TARGETS.into_iter().filter(|target| sm(target).0 >= 80);
    let jobs = targets.flat_map(|target| [(target, false), (target, true)]).collect();
    let wrong = failures(jobs, |(target, object)| {
        let theirs = reserving(&compile(&ptxas, body, target, if object { &["-c"] } else { &[] })?)?;
        let options = Options { relocatable: object, ..Options::new(&format!("sm_{target}")) };
        let text = format!(".version 9.0\n.target sm_{target}\n.address_size 64\n{body}");
        let ours = sassafras::compile::compile(&text, &options).map_err(|e| format!("{e:?}"))?;
        let ours = reserving(&ours.cubin)?;
        if ours == theirs { Ok(()) } else { Err(format!("sm_{target}, object {object}: {theirs:?}, ours {ours:?}")) }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Sections (name, type, flags, alignment, size) and symbols (name, info, other, section, value,
/// size), read independently of our reader.
fn skeleton(bytes: &[u8]) -> Result<(Vec<String>, Vec<String>), String> {
    let header = elf::FileHeader64::<LE>::parse(bytes).map_err(|e| e.to_string())?;
    let sections = header.sections(LE, bytes).map_err(|e| e.to_string())?;
    let name = |i: usize| {
        let section = sections.section(object::SectionIndex(i)).ok()?;
        Some(String::from_utf8_lossy(sections.section_name(LE, section).ok()?).into_owned())
    };
    let mut shown = Vec::new();
    for (i, section) in sections.iter().enumerate().skip(1) {
        let (kind, flags, size) = (section.sh_type(LE).0, section.sh_flags(LE).0, section.sh_size(LE));
        let name = name(i).unwrap_or_default();
        let capsule = flags & 0x1000_0000 != 0;
        let empty_relocs = name.starts_with(".rela") && size == 0;
        // The frame entries of device functions are our own, and so are their relocations.
        let frame_relocs = [".rel.debug_frame", ".rela.debug_frame"].contains(&name.as_str());
        if capsule || empty_relocs || frame_relocs {
            continue;
        }
        // String tables differ by the capsule's names, the frame section by the return addresses.
        let varies = [".shstrtab", ".strtab", ".symtab", ".debug_frame"];
        let size = if varies.contains(&name.as_str()) { 0 } else { size };
        shown.push(format!("{name} {kind:#x} {flags:#x} {} {size:#x}", section.sh_addralign(LE)));
    }
    let table = sections.symbols(LE, bytes, elf::SHT_SYMTAB).map_err(|e| e.to_string())?;
    let mut symbols: Vec<String> = Vec::new();
    for symbol in table.iter().skip(1) {
        let text = String::from_utf8_lossy(symbol.name(LE, table.strings()).map_err(|e| e.to_string())?).into_owned();
        // ptxas leaves nameless remnants of removed symbols.
        if !text.is_empty() {
            let home = name(usize::from(symbol.st_shndx(LE).0));
            let (info, other) = (symbol.st_info().0, symbol.st_other().0);
            symbols.push(format!(
                "{text} {info:#x} {other:#x} {home:?} {:#x} {:#x}",
                symbol.st_value(LE),
                symbol.st_size(LE)
            ));
        }
    }
    shown.sort();
    symbols.sort();
    Ok((shown, symbols))
}

#[test]
fn sections_and_symbols_are_ptxas() {
    let Some(ptxas) = tool("ptxas") else { return };
    let wrong = failures(all_jobs(), |(target, (name, body))| {
        let bytes = compile(&ptxas, body, target, &[])?;
        let (theirs, ours) = (skeleton(&bytes)?, skeleton(&from_nothing(&bytes)?)?);
        let result = same("the sections", &theirs.0.join("\n"), &ours.0.join("\n"))
            .and_then(|()| same("the symbols", &theirs.1.join("\n"), &ours.1.join("\n")));
        result.map_err(|e| format!("{name} sm_{target}: {e}"))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Parameters by declaration: size, alignment, pointer space, alignment of the pointee.
type Declared = (u16, u32, u8, u8);

/// Declarations of three of the kernels, transcribed from their PTX.
const DECLARED: [(&str, &str, &[Declared]); 3] = [
    ("plain", "saxpy", &[(8, 8, 4, 2), (8, 8, 4, 2), (4, 4, 0, 0), (4, 4, 0, 0)]),
    (
        "params",
        "params",
        &[
            (1, 1, 0, 0),
            (2, 2, 0, 0),
            (4, 4, 0, 0),
            (8, 8, 0, 0),
            (32, 16, 0, 0),
            (8, 8, 0, 0),
            (8, 8, 4, 4),
            (8, 8, 2, 1),
            (8, 8, 5, 3),
            (128, 64, 0, 0),
        ],
    ),
    ("large", "large", &[(8, 8, 4, 4), (5000, 8, 0, 0), (4, 4, 0, 0)]),
];

/// Places parameters one after the other; alignment is relative to the start of the bank.
fn place(declared: &[Declared], base: u32) -> (Vec<Param>, u32) {
    let (mut params, mut end) = (Vec::new(), base);
    for (ordinal, (size, align, space, pointee_align_log2)) in declared.iter().copied().enumerate() {
        let offset = end.next_multiple_of(align) - base;
        params.push(Param { ordinal: ordinal as u16, offset: offset as u16, size, space, pointee_align_log2 });
        end = base + offset + u32::from(size);
    }
    (params, end - base)
}

/// A cubin whose facts come from the declarations instead of the reader; code, registers and exits
/// are those of ptxas.
fn by_hand(bytes: &[u8], target: &str, name: &str, declared: &[Declared]) -> Result<Vec<u8>, String> {
    let theirs = read(bytes).map_err(|e| e.to_string())?;
    let code = theirs.function(name).ok_or("there is no such kernel")?;
    let (sm, accelerator) = sm(target);
    let info = Target::by_name(&format!("sm_{target}")).and_then(Target::info).ok_or("not built")?;
    let total: u32 = declared.iter().map(|param| u32::from(param.0)).sum();
    let base = ElfTarget::of_sm(sm).map_or(0, |elf| elf.param_base(info.param_base, total));
    let (params, param_bytes) = place(declared, base);
    let function = Function {
        name: name.into(),
        kernel: true,
        code: code.code.clone(),
        registers: code.registers,
        param_base: base,
        param_bytes,
        params,
        stack: Stack { min: Some(0), ..Stack::default() },
        sites: Sites { exits: code.sites.exits.clone(), ..Sites::default() },
        ..Function::default()
    };
    let tool = ToolNote { name: "test".into(), ..ToolNote::default() };
    let cubin =
        Cubin { sm, accelerator, ptx_sm: sm, toolkit: 130, tool, functions: vec![function], ..Cubin::default() };
    write(&cubin).map_err(|e| e.to_string())
}

#[test]
fn facts_written_by_hand_give_ptxas_records() {
    let Some(ptxas) = tool("ptxas") else { return };
    let jobs = TARGETS.iter().flat_map(|target| DECLARED.iter().map(move |kernel| (*target, *kernel)));
    let wrong = failures(jobs.collect(), |(target, (file, name, declared))| {
        let body = KERNELS.iter().find(|kernel| kernel.0 == file).map_or("", |kernel| kernel.1);
        let bytes = compile(&ptxas, body, target, &[])?;
        let result = by_hand(&bytes, target, name, declared).and_then(|ours| attributes_agree(&bytes, &ours));
        result.map_err(|e| format!("{name} sm_{target}: {e}"))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Variables in shared memory, and the alignment of their section: that of the largest one, and 16
/// where memory whose size the launch says follows.
const SHARED: [(&str, &str, u64); 5] = [
    ("", ".shared .u32 s;", 4),
    (".shared .align 4 .b8 s[36];", "", 4),
    ("", ".shared .align 4 .b8 s[36]; .shared .align 8 .b8 t[24];", 8),
    ("", ".shared .v4 .f32 s;", 16),
    (".extern .shared .align 4 .b8 t[];", ".shared .align 4 .b8 s[36];", 16),
];

#[test]
fn static_shared_sections_are_aligned_as_ptxas_aligns_them() {
    let alignment = |bytes: &[u8]| {
        let header = elf::FileHeader64::<LE>::parse(bytes).map_err(|e| e.to_string())?;
        let sections = header.sections(LE, bytes).map_err(|e| e.to_string())?;
        let named = sections.iter().find(|s| sections.section_name(LE, s).is_ok_and(|n| n == b".nv.shared.k"));
        named.map(|section| section.sh_addralign(LE)).ok_or("no section of shared memory".to_string())
    };
    let (ptxas, mut wrong) = (tool("ptxas"), Vec::new());
    for (outside, inside, expected) in SHARED {
        let more = if inside.contains(" t[") || outside.contains(" t[") { "st.shared.u32 [t], r;" } else { "" };
        let body = format!(
            "{outside}\n.visible .entry k(.param .u64 out) {{\n.reg .b32 r; .reg .b64 p; {inside}\n\
             ld.param.u64 p, [out]; mov.u32 r, %tid.x; st.shared.u32 [s], r; {more} bar.sync 0;\n\
             ld.shared.u32 r, [s]; st.global.u32 [p], r; ret;\n}}\n"
        );
        for target in ["75", "80", "90", "120"] {
            let text = format!(".version 9.0\n.target sm_{target}\n.address_size 64\n{body}");
            let ours = sassafras::compile::compile(&text, &Options::new(&format!("sm_{target}")));
            let mut seen = vec![ours.map_err(|e| format!("{e:?}")).and_then(|ours| alignment(&ours.cubin))];
            seen.extend(ptxas.as_ref().map(|ptxas| alignment(&compile(ptxas, &body, target, &[])?)));
            if seen.iter().any(|seen| *seen != Ok(expected)) {
                wrong
                    .push(format!("sm_{target}, {outside} {inside}: ours, then ptxas's {seen:?}, expected {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
