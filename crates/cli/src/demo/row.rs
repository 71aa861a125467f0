//! Measurements of one file over one network.

use std::time::Duration;

use serde::Serialize;

use super::presets::Preset;
use crate::table::{self, Table};

/// The result of one transfer. Times count from the client's first packet; times that were not
/// reached are `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileRow {
    /// The network.
    pub preset: Preset,
    /// The file.
    pub file: &'static str,
    /// Its size.
    pub bytes: u64,
    /// Whether the received file equals the original.
    pub sha256_ok: bool,
    /// Until the client could send its request.
    pub handshake_ms: Option<f64>,
    /// Until the first byte of the file.
    pub first_byte_ms: Option<f64>,
    /// Until the last byte of the file.
    pub completion_ms: Option<f64>,
    /// Bits of the file per second until completion, handshake included.
    pub goodput_bps: Option<f64>,
    /// Retransmitted share of the stream bytes that the server sent.
    pub retransmitted_share: Option<f64>,
    /// The server's smoothed round-trip time at the end, the wait in queues included.
    pub srtt_ms: Option<f64>,
    /// The failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Position among the files of a network.
    #[serde(skip)]
    pub order: usize,
}

impl FileRow {
    /// One human-readable line while the demo is running.
    pub fn line(&self) -> String {
        let size = table::bytes(self.bytes);
        format!(
            "{}: {} ({size}) in {}",
            self.preset,
            self.file,
            milliseconds(self.completion_ms)
        )
    }
}

/// All results as a table.
pub fn table(rows: &[FileRow]) -> String {
    let mut table = Table::new([
        "network",
        "file",
        "size",
        "handshake",
        "first byte",
        "completed",
        "goodput",
        "retransmitted",
        "smoothed RTT",
        "SHA-256",
    ]);
    for row in rows {
        table.row([
            row.preset.to_string(),
            row.file.to_owned(),
            table::bytes(row.bytes),
            milliseconds(row.handshake_ms),
            milliseconds(row.first_byte_ms),
            milliseconds(row.completion_ms),
            row.goodput_bps.map_or_else(absent, table::rate),
            row.retransmitted_share.map_or_else(absent, table::percent),
            milliseconds(row.srtt_ms),
            if row.sha256_ok { "ok" } else { "FAILED" }.to_owned(),
        ]);
    }
    table.render()
}

fn milliseconds(time: Option<f64>) -> String {
    time.and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok())
        .map_or_else(absent, table::time)
}

fn absent() -> String {
    "-".to_owned()
}
