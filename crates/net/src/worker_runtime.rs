//! Where a worker runs: on the caller's runtime, or on a thread with a runtime of its own.

use std::thread;

use tokio::runtime::{self, Runtime};

use crate::error::BindError;
use crate::worker::Worker;

/// Why the runtime is there.
const ALIVE: &str = "it is taken out only when dropped";

/// Where a worker runs.
pub(crate) enum WorkerRuntime {
    /// The caller's runtime.
    Here(runtime::Handle),
    /// A thread of its own.
    Thread(OwnRuntime),
}

/// A runtime that may be dropped anywhere: a plain one waits for its tasks, which another runtime
/// around it forbids.
pub(crate) struct OwnRuntime(Option<Runtime>);

impl WorkerRuntime {
    pub(crate) fn handle(&self) -> &runtime::Handle {
        match self {
            Self::Here(handle) => handle,
            Self::Thread(OwnRuntime(runtime)) => runtime.as_ref().expect(ALIVE).handle(),
        }
    }

    pub(crate) fn enter(&self) -> runtime::EnterGuard<'_> {
        self.handle().enter()
    }

    pub(crate) fn run(self, worker: Worker, index: usize) -> Result<(), BindError> {
        match self {
            Self::Here(handle) => {
                handle.spawn(worker);
            }
            Self::Thread(runtime) => {
                thread::Builder::new()
                    .name(format!("quic-{index}"))
                    .spawn(move || runtime.0.as_ref().expect(ALIVE).block_on(worker))
                    .map_err(BindError::Worker)?;
            }
        }
        Ok(())
    }
}

impl OwnRuntime {
    pub(crate) fn new() -> Result<Self, BindError> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build();
        Ok(Self(Some(runtime.map_err(BindError::Worker)?)))
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
