//! Assembles the parts of a cubin function: a kernel with the functions behind it, or in a
//! relocatable object each function alone.
//!
//! Yields one [`cubin::Function`] per kernel and the rows of the call graph. A kernel's section
//! holds its own code and one copy of each function that it may call, as local symbols
//! `$kernel$function`. The kernel records the maximum of their registers and barriers, and the
//! stack of the deepest known call path: an indirect call may reach every function whose address is
//! taken, and recursion counts nothing.

use crate::alloc::EXTRA_REGISTERS;
use crate::cubin::model::Binding;
use crate::cubin::{self, symbols};
use crate::lower::{LoweredFunction, LoweredModule, Reference, branch_tables};
use crate::pipeline::emit::{Code, Place};
use crate::pipeline::merge_functions::{self, Linked};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::elf::{ATTRIBUTES, AttributeValue, ElfTarget, Layout, RelocRole, RelocRow};
use crate::tables::helpers::Helper;
use crate::tables::{Feature, Target};

/// Content of an unused slot of bank 2: no code address. Source: the first slot of what ptxas
/// 13.0.88 writes.
const NOWHERE: u64 = 1;

/// One function in a kernel's section.
struct Piece<'a> {
    lowered: &'a LoweredFunction,
    code: &'a Code,
}

impl Piece<'_> {
    fn name(&self) -> &str {
        self.lowered.function.name()
    }
}

/// The kernel with this index among the entries; `codes` and `devices` are the code of entries and
/// of device functions.
///
/// # Errors
///
/// Functions that cannot be merged, such as a branch to a missing one.
pub fn kernel(
    module: &LoweredModule,
    entry: usize,
    codes: &[Code],
    devices: &[Code],
    target: &'static Target,
) -> Result<cubin::Function, String> {
    let lowered = &module.functions[entry];
    let mut pieces = vec![Piece { lowered, code: &codes[entry] }];
    pieces.extend(lowered.pieces.iter().map(|i| Piece { lowered: &module.devices[*i], code: &devices[*i] }));
    let named: Vec<(&str, &Code)> = pieces.iter().map(|p| (p.name(), p.code)).collect();
    let elf = ElfTarget::of_sm(target.sm).ok_or_else(|| format!("{}: no ELF facts", target.name))?;
    let linked = merge_functions::link(target, elf.layout, &named)?;
    let stacks = stacks(&pieces, &module.pointers);
    let stack = stacks[0];
    let own_calls = pieces.len() > 1 || !lowered.callees.is_empty();
    // Slow paths and private functions take no part in the calling convention.
    let private: SortedSet<&str> =
        pieces.iter().filter(|p| p.lowered.function.attributes().private).map(Piece::name).collect();
    let by_convention = |name: &str| Helper::of_slow_path(name).is_none() && !private.contains(name);
    let calls = pieces.iter().skip(1).any(|piece| by_convention(piece.name()))
        || lowered.callees.iter().any(|name| by_convention(name))
        || pieces.iter().any(|p| !p.lowered.externs.is_empty());
    let registers = pieces.iter().map(|p| p.code.registers).max().unwrap_or(0) + EXTRA_REGISTERS;
    let least = target.info().filter(|_| calls).map_or(0, |info| info.abi_min);
    let branches = pieces.iter().any(|p| !p.code.tables.is_empty());
    Ok(cubin::Function {
        name: lowered.function.name().to_string(),
        kernel: true,
        binding: lowered.binding,
        labels: labels(&pieces, &linked, &stacks),
        // What `setmaxnreg` takes later is not part of the launch.
        registers: lowered.function.attributes().entry_registers.unwrap_or(registers.max(least)),
        barriers: pieces.iter().map(|p| p.lowered.barriers).max().unwrap_or(0),
        param_base: lowered.param_base,
        param_bytes: lowered.param_bytes,
        params: lowered.params.clone(),
        shared: lowered.shared,
        references: references(lowered, elf.layout)?,
        kept_attributes: banks(lowered, target),
        code_relocs: linked.relocs.iter().map(relocation).collect(),
        stack: cubin::Stack {
            frame: stack,
            min: Some(stack),
            max: linked.relocs.iter().any(by_driver).then_some(0),
            call_return: (own_calls || branches || pieces.iter().any(|p| p.code.reconverges)).then_some(0),
        },
        launch: lowered.launch,
        sites: sites(&pieces, &linked),
        tensor: tensor(&pieces),
        wmma: pieces.iter().any(|piece| piece.lowered.wmma),
        reserved: pieces.iter().any(|piece| piece.lowered.reserved),
        block_z: states_block_z(&pieces, elf),
        constant2: bank2(module, &pieces, &linked),
        externs: externs(&pieces),
        lines: pieces.iter().flat_map(|p| p.code.lines.iter().copied()).collect(),
        code: linked.bytes,
        ..cubin::Function::default()
    })
}

/// The words of bank 0 that the driver fills with what references name.
fn references(lowered: &LoweredFunction, layout: Layout) -> Result<Vec<cubin::Reloc>, String> {
    let one = |reference: &Reference| {
        let row = RelocRow::for_role(reference.role, layout);
        let row = row.ok_or_else(|| format!("no relocation for {}", reference.role.name()))?;
        let (offset, symbol) = (reference.at.into(), reference.name.clone());
        Ok(cubin::Reloc { offset, kind: row.number, symbol, addend: 0, explicit_addend: false })
    };
    lowered.references.iter().map(one).collect()
}

/// Records of the bank that has the words of references: of each kind that is named, and of both
/// where handles are in uniform registers.
fn banks(lowered: &LoweredFunction, target: &Target) -> Vec<cubin::Attribute> {
    if lowered.references.is_empty() {
        return Vec::new();
    }
    let both = target.has(Feature::TextureByUniform);
    let named = |surface: bool| {
        both || lowered.references.iter().any(|reference| (reference.role == RelocRole::Surface) == surface)
    };
    let ids = [(SURFACE_BANK, named(true)), (TEXTURE_BANK, named(false))];
    let one = |(id, _)| cubin::Attribute { format: BYTE_FORMAT, id, payload: vec![0] };
    ids.into_iter().filter(|(_, named)| *named).map(one).collect()
}

/// EIATTR_BINDLESS_TEXTURE_BANK and EIATTR_BINDLESS_SURFACE_BANK, whose payload is a byte.
const TEXTURE_BANK: u8 = 0x15;
const SURFACE_BANK: u8 = 0x16;
const BYTE_FORMAT: u8 = 2;

/// Whether a function states that its code reads the number of the block in z.
fn states_block_z(pieces: &[Piece], elf: &ElfTarget) -> bool {
    let row = ATTRIBUTES.iter().find(|row| row.value == AttributeValue::BlockZ);
    row.is_some_and(|row| elf.constant(row.id).is_some()) && pieces.iter().any(|piece| piece.code.block_z)
}

/// Whether a relocation names what the driver defines.
fn by_driver(reloc: &merge_functions::Relocation) -> bool {
    reloc.symbol.starts_with(merge_functions::DRIVER_PREFIX)
}

/// A relocation of code.
fn relocation(r: &merge_functions::Relocation) -> cubin::Reloc {
    cubin::Reloc { offset: r.at, kind: r.number, symbol: r.symbol.clone(), addend: r.addend, explicit_addend: false }
}

/// Symbols that the driver defines, which code of these functions names.
pub fn driver_symbols(functions: &[cubin::Function]) -> Vec<cubin::KeptSymbol> {
    let names = functions.iter().flat_map(|f| &f.code_relocs).map(|reloc| &reloc.symbol);
    let names: SortedSet<&String> = names.filter(|name| name.starts_with(merge_functions::DRIVER_PREFIX)).collect();
    let info = symbols::info(Binding::Weak, symbols::STT_OBJECT);
    let one = |name: &String| cubin::KeptSymbol { name: name.clone(), info, size: 4, ..cubin::KeptSymbol::default() };
    names.into_iter().map(one).collect()
}

/// A function of a relocatable object, in a section of its own, with relocations. `slow_paths` are
/// those that it calls.
///
/// # Errors
///
/// A fixup that no relocation can express.
pub fn of_object<'a>(
    lowered: &'a LoweredFunction,
    code: &'a Code,
    slow_paths: impl Iterator<Item = (&'a LoweredFunction, &'a Code)>,
    target: &'static Target,
) -> Result<cubin::Function, String> {
    let name = lowered.function.name();
    let elf = ElfTarget::of_sm(target.sm).ok_or_else(|| format!("{}: no ELF facts", target.name))?;
    let mut pieces = vec![Piece { lowered, code }];
    pieces.extend(slow_paths.map(|(lowered, code)| Piece { lowered, code }));
    let named: Vec<(&str, &Code)> = pieces.iter().map(|p| (p.name(), p.code)).collect();
    let linked = merge_functions::object(target, elf.layout, &named)?;
    let kernel = lowered.kernel;
    // Slow paths take no part in the calling convention.
    let own = |place: &Place| !matches!(place, Place::Inside(_)) && !is_slow_path(place);
    let calls = !kernel || code.fixups.iter().any(|fixup| own(&fixup.place)) || !lowered.externs.is_empty();
    let registers = pieces.iter().map(|p| p.code.registers).max().unwrap_or(0) + EXTRA_REGISTERS;
    let least = target.info().filter(|_| calls).map_or(0, |info| info.abi_min);
    Ok(cubin::Function {
        name: name.to_string(),
        kernel,
        binding: lowered.binding,
        code_relocs: linked.relocs.iter().map(relocation).collect(),
        registers: registers.max(least),
        barriers: lowered.barriers,
        param_base: lowered.param_base,
        param_bytes: lowered.param_bytes,
        params: lowered.params.clone(),
        shared: lowered.shared,
        stack: cubin::Stack {
            frame: lowered.function.attributes().frame_bytes + lowered.function.attributes().below_stack,
            max: Some(0),
            call_return: (code.reconverges || !code.tables.is_empty()).then_some(0),
            ..cubin::Stack::default()
        },
        launch: lowered.launch,
        sites: cubin::Sites { syscalls: Vec::new(), ..sites(&pieces, &linked) },
        tensor: tensor(&pieces),
        wmma: lowered.wmma,
        reserved: lowered.reserved,
        block_z: states_block_z(&pieces, elf),
        constant2: object_tables(lowered, code),
        externs: lowered.externs.clone(),
        lines: pieces.iter().flat_map(|p| p.code.lines.iter().copied()).collect(),
        code: linked.bytes,
        ..cubin::Function::default()
    })
}

/// Whether code names a slow path.
fn is_slow_path(place: &Place) -> bool {
    matches!(place, Place::Function(name) if Helper::of_slow_path(name).is_some())
}

/// The branch tables of one function.
fn object_tables(lowered: &LoweredFunction, code: &Code) -> Option<cubin::Image> {
    if code.tables.is_empty() {
        return None;
    }
    let mut bytes = vec![0; lowered.bank2 as usize];
    for table in &code.tables {
        for (i, target) in table.targets.iter().enumerate() {
            let at = table.slot as usize + 4 * i;
            bytes[at..at + 4].copy_from_slice(&(*target as u32).to_le_bytes());
        }
    }
    Some(cubin::Image::new(bytes, 4))
}

/// The symbols of branch tables, one for each function that has some.
pub fn table_symbols(functions: &[cubin::Function]) -> Vec<cubin::KeptSymbol> {
    let symbol = |function: &cubin::Function| {
        let size = function.constant2.as_ref()?.size;
        let section = cubin::SymbolHome::Section(format!(".nv.constant2.{}", function.name));
        let (name, info) = (branch_tables(&function.name), cubin::symbols::STT_CUDA_OBJECT);
        let other = cubin::symbols::OTHER_TABLE;
        Some(cubin::KeptSymbol { name, shared_name: None, info, other, section, value: 0, size })
    };
    functions.iter().filter_map(symbol).collect()
}

/// Symbols of the functions behind the kernel.
fn labels(pieces: &[Piece], linked: &Linked, stacks: &[u32]) -> Vec<cubin::Label> {
    let kernel = pieces[0].name();
    let ends = linked.starts.iter().skip(1).copied().chain([linked.bytes.len() as u64]);
    let all = pieces.iter().zip(stacks).zip(linked.starts.iter().zip(ends)).skip(1);
    all.map(|((piece, stack), (start, end))| cubin::Label {
        name: match Helper::of_slow_path(piece.name()) {
            Some(_) => piece.name().to_string(),
            None => format!("${kernel}${}", piece.name()),
        },
        offset: *start,
        size: end - start,
        binding: piece.lowered.binding,
        frame: Some(*stack),
    })
    .collect()
}

/// Numbers the slow paths of a file's functions, which have one of their own each.
pub fn number_slow_paths(functions: &mut [cubin::Function]) {
    let labels = functions.iter_mut().flat_map(|function| &mut function.labels);
    let all = labels.filter_map(|label| {
        let helper = Helper::of_slow_path(&label.name)?;
        Some((label, helper))
    });
    for (number, (label, helper)) in all.enumerate() {
        label.name = format!("$__internal_{number}_${}", helper.name);
    }
}

/// How a kernel and its functions use tensor memory.
fn tensor(pieces: &[Piece]) -> cubin::TensorUse {
    let does = |what: usize| pieces.iter().any(|piece| piece.code.tensor[what]);
    let sparse = pieces.iter().any(|piece| piece.lowered.sparse_tensors);
    let pair = pieces.iter().any(|piece| piece.lowered.tensor_pair);
    cubin::TensorUse { any: does(0), unit: does(1), allocates: does(2), pair, sparse }
}

/// Section offsets of the instructions that the cubin lists.
fn sites(pieces: &[Piece], linked: &Linked) -> cubin::Sites {
    let mut sites = cubin::Sites::default();
    for (piece, start) in pieces.iter().zip(&linked.starts) {
        let code = piece.code;
        let moved = |list: &[u32]| list.iter().map(|at| at + *start as u32).collect::<Vec<u32>>();
        sites.exits.extend(moved(&code.exits));
        sites.warp_wide.extend(moved(&code.warp_wide));
        sites.inserted_warp_wide.extend(moved(&code.inserted_warp_wide));
        sites.mbarriers.extend(code.mbarriers.iter().map(|m| cubin::MbarrierSite {
            offset: m.at + *start as u32,
            kind: m.kind,
            register: m.register,
            uniform: m.uniform,
            address: m.address,
        }));
        let counted = code.mbarriers.iter().filter_map(|m| Some((m.at, u32::from(m.count?))));
        sites
            .register_map
            .extend(counted.flat_map(|(at, count)| [at + *start as u32, COUNT_MAP | count << 16, u32::MAX]));
        sites.partly_read.extend(code.partly_read.iter().map(|(at, mask)| (at + *start as u32, *mask)));
        sites.syscalls.extend(moved(&code.system_calls));
        sites.indirect_branches.extend(code.tables.iter().map(|table| cubin::IndirectBranch {
            offset: table.at + *start as u32,
            targets: table.targets.iter().map(|at| (start + at) as u32).collect(),
        }));
    }
    sites.warp_wide_masks = vec![u32::MAX; sites.warp_wide.len()];
    sites
}

/// The low half of an entry of the map of registers: an arrival, the count of which is in a
/// register.
const COUNT_MAP: u32 = 0x201;

/// Bank 2 of a kernel that reads it: function addresses, the branch tables of its functions, words
/// that the host patches, and constants.
fn bank2(module: &LoweredModule, pieces: &[Piece], linked: &Linked) -> Option<cubin::Image> {
    let constants = linked.constants.values.iter().flat_map(|value| value.to_le_bytes());
    let patched = &pieces[0].code.shader_constants;
    let patched = if patched.words.is_empty() { 0 } else { (patched.start + patched.end()) as usize };
    let tables = pieces.iter().any(|p| p.lowered.branch_bank);
    if !tables && patched == 0 && linked.constants.values.is_empty() {
        return None;
    }
    let mut bytes = vec![0; if tables { patched.max(module.bank2 as usize) } else { patched }];
    if !linked.constants.values.is_empty() {
        bytes.resize(linked.constants.start as usize, 0);
        bytes.extend(constants);
    }
    if !tables {
        return Some(cubin::Image::new(bytes, 4));
    }
    let by_name: SortedMap<&str, usize> = pieces.iter().enumerate().rev().map(|(i, p)| (p.name(), i)).collect();
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    if !module.pointers.is_empty() {
        put(0, &NOWHERE.to_le_bytes());
    }
    for (i, name) in module.pointers.iter().enumerate() {
        let found = by_name.get(name.as_str()).copied();
        put(8 * (i + 1), &found.map_or(NOWHERE, |piece| linked.starts[piece]).to_le_bytes());
    }
    for (piece, start) in pieces.iter().zip(&linked.starts) {
        for table in &piece.code.tables {
            for (i, target) in table.targets.iter().enumerate() {
                put(table.slot as usize + 4 * i, &((start + target) as u32).to_le_bytes());
            }
        }
    }
    Some(cubin::Image::new(bytes, 4))
}

fn externs(pieces: &[Piece]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut known = SortedSet::new();
    for name in pieces.iter().flat_map(|p| &p.lowered.externs) {
        if known.insert(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Stack bytes of each function with its deepest call path; a recursive function counts nothing.
fn stacks(pieces: &[Piece], pointers: &[String]) -> Vec<u32> {
    let by_name: SortedMap<&str, usize> = pieces.iter().enumerate().map(|(i, p)| (p.name(), i)).collect();
    let callees = |piece: usize| {
        let lowered = pieces[piece].lowered;
        let pointers: &[String] = if lowered.indirect { pointers } else { &[] };
        let names = lowered.callees.iter().chain(pointers);
        names.filter_map(|name| by_name.get(name.as_str()).copied()).collect::<Vec<usize>>()
    };
    let mut known: Vec<Option<u32>> = vec![None; pieces.len()];
    let frame = |piece: usize| pieces[piece].lowered.function.attributes().frame_bytes;
    (0..pieces.len()).for_each(|piece| follow(piece, &callees, &frame, &mut known));
    // Any lane may be anywhere in the code when another one uses what is below its stack.
    let below = pieces.iter().map(|piece| piece.lowered.function.attributes().below_stack).max().unwrap_or(0);
    known.into_iter().map(|depth| depth.unwrap_or(0) + below).collect()
}

/// Stack bytes of each function of a module, by name, with those of its deepest call path.
pub fn depths(module: &LoweredModule, codes: &[Code], devices: &[Code]) -> SortedMap<String, u32> {
    let entries = module.functions.iter().zip(codes);
    let all = entries.chain(module.devices.iter().zip(devices));
    let pieces: Vec<Piece> = all.map(|(lowered, code)| Piece { lowered, code }).collect();
    let depths = stacks(&pieces, &module.pointers);
    pieces.iter().map(|piece| piece.name().to_string()).zip(depths).collect()
}

/// A function on the current call path.
struct Open {
    piece: usize,
    callees: Vec<usize>,
    next: usize,
    /// Stack bytes of its deepest callee so far.
    below: u32,
}

/// Computes the stack of a function and of all that it reaches. Uses an explicit stack, because a
/// call path may be as long as there are functions.
fn follow(
    first: usize,
    callees: &impl Fn(usize) -> Vec<usize>,
    frame: &impl Fn(usize) -> u32,
    known: &mut [Option<u32>],
) {
    if known[first].is_some() {
        return;
    }
    let mut place: SortedMap<usize, usize> = SortedMap::from([(first, 0)]);
    let mut open = vec![Open { piece: first, callees: callees(first), next: 0, below: 0 }];
    while let Some(top) = open.last_mut() {
        let callee = top.callees.get(top.next).copied();
        top.next += 1;
        match callee {
            Some(callee) => match (known[callee], place.get(&callee).copied()) {
                (Some(depth), _) => top.below = top.below.max(depth),
                // All functions between the two are on a cycle.
                (None, Some(at)) => open[at..].iter().for_each(|on| known[on.piece] = Some(0)),
                (None, None) => {
                    place.insert(callee, open.len());
                    open.push(Open { piece: callee, callees: callees(callee), next: 0, below: 0 });
                }
            },
            None => {
                let (piece, below) = (top.piece, top.below);
                place.remove(&piece);
                open.pop();
                let depth = *known[piece].get_or_insert(frame(piece).saturating_add(below));
                if let Some(caller) = open.last_mut() {
                    caller.below = caller.below.max(depth);
                }
            }
        }
    }
}

/// The order of the functions in the file, as in ptxas 13.0.88. In a cubin the last entry of the
/// text comes first. In an object each function follows those that it calls or names, with the last
/// of the text and the last call of each first, and functions that only the object has before all
/// others. `text` has the names of the text's functions.
pub fn file_order(module: &LoweredModule, text: &[&str], object: bool) -> Vec<usize> {
    if !object {
        return (0..module.functions.len()).rev().collect();
    }
    let all: Vec<&LoweredFunction> = module.functions.iter().chain(&module.devices).collect();
    let by_name: SortedMap<&str, usize> = all.iter().enumerate().map(|(i, f)| (f.function.name(), i)).collect();
    let place = |name: &str| by_name.get(name).copied();
    let mut roots: Vec<usize> = text.iter().rev().filter_map(|name| place(name)).collect();
    crate::sorted::by_key(&mut roots, |at| all[*at].kernel || all[*at].binding != cubin::Binding::Local);
    roots.extend(0..all.len());
    let (mut order, mut seen) = (Vec::new(), vec![false; all.len()]);
    for root in roots {
        // Functions being visited, each with its callees still to visit.
        let mut open = Vec::new();
        let mut next = Some(root).filter(|root| !seen[*root]);
        loop {
            if let Some(at) = next {
                seen[at] = true;
                let named = all[at].callees.iter().chain(&all[at].taken);
                open.push((at, named.filter_map(|name| place(name)).collect::<Vec<usize>>()));
            }
            let Some((at, callees)) = open.last_mut() else { break };
            match callees.pop() {
                Some(callee) => next = Some(callee).filter(|callee| !seen[*callee]),
                None => {
                    order.push(*at);
                    open.pop();
                    next = None;
                }
            }
        }
    }
    order
}

/// The callers of driver functions, in reverse order as in ptxas.
pub fn call_graph(functions: &[cubin::Function]) -> Vec<cubin::CallRow> {
    let row = |function: &cubin::Function, callee: &String| cubin::CallRow::Direct {
        caller: function.name.clone(),
        callee: callee.clone(),
    };
    functions.iter().flat_map(|f| f.externs.iter().rev().map(move |e| row(f, e))).collect()
}
