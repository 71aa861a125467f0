//! What may be sent now: encryption levels, acknowledgements, data; within window, pace and amplification
//! limit.

use swiftwater_units::{ByteCount, Instant};

use crate::crypto::EncryptionLevel;
use crate::policy::{Demand, Occasion};
use crate::recovery::SendPurpose;

use super::super::Connection;
use super::MIN_INITIAL_SIZE;

/// One packet to build.
#[derive(Clone, Copy, Debug)]
pub(in crate::connection) struct Packet {
    pub(super) level: EncryptionLevel,
    /// Ack-eliciting frames may be written.
    pub(super) data: bool,
    /// Only path validation may be written of them: the window is full.
    pub(super) only_validation: bool,
    /// It answers a probe timeout: outside the window, and ack-eliciting whatever there is to say.
    pub(super) probe: bool,
    /// It is for a candidate path: a challenge, a response or both, and nothing else.
    pub(super) side: Option<[Option<[u8; 8]>; 2]>,
    /// It tests whether the path carries a packet of its size.
    pub(super) mtu_probe: bool,
}

impl Packet {
    fn new(level: EncryptionLevel, data: bool, probe: bool) -> Self {
        Self {
            level,
            data,
            only_validation: false,
            probe,
            side: None,
            mtu_probe: false,
        }
    }

    /// A packet for a candidate path, with a challenge, a response or both.
    pub(super) fn validation(challenge: Option<[u8; 8]>, response: Option<[u8; 8]>) -> Self {
        Self {
            side: Some([challenge, response]),
            ..Self::new(EncryptionLevel::OneRtt, false, false)
        }
    }

    /// A packet that tests whether the path carries its size.
    pub(in crate::connection) fn mtu_probe() -> Self {
        Self {
            mtu_probe: true,
            ..Self::new(EncryptionLevel::OneRtt, true, false)
        }
    }

    /// What recovery must know of why it is sent.
    pub(super) fn purpose(&self) -> SendPurpose {
        match (self.mtu_probe, self.probe) {
            (true, _) => SendPurpose::MtuProbe,
            (false, true) => SendPurpose::TimeoutProbe,
            (false, false) => SendPurpose::Data,
        }
    }
}

/// The packets of one datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    packets: [Packet; 3],
    len: usize,
    pads: bool,
    budget: usize,
}

impl Plan {
    fn nothing() -> Self {
        Self {
            packets: [Packet::new(EncryptionLevel::OneRtt, false, false); 3],
            len: 0,
            pads: false,
            budget: 0,
        }
    }

    fn push(&mut self, packet: Packet) {
        self.packets[self.len] = packet;
        self.len += 1;
    }

    pub(super) fn packets(&self) -> &[Packet] {
        &self.packets[..self.len]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that the receiver's address permits.
    pub(super) fn budget(&self) -> usize {
        self.budget
    }

    /// True if the datagram must have 1200 bytes.
    pub(super) fn pads(&self) -> bool {
        self.pads
    }
}

impl Connection {
    /// True if ack-eliciting frames wait in `level`.
    fn has_data(&self, level: EncryptionLevel) -> bool {
        let Some(space) = self.space(level) else {
            return false;
        };
        self.handshake.has_pending(level)
            || space.ping
            || (matches!(level, EncryptionLevel::OneRtt | EncryptionLevel::ZeroRtt)
                && self.has_application_data())
    }

    /// True if control frames, datagrams or stream bytes wait.
    fn has_application_data(&self) -> bool {
        self.control.has_pending()
            || self.datagrams.has_pending()
            || self.streams.can_send()
            || !self.policies.reinjections.is_empty()
    }

    pub(super) fn demand(&self) -> Demand {
        Demand {
            stream_bytes: ByteCount::new(self.streams.pending_bytes()),
            control: self.control.has_pending() || self.datagrams.has_pending(),
        }
    }

    /// Encryption levels in which packets can be sent now.
    pub(in crate::connection) fn can_seal(&self, level: EncryptionLevel) -> bool {
        let it_is_time = match level {
            EncryptionLevel::Initial | EncryptionLevel::Handshake => true,
            EncryptionLevel::OneRtt => self.may_send_one_rtt(),
            EncryptionLevel::ZeroRtt => {
                self.identity.side.is_client() && !self.handshake.is_complete()
            }
        };
        it_is_time && self.handshake.protection_ref().has(level) && self.space(level).is_some()
    }

    /// True if a challenge or a response waits.
    fn has_validation(&self) -> bool {
        let path = &self.paths.first().path;
        path.validation.wants_challenge() || !path.responses.is_empty()
    }

    /// The packets of the next datagram of at most `limit` bytes.
    pub(super) fn choose_packets(&mut self, now: Instant, limit: usize, data_may_go: bool) -> Plan {
        let mut plan = Plan::nothing();
        let budget = self.paths.first().path.amplification.budget();
        if budget == 0 {
            return plan;
        }
        plan.budget = usize::try_from(budget).unwrap_or(usize::MAX);
        self.copy_handshake(now, data_may_go && self.has_window(limit));
        let levels = self.levels_in_use();
        let waiting = |level: &EncryptionLevel| self.can_seal(*level) && self.has_data(*level);
        let wants_data = levels.iter().any(waiting);
        let may_send_data = data_may_go && self.may_send_data(now, limit, wants_data);
        for &level in levels {
            if !self.can_seal(level) {
                continue;
            }
            let Some(space) = self.space(level) else {
                continue;
            };
            let probe = space.probes > 0;
            let full = probe || (may_send_data && self.has_data(level));
            let validation = level == EncryptionLevel::OneRtt && self.has_validation();
            let data = full || validation;
            // Acknowledgements of early packets ride along with whatever goes out.
            let acks = level != EncryptionLevel::ZeroRtt
                && (space.received.ack_is_due(now)
                    || (plan.len > 0
                        && level != EncryptionLevel::OneRtt
                        && space.received.has_unacked()));
            if data || acks {
                let only_validation = validation && !full;
                plan.push(Packet {
                    only_validation,
                    ..Packet::new(level, data, probe)
                });
                // Initial packets of a client, and ack-eliciting ones of a server, fill a
                // datagram (RFC 9000, section 14.1).
                plan.pads |=
                    level == EncryptionLevel::Initial && (self.identity.side.is_client() || data);
            }
        }
        if plan.pads && budget < MIN_INITIAL_SIZE as u64 {
            return Plan::nothing();
        }
        // A new address must carry 1200 bytes (section 8.2.1), as far as the budget permits.
        plan.pads |= plan.len > 0 && self.has_validation();
        plan
    }

    /// True if the window has room for `bytes`.
    fn has_window(&self, bytes: usize) -> bool {
        self.paths.first().recovery.has_window_for(bytes)
    }

    /// True if window and pace let a full datagram go. Notes what limits the flow, for congestion
    /// control.
    fn may_send_data(&mut self, now: Instant, limit: usize, wants_data: bool) -> bool {
        let entry = self.paths.first_mut();
        let has_window = entry.recovery.has_window_for(limit);
        if !wants_data {
            entry.pacing_until = None;
            return has_window && self.use_spare_room(now);
        }
        if !has_window {
            entry.recovery.on_window_blocked();
            entry.pacing_until = None;
            return false;
        }
        let release = entry.recovery.pacing_release(now);
        if release > now {
            entry.pacing_until = Some(release);
            entry
                .recovery
                .on_pacer_blocked(now, ByteCount::new(self.streams.pending_bytes()));
            return false;
        }
        entry.pacing_until = None;
        true
    }

    /// There is nothing to send though the window has room. True if the re-injector has a copy for
    /// it that the pacer lets go.
    fn use_spare_room(&mut self, now: Instant) -> bool {
        // Before any copy leaves: it says nothing about how fast the application could send.
        let is_flow_limited = self.streams.is_flow_limited();
        let recovery = &mut self.paths.first_mut().recovery;
        if is_flow_limited {
            recovery.set_flow_limited(now);
        } else {
            recovery.set_app_limited(now);
        }
        let reinjector = &self.policies.reinjector;
        if reinjector.is_inert() || !reinjector.wants_spare_room() || !self.handshake.is_complete()
        {
            return false;
        }
        let release = recovery.pacing_release(now);
        if release > now {
            self.paths.first_mut().pacing_until = Some(release);
            return false;
        }
        self.consult_reinjector(now, Occasion::SpareRoom);
        !self.policies.reinjections.is_empty()
    }
}
