//! The `swiftwater` command: arguments, printing, and the small protocols that the commands use
//! over QUIC. The transport itself is in the crates below this one.
//!
//! This library exists so that the command's parts can be tested; it has no stable interface for
//! other programs. Programs use the `swiftwater` crate.
//!
//! - [`cli`]: the command line; [`exit`]: exit codes and failures.
//! - [`commands`]: one module per command, the larger ones in [`perf`], [`lab`] and [`demo`].
//! - [`hq`]: the `hq-interop` protocol; [`part_file`]: files that appear only when complete.
//! - [`transport`]: the only place that configures the stack.

#![forbid(unsafe_code)]

pub mod build_commit;
pub mod cli;
pub mod commands;
pub mod cpu;
pub mod demo;
pub mod digest;
pub mod duration;
pub mod exit;
pub mod files;
pub mod hq;
pub mod identity;
pub mod key_values;
pub mod lab;
pub mod link_args;
pub mod listen_address;
mod logging;
pub mod migrate;
pub mod multipath;
pub mod output;
pub mod part_file;
pub mod perf;
pub mod progress;
pub mod proxies;
mod runtime;
pub mod secrets;
pub mod size;
pub mod stats;
pub mod table;
pub mod tls_alert;
pub mod transport;
pub mod url;
mod web_content;

pub use crate::commands::get::args as get_args;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::commands::get::args::Protocol;
use crate::exit::{Exit, Failure};
use crate::logging::Logging;
use crate::perf::args::PerfCommand;

/// Runs the command that `args` (program name first) describe and returns its exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let outcome = match Cli::from_args(args) {
        Ok(cli) => {
            let logging = logging::start(log_level(&cli));
            dispatch(cli, &logging)
        }
        Err(outcome) => outcome,
    };
    match outcome {
        Ok(()) => Exit::Success.into(),
        Err(failure) => {
            if !failure.message().is_empty() {
                output::note(&format!("error: {failure}"));
            }
            failure.exit.into()
        }
    }
}

/// Number of `-v` that apply to the log. `get` over HTTP uses the first for requests and responses, in its
/// own format, which log lines would disturb.
fn log_level(cli: &Cli) -> u8 {
    match &cli.command {
        Command::Get(args) if args.protocol != Protocol::Hq => cli.verbose.saturating_sub(1),
        _ => cli.verbose,
    }
}

fn dispatch(cli: Cli, logging: &Logging) -> Result<(), Failure> {
    match cli.command {
        Command::Serve(args) => runtime::block_on(commands::serve::run(*args, logging)),
        Command::Get(args) => runtime::block_on(commands::get::run(*args, cli.verbose > 0)),
        Command::Play(args) => runtime::block_on(commands::play::run(*args)),
        Command::Perf(args) => match args.command {
            PerfCommand::Server(args) => runtime::block_on(perf::server::run(args)),
            PerfCommand::Client(args) => runtime::block_on(perf::client::run(args)),
            PerfCommand::Loopback(args) => perf::loopback::run(&args),
        },
        Command::Relay(args) => runtime::block_on(commands::relay::run(*args)),
        Command::Tunnel(args) => runtime::block_on(commands::tunnel::run(*args, logging)),
        Command::Sim(args) => commands::sim::run(&args),
        Command::Lab(args) => lab::run(args),
        Command::Demo(args) => {
            demo::prepare(&args);
            runtime::block_on(demo::run(*args))
        }
        Command::Completions(args) => commands::generate::completions(args.shell),
        Command::Man(args) => commands::generate::man(args.directory.as_deref()),
    }
}
