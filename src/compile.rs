//! The compiler driver: PTX text → module → Ori → passes → words → cubin.
//!
//! [`compile_all`] is the whole flow. The bytes of the cubin depend only on the text and the
//! options.

use crate::analysis::occupancy::most_registers;
use crate::arrays::Each;
use crate::cubin::patches::PatchTable;
use crate::cubin::{self, Cubin};
use crate::debug;
use crate::diag::{Diagnostic, Severity};
use crate::helper;
use crate::interprocedural;
use crate::kernel_image;
use crate::legal::{Knobs, Legalization, OuterBackend};
use crate::lower::{self, LoweredFunction, LoweredModule};
use crate::ori::{BankConstants, Function, ShaderConstants, register_changes, text};
use crate::pass::dump::{DumpOptions, PassRecord, Recorder};
use crate::pass::{self, PassControl};
use crate::pipeline::emit;
use crate::ptx;
use crate::ptx::ast::{Module, NarrowAddress};
use crate::references;
use crate::search::{self, Effort, Found, Voice};
use crate::shader_info::ShaderInfo;
use crate::sorted::SortedMap;
use crate::source_lines;
use crate::tables::elf::RelocRole;
use crate::tables::helpers::Helper;
use crate::tables::ptx::{Limit, Space};
use crate::tables::registers::Changes;
use crate::tables::targets::{TARGETS, Variant};
use crate::tables::{Feature, Target, Tuning};
use crate::warnings::remarks;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Target, options and diagnostics of a compilation. Start from [`Options::new`] and change fields.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the target, such as `sm_90`. With `compute_90` or `lto_90` the PTX is only checked
    /// and no cubin is made.
    pub target: String,
    /// Optimization level, 0 to 3. Level 0 runs only the required passes and does not schedule;
    /// levels 1 to 3 are the same so far: optimized and scheduled by the latency tables.
    pub opt_level: u8,
    /// Whether a float product and sum may be contracted to one operation.
    pub fmad: bool,
    /// Register limit per thread, for functions that state none.
    pub max_registers: Option<u32>,
    /// Maximum threads per block, for entries that state none.
    pub max_threads: Option<[u32; 3]>,
    /// Minimum blocks per multiprocessor, for entries that state none.
    pub min_blocks_per_sm: Option<u32>,
    /// Whether the three fields above override the directives of functions.
    pub override_directives: bool,
    /// Names of the entries to compile; empty means all.
    pub entries: Vec<String>,
    /// Whether to make a relocatable object instead of an executable cubin.
    pub relocatable: bool,
    /// Whether to warn of each double-precision instruction.
    pub warn_double: bool,
    /// Whether to write line tables even if the PTX has no `.loc`; if it has some, they are always
    /// written.
    pub line_info: bool,
    /// Whether to write debug information and code that a debugger can follow: at level 0, whatever
    /// `opt_level` says. `.target …, debug` in the PTX asks for the same.
    pub debug: bool,
    /// Whether somebody asked for `opt_level`; with debug information a level above 0 is then an
    /// error.
    pub level_given: bool,
    /// Whether functions with a frame check that it fits into the thread's local memory; with debug
    /// information they always do.
    pub stack_checks: bool,
    /// Whether entries wait before they exit until the faults of their accesses are known; with
    /// debug information they always do.
    pub errors_at_exit: bool,
    /// Whether to omit line tables and debug information, whatever the PTX, `line_info` and `debug`
    /// say.
    pub suppress_debug_info: bool,
    /// Values of the knobs of `tables/knobs.ron`.
    pub knobs: Knobs,
    /// Values of the tunables of `tables/tunables.ron`.
    pub tuning: Tuning,
    /// How long to search for better ones for each function.
    pub search: Effort,
    /// What the host patches before a launch; without it no cubin asks for that.
    pub shader_info: Option<ShaderInfo>,
    /// Wraps the target's legalization backend; it may omit, replace or add expansions.
    pub outer_backend: Option<Arc<dyn OuterBackend>>,
    /// Whether to run the IR verifier after every pass.
    pub verify_ir: bool,
    /// Phases after which to print the function into [`Output::dumps`]; `all` means every
    /// implemented phase.
    pub dump_phases: Vec<String>,
    /// Passes or phases before which to print it there too; `all` means every pass.
    pub dump_before: Vec<String>,
    /// Passes or phases after which to print it there too; `all` means every pass.
    pub dump_after: Vec<String>,
    /// Which passes run. If they stop early, there is no cubin, and the function is among the
    /// dumps.
    pub passes: PassControl,
    /// Most threads that compile functions; nothing but the time depends on it.
    pub threads: usize,
}

impl Options {
    /// Default options for a target.
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
            debug: false,
            level_given: false,
            errors_at_exit: false,
            stack_checks: false,
            suppress_debug_info: false,
            warn_double: false,
            knobs: Knobs::default(),
            tuning: Tuning::default(),
            search: Effort::default(),
            shader_info: None,
            outer_backend: None,
            verify_ir: false,
            dump_phases: Vec::new(),
            dump_before: Vec::new(),
            dump_after: Vec::new(),
            passes: PassControl::default(),
            threads: 1,
        }
    }
}

/// Resource usage of one function, as `-v` prints it; sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Name of the function.
    pub name: String,
    /// Whether it is an entry, not a device function.
    pub entry: bool,
    /// General registers, as the cubin records them.
    pub registers: u32,
    /// Block barriers.
    pub barriers: u32,
    /// Frame of this function alone.
    pub stack_bytes: u32,
    /// Stack of this function and its callees, as far as known.
    pub cumulative_stack_bytes: u32,
    /// Bytes that spill code stores.
    pub spill_store_bytes: u32,
    /// Bytes that spill code loads.
    pub spill_load_bytes: u32,
    /// Static shared memory, without the part that the system reserves.
    pub shared_bytes: u64,
    /// Constant bank 0: launch data and parameters.
    pub constant_bytes: u32,
    /// Constant bank 2: branch tables and function addresses.
    pub constant2_bytes: u64,
    /// Words that the driver fills with textures, surfaces and samplers which are named.
    pub named: [usize; 3],
}

/// The result of a compilation.
#[derive(Clone, Debug)]
pub struct Output {
    /// The ELF file; empty if the target was virtual (`compute_90`) or the passes stopped early.
    pub cubin: Vec<u8>,
    /// In file order; in a cubin a kernel is followed by its functions, by name.
    pub functions: Vec<Resources>,
    /// Compile time of each function, by name.
    pub times: SortedMap<String, Duration>,
    /// Bytes of global variables.
    pub global_bytes: u64,
    /// Bytes of constant bank 3 (variables).
    pub constant3_bytes: u64,
    /// Bytes of constant bank 4 (addresses).
    pub constant4_bytes: u64,
    /// Warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Printed functions, as the dump options request.
    pub dumps: Vec<String>,
    /// What a search found for each function, in the order of the functions.
    pub found: Vec<Found>,
    /// Statistics of each pass over all functions, indexed by [`Pass`](crate::tables::Pass).
    pub records: Vec<PassRecord>,
}

/// Compiles bytes that should be PTX. Like ptxas, reads ASCII only.
///
/// # Errors
///
/// As [`compile_all`].
pub fn compile_bytes(source: &[u8], options: &Options) -> Result<Output, Vec<Diagnostic>> {
    compile(&String::from_utf8_lossy(source), options)
}

/// Compiles a PTX text. Threads may call it at the same time. Nothing that a call caches changes
/// the result of another.
///
/// # Errors
///
/// As [`compile_all`].
pub fn compile(source: &str, options: &Options) -> Result<Output, Vec<Diagnostic>> {
    compile_all(&[source], options)
}

/// Checks that the module's own target and its addresses suit the target of the compile.
fn check_target(module: &Module, target: &Target) -> Result<(), Vec<Diagnostic>> {
    let name = &module.target.name;
    let own = Target::of_source(name);
    if let Some((own, why)) = own.and_then(|own| Some((own, own.refused_on(target)?))) {
        // The message names the target as the file does: `compute_90a`.
        return Err(vec![Diagnostic::fatal(why.replace(&format!("'{}'", own.name), &format!("'{name}'")))]);
    }
    let Some(NarrowAddress { pos, is_sized }) = module.narrow_address else { return Ok(()) };
    let warning = if is_sized {
        format!("Program uses 32-bit address on line '{}' which is conflicting with .address_size 64", pos.line)
    } else {
        " 64 Bit host architecture (--machine) being used mismatches with .address_size of 32 bits".to_string()
    };
    let without = TARGETS.iter().filter(|t| t.generation.is_some() && t.has(Feature::No32BitAbi)).map(|t| t.sm).min();
    let fatal = match without.filter(|_| target.has(Feature::No32BitAbi)) {
        Some(sm) => {
            let what = " 32-Bit ABI (--machine 32 or 32-Bit addressing)";
            format!("{what} is not supported on sm_{sm} or higher architectures.")
        }
        None => " 32-Bit compilation is no longer supported".to_string(),
    };
    Err(vec![Diagnostic::note(warning), Diagnostic::fatal(fatal)])
}

/// Compiles several PTX texts into one cubin; [`Diagnostic::file`] tells which of them a message is
/// about.
///
/// # Errors
///
/// All errors that were found, with the warnings so far: in the options, in the PTX, instructions
/// that are not implemented, exceeded limits, and functions that a pass refuses.
pub fn compile_all(sources: &[&str], options: &Options) -> Result<Output, Vec<Diagnostic>> {
    let (target, check_only) = target_of(&options.target)?;
    let (module, mut diagnostics) = ptx::parse_all(sources);
    let Some(mut module) = module else { return Err(diagnostics) };
    check_target(&module, target)?;
    module.target.debug |= options.debug;
    let debug = module.target.debug;
    if debug && options.level_given && options.opt_level > 0 {
        return Err(vec![Diagnostic::fatal(debug::OPTIMISED)]);
    }
    let options = &Options { opt_level: if debug { 0 } else { options.opt_level }, ..options.clone() };
    if options.suppress_debug_info {
        diagnostics.splice(0..0, source_lines::nothing_to_suppress(&module, options.line_info || debug));
    }
    apply_options(&mut module, options)?;
    // With debug information every function has a section of its own.
    let object = options.relocatable || debug;
    if options.warn_double {
        diagnostics.extend(double_precision(&module));
    }
    let mut output = Output {
        cubin: Vec::new(),
        functions: Vec::new(),
        times: SortedMap::new(),
        global_bytes: 0,
        constant3_bytes: 0,
        constant4_bytes: 0,
        diagnostics,
        dumps: Vec::new(),
        found: Vec::new(),
        records: Vec::new(),
    };
    if check_only {
        return Ok(output);
    }
    check_constants(&module)?;
    check_initialised(&module)?;
    check_sections(&module)?;
    helper::splice(&mut module, target)?;
    let mut lowered = lower::lower(&module, target, object)?;
    check_shared(&lowered, target, object)?;
    check_frames(&lowered)?;
    let mut errors = Vec::new();
    leave_room_for_shader_constants(&mut lowered, options, object)?;
    limit_registers(&mut lowered, &module, target).map_err(|m| vec![Diagnostic::fatal(m)])?;
    if !options.line_info && !debug && !source_lines::has_places(&module) {
        forget_lowered(&mut module);
    }
    let dumps = DumpOptions {
        before: options.dump_before.clone(),
        after: options.dump_after.clone(),
        phases: options.dump_phases.clone(),
    };
    if !object && options.opt_level > 0 {
        interprocedural::prepare(&mut lowered);
    }
    let whole = options.passes.stop_after.is_none();
    // What the passes did is summed up at once: there may be a million functions.
    let records = Mutex::new(Recorder::new(&dumps));
    // Nothing is compared where no code is made.
    let effort = if whole && options.opt_level > 0 { options.search } else { Effort::default() };
    let effort = effort.shared(lowered.functions.len() + lowered.devices.len(), options.threads);
    let compiled = interprocedural::compile(&mut lowered, options.threads, |function| {
        let (start, mut recorder) = (Instant::now(), Recorder::new(&dumps));
        let (code, found) = searched_code(&mut function.function, options, effort, &mut recorder);
        let changes = if whole { interprocedural::changes(&function.function) } else { Changes::ALL };
        if code.is_ok() {
            function.function.forget_code();
        }
        let own = std::mem::take(&mut recorder.dumps);
        records.lock().unwrap_or_else(PoisonError::into_inner).join(recorder);
        ((code, start.elapsed(), own, found), changes)
    });
    let mut recorder = records.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut codes = Vec::with_capacity(compiled.len());
    let all = lowered.functions.iter().chain(&lowered.devices);
    for (function, (code, elapsed, own, found)) in all.zip(compiled) {
        output.times.insert(function.function.name().to_string(), elapsed);
        recorder.dumps.extend(own);
        output.found.extend(found);
        match code {
            Ok(code) => codes.push(code),
            Err(message) => errors.push(Diagnostic::fatal(message)),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut devices = codes.split_off(lowered.functions.len());
    (output.dumps, output.records) = (recorder.dumps, recorder.records);
    if options.passes.stop_after.is_some() {
        return Ok(output);
    }
    let settings = helper::Settings {
        target: target.name,
        object,
        optimise: options.opt_level > 0,
        max_registers: None,
        verify: options.verify_ir,
        slow_path: false,
    };
    helper::add(&mut lowered, &codes, &mut devices, settings).map_err(|m| vec![Diagnostic::fatal(m)])?;
    output.diagnostics.append(&mut lowered.warnings);
    output.diagnostics.extend(remarks(&module, &lowered, target));
    let mut facts = if debug {
        debug::Facts::new(&lowered, &codes, &devices, &kernel_image::depths(&lowered, &codes, &devices))
    } else {
        debug::Facts::default()
    };
    let functions = if object {
        let all = lowered.functions.iter().zip(&codes).chain(lowered.devices.iter().zip(&devices));
        let one = |(function, code): (_, &emit::Code)| {
            let slow_paths = helper::slow_paths(code, settings)?;
            let behind = slow_paths.iter().map(|path| (&path.lowered, &path.code));
            kernel_image::of_object(function, code, behind, target)
        };
        all.map(one).collect::<Result<Vec<_>, _>>()
    } else {
        (0..codes.len()).map(|i| kernel_image::kernel(&lowered, i, &codes, &devices, target)).collect()
    };
    let functions = functions.map_err(|m| vec![Diagnostic::fatal(m)])?;
    let patches = patch_tables(&lowered, &codes);
    let text: Vec<&str> = module.functions.values().map(|function| function.name.as_str()).collect();
    let order = kernel_image::file_order(&lowered, &text, object);
    output.functions = all_resources(&lowered, &functions, &order, (target, object));
    let mut functions: Vec<_> = functions.into_iter().map(Some).collect();
    let mut functions: Vec<_> = order.iter().filter_map(|place| functions[*place].take()).collect();
    kernel_image::number_slow_paths(&mut functions);
    let mut cubin = module_of(lowered, functions, &module, (target, object));
    cubin.kept.sections.extend(patches);
    for function in cubin.functions.iter_mut() {
        function.errors_at_exit = debug || options.errors_at_exit && function.kernel;
    }
    if object && !options.relocatable {
        cubin.kind = cubin::ElfKind::Executable;
        cubin.tool.options = format!("-arch {}", target.name);
        cubin.separate = true;
        debug::link::link(&mut cubin, &module, &mut facts).map_err(|m| vec![Diagnostic::fatal(m)])?;
    }
    match sources {
        _ if options.suppress_debug_info => {}
        [source] => source_lines::add(&mut cubin, &module, source, options.line_info || debug),
        _ if options.line_info => output.diagnostics.push(Diagnostic::note(source_lines::OF_SEVERAL.to_string())),
        _ => {}
    }
    if debug && !options.suppress_debug_info {
        output.diagnostics.splice(0..0, debug::add(&mut cubin, &module, &facts, sources.len()));
    }
    output.cubin = cubin::write(&cubin).map_err(|e| vec![Diagnostic::fatal(e.to_string())])?;
    let size = |image: &Option<cubin::Image>| image.as_ref().map_or(0, |image| image.size);
    output.global_bytes = size(&cubin.global) + size(&cubin.global_init);
    (output.constant3_bytes, output.constant4_bytes) = (size(&cubin.constant3), size(&cubin.constant4));
    Ok(output)
}

/// Leaves room for what the host patches, in front of the compiler's own constants.
///
/// # Errors
///
/// An object or a cubin with debug information, in which no bank has a place before it is linked.
fn leave_room_for_shader_constants(
    lowered: &mut LoweredModule,
    options: &Options,
    object: bool,
) -> Result<(), Vec<Diagnostic>> {
    let Some(info) = &options.shader_info else { return Ok(()) };
    if object {
        let what = "code that is linked or debugged has no patched constants";
        return Err(vec![Diagnostic::fatal(format!("Option 'shader-info' is refused: {what}"))]);
    }
    if options.opt_level <= LEVEL_WITHOUT_SHADER_CONSTANTS {
        return Ok(());
    }
    for function in lowered.functions.iter_mut().filter(|function| info.applies(function.function.name())) {
        let param_bytes = function.param_bytes;
        let attributes = function.function.attributes_mut();
        let Some(constants) = &mut attributes.constants else { continue };
        let capacity = info.capacity.min(BankConstants::bytes(constants.most) as u32);
        let start = constants.start;
        constants.start += capacity;
        constants.most -= capacity as usize / BankConstants::bytes(1);
        attributes.shader_constants =
            Some(ShaderConstants { start, capacity, param_bytes, ..ShaderConstants::default() });
    }
    Ok(())
}

/// The highest level at which nothing is extracted.
const LEVEL_WITHOUT_SHADER_CONSTANTS: u8 = 1;

/// An error about the whole input, after which others may follow.
fn too_much(message: String) -> Diagnostic {
    Diagnostic { severity: Severity::Error, ..Diagnostic::note(message) }
}

/// Checks that constant variables fit their bank.
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

/// Checks that the initial values, which are stored in full, fit in memory.
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

/// Checks that the sections of the entries can be numbered: code, attributes and constant bank of
/// each.
fn check_sections(module: &ptx::ast::Module) -> Result<(), Vec<Diagnostic>> {
    let entries = module.functions.values().filter(|f| f.is_entry && f.body.is_some()).count();
    let most = Limit::Entries.bytes(|_| true);
    if entries as u64 <= most {
        return Ok(());
    }
    Err(vec![Diagnostic::fatal(format!("more than {most} entry functions are too many for one file"))])
}

/// Checks that the static shared memory of each function fits.
fn check_shared(lowered: &LoweredModule, target: &Target, object: bool) -> Result<(), Vec<Diagnostic>> {
    let most = Limit::StaticShared.bytes(|_| true);
    let base = target.info().filter(|_| !object).map_or(0, |info| u64::from(info.shared_base));
    let mut errors = Vec::new();
    for function in &lowered.functions {
        let bytes = function.shared.map_or(0, |shared| shared.size.saturating_sub(base));
        if bytes > most {
            let name = function.function.name();
            let text = format!("Entry function '{name}' uses too much shared data ({bytes:#x} bytes, {most:#x} max)");
            errors.push(too_much(text));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Checks that the local variables of each function fit in a frame.
fn check_frames(lowered: &LoweredModule) -> Result<(), Vec<Diagnostic>> {
    let most = Limit::Frame.bytes(|_| true);
    let large = lowered
        .functions
        .iter()
        .chain(&lowered.devices)
        .filter(|f| u64::from(f.function.attributes().local_bytes) > most);
    let errors: Vec<Diagnostic> = large
        .map(|f| {
            let kind = if f.kernel { "Entry function" } else { "Function" };
            too_much(format!("{kind} '{}' uses too much local data ({most:#x} max)", f.function.name()))
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Parses the name of a target; returns it and whether to check the PTX only.
pub(crate) fn target_of(name: &str) -> Result<(&'static Target, bool), Vec<Diagnostic>> {
    let number = name.strip_prefix("compute_").or(name.strip_prefix("lto_"));
    let real = number.map_or(name.to_string(), |number| format!("sm_{number}"));
    match Target::by_name(&real).filter(|target| target.generation.is_some()) {
        Some(target) => Ok((target, number.is_some())),
        None => Err(vec![Diagnostic::fatal(format!("Value '{name}' is not defined for option 'gpu-name'"))]),
    }
}

/// Applies the options that concern functions to the module.
fn apply_options(module: &mut ptx::ast::Module, options: &Options) -> Result<(), Vec<Diagnostic>> {
    for name in &options.entries {
        if !module.functions.values().any(|f| f.is_entry && f.name == *name) {
            return Err(vec![Diagnostic::fatal(format!("Unknown function {name}"))]);
        }
    }
    let errors_at_exit = options.errors_at_exit || module.target.debug;
    for function in module.functions.values_mut() {
        if function.is_entry && !options.entries.is_empty() && !options.entries.contains(&function.name) {
            function.body = None;
        }
        let mut directives = (*function.directives).clone();
        directives.errors_at_exit = errors_at_exit;
        apply_limits(&mut directives, function.is_entry, options);
        if directives != *function.directives {
            function.directives = Arc::new(directives);
        }
    }
    Ok(())
}

/// Applies the options that limit the registers and threads of a function.
fn apply_limits(d: &mut ptx::ast::Directives, is_entry: bool, options: &Options) {
    let wins = options.override_directives;
    // A thread limit determines a register limit, which has priority over the option.
    let by_threads = d.max_threads.or(d.required_threads).is_some();
    if options.max_registers.is_some() && (wins || d.max_registers.is_none() && !by_threads) {
        d.max_registers = options.max_registers;
    }
    if !is_entry || options.max_registers.is_some() {
        return;
    }
    if options.max_threads.is_some() && d.required_threads.is_none() && (wins || d.max_threads.is_none()) {
        d.max_threads = options.max_threads;
    }
    if options.min_blocks_per_sm.is_some() && (wins || d.min_blocks_per_sm.is_none()) {
        d.min_blocks_per_sm = options.min_blocks_per_sm;
    }
}

/// A warning for each double-precision instruction.
fn double_precision(module: &ptx::ast::Module) -> Vec<Diagnostic> {
    let statements = module.functions.values().flat_map(|f| f.body.iter().flatten());
    let doubles = statements.filter_map(|statement| match statement {
        ptx::ast::Statement::Instruction(i) if i.types.contains(&crate::tables::ptx::ScalarType::F64) => Some(i.pos),
        _ => None,
    });
    doubles.map(|pos| Diagnostic::warning(pos, "Program is doing double precision computations.")).collect()
}

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
        kept.symbols = [kernel_image::table_symbols(&functions), lowered.object.symbols].concat();
        let shared = |shared| cubin::KeptSection::of_shared(lower::LOOSE_SHARED, shared);
        kept.sections.extend(lowered.object.shared.map(shared));
    }
    kept.symbols.extend(kernel_image::driver_symbols(&functions));
    kept.symbols.extend(references::symbols_of(&functions, module));
    let call_graph = if object { lowered.object.call_graph } else { kernel_image::call_graph(&functions) };
    Cubin {
        kind: if object { cubin::ElfKind::Relocatable } else { cubin::ElfKind::Executable },
        prototypes: lowered.object.prototypes,
        samplers: references::samplers(module),
        independent_textures: module.target.independent_textures,
        asks_kind: module.functions.values().flat_map(|f| f.body.iter().flatten()).any(asks_kind),
        kept,
        sm: target.sm,
        accelerator: target.variant == Variant::A,
        isa_class: isa_class(module, &functions),
        tensor_maps: instructions_of(module).fold(0, |uses, inst| uses | inst.op.uses_of_maps()),
        tensor_integers: instructions_of(module).any(multiplies_tensor_integers),
        ptx_sm: Target::of_source(&module.target.name).map_or(target.sm, |t| t.sm),
        toolkit: crate::tables::elf::ElfTarget::of_sm(target.sm).map_or(130, |elf| elf.toolkit),
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

/// The sections that say what the host patches, in the order of the text.
fn patch_tables(lowered: &LoweredModule, codes: &[emit::Code]) -> Vec<cubin::KeptSection> {
    let table = |(function, code): (&LoweredFunction, &emit::Code)| {
        let words = code.shader_constants.placed();
        let table = PatchTable { bank: ShaderConstants::BANK, words };
        (!table.words.is_empty()).then(|| table.section(function.function.name()))
    };
    lowered.functions.iter().zip(codes).filter_map(table).collect()
}

/// Whether a statement asks what kind of handle a handle is.
fn asks_kind(statement: &ptx::ast::Statement) -> bool {
    match statement {
        ptx::ast::Statement::Instruction(inst) => inst.op == crate::tables::ptx::Op::Istypep,
        _ => false,
    }
}

/// The code of a function with the tuning that a search finds, or that of the options.
fn searched_code(
    function: &mut Function,
    options: &Options,
    effort: Effort,
    recorder: &mut Recorder,
) -> (Result<emit::Code, String>, Option<Found>) {
    function.attributes_mut().tuning = options.tuning;
    let unheard = DumpOptions::default();
    search::run(function, effort, |function, voice| match voice {
        Voice::Loud => function_code(function, options, recorder),
        Voice::Quiet => function_code(function, options, &mut Recorder::new(&unheard)),
    })
}

/// Runs the passes on a function and encodes it.
fn function_code(function: &mut Function, options: &Options, recorder: &mut Recorder) -> Result<emit::Code, String> {
    function.attributes_mut().optimise = options.opt_level > 0;
    function.attributes_mut().slow_paths = options.opt_level > 0
        && !options.debug
        && function.attributes().max_registers.is_none_or(|most| most >= LEAST_WITH_SLOW_PATHS);
    function.attributes_mut().checks_stack = options.stack_checks || function.watched().is_some();
    if !options.fmad {
        function.forbid_contraction();
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
    emit::emit(function).map_err(|message| format!("FormatCodeList: {}: {message}", function.name()))
}

/// Fewest registers of a function that calls slow paths, which use sixteen themselves.
const LEAST_WITH_SLOW_PATHS: u32 = 24;

/// Sets the register limit of each function: an entry by its directives, a device function by those
/// of every entry that it is placed behind.
///
/// # Errors
///
/// A `setmaxnreg.dec` to more registers than a warp ever has.
fn limit_registers(lowered: &mut LoweredModule, module: &ptx::ast::Module, target: &Target) -> Result<(), String> {
    let named: SortedMap<&str, &ptx::ast::Directives> =
        module.functions.values().map(|f| (f.name.as_str(), &*f.directives)).collect();
    let directives = |name: &str| named.get(name).copied();
    for function in lowered.functions.iter_mut().chain(&mut lowered.devices) {
        let by_threads = directives(function.function.name()).and_then(|d| {
            function.function.attributes_mut().max_registers = register_limit(d, target);
            function.function.attributes_mut().threads = threads_of(d);
            function.function.attributes_mut().rows = d.required_threads.is_some_and(are_rows);
            d.required_threads.or(d.max_threads).filter(|_| d.max_registers.is_none())
        });
        if by_threads.is_some() {
            function.launch.max_registers = function.function.attributes().max_registers.map(|n| n as u16);
        }
        reconfigure(function)?;
    }
    for entry in &lowered.functions {
        for piece in &entry.pieces {
            let device = &mut lowered.devices[*piece].function;
            let least = register_changes::least(&entry.function);
            device.attributes_mut().max_registers =
                [device.attributes().max_registers, least].into_iter().flatten().min();
        }
    }
    Ok(())
}

/// What `setmaxnreg` does to the limit of an entry: a warp starts with the limit, but never with
/// more than it ever asks for. Source: ptxas 13.0.88.
fn reconfigure(function: &mut LoweredFunction) -> Result<(), String> {
    let changes = register_changes::changes(&function.function);
    let Some(limit) = function.function.attributes().max_registers.filter(|_| !changes.is_empty()) else {
        return Ok(());
    };
    let most = changes.iter().filter(|change| change.takes).map(|change| change.count).max();
    let entry = limit.min(most.unwrap_or(limit));
    let most = entry.max(most.unwrap_or(0));
    if let Some(over) = changes.iter().find(|change| change.count > most) {
        let count = over.count;
        let what = "which is larger than the largest temporal register count in the program";
        return Err(format!("(C7406) setmaxnreg.dec has register count ({count}) {what} ({most})"));
    }
    function.function.attributes_mut().max_registers = Some(most);
    function.function.attributes_mut().entry_registers = Some(entry);
    function.launch.reconfigures = true;
    Ok(())
}

/// The register limit that directives imply: what lets an SM hold as many blocks of as many threads
/// as they name; never less than the calling convention needs. Source: what ptxas 13.0.88 makes of
/// `.maxnreg`, and of `.maxntid` or `.reqntid` with and without `.minnctapersm`, on three targets.
fn register_limit(d: &ptx::ast::Directives, target: &Target) -> Option<u32> {
    let info = target.info()?;
    let mut limit = info.reg_limit.min(d.max_registers.unwrap_or(u32::MAX));
    if let Some(threads) = threads_of(d) {
        limit = limit.min(most_registers(info, threads.div_ceil(WARP), d.min_blocks_per_sm.unwrap_or(1)));
    }
    Some(limit.max(info.abi_min))
}

/// The most threads of a block that directives name.
fn threads_of(d: &ptx::ast::Directives) -> Option<u32> {
    let threads = d.required_threads.or(d.max_threads)?;
    Some(threads.iter().fold(1u32, |n, t| n.saturating_mul((*t).max(1))))
}

/// Whether a warp of a block of this shape is in one row of it.
fn are_rows([x, y, z]: [u32; 3]) -> bool {
    x % WARP == 0 || y <= 1 && z <= 1
}

/// Threads of a warp.
const WARP: u32 = 32;

/// Resource usage of each function; in a cubin a kernel is followed by its functions, by name.
fn all_resources(
    lowered: &LoweredModule,
    functions: &[cubin::Function],
    order: &[usize],
    (target, object): (&Target, bool),
) -> Vec<Resources> {
    // Only in a cubin are addresses final, after the reserved part.
    let reserved = target.info().filter(|_| !object).map_or(0, |info| u64::from(info.shared_base));
    let all: Vec<&LoweredFunction> = lowered.functions.iter().chain(&lowered.devices).collect();
    let mut shown = Vec::new();
    for place in order {
        let (function, section) = (all[*place], &functions[*place]);
        shown.push(resources(function, section, reserved));
        // Slow paths are not shown.
        let is_own = |piece: &&LoweredFunction| !object && Helper::of_slow_path(piece.function.name()).is_none();
        let mut pieces: Vec<_> = function.pieces.iter().map(|i| &lowered.devices[*i]).filter(is_own).collect();
        crate::sorted::by(&mut pieces, |a, b| a.function.name().cmp(b.function.name()));
        shown.extend(pieces.into_iter().map(|piece| resources(piece, section, reserved)));
    }
    shown
}

fn resources(lowered: &LoweredFunction, section: &cubin::Function, reserved: u64) -> Resources {
    let function = &lowered.function;
    Resources {
        name: function.name().to_string(),
        entry: lowered.kernel,
        registers: section.registers,
        barriers: u32::from(section.barriers),
        stack_bytes: function.attributes().frame_bytes,
        cumulative_stack_bytes: section.stack.min.unwrap_or(0),
        spill_store_bytes: function.attributes().spill_stores,
        spill_load_bytes: function.attributes().spill_loads,
        shared_bytes: section.shared.map_or(0, |s| s.size.saturating_sub(reserved)),
        constant_bytes: section.constant0_bytes(),
        constant2_bytes: section.constant2.as_ref().map_or(0, |bank| bank.size),
        named: [RelocRole::Texture, RelocRole::Surface, RelocRole::Sampler]
            .each(|role| lowered.references.iter().filter(|reference| reference.role == role).count()),
    }
}

/// What the instructions of a module need, as `.nv.compat` says it. Source: ptxas 13.0.88 writes 4
/// for `wgmma`, 2 for `tcgen05`, textures, surfaces, tensor copies and `setmaxnreg` that is not
/// ignored, and 3 for `tcgen05.mma` of integers and for `tcgen05.shift`.
fn isa_class(module: &crate::ptx::ast::Module, functions: &[cubin::Function]) -> u8 {
    let bodies = module.functions.values().filter_map(|function| function.body.as_ref());
    let reconfigures = functions.iter().any(|function| function.launch.reconfigures);
    bodies.flatten().map(statement_class).max().unwrap_or(0).max(if reconfigures { 2 } else { 0 })
}

/// Frees the labels, and the instructions that nobody asks for behind lowering: those that decide
/// neither the class of the module nor an attribute of it.
fn forget_lowered(module: &mut crate::ptx::ast::Module) {
    use crate::ptx::ast::Statement;
    let asked = |statement: &Statement| match statement {
        Statement::Label(_) => false,
        Statement::Instruction(inst) => {
            statement_class(statement) > 0 || inst.op.uses_of_maps() > 0 || asks_kind(statement)
        }
        Statement::Location(_) | Statement::Pragma(_) => true,
    };
    for function in module.functions.values_mut() {
        function.labels = Default::default();
        let Some(body) = &mut function.body else { continue };
        *body = std::mem::take(body).into_iter().filter(asked).collect();
    }
}

/// The class that a statement asks for.
fn statement_class(statement: &crate::ptx::ast::Statement) -> u8 {
    use crate::ptx::ast::Statement;
    match statement {
        Statement::Instruction(inst) => inst.op.isa_class(multiplies_tensor_integers(inst)),
        _ => 0,
    }
}

/// Whether an instruction multiplies integers in tensor memory.
fn multiplies_tensor_integers(inst: &crate::ptx::ast::Instruction) -> bool {
    inst.mods.tensor_kind == Some(crate::tables::ptx::TensorKind::KindI8)
}

/// The instructions of a module that are kept behind lowering.
fn instructions_of(module: &crate::ptx::ast::Module) -> impl Iterator<Item = &crate::ptx::ast::Instruction> {
    let bodies = module.functions.values().flat_map(|function| function.body.iter().flatten());
    bodies.filter_map(|statement| match statement {
        crate::ptx::ast::Statement::Instruction(inst) => Some(&**inst),
        _ => None,
    })
}
