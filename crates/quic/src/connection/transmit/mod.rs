//! Packets out: a pipeline of `choose` (which path, which encryption levels, may data go), `fill` (owners
//! append frames) and `seal` (number, protect, ledger).

mod choose;
mod close;
mod fill;
mod seal;

pub(super) use self::seal::MIN_PACKET_ROOM;

use std::time::Duration;

use swiftwater_units::{Instant, PathId};
use swiftwater_wire::ErrorCode;

use crate::crypto::EncryptionLevel;
use crate::error::{ConnectionError, TransportError};
use crate::observe::{Observation, Owner};
use crate::policy::{Decision, PathView};
use crate::transmit::Transmit;

use super::Connection;

use self::choose::Plan;

pub(super) use self::choose::Packet;
pub(super) use self::seal::Target;

/// Shortest time that a scheduler can make data wait.
const MIN_WAIT: Duration = Duration::from_millis(1);

/// Packets that answer a peer which acknowledges nothing, at most.
const MAX_NEGLECTED: u32 = 4096;
/// The same for Initial and Handshake packets.
const MAX_NEGLECTED_EARLY: u32 = 256;

/// Smallest UDP payload of datagrams that prove a path carries them (RFC 9000, section 14).
pub(super) const MIN_INITIAL_SIZE: usize = 1200;

impl Connection {
    /// Writes the next datagrams to send into `buf` and says where they go; `None` if there is
    /// nothing to send now. At most `max_segments` datagrams of equal size, the last one perhaps
    /// shorter; `buf` must have room for one full datagram at least.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        max_segments: usize,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        if self.has_used_up_numbers() {
            // Not even a close may follow (RFC 9000, section 12.3).
            self.vanish(now, ConnectionError::PacketNumbersExhausted);
            return None;
        }
        if !self.lifecycle.is_open() {
            return self.transmit_close(now, buf);
        }
        self.drain_stream_control();
        self.emit_resets(now);
        if let Some(transmit) = self.transmit_side_path(now, buf) {
            return Some(transmit);
        }
        self.update_keys_if_due(now);
        self.check_neglect(now);
        if !self.lifecycle.is_open() {
            return self.transmit_close(now, buf);
        }
        if let Some(transmit) = self.transmit_mtu_probe(now, buf) {
            return Some(transmit);
        }
        let (path, data_may_go) = self.choose_path(now);
        let ecn = self.paths.get(path).path.ecn.mark();
        let (mut size, mut segment) = (0, 0);
        for nth in 0..max_segments.max(1) {
            let limit = match nth {
                0 => self.datagram_limit(path),
                _ => segment,
            };
            let Some(out) = buf.get_mut(size..size + limit) else {
                break;
            };
            let plan = self.choose_packets(now, limit, data_may_go);
            if plan.is_empty() {
                break;
            }
            let len = self.build_datagram(now, &plan, out);
            if len == 0 {
                break;
            }
            size += len;
            self.on_datagram_sent(path, len);
            if nth == 0 {
                segment = len;
            }
            // Only full datagrams can be followed by others of the same size, and all of a batch
            // have the same mark.
            if len < limit || self.paths.get(path).path.ecn.mark() != ecn {
                break;
            }
        }
        if size == 0 {
            self.emit_rest(now);
            return None;
        }
        let path = &self.paths.get(path).path;
        Some(Transmit {
            path: path.id,
            destination: path.address.remote,
            source_ip: path.address.local.ip,
            socket: path.address.local.socket,
            ecn,
            size,
            segment_size: (size > segment).then_some(segment),
        })
    }

    /// Closes if the peer goes on sending but acknowledges nothing, not even probes: we would have to
    /// remember every packet that answers it. A peer that doesn't hear us can't send that much, and
    /// one that does must acknowledge (RFC 9000, section 13.2.1).
    fn check_neglect(&mut self, now: Instant) {
        let neglects = |&level: &EncryptionLevel| {
            let limit = match level {
                EncryptionLevel::OneRtt | EncryptionLevel::ZeroRtt => MAX_NEGLECTED,
                EncryptionLevel::Initial | EncryptionLevel::Handshake => MAX_NEGLECTED_EARLY,
            };
            self.space(level)
                .is_some_and(|space| space.neglected > limit)
        };
        if self.spaces_in_use().iter().any(neglects) {
            self.fail(
                now,
                TransportError::new(
                    ErrorCode::PROTOCOL_VIOLATION,
                    "the peer sends, but acknowledges nothing",
                ),
            );
        }
    }

    /// True if a packet-number space has no number left.
    fn has_used_up_numbers(&self) -> bool {
        self.spaces_in_use()
            .iter()
            .filter_map(|&level| self.space(level))
            .any(|space| space.ledger.is_exhausted())
    }

    pub(super) fn on_datagram_sent(&mut self, path: PathId, len: usize) {
        self.monitor.stats.datagrams_sent += 1;
        self.monitor.stats.bytes_sent += (len as u64).into();
        let path = &mut self.paths.get_mut(path).path;
        path.amplification.on_sent(len);
        if path.ecn.mark().is_some() {
            path.ecn.on_sent();
        }
    }

    /// Builds one datagram of the planned packets; returns its length, 0 if nothing came of it.
    fn build_datagram(&mut self, now: Instant, plan: &Plan, out: &mut [u8]) -> usize {
        let permitted = out.len().min(plan.budget());
        let out = &mut out[..permitted];
        let mut len = 0;
        for (nth, packet) in plan.packets().iter().enumerate() {
            let is_last = nth + 1 == plan.packets().len();
            let target = Target {
                pad_to: if plan.pads() {
                    MIN_INITIAL_SIZE.saturating_sub(len).min(out.len() - len)
                } else {
                    0
                },
                is_last,
                candidate_cid: None,
            };
            len += self.build_packet(now, packet, &target, &mut out[len..]);
        }
        len
    }

    /// Challenges and echoes on paths besides the one in use, each in a datagram of its own.
    fn transmit_side_path(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        if !self.handshake.is_confirmed() {
            return None;
        }
        let at = self.paths.first().path.candidates.iter().position(|side| {
            side.wants_to_send() && side.amplification.budget() >= MIN_PACKET_ROOM as u64
        })?;
        let data = self.random_8();
        let path = &mut self.paths.first_mut().path;
        let current = path.remote_cids.current();
        let side = path.candidates.get_mut(at)?;
        let address = side.address;
        let budget = usize::try_from(side.amplification.budget()).unwrap_or(usize::MAX);
        let limit = MIN_INITIAL_SIZE.min(budget).min(buf.len());
        let challenge = side.validation.wants_challenge().then_some(data);
        let response = side.responses.pop_front();
        if challenge.is_some() {
            let expanded = limit >= MIN_INITIAL_SIZE;
            side.validation.on_sent(now, data, expanded);
        }
        let target = Target {
            pad_to: limit,
            is_last: true,
            candidate_cid: Some(side.cid.map_or(current, |cid| cid.cid)),
        };
        let packet = choose::Packet::validation(challenge, response);
        let size = self.build_packet(now, &packet, &target, &mut buf[..limit]);
        if size == 0 {
            return None;
        }
        if let Some(side) = self.paths.first_mut().path.candidates.get_mut(at) {
            side.amplification.on_sent(size);
        }
        self.monitor.stats.datagrams_sent += 1;
        self.monitor.stats.bytes_sent += (size as u64).into();
        Some(Transmit {
            path: PathId::ZERO,
            destination: address.remote,
            source_ip: address.local.ip,
            socket: address.local.socket,
            ecn: None,
            size,
            segment_size: None,
        })
    }

    /// Closes if the key may protect nothing more, else initiates a key update if one is due and permitted (RFC 9001, section 6.1).
    fn update_keys_if_due(&mut self, now: Instant) {
        if self.handshake.protection_ref().is_exhausted() {
            return self.fail(
                now,
                TransportError::new(
                    ErrorCode::AEAD_LIMIT_REACHED,
                    "the key may protect no more packets and could not be updated",
                ),
            );
        }
        let interval = self.identity.config.key_update_interval;
        if self.handshake.is_confirmed() && self.handshake.protection_ref().update_is_due(interval)
        {
            let generation = self.handshake.update_keys(None);
            let observation = Observation::KeyUpdated {
                generation,
                initiator: Owner::Local,
            };
            self.monitor.observe(now, &observation);
        }
    }

    /// Makes the scheduler's view of the paths current.
    pub(super) fn refresh_path_views(&mut self, now: Instant) {
        let mut views = std::mem::take(&mut self.scratch.need().views);
        views.clear();
        views.extend(self.paths.iter().map(|entry| {
            let rtt = entry.recovery.rtt();
            PathView {
                id: entry.path.id,
                smoothed_rtt: rtt.smoothed,
                min_rtt: rtt.min,
                rtt_var: rtt.var,
                cwnd: entry.recovery.cwnd(),
                bytes_in_flight: entry.recovery.bytes_in_flight(),
                pacing_release: entry.pacing_until.unwrap_or(now),
                validated: entry.path.amplification.is_validated(),
                backup: false,
            }
        }));
        self.scratch.need().views = views;
    }

    /// Asks the scheduler and validates its answer: the path of the next packets, and whether they
    /// may carry data. Acknowledgements never wait.
    fn choose_path(&mut self, now: Instant) -> (PathId, bool) {
        self.refresh_path_views(now);
        let demand = self.demand();
        match self
            .policies
            .scheduler
            .choose(now, &self.scratch.need().views, &demand)
        {
            Decision::Path(id) if self.scratch.need().views.iter().any(|view| view.id == id) => {
                (id, true)
            }
            Decision::Path(_) => {
                self.monitor.stats.invalid_decisions += 1;
                (self.paths.first().path.id, true)
            }
            Decision::Wait(until) => {
                // A wait that is over already would spin.
                let until = until.max(now + MIN_WAIT);
                let wait = &mut self.paths.first_mut().pacing_until;
                *wait = Some(wait.map_or(until, |at| at.min(until)));
                (self.paths.first().path.id, false)
            }
        }
    }
}
