//! How many bytes follow one another on a path before the choice is made again.
//!
//! Datagrams of one batch leave with one system call, and one decision is made for all of them. A batch ends
//! earlier where window or pacer of the path end it. A path that stays the best one however much is sent on it
//! gets a whole batch; where each datagram changes the order of the paths, the batch is a small part of what
//! waits and of the path's window, so that the last decisions of a transfer are about single datagrams.

use swiftwater_quic::policy::PathView;
use swiftwater_units::ByteCount;

/// Bytes of a batch at most, by default: what one system call takes.
pub(crate) const DEFAULT: ByteCount = ByteCount::new(65_536);
/// Part of the window, which takes a round trip, that a batch is at most.
const WINDOW_PARTS: u64 = 4;
/// Part of the waiting data that a batch is at most.
const WAITING_PARTS: u64 = 8;

/// Bytes for `path` of the `waiting` ones if every datagram counts in the choice; `batch` is the limit.
pub(crate) fn part(batch: ByteCount, path: &PathView, waiting: ByteCount) -> ByteCount {
    let of_window = ByteCount::new(path.cwnd.get() / WINDOW_PARTS);
    let of_waiting = ByteCount::new(waiting.get() / WAITING_PARTS);
    batch.min(of_window).min(of_waiting)
}
