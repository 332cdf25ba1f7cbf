//! The flow on one screen: PTX text → module → Ori → phases → words → cubin.
//!
//! Input: a PTX text and options. Output: the cubin's bytes with what a caller wants to know of it, or every diagnostic.
//! Invariant: the bytes depend on the text and the options alone.

use crate::cubin::{self, Cubin};
use crate::diag::{Diagnostic, Pos};
use crate::lower::{self, LoweredFunction, LoweredModule};
use crate::ori::{Function, text};
use crate::pipeline::{self, Watch, emit};
use crate::ptx;
use crate::tables::Target;
use crate::tables::targets::Variant;

/// What to compile for, and what to show on the way.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the target, `sm_90`.
    pub target: String,
    /// 0 to 3. All levels take the same way so far: the plain safe schedule.
    pub opt_level: u8,
    /// Run the verifier after every phase.
    pub verify_ir: bool,
    /// Phases after which the function is printed into [`Output::dumps`]; `all` means every built one.
    pub dump_phases: Vec<String>,
}

impl Options {
    /// Plain compilation for a target.
    pub fn new(target: &str) -> Options {
        Options { target: target.to_string(), opt_level: 3, verify_ir: false, dump_phases: Vec::new() }
    }
}

/// Resources of one function, as `-v` prints them; sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    pub name: String,
    pub registers: u32,
    pub barriers: u32,
    pub stack_bytes: u32,
    pub shared_bytes: u64,
    pub constant_bytes: u32,
}

/// A compiled module.
#[derive(Clone, Debug)]
pub struct Output {
    pub cubin: Vec<u8>,
    pub functions: Vec<Resources>,
    /// Bytes of global variables.
    pub global_bytes: u64,
    /// Warnings.
    pub diagnostics: Vec<Diagnostic>,
    pub dumps: Vec<String>,
}

/// Compiles bytes that ought to be PTX. The incumbent reads ASCII only, and so do we.
pub fn compile_bytes(source: &[u8], options: &Options) -> Result<Output, Vec<Diagnostic>> {
    match std::str::from_utf8(source) {
        Ok(text) => compile(text, options),
        Err(error) => {
            let line = source[..error.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
            let message = format!("Unexpected non-ASCII character encountered on line {line}");
            Err(vec![Diagnostic::error(Pos { line: line as u32, col: 1 }, message)])
        }
    }
}

/// Compiles a PTX text.
pub fn compile(source: &str, options: &Options) -> Result<Output, Vec<Diagnostic>> {
    let Some(target) = Target::by_name(&options.target) else {
        let message = format!("Value '{}' is not defined for option 'gpu-name'", options.target);
        return Err(vec![Diagnostic::fatal(message)]);
    };
    if target.generation.is_none() {
        return Err(vec![Diagnostic::fatal(format!("Target '{}' is not implemented", options.target))]);
    }
    let (module, diagnostics) = ptx::parse(source);
    let Some(module) = module else { return Err(diagnostics) };
    let mut lowered = lower::lower(&module, target)?;
    let mut output =
        Output { cubin: Vec::new(), functions: Vec::new(), global_bytes: 0, diagnostics, dumps: Vec::new() };
    let mut functions = Vec::new();
    let mut errors = Vec::new();
    for function in &mut lowered.functions {
        match function_code(&mut function.function, options, &mut output.dumps) {
            Ok(code) => functions.push(finished(function, target, code)),
            Err(message) => errors.push(Diagnostic::fatal(message)),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let cubin = module_of(lowered, functions, &module, target);
    output.cubin = cubin::write(&cubin).map_err(|e| vec![Diagnostic::fatal(e.to_string())])?;
    output.functions = cubin.functions.iter().map(resources).collect();
    output.global_bytes = global_bytes(&cubin);
    Ok(output)
}

/// Version of the toolkit whose rules the cubins follow, 10 × major + minor.
const TOOLKIT: u32 = 130;

fn module_of(
    lowered: LoweredModule,
    functions: Vec<cubin::Function>,
    module: &ptx::ast::Module,
    target: &Target,
) -> Cubin {
    let tool = cubin::ToolNote {
        name: env!("CARGO_PKG_NAME").to_string(),
        version: format!("Sassafras {}", env!("CARGO_PKG_VERSION")),
        build: String::new(),
        options: format!("-arch {}", target.name),
    };
    Cubin {
        sm: target.sm,
        accelerator: target.variant == Variant::A,
        ptx_sm: Target::by_name(&module.target.name).map_or(target.sm, |t| t.sm),
        toolkit: TOOLKIT,
        tool,
        functions,
        variables: lowered.variables,
        global: lowered.global,
        global_init: lowered.global_init,
        constant3: lowered.constant3,
        constant4: lowered.constant4,
        ..Cubin::default()
    }
}

/// Runs the phases over a function and encodes it.
fn function_code(function: &mut Function, options: &Options, dumps: &mut Vec<String>) -> Result<emit::Code, String> {
    let watch = Watch { verify: options.verify_ir };
    let wanted = |name: &str| options.dump_phases.iter().any(|p| p == name || p == "all");
    pipeline::run(function, watch, |phase, function| {
        if wanted(phase.name()) {
            dumps.push(format!("# after {}\n{}", phase.name(), text::print(function)));
        }
    })
    .map_err(|e| format!("{}: {}", e.phase.name(), e.message))?;
    emit::emit(function).map_err(|message| format!("FormatCodeList: {}: {message}", function.name))
}

/// Registers that the count in a cubin states beyond the highest one used. Source: measured on 200 cubins.
const EXTRA_REGISTERS: u32 = 2;

fn finished(lowered: &LoweredFunction, target: &Target, code: emit::Code) -> cubin::Function {
    let frame = lowered.function.local_bytes;
    cubin::Function {
        name: lowered.function.name.clone(),
        kernel: true,
        binding: lowered.binding,
        code: code.bytes,
        registers: code.registers + EXTRA_REGISTERS,
        barriers: lowered.barriers,
        param_base: target.info().map_or(0, |g| g.param_base),
        param_bytes: lowered.param_bytes,
        params: lowered.params.clone(),
        shared: lowered.shared,
        stack: cubin::Stack { frame, min: Some(frame), ..cubin::Stack::default() },
        launch: lowered.launch,
        sites: cubin::Sites {
            exits: code.exits,
            warp_wide_masks: vec![u32::MAX; code.warp_wide.len()],
            warp_wide: code.warp_wide,
            ..cubin::Sites::default()
        },
        ..cubin::Function::default()
    }
}

fn resources(function: &cubin::Function) -> Resources {
    Resources {
        name: function.name.clone(),
        registers: function.registers,
        barriers: u32::from(function.barriers),
        stack_bytes: function.stack.frame,
        shared_bytes: function.shared.map_or(0, |s| s.size),
        constant_bytes: function.constant0_bytes(),
    }
}

fn global_bytes(cubin: &Cubin) -> u64 {
    [&cubin.global, &cubin.global_init].into_iter().flatten().map(|image| image.size).sum()
}
