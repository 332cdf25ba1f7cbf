//! Control words: stall counts, scoreboards and waits of allocated, scheduled instructions.

pub mod conservative;
pub mod control_words;
pub(crate) mod in_flight;
pub(crate) mod scoreboard_alloc;
