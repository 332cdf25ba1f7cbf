//! Messages on standard error: diagnostics and the resource lines of `-v`.
//!
//! Messages have one of two forms: our own, with the source line and a caret, or exactly that of
//! ptxas (`compat`), for callers that parse it.

use crate::arrays::Each;
use crate::compile::Output;
use crate::diag::{Diagnostic, Severity};
use crate::search::Found;
use crate::tables::targets::Feature;
use crate::tables::{Target, Tuning};

/// Prints messages about the input files.
pub struct Reporter {
    /// Whether messages have exactly the form of ptxas.
    pub compat: bool,
    /// Names and texts of the inputs.
    pub files: Vec<(String, String)>,
}

impl Reporter {
    /// Prints one line after the program's name.
    pub fn say(&self, line: &str) {
        super::tell(&format!("{} {line}\n", if self.compat { "ptxas" } else { "sassafras" }));
    }

    /// Prints diagnostics of the input.
    pub fn print(&self, diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics {
            let file = self.files.get(diagnostic.file as usize);
            let (name, text) = file.map_or(("", ""), |(name, text)| (name, text));
            if self.compat || diagnostic.pos.is_none() {
                let mut line = diagnostic.line(name);
                if line.ends_with("directive at start of file") {
                    line += &format!(" '{name}'");
                }
                self.say(&line);
                // ptxas stops here.
                if diagnostic.severity == Severity::Fatal && diagnostic.pos.is_some() {
                    return;
                }
            } else {
                super::tell(&diagnostic.render(name, text));
            }
        }
    }
}

/// Prints the resource lines of `-v` in the form and order of ptxas: in a cubin, each entry
/// together with its functions; in an object, each function by itself.
pub fn resources(reporter: &Reporter, output: &Output, target: &Target, object: bool) {
    let reported = target.has(Feature::ConstantBanksReported);
    let bank = |bytes: u64, name: &str| {
        if bytes > 0 && reported { format!(", {bytes} bytes cmem[{name}]") } else { String::new() }
    };
    let (three, four) = (bank(output.constant3_bytes, "3"), bank(output.constant4_bytes, "4"));
    reporter.say(&format!("info    : {} bytes gmem{three}{four}", output.global_bytes));
    let time = |name: &str| {
        let ms = output.times.get(name).map_or(0.0, |time| time.as_secs_f64() * 1e3);
        reporter.say(&format!("info    : Compile time = {ms:.3} ms"));
    };
    for f in &output.functions {
        if f.entry {
            reporter.say(&format!("info    : Compiling entry function '{}' for '{}'", f.name, target.name));
        }
        reporter.say(&format!("info    : Function properties for {}", f.name));
        let (stores, loads) = (f.spill_store_bytes, f.spill_load_bytes);
        let frame = f.stack_bytes;
        super::tell(&format!(
            "    {frame} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads\n"
        ));
        if !f.entry {
            if object {
                time(&f.name);
            }
            continue;
        }
        let optional =
            |bytes: u64, what: &str| if bytes > 0 { format!(", {bytes} bytes {what}") } else { String::new() };
        let stack = optional(u64::from(f.cumulative_stack_bytes), "cumulative stack size");
        let shared = optional(f.shared_bytes, "smem");
        let (zero, two) = (bank(u64::from(f.constant_bytes), "0"), bank(f.constant2_bytes, "2"));
        let (registers, barriers) = (f.registers, f.barriers);
        let named =
            ["textures", "surfaces", "samplers"].iter().zip(f.named).filter(|(_, count)| *count > 0 && reported);
        let named: String = named.map(|(what, count)| format!(", {count} {what}")).collect();
        reporter.say(&format!(
            "info    : Used {registers} registers, used {barriers} barriers{stack}{shared}{zero}{two}{named}"
        ));
        time(&f.name);
    }
    output.found.iter().for_each(|found| reporter.say(&format!("info    : {}", search(found))));
}

/// What a search found for a function, in a line.
fn search(found: &Found) -> String {
    let Found { function, tuning, steps, cycles, .. } = found;
    let [before, after] = cycles.each(|cycles| cycles.map_or("no code".to_string(), |cycles| cycles.to_string()));
    let tuning = if *tuning == Tuning::default() { "nothing better".to_string() } else { tuning.to_string() };
    format!("Search of '{function}': {steps} steps, estimate {before} -> {after} cycles, {tuning}")
}
