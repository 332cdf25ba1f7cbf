//! The registers of TEX_QUADS: a read of a texture with gradients by squares of four lanes.
//!
//! The unit takes the derivatives of a coordinate from what the lanes of a square have in it. All
//! four lanes read for one lane after the other, those too that are elsewhere in the code, so that
//! the read has registers of its own, which they keep below their stack pointers meanwhile.

/// Where operands come: the layer and the coordinates, their derivatives by x and by y, the handle,
/// and the offsets or the value to compare with.
pub const COORDINATES: u16 = 4;
pub const BY_X: u16 = 8;
pub const BY_Y: u16 = 11;
pub const HANDLE: u16 = 14;
pub const MORE: u16 = 15;

/// Words of the operands of a read, and those of the second one where the first has no room.
pub const WORDS: u16 = 16;
pub const SECOND: u16 = 2;
/// Results, and a word that is not zero where a texel is absent.
pub const RESULTS: u16 = 20;
pub const ABSENT: u16 = 24;
/// The lanes of the square that ask, twice, and the lane that is read for.
pub const ASKING: u16 = 25;
pub const LANE: u16 = 26;
/// Anything.
pub const SCRATCH: u16 = 0;
/// Registers from this one on keep their values.
pub const KEPT: u16 = 27;
/// A kernel with fewer registers than these has no such read.
pub const LEAST: u32 = 32;

/// All that it writes.
pub const WRITTEN: [u16; 14] = [16, 17, 18, 19, 20, 21, 22, 23, ABSENT, ASKING, LANE, SECOND, SECOND + 1, SCRATCH];
/// The convergence barrier that has the lanes which ask.
pub const BARRIER: u16 = 15;
/// Bytes below the stack pointer of any lane: what it writes, a predicate, and its results.
pub const BYTES: u32 = 4 * (WRITTEN.len() as u32 + 1 + 5);
