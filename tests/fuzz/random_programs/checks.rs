//! Properties that hold for every cubin, whatever it computes.

use sassafras::cubin;
use sassafras::sass::{self, Inst, hazards};

/// The static checker of control words reports nothing; every word survives decoding and printing.
pub fn cubin(bytes: &[u8]) -> Result<(), String> {
    let cubin = cubin::read(bytes).map_err(|error| error.to_string())?;
    if let Some(report) = hazards::check(&cubin)?.first() {
        return Err(format!("the checker of control words: {report}"));
    }
    let target = hazards::target_of(&cubin)?;
    for function in &cubin.functions {
        for (i, bytes) in function.code.chunks_exact(16).enumerate() {
            let word = bytes.iter().rev().fold(0u128, |word, byte| word << 8 | u128::from(*byte));
            let inst = sass::decode(target, word).map_err(|error| error.to_string())?;
            let text = sass::text(target, &inst, 16 * i as u64, None) + &sass::hidden(target, &inst);
            let again = sass::parse(target, &text, 16 * i as u64, None).map_err(|error| format!("{text}: {error}"))?;
            let again =
                sass::encode(target, &Inst { ctrl: inst.ctrl, ..again }).map_err(|error| format!("{text}: {error}"))?;
            let encoded = sass::encode(target, &inst).map_err(|error| format!("{text}: {error}"))?;
            if (encoded, again) != (word, word) {
                return Err(format!("{text}: {word:032x} comes back as {encoded:032x} and {again:032x}"));
            }
        }
    }
    Ok(())
}
