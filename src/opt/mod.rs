//! Optimisations, one file each.

pub mod common;
pub mod constants;
pub mod contract;
pub mod copies;
pub mod dead;
pub mod divide;
pub mod fuse;
pub mod hoist;
pub mod layout;
pub mod offsets;
pub mod predicate;
pub mod reduce;
pub mod shifts;
pub mod simplify;
pub mod values;
