//! The compiler's options as one table: the spellings of ptxas, the argument of each, and its
//! effect here.
//!
//! Every option that `ptxas --help` of releases 13.0 and 13.5 lists has a row. An option has its
//! effect, or is accepted because it can only change speed, size or warnings, or is rejected by
//! name; none is ignored silently.

/// The argument of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    Number,
    /// `true` or `false`
    Bool,
    Text,
    /// Texts separated by commas; the option may be repeated, and all values count.
    List,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// Options with an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Target,
    Output,
    Level,
    Verbose,
    Progress,
    PositionIndependent,
    QuietPositionIndependent,
    FunctionClones,
    ListTargets,
    Toolkit,
    Fmad,
    MaxRegisters,
    MaxThreads,
    DeviceRegisters,
    LegacyBarriers,
    MinBlocks,
    Override,
    Entry,
    CompileOnly,
    LineInfo,
    Debug,
    ErrorsAtExit,
    StackChecks,
    PreserveRelocs,
    SuppressDebugInfo,
    InputAsString,
    OptionsFile,
    NoWarnings,
    WarningsAreErrors,
    WarnSpills,
    WarnLocal,
    WarnDouble,
    RegisterLevel,
    FastCompile,
    CacheModifier,
    Threads,
    Jobserver,
    Help,
    Version,
    ListVersions,
    Compat,
    VerifyIr,
    DumpPhases,
    DumpBefore,
    DumpAfter,
    StopAfter,
    DisablePass,
    PrintPhases,
    TimePasses,
    Knob,
    Tune,
    SearchSteps,
    Search,
    ShaderInfo,
}

/// What an option does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The effect of the key.
    Acts(Key),
    /// Accepted without effect, for this reason.
    Nothing(&'static str),
    /// Rejected, with what is missing.
    Refused(&'static str),
    /// Rejected unless the value is this one; then what is missing.
    Only(&'static str, &'static str),
}

/// One option. `short` is the spelling with one dash; names have no dashes.
#[derive(Debug)]
pub struct OptionRow {
    /// Spelling with two dashes.
    pub long: &'static str,
    pub short: &'static str,
    /// Kind of argument.
    pub takes: Takes,
    pub effect: Effect,
    /// Text for `--help`.
    pub help: &'static str,
}

const fn row(long: &'static str, short: &'static str, takes: Takes, effect: Effect, help: &'static str) -> OptionRow {
    OptionRow { long, short, takes, effect, help }
}

use Effect::{Acts, Only, Refused};
use Key::*;
use Takes::{Bool, List, Number, OneOf, Text};

const NONE: Takes = Takes::Nothing;

const SPEED: Effect = Effect::Nothing("may change speed only");
const WARNING: Effect = Effect::Nothing("the warning or note does not exist here");

/// All options: those of ptxas in its order, then those of this program.
#[rustfmt::skip]
pub const OPTIONS: &[OptionRow] = &[
    row("Ofast-compile", "Ofc", Text, Acts(FastCompile), "Level of fast compilation: 0, min, mid, max; accepted, all compile alike"),
    row("allow-expensive-optimizations", "allow-expensive-optimizations", Bool, SPEED, "Accepted: may change speed only"),
    row("apply-controls", "apply-controls", Text, Refused("compiler controls files are not built"), "Refused: compiler controls files are not built"),
    row("compile-as-tools-patch", "astoolspatch", NONE, Refused("code for tools is not built"), "Refused: code for tools is not built"),
    row("compile-only", "c", NONE, Acts(CompileOnly), "Make a relocatable object"),
    row("compiler-annotations", "annotate", NONE, Effect::Nothing("there are no annotations to write"), "Accepted: there are no annotations to write"),
    row("def-load-cache", "dlcm", Text, Acts(CacheModifier), "Default cache modifier of loads (ca, cg, cv, cs); accepted, may change speed only"),
    row("def-store-cache", "dscm", Text, Acts(CacheModifier), "Default cache modifier of stores (wb, cg, wt, cs); accepted, may change speed only"),
    row("device-debug", "g", NONE, Acts(Debug), "Write debug information, and code at level 0 that a debugger can follow"),
    row("device-function-maxrregcount", "func-maxrregcount", Text, Acts(DeviceRegisters), "Accepted: no function is held below what its callers have"),
    row("device-stack-protector", "device-stack-protector", Bool, Only("false", "stack canaries are not built"), "false, or refused: stack canaries are not built"),
    row("disable-optimizer-constants", "disable-optimizer-consts", NONE, Effect::Nothing("the optimiser has no constant bank"), "Accepted: the optimiser has no constant bank"),
    row("disable-warnings", "w", NONE, Acts(NoWarnings), "Say nothing about warnings"),
    row("dont-merge-basicblocks", "no-bb-merge", NONE, SPEED, "Accepted: may change speed only"),
    row("enable-func-clone-sc", "enable-func-clone-sc", Bool, Acts(FunctionClones), "Accepted: may change speed only"),
    row("entry", "e", List, Acts(Entry), "Compile only these entries (comma-separated)"),
    row("extensible-whole-program", "ewp", NONE, Refused("extensible programs are not built"), "Refused: extensible programs are not built"),
    row("fmad", "fmad", Bool, Acts(Fmad), "Allow contraction of a product and a sum (default true)"),
    row("force-load-cache", "flcm", Text, Acts(CacheModifier), "Cache modifier of all loads; accepted, may change speed only"),
    row("force-store-cache", "fscm", Text, Acts(CacheModifier), "Cache modifier of all stores; accepted, may change speed only"),
    row("g-tensor-memory-access-check", "g-tmem-access-check", NONE, Refused("checks of tensor memory are not built"), "Refused: checks of tensor memory are not built"),
    row("generate-line-info", "lineinfo", NONE, Acts(LineInfo), "Write line tables, which a PTX file with .loc gets in any case"),
    row("gno-fabric-access-check", "gno-fabric-access-check", NONE, Effect::Nothing("there are no such checks"), "Accepted: there are no such checks"),
    row("gno-tensor-memory-access-check", "gno-tmem-access-check", NONE, Effect::Nothing("there are no such checks"), "Accepted: there are no such checks"),
    row("gpu-name", "arch", Text, Acts(Target), "Target (see sassafras targets); compute_… and lto_… only check the PTX"),
    row("help", "h", NONE, Acts(Help), "Print this text"),
    row("input-as-string", "ias", Text, Acts(InputAsString), "The PTX text itself, in place of a file"),
    row("jobserver", "jobserver", NONE, Acts(Jobserver), "One more thread to compile with for each free job of the make that called"),
    row("legacy-bar-warp-wide-behavior", "legacy-bar-warp-wide-behavior", NONE, Acts(LegacyBarriers), "Accepted: no target that is built has it"),
    row("list-arch", "arch-ls", NONE, Acts(ListTargets), "Print the numbers of the targets that are built"),
    row("list-version", "version-ls", NONE, Acts(ListVersions), "Print the versions of PTX that are read"),
    row("machine", "m", OneOf(&["64"]), Effect::Nothing("the only kind there is"), "Bits of an address: 64"),
    row("make-errors-visible-at-exit", "make-errors-visible-at-exit", NONE, Acts(ErrorsAtExit), "Wait before each exit until the faults of memory accesses are known"),
    row("maxntid", "maxntid", List, Acts(MaxThreads), "Threads of a block (X[,Y[,Z]]) for entries that do not say it themselves"),
    row("maxrregcount", "maxrregcount", Text, Acts(MaxRegisters), "Most registers of a thread: a number, archmax or archmin"),
    row("minnctapersm", "minnctapersm", Number, Acts(MinBlocks), "Blocks per multiprocessor for entries that do not say it themselves"),
    row("opt-level", "O", Number, Acts(Level), "Optimisation level, 0 to 3 (default 3)"),
    row("optimize-float-atomics", "opt-fp-atomics", NONE, SPEED, "Accepted: may change speed only"),
    row("options-file", "optf", List, Acts(OptionsFile), "Read options from these files (comma-separated)"),
    row("output-file", "o", Text, Acts(Output), "The cubin to write (default elf.o)"),
    row("override-directive-values", "override-directive-values", NONE, Acts(Override), "Options win over .maxntid, .minnctapersm and .maxnreg"),
    row("position-independent-code", "pic", Bool, Acts(PositionIndependent), "Accepted: code is independent of its place; from 13.5 on with a warning"),
    row("preserve-relocs", "preserve-relocs", NONE, Acts(PreserveRelocs), "Accepted with a warning for targets where ptxas does nothing; refused for others"),
    // Not in the help of ptxas; Triton passes it on every call.
    row("regAllocOptLevel", "regAllocOptLevel", Number, SPEED, "Accepted: may change speed only"),
    row("register-usage-level", "regUsageLevel", Number, Acts(RegisterLevel), "0 to 10; accepted, may change speed only"),
    row("return-at-end", "ret-end", NONE, SPEED, "Accepted: may change speed only"),
    row("sanitize", "sanitize", OneOf(&["memcheck", "threadsteer"]), Refused("instrumented code is not built"), "Refused: instrumented code is not built"),
    row("sp-bounds-check", "sp-bounds-check", NONE, Acts(StackChecks), "Check in each function that its frame fits into the thread's local memory"),
    row("split-compile", "split-compile", Number, Acts(Threads), "Threads to compile with; the result does not depend on it"),
    row("suppress-async-bulk-multicast-advisory-warning", "suppress-async-bulk-multicast-advisory-warning", NONE, WARNING, "Accepted: there is no such warning"),
    row("suppress-debug-info", "suppress-debug-info", NONE, Acts(SuppressDebugInfo), "Write no line tables and no debug information, whatever asks for them"),
    row("suppress-double-demote-warning", "suppress-double-demote-warning", NONE, WARNING, "Accepted: there is no such warning"),
    row("suppress-position-independent-code-warning", "suppress-position-independent-code-warning", NONE, Acts(QuietPositionIndependent), "Do not warn of --position-independent-code"),
    row("suppress-sparse-mma-advisory-info", "suppress-sparse-mma-advisory-info", NONE, WARNING, "Accepted: there is no such note"),
    row("suppress-stack-size-warning", "suppress-stack-size-warning", NONE, WARNING, "Accepted: there is no such warning"),
    row("verbose", "v", NONE, Acts(Verbose), "Print registers, stack and memory of each function"),
    row("verbose2", "v2", NONE, Acts(Progress), "The same, and the name of each function before"),
    row("version", "V", NONE, Acts(Version), "Print the version"),
    row("warn-on-double-precision-use", "warn-double-usage", NONE, Acts(WarnDouble), "Warn of double precision"),
    row("warn-on-local-memory-usage", "warn-lmem-usage", NONE, Acts(WarnLocal), "Warn of local memory"),
    row("warn-on-spills", "warn-spills", NONE, Acts(WarnSpills), "Warn of registers that are spilled"),
    row("warning-as-error", "Werror", NONE, Acts(WarningsAreErrors), "Make all warnings into errors"),
    row("toolkit", "", OneOf(&["13.0", "13.5"]), Acts(Toolkit), "The release whose version and warnings are shown: 13.5, or 13.0, as where the program is called ptxas-13.0"),
    row("ptxas-compat", "", NONE, Acts(Compat), "Messages in ptxas's words alone; so too where the program is called ptxas"),
    row("verify-ir", "", NONE, Acts(VerifyIr), "Run the verifier after every pass"),
    row("shader-info", "", Text, Acts(ShaderInfo), "Compute what only depends on the launch before it: FILE says which constant bank the host patches"),
    row("knob", "", List, Acts(Knob), "Set knobs: NAME=VALUE, or NUMBER=VALUE (tables/knobs.ron; comma-separated)"),
    row("tune", "", List, Acts(Tune), "Set tunables: NAME=VALUE (tables/tunables.ron; comma-separated)"),
    row("search-steps", "", Number, Acts(SearchSteps), "Compile each function up to so many times more with other tunables, and keep the code of the shortest estimate; the same bytes every time"),
    row("search", "", Number, Acts(Search), "The same for so many seconds, shared by the functions; what is found depends on the clock"),
    row("verify-each", "", NONE, Acts(VerifyIr), "The same: run the verifier after every pass"),
    row("print-phases", "", NONE, Acts(PrintPhases), "Print the 159 phases with the passes of each; with a file, what each pass did"),
    row("time-passes", "", NONE, Acts(TimePasses), "Print the time of each pass, the longest first"),
    row("dump-before", "", List, Acts(DumpBefore), "Print the function before these passes or phases (comma-separated names, or all)"),
    row("dump-after", "", List, Acts(DumpAfter), "Print the function after these passes or phases (comma-separated names, or all)"),
    row("stop-after", "", Text, Acts(StopAfter), "Stop after this pass, print the function and make no cubin"),
    row("disable-pass", "", List, Acts(DisablePass), "Leave these optional passes out (comma-separated names)"),
    row("dump-phases", "", List, Acts(DumpPhases), "Print the function after these phases (comma-separated names, or all)"),
];

/// The option of a spelling without its dashes.
pub fn find(name: &str, long: bool) -> Option<&'static OptionRow> {
    OPTIONS.iter().find(|row| if long { row.long == name } else { !row.short.is_empty() && row.short == name })
}

/// The commands that may come first in place of options. They repeat those of `clap`, whose lookup
/// would slow down every compilation.
pub const COMMANDS: [&str; 7] = ["bisect", "check", "compare", "disasm", "helpers", "run", "targets"];

/// The text of `--help`.
pub fn help() -> String {
    let mut text = format!(
        "\nUsage  : sassafras [options] <ptx file>,...\n\
         \nCompiles PTX to SASS. Own commands: sassafras {} (each with --help).\n\
         \nOptions\n=======\n\n",
        COMMANDS.join(", ")
    );
    for row in OPTIONS {
        let takes = match row.takes {
            Takes::Nothing => String::new(),
            Takes::Number => " <N>".into(),
            Takes::Bool => " <true|false>".into(),
            Takes::Text | Takes::List => " <value>".into(),
            Takes::OneOf(words) => format!(" <{}>", words.join("|")),
        };
        let short = if row.short.is_empty() { String::new() } else { format!("(-{})", row.short) };
        let long = format!("--{}{takes}", row.long);
        text += &format!("{long:<52}{short}\n        {}\n", row.help);
    }
    text
}
