//! Keeps the connection open while requests are in progress, however long a response takes (RFC 9114,
//! section 5.1).

use std::time::Duration;

use swiftwater_quic as quic;

use super::Connection;

/// Longest time between PINGs: common NATs remove UDP bindings after 30 s of silence (RFC 4787,
/// section 4.3, requires two minutes).
const LONGEST_INTERVAL: Duration = Duration::from_secs(15);

impl Connection {
    /// Makes the transport send PINGs while there are requests, and only then. The interval is half the
    /// idle timeout, so that one PING may be lost.
    pub(super) fn keep_alive(&self, quic: &mut quic::Connection) {
        let wanted = self.requests.len() > 0;
        let interval = quic
            .idle_timeout()
            .filter(|_| wanted)
            .map(|timeout| (timeout / 2).min(LONGEST_INTERVAL));
        quic.set_keep_alive(interval);
    }
}
