//! The flow on one screen: PTX text → module → Ori → phases → words → cubin.
//!
//! Input: a PTX text and options. Output: the cubin's bytes with what a caller wants to know of it, or every diagnostic.
//! Invariant: the bytes depend on the text and the options alone.

use crate::assemble;
use crate::cubin::{self, Cubin};
use crate::diag::{Diagnostic, Severity};
use crate::helper;
use crate::legal::{Knobs, Legalization, OuterBackend};
use crate::lower::{self, LoweredFunction, LoweredModule};
use crate::ori::{Function, text};
use crate::pass::dump::{DumpOptions, PassRecord, Recorder};
use crate::pass::{self, PassControl};
use crate::pipeline::emit;
use crate::ptx;
use crate::remarks::remarks;
use crate::source_lines;
use crate::tables::Target;
use crate::tables::ptx::{Limit, Space};
use crate::tables::targets::Variant;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What to compile for, and what to show on the way. Start from [`Options::new`] and change fields.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the target, `sm_90`; with `compute_90` or `lto_90` the PTX is checked and nothing is made.
    pub target: String,
    /// 0 to 3. At 0 lowering's operations stay as they are; the levels above are alike so far: optimised, in an order and with waits by the latency tables.
    pub opt_level: u8,
    /// Whether a product and a sum may be contracted into one operation.
    pub fmad: bool,
    /// Most registers of a thread, where a function does not say it itself.
    pub max_registers: Option<u32>,
    /// Threads of a block, where an entry does not say it itself.
    pub max_threads: Option<[u32; 3]>,
    /// Blocks per multiprocessor, where an entry does not say it itself.
    pub min_blocks_per_sm: Option<u32>,
    /// The three fields above win over what functions say.
    pub override_directives: bool,
    /// Names of the entries to compile; empty: all.
    pub entries: Vec<String>,
    /// Make a relocatable object instead of an executable cubin.
    pub relocatable: bool,
    /// Warn of each instruction of double precision.
    pub warn_double: bool,
    /// Write line tables even where the PTX has no `.loc`; where it has some they are always written.
    pub line_info: bool,
    /// Write no line tables, whatever the PTX and the field above say.
    pub suppress_debug_info: bool,
    /// Values of the knobs of `tables/knobs.ron`.
    pub knobs: Knobs,
    /// What stands around the target's legalization backend, and may leave out, replace or add to what it does.
    pub outer_backend: Option<Arc<dyn OuterBackend>>,
    /// Run the verifier after every phase.
    pub verify_ir: bool,
    /// Phases after which the function is printed into [`Output::dumps`]; `all` means every built one.
    pub dump_phases: Vec<String>,
    /// Passes, or phases, before and behind which it is printed there too; `all` means every pass.
    pub dump_before: Vec<String>,
    pub dump_after: Vec<String>,
    /// Which passes run. Where they stop early there is no cubin, and the function is among the dumps.
    pub passes: PassControl,
}

impl Options {
    /// Plain compilation for a target.
    pub fn new(target: &str) -> Options {
        Options {
            target: target.to_string(),
            opt_level: 3,
            fmad: true,
            max_registers: None,
            max_threads: None,
            min_blocks_per_sm: None,
            override_directives: false,
            entries: Vec::new(),
            relocatable: false,
            line_info: false,
            suppress_debug_info: false,
            warn_double: false,
            knobs: Knobs::default(),
            outer_backend: None,
            verify_ir: false,
            dump_phases: Vec::new(),
            dump_before: Vec::new(),
            dump_after: Vec::new(),
            passes: PassControl::default(),
        }
    }
}

/// Resources of one function, as `-v` prints them; sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    pub name: String,
    /// An entry, not a device function.
    pub entry: bool,
    pub registers: u32,
    pub barriers: u32,
    /// Frame of this function alone.
    pub stack_bytes: u32,
    /// Stack of this function and of what it calls, where that is known.
    pub cumulative_stack_bytes: u32,
    pub spill_store_bytes: u32,
    pub spill_load_bytes: u32,
    /// Static shared memory without what the system reserves.
    pub shared_bytes: u64,
    /// Constant bank 0: launch data and parameters.
    pub constant_bytes: u32,
    /// Constant bank 2: branch tables and places of functions.
    pub constant2_bytes: u64,
}

/// A compiled module.
#[derive(Clone, Debug)]
pub struct Output {
    /// The ELF file; empty where the target was a virtual one (`compute_90`).
    pub cubin: Vec<u8>,
    /// In file order; the functions behind a kernel of a cubin follow it, by name.
    pub functions: Vec<Resources>,
    /// How long each function took to compile, by name.
    pub times: BTreeMap<String, Duration>,
    /// Bytes of global variables.
    pub global_bytes: u64,
    /// Bytes of constant banks 3 (variables) and 4 (addresses).
    pub constant3_bytes: u64,
    pub constant4_bytes: u64,
    /// Warnings.
    pub diagnostics: Vec<Diagnostic>,
    pub dumps: Vec<String>,
    /// What each pass did to all functions, by [`Pass`](crate::tables::Pass).
    pub records: Vec<PassRecord>,
}

/// Compiles bytes that ought to be PTX. The incumbent reads ASCII only, and so do we.
pub fn compile_bytes(source: &[u8], options: &Options) -> Result<Output, Vec<Diagnostic>> {
    compile(&String::from_utf8_lossy(source), options)
}

/// Compiles a PTX text. Threads may call it at the same time; it keeps nothing between calls.
pub fn compile(source: &str, options: &Options) -> Result<Output, Vec<Diagnostic>> {
    compile_all(&[source], options)
}

/// Compiles several PTX texts into one cubin; [`Diagnostic::file`] says which of them a message is about.
pub fn compile_all(sources: &[&str], options: &Options) -> Result<Output, Vec<Diagnostic>> {
    let (target, check_only) = target_of(&options.target)?;
    let (module, mut diagnostics) = ptx::parse_all(sources);
    let Some(mut module) = module else { return Err(diagnostics) };
    if let Some(why) = Target::by_name(&module.target.name).and_then(|row| row.refused_on(target)) {
        return Err(vec![Diagnostic::fatal(why)]);
    }
    if options.suppress_debug_info {
        diagnostics.splice(0..0, source_lines::nothing_to_suppress(&module, options.line_info));
    }
    apply_options(&mut module, options)?;
    if options.warn_double {
        diagnostics.extend(double_precision(&module));
    }
    let mut output = Output {
        cubin: Vec::new(),
        functions: Vec::new(),
        times: BTreeMap::new(),
        global_bytes: 0,
        constant3_bytes: 0,
        constant4_bytes: 0,
        diagnostics,
        dumps: Vec::new(),
        records: Vec::new(),
    };
    if check_only {
        return Ok(output);
    }
    check_constants(&module)?;
    check_initialised(&module)?;
    check_sections(&module)?;
    helper::splice(&mut module, target)?;
    let mut lowered = lower::lower(&module, target, options.relocatable)?;
    check_shared(&lowered, target, options.relocatable)?;
    check_frames(&lowered)?;
    let mut errors = Vec::new();
    limit_registers(&mut lowered, &module, target);
    let dumps = DumpOptions {
        before: options.dump_before.clone(),
        after: options.dump_after.clone(),
        phases: options.dump_phases.clone(),
    };
    let mut recorder = Recorder::new(&dumps);
    let mut code_of = |functions: &mut Vec<LoweredFunction>| {
        let mut codes = Vec::new();
        for function in functions {
            let start = Instant::now();
            match function_code(&mut function.function, options, &mut recorder) {
                Ok(code) => {
                    function.function.forget_code();
                    codes.push(code);
                }
                Err(message) => errors.push(Diagnostic::fatal(message)),
            }
            output.times.insert(function.function.name.clone(), start.elapsed());
        }
        codes
    };
    let (codes, mut devices) = (code_of(&mut lowered.functions), code_of(&mut lowered.devices));
    if !errors.is_empty() {
        return Err(errors);
    }
    (output.dumps, output.records) = (recorder.dumps, recorder.records);
    if options.passes.stop_after.is_some() {
        return Ok(output);
    }
    let settings = helper::Settings {
        target: target.name,
        object: options.relocatable,
        optimise: options.opt_level > 0,
        max_registers: None,
        verify: options.verify_ir,
    };
    helper::add(&mut lowered, &codes, &mut devices, settings).map_err(|m| vec![Diagnostic::fatal(m)])?;
    output.diagnostics.append(&mut lowered.warnings);
    output.diagnostics.extend(remarks(&module, &lowered, target));
    let functions = if options.relocatable {
        let all = lowered.functions.iter().zip(&codes).chain(lowered.devices.iter().zip(&devices));
        all.map(|(function, code)| assemble::of_object(function, code, target)).collect::<Result<Vec<_>, _>>()
    } else {
        (0..codes.len()).map(|i| assemble::kernel(&lowered, i, &codes, &devices, target)).collect()
    };
    let functions = functions.map_err(|m| vec![Diagnostic::fatal(m)])?;
    let text: Vec<&str> = module.functions.values().map(|function| function.name.as_str()).collect();
    let order = assemble::file_order(&lowered, &text, options.relocatable);
    output.functions = all_resources(&lowered, &functions, &order, (target, options.relocatable));
    let mut functions: Vec<_> = functions.into_iter().map(Some).collect();
    let functions = order.iter().filter_map(|place| functions[*place].take()).collect();
    let mut cubin = module_of(lowered, functions, &module, (target, options.relocatable));
    match sources {
        _ if options.suppress_debug_info => {}
        [source] => source_lines::add(&mut cubin, &module, source, options.line_info),
        _ if options.line_info => output.diagnostics.push(Diagnostic::note(source_lines::OF_SEVERAL.to_string())),
        _ => {}
    }
    output.cubin = cubin::write(&cubin).map_err(|e| vec![Diagnostic::fatal(e.to_string())])?;
    let size = |image: &Option<cubin::Image>| image.as_ref().map_or(0, |image| image.size);
    output.global_bytes = size(&cubin.global) + size(&cubin.global_init);
    (output.constant3_bytes, output.constant4_bytes) = (size(&cubin.constant3), size(&cubin.constant4));
    Ok(output)
}

/// An error about the input as a whole, which others may follow.
fn too_much(message: String) -> Diagnostic {
    Diagnostic { severity: Severity::Error, ..Diagnostic::note(message) }
}

/// Whether constant variables fit their bank.
fn check_constants(module: &ptx::ast::Module) -> Result<(), Vec<Diagnostic>> {
    let most = Limit::ConstantVariables.bytes(|_| true);
    let mut bytes = 0u64;
    for symbol in module.symbols.values() {
        if let ptx::ast::SymbolKind::Variable(v) = &symbol.kind
            && v.space == Space::Const
        {
            bytes = bytes.checked_next_multiple_of(v.align.max(1)).unwrap_or(u64::MAX).saturating_add(v.size);
        }
    }
    if bytes <= most {
        return Ok(());
    }
    Err(vec![too_much(format!("File uses too much global constant data ({bytes:#x} bytes, {most:#x} max)"))])
}

/// Whether there is memory for the initial values, which stand in the file in full.
fn check_initialised(module: &ptx::ast::Module) -> Result<(), Vec<Diagnostic>> {
    let variables = module.symbols.values().filter_map(|symbol| match &symbol.kind {
        ptx::ast::SymbolKind::Variable(v) if v.space == Space::Global && !v.init.is_empty() => Some(v),
        _ => None,
    });
    let bytes = variables.fold(0u64, |sum, v| sum.saturating_add(v.size));
    if bytes <= Limit::InitialisedVariables.bytes(|_| true) {
        return Ok(());
    }
    Err(vec![Diagnostic::fatal("Memory allocation failure")])
}

/// Whether the entries' sections have numbers: the code of each, its attributes and its constant bank.
fn check_sections(module: &ptx::ast::Module) -> Result<(), Vec<Diagnostic>> {
    let entries = module.functions.values().filter(|f| f.is_entry && f.body.is_some()).count();
    let most = Limit::Entries.bytes(|_| true);
    if entries as u64 <= most {
        return Ok(());
    }
    Err(vec![Diagnostic::fatal(format!("{entries} entry functions are too many for one file, {most} is the most"))])
}

/// Whether the static shared memory of each function fits.
fn check_shared(lowered: &LoweredModule, target: &Target, object: bool) -> Result<(), Vec<Diagnostic>> {
    let most = Limit::StaticShared.bytes(|_| true);
    let base = target.info().filter(|_| !object).map_or(0, |info| u64::from(info.shared_base));
    let mut errors = Vec::new();
    for function in &lowered.functions {
        let bytes = function.shared.map_or(0, |shared| shared.size.saturating_sub(base));
        if bytes > most {
            let name = &function.function.name;
            let text = format!("Entry function '{name}' uses too much shared data ({bytes:#x} bytes, {most:#x} max)");
            errors.push(too_much(text));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Whether the local variables of each function fit a frame.
fn check_frames(lowered: &LoweredModule) -> Result<(), Vec<Diagnostic>> {
    let most = Limit::Frame.bytes(|_| true);
    let large = lowered.functions.iter().chain(&lowered.devices).filter(|f| u64::from(f.function.local_bytes) > most);
    let errors: Vec<Diagnostic> = large
        .map(|f| {
            let kind = if f.kernel { "Entry function" } else { "Function" };
            too_much(format!("{kind} '{}' uses too much local data ({most:#x} max)", f.function.name))
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The target of a name, and whether the PTX is only checked.
pub(crate) fn target_of(name: &str) -> Result<(&'static Target, bool), Vec<Diagnostic>> {
    let number = name.strip_prefix("compute_").or(name.strip_prefix("lto_"));
    let real = number.map_or(name.to_string(), |number| format!("sm_{number}"));
    match Target::by_name(&real).filter(|target| target.generation.is_some()) {
        Some(target) => Ok((target, number.is_some())),
        None => Err(vec![Diagnostic::fatal(format!("Value '{name}' is not defined for option 'gpu-name'"))]),
    }
}

/// Writes what the options say of functions into the module.
fn apply_options(module: &mut ptx::ast::Module, options: &Options) -> Result<(), Vec<Diagnostic>> {
    for name in &options.entries {
        if !module.functions.values().any(|f| f.is_entry && f.name == *name) {
            return Err(vec![Diagnostic::fatal(format!("Unknown function {name}"))]);
        }
    }
    for function in module.functions.values_mut() {
        if function.is_entry && !options.entries.is_empty() && !options.entries.contains(&function.name) {
            function.body = None;
        }
        let wins = options.override_directives;
        let d = &mut function.directives;
        // A limit on threads with one on blocks says how many registers there may be; it goes before the option.
        let by_threads = (d.max_threads.or(d.required_threads)).is_some() && d.min_blocks_per_sm.is_some();
        if options.max_registers.is_some() && (wins || d.max_registers.is_none() && !by_threads) {
            d.max_registers = options.max_registers;
        }
        if !function.is_entry || options.max_registers.is_some() {
            continue;
        }
        if options.max_threads.is_some() && d.required_threads.is_none() && (wins || d.max_threads.is_none()) {
            d.max_threads = options.max_threads;
        }
        if options.min_blocks_per_sm.is_some() && (wins || d.min_blocks_per_sm.is_none()) {
            d.min_blocks_per_sm = options.min_blocks_per_sm;
        }
    }
    Ok(())
}

/// A warning for each instruction that computes in double precision.
fn double_precision(module: &ptx::ast::Module) -> Vec<Diagnostic> {
    let statements = module.functions.values().flat_map(|f| f.body.iter().flatten());
    let doubles = statements.filter_map(|statement| match statement {
        ptx::ast::Statement::Instruction(i) if i.types.contains(&crate::tables::ptx::ScalarType::F64) => Some(i.pos),
        _ => None,
    });
    doubles.map(|pos| Diagnostic::warning(pos, "Program is doing double precision computations.")).collect()
}

/// Version of the toolkit whose rules the cubins follow, 10 × major + minor.
const TOOLKIT: u32 = 130;

fn module_of(
    lowered: LoweredModule,
    functions: Vec<cubin::Function>,
    module: &ptx::ast::Module,
    (target, object): (&Target, bool),
) -> Cubin {
    let tool = cubin::ToolNote {
        name: env!("CARGO_PKG_NAME").to_string(),
        version: format!("Sassafras {}", env!("CARGO_PKG_VERSION")),
        build: String::new(),
        options: format!("-arch {}{}", target.name, if object { " -c" } else { "" }),
    };
    let mut kept = cubin::Kept::default();
    if object {
        kept.symbols = [assemble::table_symbols(&functions), lowered.object.symbols].concat();
        kept.sections.extend(lowered.object.shared.map(loose_shared));
    }
    let call_graph = if object { lowered.object.call_graph } else { assemble::call_graph(&functions) };
    Cubin {
        kind: if object { cubin::ElfKind::Relocatable } else { cubin::ElfKind::Executable },
        prototypes: lowered.object.prototypes,
        kept,
        sm: target.sm,
        accelerator: target.variant == Variant::A,
        ptx_sm: Target::by_name(&module.target.name).map_or(target.sm, |t| t.sm),
        toolkit: TOOLKIT,
        tool,
        variables: lowered.variables,
        global: lowered.global,
        global_init: lowered.global_init,
        constant3: lowered.constant3,
        constant4: lowered.constant4,
        call_graph,
        functions,
        ..Cubin::default()
    }
}

/// The section of an object for shared variables that belong to no entry.
fn loose_shared(shared: cubin::Shared) -> cubin::KeptSection {
    let image = cubin::Image { size: shared.size, align: shared.align, ..cubin::Image::default() };
    let (kind, flags) = (cubin::symbols::SHT_CUDA_SHARED, 3);
    cubin::KeptSection {
        name: lower::LOOSE_SHARED.to_string(),
        kind,
        flags,
        align: shared.align,
        image,
        ..cubin::KeptSection::default()
    }
}

/// Runs the passes over a function and encodes it.
fn function_code(function: &mut Function, options: &Options, recorder: &mut Recorder) -> Result<emit::Code, String> {
    function.optimise = options.opt_level > 0;
    if !options.fmad {
        function.insts.values_mut().for_each(|inst| inst.contract = false);
    }
    let legalization = Legalization {
        knobs: options.knobs.clone(),
        outer: options.outer_backend.clone().unwrap_or(Legalization::default().outer),
        opt_level: options.opt_level,
    };
    let control = PassControl { verify: options.verify_ir || options.passes.verify, ..options.passes.clone() };
    pass::run(function, &legalization, &control, |event| recorder.note(event)).map_err(|e| e.to_string())?;
    if let Some(last) = control.stop_after {
        recorder.dumps.push(format!("# stopped after {}\n{}", last.name(), text::print(function)));
        return Ok(emit::Code::default());
    }
    emit::emit(function).map_err(|message| format!("FormatCodeList: {}: {message}", function.name))
}

/// Says how many registers each function may use: an entry by its directives, a device function by those of every entry that it stands
/// behind.
fn limit_registers(lowered: &mut LoweredModule, module: &ptx::ast::Module, target: &Target) {
    let named: HashMap<&str, &ptx::ast::Directives> =
        module.functions.values().map(|f| (f.name.as_str(), &f.directives)).collect();
    let directives = |name: &str| named.get(name).copied();
    for function in lowered.functions.iter_mut().chain(&mut lowered.devices) {
        let by_blocks = directives(&function.function.name).and_then(|d| {
            function.function.max_registers = register_limit(d, target);
            d.min_blocks_per_sm.filter(|_| d.max_registers.is_none() && d.required_threads.or(d.max_threads).is_some())
        });
        if by_blocks.is_some() {
            function.launch.max_registers = function.function.max_registers.map(|n| n as u16);
        }
    }
    for entry in &lowered.functions {
        for piece in &entry.pieces {
            let device = &mut lowered.devices[*piece].function;
            device.max_registers = [device.max_registers, entry.function.max_registers].into_iter().flatten().min();
        }
    }
}

/// Most registers that directives leave. Source: what ptxas 13.0.88 makes of `.maxnreg`, and of `.maxntid` or `.reqntid` with and without
/// `.minnctapersm`, on three targets: the registers of an SM over the threads of whole warps, in whole units; never fewer than
/// the calling convention needs.
fn register_limit(d: &ptx::ast::Directives, target: &Target) -> Option<u32> {
    let info = target.info()?;
    let mut limit = info.reg_limit.min(d.max_registers.unwrap_or(u32::MAX));
    if let Some(threads) = d.required_threads.or(d.max_threads) {
        let warps = threads.iter().fold(1u32, |n, t| n.saturating_mul((*t).max(1))).div_ceil(WARP);
        let blocks = d.min_blocks_per_sm.unwrap_or(1).max(1);
        let each = info.reg_file / warps.saturating_mul(WARP).saturating_mul(blocks).max(WARP);
        limit = limit.min(each / info.reg_unit * info.reg_unit);
    }
    Some(limit.max(info.abi_min))
}

/// Threads of a warp.
const WARP: u32 = 32;

/// What each function needs; those behind a kernel follow it, by name.
fn all_resources(
    lowered: &LoweredModule,
    functions: &[cubin::Function],
    order: &[usize],
    (target, object): (&Target, bool),
) -> Vec<Resources> {
    // Only the places of a cubin are settled, with the reserved part in front.
    let reserved = target.info().filter(|_| !object).map_or(0, |info| u64::from(info.shared_base));
    let all: Vec<&LoweredFunction> = lowered.functions.iter().chain(&lowered.devices).collect();
    let mut shown = Vec::new();
    for place in order {
        let (function, section) = (all[*place], &functions[*place]);
        shown.push(resources(function, section, reserved));
        let mut pieces: Vec<_> = function.pieces.iter().map(|i| &lowered.devices[*i]).filter(|_| !object).collect();
        pieces.sort_by(|a, b| a.function.name.cmp(&b.function.name));
        shown.extend(pieces.into_iter().map(|piece| resources(piece, section, reserved)));
    }
    shown
}

fn resources(lowered: &LoweredFunction, section: &cubin::Function, reserved: u64) -> Resources {
    let function = &lowered.function;
    Resources {
        name: function.name.clone(),
        entry: lowered.kernel,
        registers: section.registers,
        barriers: u32::from(section.barriers),
        stack_bytes: function.frame_bytes,
        cumulative_stack_bytes: section.stack.min.unwrap_or(0),
        spill_store_bytes: function.spill_stores,
        spill_load_bytes: function.spill_loads,
        shared_bytes: section.shared.map_or(0, |s| s.size.saturating_sub(reserved)),
        constant_bytes: section.constant0_bytes(),
        constant2_bytes: section.constant2.as_ref().map_or(0, |bank| bank.size),
    }
}
