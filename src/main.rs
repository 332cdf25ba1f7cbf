//! The `sassafras` program; everything is in `sassafras::cli`.

fn main() -> std::process::ExitCode {
    sassafras::cli::main(std::env::args().collect())
}
