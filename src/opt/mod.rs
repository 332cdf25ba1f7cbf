//! Optimisations, one file each.

pub mod contract;
pub mod copies;
pub mod dead;
pub mod layout;
