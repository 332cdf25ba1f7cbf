//! Padding of a function's code.
//!
//! Input: instruction words and the word that stands for NOP. Output: the code in whole blocks of 128 bytes, and as many
//! blocks more as the target's row of `elf/targets.ron` says. Invariant: only whole NOP words are appended.

use crate::tables::elf::ElfTarget;

/// Bytes of a block.
const BLOCK: usize = 128;

/// Pads code with NOP words in the way of the target.
pub fn pad_code(code: &mut Vec<u8>, nop: [u8; 16], target: &ElfTarget) {
    let end = code.len().next_multiple_of(BLOCK) + BLOCK * target.text_blocks as usize;
    while code.len() < end {
        code.extend(nop);
    }
}
