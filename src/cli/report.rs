//! What is said on standard error: diagnostics and the resource lines of `-v`.
//!
//! Two voices: our own, with the source line and a caret under each message, and the incumbent's exact words (`compat`),
//! for callers that parse them.

use crate::compile::Output;
use crate::diag::{Diagnostic, Severity};
use crate::tables::Target;
use crate::tables::targets::Feature;

/// Says things about some input files.
pub struct Reporter {
    /// Speak exactly as the incumbent does.
    pub compat: bool,
    /// Names and texts of the inputs.
    pub files: Vec<(String, String)>,
}

impl Reporter {
    /// One line behind the program's name.
    pub fn say(&self, line: &str) {
        super::tell(&format!("{} {line}\n", if self.compat { "ptxas" } else { "sassafras" }));
    }

    /// Messages about the input.
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
                // The incumbent reads no further.
                if diagnostic.severity == Severity::Fatal && diagnostic.pos.is_some() {
                    return;
                }
            } else {
                super::tell(&diagnostic.render(name, text));
            }
        }
    }
}

/// The resource lines of `-v`, in the words and the order of ptxas: an entry of a cubin with the functions behind it, an
/// object's functions each for itself.
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
        reporter
            .say(&format!("info    : Used {registers} registers, used {barriers} barriers{stack}{shared}{zero}{two}"));
        time(&f.name);
    }
}
