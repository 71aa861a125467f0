//! Prediction of the throughput of the next chunk.
//!
//! Chorus' predictor ([`ReceiveRate`]) and the four that the Chorus paper (MobiCom 2024) compares it
//! with. All predict bits per second of a whole chunk: its size over the time from the request to its
//! last byte.

mod harmonic;
mod kind;
mod receive_rate;
mod recent;
mod robust_receive_rate;
mod send_rate;

use std::fmt;
use std::time::Duration;

use swiftwater_units::{Bandwidth, Instant, PathId};

pub use harmonic::{HarmonicMean, RobustHarmonicMean};
pub use kind::PredictorKind;
pub use receive_rate::ReceiveRate;
pub use robust_receive_rate::RobustReceiveRate;
pub use send_rate::{SendRate, SendRateHarmonicMean};

/// Chunks over which means and errors are taken: the window of Chorus and of RobustMPC.
pub const WINDOW: usize = 5;

/// Age from which on a server's report isn't used: that of Chorus' published player.
pub const STALE_AFTER: Duration = Duration::from_secs(1);

/// Bytes received on one path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PathBytes {
    /// The path.
    pub path: PathId,
    /// Bytes of the chunk that arrived on it.
    pub bytes: u64,
}

/// A chunk that was downloaded.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChunkDelivery {
    /// From the request to the last byte.
    pub took: Duration,
    /// What arrived on each path, each path at most once; the sum is the size of the chunk.
    pub paths: Vec<PathBytes>,
}

impl ChunkDelivery {
    /// Size of the chunk in bytes.
    pub fn bytes(&self) -> u64 {
        self.paths.iter().map(|path| path.bytes).sum()
    }

    /// Throughput in bit/s; `None` if the chunk is empty or took no time.
    pub(crate) fn throughput(&self) -> Option<f64> {
        self.rate_of(self.bytes())
    }

    /// `bytes` in the time of the chunk, in bit/s.
    fn rate_of(&self, bytes: u64) -> Option<f64> {
        let known = bytes > 0 && !self.took.is_zero();
        known.then(|| bytes as f64 * 8.0 / self.took.as_secs_f64())
    }
}

/// What the server reports about one path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathEstimate {
    /// The path.
    pub path: PathId,
    /// Share of the next chunk that is to be sent on it, 0 to 1.
    pub share: f64,
    /// The sender's estimate of its bandwidth.
    pub rate: Bandwidth,
    /// Its round-trip time.
    pub rtt: Duration,
}

/// A server's report about its paths and how it divides chunks among them (Chorus: every 200 ms).
#[derive(Clone, Debug, PartialEq)]
pub struct ServerReport {
    /// When it arrived at the client.
    pub received: Instant,
    /// The paths in use; the shares add up to 1.
    pub paths: Vec<PathEstimate>,
}

impl ServerReport {
    /// Whether it is too old to be used at `now`.
    fn is_stale(&self, now: Instant) -> bool {
        now.saturating_since(self.received) > STALE_AFTER
    }
}

/// Predicts the throughput of the next chunk from those before and from reports of the server.
pub trait ThroughputPredictor: fmt::Debug + Send {
    /// A chunk was downloaded.
    fn on_chunk(&mut self, delivery: &ChunkDelivery);

    /// A report arrived. Predictors that use the client's measurements alone ignore it.
    fn on_report(&mut self, report: &ServerReport) {
        let _ = report;
    }

    /// The prediction at `now`; `None` without a chunk to predict from.
    fn predict(&self, now: Instant) -> Option<Bandwidth>;
}

/// Throughput in bit/s of a chunk that is complete when the last of its paths has delivered its
/// share: the minimum of rate over share (Chorus, equation 2). `None` if no path has a share.
fn of_shares(paths: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let with_share = paths.into_iter().filter(|(_, share)| *share > 0.0);
    let throughput = with_share.map(|(rate, share)| rate / share);
    throughput.reduce(f64::min)
}

/// Bits per second as a bandwidth; the cast saturates, and NaN is zero.
const fn bandwidth(bps: f64) -> Bandwidth {
    Bandwidth::from_bps(bps as u64)
}
