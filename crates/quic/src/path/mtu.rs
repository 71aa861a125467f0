//! The largest datagram that a path carries: the search for it, and noticing when the path carries
//! it no more (RFC 8899; RFC 9000, section 14.3).
//!
//! One probe is in flight at a time: a packet of PING and PADDING whose loss is no sign of
//! congestion. Lost datagrams of all sizes count too: if only large ones vanish, round after
//! round, the path became a black hole for them. ICMP is ignored, since any host that
//! guesses ports can forge it; the socket's own refusal counts, because it is local.
//!
//! Sending probes and reporting them to recovery is the connection's (`connection::mtu`).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_units::{Instant, PacketNumber};

use crate::config::{MtuDiscovery, TransportConfig};
use crate::datagram_size::MIN_MAX_DATAGRAM_SIZE;
use crate::recovery::{AckedPacket, LostRecord};

use super::large_packet_loss::LargePacketLoss;

/// `BASE_PLPMTU` (RFC 8899, section 5.1.2).
const BASE: u16 = MIN_MAX_DATAGRAM_SIZE;

/// `MAX_PROBES`: losses in a row after which a size counts as too large (RFC 8899, section 5.1.2).
const MAX_PROBES: u8 = 3;

/// Rounds in a row in which large packets vanish and nothing else, that make a black hole: more where losses are frequent
/// anyway ([`LargePacketLoss`]).
const BLACK_HOLE_ROUNDS: u8 = 3;

/// The search ends when no more than this could be won, bytes. It is the difference between the
/// headers of IPv6 and IPv4, so that a bound meant for IPv4 costs no search over IPv6.
const GRANULARITY: u16 = 20;

/// Packet size of Ethernet, by far the most common answer.
const ETHERNET: u16 = 1500;

/// IP packet sizes that paths usually end at, rising: IPv6's least (RFC 8200), tunnels of data
/// centres, WireGuard over IPv6, IP in IP, PPPoE (RFC 2516), Ethernet, FDDI and others of RFC 1191's
/// table, jumbo frames, loopback.
const USUAL: [u16; 11] = [
    1280, 1400, 1420, 1480, 1492, ETHERNET, 4352, 8166, 9000, 17_914, 65_535,
];

/// Where the search for the largest datagram stands.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum MtuState {
    /// Discovery is switched off.
    #[default]
    Off,
    /// The handshake is not confirmed, or the path not validated.
    Waiting,
    /// Probes are sent along with data.
    Searching,
    /// The largest size is found; the next search is due after a while.
    Complete,
    /// Large packets vanished: the initial size, or the smallest, is in use until the next search.
    BlackHole,
}

/// What discovery did on a path, address changes included.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct MtuTotals {
    pub(crate) probes_sent: u32,
    pub(crate) probes_lost: u32,
    pub(crate) black_holes: u32,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Off,
    Waiting,
    Searching(Search),
    Complete { until: Instant },
    BlackHole { until: Instant },
}

/// A running search: the answer is at least the size in use and at most `ceiling`.
#[derive(Clone, Copy, Debug)]
struct Search {
    ceiling: u16,
    /// No probe of this search has failed.
    is_unbroken: bool,
    /// What the next probe tests.
    size: u16,
    /// Probes of `size` that were lost.
    losses: u8,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    number: PacketNumber,
    size: u16,
    expires: Instant,
}

/// Large packets vanish, and so far nothing contradicts that it is for their size.
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    rounds: u8,
    /// How many vanished.
    lost: u16,
    /// The smallest that vanished.
    smallest: u16,
    /// The last that vanished.
    newest: PacketNumber,
    /// When the last round was evaluated; the next is made of packets sent later.
    evaluated_at: Instant,
}

/// Datagram size of one path.
#[derive(Debug)]
pub(crate) struct Mtu {
    config: Arc<TransportConfig>,
    /// What was in use before more was known of the path.
    initial: u16,
    current: u16,
    /// Bytes of IP and UDP headers.
    headers: u16,
    /// The peer's `max_udp_payload_size`.
    peer_limit: u16,
    /// The local socket refuses more.
    socket_limit: u16,
    phase: Phase,
    probe: Option<Probe>,
    suspicion: Option<Suspicion>,
    losses: LargePacketLoss,
    totals: MtuTotals,
}

impl Mtu {
    /// A path to `remote` that uses datagrams of `initial` bytes until more is known.
    pub(crate) fn new(config: &Arc<TransportConfig>, initial: u16, remote: IpAddr) -> Self {
        let headers = headers_to(remote);
        let initial = initial.clamp(BASE, u16::MAX - headers);
        Self {
            config: Arc::clone(config),
            initial,
            current: initial,
            headers,
            peer_limit: u16::MAX,
            socket_limit: u16::MAX,
            phase: if config.mtu_discovery.is_some() {
                Phase::Waiting
            } else {
                Phase::Off
            },
            probe: None,
            suspicion: None,
            losses: LargePacketLoss::default(),
            totals: MtuTotals::default(),
        }
    }

    /// Another path to `remote` is in use now: nothing that was found holds for it, except what the
    /// peer takes. Totals go on. Returns what was known of the path so far.
    pub(crate) fn restart(&mut self, initial: u16, remote: IpAddr) -> Self {
        let mut new = Self {
            peer_limit: self.peer_limit,
            totals: self.totals,
            ..Self::new(&self.config, initial, remote)
        };
        new.current = new.current.min(new.peer_limit);
        std::mem::replace(self, new)
    }

    /// The path of which this was known is in use again. A probe that was in flight when it was left
    /// is discarded.
    pub(crate) fn resume(&mut self, mut kept: Self) {
        kept.totals = self.totals;
        kept.probe = None;
        kept.suspicion = None;
        *self = kept;
    }

    /// UDP payload of full datagrams now.
    pub(crate) fn current(&self) -> u16 {
        self.current
    }

    /// UDP payload of datagrams that answer a probe timeout: what they must find out is whether the
    /// peer is there, and a path that carries no large ones any more must not hide it.
    pub(crate) fn for_probe_timeout(&self) -> u16 {
        if self.config.mtu_discovery.is_some() {
            self.current.min(BASE)
        } else {
            self.current
        }
    }

    /// Where the search stands.
    pub(crate) fn state(&self) -> MtuState {
        match self.phase {
            Phase::Off => MtuState::Off,
            Phase::Waiting => MtuState::Waiting,
            Phase::Searching(_) => MtuState::Searching,
            Phase::Complete { .. } => MtuState::Complete,
            Phase::BlackHole { .. } => MtuState::BlackHole,
        }
    }

    pub(crate) fn totals(&self) -> MtuTotals {
        self.totals
    }

    /// The peer's `max_udp_payload_size` became known.
    pub(crate) fn set_peer_limit(&mut self, limit: u64) {
        self.peer_limit = u16::try_from(limit).unwrap_or(u16::MAX).max(BASE);
        self.current = self.current.min(self.peer_limit);
    }

    /// The largest size worth testing.
    fn limit(&self, settings: &MtuDiscovery) -> u16 {
        settings
            .upper_bound
            .min(u16::MAX - self.headers)
            .min(self.peer_limit)
            .min(self.socket_limit)
    }

    // --- the search

    /// The size of the probe to send now, if one is due. The path must be validated and the
    /// handshake confirmed.
    pub(crate) fn probe_to_send(&mut self, now: Instant) -> Option<u16> {
        if self.probe.is_some() {
            return None;
        }
        match self.phase {
            Phase::Off => return None,
            Phase::Searching(_) => {}
            Phase::Waiting => self.begin(now),
            Phase::Complete { until } | Phase::BlackHole { until } => {
                if now < until {
                    return None;
                }
                // The network may have changed, the local interface included.
                self.socket_limit = u16::MAX;
                self.begin(now);
            }
        }
        match self.phase {
            Phase::Searching(search) => Some(search.size),
            _ => None,
        }
    }

    fn begin(&mut self, now: Instant) {
        let Some(settings) = self.config.mtu_discovery else {
            return;
        };
        let ceiling = self.limit(&settings);
        self.go_on(now, ceiling, true);
    }

    /// Chooses the next size between the one in use and `ceiling`, or ends the search.
    fn go_on(&mut self, now: Instant, ceiling: u16, is_unbroken: bool) {
        let Some(settings) = self.config.mtu_discovery else {
            return;
        };
        self.phase = if ceiling.saturating_sub(self.current) <= GRANULARITY {
            Phase::Complete {
                until: now + settings.raise_interval,
            }
        } else {
            Phase::Searching(Search {
                ceiling,
                is_unbroken,
                size: self.next_size(ceiling, is_unbroken),
                losses: 0,
            })
        };
    }

    /// The most likely answers first: Ethernet's size, then all that is permitted, then the middle
    /// of the usual sizes that remain, then the middle of what remains.
    fn next_size(&self, ceiling: u16, is_unbroken: bool) -> u16 {
        let low = self.current;
        let ethernet = ETHERNET - self.headers;
        if is_unbroken {
            return if low < ethernet && ethernet <= ceiling {
                ethernet
            } else {
                ceiling
            };
        }
        let usual = USUAL.map(|size| size - self.headers);
        let from = usual.partition_point(|&size| size <= low);
        let to = usual.partition_point(|&size| size <= ceiling);
        if from < to {
            usual[usize::midpoint(from, to)]
        } else {
            low + (ceiling - low).div_ceil(2)
        }
    }

    /// The probe that [`Mtu::probe_to_send`] asked for left as packet `number`. It counts as lost after
    /// `timeout`, unless its fate is known before.
    pub(crate) fn on_probe_sent(
        &mut self,
        now: Instant,
        number: PacketNumber,
        size: u16,
        timeout: Duration,
    ) {
        self.totals.probes_sent += 1;
        self.probe = Some(Probe {
            number,
            size,
            expires: now + timeout,
        });
    }

    /// When the probe in flight counts as lost.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        self.probe.map(|probe| probe.expires)
    }

    /// Time passed: the probe to be taken out of flight, if it counts as lost. Nothing that was sent
    /// later arrived either, so its size is not the cause; it is tried again.
    pub(crate) fn on_timeout(&mut self, now: Instant) -> Option<PacketNumber> {
        let probe = self.probe.filter(|probe| probe.expires <= now)?;
        self.probe = None;
        self.totals.probes_lost += 1;
        Some(probe.number)
    }

    /// Packets were acknowledged.
    pub(crate) fn on_acked(
        &mut self,
        now: Instant,
        numbers: &[PacketNumber],
        packets: &[AckedPacket],
    ) {
        let large = packets.iter().filter(|packet| packet.size > BASE).count();
        self.losses
            .on_acked(u16::try_from(large).unwrap_or(u16::MAX));
        if let Some(suspicion) = self.suspicion
            && packets
                .iter()
                .any(|packet| packet.number > suspicion.newest && packet.size >= suspicion.smallest)
        {
            self.losses.on_lost(suspicion.lost);
            self.suspicion = None;
        }
        if let Some(probe) = self.probe
            && numbers.contains(&probe.number)
        {
            self.probe = None;
            if let Phase::Searching(search) = self.phase {
                self.current = self.current.max(probe.size.min(search.ceiling));
                self.go_on(now, search.ceiling, search.is_unbroken);
            }
        }
    }

    /// The probe `number` was lost, while later packets arrived.
    pub(crate) fn on_probe_lost(&mut self, now: Instant, number: PacketNumber) {
        let Some(probe) = self.probe.filter(|probe| probe.number == number) else {
            return;
        };
        self.probe = None;
        self.totals.probes_lost += 1;
        let Phase::Searching(search) = &mut self.phase else {
            return;
        };
        if probe.size != search.size {
            return;
        }
        search.losses += 1;
        if search.losses >= MAX_PROBES {
            self.go_on(now, probe.size - 1, false);
        }
    }

    /// The local socket refused a datagram of `size` bytes. Returns the probe to take out of flight, if it
    /// was one.
    pub(crate) fn on_refused(&mut self, now: Instant, size: u16) -> Option<PacketNumber> {
        if size <= BASE {
            // There is no way without datagrams of this size.
            return None;
        }
        self.socket_limit = self.socket_limit.min(size - 1);
        let limit = self.socket_limit;
        let refused = self.probe.filter(|probe| probe.size > limit);
        if refused.is_some() {
            self.probe = None;
            self.totals.probes_lost += 1;
        }
        if self.current > limit {
            self.current = if self.initial <= limit {
                self.smaller()
            } else {
                BASE
            };
        }
        if let Phase::Searching(search) = self.phase
            && search.ceiling > limit
        {
            self.go_on(now, limit, false);
        } else if matches!(self.phase, Phase::Complete { .. }) && self.current < limit {
            self.go_on(now, limit, false);
        }
        refused.map(|probe| probe.number)
    }

    // --- black holes

    /// Packets other than probes were declared lost, oldest first. `got_through` is true if a
    /// packet sent after the given one and at least as large as given was acknowledged. True if the
    /// path turned out to be a black hole: a smaller size is in use now.
    pub(crate) fn on_lost(
        &mut self,
        now: Instant,
        lost: &[LostRecord],
        got_through: impl FnOnce(PacketNumber, u16) -> bool,
    ) -> bool {
        let Some(settings) = self.config.mtu_discovery else {
            return false;
        };
        let (Some(newest), Some(smallest)) =
            (lost.last(), lost.iter().map(|packet| packet.size).min())
        else {
            return false;
        };
        // Where small ones are lost too, size isn't the reason.
        if self.current <= BASE || smallest <= BASE {
            return false;
        }
        let count = u16::try_from(lost.len()).unwrap_or(u16::MAX);
        let before = self.suspicion.map_or(0, |suspicion| suspicion.lost);
        let count = before.saturating_add(count);
        if got_through(newest.number, smallest) {
            self.losses.on_lost(count);
            self.suspicion = None;
            return false;
        }
        let (rounds, smallest) = match self.suspicion {
            Some(before) if newest.sent_at <= before.evaluated_at => {
                // Still of the round that was evaluated.
                self.suspicion = Some(Suspicion {
                    lost: count,
                    smallest: before.smallest.min(smallest),
                    newest: before.newest.max(newest.number),
                    ..before
                });
                return false;
            }
            Some(before) => (before.rounds + 1, before.smallest.min(smallest)),
            None => (1, smallest),
        };
        if rounds < self.losses.unlikely_rounds(BLACK_HOLE_ROUNDS) {
            self.suspicion = Some(Suspicion {
                rounds,
                lost: count,
                smallest,
                newest: newest.number,
                evaluated_at: now,
            });
            return false;
        }
        self.suspicion = None;
        self.totals.black_holes += 1;
        self.phase = Phase::BlackHole {
            until: now + settings.black_hole_pause,
        };
        self.current = self.smaller();
        true
    }

    /// What is in use when the size in use is too large: the initial size, and if that is the one, the least.
    fn smaller(&self) -> u16 {
        if self.current > self.initial {
            self.initial
        } else {
            BASE
        }
    }
}

/// Bytes of the IP and UDP headers in front of a payload to `remote`.
fn headers_to(remote: IpAddr) -> u16 {
    match remote.to_canonical() {
        IpAddr::V4(_) => 20 + 8,
        IpAddr::V6(_) => 40 + 8,
    }
}
