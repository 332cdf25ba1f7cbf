//! A machine that executes cubins on the CPU.
