//! Optimizations, one file each, by their textbook names. `tables/passes.ron` says when each runs.
//!
//! Every file in this folder becomes a module automatically, so a new pass needs no line here.

automod::dir!(pub "src/opt");

pub mod combine;
pub mod constants;
pub mod demanded_bits;
pub mod induction;
pub mod local_memory;
pub mod uniform_atomics;
pub mod unroll;
pub mod vectorize;
pub mod wide_forms;
