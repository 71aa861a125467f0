//! What a client prints at its end.

use std::time::Duration;

use serde_json::json;

/// One JSON object about all connections of a client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Files that were brought.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Until the last handshake was complete.
    pub handshake: Duration,
    /// From the start until the last file was there.
    pub elapsed: Duration,
    /// Key updates requested by this side.
    pub key_updates: u64,
    /// Whether the server accepted the 0-RTT data, if there were any.
    pub early_accepted: Option<bool>,
}

impl std::fmt::Display for Report {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let report = json!({
            "files": self.files,
            "bytes": self.bytes,
            "handshake_ms": self.handshake.as_secs_f64() * 1e3,
            "seconds": self.elapsed.as_secs_f64(),
            "key_updates": self.key_updates,
            "early_accepted": self.early_accepted,
        });
        write!(to, "{report}")
    }
}
