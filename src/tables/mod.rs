//! The generated tables and the handwritten types over them.
//!
//! The only place that includes generated code. Everything here is static data; nothing is computed
//! at start-up.

pub mod choices;
pub mod elf;
pub mod encoding;
pub mod helpers;
pub mod images;
pub mod instructions;
pub mod latency;
pub mod legal;
pub mod legality;
pub mod lowering;
pub mod memory;
pub mod mods;
pub mod operands;
pub mod ori;
mod packed;
pub mod passes;
pub mod patches;
pub mod phases;
pub mod ptx;
pub mod regclass;
pub mod registers;
pub mod targets;
pub mod throughput;
pub mod tuning;

pub use encoding::sr;
pub use legal::{Family, Knob, Slot};
pub use mods::Mods;
pub use ori::{Mod, Op, Prop, Role, Says, value};
pub use passes::Pass;
pub use phases::Phase;
pub use targets::{Backend, Feature, Generation, GenerationInfo, Target, backend};
pub use tuning::{Tunable, Tuning};
