//! Makes an executable file of functions that were compiled as for an object.
//!
//! Places shared variables and branch tables, fills in the offsets that are known then, and leaves
//! relocations of functions and global variables to the loader. Source: ptxas 13.0.88 -g.

use super::Facts;
use crate::cubin::symbols::{OTHER_SHARED, STT_CUDA_OBJECT, STT_OBJECT, STT_SECTION, info};
use crate::cubin::{Binding, Cubin, Image, KeptSection, KeptSymbol, Reloc, Shared, Space as Home, SymbolHome};
use crate::lower::{LOOSE_SHARED, branch_tables};
use crate::ptx::ast::{Linkage, Module, SymbolKind};
use crate::sorted::SortedMap;
use crate::tables::choices::SYSTEM;
use crate::tables::elf::{ElfTarget, Layout, RelocRole, RelocRow};
use crate::tables::targets::TARGETS;

/// SHT_NOBITS.
const NO_BYTES: u32 = 8;

/// First byte of user data in shared memory.
pub fn shared_base(sm: u32) -> u64 {
    let info = TARGETS.iter().filter(|target| target.sm == sm).find_map(|target| target.info());
    info.map_or(0, |info| info.shared_base.into())
}

/// Links the file, which is marked as executable already.
///
/// # Errors
///
/// A function that is not in the file, and what an executable cannot express.
pub fn link(cubin: &mut Cubin, module: &Module, facts: &mut Facts) -> Result<(), String> {
    let layout = ElfTarget::of_sm(cubin.sm).map_or(Layout::default(), |elf| elf.layout);
    let mut known = place_shared(cubin, module, facts);
    let base = shared_base(cubin.sm);
    let arrays = launch_arrays(module).into_iter();
    facts.arrays = arrays.filter_map(|(name, _)| Some((name.clone(), known.get(&name)? + base))).collect();
    place_tables(cubin, &mut known);
    let constants = cubin.variables.iter().filter(|v| v.space == Home::Constant);
    known.extend(constants.map(|v| (v.name.clone(), v.offset)));
    let partition = ElfTarget::of_sm(cubin.sm).and_then(ElfTarget::tensor_partition);
    known.extend(partition.map(|(name, at)| (name.to_string(), at)));
    for function in &mut cubin.functions {
        let relocs = std::mem::take(&mut function.code_relocs);
        function.code_relocs = settle(&mut function.code, relocs, &known, layout);
    }
    for image in [&mut cubin.global_init, &mut cubin.constant3].into_iter().flatten() {
        settle_image(image, &known, layout);
    }
    launch_facts(cubin, facts);
    cubin.prototypes.clear();
    check(cubin)
}

/// Least alignment of the end of static shared memory where a launch adds to it.
const LEAST_END: u64 = 16;

/// Assigns addresses to shared variables: first those that belong to no entry, then those of each
/// entry. An array that the launch sizes has one address, behind the longest static part of the
/// entries that use it; their static parts are as long as that. Returns what the code adds to the
/// base of user data.
fn place_shared(cubin: &mut Cubin, module: &Module, facts: &Facts) -> SortedMap<String, u64> {
    let base = shared_base(cubin.sm);
    let is_loose = |symbol: &KeptSymbol| symbol.section == SymbolHome::Section(LOOSE_SHARED.to_string());
    let is_shared = |symbol: &KeptSymbol| symbol.other & OTHER_SHARED != 0 && symbol.info & 0xf == STT_CUDA_OBJECT;
    let (mut at, mut align) = (base, 0);
    let mut place = |symbol: &mut KeptSymbol, at: &mut u64| {
        let start = at.next_multiple_of(symbol.value.max(1));
        align = align.max(symbol.value);
        (symbol.info, symbol.other, symbol.value) = (STT_OBJECT, 0, start);
        *at = start + symbol.size;
    };
    let symbols = &mut cubin.kept.symbols;
    symbols.iter_mut().filter(|s| is_shared(s) && is_loose(s)).for_each(|symbol| place(symbol, &mut at));
    let loose = at;
    let mut ends = SortedMap::new();
    for function in cubin.functions.iter_mut().filter(|function| function.kernel) {
        let home = SymbolHome::Section(format!(".nv.shared.{}", function.name));
        let mut at = loose;
        let own = symbols.iter_mut().filter(|symbol| is_shared(symbol) && symbol.section == home);
        own.for_each(|symbol| place(symbol, &mut at));
        ends.insert(function.name.clone(), at);
    }
    let launch = launch_arrays(module);
    let step = launch.iter().map(|(_, align)| *align).max().unwrap_or(1).max(LEAST_END);
    let asks = |name: &str| facts.functions.get(name).is_some_and(|facts| facts.sized_by_launch);
    let longest = ends.iter().filter(|(name, _)| asks(name)).map(|(_, end)| *end).max().unwrap_or(base);
    let longest = longest.next_multiple_of(step);
    for function in cubin.functions.iter_mut().filter(|function| function.kernel) {
        let asks = asks(&function.name);
        let end = if asks { longest } else { ends.get(&function.name).copied().unwrap_or(base) };
        if end > base || function.shared.is_some() || asks {
            let align = if asks { align.max(step) } else { align };
            function.shared = Some(Shared { size: end, align: align.max(1) });
        }
    }
    let mut known: SortedMap<String, u64> = SortedMap::new();
    let done =
        |symbol: &&KeptSymbol| symbol.info & 0xf == STT_OBJECT && matches!(symbol.section, SymbolHome::Section(_));
    known.extend(symbols.iter().filter(done).map(|symbol| (symbol.name.clone(), symbol.value - base)));
    known.extend(launch.iter().map(|(name, _)| (name.clone(), longest - base)));
    symbols.retain(|symbol| !(is_shared(symbol) && symbol.section == SymbolHome::Undefined));
    name_plainly(symbols);
    name_arrays(cubin, &launch, longest);
    let section = cubin.kept.sections.iter_mut().find(|section| section.name == LOOSE_SHARED);
    if let Some(section) = section {
        (section.kind, section.image.size) = (NO_BYTES, loose);
    }
    known
}

/// Adds the symbols of the arrays that launches size, and their section where no other variable has
/// made it: a debugger finds the arrays by them.
fn name_arrays(cubin: &mut Cubin, launch: &[(String, u64)], address: u64) {
    let Some(align) = launch.iter().map(|(_, align)| *align).max() else { return };
    let home = || SymbolHome::Section(LOOSE_SHARED.to_string());
    let symbol = |(name, _): &(String, u64)| {
        let info = info(Binding::Global, STT_OBJECT);
        KeptSymbol { name: name.clone(), info, section: home(), value: address, ..KeptSymbol::default() }
    };
    cubin.kept.symbols.extend(launch.iter().map(symbol));
    let sections = &mut cubin.kept.sections;
    match sections.iter_mut().find(|section| section.name == LOOSE_SHARED) {
        Some(section) => section.align = section.align.max(align),
        None => sections.push(KeptSection::of_shared(LOOSE_SHARED, Shared { size: 0, align })),
    }
}

/// Gives the shared variables of functions the names that they have in the text, where no other
/// symbol has them: an executable needs no unique ones.
fn name_plainly(symbols: &mut [KeptSymbol]) {
    let plain = |name: &str| Some(name.strip_prefix("$__")?.rsplit_once("__")?.0.to_string());
    let mut taken: SortedMap<String, usize> = SortedMap::new();
    for symbol in symbols.iter() {
        *taken.entry(plain(&symbol.name).unwrap_or_else(|| symbol.name.clone())).or_default() += 1;
    }
    for symbol in symbols.iter_mut().filter(|symbol| symbol.info & 0xf == STT_OBJECT) {
        if let Some(name) = plain(&symbol.name).filter(|name| taken[name] == 1) {
            symbol.name = name;
        }
    }
}

/// The shared arrays whose size the launch gives, and their alignments.
fn launch_arrays(module: &Module) -> Vec<(String, u64)> {
    let array = |symbol: &crate::ptx::ast::Symbol| match &symbol.kind {
        SymbolKind::Variable(v) if crate::lower::is_shared(v.space) && v.linkage == Linkage::Extern => {
            Some((symbol.name.clone(), v.align.max(1)))
        }
        _ => None,
    };
    module.symbols.values().filter_map(array).collect()
}

/// Puts the branch tables of all functions into bank 2 of every kernel.
fn place_tables(cubin: &mut Cubin, known: &mut SortedMap<String, u64>) {
    let mut bytes = Vec::new();
    for function in &mut cubin.functions {
        let Some(own) = function.constant2.take() else { continue };
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        known.insert(branch_tables(&function.name), bytes.len() as u64);
        bytes.extend(own.bytes);
    }
    cubin.kept.symbols.retain(|symbol| !known.contains_key(&symbol.name) || symbol.info & 0xf != STT_CUDA_OBJECT);
    if !bytes.is_empty() {
        for function in cubin.functions.iter_mut().filter(|function| function.kernel) {
            function.constant2 = Some(Image::new(bytes.clone(), 8));
        }
    }
}

/// Fills in what is known; returns the relocations for the loader.
fn settle(bytes: &mut [u8], relocs: Vec<Reloc>, known: &SortedMap<String, u64>, layout: Layout) -> Vec<Reloc> {
    let mut left = Vec::new();
    for mut reloc in relocs {
        let Some(row) = RelocRow::of(reloc.kind) else { continue };
        let roles = row.roles[layout as usize];
        if roles.contains(&RelocRole::PointerCall) {
            continue;
        }
        if let Some(value) = known.get(&reloc.symbol) {
            row.apply(bytes, reloc.offset, value.wrapping_add(reloc.addend as u64));
            continue;
        }
        reloc.kind = plain(row, roles, layout);
        left.push(reloc);
    }
    left
}

/// The relocation that a linker makes of one of a function's address.
fn plain(row: &RelocRow, roles: &[RelocRole], layout: Layout) -> u32 {
    let pairs = [
        (RelocRole::FunctionLow, RelocRole::AddressLow),
        (RelocRole::FunctionHigh, RelocRole::AddressHigh),
        (RelocRole::FunctionAddress, RelocRole::Address),
    ];
    let whole = pairs.iter().find(|(from, _)| roles.contains(from)).and_then(|(_, to)| RelocRow::for_role(*to, layout));
    let piece =
        roles.contains(&RelocRole::FunctionPiece).then(|| RelocRow::piece(RelocRole::Address, layout, row.shift));
    whole.or(piece.flatten()).map_or(row.number, |row| row.number)
}

/// As [`settle`], for initial values: an address in the constant bank is an offset in it, unless it
/// is a generic one.
fn settle_image(image: &mut Image, known: &SortedMap<String, u64>, layout: Layout) {
    image.bytes.resize(image.bytes.len().max(image.size as usize), 0);
    let generic = |reloc: &Reloc| RelocRow::of(reloc.kind).is_some_and(RelocRow::generic);
    let (generic, rest): (Vec<Reloc>, Vec<Reloc>) = std::mem::take(&mut image.relocs).into_iter().partition(generic);
    image.relocs = settle(&mut image.bytes, rest, known, layout);
    image.relocs.extend(generic);
    crate::sorted::by_key(&mut image.relocs, |reloc| reloc.offset);
}

/// A kernel states the stack, the registers and the barriers of all functions that it may call.
fn launch_facts(cubin: &mut Cubin, facts: &Facts) {
    let devices = || cubin.functions.iter().filter(|function| !function.kernel);
    let registers = devices().map(|function| function.registers).max().unwrap_or(0);
    let barriers = devices().map(|function| function.barriers).max().unwrap_or(0);
    for function in &mut cubin.functions {
        function.stack.max = None;
        if function.kernel {
            let own = function.stack.frame;
            let depth = facts.functions.get(&function.name).map_or(own, |facts| facts.depth);
            function.stack.min = Some(depth);
            function.registers = function.registers.max(registers);
            function.barriers = function.barriers.max(barriers);
        }
    }
}

/// What the names of the driver's functions for instructions begin with.
const DRIVER: &str = "__cuda_syscall_";

/// Refuses calls that no loader can resolve.
fn check(cubin: &Cubin) -> Result<(), String> {
    let there = |name: &str| {
        let symbol = |symbol: &&KeptSymbol| {
            symbol.name == name && symbol.section != SymbolHome::Undefined && symbol.info & 0xf != STT_SECTION
        };
        cubin.function(name).is_some()
            || cubin.variable(name).is_some()
            || cubin.kept.symbols.iter().any(|s| symbol(&s))
    };
    let mut relocs = cubin.functions.iter().flat_map(|function| &function.code_relocs);
    let driver = |name: &str| SYSTEM.contains(&name) || name.starts_with(DRIVER);
    let missing = relocs.find(|reloc| !there(&reloc.symbol) && !driver(&reloc.symbol));
    match missing {
        Some(reloc) => Err(format!("Unresolved extern function '{}'", reloc.symbol)),
        None => Ok(()),
    }
}
