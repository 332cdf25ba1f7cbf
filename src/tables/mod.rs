//! The generated tables and the handwritten types over them.
