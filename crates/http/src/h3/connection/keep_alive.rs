//! The connection stays for as long as requests are under way, however long an answer takes (RFC 9114,
//! section 5.1).

use std::time::Duration;

use swiftwater_quic as quic;

use super::Connection;

/// Time between PINGs, at most: common NATs forget UDP flows after 30 s of silence (RFC 4787 asks for
/// two minutes, in section 4.3).
const LONGEST_INTERVAL: Duration = Duration::from_secs(15);

impl Connection {
    /// Has the transport send PINGs while there are requests, and no longer. The interval is half the idle
    /// timeout, so that one may get lost.
    pub(super) fn keep_alive(&self, quic: &mut quic::Connection) {
        let wanted = self.requests.len() > 0;
        let interval = quic
            .idle_timeout()
            .filter(|_| wanted)
            .map(|timeout| (timeout / 2).min(LONGEST_INTERVAL));
        quic.set_keep_alive(interval);
    }
}
