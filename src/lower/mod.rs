//! Lowering of PTX to Ori, one file per operation family.
//!
//! Input: a resolved module and a target. Output: one Ori function per entry and per device function that an entry reaches, not in
//! SSA form, with what the cubin states about it, and the images of the module's variables. Invariants: each PTX register is one set of virtual registers (8- and 16-bit values in the low bits of one
//! whose upper bits are undefined); operands are of kinds that every form of their opcode takes: registers, and an
//! immediate in the second place; what is not built is refused by name at its position, and lowering goes on to find all of it.

mod abi;
mod address;
mod atomic;
mod bits;
mod builder;
mod cache;
mod call;
mod compare;
mod control;
mod convert;
mod convert_half;
mod copy;
mod divide;
mod fields;
mod float;
mod half;
mod int;
mod linked;
mod logic;
mod matrix;
mod matrix_groups;
mod matrix_memory;
mod matrix_order;
mod matrix_quarters;
mod memory;
mod module;
mod name;
mod narrowed;
mod no_abi;
mod object;
mod operand;
mod order;
mod params;
mod passed;
mod quotient;
mod reach;
mod special;
mod stack;
#[cfg(test)]
mod tests;
mod video;
mod video_number;
mod warp;

use crate::cubin::KeptSymbol;
use crate::cubin::model::{Binding, CallRow, Image, Launch, Param, Shared, Variable};
use crate::diag::{Diagnostic, Pos};
use crate::ori::{Function, Operand};
use crate::ptx::ast::{self, FunctionId, Module, Statement};
use crate::tables::choices;
use crate::tables::elf::{ElfTarget, Layout};
use crate::tables::ptx::{Op, ScalarType};
use crate::tables::{GenerationInfo, Target};
use builder::{Builder, Lowered, Refusal};
use control::Labels;
pub use linked::branch_tables;
pub use module::LOOSE_SHARED;
use module::{FunctionLayout, ModuleLayout};
use operand::{Class, class_of};
use reach::Calls;
use std::collections::HashMap;

/// A module in Ori, with its data.
#[derive(Clone)]
pub struct LoweredModule {
    /// Entries, in source order.
    pub functions: Vec<LoweredFunction>,
    /// Device functions that entries reach. One that uses shared memory is there once for each entry that reaches it, because
    /// its variables are where that entry's are.
    pub devices: Vec<LoweredFunction>,
    /// Names of the functions whose address is taken: their places stand from the second 8-byte slot of bank 2 on.
    pub pointers: Vec<String>,
    /// Bytes of bank 2 of an entry whose code reads it.
    pub bank2: u32,
    /// Module variables; their bytes stand in the images.
    pub variables: Vec<Variable>,
    /// Variables without initial value.
    pub global: Option<Image>,
    /// Variables with initial value.
    pub global_init: Option<Image>,
    /// `.const` variables: bank c\[3\].
    pub constant3: Option<Image>,
    /// Addresses of global variables and of functions of the driver that code asks for: bank c\[4\].
    pub constant4: Option<Image>,
    pub warnings: Vec<Diagnostic>,
    /// What a relocatable object says besides.
    pub object: ObjectFacts,
}

/// What only a relocatable object says.
#[derive(Clone, Default)]
pub struct ObjectFacts {
    /// Symbols of variables that stand in no image, and of aliases.
    pub symbols: Vec<KeptSymbol>,
    /// Shared variables that belong to no entry.
    pub shared: Option<Shared>,
    pub call_graph: Vec<CallRow>,
    /// Functions that others may call, with what is passed.
    pub prototypes: Vec<(String, String)>,
}

/// A function in Ori, with what its launch or its callers need. The frame is in `function`.
#[derive(Clone)]
pub struct LoweredFunction {
    pub function: Function,
    /// An entry.
    pub kernel: bool,
    pub binding: Binding,
    pub params: Vec<Param>,
    /// Byte offset in bank 0 of the first parameter, and bytes of all from there on.
    pub param_base: u32,
    pub param_bytes: u32,
    /// Static shared memory; `None` where no shared memory is used.
    pub shared: Option<Shared>,
    /// The launch says how much shared memory comes behind the static part.
    pub dynamic_shared: bool,
    pub launch: Launch,
    /// Highest block barrier + 1; 16 where a barrier number is in a register.
    pub barriers: u8,
    /// Names of the functions of the module that it calls by name.
    pub callees: Vec<String>,
    /// It calls through a pointer.
    pub indirect: bool,
    /// Names of the functions whose address it takes.
    pub taken: Vec<String>,
    /// Functions of the driver that it calls.
    pub externs: Vec<String>,
    /// It reads bank 2: it branches by an index or calls through a pointer.
    pub branch_bank: bool,
    /// Bytes of the function's own part of bank 2, in an object.
    pub bank2: u32,
    /// Of an entry: the device functions that are put behind it, by place in [`LoweredModule::devices`].
    pub pieces: Vec<usize>,
}

/// Lowers a module for a target, or says all that is not implemented. In a relocatable object every function has a section of its own.
pub fn lower(module: &Module, target: &'static Target, object: bool) -> Result<LoweredModule, Vec<Diagnostic>> {
    lower_all(module, target, (object, object), true)
}

/// Lowers a module whose device functions others will call: each of them, reached or not.
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
    let calls = Calls::new(module);
    let mut diagnostics = Vec::new();
    for id in calls.pointers.iter().filter(|id| !object && module.functions[**id].body.is_none()) {
        // The blank at the end is the incumbent's.
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
    // Helpers are ours, and so is how they are called.
    let no_abi = if strict { no_abi::check(module, &calls, object, devices) } else { no_abi::Verdict::default() };
    if !no_abi.errors.is_empty() && diagnostics.is_empty() {
        return Err(no_abi.warning.map(Diagnostic::note).into_iter().chain(no_abi.errors).collect());
    }
    let elf = ElfTarget::of_sm(target.sm).map_or(Layout::default(), |elf| elf.layout);
    let layout = ModuleLayout::new(module, &calls, (object, elf), &mut diagnostics);
    let (devices_made, places) = (Vec::new(), HashMap::new());
    let mut lowering =
        Lowering { module, calls: &calls, target, info, layout, diagnostics, devices: devices_made, places };
    let functions: Vec<LoweredFunction> = module
        .functions
        .iter()
        .filter(|(_, source)| source.is_entry && source.body.is_some())
        .filter_map(|(id, _)| lowering.entry(id))
        .collect();
    if devices {
        lowering.all_devices();
    }
    let Lowering { layout, mut diagnostics, devices, .. } = lowering;
    if !diagnostics.is_empty() {
        diagnostics.sort_by_key(|d| d.pos);
        diagnostics.dedup();
        return Err(diagnostics);
    }
    let facts = if object { object::facts(module, &calls, &layout) } else { ObjectFacts::default() };
    let ModuleLayout { variables, global, global_init, constant3, constant4, bank2, warnings, .. } = layout;
    let warnings = no_abi.warning.into_iter().chain(warnings).map(Diagnostic::note).collect();
    let pointers = calls.pointers.iter().map(|id| module.functions[*id].name.clone()).collect();
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

/// A device function as it was lowered: for one entry where it uses shared memory, for all otherwise.
type Instance = (FunctionId, Option<FunctionId>);

struct Lowering<'a> {
    module: &'a Module,
    calls: &'a Calls,
    target: &'static Target,
    info: &'static GenerationInfo,
    layout: ModuleLayout,
    diagnostics: Vec<Diagnostic>,
    devices: Vec<LoweredFunction>,
    /// Where each stands.
    places: HashMap<Instance, usize>,
}

impl Lowering<'_> {
    /// An entry with the device functions behind it.
    fn entry(&mut self, id: FunctionId) -> Option<LoweredFunction> {
        let (object, elf) = (self.layout.object, ElfTarget::of_sm(self.target.sm));
        let reach = if object { Vec::new() } else { self.calls.reachable(self.module, id) };
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
        }
        entry.pieces = pieces;
        Some(entry)
    }

    /// All device functions with a body, each on its own.
    fn all_devices(&mut self) {
        for (id, function) in self.module.functions.iter() {
            if !function.is_entry && function.body.is_some() {
                let places = FunctionLayout::of_device(self.module, self.calls, id, &FunctionLayout::default());
                let device = self.function(id, places);
                self.devices.push(device);
            }
        }
    }

    /// The place among the devices of a function that an entry reaches.
    fn device(&mut self, id: FunctionId, kernel: FunctionId, places: &FunctionLayout) -> usize {
        let shared = |id: &ast::SymbolId| match &self.module.symbols[*id].kind {
            ast::SymbolKind::Variable(variable) => module::is_shared(variable.space),
            _ => false,
        };
        let instance = (id, self.calls.uses[id].symbols.iter().any(shared).then_some(kernel));
        if let Some(found) = self.places.get(&instance) {
            return *found;
        }
        let places = FunctionLayout::of_device(self.module, self.calls, id, places);
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
                    let block = labels.block(&mut builder, *id);
                    builder.enter(block);
                }
                Statement::Instruction(inst) => {
                    let lower = |b: &mut Builder, inst: &ast::Instruction| lower_instruction(b, &mut labels, inst);
                    if let Err(refusal) = builder.with_narrowed(inst, lower) {
                        diagnostics.push(diagnostic(refusal, inst));
                    }
                }
                Statement::Location(_) | Statement::Pragma(_) => {}
            }
        }
        if let Err(refusal) = end(&mut builder) {
            diagnostics.push(diagnostic_at(refusal, source));
        }
        let places = std::mem::take(&mut builder.layout);
        let uses = &self.calls.uses[id];
        let callees = uses.callees.iter().filter(|c| self.module.functions[**c].body.is_some());
        LoweredFunction {
            function: builder.finish(),
            kernel: source.is_entry,
            binding: module::binding_of(source.linkage),
            params: places.params,
            param_base: places.param_base,
            param_bytes: places.param_bytes,
            shared: places.shared,
            dynamic_shared: places.dynamic_shared,
            launch: places.launch,
            barriers: builder.barriers,
            callees: callees.map(|c| self.module.functions[*c].name.clone()).collect(),
            indirect: uses.indirect,
            taken: uses.pointers.iter().map(|f| self.module.functions[*f].name.clone()).collect(),
            externs: std::mem::take(&mut builder.externs),
            branch_bank: builder.branch_bank,
            bank2: builder.globals.bank2,
            pieces: Vec::new(),
        }
    }
}

/// The end of the last block, and of a device function the place where it returns.
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

/// A refusal of a function's head or end.
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
        Refusal::NotBuilt => not_implemented(inst.pos, &name::full_name(inst)),
        Refusal::At(pos, message) => Diagnostic::error(pos, message),
    }
}

fn not_implemented(pos: Pos, name: &str) -> Diagnostic {
    Diagnostic::error(pos, format!("Instruction '{name}' is not implemented"))
}

fn lower_instruction(b: &mut Builder, labels: &mut Labels, inst: &ast::Instruction) -> Lowered {
    // What follows a branch or a return, up to the next label, is never reached; it is still checked.
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
        Op::Add | Op::Sub | Op::Mul | Op::Fma | Op::Abs | Op::Neg | Op::Min | Op::Max | Op::Ex2 | Op::Tanh
            if first.is_some_and(half::is_half) =>
        {
            b.half_operation(inst)
        }
        Op::Add | Op::Sub | Op::Mul | Op::Fma if first == Some(ScalarType::F32x2) => b.packed_singles(inst),
        Op::Setp => b.setp(inst),
        Op::Set => b.set(inst),
        Op::Cvt => b.convert(inst),
        Op::Add if matches!(first, Some(ScalarType::U16x2 | ScalarType::S16x2)) => b.packed_sum(inst),
        Op::Min | Op::Max if matches!(first, Some(ScalarType::U16x2 | ScalarType::S16x2)) => {
            b.min_max(inst, inst.op == Op::Max)
        }
        Op::Add | Op::Sub | Op::Fma if float && inst.types.len() == 2 => b.mixed_precision(inst),
        Op::Dp4a | Op::Dp2a => b.dot_product(inst),
        Op::Fns => b.find_nth_set(inst),
        Op::CvtPack => b.convert_pack(inst),
        // Whatever has a row of `tables/lowering/video.ron`.
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
        _ if inst.types.iter().any(|ty| is_packed(*ty)) => Err(Refusal::NotBuilt),
        Op::Div | Op::Rem => b.int_divide(inst),
        Op::Mul24 | Op::Mad24 => b.mul_24(inst),
        Op::Sad => b.distance(inst),
        Op::Testp => b.test_float(inst),
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
        Op::And => b.logic(inst, crate::ori::words::LUT_AND),
        Op::Or => b.logic(inst, crate::ori::words::LUT_OR),
        Op::Xor => b.logic(inst, crate::ori::words::LUT_XOR),
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
        // The incumbent makes a breakpoint the same instruction.
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
        // Of a row alone there is no code.
        _ => Err(Refusal::NotBuilt),
    }
}

/// Types that hold two values, or floats below 32 bits, which integer lowerings would take for integers.
fn is_packed(ty: crate::tables::ptx::ScalarType) -> bool {
    use crate::tables::ptx::TypeClass;
    matches!(ty.class(), TypeClass::FloatVector | TypeClass::UnsignedVector | TypeClass::SignedVector)
}
