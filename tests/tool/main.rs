//! The program and the repository: command line, messages, limits, additions, layout.

mod add_target;
mod bad;
mod determinism;
mod options;
mod reports;
mod resources;
mod search;
mod shader_info;
mod tidy;

#[allow(dead_code)]
#[path = "../support/diff.rs"]
mod diff;
#[path = "../support/resources_support/mod.rs"]
mod resources_support;
