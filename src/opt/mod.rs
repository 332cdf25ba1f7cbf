//! Optimisations, one file each, by their textbook names. `tables/passes.ron` says when each runs.
//!
//! Every file of the folder is a module, so that a pass takes no line here.

automod::dir!(pub "src/opt");

pub mod combine;
