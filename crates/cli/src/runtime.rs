//! The async runtime of a command, and its termination signals.

use std::future::Future;
use std::io;

use tokio::runtime::{Builder, Runtime};

use crate::exit::{Exit, Failure};

/// Runs `command` on a new runtime with one thread per core.
pub(crate) fn block_on(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = started(Builder::new_multi_thread().enable_all().build())?;
    let outcome = runtime.block_on(command);
    // A file operation that hangs must not block the end of the program.
    runtime.shutdown_background();
    outcome
}

/// A runtime in the calling thread.
pub(crate) fn single_threaded() -> Result<Runtime, Failure> {
    started(Builder::new_current_thread().enable_all().build())
}

fn started(runtime: io::Result<Runtime>) -> Result<Runtime, Failure> {
    runtime.map_err(|error| Failure::from(error).context("cannot start the runtime"))
}

/// Waits for Ctrl-C or SIGTERM.
pub(crate) async fn stop_requested() -> Result<(), Failure> {
    StopRequests::new()?.next().await
}

/// Requests to stop: Ctrl-C, SIGTERM. From its creation on they no longer end the process, and none
/// is missed.
pub(crate) struct StopRequests {
    #[cfg(unix)]
    interrupts: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminations: tokio::signal::unix::Signal,
}

impl StopRequests {
    /// Installs the handlers.
    pub(crate) fn new() -> Result<Self, Failure> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let take = |kind| signal(kind).map_err(no_signals);
            Ok(Self {
                interrupts: take(SignalKind::interrupt())?,
                terminations: take(SignalKind::terminate())?,
            })
        }
        #[cfg(not(unix))]
        {
            Ok(Self {})
        }
    }

    /// Waits for the next.
    pub(crate) async fn next(&mut self) -> Result<(), Failure> {
        #[cfg(unix)]
        {
            tokio::select! {
                _ = self.interrupts.recv() => {}
                _ = self.terminations.recv() => {}
            }
            Ok(())
        }
        #[cfg(not(unix))]
        {
            tokio::signal::ctrl_c().await.map_err(no_signals)
        }
    }
}

fn no_signals(error: io::Error) -> Failure {
    Failure::from(error).context("cannot wait for Ctrl-C")
}

/// Requests to reload the configuration: SIGHUP. There are none where the system has no signals.
pub(crate) struct ReloadRequests {
    #[cfg(unix)]
    hangups: tokio::signal::unix::Signal,
}

impl ReloadRequests {
    /// Installs the handler.
    pub(crate) fn new() -> Result<Self, Failure> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let hangups = signal(SignalKind::hangup())
                .map_err(|error| Failure::from(error).context("cannot wait for SIGHUP"))?;
            Ok(Self { hangups })
        }
        #[cfg(not(unix))]
        {
            Ok(Self {})
        }
    }

    /// Waits for the next.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        if self.hangups.recv().await.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// The failure of a command that was stopped before its work was done.
pub(crate) fn interrupted() -> Failure {
    Failure::new(Exit::Interrupted, "interrupted")
}
