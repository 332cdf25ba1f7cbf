//! Instruction selection: lowers resolved PTX to Ori, one file per operation family.
//!
//! Yields an Ori function (not in SSA form) per entry and per device function that an entry
//! reaches, with what the cubin records about it, and the images of the module's variables. Each
//! PTX register is one set of virtual registers; 8- and 16-bit values are in the low bits of a
//! register whose upper bits are undefined. Operands have kinds that every form of their opcode
//! takes: registers, and an immediate as the second source; operand legalization does the rest. An
//! unimplemented instruction is refused by name at its position, and lowering continues in order to
//! report all of them.

mod builder;
mod bulk;
pub(crate) mod call;
mod cluster;
mod control;
pub(crate) mod convert;
mod elected;
pub(crate) mod float;
mod image_call;
pub(crate) mod int;
mod known;
mod max_registers;
mod mbarrier;
pub(crate) mod memory;
pub(crate) mod mma;
pub(crate) mod module;
mod multimem;
mod operand;
mod quads;
mod special_regs;
mod surface;
mod tensor;
pub(crate) mod tensor_memory;
mod tensor_pair;
mod tensor_unit;
#[cfg(test)]
mod tests;
mod texture;
pub(crate) mod texture_handle;
mod texture_query;
mod video;
mod warp;
pub mod wgmma;

use crate::cubin::KeptSymbol;
use crate::cubin::model::{Binding, CallRow, Image, Launch, Param, Shared, Variable};
use crate::diag::{Diagnostic, Pos};
use crate::ori::{BankConstants, Function, Operand};
use crate::ptx::ast::{self, FunctionId, Module, Statement};
use crate::sorted::SortedMap;
use crate::tables::choices;
use crate::tables::elf::{ElfTarget, Layout, RelocRole};
use crate::tables::ptx::{Limit, Op, ScalarType};
use crate::tables::{GenerationInfo, Target};
use builder::{Builder, Lowered, Refusal};
pub(crate) use call::abi::RETURN_ADDRESS;
use call::call_graph::Calls;
use control::Labels;
pub use module::layout::LOOSE_SHARED;
pub(crate) use module::layout::is_shared;
use module::layout::{FunctionLayout, ModuleLayout, fixed_places};
pub use module::relocs::branch_tables;
use operand::{Class, class_of};

/// A module in Ori, with its data.
#[derive(Clone)]
pub struct LoweredModule {
    /// Entries, in source order.
    pub functions: Vec<LoweredFunction>,
    /// Device functions that entries reach. One that uses shared memory is lowered once per entry
    /// that reaches it, because its variables are at the offsets of that entry.
    pub devices: Vec<LoweredFunction>,
    /// Names of the functions whose address is taken. Their addresses are in bank 2, from its
    /// second 8-byte slot on.
    pub pointers: Vec<String>,
    /// Size in bytes of bank 2 in an entry whose code reads it.
    pub bank2: u32,
    /// Module variables; their bytes are in the images.
    pub variables: Vec<Variable>,
    /// Variables without initial value.
    pub global: Option<Image>,
    /// Variables with initial value.
    pub global_init: Option<Image>,
    /// `.const` variables: bank c\[3\].
    pub constant3: Option<Image>,
    /// Bank c\[4\]: addresses of global variables and of functions of the driver that code reads.
    pub constant4: Option<Image>,
    pub warnings: Vec<Diagnostic>,
    /// What else a relocatable object records.
    pub object: ObjectFacts,
}

/// What only a relocatable object records.
#[derive(Clone, Default)]
pub struct ObjectFacts {
    /// Symbols of aliases and of variables that are in no image.
    pub symbols: Vec<KeptSymbol>,
    /// Shared variables that belong to no entry.
    pub shared: Option<Shared>,
    pub call_graph: Vec<CallRow>,
    /// Names and prototypes of the functions that others may call.
    pub prototypes: Vec<(String, String)>,
}

/// A word of bank 0 that the driver fills with what a reference names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub role: RelocRole,
    pub name: String,
    /// Byte offset in the bank.
    pub at: u32,
}

/// A function in Ori, with what its launch or its callers need. `function` has the frame.
#[derive(Clone)]
pub struct LoweredFunction {
    pub function: Function,
    /// Whether it is an entry.
    pub kernel: bool,
    pub binding: Binding,
    pub params: Vec<Param>,
    /// Byte offset of the first parameter in bank 0, and bytes of all parameters from there on.
    pub param_base: u32,
    pub param_bytes: u32,
    /// Words behind the parameters that the driver fills with what references name.
    pub references: Vec<Reference>,
    /// Static shared memory; `None` if the function uses no shared memory.
    pub shared: Option<Shared>,
    /// Whether dynamic shared memory, sized by the launch, follows the static part.
    pub dynamic_shared: bool,
    pub launch: Launch,
    /// Highest block barrier number + 1; 16 if a barrier number is in a register.
    pub barriers: u8,
    /// Names of the functions of the module that it calls directly.
    pub callees: Vec<String>,
    /// Whether it calls through a pointer.
    pub indirect: bool,
    /// Names of the functions whose address it takes.
    pub taken: Vec<String>,
    /// Functions of the driver that it calls.
    pub externs: Vec<String>,
    /// Whether it multiplies sparse matrices in tensor memory.
    pub sparse_tensors: bool,
    /// Whether two blocks do something together in tensor memory.
    pub tensor_pair: bool,
    /// Whether its text has a `wmma` instruction.
    pub wmma: bool,
    /// Whether its text asks where the shared memory is that the driver reserves.
    pub reserved: bool,
    /// Whether it reads bank 2, for an indexed branch or a call through a pointer.
    pub branch_bank: bool,
    /// Bytes of the function's own part of bank 2 in an object.
    pub bank2: u32,
    /// For an entry, the device functions placed behind it, as indices into
    /// [`LoweredModule::devices`].
    pub pieces: Vec<usize>,
    /// With debug information: offsets of parameters in bank 0, and of variables in the frame.
    pub places: SortedMap<ast::SymbolId, u64>,
}

/// Lowers a module for a target. In a relocatable object every function has its own section.
///
/// # Errors
///
/// All diagnostics of the module: each unimplemented instruction, and each violation of the calling
/// convention or of a limit.
pub fn lower(module: &Module, target: &'static Target, object: bool) -> Result<LoweredModule, Vec<Diagnostic>> {
    lower_all(module, target, (object, object), true)
}

/// Lowers a module whose device functions others will call: all of them, reachable or not.
///
/// # Errors
///
/// As [`lower`].
pub fn library(module: &Module, target: &'static Target, object: bool) -> Result<LoweredModule, Vec<Diagnostic>> {
    lower_all(module, target, (object, true), false)
}

fn lower_all(
    module: &Module,
    target: &'static Target,
    (object, devices): (bool, bool),
    strict: bool,
) -> Result<LoweredModule, Vec<Diagnostic>> {
    let Some(info) = target.info() else {
        return Err(vec![Diagnostic::fatal(format!("Target '{}' is not implemented", target.name))]);
    };
    let mut calls = Calls::new(module);
    calls.images_by_call = target.has(crate::tables::Feature::ImagesByCall);
    calls.volumes_by_call = target.has(crate::tables::Feature::VolumeGradientsByCall);
    calls.copies_by_call = target.has(crate::tables::Feature::BulkCopiesByCall);
    let mut diagnostics = Vec::new();
    for id in calls.pointers.iter().filter(|id| !object && module.functions[**id].body.is_none()) {
        // ptxas ends this message with a blank.
        let text = format!("Cannot take address of function '{}' ", module.functions[*id].name);
        diagnostics.push(Diagnostic::fatal(text));
    }
    let unified = module.functions.values().filter(|f| f.directives.unified.is_some() && object);
    diagnostics.extend(unified.map(|f| {
        Diagnostic::error(
            f.pos,
            format!("Attribute '.unified' of function '{}' in an object is not implemented", f.name),
        )
    }));
    // The convention of runtime helpers is ours, so it is not checked.
    let no_abi =
        if strict { call::no_abi::check(module, &calls, object, devices) } else { call::no_abi::Verdict::default() };
    if !no_abi.errors.is_empty() && diagnostics.is_empty() {
        return Err(no_abi.warning.map(Diagnostic::note).into_iter().chain(no_abi.errors).collect());
    }
    let elf = ElfTarget::of_sm(target.sm).map_or(Layout::default(), |elf| elf.layout);
    let layout = ModuleLayout::new(module, &calls, (object, elf), &mut diagnostics);
    let (devices_made, places) = (Vec::new(), SortedMap::new());
    let mut lowering =
        Lowering { module, calls: &calls, target, info, layout, diagnostics, devices: devices_made, places };
    let mut functions: Vec<LoweredFunction> = module
        .functions
        .iter()
        .filter(|(_, source)| source.is_entry && source.body.is_some())
        .filter_map(|(id, _)| lowering.entry(id))
        .collect();
    if devices {
        let all = module.functions.values().filter(|f| !f.is_entry && f.body.is_some()).count();
        check_count("File has", all, Limit::ObjectFunctions).map_err(|refusal| vec![refusal])?;
        lowering.all_devices();
    }
    let Lowering { layout, mut diagnostics, mut devices, .. } = lowering;
    if !diagnostics.is_empty() {
        crate::sorted::by_key(&mut diagnostics, |d| d.pos);
        diagnostics.dedup();
        return Err(diagnostics);
    }
    let mut facts =
        if object { module::object_symbols::facts(module, &calls, &layout) } else { ObjectFacts::default() };
    if object {
        let all = functions.iter().chain(&devices);
        let one = |f: &LoweredFunction| (f.function.name().to_string(), f.externs.clone());
        facts.add_calls_of_driver(module, all.map(one));
    }
    let ModuleLayout { variables, global, global_init, constant3, constant4, bank2, warnings, infos, .. } = layout;
    let warnings = no_abi.warning.into_iter().chain(warnings).map(Diagnostic::note);
    let warnings = warnings.chain(infos.into_iter().map(Diagnostic::info)).collect();
    let pointers = calls.pointers.iter().map(|id| module.functions[*id].name.clone()).collect();
    if !object {
        // Each function of the kernel with most of them has its share of what the tables leave.
        let tables = bank2.next_multiple_of(8);
        let left = BankConstants::BYTES.saturating_sub(tables as usize) / BankConstants::bytes(1);
        let most = left / (1 + functions.iter().map(|entry| entry.pieces.len()).max().unwrap_or(0));
        for lowered in functions.iter_mut().chain(&mut devices) {
            let start = if lowered.branch_bank { tables } else { 0 };
            lowered.function.attributes_mut().constants = Some(BankConstants { start, most, values: Vec::new() });
        }
    }
    Ok(LoweredModule {
        functions,
        devices,
        pointers,
        bank2,
        variables,
        global,
        global_init,
        constant3,
        constant4,
        warnings,
        object: facts,
    })
}

/// Checks that this many device functions, of which all are kept until the last is compiled, are
/// not too many.
fn check_count(whose: &str, count: usize, limit: Limit) -> Result<(), Diagnostic> {
    let most = limit.bytes(|_| true);
    if count as u64 <= most {
        return Ok(());
    }
    Err(Diagnostic::fatal(format!("{whose} too many functions ({count}, {most} max)")))
}

/// A device function as lowered: for one entry if it uses shared memory, else for all.
type Instance = (FunctionId, Option<FunctionId>);

struct Lowering<'a> {
    module: &'a Module,
    calls: &'a Calls,
    target: &'static Target,
    info: &'static GenerationInfo,
    layout: ModuleLayout,
    diagnostics: Vec<Diagnostic>,
    devices: Vec<LoweredFunction>,
    /// Index of each instance in the list of devices.
    places: SortedMap<Instance, usize>,
}

/// Functions of a module from which on it counts what each leaves empty: all are lowered before the
/// first is compiled.
const MANY: usize = 1000;

impl Lowering<'_> {
    /// Lowers an entry and the device functions behind it.
    fn entry(&mut self, id: FunctionId) -> Option<LoweredFunction> {
        let (object, elf) = (self.layout.object, ElfTarget::of_sm(self.target.sm));
        let all = self.calls.reachable(self.module, id);
        let name = &self.module.functions[id].name;
        if let Err(refusal) = check_count(&format!("Entry function '{name}' calls"), all.len(), Limit::DeviceFunctions)
        {
            self.diagnostics.push(refusal);
            return None;
        }
        let reach = if object { Vec::new() } else { all.clone() };
        let places = match FunctionLayout::of_entry(self.module, self.calls, id, &reach, (self.info, elf)) {
            Ok(places) => places,
            Err((pos, message)) => {
                self.diagnostics.push(Diagnostic::error(pos, message));
                return None;
            }
        };
        let pieces = reach.iter().map(|callee| self.device(*callee, id, &places)).collect();
        let mut entry = self.function(id, places);
        if object {
            entry.shared = self.layout.shared.get(&Some(id)).copied();
            entry.dynamic_shared = module::layout::asks_launch(self.module, self.calls, all.iter().chain([&id]));
        }
        entry.pieces = pieces;
        Some(entry)
    }

    /// Lowers all device functions with a body.
    fn all_devices(&mut self) {
        for (id, function) in self.module.functions.iter() {
            if !function.is_entry && function.body.is_some() {
                let places = FunctionLayout::of_device(self.module, self.calls, id, &FunctionLayout::default(), true);
                let device = self.function(id, places);
                self.devices.push(device);
            }
        }
    }

    /// Index among the devices of a function that an entry reaches; lowers it on first use.
    fn device(&mut self, id: FunctionId, kernel: FunctionId, places: &FunctionLayout) -> usize {
        let shared = |id: &ast::SymbolId| match &self.module.symbols[*id].kind {
            ast::SymbolKind::Variable(variable) => module::layout::is_shared(variable.space),
            _ => false,
        };
        let instance = (id, self.calls.uses(id).symbols.iter().any(shared).then_some(kernel));
        if let Some(found) = self.places.get(&instance) {
            return *found;
        }
        let places = FunctionLayout::of_device(self.module, self.calls, id, places, self.layout.object);
        let device = self.function(id, places);
        self.places.insert(instance, self.devices.len());
        self.devices.push(device);
        self.devices.len() - 1
    }

    fn function(&mut self, id: FunctionId, places: FunctionLayout) -> LoweredFunction {
        let source = &self.module.functions[id];
        let body = source.body.as_deref().unwrap_or_default();
        let mut labels = Labels::new(source, body);
        let target = (self.target, self.info);
        let rolled = self.module.pragmas.iter().chain(&source.directives.pragmas).any(keeps_loops);
        if self.layout.object {
            self.layout.bank2 = 0;
        }
        let mut builder = Builder::new(self.module, source, &mut self.layout, self.calls, places, target);
        let diagnostics = &mut self.diagnostics;
        if !source.is_entry
            && let Err(refusal) = builder.arrive()
        {
            diagnostics.push(diagnostic_at(refusal, source));
        }
        for statement in body {
            match statement {
                Statement::Label(id) => {
                    labels.place(&mut builder, *id);
                    builder.elected.join(*id);
                }
                Statement::Instruction(inst) => {
                    labels.pass();
                    builder.alone = builder.elected.alone(inst);
                    let lower = |b: &mut Builder, inst: &ast::Instruction| lower_instruction(b, &mut labels, inst);
                    if let Err(refusal) = builder.with_narrowed(inst, lower) {
                        diagnostics.push(diagnostic(refusal, inst));
                    }
                    builder.elected.pass(inst);
                }
                Statement::Pragma(pragma) if keeps_loops(pragma) => {
                    let block = builder.block;
                    builder.f.attributes_mut().rolled.blocks.push(block);
                }
                Statement::Location(_) | Statement::Pragma(_) => {}
            }
        }
        if let Err(refusal) = end(&mut builder) {
            diagnostics.push(diagnostic_at(refusal, source));
        }
        builder.f.attributes_mut().rolled.all = rolled;
        let places = std::mem::take(&mut builder.layout);
        let debug = self.module.target.debug;
        if debug {
            builder.watch();
        }
        let uses = self.calls.uses(id);
        let callees = uses.callees.iter().filter(|c| self.module.functions[**c].body.is_some());
        let mut function = builder.finish();
        if self.module.functions.len() > MANY {
            function.shrink();
        }
        LoweredFunction {
            function,
            kernel: source.is_entry,
            binding: module::layout::binding_of(source.linkage),
            params: places.params,
            param_base: places.param_base,
            param_bytes: places.param_bytes,
            references: builder.handles.take_references(),
            shared: places.shared,
            dynamic_shared: places.dynamic_shared,
            launch: places.launch,
            barriers: builder.barriers,
            callees: callees.map(|c| self.module.functions[*c].name.clone()).collect(),
            indirect: uses.indirect,
            taken: uses.pointers.iter().map(|f| self.module.functions[*f].name.clone()).collect(),
            externs: std::mem::take(&mut builder.externs),
            sparse_tensors: known::instructions(body)
                .any(|inst| matches!(inst.op, Op::Tcgen05MmaSp | Op::Tcgen05MmaWsSp)),
            tensor_pair: known::instructions(body)
                .any(|inst| inst.op.is_of_tensor_memory() && tensor_memory::two_blocks(inst)),
            wmma: known::instructions(body).any(|inst| inst.op.is_of_fragments()),
            reserved: known::asks_for_reserved_memory(body),
            branch_bank: builder.branch_bank,
            bank2: builder.globals.bank2,
            pieces: Vec::new(),
            places: if debug { fixed_places(places.places, places.aligned) } else { SortedMap::new() },
        }
    }
}

/// Whether a pragma says that loops keep their bodies.
fn keeps_loops(pragma: &ast::Pragma) -> bool {
    pragma.texts.iter().any(|text| text == "nounroll")
}

/// Closes the last block, and emits the epilogue of a device function.
fn end(builder: &mut Builder) -> Lowered {
    if !builder.is_closed() {
        builder.guard = Operand::NULL;
        builder.ret();
    }
    if let Some(block) = builder.return_block {
        builder.guard = Operand::NULL;
        builder.enter(block);
        builder.depart()?;
    }
    Ok(())
}

/// The diagnostic for an error in a function's prologue or epilogue.
fn diagnostic_at(refusal: Refusal, source: &ast::Function) -> Diagnostic {
    match refusal {
        Refusal::NotBuilt => {
            Diagnostic::error(source.pos, format!("Parameters of '{}' are not implemented", source.name))
        }
        Refusal::At(pos, message) => Diagnostic::error(pos, message),
    }
}

fn diagnostic(refusal: Refusal, inst: &ast::Instruction) -> Diagnostic {
    match refusal {
        Refusal::NotBuilt => not_implemented(inst.pos, &module::name::full_name(inst)),
        Refusal::At(pos, message) => Diagnostic::error(pos, message),
    }
}

fn not_implemented(pos: Pos, name: &str) -> Diagnostic {
    Diagnostic::error(pos, format!("Instruction '{name}' is not implemented"))
}

fn lower_instruction(b: &mut Builder, labels: &mut Labels, inst: &ast::Instruction) -> Lowered {
    // Code between a branch or return and the next label is unreachable, but it is still checked.
    if b.is_closed() {
        let unreachable = b.f.new_block();
        b.enter(unreachable);
    }
    b.line = inst.pos.line;
    b.guard = match inst.guard {
        None => Operand::NULL,
        Some(guard) => {
            let p = b.register(guard.register)[0];
            if guard.negated { p.inverted() } else { p }
        }
    };
    let float = inst.types.first().is_some_and(|ty| class_of(*ty) == Class::Float);
    let first = inst.types.first().copied();
    match inst.op {
        Op::Add | Op::Sub | Op::Mul | Op::Fma if inst.types.contains(&ScalarType::F32x2) => b.packed_singles(inst),
        Op::Add | Op::Sub | Op::Mul | Op::Fma | Op::Abs | Op::Neg | Op::Min | Op::Max | Op::Ex2 | Op::Tanh
            if first.is_some_and(float::half::is_half) =>
        {
            b.half_operation(inst)
        }
        Op::Setp => b.setp(inst),
        Op::Set if inst.types.len() == 1 => b.set_lanes(inst),
        Op::Set => b.set(inst),
        Op::Cvt => b.convert(inst),
        _ if int::lanes::is_one_instruction(inst) => b.lanes(inst),
        Op::Add if matches!(first, Some(ScalarType::U16x2 | ScalarType::S16x2)) => b.packed_sum(inst),
        Op::Min | Op::Max if matches!(first, Some(ScalarType::U16x2 | ScalarType::S16x2)) => {
            b.min_max(inst, inst.op == Op::Max)
        }
        Op::Add | Op::Sub | Op::Fma if float && inst.types.len() == 2 => b.mixed_precision(inst),
        Op::Dp4a | Op::Dp2a => b.dot_product(inst),
        Op::Fns => b.find_nth_set(inst),
        Op::CvtPack => b.convert_pack(inst),
        // All operations with a row in `tables/lowering/video.ron`.
        _ if choices::step(inst.op).is_some() => b.video(inst),
        Op::Vmad => b.video_mad(inst),
        Op::Add | Op::Sub | Op::Mul if float => b.float_binary(inst),
        Op::Fma => b.fused(inst),
        Op::Mad if float => b.fused(inst),
        Op::Abs | Op::Neg if float => b.float_sign(inst),
        Op::Min if float => b.float_min_max(inst, false),
        Op::Max if float => b.float_min_max(inst, true),
        Op::Div if float => b.divide(inst),
        Op::Rcp | Op::Sqrt if inst.mods.rounding.is_some() => b.exact_function(inst),
        Op::Rcp | Op::Rsqrt if inst.types[0] == ScalarType::F64 => b.approximate_double(inst),
        Op::Rcp | Op::Sqrt | Op::Rsqrt | Op::Sin | Op::Cos | Op::Lg2 | Op::Ex2 | Op::Tanh => b.approximate(inst),
        Op::Atom | Op::Red => b.atomic(inst),
        Op::MultimemLdReduce => b.load_reduced(inst),
        Op::MultimemSt => b.store_everywhere(inst),
        Op::MultimemRed => b.reduce_everywhere(inst),
        Op::Tex | Op::TexBase | Op::TexLevel | Op::TexGrad | Op::Tld4 => b.read_texture(inst),
        _ if inst.types.iter().any(|ty| is_packed(*ty)) => Err(Refusal::NotBuilt),
        Op::Div | Op::Rem => b.int_divide(inst),
        Op::Mul24 | Op::Mad24 => b.mul_24(inst),
        Op::Sad => b.distance(inst),
        Op::Testp => b.test_float(inst),
        Op::Clmad => b.carryless_product(inst),
        Op::Bmsk => b.mask_or_extend(inst, crate::tables::Op::BMSK),
        Op::Szext => b.mask_or_extend(inst, crate::tables::Op::SGXT),
        Op::Isspacep => b.is_space(inst),
        Op::Mapa | Op::Getctarank => b.cluster_address(inst),
        Op::Add => b.add_sub(inst, false),
        Op::Sub => b.add_sub(inst, true),
        Op::Addc => b.add_sub_carry(inst, false, true),
        Op::Subc => b.add_sub_carry(inst, true, true),
        Op::Mul | Op::Mad | Op::Madc => b.mul_mad(inst),
        Op::Neg => b.negate(inst),
        Op::Abs => b.absolute(inst),
        Op::Min => b.min_max(inst, false),
        Op::Max => b.min_max(inst, true),
        Op::Popc => b.population(inst),
        Op::Clz => b.leading_zeros(inst),
        Op::Bfind => b.find_bit(inst),
        Op::Brev => b.reverse(inst),
        Op::Bfe => b.extract_field(inst),
        Op::Bfi => b.insert_field(inst),
        Op::And => b.logic(inst, crate::ori::build::int::LUT_AND),
        Op::Or => b.logic(inst, crate::ori::build::int::LUT_OR),
        Op::Xor => b.logic(inst, crate::ori::build::int::LUT_XOR),
        Op::Not => b.not(inst),
        Op::Cnot => b.cnot(inst),
        Op::Lop3 => b.lop3_ptx(inst),
        Op::Shl => b.shift(inst, true),
        Op::Shr => b.shift(inst, false),
        Op::Shf => b.funnel_shift(inst),
        Op::Prmt => b.prmt(inst),
        Op::Mov => b.mov(inst),
        Op::Selp => b.selp(inst),
        Op::Slct => b.slct(inst),
        Op::Copysign => b.copysign(inst),
        Op::Cvta => b.cvta(inst),
        Op::Ld | Op::Ldu => b.load(inst),
        Op::St => b.store(inst),
        Op::Membar => b.membar(inst),
        Op::Fence => b.fence(inst),
        Op::FenceProxy | Op::MembarProxy => b.proxy_fence(inst),
        Op::CpAsync => b.copy_async(inst),
        Op::CpAsyncCommitGroup => b.close_copies(),
        Op::CpAsyncWaitGroup => b.wait_copies(inst),
        Op::CpAsyncWaitAll => b.wait_all_copies(),
        Op::MbarrierInit
        | Op::MbarrierInval
        | Op::MbarrierArrive
        | Op::MbarrierArriveDrop
        | Op::MbarrierExpectTx
        | Op::MbarrierCompleteTx
        | Op::MbarrierTestWait
        | Op::MbarrierTryWait
        | Op::MbarrierPendingCount
        | Op::CpAsyncMbarrierArrive => b.mbarrier(inst),
        Op::CpAsyncBulk | Op::CpReduceAsyncBulk => b.copy_in_bulk(inst),
        Op::CpAsyncBulkTensor
        | Op::CpReduceAsyncBulkTensor
        | Op::CpAsyncBulkPrefetchTensor
        | Op::ApplypriorityAsyncBulkTensor => b.copy_tensor(inst),
        Op::TensormapReplace => b.replace_in_map(inst),
        Op::TensormapCpFenceproxy => b.publish_map(inst),
        Op::PrefetchTensormap | Op::PrefetchParamTensormap | Op::PrefetchConstTensormap => b.prefetch_map(inst),
        Op::BarrierClusterArrive => b.arrive_in_cluster(inst),
        Op::BarrierClusterWait => b.wait_for_cluster(),
        Op::StAsync | Op::RedAsync => b.store_in_cluster(inst),
        Op::SetmaxnregInc | Op::SetmaxnregDec => b.set_max_registers(inst),
        Op::Txq | Op::TxqLevel | Op::Suq => b.query_image(inst),
        Op::Istypep => b.is_type(inst),
        Op::SuldB => b.load_surface(inst),
        Op::SustB | Op::SustP => b.store_surface(inst),
        Op::SuredB | Op::SuredP => b.reduce_surface(inst),
        Op::StBulk => b.clear_in_bulk(inst),
        Op::CpAsyncBulkPrefetch | Op::ApplypriorityAsyncBulk => b.prefetch_in_bulk(inst),
        Op::CpAsyncBulkCommitGroup => b.close_bulk_group(),
        Op::CpAsyncBulkWaitGroup => b.wait_bulk_groups(inst),
        // What orders a new barrier before the cluster's accesses is the fence or barrier that
        // comes next.
        Op::FenceMbarrierInit => Ok(()),
        Op::ShflSync | Op::Shfl => b.shuffle(inst),
        Op::VoteSync | Op::Vote => b.vote(inst),
        Op::MatchSync => b.match_lanes(inst),
        Op::ReduxSync => b.reduce_lanes(inst),
        Op::ElectSync => b.elect(inst),
        Op::Activemask => b.active_mask(inst),
        Op::BarWarpSync => b.warp_barrier(inst),
        Op::BarSync | Op::BarrierSync => b.barrier(inst, false),
        Op::BarArrive | Op::BarrierArrive => b.barrier(inst, true),
        Op::BarRed | Op::BarrierRed => b.barrier_reduction(inst),
        Op::Mma | Op::MmaSp | Op::MmaSpOrderedMetadata | Op::WmmaMma => b.matrix_product(inst),
        Op::WgmmaFence => b.group_fence(),
        Op::WgmmaCommitGroup => b.close_products(),
        Op::WgmmaWaitGroup => b.wait_products(inst),
        Op::WgmmaMmaAsync | Op::WgmmaMmaAsyncSp => b.group_product(inst),
        Op::ClusterlaunchcontrolTryCancelAsync => b.ask_for_block(inst),
        Op::ClusterlaunchcontrolQueryCancel => b.answer_of_request(inst),
        Op::Tcgen05Alloc => b.allocate_tensor_memory(inst),
        Op::Tcgen05Dealloc => b.release_tensor_memory(inst),
        Op::Tcgen05RelinquishAllocPermit => b.close_tensor_memory(),
        Op::Tcgen05Ld | Op::Tcgen05LdRed => b.load_tensor_memory(inst),
        Op::Tcgen05St => b.store_tensor_memory(inst),
        Op::Tcgen05WaitLd => b.wait_tensor_loads(),
        Op::Tcgen05WaitSt => b.wait_tensor_stores(),
        // No access of memory passes another one of tensor memory, or a barrier.
        Op::Tcgen05FenceBeforeThreadSync | Op::Tcgen05FenceAfterThreadSync => Ok(()),
        Op::Tcgen05Mma | Op::Tcgen05MmaSp | Op::Tcgen05MmaWs | Op::Tcgen05MmaWsSp => b.tensor_product(inst),
        Op::Tcgen05Cp => b.copy_to_tensor_memory(inst),
        Op::Tcgen05Shift => b.shift_tensor_memory(inst),
        Op::Tcgen05Commit => b.commit_tensor_products(inst),
        Op::Ldmatrix => b.load_matrix(inst),
        Op::Stmatrix => b.store_matrix(inst),
        Op::Movmatrix => b.move_matrix(inst),
        Op::WmmaLoadA | Op::WmmaLoadB | Op::WmmaLoadC => b.load_fragment(inst),
        Op::WmmaStoreD => b.store_fragment(inst),
        Op::Bra => b.branch(inst, labels),
        Op::BrxIdx => b.branch_indexed(inst, labels),
        Op::Call => b.call(inst),
        Op::Alloca => b.alloca(inst),
        Op::Stacksave => b.stack_save(inst),
        Op::Stackrestore => b.stack_restore(inst),
        Op::Ret => {
            b.ret();
            Ok(())
        }
        Op::Exit => {
            b.leave();
            Ok(())
        }
        // ptxas emits the same instruction for a breakpoint.
        Op::Trap | Op::Brkpt => b.trap(),
        Op::Pmevent | Op::PmeventMask => b.events(inst),
        Op::GriddepcontrolWait => {
            b.put(crate::tables::Op::ACQBLK, &[], &[]);
            Ok(())
        }
        Op::GriddepcontrolLaunchDependents => {
            b.put(crate::tables::Op::PREEXIT, &[], &[]);
            Ok(())
        }
        Op::Nanosleep => b.nanosleep(inst),
        Op::Prefetch | Op::Prefetchu => b.prefetch(inst),
        Op::Applypriority | Op::Discard => b.line_control(inst),
        Op::CreatepolicyRangeL2EvictLast
        | Op::CreatepolicyRangeL2EvictNormal
        | Op::CreatepolicyRangeL2EvictFirst
        | Op::CreatepolicyRangeL2EvictUnchanged => b.policy_of_range(inst),
        Op::CreatepolicyCvt => b.policy_of_property(inst),
        Op::CreatepolicyFractionalL2EvictLast
        | Op::CreatepolicyFractionalL2EvictNormal
        | Op::CreatepolicyFractionalL2EvictFirst
        | Op::CreatepolicyFractionalL2EvictUnchanged => b.policy_of_fraction(inst),
        // A row in the tables alone does not implement an operation.
        _ => Err(Refusal::NotBuilt),
    }
}

/// Types with two lanes and floats narrower than 32 bits, which integer lowerings would mistake for
/// integers.
fn is_packed(ty: crate::tables::ptx::ScalarType) -> bool {
    use crate::tables::ptx::TypeClass;
    matches!(ty.class(), TypeClass::FloatVector | TypeClass::UnsignedVector | TypeClass::SignedVector)
}
