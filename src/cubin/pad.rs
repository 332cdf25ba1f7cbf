//! Pads a function's code with NOP words to whole blocks of 128 bytes, plus the number of extra
//! blocks in the target's row of `elf/targets.ron`.

use crate::tables::elf::ElfTarget;

/// Bytes of a block.
const BLOCK: usize = 128;

/// Pads code with NOP words as the target requires.
pub fn pad_code(code: &mut Vec<u8>, nop: [u8; 16], target: &ElfTarget) {
    let end = code.len().next_multiple_of(BLOCK) + BLOCK * target.text_blocks as usize;
    while code.len() < end {
        code.extend(nop);
    }
}
