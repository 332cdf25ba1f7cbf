//! Debug information (`-g`): what it asks of the compiler, and what it adds to the cubin.
//!
//! With debug information code is not optimised and every function has a section of its own, as
//! in an object, even in a file that needs no linker ([`link`]). The cubin gets the sections of
//! the PTX text with final addresses ([`text`], [`places`]), and the tables that say which physical
//! register holds a register of the text ([`registers`]). Source of all forms: what ptxas 13.0.88
//! -g writes for own kernels and for those of clang and nvcc.

pub mod link;
mod places;
mod registers;
mod text;

use crate::cubin::{Cubin, ElfKind, Image, KeptSection};
use crate::diag::Diagnostic;
use crate::lower::{LoweredFunction, LoweredModule};
use crate::pipeline::emit::Code;
use crate::pipeline::values::Value;
use crate::ptx::ast::{Module, SymbolId};
use crate::sorted::SortedMap;

/// The error if code is to be optimised too.
pub const OPTIMISED: &str = "Optimized debugging not supported";
/// The warning if line tables alone are asked for as well.
pub const LINES_TOO: &str =
    "Conflicting options --device-debug and --generate-line-info specified, ignoring --generate-line-info option";
/// The note if sections of several texts would have to be joined.
const OF_SEVERAL: &str = "No debug information is written for several inputs";

/// Sections without which there are no descriptions of variables.
const NEEDED: [&str; 2] = [".debug_abbrev", ".debug_info"];
const STRINGS: &str = ".debug_str";

/// What the finished functions tell a debugger, by their names.
#[derive(Default)]
pub struct Facts {
    functions: SortedMap<String, FunctionFacts>,
    /// Addresses of the shared arrays whose size the launch gives.
    arrays: SortedMap<String, u64>,
}

#[derive(Default)]
struct FunctionFacts {
    values: Vec<Value>,
    stack: Vec<(u64, u32)>,
    places: SortedMap<SymbolId, u64>,
    frame_bytes: u32,
    /// Stack bytes with those of the functions that it calls.
    depth: u32,
    /// Whether it uses shared memory that the launch sizes, or calls what does.
    sized_by_launch: bool,
}

impl Facts {
    /// The facts of a module's functions and of their code.
    pub fn new(lowered: &LoweredModule, codes: &[Code], devices: &[Code], depths: &SortedMap<String, u32>) -> Facts {
        let all = lowered.functions.iter().zip(codes).chain(lowered.devices.iter().zip(devices));
        let one = |(lowered, code): (&LoweredFunction, &Code)| {
            let name = lowered.function.name().to_string();
            let depth = depths.get(&name).copied().unwrap_or_default();
            let facts = FunctionFacts {
                values: code.values.clone(),
                stack: code.stack.clone(),
                places: lowered.places.clone(),
                frame_bytes: lowered.function.attributes().frame_bytes,
                depth,
                sized_by_launch: lowered.dynamic_shared,
            };
            (name, facts)
        };
        Facts { functions: all.map(one).collect(), arrays: SortedMap::new() }
    }
}

/// Adds the sections to a cubin that has its line tables. Returns notes.
pub fn add(cubin: &mut Cubin, module: &Module, facts: &Facts, texts: usize) -> Vec<Diagnostic> {
    if texts > 1 {
        return vec![Diagnostic::note(OF_SEVERAL)];
    }
    for function in &mut cubin.functions {
        function.unwinding = facts.functions.get(&function.name).map(|facts| facts.stack.clone());
    }
    let mut notes = Vec::new();
    let there = |name: &str| module.debug_sections.iter().any(|section| section.name == name);
    let missing = NEEDED.iter().filter(|name| !there(name));
    notes.extend(missing.map(|name| Diagnostic::note(format!(" {name} section not found"))));
    let skipped = there(NEEDED[1]) && !there(NEEDED[0]);
    if skipped {
        let text = format!("skipping {} section due to missing {} section", NEEDED[1], NEEDED[0]);
        notes.push(Diagnostic::info(text));
    }
    cubin.kept.sections.extend(registers::sections(cubin, facts));
    let object = cubin.kind == ElfKind::Relocatable;
    let texts = text::read(module);
    let places = places::Places::new(cubin, module, facts);
    let mut made = Vec::new();
    for text in texts.iter().filter(|text| !text.bytes.is_empty() && text.name != STRINGS) {
        if text.name != NEEDED[1] || !skipped {
            made.push(section(&text.name, text::resolve(text, &texts, &places, object)));
        }
    }
    // In the order of the text, after the abbreviations.
    crate::sorted::by_key(&mut made, |section: &KeptSection| section.name != NEEDED[0]);
    cubin.kept.sections.extend(made);
    notes
}

fn section(name: &str, image: Image) -> KeptSection {
    /// SHT_PROGBITS.
    const BITS: u32 = 1;
    KeptSection { name: name.to_string(), kind: BITS, align: 1, image, ..KeptSection::default() }
}
