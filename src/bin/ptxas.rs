//! The program under the name that callers of ptxas look for: `sassafras::cli` names itself `ptxas`
//! in messages when it is called so.

#[path = "../memory/mod.rs"]
mod memory;

#[global_allocator]
static MEMORY: memory::Counted = memory::Counted;

fn main() -> std::process::ExitCode {
    memory::keep();
    sassafras::cli::main(std::env::args().collect())
}
