//! Calling convention, call sites, parameters and the call graph.

pub(crate) mod abi;
pub(crate) mod alloca;
pub(crate) mod call_graph;
pub(crate) mod call_site;
pub(crate) mod no_abi;
pub(crate) mod params;
pub(crate) mod passing;
