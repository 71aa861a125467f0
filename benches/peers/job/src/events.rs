//! The lines of JSON on standard output that the runner waits for.
//!
//! A server prints [`ready`] and runs until it is killed. A client prints [`start`] when the measured part begins,
//! one of the `*_done` when it ends, then keeps its connections alive until its standard input ends
//! ([`wait_for_end`] or [`EndOfInput`]): the runner reads processor times and memory meanwhile.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::latencies::Latencies;

/// The server's socket is bound.
pub fn ready() {
    print(&json!({ "event": "ready" }));
}

/// The measured part starts: the connection is established (`bulk`, `requests`), or the first one is about to be
/// opened (`handshakes`, `hold`).
pub fn start() {
    print(&json!({ "event": "start" }));
}

/// `bulk` is over: all has arrived and was checked ([`Incoming::check`](crate::Incoming::check)).
pub fn bulk_done(bytes: u64, took: Duration) {
    let seconds = took.as_secs_f64();
    print(&json!({ "event": "done", "bytes": bytes, "seconds": seconds, "checksum_ok": true }));
}

/// `requests` is over: all answers were checked.
pub fn requests_done(mut latencies: Latencies, took: Duration) {
    print(&json!({
        "event": "done",
        "operations": latencies.count(),
        "seconds": took.as_secs_f64(),
        "p50_us": latencies.percentile(50),
        "p99_us": latencies.percentile(99),
        "checksum_ok": true,
    }));
}

/// `handshakes` is over.
pub fn handshakes_done(count: u32, took: Duration) {
    print(&json!({ "event": "done", "count": count, "seconds": took.as_secs_f64() }));
}

/// All of `hold` is open.
pub fn hold_done(connections: u32) {
    print(&json!({ "event": "done", "connections": connections }));
}

/// Blocks until standard input ends.
pub fn wait_for_end() {
    // An input that can't be read has ended, too.
    let _ = io::stdin().read_to_end(&mut Vec::new());
}

/// Tells, without blocking, whether standard input has ended: for event loops of one's own.
#[derive(Clone, Debug)]
pub struct EndOfInput(Arc<AtomicBool>);

impl EndOfInput {
    /// Starts to watch, on a separate thread.
    pub fn watch() -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let watching = Arc::clone(&ended);
        thread::spawn(move || {
            wait_for_end();
            watching.store(true, Ordering::Relaxed);
        });
        Self(ended)
    }

    /// True once it has ended.
    pub fn is_here(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The runner has ended and doesn't read any more.
fn print(event: &Value) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{event}").and_then(|()| out.flush());
}
