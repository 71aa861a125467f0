//! Which path carries the next packet.

use std::time::Duration;

use swiftwater_units::{ByteCount, Instant, PathId};

/// One path as a scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// The path.
    pub id: PathId,
    /// `smoothed_rtt`.
    pub smoothed_rtt: Duration,
    /// `min_rtt`; an assumption, as the others, until there is a sample.
    pub min_rtt: Duration,
    /// `rttvar`.
    pub rtt_var: Duration,
    /// Congestion window.
    pub cwnd: ByteCount,
    /// Bytes in flight.
    pub bytes_in_flight: ByteCount,
    /// When the pacer lets the next packet go; now or earlier means at once.
    pub pacing_release: Instant,
    /// True if the peer's address is validated.
    pub validated: bool,
    /// True if the path is a backup (multipath draft, section 3.3).
    pub backup: bool,
}

impl PathView {
    /// Room left in the congestion window.
    pub fn window_room(&self) -> ByteCount {
        self.cwnd.saturating_sub(self.bytes_in_flight)
    }
}

/// What waits to be sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Demand {
    /// Stream bytes ready to go, new and retransmitted.
    pub stream_bytes: ByteCount,
    /// True if control frames or datagrams wait.
    pub control: bool,
}

/// A [`Scheduler`]'s answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Decision {
    /// Send on this path now.
    Path(PathId),
    /// Send nothing before this time, unless something else happens first.
    Wait(Instant),
}

/// Chooses the path of the next batch of packets. Asked whenever the connection looks for something
/// to send; window, pacer and anti-amplification limit of the chosen path still apply afterwards.
pub trait Scheduler: Send {
    /// The choice. `paths` is never empty and sorted by identifier. A path that isn't among them is a
    /// bad answer: the connection counts it and takes the first path instead.
    fn choose(&mut self, now: Instant, paths: &[PathView], demand: &Demand) -> Decision;
}

/// The first path, always.
#[derive(Clone, Copy, Debug, Default)]
pub struct SinglePath;

impl Scheduler for SinglePath {
    fn choose(&mut self, _now: Instant, paths: &[PathView], _demand: &Demand) -> Decision {
        Decision::Path(paths.first().map_or(PathId::ZERO, |path| path.id))
    }
}
