//! What may be sent now: encryption levels, acknowledgements, data; within window, pace and amplification
//! limit.

use swiftwater_units::{ByteCount, Instant, PathId};

use crate::crypto::EncryptionLevel;
use crate::datagram_size::MIN_INITIAL_SIZE;
use crate::policy::{Demand, Occasion};
use crate::space::{Space, SpaceId};
use crate::transmission::{Packet, Plan};

use super::super::Connection;

impl Connection {
    /// True if ack-eliciting frames wait in `level` that may leave on path `id`.
    fn has_data(&self, id: PathId, level: EncryptionLevel, space: &Space) -> bool {
        self.handshake.has_pending(level)
            || space.ping
            || (matches!(level, EncryptionLevel::OneRtt | EncryptionLevel::ZeroRtt)
                && self.has_application_data(id))
    }

    /// True if control frames, datagrams or stream bytes wait.
    fn has_application_data(&self, id: PathId) -> bool {
        self.control.has_pending()
            || self.datagrams.has_pending()
            || self.streams.can_send()
            || self.policies.has_copy_for(id)
            || self.policies.has_urgent_feedback()
    }

    pub(super) fn demand(&self) -> Demand<'static> {
        let lost = self.streams.pending_retransmission_bytes();
        let new = self.streams.pending_bytes() - lost;
        let next = (self.policies.has_scheduler())
            .then(|| self.streams.next_demand())
            .flatten();
        Demand {
            control: self.control.has_pending(),
            datagram_bytes: ByteCount::new(self.datagrams.unsent_bytes()),
            new_bytes: ByteCount::new(new),
            retransmission_bytes: ByteCount::new(lost),
            next_stream: next.as_ref().map(|next| next.stream),
            priority: next.as_ref().map(|next| next.priority),
            deadline: next.as_ref().and_then(|next| next.deadline),
            ..Demand::nothing()
        }
    }

    /// True if packets of `level` can be sent now.
    pub(in crate::connection) fn can_seal(&self, level: EncryptionLevel) -> bool {
        let it_is_time = match level {
            EncryptionLevel::Initial | EncryptionLevel::Handshake => true,
            EncryptionLevel::OneRtt => self.may_send_one_rtt(),
            EncryptionLevel::ZeroRtt => {
                self.identity.side.is_client() && !self.handshake.is_complete()
            }
        };
        it_is_time && self.handshake.keys().has(level)
    }

    /// The encryption levels in which packets may be sent, in the order of the packets of a datagram:
    /// most of the time there is one.
    fn levels_in_use(&self) -> &'static [EncryptionLevel] {
        if self.handshake.is_confirmed() {
            &[EncryptionLevel::OneRtt]
        } else {
            &EncryptionLevel::ALL
        }
    }

    /// The packets of the next datagram on a path, of at most `limit` bytes.
    pub(super) fn choose_packets(
        &mut self,
        now: Instant,
        id: PathId,
        limit: usize,
        data_may_go: bool,
    ) -> Plan {
        let Some(path) = self.paths.get(id) else {
            return Plan::nothing();
        };
        let budget = path.link.amplification.budget();
        if budget == 0 {
            return Plan::nothing();
        }
        let has_window = path.recovery.has_window_for(limit);
        if !self.handshake.is_confirmed() {
            let (mut fates, buffers) = self.fates(now);
            fates.copy_handshake(data_may_go && has_window, &mut buffers.loss);
        }
        let has_data = self.levels_in_use().iter().any(|&level| {
            let space = self.paths.space(SpaceId::of(level, id));
            self.can_seal(level) && space.is_some_and(|space| self.has_data(id, level, space))
        });
        let may_send_data = data_may_go && self.may_send_data(now, id, limit, has_data);
        let mut plan = Plan::nothing();
        plan.budget = usize::try_from(budget).unwrap_or(usize::MAX);
        for &level in self.levels_in_use() {
            self.plan_packet(now, id, level, may_send_data, &mut plan);
        }
        if plan.pads && budget < MIN_INITIAL_SIZE as u64 {
            return Plan::nothing();
        }
        // A new address must carry 1200 bytes if the limit permits so much (section 8.2.1); less
        // padding would only use it up.
        let path = self.paths.get(id);
        let validates = path.is_some_and(|path| path.link.has_validation_frames());
        plan.pads |= !plan.is_empty() && validates && budget >= MIN_INITIAL_SIZE as u64;
        plan
    }

    /// Adds the packet of `level` to the plan, if there is one to send.
    fn plan_packet(
        &self,
        now: Instant,
        id: PathId,
        level: EncryptionLevel,
        may_send_data: bool,
        plan: &mut Plan,
    ) {
        let space = self.paths.space(SpaceId::of(level, id));
        let (Some(space), Some(path)) = (space, self.paths.get(id)) else {
            return;
        };
        if !self.can_seal(level) {
            return;
        }
        let probe = space.probes > 0;
        let full = probe || (may_send_data && self.has_data(id, level, space));
        let validation = level == EncryptionLevel::OneRtt && path.link.has_validation_frames();
        let data = full || validation;
        // Acknowledgements of handshake packets ride along with whatever goes out.
        let rides_along = !plan.is_empty() && level != EncryptionLevel::OneRtt;
        let acks = level != EncryptionLevel::ZeroRtt
            && (space.received.ack_is_due(now) || (rides_along && space.received.has_unacked()));
        if !data && !acks {
            return;
        }
        plan.push(Packet {
            only_validation: validation && !full,
            ..Packet::new(level, data, probe)
        });
        // Initial packets of a client, and ack-eliciting ones of a server, fill a datagram (RFC 9000,
        // section 14.1).
        plan.pads |= level == EncryptionLevel::Initial && (self.identity.side.is_client() || data);
    }

    /// True if window and pace of a path let a full datagram go. Notes what limits the flow, for
    /// congestion control.
    fn may_send_data(&mut self, now: Instant, id: PathId, limit: usize, has_data: bool) -> bool {
        let Some(path) = self.paths.get_mut(id) else {
            return false;
        };
        path.pacing_until = None;
        let has_window = path.recovery.has_window_for(limit);
        if !has_data {
            return has_window && self.use_spare_room(now, id);
        }
        if !has_window {
            path.recovery.on_window_blocked();
            return false;
        }
        let release = path.recovery.pacing_release(now);
        if release > now {
            path.pacing_until = Some(release);
            let pending = ByteCount::new(self.streams.pending_bytes());
            path.recovery.on_pacer_blocked(now, pending);
            return false;
        }
        true
    }

    /// There is nothing to send though the window has room. True if the re-injector has a copy for
    /// it that the pacer lets go.
    fn use_spare_room(&mut self, now: Instant, id: PathId) -> bool {
        let Some(path) = self.paths.get_mut(id) else {
            return false;
        };
        // Before any copy leaves: it says nothing about how fast the application could send.
        if self.streams.is_flow_limited() {
            path.recovery.set_flow_limited(now);
        } else {
            path.recovery.set_app_limited(now);
        }
        let reinjector = &self.policies.reinjector;
        if reinjector.is_inert() || !reinjector.wants_spare_room() || !self.handshake.is_complete()
        {
            return false;
        }
        let release = path.recovery.pacing_release(now);
        if release > now {
            path.pacing_until = Some(release);
            return false;
        }
        self.consult_reinjector(now, Occasion::SpareRoom);
        self.policies.has_copy_for(id)
    }
}
