//! Ctrl-C while experiments run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::runtime::{single_threaded, stop_requested};

/// Becomes true on the first Ctrl-C or SIGTERM; the second ends the program at once, without loss
/// of finished rows.
pub(super) fn on_request(progress: &Progress) -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let (flag, progress) = (Arc::clone(&stop), progress.clone());
    let runtime = single_threaded()?;
    let wait = move || {
        if runtime.block_on(stop_requested()).is_err() {
            return;
        }
        flag.store(true, Ordering::Relaxed);
        progress.note(
            "stopping: current runs are finished and kept (Ctrl-C again stops at once; finished runs \
             are safe)",
        );
        if runtime.block_on(stop_requested()).is_ok() {
            std::process::exit(Exit::Interrupted as i32);
        }
    };
    thread::Builder::new()
        .name("stop".to_owned())
        .spawn(wait)
        .map_err(|error| Failure::from(error).context("cannot start a thread"))?;
    Ok(stop)
}
