//! Our cubins of files, each compiled once for all judges of this process.

use sassafras::compile::{Options, compile};
use sassafras::diag::Diagnostic;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// A cubin, or why there is none.
pub type Made = Result<Vec<u8>, Vec<Diagnostic>>;

/// The cubin of a text, compiled with the verifier on.
pub fn compiled(source: &str, options: Options) -> Made {
    compile(source, &Options { verify_ir: true, ..options }).map(|output| output.cubin)
}

/// That for a target with the usual options, which the first judge that asks compiles.
pub fn cubin(source: &str, target: &str) -> Arc<Made> {
    type All = Mutex<HashMap<[String; 2], Arc<OnceLock<Arc<Made>>>>>;
    static ALL: OnceLock<All> = OnceLock::new();
    let key = [source, target].map(str::to_string);
    let cell = ALL.get_or_init(Mutex::default).lock().expect("no panic").entry(key).or_default().clone();
    cell.get_or_init(|| Arc::new(compiled(source, Options::new(target)))).clone()
}
