//! The encoder as passes see it: which instructions the target can encode.

use crate::analysis::Encoder;
use crate::pipeline::encodable::{encodes, is_legal};

/// The encoder for all passes.
pub const ENCODER: Encoder = Encoder { encodes, is_legal };
