//! The encoder as passes see it: which instructions the target can encode.

use crate::analysis::Encoder;
use crate::pipeline::emit;

/// The encoder for all passes.
pub const ENCODER: Encoder = Encoder { encodes: emit::encodes, is_legal: emit::is_legal };
