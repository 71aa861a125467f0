//! The TLS handshake of a connection: session, crypto streams, keys by epoch and phase (RFC 9001).
//!
//! It hands out keys and handshake bytes; which packets they travel in is the connection's matter.

mod crypto_stream;
mod keys;

pub(crate) use keys::{OpenError, Protection};

use std::sync::Arc;

use swiftwater_units::Side;
use swiftwater_wire::{ConnectionId, ErrorCode, TransportParameters};

use crate::crypto::{Epoch, NewKeys, Primitives, Session};
use crate::error::TransportError;
use crate::frame_writer::{Fate, FrameWriter};

use self::crypto_stream::CryptoStream;

/// What a step of the handshake brought about.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Progress {
    /// Keys of a new epoch were installed.
    pub(crate) new_keys: bool,
    /// The TLS handshake is complete with this step.
    pub(crate) completed: bool,
}

/// The handshake and everything that depends on its keys.
pub(crate) struct Handshake {
    side: Side,
    version: u32,
    session: Box<dyn Session>,
    primitives: Arc<dyn Primitives>,
    /// Epoch of the bytes that the session writes.
    write_epoch: Epoch,
    streams: [CryptoStream; 3],
    protection: Protection,
    peer_parameters: Option<TransportParameters>,
    complete: bool,
    confirmed: bool,
}

impl std::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handshake")
            .field("side", &self.side)
            .field("complete", &self.complete)
            .field("confirmed", &self.confirmed)
            .finish_non_exhaustive()
    }
}

impl Handshake {
    pub(crate) fn new(
        side: Side,
        version: u32,
        session: Box<dyn Session>,
        primitives: Arc<dyn Primitives>,
        initial_keys_cid: &ConnectionId,
    ) -> Self {
        let initial = primitives.initial_keys(version, initial_keys_cid, side);
        Self {
            side,
            version,
            session,
            primitives,
            write_epoch: Epoch::Initial,
            streams: Default::default(),
            protection: Protection::new(initial),
            peer_parameters: None,
            complete: false,
            confirmed: false,
        }
    }

    /// The keys.
    pub(crate) fn protection(&mut self) -> &mut Protection {
        &mut self.protection
    }

    /// The keys, to look at.
    pub(crate) fn protection_ref(&self) -> &Protection {
        &self.protection
    }

    /// The TLS session, for what the application may ask of it.
    pub(crate) fn session(&self) -> &dyn Session {
        &*self.session
    }

    /// The peer's transport parameters, once its flight has arrived.
    pub(crate) fn peer_parameters(&self) -> Option<&TransportParameters> {
        self.peer_parameters.as_ref()
    }

    /// True once TLS is complete (RFC 9001, section 4.1.1).
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// True once the handshake is confirmed (RFC 9001, section 4.1.2).
    pub(crate) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Marks the handshake confirmed.
    pub(crate) fn confirm(&mut self) {
        self.confirmed = true;
    }

    /// Derives new Initial keys after a Retry and sends the first flight again.
    pub(crate) fn restart(&mut self, initial_keys_cid: &ConnectionId) {
        let keys = self
            .primitives
            .initial_keys(self.version, initial_keys_cid, self.side);
        self.protection.install_initial(keys);
        self.streams[Epoch::Initial as usize].send_all_again();
    }

    /// True if `packet`, a Retry with its tag, answers our Initial to `original_dst_cid` (RFC 9001,
    /// section 5.8).
    pub(crate) fn retry_is_authentic(
        &self,
        original_dst_cid: &ConnectionId,
        packet: &[u8],
    ) -> bool {
        let Some((body, tag)) = packet.split_last_chunk::<16>() else {
            return false;
        };
        self.primitives
            .retry_tag(self.version, original_dst_cid, body)
            == *tag
    }

    /// Lets the session write its first flight (client).
    pub(crate) fn start(&mut self) -> Result<Progress, TransportError> {
        self.advance()
    }

    /// Takes a CRYPTO frame (RFC 9000, section 19.6).
    pub(crate) fn on_crypto(
        &mut self,
        epoch: Epoch,
        offset: u64,
        data: &[u8],
    ) -> Result<Progress, TransportError> {
        let stream = &mut self.streams[epoch as usize];
        stream.receive(offset, data)?;
        let mut progressed = false;
        loop {
            let readable = self.streams[epoch as usize].readable();
            if readable.is_empty() {
                break;
            }
            let len = readable.len();
            self.session.read_handshake(epoch, readable)?;
            self.streams[epoch as usize].consume(len);
            progressed = true;
        }
        if progressed {
            self.advance()
        } else {
            Ok(Progress::default())
        }
    }

    /// Drains the session: bytes to send, new keys, the peer's parameters, completion.
    fn advance(&mut self) -> Result<Progress, TransportError> {
        let mut progress = Progress::default();
        loop {
            let out = self.streams[self.write_epoch as usize].outgoing();
            let before = out.len();
            let keys = self.session.write_handshake(out);
            let wrote = out.len() > before;
            self.streams[self.write_epoch as usize].queue_written(before);
            match keys {
                Some(NewKeys { epoch, keys }) => {
                    let next = match epoch {
                        Epoch::OneRtt => self.session.next_packet_keys(),
                        _ => None,
                    };
                    self.protection.install(epoch, keys, next);
                    self.write_epoch = epoch;
                    progress.new_keys = true;
                }
                None if !wrote => break,
                None => {}
            }
        }
        self.read_peer_parameters()?;
        if !self.complete && !self.session.is_handshaking() {
            if self.peer_parameters.is_none() {
                // TLS alert missing_extension (RFC 9001, section 8.2).
                return Err(TransportError::new(
                    ErrorCode::crypto(109),
                    "the peer sent no transport parameters",
                ));
            }
            self.complete = true;
            progress.completed = true;
        }
        Ok(progress)
    }

    fn read_peer_parameters(&mut self) -> Result<(), TransportError> {
        if self.peer_parameters.is_none()
            && let Some(bytes) = self.session.peer_transport_parameters()
        {
            self.peer_parameters = Some(TransportParameters::decode(bytes, !self.side)?);
        }
        Ok(())
    }

    /// Rotates the 1-RTT keys to the next phase.
    pub(crate) fn next_packet_keys(
        &mut self,
    ) -> Option<crate::crypto::KeyPair<dyn crate::crypto::PacketKey>> {
        self.session.next_packet_keys()
    }

    /// True if handshake bytes wait to be sent in `epoch`.
    pub(crate) fn has_pending(&self, epoch: Epoch) -> bool {
        self.streams[epoch as usize].has_pending()
    }

    /// Writes CRYPTO frames.
    pub(crate) fn fill(&mut self, epoch: Epoch, writer: &mut FrameWriter<'_, '_>) {
        self.streams[epoch as usize].fill(writer);
    }

    /// The packet that carried these bytes was acknowledged or lost.
    pub(crate) fn on_frame_fate(&mut self, epoch: Epoch, offset: u64, len: u32, fate: Fate) {
        self.streams[epoch as usize].on_frame_fate(offset, len, fate);
    }

    /// Forgets the keys and bytes of `epoch` (RFC 9001, section 4.9).
    pub(crate) fn discard(&mut self, epoch: Epoch) {
        self.protection.discard(epoch);
        self.streams[epoch as usize] = CryptoStream::default();
    }
}
