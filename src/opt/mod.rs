//! Optimisations, one file each.

pub mod copies;
pub mod dead;
pub mod layout;
