//! When a connection acts without input (RFC 9000, section 10; RFC 9002, section 6.2).
//!
//! Deadlines are computed from the state that they depend on, a handful per path, so that none can
//! be stale.

use std::time::Duration;

use swiftwater_units::{Instant, PathId, Side};

use crate::config::TransportConfig;
use crate::crypto::EncryptionLevel;
use crate::datagram_size::{MIN_INITIAL_SIZE, MIN_PACKET_ROOM};
use crate::handshake::Handshake;
use crate::lifecycle::Lifecycle;
use crate::monitor::TimerState;
use crate::multipath::AckRoute;
use crate::observe::LossTimer;
use crate::path::{PathSet, PathState};
use crate::space::{Space, SpaceId};
use crate::streams::Streams;

/// PINGs within an idle timeout while flow control holds everything back: one or two may get lost.
const BLOCKED_PINGS: u32 = 3;

/// Probe timeouts without a packet that count as silence.
const SILENT_PTOS: u32 = 3;
/// Shortest time that counts as silence.
const MIN_SILENCE: Duration = Duration::from_secs(1);

/// The state that deadlines depend on.
#[derive(Clone, Copy)]
pub(crate) struct Deadlines<'a> {
    pub(crate) side: Side,
    pub(crate) config: &'a TransportConfig,
    pub(crate) handshake: &'a Handshake,
    pub(crate) paths: &'a PathSet,
    /// Which paths carry acknowledgements; `None` without multipath.
    pub(crate) ack_route: Option<AckRoute>,
    pub(crate) streams: &'a Streams,
    pub(crate) lifecycle: &'a Lifecycle,
    /// The delay that the peer may add to acknowledgements of 1-RTT packets.
    pub(crate) max_ack_delay: Duration,
}

impl Deadlines<'_> {
    /// The earliest deadline of loss detection and of the paths. `acknowledges`: 1-RTT packets may be
    /// sent.
    pub(crate) fn of_paths(&self, acknowledges: bool) -> Option<Instant> {
        // An array to search would be moved about; this is asked after every packet.
        let mut next = self.loss_timer().map(|timer| timer.expires_at);
        let mut consider = |deadline: Option<Instant>| {
            if let Some(at) = deadline {
                next = Some(next.map_or(at, |next: Instant| next.min(at)));
            }
        };
        for path in self.paths.iter() {
            // While the anti-amplification limit permits no packet, an ACK can't be timed.
            let carrier = self
                .ack_route
                .and_then(|route| self.paths.get(route.carrier(path)));
            let carrier = carrier.unwrap_or(path);
            if acknowledges && carrier.network.amplification.budget() >= MIN_PACKET_ROOM as u64 {
                consider(path.space.received.ack_deadline());
            }
            consider(path.deadline());
        }
        next
    }

    /// The timer of loss detection, if it runs: which, for which packets, until when (RFC 9002, appendix
    /// A.8). A loss deadline replaces the probe timeout (section 6.2.1).
    pub(crate) fn loss_timer(&self) -> Option<TimerState> {
        let state = |timer| {
            move |(expires_at, space)| TimerState {
                timer,
                space,
                expires_at,
            }
        };
        let loss = self.loss().map(state(LossTimer::TimeThreshold));
        if self.paths.is_single() {
            return loss.or_else(|| self.pto().map(state(LossTimer::Probe)));
        }
        // The loss deadline of a path replaces its own probe timeout, and not those of other paths.
        let pto = self.pto().map(state(LossTimer::Probe));
        loss.into_iter()
            .chain(pto)
            .min_by_key(|timer| timer.expires_at)
    }

    /// The earliest time at which a packet becomes lost by age, and its space.
    fn loss(&self) -> Option<(Instant, SpaceId)> {
        self.paths
            .spaces()
            .filter_map(|(id, space)| Some((space.loss_time?, id)))
            .min_by_key(|(at, _)| *at)
    }

    /// The earliest probe timeout, and the space to probe in (RFC 9002, appendix A.8), while no loss
    /// deadline runs.
    fn pto(&self) -> Option<(Instant, SpaceId)> {
        let in_flight = self
            .paths
            .spaces()
            .filter_map(|(id, space)| Some((self.pto_of(id, space)?, id)))
            .min_by_key(|(at, _)| *at);
        if in_flight.is_some() || self.handshake.is_confirmed() {
            return in_flight;
        }
        let path = self.paths.path_for(SpaceId::Initial)?;
        if !self.may_probe(path) {
            return None;
        }
        let id = self.space_to_probe(path)?;
        let timeout = path.recovery.probe_timeout(Duration::ZERO);
        Some((self.lifecycle.last_packet_at + timeout, id))
    }

    /// When the probe timeout of a space expires, if it runs.
    fn pto_of(&self, id: SpaceId, space: &Space) -> Option<Instant> {
        // 1-RTT packets may be beyond what the peer can read yet.
        let may_be_unreadable = id.is_data() && !self.handshake.is_confirmed();
        if space.ledger.eliciting_in_flight() == 0 || may_be_unreadable {
            return None;
        }
        if space.loss_time.is_some() && !self.paths.is_single() {
            return None;
        }
        let path = self
            .paths
            .path_for(id)
            .filter(|path| !path.is_closing() && self.may_probe(path))?;
        let delay = match id {
            SpaceId::Data(_) => self.max_ack_delay,
            SpaceId::Initial | SpaceId::Handshake => Duration::ZERO,
        };
        let last_sent = space.ledger.last_eliciting_sent_at()?;
        let from = if self.paths.is_single() {
            last_sent
        } else {
            // RFC 9002, section 6.2.1, starts it again with each packet: it would not expire on a path that
            // carries a few packets now and then before its window is full, and other paths could carry them.
            last_sent.min(path.recovery.awaited_since())
        };
        Some(from + path.recovery.probe_timeout(delay))
    }

    /// False while the anti-amplification limit permits no probe: a probe that can't be sent must not be
    /// timed, it would only use up the back-off (RFC 9002, section 6.2.2.1).
    fn may_probe(&self, path: &PathState) -> bool {
        let initial = self.paths.space(SpaceId::Initial);
        // Ack-eliciting Initial packets fill a datagram.
        let needed = match initial {
            Some(space) if space.ledger.eliciting_in_flight() > 0 => MIN_INITIAL_SIZE,
            _ => MIN_PACKET_ROOM,
        };
        path.network.amplification.budget() >= needed as u64
    }

    /// The space to probe in though nothing is in flight that a probe timeout runs for.
    fn space_to_probe(&self, path: &PathState) -> Option<SpaceId> {
        // Lost handshake bytes may wait for room in a window that is full of 1-RTT packets, for
        // which no timer runs before the handshake is confirmed.
        let blocked = [SpaceId::Initial, SpaceId::Handshake]
            .into_iter()
            .find(|id| self.handshake.has_pending(id.level()) && self.paths.space(*id).is_some());
        let size = path.network.mtu.current().into();
        if let Some(id) = blocked
            && !path.recovery.has_window_for(size)
        {
            return Some(id);
        }
        // Anti-deadlock: a client that has nothing in flight probes all the same, since the server may be at
        // its anti-amplification limit (RFC 9002, section 6.2.2.1).
        if self.side.is_server() || self.address_is_validated_by_server() {
            return None;
        }
        Some(if self.handshake.keys().has(EncryptionLevel::Handshake) {
            SpaceId::Handshake
        } else {
            SpaceId::Initial
        })
    }

    /// True once the server has shown that it validated this end's address: it acknowledged a Handshake
    /// packet or confirmed the handshake.
    fn address_is_validated_by_server(&self) -> bool {
        self.handshake.is_confirmed()
            || (self.paths.space(SpaceId::Handshake))
                .is_none_or(|space| space.ledger.largest_acked().is_some())
    }

    /// When a client probes because it received nothing. What is in flight has a probe timeout of its own.
    pub(crate) fn silence(&self) -> Option<Instant> {
        let is_busy =
            |path: &PathState| path.space.ping || path.space.ledger.eliciting_in_flight() > 0;
        if self.side.is_server() || !self.handshake.is_confirmed() || self.paths.iter().any(is_busy)
        {
            return None;
        }
        let doublings = self.lifecycle.liveness.doublings(self.streams.progress())?;
        let silence = (self.longest_pto() * SILENT_PTOS).max(MIN_SILENCE);
        Some(self.lifecycle.last_activity() + silence.saturating_mul(1 << doublings))
    }

    /// When the idle timeout expires.
    pub(crate) fn idle(&self) -> Option<Instant> {
        self.lifecycle.idle_deadline(self.longest_pto())
    }

    /// When the handshake must be complete.
    pub(crate) fn handshake(&self) -> Option<Instant> {
        (!self.handshake.is_complete())
            .then(|| self.lifecycle.started_at() + self.config.handshake_timeout)
    }

    /// When a PING is sent if nothing else is: as often as the application asks, and often enough while
    /// flow control holds back what it wrote (RFC 9000, section 4.1).
    pub(crate) fn keep_alive(&self) -> Option<Instant> {
        let keep_alive = self.keep_alive_interval();
        let blocked = self
            .lifecycle
            .idle_timeout()
            .filter(|_| self.streams.is_flow_limited())
            .map(|timeout| (timeout / BLOCKED_PINGS).max(self.longest_pto()));
        let interval = match (keep_alive, blocked) {
            (Some(keep_alive), Some(blocked)) => keep_alive.min(blocked),
            (keep_alive, blocked) => keep_alive.or(blocked)?,
        };
        let is_pending = self.paths.iter().any(|path| path.space.ping);
        (self.handshake.is_confirmed() && !is_pending)
            .then(|| self.lifecycle.last_packet_at + interval)
    }

    /// The time between PINGs that the application asks for, the shorter one if by configuration and by call.
    fn keep_alive_interval(&self) -> Option<Duration> {
        let configured = self.config.keep_alive_interval;
        let requested = self.lifecycle.keep_alive();
        // Without any time between them, PINGs would never end.
        let intervals = configured.into_iter().chain(requested);
        intervals.filter(|interval| !interval.is_zero()).min()
    }

    /// When a PING is sent on one of several paths, and on which: as often as the application asks on each, so
    /// that address translators on its way keep their entries, and so that it is noticed if it fails.
    pub(crate) fn path_keep_alive(&self) -> Option<(Instant, PathId)> {
        if self.paths.is_single() {
            return None;
        }
        let interval = self.keep_alive_interval()?;
        let is_idle = |path: &&PathState| {
            path.carries_data() && !path.space.ping && path.space.ledger.eliciting_in_flight() == 0
        };
        let paths = self.paths.open().filter(is_idle);
        paths
            .map(|path| (path.last_activity() + interval, path.id))
            .min()
    }

    fn longest_pto(&self) -> Duration {
        self.paths.longest_pto(self.max_ack_delay)
    }
}
