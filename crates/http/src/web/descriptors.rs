//! Exhaustion of file descriptors of the process or the system: logged at most once a minute.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval between two log lines.
const INTERVAL: Duration = Duration::from_secs(60);

static SAID: Mutex<Option<Instant>> = Mutex::new(None);

/// Whether a call failed for lack of a file descriptor (EMFILE, ENFILE). If it did, that is logged at
/// error level, once a minute for the whole process.
pub fn are_exhausted(error: &io::Error) -> bool {
    if !is_exhaustion(error) {
        return false;
    }
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.is_none_or(|then| then.elapsed() >= INTERVAL) {
        *said = Some(Instant::now());
        tracing::error!(%error, "no file descriptor is left: raise the limit (ulimit -n) or lower those of the server");
    }
    true
}

#[cfg(unix)]
fn is_exhaustion(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let code = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE]
        .into_iter()
        .any(|errno| code == Some(errno.raw_os_error()))
}

#[cfg(not(unix))]
fn is_exhaustion(_: &io::Error) -> bool {
    false
}
