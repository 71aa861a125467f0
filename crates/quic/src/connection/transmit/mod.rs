//! Packets out: a pipeline of `choose` (which path, which epochs, may data go), `fill` (owners
//! append frames) and `seal` (number, protect, ledger).

mod choose;
mod close;
mod fill;
mod seal;

pub(super) use self::seal::MIN_PACKET_ROOM;

use std::time::Duration;

use swiftwater_units::{Instant, PathId};
use swiftwater_wire::ErrorCode;

use crate::error::TransportError;
use crate::path::Response;
use crate::policy::{Decision, PathView};
use crate::transmit::Transmit;

use super::Connection;

use self::choose::Plan;
use self::seal::Target;

/// Shortest time that a scheduler can make data wait.
const MIN_WAIT: Duration = Duration::from_millis(1);

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
        if !self.lifecycle.is_open() {
            return self.transmit_close(now, buf);
        }
        self.drain_stream_control();
        if let Some(transmit) = self.transmit_off_path(now, buf) {
            return Some(transmit);
        }
        self.update_keys_if_due(now);
        if !self.lifecycle.is_open() {
            return self.transmit_close(now, buf);
        }
        let (path, data_may_go) = self.choose_path(now);
        let ecn = self.paths.get(path).path.ecn.mark();
        let (mut size, mut segment) = (0, 0);
        for nth in 0..max_segments.max(1) {
            let limit = match nth {
                0 => usize::from(self.paths.get(path).path.max_datagram_size),
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
            return None;
        }
        let path = &self.paths.get(path).path;
        Some(Transmit {
            path: path.id,
            destination: path.address.remote,
            source_ip: path.address.local_ip,
            ecn,
            size,
            segment_size: (size > segment).then_some(segment),
        })
    }

    fn on_datagram_sent(&mut self, path: PathId, len: usize) {
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
                pad_to: if is_last && plan.pads() {
                    MIN_INITIAL_SIZE.saturating_sub(len).min(out.len() - len)
                } else {
                    0
                },
                address: None,
            };
            len += self.build_packet(now, packet, &target, &mut out[len..]);
        }
        len
    }

    /// Echoes of challenges from other addresses, and the challenge to the address before a move.
    fn transmit_off_path(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        if !self.handshake.is_confirmed() {
            return None;
        }
        let path = &mut self.paths.first_mut().path;
        let here = path.address.remote;
        let off_path = path
            .responses
            .iter()
            .position(|response| response.to.remote != here);
        let (address, packet) = if let Some(at) = off_path {
            let Response { data, to, received } = path.responses.remove(at)?;
            (to, choose::Packet::response(data, received * 3))
        } else {
            let previous = path.previous.as_mut()?;
            let data = previous.challenge?;
            if previous.sent {
                return None;
            }
            previous.sent = true;
            (previous.address, choose::Packet::challenge(data))
        };
        let limit = packet
            .amplification_limit
            .min(MIN_INITIAL_SIZE)
            .min(buf.len());
        let target = Target {
            pad_to: limit,
            address: Some(address),
        };
        let size = self.build_packet(now, &packet, &target, &mut buf[..limit]);
        if size == 0 {
            return None;
        }
        self.monitor.stats.datagrams_sent += 1;
        self.monitor.stats.bytes_sent += (size as u64).into();
        Some(Transmit {
            path: PathId::ZERO,
            destination: address.remote,
            source_ip: address.local_ip,
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
            let next = self.handshake.next_packet_keys();
            self.handshake.protection().update(next, None);
            let generation = self.handshake.protection_ref().generation();
            self.monitor
                .observe(now, &crate::observe::Observation::KeyUpdated { generation });
        }
    }

    /// Makes the scheduler's view of the paths current.
    pub(super) fn refresh_path_views(&mut self, now: Instant) {
        let mut views = std::mem::take(&mut self.scratch.views);
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
        self.scratch.views = views;
    }

    /// Asks the scheduler and validates its answer: the path of the next packets, and whether they
    /// may carry data. Acknowledgements never wait.
    fn choose_path(&mut self, now: Instant) -> (PathId, bool) {
        self.refresh_path_views(now);
        let demand = self.demand();
        match self
            .policies
            .scheduler
            .choose(now, &self.scratch.views, &demand)
        {
            Decision::Path(id) if self.scratch.views.iter().any(|view| view.id == id) => (id, true),
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
