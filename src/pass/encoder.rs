//! What the target encodes, as the encoder answers it.

use crate::analysis::Encoder;
use crate::pipeline::emit;

/// The encoder that every pass asks.
pub const ENCODER: Encoder = Encoder { encodes: emit::encodes, is_legal: emit::is_legal };
