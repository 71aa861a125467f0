//! The `swiftwater` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    swiftwater_cli::run(std::env::args_os())
}
