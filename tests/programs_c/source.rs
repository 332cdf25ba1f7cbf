//! The C texts of a program: of csmith as it is for one thread, and as a struct for many; of `flow` for both.
//!
//! Input: a seed. Output: a file for the card with a kernel `kern` that stores 32 bits for each thread, and one for this
//! machine that prints the same in hexadecimal, a line for each thread. Invariant: threads share nothing. The variables of
//! a csmith program are members of a struct for that, its functions member functions; all but thread 0 begin with other
//! numbers in its plain integer variables, which csmith's arithmetic and array indices do not depend on.

use crate::flow;
use std::path::Path;
use std::process::Command;

/// Where a program comes from, and for how many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// csmith's text as it is, in one thread.
    Csmith,
    /// As a struct in 256 threads.
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

    /// The arguments that make a compiler take the text in its language.
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

/// The texts of a seed; without csmith there is none of its kinds.
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

/// Sizes of csmith's programs: the usual ones, and smaller ones that end sooner.
const SIZES: [&[&str]; 3] = [
    &[],
    &["--max-funcs", "5", "--max-array-dim", "2", "--max-array-len-per-dim", "5"],
    &["--max-funcs", "3", "--max-block-depth", "4", "--max-block-size", "6", "--max-expr-complexity", "5"],
];

/// What csmith makes of a seed. Packed structures are left out: programs take addresses of their fields, and clang lets
/// pointers be aligned.
fn made(csmith: &Path, seed: u64, more: &[&str]) -> Option<String> {
    // It leaves a file where it runs.
    let folder = tempfile::tempdir().ok()?;
    let mut command = Command::new(csmith);
    command.current_dir(&folder);
    command.args(["--seed", &seed.to_string(), "--no-argc", "--concise", "--no-packed-struct"]);
    command.args(SIZES[seed as usize % SIZES.len()]).args(more);
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// A program of C++ as a struct: variables become members, and need no forward declaration.
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

/// The name of a plain integer variable of the file, where a line defines one that may change.
fn plain_variable(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("static ")?;
    let rest = rest.strip_prefix("volatile ").unwrap_or(rest);
    let (ty, rest) = rest.split_once(' ')?;
    let (name, _) = rest.split_once(" = ")?;
    let integer = ty.trim_start_matches('u').starts_with("int") && ty.ends_with("_t");
    (integer && name.starts_with("g_") && name[2..].bytes().all(|b| b.is_ascii_digit())).then_some(name)
}
