//! The `sassafras` program; everything is in `sassafras::cli`, but for the memory that it may use.

mod memory;

#[global_allocator]
static MEMORY: memory::Counted = memory::Counted;

fn main() -> std::process::ExitCode {
    sassafras::cli::main(std::env::args().collect())
}
