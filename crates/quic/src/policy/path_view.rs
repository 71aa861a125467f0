//! Read-only views of a path: what policies decide on.

use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount, Instant, PathId};

/// How far a path has come (draft-ietf-quic-multipath-21, section 3).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum PathPhase {
    /// The peer's address is not validated (RFC 9000, section 8.2): only what the
    /// anti-amplification limit permits may be sent.
    Validating,
    /// In use.
    #[default]
    Active,
    /// Being closed: acknowledgements only.
    Closing,
}

/// What one end announces about its use of a path (draft-ietf-quic-multipath-21, section 3.3).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum PathStatus {
    /// PATH_STATUS_AVAILABLE: the path may carry any packet.
    #[default]
    Available,
    /// PATH_STATUS_BACKUP: the path should carry data only while no available path does.
    Backup,
}

/// What the application prefers about the use of a path, set with
/// [`Connection::set_path_preference`](crate::Connection::set_path_preference). Schedulers see it in
/// [`PathView`]; it holds until it is set anew, whatever addresses the path moves to.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PathPreference {
    /// Whether the path is to carry data while another one can; shown as
    /// [`PathView::local_status`]. Default [`PathStatus::Available`].
    pub status: PathStatus,
    /// What a byte costs on the path, in units of the application's choice; 0, the default, is free.
    /// Shown as [`PathView::cost`].
    pub cost: u32,
}

/// One path as a policy sees it. Values are those of the moment of the call.
///
/// Further fields may come; tests and other hosts make one with [`PathView::builder`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PathView {
    /// The path.
    pub id: PathId,
    /// How far it has come.
    pub phase: PathPhase,
    /// What the application of this end set ([`PathPreference::status`]).
    pub local_status: PathStatus,
    /// What the peer announced; [`PathStatus::Available`] before it announced anything.
    pub peer_status: PathStatus,
    /// True if `smoothed_rtt`, `rtt_var`, `min_rtt` and `latest_rtt` rest on a sample; before, they
    /// are assumptions.
    pub has_rtt_sample: bool,
    /// `smoothed_rtt` (RFC 9002, section 5.3).
    pub smoothed_rtt: Duration,
    /// `rttvar` (RFC 9002, section 5.3).
    pub rtt_var: Duration,
    /// `min_rtt` (RFC 9002, section 5.2).
    pub min_rtt: Duration,
    /// `latest_rtt` (RFC 9002, section 5.1).
    pub latest_rtt: Duration,
    /// Congestion window.
    pub cwnd: ByteCount,
    /// Bytes in flight.
    pub bytes_in_flight: ByteCount,
    /// When the pacer lets the next packet go; now or earlier means at once.
    pub pacing_release: Instant,
    /// Rate that the pacer follows; `None` without pacing.
    pub pacing_rate: Option<Bandwidth>,
    /// Newest delivery-rate sample; `None` before the first.
    pub delivery_rate: Option<Bandwidth>,
    /// Share of the packets sent on the path that were declared lost, 0 to 1, those acknowledged
    /// afterwards not counted.
    pub loss_rate: f64,
    /// Probe timeouts since the last acknowledgement (RFC 9002, section 6.2.1).
    pub pto_count: u32,
    /// Largest UDP payload that the path is known to carry, bytes.
    pub mtu: u16,
    /// When the last packet was received on the path; `None` before the first.
    pub last_received: Option<Instant>,
    /// When the path was last known to work: the time of `last_received`, or while nothing is in flight that of the last
    /// acknowledgement of a packet sent on it, on whichever path it came, if that is later; `None` before either.
    pub last_confirmed: Option<Instant>,
    /// What a byte costs on the path, in units of the application's choice
    /// ([`PathPreference::cost`]); 0 is free.
    pub cost: u32,
}

impl PathView {
    /// An active path with an RTT of 100 ms, a window of 12,000 bytes, nothing in flight, no loss and
    /// an MTU of 1200 bytes, to be changed as needed.
    pub fn builder(id: PathId) -> PathViewBuilder {
        let rtt = Duration::from_millis(100);
        PathViewBuilder(Self {
            id,
            phase: PathPhase::Active,
            local_status: PathStatus::Available,
            peer_status: PathStatus::Available,
            has_rtt_sample: true,
            smoothed_rtt: rtt,
            rtt_var: rtt / 4,
            min_rtt: rtt,
            latest_rtt: rtt,
            cwnd: ByteCount::new(12_000),
            bytes_in_flight: ByteCount::ZERO,
            pacing_release: Instant::ZERO,
            pacing_rate: None,
            delivery_rate: None,
            loss_rate: 0.0,
            pto_count: 0,
            mtu: 1_200,
            last_received: None,
            last_confirmed: None,
            cost: 0,
        })
    }

    /// Room left in the congestion window.
    pub fn window_room(&self) -> ByteCount {
        self.cwnd.saturating_sub(self.bytes_in_flight)
    }

    /// True if either end announced that the path is only a backup.
    pub fn is_backup(&self) -> bool {
        self.local_status == PathStatus::Backup || self.peer_status == PathStatus::Backup
    }

    /// True if data may be sent on the path at all: it is active.
    pub fn is_usable(&self) -> bool {
        self.phase == PathPhase::Active
    }

    /// True if a full datagram may leave now: the path is usable, and window and pacer let it go.
    pub fn is_ready(&self, now: Instant) -> bool {
        self.is_usable()
            && self.window_room() >= ByteCount::new(u64::from(self.mtu))
            && self.pacing_release <= now
    }

    /// The rate at which the path delivers, as far as is known: the delivery rate, else one window
    /// per `smoothed_rtt`.
    pub fn estimated_rate(&self) -> Bandwidth {
        self.delivery_rate
            .unwrap_or_else(|| Bandwidth::from_transfer(self.cwnd.get(), self.smoothed_rtt))
    }
}

/// Makes a [`PathView`], see [`PathView::builder`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct PathViewBuilder(PathView);

macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        impl PathViewBuilder {
            $(
                $(#[$doc])*
                pub fn $field(mut self, value: $type) -> Self {
                    self.0.$field = value;
                    self
                }
            )*
        }
    };
}

setters! {
    /// Sets [`PathView::phase`].
    phase: PathPhase,
    /// Sets [`PathView::local_status`].
    local_status: PathStatus,
    /// Sets [`PathView::peer_status`].
    peer_status: PathStatus,
    /// Sets [`PathView::has_rtt_sample`].
    has_rtt_sample: bool,
    /// Sets [`PathView::smoothed_rtt`].
    smoothed_rtt: Duration,
    /// Sets [`PathView::rtt_var`].
    rtt_var: Duration,
    /// Sets [`PathView::min_rtt`].
    min_rtt: Duration,
    /// Sets [`PathView::latest_rtt`].
    latest_rtt: Duration,
    /// Sets [`PathView::cwnd`].
    cwnd: ByteCount,
    /// Sets [`PathView::bytes_in_flight`].
    bytes_in_flight: ByteCount,
    /// Sets [`PathView::pacing_release`].
    pacing_release: Instant,
    /// Sets [`PathView::pacing_rate`].
    pacing_rate: Option<Bandwidth>,
    /// Sets [`PathView::delivery_rate`].
    delivery_rate: Option<Bandwidth>,
    /// Sets [`PathView::loss_rate`].
    loss_rate: f64,
    /// Sets [`PathView::pto_count`].
    pto_count: u32,
    /// Sets [`PathView::mtu`].
    mtu: u16,
    /// Sets [`PathView::last_received`].
    last_received: Option<Instant>,
    /// Sets [`PathView::last_confirmed`].
    last_confirmed: Option<Instant>,
    /// Sets [`PathView::cost`].
    cost: u32,
}

impl PathViewBuilder {
    /// Sets `smoothed_rtt`, `min_rtt` and `latest_rtt` to `rtt`, and `rttvar` to a quarter of it.
    pub fn rtt(self, rtt: Duration) -> Self {
        self.smoothed_rtt(rtt)
            .min_rtt(rtt)
            .latest_rtt(rtt)
            .rtt_var(rtt / 4)
    }

    /// The view.
    pub fn build(self) -> PathView {
        self.0
    }
}

/// Rate, queue and round-trip time of a path for applications that adapt to them: small and cheap
/// enough to be read for every video frame.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RateView {
    /// The path.
    pub path: PathId,
    /// Rate that the pacer follows; `None` without pacing.
    pub pacing_rate: Option<Bandwidth>,
    /// Newest delivery-rate sample; `None` before the first.
    pub delivery_rate: Option<Bandwidth>,
    /// `smoothed_rtt`; `None` before the first sample.
    pub smoothed_rtt: Option<Duration>,
    /// Congestion window.
    pub cwnd: ByteCount,
    /// Bytes in flight.
    pub bytes_in_flight: ByteCount,
    /// How long a packet waits in queues of the network: `smoothed_rtt - min_rtt`; zero before the
    /// first sample.
    pub queue_delay: Duration,
}

impl RateView {
    /// The view for applications of what policies see.
    pub fn new(path: &PathView) -> Self {
        Self {
            path: path.id,
            pacing_rate: path.pacing_rate,
            delivery_rate: path.delivery_rate,
            smoothed_rtt: path.has_rtt_sample.then_some(path.smoothed_rtt),
            cwnd: path.cwnd,
            bytes_in_flight: path.bytes_in_flight,
            queue_delay: if path.has_rtt_sample {
                path.smoothed_rtt.saturating_sub(path.min_rtt)
            } else {
                Duration::ZERO
            },
        }
    }

    /// Bytes that wait in queues of the network: what is delivered within the queue delay; zero
    /// without a delivery rate.
    pub fn queued_bytes(&self) -> ByteCount {
        self.delivery_rate.map_or(ByteCount::ZERO, |rate| {
            ByteCount::new(rate.bytes_in(self.queue_delay))
        })
    }
}
