//! The table of a kernel that says which words of a constant bank the host patches before a launch,
//! and how it computes them.
//!
//! The section `.sassafras.patch.KERNEL` holds it. All numbers are little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 4 | `SPT1` |
//! | 4 | the number of the bank |
//! | 4 | how many words follow |
//!
//! and for each word:
//!
//! | bytes | what |
//! |---|---|
//! | 4 | byte offset of the word in the bank, a multiple of 4 |
//! | 4 | bytes of its program |
//! | … | the program: steps of one byte and an operand of 0, 1, 2 or 4 bytes (`tables::patches`) |

use super::model::{Cubin, Image};
use super::passthrough::KeptSection;
use crate::tables::patches::{PatchedWord, Program, Step};

/// What the name of the section begins with; the name of the kernel follows.
pub const SECTION: &str = ".sassafras.patch.";

/// The first bytes.
const MAGIC: [u8; 4] = *b"SPT1";
/// `SHT_PROGBITS`
const BITS: u32 = 1;
/// Bytes of a bank.
const BANK_BYTES: u32 = 1 << 16;

/// The words of a bank that the host patches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchTable {
    pub bank: u8,
    pub words: Vec<PatchedWord>,
}

impl PatchTable {
    /// The table of a kernel; `None` if the host patches nothing.
    ///
    /// # Errors
    ///
    /// A damaged table.
    pub fn of(cubin: &Cubin, kernel: &str) -> Result<Option<PatchTable>, String> {
        let own = |section: &&KeptSection| section.name.strip_prefix(SECTION) == Some(kernel);
        let Some(section) = cubin.kept.sections.iter().find(own) else { return Ok(None) };
        let bytes = cubin.function(kernel).map_or(0, |function| function.param_bytes);
        let table = PatchTable::read(&section.image.bytes, bytes);
        table.map(Some).map_err(|error| format!("section {}: {error}", section.name))
    }

    /// The section of a kernel.
    pub fn section(&self, kernel: &str) -> KeptSection {
        let bytes = self.bytes();
        let image = Image { size: bytes.len() as u64, align: 4, bytes, ..Image::default() };
        KeptSection { name: format!("{SECTION}{kernel}"), kind: BITS, align: 4, image, ..KeptSection::default() }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(u32::from(self.bank).to_le_bytes());
        out.extend((self.words.len() as u32).to_le_bytes());
        for word in &self.words {
            let mut program = Vec::new();
            for step in &word.program.0 {
                program.push(step.kind as u8);
                program.extend(&step.operand.to_le_bytes()[..step.operand_bytes()]);
            }
            out.extend(word.offset.to_le_bytes());
            out.extend((program.len() as u32).to_le_bytes());
            out.extend(program);
        }
        out
    }

    /// Reads a table; the kernel has so many bytes of parameters.
    ///
    /// # Errors
    ///
    /// What is wrong with the bytes.
    pub fn read(bytes: &[u8], param_bytes: u32) -> Result<PatchTable, String> {
        let mut rest = bytes;
        if take(&mut rest, MAGIC.len())? != MAGIC {
            return Err("it does not begin with SPT1".to_string());
        }
        let bank = number(&mut rest, 4)?;
        let bank = u8::try_from(bank).ok().filter(|bank| *bank < 32).ok_or_else(|| format!("no bank {bank}"))?;
        let mut words = Vec::new();
        for i in 0..number(&mut rest, 4)? {
            let word = word(&mut rest, param_bytes).map_err(|error| format!("word {i}: {error}"))?;
            words.push(word);
        }
        if rest.is_empty() { Ok(PatchTable { bank, words }) } else { Err("bytes follow its last word".to_string()) }
    }
}

fn word(rest: &mut &[u8], param_bytes: u32) -> Result<PatchedWord, String> {
    let offset = number(rest, 4)?;
    if !offset.is_multiple_of(4) || offset >= BANK_BYTES {
        return Err(format!("offset {offset:#x} is no word of a bank"));
    }
    let length = number(rest, 4)? as usize;
    let mut code = take(rest, length)?;
    let mut program = Program::default();
    while !code.is_empty() {
        let byte = number(&mut code, 1)? as u8;
        let kind = Step::kind_of(byte).ok_or_else(|| format!("no step has the number {byte}"))?;
        let operand = number(&mut code, Step::plain(kind).operand_bytes())?;
        program.0.push(Step { kind, operand });
    }
    program.check(param_bytes)?;
    Ok(PatchedWord { offset, program })
}

/// The next bytes.
fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], String> {
    let (first, behind) = rest.split_at_checked(count).ok_or("it ends too early")?;
    *rest = behind;
    Ok(first)
}

/// The next number.
fn number(rest: &mut &[u8], bytes: usize) -> Result<u32, String> {
    Ok(take(rest, bytes)?.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_back_and_every_cut_and_damaged_one_is_an_error() {
        let program = Program::parse("param:8.word:305419896.add.launch:4.mulhi_s.not").unwrap();
        let words = vec![PatchedWord { offset: 8, program }];
        let table = PatchTable { bank: 2, words };
        let bytes = table.bytes();
        assert_eq!(PatchTable::read(&bytes, 12), Ok(table));
        for end in 0..bytes.len() {
            assert!(PatchTable::read(&bytes[..end], 12).is_err());
        }
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            PatchTable::read(&bytes, 12).unwrap_err()
        };
        assert_eq!(with(0, 0), "it does not begin with SPT1");
        assert_eq!(with(4, 32), "no bank 32");
        assert_eq!(with(12, 6), "word 0: offset 0x6 is no word of a bank");
        assert_eq!(with(20, 14), "word 0: no step has the number 14");
        assert_eq!(with(21, 12), "word 0: no word of 12 bytes of parameters is at 12");
        assert_eq!(PatchTable::read(&[&bytes[..], &[0]].concat(), 12).unwrap_err(), "bytes follow its last word");
    }
}
