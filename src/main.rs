//! The `sassafras` program: calls `sassafras::cli` with a memory limit (`memory`).

mod memory;

#[global_allocator]
static MEMORY: memory::Counted = memory::Counted;

fn main() -> std::process::ExitCode {
    memory::keep();
    sassafras::cli::main(std::env::args().collect())
}
