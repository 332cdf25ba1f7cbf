//! Random programs and damaged or slightly wrong cubins.

mod alloc_fuzz;
mod control_flow;
mod cubin_mutations;
mod mutation;
mod programs_c;
mod random;
mod random_programs;

#[allow(dead_code)]
#[path = "../support/judge.rs"]
mod judge;
#[allow(dead_code)]
#[path = "../support/lowering_support/mod.rs"]
mod lowering_support;
#[allow(dead_code)]
#[path = "../support/ptxas.rs"]
mod ptxas;
#[allow(dead_code)]
#[path = "../support/simulate_ptxas_support/mod.rs"]
mod simulate_ptxas_support;
#[allow(dead_code)]
#[path = "../support/vendor.rs"]
mod vendor;
