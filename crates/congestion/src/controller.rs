//! The `Controller` trait: what every congestion-control algorithm implements.

use std::fmt;
use std::time::Duration;

use rand_core::Rng;
use swiftwater_tunable::{Parameter, ParameterError};
use swiftwater_units::{Bandwidth, ByteCount, Instant, PacketCount, PathId};

use crate::sample::{AckBatch, EcnBatch, EpisodeId, LossBatch, RttView, SentInfo};

/// Facts about the path that a controller may read at every call, and its source of randomness.
pub struct Env<'a> {
    /// Largest UDP payload that the path carries now (`max_datagram_size` of RFC 9002), bytes.
    pub max_datagram_size: ByteCount,
    /// Window to start with, and after a change of path (RFC 9002, section 7.2).
    pub initial_window: ByteCount,
    /// Window below which no congestion event may push (`kMinimumWindow`, RFC 9002, B.1).
    pub minimum_window: ByteCount,
    /// The path this controller belongs to, for logs only.
    pub path: PathId,
    /// Seeded generator of the connection; the only source of randomness allowed.
    pub rng: &'a mut dyn Rng,
}

impl fmt::Debug for Env<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env")
            .field("max_datagram_size", &self.max_datagram_size)
            .field("initial_window", &self.initial_window)
            .field("minimum_window", &self.minimum_window)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// How fast the shared pacer should release packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    /// The rate to pace at; `None` lets the pacer derive `gain * cwnd / smoothed_rtt`.
    pub rate: Option<Bandwidth>,
    /// The `N` of RFC 9002, section 7.7, used when `rate` is `None`: 2.0 in slow start, 1.25 later.
    pub gain: f64,
    /// Most bytes that may leave back to back; `None` lets the pacer choose.
    pub quantum: Option<ByteCount>,
}

/// How the packets of a path are marked: how the controller responds to CE.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum EctCodepoint {
    /// Not at all. For algorithms that don't answer CE: where they would be marked, they shall be
    /// dropped instead (RFC 3168, section 5).
    NotEct,
    /// ECT(0): CE is answered like a loss (RFC 3168, section 5; RFC 9002, section 7.1).
    #[default]
    Ect0,
    /// ECT(1): CE is answered in proportion to its share of the packets, and the other requirements
    /// of RFC 9331, section 4, are met.
    Ect1,
}

/// State of a controller for logs, statistics and plots; not for decisions.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Congestion window.
    pub cwnd: ByteCount,
    /// Slow-start threshold; `None` before the first congestion event or where the algorithm has
    /// none.
    pub ssthresh: Option<ByteCount>,
    /// Name of the current state, such as `slow_start`.
    pub state: &'static str,
    /// Further named values of the algorithm, in a fixed order.
    pub details: Vec<(&'static str, f64)>,
}

/// A rate that is measured elsewhere: by a tunnel that carries the path's packets, or known to the
/// application.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ExternalRate {
    /// What the path can carry.
    pub rate: Bandwidth,
    /// Bytes of this connection that wait where the rate was measured, packets in flight behind it not
    /// counted.
    pub queue: ByteCount,
    /// Time since the measurement.
    pub age: Duration,
    /// Time between two measurements; default 20 ms.
    pub interval: Duration,
    /// Time by which a repair of a loss on the path delays a packet; default none.
    pub repair_time: Duration,
    /// What was sent did not fill the path where the rate was measured.
    pub app_limited: bool,
    /// The rate fell suddenly.
    pub fell: bool,
    /// There was a congestion event where the rate was measured.
    pub congestion: bool,
}

impl ExternalRate {
    /// A rate that was measured `age` ago, with the defaults for everything else.
    pub fn new(rate: Bandwidth, queue: ByteCount, age: Duration) -> Self {
        Self {
            rate,
            queue,
            age,
            interval: Duration::from_millis(20),
            repair_time: Duration::ZERO,
            app_limited: false,
            fell: false,
            congestion: false,
        }
    }
}

/// A congestion-control algorithm for one path.
///
/// All times are arguments, so the same code runs on real and on virtual clocks.
pub trait Controller: Send {
    /// The name by which users select the algorithm.
    fn name(&self) -> &'static str;

    /// An ack-eliciting or padded packet has left.
    fn on_sent(&mut self, sent: &SentInfo, env: &mut Env<'_>);

    /// An ACK frame newly acknowledged packets; called once per frame, after the losses that the
    /// same frame revealed.
    fn on_ack(&mut self, ack: &AckBatch, env: &mut Env<'_>);

    /// A run of loss detection declared packets lost; called once per run.
    fn on_loss(&mut self, loss: &LossBatch<'_>, env: &mut Env<'_>);

    /// An ACK frame reported more packets marked CE.
    fn on_ce(&mut self, ce: &EcnBatch, env: &mut Env<'_>);

    /// Every packet of loss episode `episode` turned out to have been delivered.
    fn on_spurious(&mut self, episode: EpisodeId, now: Instant, env: &mut Env<'_>);

    /// Persistent congestion was established (RFC 9002, section 7.6).
    fn on_persistent_congestion(&mut self, now: Instant, env: &mut Env<'_>);

    /// A probe timeout expired, the `count`-th in a row.
    fn on_pto(&mut self, _now: Instant, _count: u32, _env: &mut Env<'_>) {}

    /// Sending resumes after nothing was in flight for `idle`.
    fn on_idle_restart(&mut self, _now: Instant, _idle: Duration, _env: &mut Env<'_>) {}

    /// The path's maximum datagram size changed; the new one is in `env`.
    fn on_max_datagram_size_change(&mut self, env: &mut Env<'_>);

    /// Packets left flight without being acked or lost (their space was discarded).
    fn on_discard(&mut self, _bytes: ByteCount) {}

    /// The congestion window: bytes that may be in flight.
    fn cwnd(&self) -> ByteCount;

    /// How packets are to be marked. Asked when the path starts and when the peer has moved, not in
    /// between; the transport may still send unmarked, if ECN is switched off or the path fails
    /// validation.
    fn ecn_codepoint(&self) -> EctCodepoint {
        EctCodepoint::Ect0
    }

    /// How to pace; read after every batch.
    fn pacing(&self, rtt: &RttView) -> Pacing;

    /// What the path carries, as the algorithm estimates it; `None` if it has no estimate, as algorithms that
    /// move a window.
    fn bandwidth(&self) -> Option<Bandwidth> {
        None
    }

    /// True while the algorithm itself holds sending back, so that samples must be marked
    /// application-limited (BBR's `ProbeRTT`).
    fn uses_app_limited_mark(&self) -> bool {
        false
    }

    /// When [`Controller::on_timer`] should be called next.
    fn next_timer(&self) -> Option<Instant> {
        None
    }

    /// The time announced by [`Controller::next_timer`] has come.
    fn on_timer(&mut self, _now: Instant, _env: &mut Env<'_>) {}

    /// A rate that was measured elsewhere. Algorithms that measure for themselves ignore it.
    fn on_external_rate(&mut self, _now: Instant, _external: &ExternalRate, _env: &mut Env<'_>) {}

    /// The growth of the window in congestion avoidance is multiplied by `scale` from now on, -1 to 2;
    /// 1, which holds until the first call, is that of a single path. Given by a
    /// [`Coupling`](crate::Coupling), for each ACK before [`Controller::on_ack`]. Algorithms that don't
    /// grow by ACKs ignore it, see [`Controller::can_be_coupled`].
    fn set_growth_scale(&mut self, _scale: f64) {}

    /// True if [`Controller::set_growth_scale`] has an effect, so that a [`Coupling`](crate::Coupling) couples
    /// the path with others.
    fn can_be_coupled(&self) -> bool {
        false
    }

    /// The parameters that can be changed while the controller runs, with their values.
    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    /// Changes parameters of the running controller, as `name=value,name=value`; on an error nothing
    /// changes. What was measured stays; the window moves with the next acknowledgement or loss.
    fn configure(&mut self, settings: &str) -> Result<(), ParameterError> {
        let name = settings.split('=').next().unwrap_or_default();
        Err(ParameterError::none(name.trim()))
    }

    /// State for logs.
    fn snapshot(&self) -> Snapshot;

    /// A copy with the same state, for "what if" evaluation and for new paths.
    fn clone_box(&self) -> Box<dyn Controller>;
}

/// Makes a controller for each new path.
pub trait ControllerFactory: Send + Sync + fmt::Debug {
    /// The name of what is made.
    fn name(&self) -> &'static str;
    /// Full packets that the algorithm starts with, instead of those of RFC 9002, section
    /// 7.2. The transport takes it into [`Env::initial_window`], unless its user configured a
    /// window.
    fn initial_window(&self) -> Option<PacketCount> {
        None
    }
    /// A fresh controller at time `now`.
    fn build(&self, now: Instant, env: &mut Env<'_>) -> Box<dyn Controller>;
}
