//! Optimisations, one file each, by their textbook names. `tables/passes.ron` says when each runs.

pub mod address_mode;
pub mod atom_to_red;
pub mod block_layout;
pub mod combine;
pub mod constant_bank_operands;
pub mod contract;
pub mod copy_propagation;
pub mod dce;
pub mod div_by_constant;
pub mod gvn;
pub mod if_conversion;
pub mod licm;
pub mod ssa;
