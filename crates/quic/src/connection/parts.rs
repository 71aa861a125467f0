//! Small parts of a connection that hold values and little behaviour.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_units::{Instant, PacketNumber, PathId, Side};
use swiftwater_wire::{ConnectionId, PacketType};

use crate::ack_frequency::{Asked, Granted, offered};
use crate::cid::CidSource;
use crate::config::TransportConfig;
use crate::crypto::EndpointKey;
use crate::frame_writer::Carried;
use crate::lazy_box::LazyBox;
use crate::observe::{Observation, Observer, SentFrame};
use crate::path::Path;
use crate::policy::{
    AckPolicy, Hints, PacketOutcome, PathView, Reinjection, Reinjector, Scheduler,
};
use crate::recovery::{LostRecord, PathRecovery};
use crate::space::{AckOutcome, Space};

use crate::transmit::LocalAddress;

use super::events::{EndpointEvent, Event};
use super::observations::LastReported;
use super::stats::Totals;

/// What a connection is and was told at its start.
pub(super) struct Identity {
    pub(super) side: Side,
    pub(super) config: Arc<TransportConfig>,
    pub(super) key: Arc<dyn EndpointKey>,
    pub(super) cids: CidSource,
    /// Source connection ID of the peer's first packet.
    pub(super) peer_handshake_cid: Option<ConnectionId>,
    /// The peer's address in the handshake.
    pub(super) first_remote: SocketAddr,
    /// Our end of the path of the handshake, if we asked the client to move elsewhere (server).
    pub(super) first_home: Option<LocalAddress>,
    /// `None` once the handshake is confirmed.
    pub(super) start: Option<Box<Start>>,
    /// The QUIC bit means nothing, if the peer agrees (RFC 9287).
    pub(super) grease: bool,
}

/// What a connection has to know of its start until the handshake is confirmed.
pub(super) struct Start {
    pub(super) original_dst_cid: ConnectionId,
    /// Source connection ID of the Retry that was sent (server) or followed (client).
    pub(super) retry_src_cid: Option<ConnectionId>,
    /// Token for our Initial packets.
    pub(super) token: Vec<u8>,
    pub(super) address_token_lifetime: Option<Duration>,
    /// The application may send before the client's last handshake message (server).
    pub(super) half_rtt: bool,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("side", &self.side)
            .finish_non_exhaustive()
    }
}

/// A path with its recovery and its 1-RTT packet-number space.
#[derive(Debug)]
pub(super) struct PathEntry {
    pub(super) path: Path,
    pub(super) recovery: PathRecovery,
    pub(super) space: Space,
    /// The pacer holds data back until then.
    pub(super) pacing_until: Option<Instant>,
}

/// The paths, by identifier. There is always at least one.
#[derive(Debug)]
pub(super) struct Paths {
    first: PathEntry,
    /// Paths beyond the first, sorted by identifier.
    others: Vec<PathEntry>,
}

impl Paths {
    pub(super) fn new(first: PathEntry) -> Self {
        Self {
            first,
            others: Vec::new(),
        }
    }

    /// The path of the handshake, which also carries Initial and Handshake packets.
    pub(super) fn first(&self) -> &PathEntry {
        &self.first
    }

    pub(super) fn first_mut(&mut self) -> &mut PathEntry {
        &mut self.first
    }

    /// The path `id`; the first one if there is none of that name.
    pub(super) fn get(&self, id: PathId) -> &PathEntry {
        self.others
            .iter()
            .find(|entry| entry.path.id == id)
            .unwrap_or(&self.first)
    }

    pub(super) fn get_mut(&mut self, id: PathId) -> &mut PathEntry {
        self.others
            .iter_mut()
            .find(|entry| entry.path.id == id)
            .unwrap_or(&mut self.first)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &PathEntry> {
        std::iter::once(&self.first).chain(&self.others)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PathEntry> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }
}

/// The policies of a connection and what they were told.
pub(super) struct Policies {
    pub(super) scheduler: Box<dyn Scheduler>,
    pub(super) reinjector: Box<dyn Reinjector>,
    pub(super) ack: Box<dyn AckPolicy>,
    /// How often the peer wants to be acknowledged.
    pub(super) ack_granted: Granted,
    /// How often we want to be.
    pub(super) ack_asked: Asked,
    pub(super) hints: LazyBox<Hints>,
    /// Copies that the re-injector asked for, not sent yet.
    pub(super) reinjections: VecDeque<Reinjection>,
    /// Decisions of the re-injector that the observer was shown.
    pub(super) decisions_seen: u64,
}

impl Policies {
    pub(super) fn new(config: &TransportConfig) -> Self {
        Self {
            scheduler: config.policies.scheduler(),
            reinjector: config.policies.reinjector(),
            ack: config.policies.ack_policy(config.ack_eliciting_threshold),
            ack_granted: Granted::new(offered(config)),
            ack_asked: Asked::default(),
            hints: LazyBox::default(),
            reinjections: VecDeque::new(),
            decisions_seen: 0,
        }
    }
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policies")
            .field("reinjector", &self.reinjector)
            .field("hints", &self.hints)
            .finish_non_exhaustive()
    }
}

/// What waits to be polled.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pub(super) events: VecDeque<Event>,
    pub(super) endpoint_events: VecDeque<EndpointEvent>,
    /// [`Event::Closed`] was polled: nothing but [`Event::Drained`] may follow.
    pub(super) end_told: bool,
}

/// Counters, and the observer if there is one.
pub(super) struct Monitor {
    pub(super) stats: Totals,
    observer: Option<Box<dyn Observer>>,
    /// The packet that is being looked at: its size, and its type once that is known.
    pub(super) in_hand: (usize, Option<PacketType>),
    /// What the observer knows already of what may change anywhere.
    pub(super) last_reported: LazyBox<LastReported>,
    /// Flow control holds data back since then.
    pub(super) blocked_since: Option<Instant>,
}

impl Monitor {
    pub(super) fn new(observer: Option<Box<dyn Observer>>) -> Self {
        Self {
            stats: Totals::default(),
            observer,
            in_hand: (0, None),
            last_reported: LazyBox::default(),
            blocked_since: None,
        }
    }

    /// True if anybody listens, so that costly observations need not be made up otherwise.
    pub(super) fn is_watched(&self) -> bool {
        self.observer.is_some()
    }

    pub(super) fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        if let Some(observer) = &mut self.observer {
            observer.observe(now, observation);
        }
    }

    /// The packet in hand was thrown away.
    pub(super) fn dropped(&mut self, now: Instant, reason: &'static str) {
        self.stats.packets_dropped += 1.into();
        count_drop(&mut self.stats.drops, reason);
        let (size, packet_type) = self.in_hand;
        self.observe(
            now,
            &Observation::PacketDropped {
                reason,
                size,
                packet_type,
            },
        );
    }
}

/// Counts a reason. They are few, and literals of this crate.
fn count_drop(drops: &mut Vec<(&'static str, u64)>, reason: &'static str) {
    match drops.iter_mut().find(|(known, _)| *known == reason) {
        Some((_, count)) => *count += 1,
        None => drops.push((reason, 1)),
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor")
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// Vectors that live on so that no packet allocates, while packets come and go.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) outcome: AckOutcome,
    pub(super) lost: Vec<LostRecord>,
    pub(super) numbers: Vec<PacketNumber>,
    pub(super) rising: Vec<PacketNumber>,
    pub(super) carried: Vec<Carried>,
    pub(super) views: Vec<PathView>,
    pub(super) reinjections: Vec<Reinjection>,
    pub(super) outcomes: Vec<PacketOutcome>,
    pub(super) frames: Vec<SentFrame>,
    /// Plaintext of the packet being sent, if somebody watches.
    pub(super) payload: Vec<u8>,
}
