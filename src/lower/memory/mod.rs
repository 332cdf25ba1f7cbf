//! Loads, stores, atomics and copies, with their address, ordering and cache policy.

pub(crate) mod address;
pub(crate) mod atomic;
pub(crate) mod b128_narrowing;
pub(crate) mod cache;
pub(crate) mod cp_async;
pub(crate) mod load_store;
pub(crate) mod memory_model;
