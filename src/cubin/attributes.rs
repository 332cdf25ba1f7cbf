//! Converts the attributes of functions and of the module between model and `.nv.info` records.
//!
//! The rows of `eiattr.ron` say which attributes exist, and in which order. A record that the model
//! cannot reproduce exactly is kept verbatim, never guessed.

use super::bytes::Bytes;
use super::error::CubinError;
use super::model::{Attribute, Cubin, Function, IndirectBranch, MbarrierSite, Param, Sampler};
use super::records;
use crate::arrays::Each;
use crate::tables::elf::{ATTRIBUTES, AttributeRow, AttributeValue as V, ElfTarget, Place};

/// Register limit that means "no limit".
const NO_LIMIT: u16 = 255;
/// Bits 12-16 of the last word of a parameter record: the bank field, always all ones.
const PARAM_BANK_BITS: u32 = 0x1f << 12;

/// Looks up a symbol's index by name, while writing.
pub type IndexOf<'a> = dyn Fn(&str) -> Result<u32, CubinError> + 'a;
/// Looks up a symbol's name by index, while reading.
pub type NameOf<'a> = dyn Fn(u32) -> Option<&'a str> + 'a;

fn rows(place: Place, target: &ElfTarget) -> Vec<&'static AttributeRow> {
    let mut rows: Vec<_> = ATTRIBUTES.iter().filter(|row| row.place == place).collect();
    crate::sorted::by_key(&mut rows, |row| row.order[target.layout as usize]);
    rows
}

/// The bytes of `.nv.info.NAME`.
pub fn write_function(
    function: &Function,
    cubin: &Cubin,
    target: &ElfTarget,
    index: &IndexOf<'_>,
) -> Result<Vec<u8>, CubinError> {
    let mut out = Vec::new();
    for row in rows(Place::Function, target) {
        let kept: Vec<_> = function.kept_attributes.iter().filter(|a| a.id == row.id).collect();
        if !kept.is_empty() {
            kept.iter().try_for_each(|record| records::write(&mut out, record))?;
        } else if function.kernel || !row.kernel_only {
            for payload in payloads(row, function, cubin, target, index)? {
                records::write(&mut out, &Attribute { format: row.format, id: row.id, payload })?;
            }
        }
    }
    for record in function.kept_attributes.iter().filter(|a| AttributeRow::of(a.id).is_none()) {
        records::write(&mut out, record)?;
    }
    Ok(out)
}

/// The bytes of `.nv.info`: the records per function, last function first, then the minimum stacks,
/// in the order of ptxas. What concerns no function is among the records of the first one, or
/// behind those of all if there is no kernel.
pub fn write_module(cubin: &Cubin, target: &ElfTarget, index: &IndexOf<'_>) -> Result<Vec<u8>, CubinError> {
    let mut out = Vec::new();
    let (least, rest): (Vec<_>, Vec<_>) =
        rows(Place::Module, target).into_iter().partition(|row| row.value == V::MinStack);
    let has_kernel = cubin.functions.iter().any(|function| function.kernel);
    for (i, function) in cubin.functions.iter().enumerate().rev() {
        for row in &rest {
            write_module_row(&mut out, row, function, index)?;
            if i == 0 && has_kernel {
                write_once(&mut out, row, cubin, index)?;
            }
        }
    }
    if !has_kernel {
        for row in &rest {
            write_once(&mut out, row, cubin, index)?;
            if row.value == V::SamplerInit {
                write_isa_version(&mut out, target)?;
            }
        }
    }
    for function in &cubin.functions {
        for row in &least {
            write_module_row(&mut out, row, function, index)?;
        }
    }
    cubin.kept.attributes.iter().try_for_each(|record| records::write(&mut out, record))?;
    Ok(out)
}

/// The records of an attribute that concerns no function.
fn write_once(out: &mut Vec<u8>, row: &AttributeRow, cubin: &Cubin, index: &IndexOf<'_>) -> Result<(), CubinError> {
    let stands = match row.value {
        V::IndependentTextures => cubin.independent_textures,
        V::AsksKind => cubin.asks_kind,
        V::SamplerInit => return write_samplers(out, cubin, index),
        _ => false,
    };
    if stands {
        records::write(out, &Attribute { format: row.format, id: row.id, payload: Vec::new() })?;
    }
    Ok(())
}

/// The version of the instruction set, which `.nv.info` states where no kernel does.
fn write_isa_version(out: &mut Vec<u8>, target: &ElfTarget) -> Result<(), CubinError> {
    let row = ATTRIBUTES.iter().find(|row| row.value == V::IsaVersion);
    let Some((row, Some(version))) = row.and_then(|row| Some((row, target.constant(row.id)?))) else { return Ok(()) };
    records::write(out, &Attribute { format: row.format, id: row.id, payload: sized(row.format, version) })
}

/// Both records of each sampler, the last sampler first.
fn write_samplers(out: &mut Vec<u8>, cubin: &Cubin, index: &IndexOf<'_>) -> Result<(), CubinError> {
    for sampler in cubin.samplers.iter().rev() {
        let figures = [(V::SamplerUnnormalized, sampler.unnormalized), (V::SamplerInit, Some(sampler.settings))];
        for (value, figure) in figures {
            if let (Some(row), Some(figure)) = (ATTRIBUTES.iter().find(|row| row.value == value), figure) {
                let payload = words(&[index(&sampler.name)?, figure]);
                records::write(out, &Attribute { format: row.format, id: row.id, payload })?;
            }
        }
    }
    Ok(())
}

fn write_module_row(
    out: &mut Vec<u8>,
    row: &AttributeRow,
    function: &Function,
    index: &IndexOf<'_>,
) -> Result<(), CubinError> {
    let mut figures: Vec<(&str, u32)> = Vec::new();
    let name = function.name.as_str();
    if row.value == V::ErrorBarrier && function.errors_at_exit {
        records::write(out, &Attribute { format: row.format, id: row.id, payload: Vec::new() })?;
    }
    match row.value {
        V::RegisterCount => figures.push((name, function.registers)),
        V::MaxStack => figures.extend(function.stack.max.map(|bytes| (name, bytes))),
        V::MinStack => figures.extend(function.stack.min.map(|bytes| (name, bytes))),
        V::FrameSize => {
            let labels = function.labels.iter().rev();
            figures.extend(labels.filter_map(|label| Some((label.name.as_str(), label.frame?))));
            figures.push((name, function.stack.frame));
        }
        _ => {}
    }
    for (symbol, figure) in figures {
        let payload = words(&[index(symbol)?, figure]);
        records::write(out, &Attribute { format: row.format, id: row.id, payload })?;
    }
    Ok(())
}

/// The payloads of one function attribute, one per record.
fn payloads(
    row: &AttributeRow,
    function: &Function,
    cubin: &Cubin,
    target: &ElfTarget,
    index: &IndexOf<'_>,
) -> Result<Vec<Vec<u8>>, CubinError> {
    let (launch, sites) = (&function.launch, &function.sites);
    let list = |offsets: &[u32]| (!offsets.is_empty()).then(|| words(offsets));
    let flag = |set: bool| set.then(Vec::new);
    let one: Option<Vec<u8>> = match row.value {
        V::Constant | V::IsaVersion => {
            target.constant(row.id).map(|value| value.map_or(Vec::new(), |v| sized(row.format, v)))
        }
        V::ReservedUsed if function.reserved || function.kernel && function.tensor.allocates => Some(Vec::new()),
        V::ReservedUsed if !function.kernel => None,
        V::TensorCount if function.tensor.any => Some(sized(row.format, TENSOR_COUNT)),
        V::ReservedUsed | V::TensorCount => {
            target.constant(row.id).map(|value| value.map_or(Vec::new(), |v| sized(row.format, v)))
        }
        V::TensorUnit => flag(function.tensor.unit && !function.tensor.pair),
        V::TensorPair => flag(function.tensor.unit && function.tensor.pair),
        V::TensorEntry => function.tensor.allocates.then(|| words(&[tensor_entry(function.tensor.pair)])),
        V::SparseMask if function.tensor.sparse => Some(sized(row.format, SPARSE_TENSORS)),
        V::SparseMask => target.constant(row.id).map(|value| value.map_or(Vec::new(), |v| sized(row.format, v))),
        V::WarpMatrices => flag(function.wmma),
        V::BlockZ => flag(function.block_z && target.constant(row.id).is_some()),
        V::Toolkit => Some(words(&[cubin.toolkit])),
        V::ParamBank if function.param_bytes > 0 => Some(param_bank(function, index)?),
        V::ParamSize if function.param_bytes > 0 => Some(sized(row.format, function.param_bytes)),
        V::ParamInfo if !is_large(function, target) => {
            return Ok(function.params.iter().rev().map(param_info).collect());
        }
        V::LargeParamInfo if is_large(function, target) => {
            return Ok(function.params.iter().rev().map(large_param_info).collect());
        }
        V::MaxRegisters => Some(launch.max_registers.unwrap_or(NO_LIMIT).to_le_bytes().to_vec()),
        V::Barriers if function.barriers > 0 => Some(vec![function.barriers]),
        V::Exits => list(&sites.exits[..sites.exits.len().min(records::MOST_WORDS)]),
        V::WarpWide => list(&sites.warp_wide),
        V::WarpWideMasks => list(&sites.warp_wide_masks),
        V::InsertedWarpWide => list(&sites.inserted_warp_wide),
        V::MbarrierInstructions => list(&sites.mbarriers.iter().flat_map(mbarrier_words).collect::<Vec<u32>>()),
        V::Mbarriers if !sites.mbarriers.is_empty() => {
            let made = sites.mbarriers.iter().filter(|site| site.kind == MADE).count();
            Some(sized(row.format, made as u32))
        }
        V::RegisterMap => list(&sites.register_map),
        V::PartlyRead => list(
            &sites
                .partly_read
                .iter()
                .take(records::MOST_WORDS / 2)
                .flat_map(|(at, mask)| [*at, *mask])
                .collect::<Vec<u32>>(),
        ),
        V::Syscalls => list(&sites.syscalls),
        V::MaxThreads => launch.max_threads.map(|n| words(&n)),
        V::RequiredThreads => launch.required_threads.map(|n| words(&n)),
        V::Cluster => launch.cluster.map(|n| words(&n)),
        V::ExplicitCluster => flag(launch.explicit_cluster),
        V::MaxClusterRank => launch.max_cluster_rank.map(|n| words(&[n])),
        V::BlocksAreClusters => flag(launch.blocks_are_clusters),
        V::Reconfigures => flag(launch.reconfigures),
        V::CallReturnStack => function.stack.call_return.map(|n| words(&[n])),
        V::Externs => {
            let symbols: Result<Vec<_>, _> = function.externs.iter().map(|name| index(name)).collect();
            list(&symbols?)
        }
        V::IndirectBranches => {
            let branches = sites.indirect_branches.iter().map(indirect_branch);
            return Ok(branches.filter(|payload| payload.len() <= 4 * records::MOST_WORDS).collect());
        }
        // Not written here: part of the parameter records or of the barrier count.
        V::ParamBank | V::ParamSize | V::ParamInfo | V::LargeParamInfo | V::Barriers | V::Mbarriers => None,
        // Attributes of the module, or kept from a file that was read.
        V::Kept | V::RegisterCount | V::FrameSize | V::MinStack | V::MaxStack | V::ErrorBarrier => None,
        V::SamplerInit | V::SamplerUnnormalized | V::IndependentTextures | V::AsksKind => None,
    };
    Ok(one.into_iter().collect())
}

/// What a kernel needs that uses tensor memory, and what runs before one that allocates it.
const TENSOR_COUNT: u32 = 0x80;
/// What a kernel is said to have that multiplies sparse matrices in tensor memory.
const SPARSE_TENSORS: u32 = 0x40;

/// The code of what runs before a kernel that allocates tensor memory, for itself or for a pair.
fn tensor_entry(pair: bool) -> u32 {
    if pair { 7 } else { 6 }
}

/// The kind of `mbarrier.init`.
const MADE: u8 = 0;

fn mbarrier_words(site: &MbarrierSite) -> [u32; 4] {
    let last = u32::from(site.kind) | 1 << 8 | u32::from(site.uniform) << 16;
    [site.offset, site.register.into(), site.address, last]
}

fn mbarrier_site(words: &[u32]) -> Option<MbarrierSite> {
    let &[offset, register, address, last] = words else { return None };
    let register = u8::try_from(register).ok()?;
    let site = MbarrierSite { offset, kind: last as u8, register, uniform: (last >> 16) as u8, address };
    (mbarrier_words(&site)[3] == last).then_some(site)
}

fn words(figures: &[u32]) -> Vec<u8> {
    figures.iter().flat_map(|figure| figure.to_le_bytes()).collect()
}

/// A value in the size of the record format.
fn sized(format: u8, value: u32) -> Vec<u8> {
    let size = if format == records::FORMAT_SIZED { 4 } else { 2 };
    value.to_le_bytes()[..size].to_vec()
}

fn param_bank(function: &Function, index: &IndexOf<'_>) -> Result<Vec<u8>, CubinError> {
    let symbol = index(&format!(".nv.constant0.{}", function.name))?;
    Ok(words(&[symbol, function.param_base | function.param_bytes << 16]))
}

fn param_info(param: &Param) -> Vec<u8> {
    let pointer = u32::from(param.space & 0xf) << 8 | u32::from(param.pointee_align_log2);
    let place = u32::from(param.ordinal) | u32::from(param.offset) << 16;
    words(&[0, place, u32::from(param.size) << 18 | PARAM_BANK_BITS | pointer])
}

/// Whether the parameters are too large for records of the first form.
fn is_large(function: &Function, target: &ElfTarget) -> bool {
    function.param_bytes > target.layout.info().small_params
}

fn large_param_info(param: &Param) -> Vec<u8> {
    let place = u32::from(param.ordinal) | u32::from(param.offset) << 16;
    let pointer = u32::from(param.space) << 8 | u32::from(param.pointee_align_log2);
    words(&[0, place, u32::from(param.size) | pointer << 16])
}

fn indirect_branch(branch: &IndirectBranch) -> Vec<u8> {
    let mut figures = vec![branch.offset, 0, branch.targets.len() as u32];
    figures.extend(&branch.targets);
    words(&figures)
}

/// The values of a payload that is a list of 32-bit words.
fn figures(payload: &[u8]) -> Option<Vec<u32>> {
    let payload = Bytes::new(payload);
    payload.len().is_multiple_of(4).then(|| (0..payload.len() / 4).filter_map(|i| payload.u32(i * 4).ok()).collect())
}

/// What a reader of records needs besides the record.
pub struct Reading<'a> {
    pub target: &'static ElfTarget,
    /// Toolkit version of the file, 10 × major + minor.
    pub toolkit: u32,
    /// Looks up symbol names.
    pub name: &'a NameOf<'a>,
}

/// Moves one record of `.nv.info.NAME` into the model; returns false if it must be kept verbatim.
pub fn read_function(record: &Attribute, function: &mut Function, reading: &Reading<'_>) -> bool {
    let Some(row) = AttributeRow::of(record.id).filter(|row| row.format == record.format) else { return false };
    let payload = record.payload.as_slice();
    let Some(list) = figures(payload) else { return read_small(row, payload, function, reading.target) };
    let (launch, sites) = (&mut function.launch, &mut function.sites);
    match (row.value, list.as_slice()) {
        (V::Constant | V::IsaVersion, [value]) => return reading.target.constant(row.id) == Some(Some(*value)),
        (V::TensorEntry, [code]) if [false, true].each(tensor_entry).contains(code) => {
            function.tensor.allocates = true;
            function.tensor.pair |= *code == tensor_entry(true);
        }
        (V::Toolkit, [version]) => return *version == reading.toolkit,
        (V::ParamBank, [_, bank]) => {
            function.param_base = bank & 0xffff;
            function.param_bytes = bank >> 16;
        }
        (V::ParamInfo, [0, place, rest]) if rest & 0x3_f000 == PARAM_BANK_BITS => function.params.push(Param {
            ordinal: *place as u16,
            offset: (place >> 16) as u16,
            size: (rest >> 18) as u16,
            space: (rest >> 8 & 0xf) as u8,
            pointee_align_log2: *rest as u8,
        }),
        (V::LargeParamInfo, [0, place, rest]) => function.params.push(Param {
            ordinal: *place as u16,
            offset: (place >> 16) as u16,
            size: *rest as u16,
            space: (rest >> 24) as u8,
            pointee_align_log2: (rest >> 16) as u8,
        }),
        (V::Exits, list) => sites.exits = list.to_vec(),
        (V::WarpWide, list) => sites.warp_wide = list.to_vec(),
        (V::WarpWideMasks, list) => sites.warp_wide_masks = list.to_vec(),
        (V::InsertedWarpWide, list) => sites.inserted_warp_wide = list.to_vec(),
        (V::MbarrierInstructions, list) => match list.chunks(4).map(mbarrier_site).collect() {
            Some(mbarriers) => sites.mbarriers = mbarriers,
            None => return false,
        },
        (V::RegisterMap, list) => sites.register_map = list.to_vec(),
        (V::PartlyRead, list) => match list.chunks(2).map(|pair| Some((pair[0], *pair.get(1)?))).collect() {
            Some(loads) => sites.partly_read = loads,
            None => return false,
        },
        (V::Syscalls, list) => sites.syscalls = list.to_vec(),
        (V::MaxThreads, &[x, y, z]) => launch.max_threads = Some([x, y, z]),
        (V::RequiredThreads, &[x, y, z]) => launch.required_threads = Some([x, y, z]),
        (V::Cluster, &[x, y, z]) => launch.cluster = Some([x, y, z]),
        (V::MaxClusterRank, [rank]) => launch.max_cluster_rank = Some(*rank),
        (V::CallReturnStack, [bytes]) => function.stack.call_return = Some(*bytes),
        (V::Externs, list) => match list.iter().map(|i| (reading.name)(*i).map(str::to_string)).collect() {
            Some(names) => function.externs = names,
            None => return false,
        },
        (V::IndirectBranches, [offset, 0, count, targets @ ..]) if *count as usize == targets.len() => {
            sites.indirect_branches.push(IndirectBranch { offset: *offset, targets: targets.to_vec() });
        }
        _ => return false,
    }
    true
}

/// Records without payload, or with one or two bytes.
fn read_small(row: &AttributeRow, payload: &[u8], function: &mut Function, target: &ElfTarget) -> bool {
    let Ok(value) = Bytes::new(payload).u16(0) else { return false };
    if payload.len() != 2 || (row.format == records::FORMAT_BYTE && value > 0xff) {
        return false;
    }
    match row.value {
        V::TensorCount if u32::from(value) == TENSOR_COUNT => function.tensor.any = true,
        V::TensorUnit if value == 0 => function.tensor.unit = true,
        V::TensorPair if value == 0 => (function.tensor.unit, function.tensor.pair) = (true, true),
        V::WarpMatrices if value == 0 => function.wmma = true,
        V::BlockZ if value == 0 && target.constant(row.id).is_some() => function.block_z = true,
        V::SparseMask if u32::from(value) == SPARSE_TENSORS => function.tensor.sparse = true,
        V::SparseMask => return target.constant(row.id) == Some(Some(u32::from(value))),
        V::ReservedUsed if function.tensor.allocates => return value == 0,
        V::ReservedUsed if value == 0 && (!function.kernel || target.constant(row.id).is_none()) => {
            function.reserved = true;
        }
        V::Constant | V::IsaVersion | V::ReservedUsed | V::TensorCount => match target.constant(row.id) {
            Some(None) => return value == 0,
            Some(Some(constant)) => return constant == u32::from(value),
            None => return false,
        },
        // Repeated in the bank record, together with the base.
        V::ParamSize => function.param_bytes = value.into(),
        V::MaxRegisters => function.launch.max_registers = (value != NO_LIMIT).then_some(value),
        V::Barriers => function.barriers = value as u8,
        // Counted again from the list of instructions, which stands before it.
        V::Mbarriers => {
            let made = function.sites.mbarriers.iter().filter(|site| site.kind == MADE).count();
            return !function.sites.mbarriers.is_empty() && made == usize::from(value);
        }
        V::ExplicitCluster if value == 0 => function.launch.explicit_cluster = true,
        V::BlocksAreClusters if value == 0 => function.launch.blocks_are_clusters = true,
        V::Reconfigures if value == 0 => function.launch.reconfigures = true,
        _ => return false,
    }
    true
}

/// Moves one record of `.nv.info` into the model; returns false if it must be kept verbatim.
///
/// `last` is the function of the record before it, to which a record without a payload belongs.
pub fn read_module(record: &Attribute, cubin: &mut Cubin, reading: &Reading<'_>, last: &mut Option<String>) -> bool {
    let Some(row) = AttributeRow::of(record.id).filter(|row| row.format == record.format) else { return false };
    if row.value == V::ErrorBarrier {
        let function = last.as_ref().and_then(|last| cubin.functions.iter_mut().find(|f| f.name == *last));
        return function.map(|function| function.errors_at_exit = true).is_some();
    }
    match row.value {
        V::IndependentTextures => cubin.independent_textures = true,
        V::AsksKind => cubin.asks_kind = true,
        // Written again for every file without kernels.
        V::IsaVersion => {
            let version = reading.target.constant(row.id).flatten().map(|version| sized(row.format, version));
            return cubin.functions.iter().all(|function| !function.kernel)
                && version.as_ref() == Some(&record.payload);
        }
        _ => return read_figure(record, row, cubin, reading.name, last),
    }
    true
}

/// Moves one record with a symbol and a figure into the model.
fn read_figure(
    record: &Attribute,
    row: &AttributeRow,
    cubin: &mut Cubin,
    name: &NameOf<'_>,
    last: &mut Option<String>,
) -> bool {
    let Some([symbol, figure]) = figures(&record.payload).and_then(|list| <[u32; 2]>::try_from(list).ok()) else {
        return false;
    };
    let Some(symbol) = name(symbol) else { return false };
    if matches!(row.value, V::SamplerInit | V::SamplerUnnormalized) {
        read_sampler(symbol, row.value, figure, cubin);
        return true;
    }
    *last = Some(symbol.to_string());
    let Some(function) = cubin.functions.iter_mut().find(|f| f.name == symbol) else {
        let mut labels = cubin.functions.iter_mut().flat_map(|f| &mut f.labels);
        let label = labels.find(|label| label.name == symbol && row.value == V::FrameSize);
        return label.map(|label| label.frame = Some(figure)).is_some();
    };
    match row.value {
        V::RegisterCount => function.registers = figure,
        V::FrameSize => function.stack.frame = figure,
        V::MinStack => function.stack.min = Some(figure),
        V::MaxStack => function.stack.max = Some(figure),
        _ => return false,
    }
    true
}

/// Notes what a record says of a sampler. The records are last sampler first.
fn read_sampler(name: &str, value: V, figure: u32, cubin: &mut Cubin) {
    let known = cubin.samplers.iter().position(|sampler| sampler.name == name);
    let at = known.unwrap_or_else(|| {
        cubin.samplers.insert(0, Sampler { name: name.to_string(), ..Sampler::default() });
        0
    });
    match value {
        V::SamplerInit => cubin.samplers[at].settings = figure,
        _ => cubin.samplers[at].unnormalized = Some(figure),
    }
}
