//! Partial reliability: expiry of stream data.
//!
//! A stream that expires is reset as by a call of the application: with `RESET_STREAM_AT` if a part
//! must arrive all the same and the peer supports that frame, else with `RESET_STREAM`.

use std::collections::BTreeSet;

use swiftwater_units::{Instant, StreamId};
use swiftwater_wire::VarInt;

use super::StreamEvent;
use super::Streams;
use super::send_stream::SendHalf;
use crate::error::WriteError;
use crate::observe::ResetCause;

/// When the data of a stream expires, and how.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Expiry {
    /// What the peer has not acknowledged by then is abandoned.
    pub at: Instant,
    /// Error code of the reset, cut to 2^62 - 1.
    pub code: u64,
    /// Bytes from the start of the stream that are delivered in any case, such as a header; more
    /// than was written by then count as all of that. Without effect if the peer does not support
    /// `RESET_STREAM_AT`: then nothing more is delivered. 0 for none.
    pub reliable_size: u64,
}

/// The expiries that are set, by time.
#[derive(Debug, Default)]
pub(super) struct Expiries(BTreeSet<(Instant, u32)>);

impl Expiries {
    /// Replaces the expiry of the stream of `key`.
    pub(super) fn replace(&mut self, key: u32, old: Option<Expiry>, new: Option<Expiry>) {
        if let Some(old) = old {
            self.0.remove(&(old.at, key));
        }
        if let Some(new) = new {
            self.0.insert((new.at, key));
        }
    }

    fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let first = self.0.first().filter(|(at, _)| *at <= now)?;
        let key = first.1;
        self.0.pop_first();
        Some(key)
    }
}

impl Streams {
    /// Sets when the stream's data expires; `None` never.
    pub(crate) fn set_expiry(
        &mut self,
        id: StreamId,
        expiry: Option<Expiry>,
    ) -> Result<(), WriteError> {
        let (key, send) = self.sending(id)?;
        send.check_resettable()?;
        let old = self
            .with_send(key, |send, _| std::mem::replace(&mut send.expiry, expiry))
            .flatten();
        self.outgoing.expiries.replace(key, old, expiry);
        Ok(())
    }

    /// When the next stream expires.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.outgoing.expiries.0.first().map(|(at, _)| *at)
    }

    /// Abandons what has expired by `now`.
    pub(crate) fn expire(&mut self, now: Instant) {
        while let Some(key) = self.outgoing.expiries.pop_due(now) {
            let due = self.with_send(key, |send, _| {
                let expiry = send.expiry.take()?;
                let late = send.is_whole() && !send.is_complete();
                late.then_some((expiry, send.buffer.held()))
            });
            if let Some((expiry, held)) = due.flatten() {
                self.expire_stream(key, &expiry, held);
            }
        }
    }

    fn expire_stream(&mut self, key: u32, expiry: &Expiry, held: u64) {
        let id = self.slab[key].id;
        let code = VarInt::saturating(expiry.code).get();
        if expiry.reliable_size > 0 && self.peer_resets_at {
            self.reset_but(key, id, code, expiry.reliable_size, ResetCause::Expired);
        } else {
            self.reset_sending(key, id, code, ResetCause::Expired);
        }
        let send = self.slab.get(key).and_then(|stream| stream.send.as_ref());
        let kept = send.map_or(0, |send: &SendHalf| send.buffer.held());
        self.stats.expired_streams += 1;
        self.stats.expired_bytes += held - kept;
        self.events.push_back(StreamEvent::Expired { id, code });
    }
}
