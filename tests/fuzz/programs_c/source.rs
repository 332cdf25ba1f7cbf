//! The C texts of a program: csmith programs for one thread, or as a struct for many threads;
//! programs of `flow` for many.
//!
//! A seed gives a file for the GPU with a kernel `kern` that stores 32 bits per thread, and a file
//! for this host that prints the same in hexadecimal, one line per thread. Threads share nothing:
//! the variables of a csmith program become members of a struct and its functions member functions.
//! All threads except 0 start with different values in its plain integer variables, on which
//! csmith's arithmetic and array indices do not depend.

use super::flow;
use std::path::Path;
use std::process::Command;

/// The origin of a program, and its number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The text of csmith unchanged, in one thread.
    Csmith,
    /// As a struct, in 256 threads.
    CsmithThreads,
    /// Branches, loops and jumps that depend on the thread, in 256 threads.
    Flow,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Csmith, Kind::CsmithThreads, Kind::Flow];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Csmith => "csmith",
            Kind::CsmithThreads => "csmith_threads",
            Kind::Flow => "flow",
        }
    }

    pub fn threads(self) -> u32 {
        if self == Kind::Csmith { 1 } else { 256 }
    }

    fn is_cpp(self) -> bool {
        self == Kind::CsmithThreads
    }

    /// The arguments that select the language.
    pub fn language(self) -> &'static [&'static str] {
        if self.is_cpp() {
            &["-x", "c++", "-std=c++11", "-Wno-c++11-narrowing", "-fno-exceptions", "-fno-rtti"]
        } else {
            &["-x", "c", "-std=gnu11"]
        }
    }
}

/// The two texts.
pub struct Source {
    pub card: String,
    pub native: String,
}

const CARD: &str = "KERNEL void kern(uint32_t *out) { uint32_t t = __nvvm_read_ptx_sreg_tid_x(); out[t] = run(t); }\n";
const NATIVE: &str = "#undef main\n#undef printf\nEXTERN int printf(const char *, ...);\n\
    EXTERN int main(void) { for (uint32_t t = 0; t < THREADS; t++) printf(\"%08x\\n\", run(t)); return 0; }\n";

/// The texts of a seed; `None` for csmith's kinds if it is not installed.
pub fn source(csmith: Option<&Path>, kind: Kind, seed: u64) -> Option<Source> {
    let program = match kind {
        Kind::Csmith => {
            made(csmith?, seed, &[])? + "static uint32_t run(uint32_t t) { program_main(); return checksum; }\n"
        }
        Kind::CsmithThreads => structured(&made(csmith?, seed, &["--lang-cpp"])?)?,
        Kind::Flow => flow::program(seed),
    };
    let (kernel, external) = if kind.is_cpp() { ("extern \"C\"", "extern \"C\"") } else { ("", "extern") };
    let head =
        format!("#define KERNEL {kernel}\n#define EXTERN {external}\n#define THREADS {}\n{program}", kind.threads());
    Some(Source { card: head.clone() + CARD, native: head + NATIVE })
}

/// Sizes of csmith's programs: the default, and smaller ones that end sooner.
const SIZES: [&[&str]; 3] = [
    &[],
    &["--max-funcs", "5", "--max-array-dim", "2", "--max-array-len-per-dim", "5"],
    &["--max-funcs", "3", "--max-block-depth", "4", "--max-block-size", "6", "--max-expr-complexity", "5"],
];

/// The output of csmith for a seed. Packed structures are disabled: programs take addresses of
/// their fields, and clang assumes that pointers are aligned.
fn made(csmith: &Path, seed: u64, more: &[&str]) -> Option<String> {
    // csmith leaves a file in the current directory.
    let folder = tempfile::tempdir().ok()?;
    let mut command = Command::new(csmith);
    command.current_dir(&folder);
    command.args(["--seed", &seed.to_string(), "--no-argc", "--concise", "--no-packed-struct"]);
    command.args(SIZES[seed as usize % SIZES.len()]).args(more);
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// Turns a program into a C++ struct: variables become members, and forward declarations are
/// dropped.
fn structured(text: &str) -> Option<String> {
    let body: String = text
        .lines()
        .filter(|line| !line.starts_with("#include"))
        .filter(|line| !(line.starts_with("static") && line.ends_with(");") && !line.contains('=')))
        .map(|line| line.strip_prefix("static ").unwrap_or(line).to_string() + "\n")
        .collect();
    let names: Vec<&str> = text.lines().filter_map(plain_variable).collect();
    let vary: String = names
        .iter()
        .enumerate()
        .map(|(i, name)| {
            format!("        {name} ^= x * {}u >> {};\n", 0x9e37_79b1u32.wrapping_add(2 * i as u32), i % 24)
        })
        .collect();
    body.contains("main").then_some(())?;
    Some(format!(
        "#define STATE_IN_A_STRUCT\n#include \"csmith.h\"\nstruct Program {{\n#include \"csmith_state.h\"\n{body}\
         void vary(uint32_t x) {{\n{vary}    }}\n}};\n\
         static uint32_t run(uint32_t t) {{ Program p; p.vary(t); p.program_main(); return p.checksum; }}\n"
    ))
}

/// The name of a plain, modifiable integer variable at file level that a line defines.
fn plain_variable(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("static ")?;
    let rest = rest.strip_prefix("volatile ").unwrap_or(rest);
    let (ty, rest) = rest.split_once(' ')?;
    let (name, _) = rest.split_once(" = ")?;
    let integer = ty.trim_start_matches('u').starts_with("int") && ty.ends_with("_t");
    (integer && name.starts_with("g_") && name[2..].bytes().all(|b| b.is_ascii_digit())).then_some(name)
}
