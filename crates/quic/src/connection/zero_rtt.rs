//! Early data: what a client sends before the handshake is complete (0-RTT), and what a server does
//! (0.5-RTT) (RFC 9000, sections 7.4.1 and 12.5; RFC 9001, sections 4.6, 4.9.3 and 5.6).
//!
//! Packets of early data are numbered in the 1-RTT space of the first path, so that a client that is
//! accepted just goes on. One that is rejected forgets that it ever sent them and sends everything
//! anew.

use swiftwater_units::{Dir, Instant};
use swiftwater_wire::ErrorCode;

use crate::crypto::{EncryptionLevel, Session};
use crate::error::{ConnectionError, TransportError};
use crate::establishment::Offer;
use crate::events::{EarlyDataOutcome, Event};
use crate::frame_writer::{Carried, Fate};
use crate::space::SpaceId;
use crate::zero_rtt_limits::{self, EarlyLimits};

use super::Connection;
use crate::buffers::Buffers;

impl Connection {
    /// True while a client may send before the handshake is complete: it resumes a session that
    /// permits early data, and the server has not answered yet.
    ///
    /// Such data can be replayed by whoever records them (RFC 9001, section 9.2): send only what may
    /// happen twice.
    pub fn may_send_early_data(&self) -> bool {
        self.handshake.may_send_early_data() && self.lifecycle.is_open()
    }

    /// What became of early data; `None` if there were none, and on a client until the server has
    /// answered.
    pub fn early_data(&self) -> Option<EarlyDataOutcome> {
        self.establishment.early_data.outcome
    }

    /// True once the peer is known to resume an earlier session.
    pub fn is_resumed(&self) -> bool {
        self.handshake.session().is_some_and(Session::is_resumed)
    }

    /// A client that resumes may use what the server permitted then.
    pub(super) fn offer_early_data(&mut self) {
        let Some(parameters) = self.handshake.remembered_parameters() else {
            self.handshake.keys_mut().discard(EncryptionLevel::ZeroRtt);
            return;
        };
        let parameters = zero_rtt_limits::remembered(&parameters);
        self.streams.set_peer_parameters(&parameters);
        self.datagrams
            .set_peer_limit(parameters.max_datagram_frame_size);
        let session = self.handshake.session();
        let alpn = session.and_then(|session| session.remembered_alpn());
        self.establishment.early_data.offered = Some(Box::new(Offer {
            parameters,
            alpn: alpn.map(<[u8]>::to_vec),
            withdrawn: false,
        }));
        self.outbox.event(Event::EarlyDataReady);
    }

    /// New keys came: a server learns whether it takes early data, and may send from now on.
    pub(super) fn on_server_keys(
        &mut self,
        now: Instant,
        early: bool,
    ) -> Result<(), TransportError> {
        if !self.handshake.keys().has(EncryptionLevel::OneRtt)
            || self.establishment.early_data.parameters_applied
        {
            return Ok(());
        }
        self.use_peer_parameters()?;
        if early {
            self.settle_early_data(now, EarlyDataOutcome::Accepted);
        }
        let start = self.identity.start.as_deref();
        if early || start.is_some_and(|start| start.half_rtt) {
            self.outbox.event(Event::EarlyDataReady);
        }
        Ok(())
    }

    /// Puts the peer's transport parameters to use, once.
    pub(super) fn use_peer_parameters(&mut self) -> Result<(), TransportError> {
        if self.establishment.early_data.parameters_applied {
            return Ok(());
        }
        self.apply_peer_parameters()?;
        self.establishment.early_data.parameters_applied = true;
        Ok(())
    }

    /// True if 1-RTT packets can be made sense of by the peer, or will be soon: a client waits for
    /// the handshake, a server may send as soon as it has the keys (RFC 9001, section 5.7).
    pub(super) fn may_send_one_rtt(&self) -> bool {
        self.handshake.is_complete()
            || (self.identity.side.is_server() && self.establishment.early_data.parameters_applied)
    }

    fn settle_early_data(&mut self, now: Instant, outcome: EarlyDataOutcome) {
        let monitor = &mut self.monitor;
        self.establishment.early_data.settle(now, outcome, monitor);
    }

    /// The handshake of a client is complete: what it offered is accepted or not. False if the
    /// connection can't go on.
    pub(super) fn conclude_early_data(&mut self, now: Instant) -> Result<bool, TransportError> {
        let Some(offered) = self.establishment.early_data.offered.take() else {
            return Ok(true);
        };
        // Nothing is protected with them any more (RFC 9001, section 4.9.3).
        self.handshake.keys_mut().discard(EncryptionLevel::ZeroRtt);
        let session = self.handshake.session();
        let accepted = session.and_then(Session::early_data_accepted);
        if accepted == Some(true) && !offered.withdrawn {
            let present = self.handshake.peer_parameters().map(EarlyLimits::of);
            if present.is_some_and(|present| !present.cover(&EarlyLimits::of(&offered.parameters)))
            {
                return Err(TransportError::new(
                    ErrorCode::PROTOCOL_VIOLATION,
                    "early data accepted with lower limits than remembered",
                ));
            }
            self.settle_early_data(now, EarlyDataOutcome::Accepted);
            self.outbox
                .event(Event::EarlyData(EarlyDataOutcome::Accepted));
            return Ok(true);
        }
        self.settle_early_data(now, EarlyDataOutcome::Rejected);
        self.outbox
            .event(Event::EarlyData(EarlyDataOutcome::Rejected));
        self.forget_early_data(now);
        if !self.can_send_anew(offered.alpn.as_deref()) {
            self.close_for_lost_early_data(now);
            return Ok(false);
        }
        Ok(true)
    }

    /// As if nothing had been sent in 0-RTT packets.
    fn forget_early_data(&mut self, now: Instant) {
        let Buffers { loss, packet } = self.workspace.buffers.need();
        let (numbers, carried) = (&mut loss.rising, &mut packet.carried);
        numbers.clear();
        carried.clear();
        let path = self.paths.initial_mut();
        let bytes = path.space.ledger.abandon(numbers);
        path.recovery.on_discard(bytes);
        path.space.loss_time = None;
        path.space.probes = 0;
        for &number in numbers.iter() {
            carried.extend(path.space.ledger.carried_by(number));
        }
        // No acknowledgement of these packets may ever count.
        path.space.ledger.forget_all();
        for &frame in carried.iter() {
            match frame {
                Carried::Control { key, version } => {
                    self.control.on_frame_fate(key, version, Fate::Lost);
                }
                Carried::Datagram { key } => self.datagrams.on_frame_fate(key, Fate::Lost),
                Carried::Ack { .. } | Carried::Crypto { .. } | Carried::Stream { .. } => {}
            }
        }
        self.streams.send_anew();
        let (mut fates, _) = self.fates(now);
        fates.report_repairs();
        self.streams.drain_control(&mut self.control);
        self.datagrams.on_early_data_rejected();
    }

    /// Early data that were rejected can be sent anew only if they mean the same now (RFC 9001,
    /// section 4.6.2) and if the server takes as many streams.
    fn can_send_anew(&self, alpn: Option<&[u8]>) -> bool {
        let session = self.handshake.session();
        let same_protocol = session.and_then(|session| session.alpn()) == alpn;
        let fits = self.handshake.peer_parameters().is_some_and(|peer| {
            self.streams.opened(Dir::Bi) <= peer.initial_max_streams_bidi
                && self.streams.opened(Dir::Uni) <= peer.initial_max_streams_uni
                && self.streams.sent_against_limit() <= peer.initial_max_data
        });
        let untouched = self.streams.opened(Dir::Bi) + self.streams.opened(Dir::Uni) == 0;
        untouched || (same_protocol && fits)
    }

    /// The client begins again in another version, for which it has made no offer.
    pub(super) fn withdraw_early_data(&mut self, now: Instant) {
        if let Some(offer) = &mut self.establishment.early_data.offered
            && !std::mem::replace(&mut offer.withdrawn, true)
        {
            self.forget_early_data(now);
        }
        self.handshake.keys_mut().discard(EncryptionLevel::ZeroRtt);
    }

    fn close_for_lost_early_data(&mut self, now: Instant) {
        self.close_with(
            now,
            TransportError::new(
                ErrorCode::NO_ERROR,
                "early data were rejected and can't be sent anew",
            ),
            ConnectionError::EarlyDataLost,
        );
    }

    /// A Retry: the server has dropped the early data that were sent so far. Packet numbers go on
    /// (RFC 9000, section 17.2.5.3).
    pub(super) fn repeat_early_data(&mut self, now: Instant) {
        if !self.handshake.may_send_early_data() {
            return;
        }
        let id = SpaceId::Data(self.paths.initial().id);
        let (mut fates, buffers) = self.fates(now);
        fates.replay_all_as_lost(id, &mut buffers.loss);
    }
}
