//! The async runtime of a command, and how a command is told to stop.

use std::future::Future;
use std::io;

use tokio::runtime::{Builder, Runtime};

use crate::exit::{Exit, Failure};

/// Runs `command` on a runtime of its own with one thread per core.
pub(crate) fn block_on(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = started(Builder::new_multi_thread().enable_all().build())?;
    let outcome = runtime.block_on(command);
    // A file operation that hangs must not keep the program.
    runtime.shutdown_background();
    outcome
}

/// A runtime that lives in the calling thread.
pub(crate) fn single_threaded() -> Result<Runtime, Failure> {
    started(Builder::new_current_thread().enable_all().build())
}

fn started(runtime: io::Result<Runtime>) -> Result<Runtime, Failure> {
    runtime.map_err(|error| Failure::from(error).context("cannot start the runtime"))
}

/// Waits for Ctrl-C or a polite request to end.
pub(crate) async fn stop_requested() -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::from(error).context("cannot wait for Ctrl-C");
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        tokio::select! {
            outcome = tokio::signal::ctrl_c() => outcome.map_err(failed),
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    {
        tokio::signal::ctrl_c().await.map_err(failed)
    }
}

/// The failure of a command that was stopped before its work was done.
pub(crate) fn interrupted() -> Failure {
    Failure::new(Exit::Interrupted, "interrupted")
}
