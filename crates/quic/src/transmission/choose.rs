//! What the next datagram on the path may consist of: encryption levels, acknowledgements, data; within
//! window, pace and anti-amplification limit.

use swiftwater_units::ByteCount;

use crate::crypto::EncryptionLevel;
use crate::datagram_size::MIN_INITIAL_SIZE;
use crate::space::Space;

use super::Transmission;
use super::batch::Prepared;
use super::plan::{Packet, Plan};

/// What can be said of the next datagram.
pub(super) enum Choice {
    /// Its packets; none if there is nothing to send.
    Plan(Plan),
    /// Copies of handshake packets may be due, which are to be queued first. `has_room`: the window
    /// permits them.
    HandshakeCopies { has_room: bool },
    /// Nothing waits though the window has room: the re-injector is to be asked first.
    SpareRoom,
}

/// May ack-eliciting frames go?
enum Permission {
    Granted,
    Denied,
    /// The re-injector decides.
    AskReinjector,
}

/// Encryption levels, one bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Levels(u8);

impl Levels {
    #[inline]
    fn insert(&mut self, level: EncryptionLevel) {
        self.0 |= 1 << level as u8;
    }

    fn contains(self, level: EncryptionLevel) -> bool {
        self.0 & (1 << level as u8) != 0
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Transmission<'_> {
    /// The packets of the next datagram, of at most `limit` bytes.
    pub(super) fn choose_packets(
        &mut self,
        limit: usize,
        data_may_go: bool,
        prepared: Prepared,
    ) -> Choice {
        let budget = self.path.network.amplification.budget();
        if budget == 0 {
            return Choice::Plan(Plan::empty(0));
        }
        if !self.handshake.is_confirmed() && !prepared.handshake_copied {
            let has_room = data_may_go && self.path.recovery.has_window_for(limit);
            return Choice::HandshakeCopies { has_room };
        }
        let with_data = self.levels_with_data();
        let may_send_data = data_may_go
            && match self.may_send_data(limit, !with_data.is_empty(), prepared) {
                Permission::Granted => true,
                Permission::Denied => false,
                Permission::AskReinjector => return Choice::SpareRoom,
            };
        let mut plan = Plan::empty(usize::try_from(budget).unwrap_or(usize::MAX));
        let levels = if may_send_data {
            with_data
        } else {
            Levels::default()
        };
        if self.handshake.is_confirmed() {
            self.plan_packet(EncryptionLevel::OneRtt, levels, &mut plan);
        } else {
            self.plan_in_handshake(levels, &mut plan);
        }
        if plan.pads && budget < MIN_INITIAL_SIZE as u64 {
            return Choice::Plan(Plan::empty(0));
        }
        // A new address must carry 1200 bytes if the limit permits so much (RFC 9000, section 8.2.1); less
        // padding would only use it up.
        let validates = self.path.network.has_validation_frames();
        plan.pads |= validates && !plan.is_empty() && budget >= MIN_INITIAL_SIZE as u64;
        Choice::Plan(plan)
    }

    /// Bytes of the next datagram at most.
    pub(super) fn datagram_limit(&self) -> usize {
        let mut handshake_spaces = self.handshake_spaces.iter();
        let answers_timeout =
            self.path.space.probes > 0 || handshake_spaces.any(|(_, space)| space.probes > 0);
        let mtu = &self.path.network.mtu;
        usize::from(if answers_timeout {
            mtu.for_probe_timeout()
        } else {
            mtu.current()
        })
    }

    /// True if packets of `level` can be sent now.
    #[inline]
    fn can_seal(&self, level: EncryptionLevel) -> bool {
        match level {
            EncryptionLevel::ZeroRtt => self.handshake.may_send_early_data(),
            EncryptionLevel::OneRtt => {
                self.handshake.may_send_one_rtt() && self.handshake.keys().has(level)
            }
            EncryptionLevel::Initial | EncryptionLevel::Handshake => {
                self.handshake.keys().has(level)
            }
        }
    }

    /// The levels that can be sent in and in which ack-eliciting frames wait.
    #[inline]
    fn levels_with_data(&self) -> Levels {
        if !self.handshake.is_confirmed() {
            return self.levels_with_data_in_handshake();
        }
        let (mut levels, level) = (Levels::default(), EncryptionLevel::OneRtt);
        if self.has_data(level, &self.path.space) && self.can_seal(level) {
            levels.insert(level);
        }
        levels
    }

    /// The same while packets of every level may be sent.
    #[inline(never)]
    fn levels_with_data_in_handshake(&self) -> Levels {
        let mut levels = Levels::default();
        for level in EncryptionLevel::ALL {
            let space = self.space(level);
            if self.can_seal(level) && space.is_some_and(|space| self.has_data(level, space)) {
                levels.insert(level);
            }
        }
        levels
    }

    /// True if ack-eliciting frames wait in `level`.
    #[inline]
    fn has_data(&self, level: EncryptionLevel, space: &Space) -> bool {
        let carries_application_data =
            matches!(level, EncryptionLevel::OneRtt | EncryptionLevel::ZeroRtt);
        (carries_application_data && self.has_application_data())
            || self.handshake.has_pending(level)
            || space.ping
    }

    /// True if control frames, datagrams or stream bytes wait.
    #[inline]
    fn has_application_data(&self) -> bool {
        self.streams.can_send_on(self.path.id)
            || self.control.has_pending()
            || self.datagrams.has_pending_on(self.path.id)
            || self.policies.has_copy_for(self.path.id)
            || self.policies.has_urgent_feedback()
    }

    /// Adds the packets of every level to the plan that are to be sent, in the order of the packets of a
    /// datagram.
    #[inline(never)]
    fn plan_in_handshake(&self, with_data: Levels, plan: &mut Plan) {
        for level in EncryptionLevel::ALL {
            self.plan_packet(level, with_data, plan);
        }
    }

    /// Adds the packet of `level` to the plan, if there is one to send. `with_data`: levels in which
    /// ack-eliciting frames wait that may go.
    #[inline]
    fn plan_packet(&self, level: EncryptionLevel, with_data: Levels, plan: &mut Plan) {
        let Some(space) = self.space(level) else {
            return;
        };
        if !self.can_seal(level) {
            return;
        }
        let probe = space.probes > 0;
        let full = probe || with_data.contains(level);
        let validation =
            level == EncryptionLevel::OneRtt && self.path.network.has_validation_frames();
        let data = full || validation;
        // Acknowledgements of handshake packets are coalesced with whatever is sent.
        let is_coalesced = !plan.is_empty() && level != EncryptionLevel::OneRtt;
        let acks = || match level {
            EncryptionLevel::OneRtt => self.ack_is_due(),
            EncryptionLevel::ZeroRtt => false,
            EncryptionLevel::Initial | EncryptionLevel::Handshake => {
                space.received.ack_is_due(self.now)
                    || (is_coalesced && space.received.has_unacked())
            }
        };
        if !data && !acks() {
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

    /// Whether window and pace of the path let a full datagram go. Notes what limits the flow, for
    /// congestion control.
    fn may_send_data(&mut self, limit: usize, has_data: bool, prepared: Prepared) -> Permission {
        if prepared.reinjector_asked {
            return if self.policies.has_copy_for(self.path.id) {
                Permission::Granted
            } else {
                Permission::Denied
            };
        }
        let path = &mut *self.path;
        path.pacing_until = None;
        let has_window = path.recovery.has_window_for(limit);
        if !has_data {
            return if has_window {
                self.use_spare_room()
            } else {
                Permission::Denied
            };
        }
        if !has_window {
            path.recovery.on_window_blocked();
            return Permission::Denied;
        }
        let release = path.recovery.pacing_release(self.now);
        if release > self.now {
            path.pacing_until = Some(release);
            let pending = ByteCount::new(self.streams.pending_bytes());
            path.recovery.on_pacer_blocked(self.now, pending);
            return Permission::Denied;
        }
        Permission::Granted
    }

    /// There is nothing to send though the window has room: the re-injector is asked for a copy if it
    /// takes part in that and the pacer lets one go.
    fn use_spare_room(&mut self) -> Permission {
        let recovery = &mut self.path.recovery;
        // Before any copy leaves: it says nothing about how fast the application could send.
        if self.streams.is_flow_limited() {
            recovery.set_flow_limited(self.now);
        } else {
            recovery.set_app_limited(self.now);
        }
        let reinjector = &self.policies.reinjector;
        if reinjector.is_inert()
            || !reinjector.can_use_spare_room()
            || !self.handshake.is_complete()
        {
            return Permission::Denied;
        }
        let release = recovery.pacing_release(self.now);
        if release > self.now {
            self.path.pacing_until = Some(release);
            return Permission::Denied;
        }
        Permission::AskReinjector
    }
}
