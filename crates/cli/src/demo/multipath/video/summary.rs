//! Results for people: the table and a line.

use super::row::VideoRow;
use crate::demo::multipath::summary::milliseconds;
use crate::table::{self, Table};

/// Definitions of the columns.
pub const MEANING: &str = "\
Score: Mbit/s summed over segments of 2 s, less 16 for each second of stall and 1 for each Mbit/s of change.
First picture: after the first request for a segment. Copies: of what was still in flight, as a share of the
stream bytes that the server sent.";

/// All rows.
pub fn table(rows: &[VideoRow]) -> String {
    let mut table = Table::new([
        "strategy",
        "score",
        "bitrate",
        "stalled",
        "stalls",
        "first picture",
        "p99 of segments",
        "segments",
        "sent",
        "copies",
        "SHA-256",
    ]);
    for row in rows {
        let sent: Vec<_> = row
            .sent_by_path
            .iter()
            .map(|bytes| table::bytes(*bytes))
            .collect();
        table.row([
            row.strategy.title().to_owned(),
            format!("{:.1}", row.qoe),
            format!("{:.2} Mbit/s", row.bitrate_mbps),
            milliseconds(Some(row.stall_ms)),
            row.stalls.to_string(),
            milliseconds(row.first_frame_ms),
            milliseconds(row.chunk_p99_ms),
            row.segments.to_string(),
            sent.join(" + "),
            format!("{:.1} %", 100.0 * row.copies_share),
            match (&row.failure, row.sha256_ok) {
                (Some(_), _) => "FAILED",
                (None, true) => "ok",
                (None, false) => "DIFFERS",
            }
            .to_owned(),
        ]);
    }
    table.render()
}

/// One row in a line, while the viewers watch.
pub fn line(row: &VideoRow, seconds: f64) -> String {
    format!(
        "{seconds:4.0} s  {}: {} segments, {:.2} Mbit/s, stalled {}",
        row.strategy.title(),
        row.segments,
        row.bitrate_mbps,
        milliseconds(Some(row.stall_ms)),
    )
}
