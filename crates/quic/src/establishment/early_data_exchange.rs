//! Early data as client and server agree on them: offered, accepted, rejected or withdrawn (RFC 9000, section
//! 7.4.1; RFC 9001, sections 4.6 and 4.9.3).
//!
//! Packets of early data are numbered in the 1-RTT space of the initial path: once they are accepted, packet
//! numbers continue in 1-RTT packets. Once they are rejected, they count as never sent, and everything is
//! sent anew.

use swiftwater_units::{Dir, Instant};
use swiftwater_wire::ErrorCode;

use crate::control::Control;
use crate::crypto::{EncryptionLevel, Session};
use crate::datagrams::Datagrams;
use crate::error::TransportError;
use crate::events::Event;
use crate::frame_writer::{Carried, Fate};
use crate::handshake::Handshake;
use crate::monitor::Monitor;
use crate::observe::EarlyDataOutcome;
use crate::outbox::Outbox;
use crate::path::PathState;
use crate::policy_host::PolicyHost;
use crate::streams::Streams;
use crate::zero_rtt_limits::{self, EarlyLimits};

use super::early_data::{EarlyData, Offer};

/// Whether a connection continues once its handshake is complete.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Conclusion {
    /// Early data were accepted, are sent anew, or there were none.
    Continue,
    /// They were rejected and can't be sent anew.
    Lost,
}

/// The parts of a connection that early data concern.
pub(crate) struct EarlyDataExchange<'a> {
    pub(crate) now: Instant,
    pub(crate) handshake: &'a mut Handshake,
    pub(crate) early_data: &'a mut EarlyData,
    /// The initial path.
    pub(crate) path: &'a mut PathState,
    pub(crate) streams: &'a mut Streams,
    pub(crate) control: &'a mut Control,
    pub(crate) datagrams: &'a mut Datagrams,
    pub(crate) policies: &'a mut PolicyHost,
    pub(crate) monitor: &'a mut Monitor,
    pub(crate) outbox: &'a mut Outbox,
}

impl EarlyDataExchange<'_> {
    /// A client that resumes may use what the server permitted then.
    pub(crate) fn offer(&mut self) {
        let Some(parameters) = self.handshake.resumed_parameters() else {
            self.handshake.keys_mut().discard(EncryptionLevel::ZeroRtt);
            return;
        };
        let parameters = zero_rtt_limits::stored(&parameters);
        self.streams.set_peer_parameters(&parameters);
        self.datagrams
            .set_peer_limit(parameters.max_datagram_frame_size);
        let session = self.handshake.session();
        let alpn = session.and_then(|session| session.resumed_alpn());
        self.early_data.offered = Some(Box::new(Offer {
            parameters,
            alpn: alpn.map(<[u8]>::to_vec),
            withdrawn: false,
        }));
        self.outbox.event(Event::EarlyDataReady);
    }

    /// A server has 1-RTT keys, and accepts early data if it has keys of early data too. It may send from
    /// now on if the client sends early data, or if `half_rtt` permits it.
    pub(crate) fn on_server_keys(&mut self, has_early_keys: bool, half_rtt: bool) {
        if has_early_keys {
            self.settle(EarlyDataOutcome::Accepted);
        }
        if has_early_keys || half_rtt {
            self.outbox.event(Event::EarlyDataReady);
        }
    }

    /// The handshake of a client is complete: what it offered is accepted or not.
    ///
    /// # Errors
    ///
    /// The server accepts early data, but with lower limits than it had declared before.
    pub(crate) fn conclude(&mut self) -> Result<Conclusion, TransportError> {
        let Some(offered) = self.early_data.offered.take() else {
            return Ok(Conclusion::Continue);
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
                    "early data accepted with lower limits than stored",
                ));
            }
            self.report(EarlyDataOutcome::Accepted);
            return Ok(Conclusion::Continue);
        }
        self.report(EarlyDataOutcome::Rejected);
        self.discard();
        Ok(if self.can_send_anew(offered.alpn.as_deref()) {
            Conclusion::Continue
        } else {
            Conclusion::Lost
        })
    }

    /// The client begins again in another version, for which it has made no offer.
    pub(crate) fn withdraw(&mut self) {
        if let Some(offer) = &mut self.early_data.offered
            && !std::mem::replace(&mut offer.withdrawn, true)
        {
            self.discard();
        }
        self.handshake.keys_mut().discard(EncryptionLevel::ZeroRtt);
    }

    /// Notes and observes the outcome, and reports it to the application.
    fn report(&mut self, outcome: EarlyDataOutcome) {
        self.settle(outcome);
        self.outbox.event(Event::EarlyData(outcome));
    }

    fn settle(&mut self, outcome: EarlyDataOutcome) {
        self.early_data.settle(self.now, outcome, self.monitor);
    }

    /// As if nothing had been sent in 0-RTT packets.
    fn discard(&mut self) {
        let path = &mut *self.path;
        let (mut numbers, mut carried) = (Vec::new(), Vec::new());
        let bytes = path.space.ledger.abandon(&mut numbers);
        path.recovery.on_discard(bytes);
        path.space.loss_time = None;
        path.space.probes = 0;
        for number in numbers {
            let sent_at = (path.space.ledger.packet(number)).map_or(self.now, |sent| sent.sent_at);
            let frames = path.space.ledger.carried_by(number);
            carried.extend(frames.map(|frame| (sent_at, frame)));
        }
        // No acknowledgement of these packets may ever count.
        path.space.ledger.discard_all();
        for (sent_at, frame) in carried {
            match frame {
                Carried::Control { key, version } => {
                    self.control.on_frame_fate(key, version, Fate::Lost);
                }
                Carried::Datagram { key } => {
                    self.datagrams.on_frame_fate(key, sent_at, Fate::Lost);
                }
                Carried::Ack { .. } | Carried::Crypto { .. } | Carried::Stream { .. } => {}
            }
        }
        self.streams.send_anew();
        (self.policies).report_repairs(self.now, self.streams, self.monitor);
        self.streams.drain_control(self.control);
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
}
