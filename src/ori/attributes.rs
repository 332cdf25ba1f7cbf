//! What is known of an Ori function beside its code: its calling convention, limits, frame, and
//! what its cubin records. Only [`Attributes::rolled`] names parts of the code.

use super::bank_constants::BankConstants;
use super::function::{Convention, Rolled};
use super::shader_constants::ShaderConstants;
use crate::sorted::SortedMap;
use crate::tables::Tuning;
use crate::tables::registers::Changes;

/// What is known of a function beside its code.
#[derive(Clone)]
pub struct Attributes {
    /// Whether optional optimizations may run.
    pub optimise: bool,
    /// Numbers that passes ask for.
    pub tuning: Tuning,
    /// Whether expansions may call slow paths instead of containing them.
    pub slow_paths: bool,
    /// How control enters and leaves the function.
    pub convention: Convention,
    /// Whether its callers know what it changes, so that it saves no registers.
    pub private: bool,
    /// The private functions that it calls, and what they change.
    pub private_callees: SortedMap<String, Changes>,
    /// Bytes of local memory that lowering laid out, from the stack pointer up: outgoing arguments,
    /// then variables.
    pub local_bytes: u32,
    /// Bytes of the whole frame, once allocated: `local_bytes`, then spill slots, then saved
    /// registers.
    pub frame_bytes: u32,
    /// Bytes below the stack pointer of any lane, wherever it is, that the code uses.
    pub below_stack: u32,
    /// Bytes that spill code stores, once allocated.
    pub spill_stores: u32,
    /// Bytes that spill code loads, once allocated.
    pub spill_loads: u32,
    /// Limit on general registers that the cubin may record; `None`: that of the target.
    pub max_registers: Option<u32>,
    /// Most threads of a block, if the kernel says how many.
    pub threads: Option<u32>,
    /// Whether the threads of a warp are in one row of their block, whatever the launch is.
    pub rows: bool,
    /// Registers of a warp at entry, if `setmaxnreg` changes them; `max_registers` is the most that
    /// it ever has.
    pub entry_registers: Option<u32>,
    /// Highest block barrier number in use plus one.
    pub barriers: u32,
    /// Whether the frame is checked against the end of the thread's local memory.
    pub checks_stack: bool,
    /// Loops that must keep their bodies.
    pub rolled: Rolled,
    /// What the code reads from the compiler's constant bank; `None` where it may not.
    pub constants: Option<BankConstants>,
    /// What the host patches before a launch; `None` where it patches nothing.
    pub shader_constants: Option<ShaderConstants>,
}

impl Default for Attributes {
    /// Those of a kernel without limits, which is optimised.
    fn default() -> Attributes {
        Attributes {
            optimise: true,
            tuning: Tuning::default(),
            slow_paths: false,
            convention: Convention::Kernel,
            private: false,
            private_callees: SortedMap::new(),
            local_bytes: 0,
            frame_bytes: 0,
            below_stack: 0,
            spill_stores: 0,
            spill_loads: 0,
            max_registers: None,
            threads: None,
            rows: false,
            entry_registers: None,
            barriers: 0,
            checks_stack: false,
            rolled: Rolled::default(),
            constants: None,
            shader_constants: None,
        }
    }
}
