//! Optimisations, one file each.
