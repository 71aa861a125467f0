//! Packets out: which path sends next. The transmission context then chooses and writes the packets of a
//! batch, and returns what it needs of others on the way.

use swiftwater_units::{ByteCount, Instant};
use swiftwater_wire::ErrorCode;

use crate::crypto::EncryptionLevel;
use crate::error::{ConnectionError, TransportError};
use crate::handshake::{KeysUnavailable, UpdateCause};
use crate::lifecycle::Termination;
use crate::multipath::AckRoute;
use crate::observe::{Observation, Owner};
use crate::policy::Occasion;
use crate::policy_host::{Scheduled, Waiting};
use crate::transmission::{Batch, BatchEnd};
use crate::transmit::{SocketId, Transmit};

use super::Connection;

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
        if self.paths.are_numbers_exhausted() {
            // Not even a close may follow (RFC 9000, section 12.3).
            let reason = ConnectionError::PacketNumbersExhausted;
            self.terminate(now, Termination::Silent { reason });
            return None;
        }
        if !self.lifecycle.is_open() {
            return self.transmit_close(now, buf);
        }
        self.streams.drain_control(&mut self.control);
        self.report_data_events(now);
        let (handshake, monitor) = (&self.handshake, &mut self.monitor);
        self.policies
            .poll_feedback(now, handshake, &self.paths, monitor);
        if let Some(transmit) = self.transmit_on_candidate(now, buf) {
            return Some(transmit);
        }
        if let Err(error) = self.prepare_data(now) {
            self.fail(now, error);
        }
        if !self.lifecycle.is_open() {
            return self.transmit_close(now, buf);
        }
        if let Some(transmit) = self.transmit_mtu_probe(now, buf) {
            return Some(transmit);
        }
        let transmit = self.transmit_as_required(now, buf);
        let transmit = transmit.or_else(|| self.transmit_data(now, max_segments, buf));
        if transmit.is_none() {
            let waiting = ByteCount::new(self.streams.pending_bytes());
            let is_flow_limited = self.streams.is_flow_limited();
            self.paths.note_idle(now, waiting, is_flow_limited);
            self.report_idle(now);
        }
        transmit
    }

    /// Like [`Connection::poll_transmit`], for drivers some of whose sockets take no datagrams at the moment:
    /// nothing leaves on the paths that use the sockets in `blocked`. What other paths may carry leaves there,
    /// and so do datagrams with a PATH_CHALLENGE or PATH_RESPONSE frame for a candidate or previous path (RFC
    /// 9000, section 9.1); everything else stays queued.
    pub fn poll_transmit_around(
        &mut self,
        now: Instant,
        max_segments: usize,
        buf: &mut [u8],
        blocked: &[SocketId],
    ) -> Option<Transmit> {
        let transmit = if self.paths.block_sockets(blocked) {
            self.poll_transmit(now, max_segments, buf)
        } else if self.lifecycle.is_open() && !self.paths.are_numbers_exhausted() {
            self.transmit_on_candidate(now, buf)
        } else {
            None
        };
        self.paths.block_sockets(&[]);
        transmit
    }

    /// This end's close, if it is due.
    fn transmit_close(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        let path = self.paths.most_reliable().id;
        let (mut transmission, workspace) = self.transmission(now, path)?;
        transmission.send_close(buf, workspace)
    }

    /// Challenges and responses on candidate paths, each in a datagram of its own.
    fn transmit_on_candidate(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        if !self.handshake.is_confirmed() {
            return None;
        }
        let (id, at) = self.paths.candidate_to_validate()?;
        let (mut transmission, workspace) = self.transmission(now, id)?;
        let sent = transmission.validate_candidate(at, buf, workspace);
        self.unless_unprotected(now, sent)?
    }

    /// An MTU probe, if one is due, and if data wait that fill a datagram, or were refused because they don't fit into
    /// one: a connection with little to send gains nothing, and an idle one sends nothing. It leaves before the data, so
    /// that the fate of what follows shows its own.
    fn transmit_mtu_probe(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        if !self.handshake.is_confirmed() {
            return None;
        }
        let waiting = if self.datagrams.needs_larger_packets() {
            u64::MAX
        } else {
            self.streams.pending_bytes() + self.datagrams.unsent_bytes()
        };
        let Some((id, size)) = self.paths.mtu_probe_to_send(now, waiting, buf.len()) else {
            if !self.paths.are_searched() {
                self.datagrams.on_largest_packets();
            }
            return None;
        };
        let (mut transmission, workspace) = self.transmission(now, id)?;
        let sent = transmission.probe_mtu(size, buf, workspace);
        self.unless_unprotected(now, sent)?
    }

    /// A datagram with what must leave on a certain one of several paths, whatever the scheduler names:
    /// acknowledgements, timeout probes, path validation.
    fn transmit_as_required(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        let multipath = self.multipath.as_deref_mut()?;
        let unproven = multipath.ack_path.choose(now, &self.paths);
        let route = multipath.ack_route();
        if let (AckRoute::One { .. }, Some(id)) = (route, unproven)
            && let Some(path) = self.paths.get_mut(id)
        {
            path.space.ping = true;
        }
        if self.paths.is_single() {
            return None;
        }
        let mut previous = None;
        while let Some(id) =
            self.paths
                .next_with_requirement(now, |path| route.carrier(path), previous)
        {
            let scheduled = Scheduled::without_data(now, id);
            if let Some(transmit) = self.transmit_on(now, &scheduled, 1, buf) {
                return Some(transmit);
            }
            previous = Some(id);
        }
        None
    }

    /// Datagrams on the path that the scheduler names.
    fn transmit_data(
        &mut self,
        now: Instant,
        max_segments: usize,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        let waiting = Waiting {
            streams: &self.streams,
            control: &self.control,
            datagrams: &self.datagrams,
            has_handshake_data: self.handshake.has_pending(EncryptionLevel::OneRtt),
        };
        let (paths, monitor) = (&mut self.paths, &mut self.monitor);
        let scheduled = self.policies.schedule(now, &waiting, paths, monitor);
        // The path that is named while none has room may be one whose socket is blocked.
        let path = self.paths.get(scheduled.path)?;
        if self.paths.is_blocked(path) {
            return None;
        }
        self.transmit_on(now, &scheduled, max_segments, buf)
    }

    /// Datagrams on one path.
    fn transmit_on(
        &mut self,
        now: Instant,
        scheduled: &Scheduled,
        max_segments: usize,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        let id = scheduled.path;
        let ecn = self.paths.get(id)?.network.ecn.mark();
        let mut batch = Batch::new(buf, max_segments, scheduled, ecn);
        loop {
            let (mut transmission, workspace) = self.transmission(now, id)?;
            match transmission.extend_batch(&mut batch, workspace) {
                Ok(BatchEnd::Complete) => return transmission.transmit(&batch),
                Ok(BatchEnd::HandshakeCopies { has_room }) => {
                    let (mut fates, buffers) = self.fates(now);
                    fates.copy_handshake(has_room, &mut buffers.loss);
                    batch.prepared.handshake_copied = true;
                }
                Ok(BatchEnd::SpareRoom) => {
                    self.consult_reinjector(now, Occasion::SpareRoom);
                    batch.prepared.reinjector_asked = true;
                }
                Err(unavailable) => {
                    let transmit = transmission.transmit(&batch);
                    self.fail(now, unavailable.into());
                    return transmit;
                }
            }
        }
    }

    /// Closes if a packet could not be protected: nothing of it is sent.
    fn unless_unprotected<T>(
        &mut self,
        now: Instant,
        built: Result<T, KeysUnavailable>,
    ) -> Option<T> {
        match built {
            Ok(built) => Some(built),
            Err(unavailable) => {
                self.fail(now, unavailable.into());
                None
            }
        }
    }

    /// What must hold before data are sent: `Err` if the key may protect nothing more, or if the peer goes
    /// on sending but acknowledges nothing. Initiates a key update if one is due and permitted (RFC 9001,
    /// section 6.1).
    fn prepare_data(&mut self, now: Instant) -> Result<(), TransportError> {
        if self.handshake.keys().is_exhausted() {
            return Err(TransportError::new(
                ErrorCode::AEAD_LIMIT_REACHED,
                "the key may protect no more packets and could not be updated",
            ));
        }
        let interval = self.identity.config.key_update_interval;
        if self.handshake.is_confirmed() && self.handshake.keys().update_is_due(interval) {
            let generation = self.handshake.update_keys(UpdateCause::Local)?;
            let initiator = Owner::Local;
            let observation = Observation::KeyUpdated {
                generation,
                initiator,
            };
            self.monitor.observe(now, &observation);
        }
        if self.paths.has_unresponsive_peer() {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "the peer sends, but acknowledges nothing",
            ));
        }
        Ok(())
    }
}
