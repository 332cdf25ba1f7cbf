//! What kernels compute on the interpreter and on the simulator: numbers, corpora, helpers.

mod corpus;
mod corpus_launches;
mod deep_nests;
mod division;
mod exec;
mod foreign;
mod helpers;
mod interpreter;
mod lowering_coverage;
mod many_variables;
mod oracle_text;
mod ours;
mod ptxas_bugs;
mod shader_constants;
mod simulate_ptxas;
mod slice;
mod soft_floats;

#[path = "../support/csv.rs"]
mod csv;
#[allow(dead_code)]
#[path = "../support/exact.rs"]
mod exact;
#[allow(dead_code)]
#[path = "../support/listed.rs"]
mod listed;
#[allow(dead_code)]
#[path = "../support/manifest.rs"]
mod manifest;
#[allow(dead_code)]
#[path = "../support/ptxas.rs"]
mod ptxas;
#[allow(dead_code)]
#[path = "../support/simulate_ptxas_support/mod.rs"]
mod simulate_ptxas_support;
#[path = "../support/turns.rs"]
mod turns;
#[allow(dead_code)]
#[path = "../support/vendor.rs"]
mod vendor;
