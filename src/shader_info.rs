//! The file of `--shader-info`: the constant bank that the host patches before a launch, and the
//! kernels for which it does.
//!
//! A statement a line, `#` begins a comment:
//!
//! ```text
//! bank 2 capacity 256     # bytes of each kernel's bank that the host patches
//! kernel scale            # only this kernel; without such a line every kernel
//! ```
//!
//! What a kernel computes of its parameters, of the sizes of the launch and of numbers alone, with
//! at least three uses (one in a loop counts ten times), becomes a word of that bank: a product of
//! two sizes, a quotient, a row's address. The cubin has a section `.sassafras.patch.KERNEL` with a
//! program for each word (`cubin::patches` has its bytes). `sassafras run` evaluates it; another
//! host calls `sassafras_patch` of `src/sim/patches.c` and puts the words in
//! `.nv.constant2.KERNEL` before the driver loads the cubin, as
//! [`patched`](crate::sim::patches::patched) does. A cubin whose words nobody patched computes with
//! zeros. Without the option nothing of this is there.

use crate::diag::{Diagnostic, Pos};

/// The bank that programs go to: the cubin brings it with it, so that a host can fill it.
const BANK: u32 = 2;
/// Banks that a host of the published compiler patches, too.
const DRIVER_BANKS: [u32; 2] = [0, 4];
/// Most bytes that a host patches: as much as leaves room for what else stands in the bank.
const MOST: u32 = 1 << 15;

/// What the host does before a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShaderInfo {
    /// Bytes of a kernel's bank that it patches.
    pub capacity: u32,
    /// The kernels; empty means all.
    pub kernels: Vec<String>,
}

/// A word and its column, from 1.
type Word<'a> = (&'a str, u32);

impl ShaderInfo {
    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// Each line that is no statement, with its position.
    pub fn parse(text: &str) -> Result<ShaderInfo, Vec<Diagnostic>> {
        let (mut capacity, mut kernels, mut errors) = (None, Vec::new(), Vec::new());
        for (line, text) in (1..).zip(text.lines()) {
            let words = words(text.split_once('#').map_or(text, |(before, _)| before));
            let end = words.last().map_or(1, |(word, col)| col + word.len() as u32);
            let error = |col: u32, message: String| Diagnostic::error(Pos { line, col }, message);
            let done = match words.as_slice() {
                [] => Ok(()),
                [("bank", at), ..] if capacity.is_some() => Err((*at, "The bank is stated already".to_string())),
                [("bank", _), rest @ ..] => bank(rest, end).map(|bytes| capacity = Some(bytes)),
                [("kernel", _), (name, _)] => {
                    kernels.push(name.to_string());
                    Ok(())
                }
                [("kernel", _)] => Err((end, "The name of a kernel is missing".to_string())),
                [("kernel", _), _, (word, at), ..] => Err((*at, format!("'{word}' follows the name of a kernel"))),
                [(word, at), ..] => Err((*at, format!("'{word}' is no statement; known are bank and kernel"))),
            };
            errors.extend(done.err().map(|(col, message)| error(col, message)));
        }
        match capacity {
            _ if !errors.is_empty() => Err(errors),
            Some(capacity) => Ok(ShaderInfo { capacity, kernels }),
            None => Err(vec![Diagnostic::error(Pos { line: 1, col: 1 }, "No line states the bank")]),
        }
    }

    /// Whether the host patches a kernel.
    pub fn applies(&self, kernel: &str) -> bool {
        self.kernels.is_empty() || self.kernels.iter().any(|name| name == kernel)
    }
}

/// `NUMBER capacity BYTES`, which `end` is the column behind; returns the bytes.
fn bank(words: &[Word], end: u32) -> Result<u32, (u32, String)> {
    let word = |i: usize| words.get(i).copied().unwrap_or(("", end));
    let number = |i: usize, what: &str| {
        let (text, at) = word(i);
        text.parse::<u32>().map_err(|_| (at, format!("'{text}' is no {what}")))
    };
    let (number_of_bank, at) = (number(0, "number of a bank")?, word(0).1);
    if DRIVER_BANKS.contains(&number_of_bank) {
        return Err((at, format!("Bank {number_of_bank} is refused: the driver fills it; bank {BANK} is built")));
    }
    if number_of_bank != BANK {
        return Err((at, format!("Nothing is extracted to bank {number_of_bank}; it must be {BANK}")));
    }
    if word(1).0 != "capacity" {
        return Err((word(1).1, format!("'{}' stands where 'capacity' must stand", word(1).0)));
    }
    let bytes = number(2, "number of bytes")?;
    if bytes > MOST || !bytes.is_multiple_of(8) {
        return Err((word(2).1, format!("{bytes} bytes are no capacity: a multiple of 8 up to {MOST}")));
    }
    match words.get(3) {
        Some((word, at)) => Err((*at, format!("'{word}' follows the capacity"))),
        None => Ok(bytes),
    }
}

/// The words of a line.
fn words(line: &str) -> Vec<Word<'_>> {
    let starts = |at: &usize| *at == 0 || line[..*at].ends_with(char::is_whitespace);
    let places = line.char_indices().filter(|(_, c)| !c.is_whitespace()).map(|(at, _)| at).filter(starts);
    places.zip(line.split_whitespace()).map(|(at, word)| (word, at as u32 + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read() {
        let info = ShaderInfo::parse("# a host\nbank 2 capacity 64 # bytes\n\nkernel a\n  kernel b\n").unwrap();
        assert_eq!((info.capacity, info.kernels.len()), (64, 2));
        assert!(info.applies("a") && info.applies("b") && !info.applies("c"));
        assert!(ShaderInfo::parse("bank 2 capacity 0").unwrap().applies("c"));
    }

    #[test]
    fn every_mistake_has_a_position() {
        let wrong = |text: &str| {
            let errors = ShaderInfo::parse(text).unwrap_err();
            let pos = errors[0].pos.unwrap();
            (pos.line, pos.col, errors[0].message.clone())
        };
        let tell = |line, col, message: &str| (line, col, message.to_string());
        assert_eq!(wrong(""), tell(1, 1, "No line states the bank"));
        assert_eq!(wrong("\n  tank 2"), tell(2, 3, "'tank' is no statement; known are bank and kernel"));
        assert_eq!(wrong("bank"), tell(1, 5, "'' is no number of a bank"));
        assert_eq!(wrong("bank 0 capacity 8"), tell(1, 6, "Bank 0 is refused: the driver fills it; bank 2 is built"));
        assert_eq!(wrong("bank 4 capacity 8"), tell(1, 6, "Bank 4 is refused: the driver fills it; bank 2 is built"));
        assert_eq!(wrong("bank 3 capacity 8"), tell(1, 6, "Nothing is extracted to bank 3; it must be 2"));
        assert_eq!(wrong("bank 2 size 8"), tell(1, 8, "'size' stands where 'capacity' must stand"));
        assert_eq!(wrong("bank 2 capacity -8"), tell(1, 17, "'-8' is no number of bytes"));
        assert_eq!(wrong("bank 2 capacity 12"), tell(1, 17, "12 bytes are no capacity: a multiple of 8 up to 32768"));
        assert_eq!(wrong("bank 2 capacity 8 9"), tell(1, 19, "'9' follows the capacity"));
        assert_eq!(wrong("bank 2 capacity 8\nbank 2 capacity 8"), tell(2, 1, "The bank is stated already"));
        assert_eq!(wrong("bank 2 capacity 8\nkernel"), tell(2, 7, "The name of a kernel is missing"));
        assert_eq!(wrong("bank 2 capacity 8\nkernel a b"), tell(2, 10, "'b' follows the name of a kernel"));
    }
}
