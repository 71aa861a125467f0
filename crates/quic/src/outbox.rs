//! Events that wait to be polled by the application and by the endpoint.

use std::collections::VecDeque;
use std::net::SocketAddr;

use swiftwater_wire::ResetToken;

use crate::idle_memory::IdleMemory;

use crate::events::{EndpointEvent, Event};

/// A stateless reset token of the peer, and the address that it is valid from (RFC 9000, section 10.3.1).
pub(crate) type PeerResetToken = (SocketAddr, ResetToken);

/// Events in order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) events: VecDeque<Event>,
    pub(crate) endpoint_events: VecDeque<EndpointEvent>,
    /// [`Event::Closed`] was polled: only [`Event::Drained`] may follow.
    pub(crate) end_polled: bool,
    /// The reset tokens that the endpoint was given.
    registered_tokens: Vec<PeerResetToken>,
}

impl Outbox {
    /// Queues an event of the application.
    pub(crate) fn event(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Queues an event of the endpoint.
    pub(crate) fn endpoint_event(&mut self, event: EndpointEvent) {
        self.endpoint_events.push_back(event);
    }

    /// The reset tokens in use are now `tokens`: queues what has changed.
    pub(crate) fn sync_reset_tokens(
        &mut self,
        tokens: impl Iterator<Item = PeerResetToken> + Clone,
    ) {
        if tokens.clone().eq(self.registered_tokens.iter().copied()) {
            return;
        }
        let tokens: Vec<_> = tokens.collect();
        for &(remote, token) in &self.registered_tokens {
            if !tokens.contains(&(remote, token)) {
                let retired = EndpointEvent::PeerResetTokenRetired { remote, token };
                self.endpoint_events.push_back(retired);
            }
        }
        for &(remote, token) in &tokens {
            if !self.registered_tokens.contains(&(remote, token)) {
                let added = EndpointEvent::PeerResetToken { remote, token };
                self.endpoint_events.push_back(added);
            }
        }
        self.registered_tokens = tokens;
    }
}

impl IdleMemory for Outbox {
    fn release_idle_memory(&mut self) {
        let Self {
            events,
            endpoint_events,
            end_polled: _,
            registered_tokens,
        } = self;
        events.shrink_to_fit();
        endpoint_events.shrink_to_fit();
        registered_tokens.shrink_to_fit();
    }
}
