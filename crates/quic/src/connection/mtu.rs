//! Datagram sizes: probes out, their fates in, and who hears of a new size (RFC 9000, section 14).
//!
//! What to try and what to make of it is `path::mtu`'s.

use swiftwater_congestion::LossCause;
use swiftwater_units::{Instant, PacketNumber, PathId};

use crate::crypto::EncryptionLevel;
use crate::observe::{LossTrigger, Observation};
use crate::path::MtuState;
use crate::recovery::LostRecord;
use crate::space::AckOutcome;
use crate::transmit::Transmit;

use super::Connection;
use super::events::Event;
use super::transmit::{Packet, Target};

/// Probe timeouts after which an MTU probe is given up, if its fate didn't show before.
const PATIENCE_PTOS: u32 = 3;

impl Connection {
    /// The socket refused a datagram of `size` bytes, of this connection, because it is larger than
    /// what the interface takes (`EMSGSIZE`). Larger ones than the refused are not sent again on the
    /// path; what was in the datagram counts as lost in time.
    ///
    /// Only for what the own system says of its own: an ICMP message may come from anybody.
    pub fn on_datagram_too_large(&mut self, now: Instant, size: usize) {
        if !self.lifecycle.is_open() {
            return;
        }
        let size = u16::try_from(size).unwrap_or(u16::MAX);
        let refused = self.paths.first_mut().path.mtu.on_refused(now, size);
        if let Some(number) = refused {
            self.give_up_mtu_probe(now, number);
        }
        self.sync_mtu(now);
    }

    /// Bytes of the next datagram at most.
    pub(super) fn datagram_limit(&self, path: PathId) -> usize {
        let entry = self.paths.get(path);
        let answers_timeout = EncryptionLevel::SPACES
            .into_iter()
            .any(|level| self.space(level).is_some_and(|space| space.probes > 0));
        usize::from(if answers_timeout {
            entry.path.mtu.for_probe_timeout()
        } else {
            entry.path.mtu.current()
        })
    }

    /// A probe, if one is due, and if data wait that fill a datagram: a connection with little to
    /// say gains nothing, and an idle one stays silent. It leaves before the data, so that the fate
    /// of what follows shows its own.
    pub(super) fn transmit_mtu_probe(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        if !self.handshake.is_confirmed() {
            return None;
        }
        let waiting = self.streams.pending_bytes() + self.datagrams.pending_bytes();
        let entry = self.paths.first_mut();
        let path = &mut entry.path;
        let current = path.mtu.current();
        if waiting < u64::from(current)
            || entry.space.probes > 0
            || !path.amplification.is_validated()
            || path.validation.is_running()
        {
            return None;
        }
        let size = path.mtu.probe_to_send(now)?;
        let len = usize::from(size);
        // With room for a full packet after it: a lost probe alone must not close the window.
        if buf.len() < len
            || !entry.recovery.has_room_for(len + usize::from(current))
            || entry.recovery.pacing_release(now) > now
        {
            return None;
        }
        let (id, address, ecn) = (path.id, path.address, path.ecn.mark());
        let number = entry.space.ledger.next_number();
        let target = Target {
            pad_to: len,
            is_last: true,
            candidate_cid: None,
        };
        let built = self.build_packet(now, &Packet::mtu_probe(), &target, &mut buf[..len]);
        if built == 0 {
            return None;
        }
        self.on_datagram_sent(id, built);
        let patience = self.pto() * PATIENCE_PTOS;
        let mtu = &mut self.paths.first_mut().path.mtu;
        mtu.on_probe_sent(now, number, size, patience);
        Some(Transmit {
            path: id,
            destination: address.remote,
            source_ip: address.local.ip,
            socket: address.local.socket,
            ecn,
            size: built,
            segment_size: None,
        })
    }

    /// Takes lost MTU probes off the list of lost packets: their loss is no sign of congestion (RFC
    /// 9000, section 14.4).
    pub(super) fn set_aside_mtu_probes(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        lost: &mut Vec<LostRecord>,
    ) {
        if level != EncryptionLevel::OneRtt {
            return;
        }
        // One at a time is in flight, so two are rare.
        while let Some(at) = lost.iter().position(|packet| {
            let ledger = &self.paths.first().space.ledger;
            ledger.is_mtu_probe(packet.number)
        }) {
            let record = lost.remove(at);
            let mtu = &mut self.paths.first_mut().path.mtu;
            mtu.on_probe_lost(now, record.number);
            self.release_mtu_probe(now, record);
        }
    }

    /// The fates of 1-RTT packets, MTU probes set aside: probes that arrived, and what the losses say
    /// about the size of datagrams.
    pub(super) fn follow_mtu(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        outcome: Option<&AckOutcome>,
        lost: &[LostRecord],
    ) {
        if level != EncryptionLevel::OneRtt {
            return;
        }
        let entry = self.paths.first_mut();
        let (mtu, ledger) = (&mut entry.path.mtu, &entry.space.ledger);
        if let Some(outcome) = outcome {
            mtu.on_acked(now, &outcome.numbers, &outcome.acked);
            entry.path.acked_datagram_size.on_acked(&outcome.acked);
        }
        mtu.on_lost(now, lost, |number, size| {
            ledger.has_acked_after(number, size)
        });
        self.sync_mtu(now);
    }

    /// The MTU probe in flight is given up, if it is time.
    pub(super) fn on_mtu_timeout(&mut self, now: Instant) {
        if let Some(number) = self.paths.first_mut().path.mtu.on_timeout(now) {
            self.give_up_mtu_probe(now, number);
        }
    }

    fn give_up_mtu_probe(&mut self, now: Instant, number: PacketNumber) {
        if let Some(record) = self.paths.first_mut().space.ledger.give_up(number) {
            self.release_mtu_probe(now, record);
        }
    }

    /// A lost probe leaves flight.
    fn release_mtu_probe(&mut self, now: Instant, record: LostRecord) {
        let entry = self.paths.first_mut();
        let path = entry.path.id;
        entry
            .recovery
            .on_losses(now, &[record], LossCause::Abandoned, false, &mut self.rng);
        self.monitor.observe(
            now,
            &Observation::PacketLost {
                path,
                level: EncryptionLevel::OneRtt,
                number: record.number,
                size: record.size.into(),
                trigger: LossTrigger::MtuProbe,
            },
        );
    }

    /// Tells everybody concerned if the datagram size of the path has changed.
    pub(super) fn sync_mtu(&mut self, now: Instant) {
        let entry = self.paths.first_mut();
        let (size, state) = (entry.path.mtu.current(), entry.path.mtu.state());
        let before = entry.recovery.max_datagram_size();
        if size == before {
            return;
        }
        let path = entry.path.id;
        entry.recovery.on_max_datagram_size(size, &mut self.rng);
        if size < before {
            let room = self.one_rtt_room();
            let count = self.datagrams.drop_too_large(room);
            if count > 0 {
                let max = self.max_datagram_size().unwrap_or(0);
                self.outbox
                    .events
                    .push_back(Event::DatagramsTooLarge { count, max });
            }
        }
        self.monitor.observe(
            now,
            &Observation::MtuUpdated {
                path,
                before,
                size,
                done: state != MtuState::Searching,
                black_hole: state == MtuState::BlackHole,
            },
        );
    }
}
