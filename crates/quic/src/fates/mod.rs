//! Fates of packets: what each carried is replayed to its owner as acknowledged, lost or repeated by a
//! probe. This is the only mechanism of retransmission (RFC 9000, section 13.3).

mod handshake_data;

use swiftwater_units::{Instant, PacketNumber, PathId};

use crate::control::{Control, ControlKey};
use crate::datagrams::Datagrams;
use crate::establishment::HandshakeSpeedup;
use crate::frame_writer::{Carried, Fate};
use crate::handshake::Handshake;
use crate::monitor::Monitor;
use crate::observe::{LossTrigger, Observation};
use crate::path::{LossFacts, PathSet};
use crate::policy::Occasion;
use crate::policy_host::PolicyHost;
use crate::recovery::LostRecord;
use crate::space::SpaceId;
use crate::streams::{Carrier, CarrierFate, StreamRun, Streams};

/// The owners of what packets carry, borrowed for one event.
pub(crate) struct Fates<'a> {
    pub(crate) now: Instant,
    pub(crate) paths: &'a mut PathSet,
    pub(crate) handshake: &'a mut Handshake,
    pub(crate) streams: &'a mut Streams,
    pub(crate) control: &'a mut Control,
    pub(crate) datagrams: &'a mut Datagrams,
    pub(crate) policies: &'a mut PolicyHost,
    pub(crate) monitor: &'a mut Monitor,
    pub(crate) speedup: &'a mut HandshakeSpeedup,
    /// The connection is neither closing nor draining.
    pub(crate) is_open: bool,
}

impl Fates<'_> {
    /// Replays what an ACK frame or the loss timer brought about in space `id`.
    pub(crate) fn replay_facts(&mut self, id: SpaceId, facts: &mut LossFacts) {
        self.replay_acks(id, facts);
        self.replay_losses(id, facts);
        if let SpaceId::Data(path) = id
            && let Some(path) = self.paths.get(path)
        {
            self.policies
                .on_outcomes(self.now, path, facts, self.monitor);
        }
        self.report_repairs();
    }

    /// Newly acknowledged packets. While data are under repair, in the order in which the packets
    /// left: of several copies the first that arrived counts.
    fn replay_acks(&mut self, id: SpaceId, facts: &mut LossFacts) {
        let mut run = None;
        if self.streams.has_no_repairs() {
            for &number in &facts.acked.numbers {
                self.replay_into(&mut run, id, number, Fate::Acked);
            }
        } else {
            facts.rising.extend_from_slice(&facts.acked.numbers);
            facts.rising.sort_unstable();
            for number in facts.rising.drain(..) {
                self.replay_into(&mut run, id, number, Fate::Acked);
            }
        }
        self.streams.on_run_fate(run);
    }

    fn replay_losses(&mut self, id: SpaceId, facts: &LossFacts) {
        if facts.lost_numbers.is_empty() {
            return;
        }
        for &number in &facts.lost_numbers {
            self.replay(id, number, Fate::Lost);
        }
        if self.monitor.is_observed() {
            for record in facts.lost.iter().chain(&facts.abandoned) {
                self.observe_loss(id, record, self.loss_trigger(id, record.number));
            }
        }
        if self.is_open {
            self.policies.consult_reinjector(
                self.now,
                Occasion::LossRetransmitted,
                self.paths,
                self.streams,
                self.monitor,
            );
        }
    }

    /// Shows the observer a lost packet.
    pub(crate) fn observe_loss(&mut self, id: SpaceId, record: &LostRecord, trigger: LossTrigger) {
        let Some(path) = self.paths.path_for(id) else {
            return;
        };
        let observation = Observation::PacketLost {
            path: path.id,
            level: id.level(),
            number: record.number,
            size: record.size.into(),
            trigger,
        };
        self.monitor.observe(self.now, &observation);
    }

    /// What showed that packet `number` is lost.
    fn loss_trigger(&self, id: SpaceId, number: PacketNumber) -> LossTrigger {
        let path = self.paths.path_for(id);
        let threshold = path.map_or(0, |path| path.recovery.loss_thresholds().packets);
        let largest = (self.paths.space(id)).and_then(|space| space.ledger.largest_acked());
        let reached = number.get().saturating_add(threshold);
        if largest.is_some_and(|largest| reached <= largest.get()) {
            LossTrigger::PacketThreshold
        } else {
            LossTrigger::TimeThreshold
        }
    }

    /// Replays the fate of one packet to the owners of what it carried.
    pub(crate) fn replay(&mut self, id: SpaceId, number: PacketNumber, fate: Fate) {
        let mut run = None;
        self.replay_into(&mut run, id, number, fate);
        self.streams.on_run_fate(run);
    }

    /// The same, but the stream bytes that it carried may wait in `run` for those of the next packet.
    fn replay_into(
        &mut self,
        run: &mut Option<StreamRun>,
        id: SpaceId,
        number: PacketNumber,
        fate: Fate,
    ) {
        let path = self.paths.path_for(id).map(|path| path.id);
        let (Some(path), Some(space)) = (path, self.paths.space_mut(id)) else {
            return;
        };
        let Some(packet) = space.ledger.packet(number) else {
            return;
        };
        let reinjector = &self.policies.reinjector;
        let carrier_fate = CarrierFate {
            now: self.now,
            carrier: Carrier {
                path,
                number,
                sent_at: packet.sent_at,
            },
            fate,
            live_copies_defer_retransmission: reinjector.live_copies_defer_retransmission(),
        };
        let received = &mut space.received;
        let mut has_acks_of_others = false;
        for carried in space.ledger.carried_by(number) {
            match carried {
                Carried::Ack { path: of, .. } if of != path => has_acks_of_others = true,
                Carried::Ack { largest, .. } if fate == Fate::Acked => {
                    received.on_ack_acked(largest);
                }
                Carried::Ack { .. } => {}
                Carried::Crypto { offset, len } => {
                    self.handshake.on_frame_fate(id.level(), offset, len, fate);
                }
                Carried::Stream {
                    id,
                    offset,
                    len,
                    fin,
                    ..
                } => {
                    let range = offset..offset + u64::from(len);
                    self.streams.gather_fate(run, &carrier_fate, id, range, fin);
                }
                Carried::Datagram { key } => {
                    self.datagrams
                        .on_frame_fate(key, carrier_fate.carrier.sent_at, fate);
                }
                Carried::Control { key, version } => {
                    self.streams.on_run_fate(run.take());
                    let parts = (&mut *self.streams, &mut *self.control, &mut *self.policies);
                    on_control_fate(parts, key, version, fate);
                }
            }
        }
        if has_acks_of_others && fate == Fate::Acked {
            self.on_acks_of_others_acked(path, number);
        }
    }

    /// Packet `number` of `path`, which acknowledged packets of other paths, is acknowledged.
    fn on_acks_of_others_acked(&mut self, path: PathId, number: PacketNumber) {
        let Some((carrier, _, mut others)) = self.paths.for_transmission(path) else {
            return;
        };
        for carried in carrier.space.ledger.carried_by(number) {
            if let Carried::Ack { path: of, largest } = carried
                && let Some(other) = others.iter_mut().find(|other| other.id == of)
            {
                other.space.received.on_ack_acked(largest);
            }
        }
    }

    /// Sends again what the oldest packets in flight carried, without declaring them lost: a probe that
    /// repeats data is worth more than a PING (RFC 9002, section 6.2.4).
    pub(crate) fn repeat_oldest(&mut self, id: SpaceId, packets: usize, facts: &mut LossFacts) {
        let numbers = &mut facts.rising;
        numbers.clear();
        if let Some(space) = self.paths.space(id) {
            numbers.extend(space.ledger.oldest_outstanding().take(packets));
        }
        for &number in numbers.iter() {
            self.replay(id, number, Fate::Probed);
        }
        self.report_repairs();
    }

    /// Takes everything in flight in a space out of flight as lost, as after a Retry.
    pub(crate) fn replay_all_as_lost(&mut self, id: SpaceId, facts: &mut LossFacts) {
        let numbers = &mut facts.rising;
        if !self.paths.abandon(id, numbers) {
            return;
        }
        for &number in numbers.iter() {
            self.replay(id, number, Fate::Lost);
        }
        self.report_repairs();
    }

    /// The probe timeout of space `expired` came: another space of the handshake may wait for the same
    /// lost datagram.
    pub(crate) fn probe_handshake_spaces(&mut self, expired: SpaceId, facts: &mut LossFacts) {
        for id in [SpaceId::Initial, SpaceId::Handshake] {
            if id == expired || !self.handshake.keys().has(id.level()) {
                continue;
            }
            self.repeat_oldest(id, 1, facts);
            if let Some(space) = self.paths.space_mut(id)
                && space.ledger.eliciting_in_flight() > 0
            {
                space.probes = 1;
            }
        }
    }

    /// Reports fates of datagrams, streams that begin and end, and resets to the observer; what resets did to
    /// data under repair also to the re-injector.
    pub(crate) fn report_data_events(&mut self) {
        while let Some((key, fate)) = self.datagrams.poll_report() {
            let observation = Observation::DatagramFate { key, fate };
            self.monitor.observe(self.now, &observation);
        }
        while let Some((id, begins)) = self.streams.poll_lifetime() {
            let observation = if begins {
                Observation::StreamOpened { id }
            } else {
                Observation::StreamClosed { id }
            };
            self.monitor.observe(self.now, &observation);
        }
        while let Some(notice) = self.streams.poll_notice() {
            let reset = Observation::StreamReset {
                id: notice.id,
                cause: notice.cause,
                code: notice.code,
                final_size: notice.final_size,
                reliable_size: notice.reliable_size,
            };
            self.monitor.observe(self.now, &reset);
            self.report_repairs();
        }
    }

    /// Reports what happened to data under repair to the re-injector and to the observer.
    pub(crate) fn report_repairs(&mut self) {
        (self.policies).report_repairs(self.now, self.streams, self.monitor);
    }
}

/// The fate of a packet that carried `version` of the control value `key` is known.
fn on_control_fate(
    (streams, control, policies): (&mut Streams, &mut Control, &mut PolicyHost),
    key: ControlKey,
    version: u32,
    fate: Fate,
) {
    if fate == Fate::Lost {
        streams.on_control_lost(key);
    }
    if control.on_frame_fate(key, version, fate) {
        match key {
            ControlKey::AckFrequency => policies.ack_frequency_sent.on_acked(),
            key => streams.on_control_acked(key),
        }
    }
}
