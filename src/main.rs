//! The `sassafras` program; the command line is connected when lowering lands.

fn main() -> std::process::ExitCode {
    eprintln!("sassafras fatal   : not connected yet");
    std::process::ExitCode::from(255)
}
