//! The way of a tunnel to its client: through it, or beside its connection.

use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::channel::Sender;
use swiftwater_http::h3::DatagramError;
use swiftwater_http::udp::connect::{DatagramBatch, HttpDatagrams};
use swiftwater_http::web::body::BoxError;
use swiftwater_net::quic::{DatagramFate, DatagramOptions, SendDatagramError};
use swiftwater_units::Instant;

use super::capsules;
use super::forwarding::Forwarding;
use super::receive_buffers::ReceiveBuffers;
use super::repaired::Repaired;
use super::stats::{Counters, Dropped, Passed};
use super::user_budget::{Direction, UserBudget, admits};
use crate::context::{self, ContextId};
use crate::forwarding::{CidCapsule, TooManyRegistrations};
use crate::tecc::{MAX_QUEUE_DELAY, data};

/// Datagrams to the client.
pub(super) struct ToClient<'a> {
    /// Datagrams below HTTP; `None` with HTTP versions that have none.
    pub(super) datagrams: Option<HttpDatagrams>,
    /// Whether the client is known to take them.
    pub(super) is_negotiated: bool,
    /// Capsules.
    pub(super) content: Sender<Bytes, BoxError>,
    pub(super) repaired: Option<Repaired>,
    pub(super) forwarding: Option<Forwarding>,
    pub(super) budget: Option<&'a UserBudget>,
    pub(super) counters: &'a Counters,
}

impl ToClient<'_> {
    /// Sends what came from the target, beside the connection where that is agreed on.
    pub(super) fn forward_received(&mut self, buffers: &ReceiveBuffers) {
        let forwarding = self.forwarding.as_ref();
        let Some(forwarding) = forwarding.filter(|it| it.forwards_to_client()) else {
            self.forward_all(buffers.datagrams().map(|(datagram, _)| datagram));
            return;
        };
        let mut others = Vec::new();
        forwarding.to_client(buffers.datagrams(), |datagram| others.push(datagram));
        if !others.is_empty() {
            self.forward_all(others.into_iter());
        }
    }

    /// Acts on what the client says of connection IDs; false if it does not read the answers.
    pub(super) fn register(
        &mut self,
        capsule: CidCapsule,
        has_answered: bool,
    ) -> Result<bool, TooManyRegistrations> {
        let Some(forwarding) = &mut self.forwarding else {
            return Ok(true);
        };
        let answer = forwarding.on_capsule(capsule, has_answered)?;
        Ok(answer.is_none_or(|answer| self.say(&answer)) && self.permit_registrations())
    }

    /// Tells the client how many connection IDs it may register; false if it does not read.
    pub(super) fn permit_registrations(&mut self) -> bool {
        let permission = self
            .forwarding
            .as_mut()
            .and_then(Forwarding::take_permission);
        permission.is_none_or(|permission| self.say(&permission))
    }

    /// Ends forwarding if the client is somewhere else now; false if it does not read.
    pub(super) fn check_path(&mut self) -> bool {
        let Some(forwarding) = &mut self.forwarding else {
            return true;
        };
        let closed = forwarding.check_path();
        closed.iter().all(|closed| self.say(closed)) && self.permit_registrations()
    }

    /// Ends the content with a reset.
    pub(super) fn abort(self, why: BoxError) {
        self.content.abort(why);
    }

    /// Sends a capsule; false if the client does not read.
    fn say(&mut self, capsule: &CidCapsule) -> bool {
        self.content
            .try_send(Frame::data(capsule.to_bytes()))
            .is_ok()
    }

    /// Sends UDP payloads of the target, or counts why not. It never waits: a queue before a slow client would
    /// only delay what follows.
    fn forward_all<'p>(&mut self, payloads: impl Iterator<Item = &'p [u8]>) {
        let Self {
            datagrams,
            is_negotiated,
            content,
            repaired,
            budget,
            counters,
            ..
        } = self;
        if !*is_negotiated {
            let max_size = datagrams.as_ref().and_then(HttpDatagrams::max_size);
            *is_negotiated = max_size.is_some();
        }
        let is_over_limit = |payload: &[u8]| !admits(*budget, Direction::ToClient, payload.len());
        let mut passed = Passed::default();
        // A client without datagrams gets capsules (RFC 9297, section 3.5).
        let Some(datagrams) = datagrams.as_ref().filter(|_| *is_negotiated) else {
            for payload in payloads {
                let sent = if is_over_limit(payload) {
                    Err(Dropped::OverLimit)
                } else {
                    send_capsule(content, payload)
                };
                passed.add(payload, sent);
            }
            counters.on_passed_to_client(&passed);
            return;
        };
        let now = datagrams.connection().now();
        let options = deadline(now + MAX_QUEUE_DELAY);
        datagrams.send_batch(|batch| {
            for payload in payloads {
                let sent = match repaired {
                    _ if is_over_limit(payload) => Err(Dropped::OverLimit),
                    Some(repaired) if data::is_numbered(payload) => {
                        repaired.send(batch, now, payload)
                    }
                    _ => send_datagram(batch, [&context::UDP_HEAD, payload], options),
                };
                passed.add(payload, sent);
            }
        });
        counters.on_passed_to_client(&passed);
    }

    /// What became of the datagram of a numbered payload.
    pub(super) fn on_fate(&mut self, number: u64, fate: DatagramFate) {
        let (Some(datagrams), Some(repaired)) = (&self.datagrams, &mut self.repaired) else {
            return;
        };
        if repaired.on_fate(datagrams, number, fate) {
            self.counters.on_repair();
        }
    }

    /// Reports if it is time to; returns in what time to ask again, although nothing passes.
    pub(super) fn report(&mut self) -> Option<Duration> {
        let repaired = self.repaired.as_mut()?;
        repaired.report(self.datagrams.as_ref()?)
    }
}

fn send_capsule(content: &mut Sender<Bytes, BoxError>, payload: &[u8]) -> Result<(), Dropped> {
    let datagram = context::encode(ContextId::UDP, payload);
    let frame = Frame::data(capsules::encode(datagram));
    content.try_send(frame).map_err(|_| Dropped::Full)
}

pub(super) fn deadline(until: Instant) -> DatagramOptions {
    let mut options = DatagramOptions::default();
    options.deadline = Some(until);
    options
}

pub(super) fn send_datagram(
    batch: &mut DatagramBatch<'_>,
    parts: [&[u8]; 2],
    options: DatagramOptions,
) -> Result<(), Dropped> {
    match batch.send_with(parts, options) {
        Ok(()) => Ok(()),
        // Not in a capsule instead: the target's sender would take it for a path of that size (RFC 9298,
        // section 5).
        Err(DatagramError::Transport(SendDatagramError::TooLarge { .. })) => Err(Dropped::Large),
        Err(_) => Err(Dropped::Full),
    }
}
