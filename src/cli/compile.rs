//! The compile command with the options of ptxas.
//!
//! It writes the cubin, and messages to standard error. The output file is written only if there
//! was no error, first under a temporary name and then renamed.

use super::arguments::{Arguments, Input};
use super::jobserver::Tokens;
use super::options::{self, Key};
use super::passes;
use super::report::{Reporter, resources};
use crate::arrays::Each;
use crate::compile::{self, Output};
use crate::debug::{LINES_TOO, OPTIMISED};
use crate::diag::{Diagnostic, Severity};
use crate::search::Effort;
use crate::shader_info::ShaderInfo;
use crate::tables::Target;
use crate::tables::elf::ElfTarget;
use crate::tables::targets::{TARGETS, Variant};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// The SM number of `archmin`. Source: ptxas 13.0.88 on every target.
const ARCH_MIN: u32 = 32;

/// Compiles and writes the cubin, or prints the errors. The first word is the program's name.
pub fn compile(words: &[String]) -> ExitCode {
    let program = words.first().map_or("", |name| Path::new(name).file_stem().and_then(|s| s.to_str()).unwrap_or(""));
    // A name with a release behind it has lost the last part of that as an extension.
    let called_old = words.first().is_some_and(|name| Path::new(name).file_name().is_some_and(|n| n == "ptxas-13.0"));
    let mut reporter = Reporter { compat: program == "ptxas" || called_old, files: Vec::new() };
    let arguments = match Arguments::parse(words.get(1..).unwrap_or_default()) {
        Ok(arguments) => arguments,
        Err(message) => {
            reporter.print(&[Diagnostic::fatal(message)]);
            return ExitCode::from(super::REFUSED);
        }
    };
    reporter.compat |= arguments.has(Key::Compat);
    super::COMPAT.store(reporter.compat, std::sync::atomic::Ordering::Relaxed);
    let old = arguments.value(Key::Toolkit).map_or(called_old, |toolkit| toolkit == "13.0");
    if let Some(text) = text_asked_for(&arguments, words.len() <= 1, old) {
        super::print(&text);
        return ExitCode::SUCCESS;
    }
    match run(&arguments, &mut reporter, old) {
        Ok(()) => ExitCode::SUCCESS,
        Err(diagnostics) => {
            reporter.print(&diagnostics);
            if diagnostics.iter().any(|d| d.severity == Severity::Error || d.pos.is_some()) {
                reporter.say("fatal   : Ptx assembly aborted due to errors");
            }
            ExitCode::from(super::REFUSED)
        }
    }
}

/// The output of `--help`, `--version`, `--list-version`, `--list-arch`.
fn text_asked_for(arguments: &Arguments, nothing_said: bool, old: bool) -> Option<String> {
    if arguments.has(Key::Help) || nothing_said {
        return Some(options::help());
    }
    if arguments.has(Key::Version) {
        let release = if old { "13.0, V13.0.88" } else { "13.5, V13.5.37" };
        return Some(format!(
            "sassafras: an open assembler of PTX, version {}\n\
             Follows: Cuda compilation tools, release {release}\n",
            env!("CARGO_PKG_VERSION")
        ));
    }
    if arguments.has(Key::PrintPhases) && arguments.inputs.is_empty() {
        return Some(passes::phases(&[]));
    }
    if arguments.has(Key::ListTargets) {
        let built = TARGETS.iter().filter(|t| t.generation.is_some() && t.variant == Variant::Base);
        return Some(built.map(|t| format!("{}\n", t.sm)).collect());
    }
    let versions = || crate::tables::ptx::VERSIONS.iter().map(|(major, minor)| format!("{major}.{minor}\n")).collect();
    arguments.has(Key::ListVersions).then(versions)
}

fn run(arguments: &Arguments, reporter: &mut Reporter, old: bool) -> Result<(), Vec<Diagnostic>> {
    let fatal = |message: String| vec![Diagnostic::fatal(message)];
    let mut warnings: Vec<Diagnostic> = arguments.warnings.iter().map(Diagnostic::note).collect();
    let wanted = options_of(arguments, &mut warnings).map_err(fatal)?;
    if !old {
        warn_of_new_options(arguments, &mut warnings);
    }
    let errors = cache_modifiers(arguments);
    if !errors.is_empty() {
        reporter.print(&errors);
        reporter.print(&warnings);
        return Err(fatal("Ptx assembly aborted due to errors".into()));
    }
    finish_warnings(arguments, reporter, &mut warnings)?;
    if arguments.inputs.is_empty() {
        compile::target_of(&wanted.target)?;
        super::print(&options::help());
        return Ok(());
    }
    reporter.files = read_all(&arguments.inputs)?;
    let texts: Vec<&str> = reporter.files.iter().map(|(_, text)| text.as_str()).collect();
    let tokens = tokens_for(arguments, &texts);
    let wanted = compile::Options { threads: threads_for(arguments, &tokens), ..wanted };
    let output = compile::compile_all(&texts, &wanted)?;
    drop(tokens);
    let mut warnings = output.diagnostics.clone();
    warn_of_resources(arguments, &output, &mut warnings);
    let outcome = finish_warnings(arguments, reporter, &mut warnings);
    output.dumps.iter().for_each(|dump| super::print(&format!("{dump}\n")));
    let target = Target::by_name(&wanted.target);
    if arguments.has(Key::Progress) {
        for f in output.functions.iter().filter(|f| f.entry || wanted.relocatable) {
            reporter.say(&format!("info    : Processing {}", f.name));
        }
    }
    if (arguments.has(Key::Verbose) || arguments.has(Key::Progress))
        && let Some(target) = target
    {
        resources(reporter, &output, target, wanted.relocatable);
    }
    outcome?;
    if arguments.has(Key::PrintPhases) {
        super::print(&passes::phases(&output.records));
    }
    if arguments.has(Key::TimePasses) {
        super::print(&passes::times(&output.records));
    }
    if target.is_some() && wanted.passes.stop_after.is_none() {
        super::write(Path::new(arguments.value(Key::Output).unwrap_or("elf.o")), &output.cubin).map_err(fatal)?;
    }
    Ok(())
}

/// The number of processors.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The threads that `--split-compile` allows; `None` if it is not given.
fn split(a: &Arguments) -> Option<usize> {
    let number = a.value(Key::Threads)?.parse::<usize>().ok()?;
    Some(if number == 0 { processors() } else { number })
}

/// The jobs that make has left, at most one for each function but the first.
fn tokens_for(a: &Arguments, texts: &[&str]) -> Tokens {
    if !a.has(Key::Jobserver) {
        return Tokens::default();
    }
    let functions: usize =
        texts.iter().map(|text| text.matches(".entry").count() + text.matches(".func").count()).sum();
    let most = functions.min(split(a).unwrap_or_else(processors));
    Tokens::take(&std::env::var("MAKEFLAGS").unwrap_or_default(), most.saturating_sub(1))
}

/// How many threads compile functions.
fn threads_for(a: &Arguments, tokens: &Tokens) -> usize {
    if a.has(Key::Jobserver) { 1 + tokens.count() } else { split(a).unwrap_or(1) }
}

/// Prints warnings, or turns them into errors.
fn finish_warnings(a: &Arguments, reporter: &Reporter, warnings: &mut Vec<Diagnostic>) -> Result<(), Vec<Diagnostic>> {
    if a.has(Key::NoWarnings) {
        warnings.clear();
    }
    if a.has(Key::WarningsAreErrors) && warnings.iter().any(|w| w.severity != Severity::Info) {
        let errors = warnings.drain(..).map(|w| match w.severity {
            Severity::Info => w,
            _ => Diagnostic { severity: Severity::Error, ..w },
        });
        return Err(errors.collect());
    }
    reporter.print(warnings);
    Ok(())
}

/// What ptxas 13.5 says of options that 13.0 does not have, or does not warn of.
fn warn_of_new_options(a: &Arguments, warnings: &mut Vec<Diagnostic>) {
    if a.has(Key::PositionIndependent) && !a.has(Key::QuietPositionIndependent) {
        warnings.push(Diagnostic::note(
            "'--position-independent-code' is a deprecated option and is no longer functional. It will be removed in a future release",
        ));
    }
    if a.value(Key::FunctionClones) == Some("true") && !a.has(Key::CompileOnly) {
        warnings.push(Diagnostic::note(
            "Option '--enable-func-clone-sc' requires option '--compile-only'; ignoring since latter is not specified",
        ));
    }
}

fn warn_of_resources(arguments: &Arguments, output: &Output, warnings: &mut Vec<Diagnostic>) {
    for f in &output.functions {
        if arguments.has(Key::WarnLocal) && f.stack_bytes > 0 {
            let (name, size) = (&f.name, f.stack_bytes);
            let text = format!("Local memory used for function '{name}', size of stack frame: {size} bytes");
            warnings.push(Diagnostic::note(text));
        }
        if arguments.has(Key::WarnSpills) && f.spill_store_bytes + f.spill_load_bytes > 0 {
            let (name, stores, loads) = (&f.name, f.spill_store_bytes, f.spill_load_bytes);
            warnings.push(Diagnostic::note(format!(
                "Registers are spilled to local memory in function '{name}', {stores} bytes spill stores, {loads} bytes spill loads"
            )));
        }
    }
}

/// Reads all inputs. Errors name every input that cannot be read.
fn read_all(inputs: &[Input]) -> Result<Vec<(String, String)>, Vec<Diagnostic>> {
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    for input in inputs {
        match read(input) {
            Ok(file) => files.push(file),
            Err(message) => errors.push(Diagnostic::fatal(message)),
        }
    }
    if errors.is_empty() {
        return Ok(files);
    }
    errors.push(Diagnostic::fatal("Ptx assembly aborted due to errors"));
    Err(errors)
}

/// Options that set a cache modifier, with the accesses they apply to and the allowed modifiers.
/// Source: ptxas 13.0.88, each modifier with each option.
const CACHE_MODIFIERS: [(&str, &str, &[&str]); 4] = [
    ("def-load-cache", "load", &["ca", "cg", "cs", "cv", "lu"]),
    ("force-load-cache", "load", &["ca", "cg", "cs", "cv", "lu"]),
    ("def-store-cache", "store", &["wb", "cg", "cs", "wt"]),
    ("force-store-cache", "store", &["wb", "cg", "cs", "wt"]),
];

/// Errors in the cache modifiers given by options.
fn cache_modifiers(a: &Arguments) -> Vec<Diagnostic> {
    let wrong = CACHE_MODIFIERS.iter().filter_map(|(option, access, known)| {
        let value = a.value_of(Key::CacheModifier, option).filter(|value| !known.contains(value))?;
        let text = format!("Invalid default cache modifier on {access} specified: {value}");
        Some(Diagnostic { severity: Severity::Error, ..Diagnostic::note(text) })
    });
    wrong.collect()
}

/// The name of an input for messages, and its text.
fn read(input: &Input) -> Result<(String, String), String> {
    let text = |bytes: Vec<u8>| match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    match input {
        Input::File(path) => {
            let name = path.display().to_string();
            match super::read(path) {
                Ok(bytes) => Ok((name, text(bytes))),
                Err(_) => Err(format!("Input file '{name}' could not be opened")),
            }
        }
        Input::Stdin => {
            let read = super::read_all(&mut std::io::stdin().lock(), 0);
            read.map(|bytes| ("stdin".to_string(), text(bytes))).map_err(|e| format!("Input could not be read: {e}"))
        }
        Input::Text(text) => Ok(("application ptx input".into(), text.clone())),
    }
}

/// Converts the command line's options to the compiler's.
fn options_of(a: &Arguments, warnings: &mut Vec<Diagnostic>) -> Result<compile::Options, String> {
    let lowest = Target::lowest_built().name;
    let mut wanted = compile::Options::new(a.value(Key::Target).unwrap_or(lowest));
    let number = |key| a.value(key).and_then(|value| value.parse::<i64>().ok());
    // As in ptxas, a level above the highest means the highest.
    wanted.opt_level = number(Key::Level).unwrap_or(3).clamp(0, 3) as u8;
    wanted.fmad = a.value(Key::Fmad) != Some("false");
    wanted.max_registers = max_registers(a.value(Key::MaxRegisters), &wanted.target, warnings)?;
    if a.has(Key::DeviceRegisters) && !a.has(Key::CompileOnly) {
        let option = "Command line option 'device-function-maxrregcount'";
        let text = format!("{option} not supported for 'whole program compilation', will be ignored");
        warnings.push(Diagnostic::note(text));
    }
    for (key, name) in [(Key::MinBlocks, "minnctapersm"), (Key::MaxThreads, "maxntid")] {
        if a.has(Key::MaxRegisters) && a.has(key) {
            let text = format!("Conflicting options -maxrregcount and -{name} specified, ignoring -{name} option");
            warnings.push(Diagnostic::note(text));
        }
    }
    if !a.has(Key::MaxRegisters) {
        wanted.max_threads = threads(&a.list(Key::MaxThreads), warnings);
    }
    if a.has(Key::LegacyBarriers) {
        warnings.extend(LEGACY_BARRIERS.each(Diagnostic::note));
    }
    wanted.min_blocks_per_sm = number(Key::MinBlocks).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
    wanted.override_directives = a.has(Key::Override);
    wanted.entries = a.list(Key::Entry);
    wanted.relocatable = a.has(Key::CompileOnly);
    (wanted.debug, wanted.level_given) = (a.has(Key::Debug), number(Key::Level).is_some());
    if wanted.debug && a.has(Key::LineInfo) {
        warnings.push(Diagnostic::note(LINES_TOO));
    }
    if wanted.debug && wanted.level_given && wanted.opt_level > 0 {
        return Err(OPTIMISED.to_string());
    }
    wanted.line_info = a.has(Key::LineInfo);
    wanted.errors_at_exit = a.has(Key::ErrorsAtExit);
    wanted.stack_checks = a.has(Key::StackChecks);
    preserve_relocs(a, &wanted.target, warnings)?;
    wanted.suppress_debug_info = a.has(Key::SuppressDebugInfo);
    wanted.warn_double = a.has(Key::WarnDouble);
    passes::apply(a, &mut wanted)?;
    wanted.shader_info = a.value(Key::ShaderInfo).map(|path| shader_info(Path::new(path))).transpose()?;
    a.list(Key::Knob).iter().try_for_each(|knob| wanted.knobs.set(knob))?;
    a.list(Key::Tune).iter().try_for_each(|tunable| wanted.tuning.set(tunable))?;
    wanted.search = effort(number(Key::SearchSteps), number(Key::Search))?;
    if let Some(level) = number(Key::RegisterLevel).filter(|level| !(0..=10).contains(level)) {
        let text = format!("Value of RegUsageLevel ({level}) is out of valid range {{0..10}}, option will be ignored");
        warnings.push(Diagnostic::note(text));
    }
    if let Some(n) = number(Key::Threads).filter(|n| *n < 0) {
        return Err(format!("Invalid value '{n}' for option '--split-compile'"));
    }
    if let Some(level) = a.value(Key::FastCompile).filter(|level| !["0", "min", "mid", "max"].contains(level)) {
        return Err(format!("Invalid value for --Ofast-compile/-Ofc ({level}), is not 'max', 'mid', 'min', or '0'"));
    }
    check_fast_compile(a)?;
    Ok(wanted)
}

/// How long to search: `--search-steps`, `--search`, or neither.
fn effort(steps: Option<i64>, seconds: Option<i64>) -> Result<Effort, String> {
    let positive = |option: &str, value: i64| {
        let number = u32::try_from(value).ok().filter(|number| *number > 0);
        number.ok_or_else(|| format!("Invalid value '{value}' for option '--{option}'"))
    };
    let steps = steps.map(|value| positive("search-steps", value)).transpose()?;
    let time = seconds.map(|value| positive("search", value)).transpose()?;
    let time = time.map(|seconds| Duration::from_secs(seconds.into()));
    Ok(Effort { steps: steps.unwrap_or(if time.is_some() { u32::MAX } else { 0 }), time })
}

/// The file of `--shader-info`. Its mistakes are told with their positions.
///
/// # Errors
///
/// A file that cannot be read, or has mistakes.
pub fn shader_info(path: &Path) -> Result<ShaderInfo, String> {
    let name = path.display().to_string();
    let bytes = super::read(path).map_err(|_| format!("Input file '{name}' could not be opened"))?;
    let text = String::from_utf8_lossy(&bytes);
    ShaderInfo::parse(&text).map_err(|errors| {
        errors.iter().for_each(|error| super::tell(&error.render(&name, &text)));
        format!("File '{name}' says not what the host patches")
    })
}

/// `--preserve-relocs`. Source: ptxas 13.0.88 on six targets; where its files have tables with and
/// without addends it keeps relocations of code, elsewhere it warns and writes the same as without.
fn preserve_relocs(a: &Arguments, target: &str, warnings: &mut Vec<Diagnostic>) -> Result<(), String> {
    let elf = Target::by_name(target).and_then(|target| ElfTarget::of_sm(target.sm));
    if !a.has(Key::PreserveRelocs) {
        return Ok(());
    }
    if elf.is_some_and(|elf| elf.layout.info().split_relocs) {
        return Err("Option 'preserve-relocs' is refused: keeping relocations is not built".to_string());
    }
    let text = "option is not fully implemented for";
    warnings.push(Diagnostic::note(format!("'--preserve-relocs' {text} '{target}' and may not work as expected")));
    Ok(())
}

/// `--maxrregcount`: too small a value is raised to the minimum of the calling convention; too
/// large a value means no limit.
fn max_registers(value: Option<&str>, target: &str, warnings: &mut Vec<Diagnostic>) -> Result<Option<u32>, String> {
    // An unknown target is diagnosed later.
    let Some(info) = Target::by_name(target).and_then(Target::info) else { return Ok(None) };
    let (least, most) = (info.abi_min, info.reg_limit);
    let count = match value {
        None => return Ok(None),
        Some("archmin") => return Ok(Some(ARCH_MIN)),
        Some("archmax") => return Ok(Some(most)),
        Some(text) => match number_of(text) {
            Some(count) => count,
            None => return Err(format!("Invalid value '{text}' for option 'maxrregcount'")),
        },
    };
    match u32::try_from(count).ok().filter(|count| *count <= most) {
        None => {
            warnings.push(Diagnostic::note(format!("Too big maxrregcount value specified {count}, will be ignored")));
            Ok(None)
        }
        Some(count) if count < least => {
            let text = format!("adjusting per thread register count of {count} to lower bound of {least}");
            warnings.push(Diagnostic::note(format!("For profile {target} {text}")));
            Ok(Some(least))
        }
        fits => Ok(fits),
    }
}

/// A number in decimal or hexadecimal; an empty text is 0.
fn number_of(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None if text.is_empty() => Some(0),
        None => text.parse().ok(),
    }
}

/// The warnings about `--legacy-bar-warp-wide-behavior`, the same for all targets.
const LEGACY_BARRIERS: [&str; 2] = [
    "'--legacy-bar-warp-wide-behavior' is a deprecated option, It will be removed in future release and is not recommended",
    // The text names this target whatever the actual one is.
    concat!(
        "Command line option '--legacy-bar-warp-wide-behavior' not supported for '.target sm",
        "_70', will be ignored"
    ),
];

/// Checks that the fast-compile level and the optimisation level are compatible.
fn check_fast_compile(a: &Arguments) -> Result<(), String> {
    let (Some(fast), Some(level)) = (a.value(Key::FastCompile), a.value(Key::Level)) else { return Ok(()) };
    let (same, others) = match fast {
        "max" => ("0", "1,2,3"),
        "mid" | "min" => ("1", "0,2,3"),
        _ => return Ok(()),
    };
    if level == same {
        return Ok(());
    }
    Err(format!("Conflicting options -opt-level=<{others}> and --Ofast-compile={fast} specified"))
}

/// `X[,Y[,Z]]`; as in ptxas, 0 or a word that is not a number means no limit.
fn threads(parts: &[String], warnings: &mut Vec<Diagnostic>) -> Option<[u32; 3]> {
    let mut out = [1; 3];
    if parts.len() > out.len() {
        let text = "Too many values specified for option '-maxntid', option will be ignored";
        warnings.push(Diagnostic::note(text));
        return None;
    }
    for (slot, part) in out.iter_mut().zip(parts) {
        *slot = part.trim().parse().ok().filter(|n| *n > 0)?;
    }
    (!parts.is_empty()).then_some(out)
}
