//! Packets out: which path, which encryption levels, and may data go (`choose`); `transmission` then writes
//! the packets.

mod choose;
mod close;

use swiftwater_units::{ByteCount, Instant, PathId};
use swiftwater_wire::ErrorCode;

use crate::datagram_size::MIN_INITIAL_SIZE;
use crate::error::{ConnectionError, TransportError};
use crate::handshake::{KeysUnavailable, UpdateCause};
use crate::observe::{Observation, Owner};
use crate::space::SpaceId;
use crate::transmission::{Packet, Plan, Target, ValidationFrames};
use crate::transmit::Transmit;

use super::Connection;
use super::receive::keys_unavailable;
use crate::policy_host::Scheduled;

/// Packets that answer a peer which acknowledges nothing, at most.
const MAX_NEGLECTED: u32 = 4096;
/// The same for Initial and Handshake packets.
const MAX_NEGLECTED_IN_HANDSHAKE: u32 = 256;

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
        if self.are_numbers_exhausted() {
            // Not even a close may follow (RFC 9000, section 12.3).
            self.close_silently(now, ConnectionError::PacketNumbersExhausted);
            return None;
        }
        if !self.lifecycle.is_open() {
            return self.transmit_close(now, buf);
        }
        self.streams.drain_control(&mut self.control);
        self.report_resets(now);
        self.poll_feedback(now);
        if let Some(transmit) = self.transmit_on_candidate(now, buf) {
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
        let transmit = self.transmit_data(now, max_segments, buf);
        if transmit.is_none() {
            self.report_idle(now);
        }
        transmit
    }

    /// Like [`Connection::poll_transmit`], but writes only what leaves by other addresses than those in use: a
    /// datagram with a PATH_CHALLENGE or PATH_RESPONSE frame for a candidate or previous path (RFC 9000,
    /// section 9.1). For drivers whose socket of the path in use takes no datagrams at the moment;
    /// everything else stays queued.
    pub fn poll_transmit_off_path(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        if !self.lifecycle.is_open() || self.are_numbers_exhausted() {
            return None;
        }
        self.transmit_on_candidate(now, buf)
    }

    /// Datagrams on the path that the scheduler names.
    fn transmit_data(
        &mut self,
        now: Instant,
        max_segments: usize,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        let scheduled = self.choose_path(now);
        let (id, data_may_go) = (scheduled.path, scheduled.wait_until.is_none());
        let ecn = self.paths.get(id)?.link.ecn.mark();
        let (mut size, mut segment) = (0, 0);
        for nth in 0..max_segments.max(1) {
            let limit = match nth {
                0 => self.datagram_limit(id),
                _ => segment,
            };
            let Some(out) = buf.get_mut(size..size + limit) else {
                break;
            };
            let plan = self.choose_packets(now, id, limit, data_may_go);
            if plan.is_empty() {
                break;
            }
            let len = self.build_datagram(now, id, &plan, out);
            if len == 0 {
                break;
            }
            size += len;
            if nth == 0 {
                segment = len;
            }
            self.policies.on_datagram_sent(now, id, len);
            // Only full datagrams can be followed by others of the same size, all of a batch have the
            // same mark, and the scheduler is asked again once its permission is used up.
            let is_used_up = ByteCount::new((size + segment) as u64) > scheduled.max_bytes;
            if len < limit || is_used_up || self.paths.get(id)?.link.ecn.mark() != ecn {
                break;
            }
        }
        if size == 0 {
            return None;
        }
        let address = self.paths.get(id)?.link.address;
        let segment_size = (size > segment).then_some(segment);
        Some(Transmit {
            segment_size,
            ..Transmit::single(id, &address, ecn, size)
        })
    }

    /// Asks the scheduler for the path of the next datagrams, and whether they may carry data.
    /// Acknowledgements are never held back.
    fn choose_path(&mut self, now: Instant) -> Scheduled {
        let demand = self.demand();
        let (paths, monitor) = (&self.paths, &mut self.monitor);
        let scheduled = self.policies.schedule(now, &demand, paths, monitor);
        let path = self.paths.get_mut(scheduled.path);
        if let (Some(until), Some(path)) = (scheduled.wait_until, path) {
            let wait = &mut path.pacing_until;
            *wait = Some(wait.map_or(until, |at| at.min(until)));
        }
        scheduled
    }

    /// Builds one datagram of the planned packets; returns its length, 0 if nothing came of it.
    fn build_datagram(&mut self, now: Instant, id: PathId, plan: &Plan, out: &mut [u8]) -> usize {
        let Some((mut transmission, buffers)) = self.transmission(now, id) else {
            return 0;
        };
        let built = transmission.build_datagram(plan, out, buffers);
        self.check_built(now, built)
    }

    /// Builds one packet in a datagram of its own; returns its length, 0 if nothing came of it.
    pub(super) fn build_packet(
        &mut self,
        now: Instant,
        id: PathId,
        packet: &Packet,
        target: &Target,
        out: &mut [u8],
    ) -> usize {
        let Some((mut transmission, buffers)) = self.transmission(now, id) else {
            return 0;
        };
        let built = transmission.build_packet(packet, target, out, buffers);
        self.check_built(now, built)
    }

    /// Closes if a packet could not be protected: nothing of it is sent.
    fn check_built(&mut self, now: Instant, built: Result<usize, KeysUnavailable>) -> usize {
        if built.is_err() {
            self.fail(now, keys_unavailable());
        }
        built.unwrap_or(0)
    }

    /// Closes if the peer goes on sending but acknowledges nothing, not even probes: every packet that
    /// answers it would have to be remembered. A peer that receives nothing can't send that much, and
    /// one that does must acknowledge (RFC 9000, section 13.2.1).
    fn check_neglect(&mut self, now: Instant) {
        let is_neglected = self.paths.spaces().any(|(id, space)| {
            let limit = match id {
                SpaceId::Data(_) => MAX_NEGLECTED,
                SpaceId::Initial | SpaceId::Handshake => MAX_NEGLECTED_IN_HANDSHAKE,
            };
            space.neglected > limit
        });
        if is_neglected {
            self.fail(
                now,
                TransportError::new(
                    ErrorCode::PROTOCOL_VIOLATION,
                    "the peer sends, but acknowledges nothing",
                ),
            );
        }
    }

    /// True if a packet number space has no number left.
    fn are_numbers_exhausted(&self) -> bool {
        let mut spaces = self.paths.spaces();
        spaces.any(|(_, space)| space.ledger.is_exhausted())
    }

    /// Challenges and responses on candidate paths, each in a datagram of its own.
    fn transmit_on_candidate(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        if !self.handshake.is_confirmed() {
            return None;
        }
        let may_send = |path: &crate::path::PathState| path.link.candidates.next_to_send();
        let (id, at) = (self.paths.iter()).find_map(|path| Some((path.id, may_send(path)?)))?;
        let data = self.identity.random.challenge_data();
        let path = self.paths.get_mut(id)?;
        let current = path.cids.remote.current();
        let candidate = path.link.candidates.get_mut(at)?;
        let address = candidate.address;
        let budget = usize::try_from(candidate.amplification.budget()).unwrap_or(usize::MAX);
        let limit = MIN_INITIAL_SIZE.min(budget).min(buf.len());
        let frames = ValidationFrames {
            challenge: candidate.validation.wants_challenge().then_some(data),
            response: candidate.responses.pop(),
        };
        if frames.challenge.is_some() {
            let expanded = limit >= MIN_INITIAL_SIZE;
            candidate.validation.on_sent(now, data, expanded);
        }
        let target = Target {
            // Padding that doesn't make a full datagram would only use up the limit, which then
            // permits fewer challenges (RFC 9000, section 8.2.1).
            pad_to: if limit < MIN_INITIAL_SIZE { 0 } else { limit },
            is_last: true,
            candidate_cid: Some(candidate.cid.map_or(current, |cid| cid.cid)),
        };
        let packet = Packet::validation(frames);
        let size = self.build_packet(now, id, &packet, &target, &mut buf[..limit]);
        if size == 0 {
            return None;
        }
        let path = self.paths.get_mut(id)?;
        if let Some(candidate) = path.link.candidates.get_mut(at) {
            candidate.amplification.on_sent(size);
        }
        self.monitor.on_datagram_sent(size);
        Some(Transmit::single(id, &address, None, size))
    }

    /// Closes if the key may protect nothing more, else initiates a key update if one is due and permitted (RFC 9001, section 6.1).
    fn update_keys_if_due(&mut self, now: Instant) {
        if self.handshake.keys().is_exhausted() {
            return self.fail(
                now,
                TransportError::new(
                    ErrorCode::AEAD_LIMIT_REACHED,
                    "the key may protect no more packets and could not be updated",
                ),
            );
        }
        let interval = self.identity.config.key_update_interval;
        if !self.handshake.is_confirmed() || !self.handshake.keys().update_is_due(interval) {
            return;
        }
        let Ok(generation) = self.handshake.update_keys(UpdateCause::Local) else {
            return self.fail(now, keys_unavailable());
        };
        let initiator = Owner::Local;
        let observation = Observation::KeyUpdated {
            generation,
            initiator,
        };
        self.monitor.observe(now, &observation);
    }
}
