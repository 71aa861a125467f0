//! The TLS handshake of a connection: session, crypto streams, keys by encryption level and phase (RFC 9001).
//!
//! It hands out keys and handshake bytes; which packets they travel in is the connection's matter.

mod crypto_stream;
mod key_phases;
mod keys;
mod negotiation;
mod opening;
#[cfg(test)]
mod tests;
mod version;

pub(crate) use key_phases::{KeyPhaseNumbers, UpdateCause};
pub(crate) use keys::{ActiveKeys, KeysUnavailable, OpenError, Opened, PacketName, Protection};
pub(crate) use negotiation::{Negotiation, Restart};
pub(crate) use opening::{Crypto, Grease, Opening, reserved_version};
pub(crate) use version::Fit;

use std::sync::Arc;
use std::time::Duration;

use swiftwater_units::Side;
use swiftwater_wire::{ConnectionId, ErrorCode, TransportParameters};

use crate::crypto::{CryptoError, EncryptionLevel, Hello, Keys, NewKeys, Primitives, Session};
use crate::error::TransportError;
use crate::frame_writer::{Fate, FrameWriter};
use crate::idle_memory::IdleMemory;

use self::crypto_stream::CryptoStream;
use self::version::no_session;

/// What a step of the handshake brought about.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Progress {
    /// Keys of a new encryption level were installed.
    pub(crate) new_keys: bool,
    /// Keys of early data were installed.
    pub(crate) early_keys: bool,
    /// The TLS handshake is complete with this step.
    pub(crate) completed: bool,
    /// The bytes were known already: the peer misses the answer to them.
    pub(crate) repeated: bool,
}

/// The handshake and everything that depends on its keys.
pub(crate) struct Handshake {
    side: Side,
    negotiation: Negotiation,
    /// Starts sessions, as long as another one may be needed.
    opening: Option<Box<Opening>>,
    /// `None` for a server that has not seen the whole of the client's first message.
    session: Option<Box<dyn Session>>,
    primitives: Arc<dyn Primitives>,
    /// Connection ID from which Initial keys are derived.
    initial_keys_cid: ConnectionId,
    /// Version of the Initial keys in use.
    initial_version: u32,
    /// Initial keys of a version that isn't the current one: that which the client began with (server),
    /// or one that the server may have chosen (client).
    other_initial: Option<Box<(u32, Keys)>>,
    /// Encryption level of the bytes that the session writes.
    write_level: EncryptionLevel,
    /// By encryption level, from the first bytes until the encryption level is over.
    streams: [Option<Box<CryptoStream>>; 3],
    protection: Protection,
    /// The peer's transport parameters, until the connection is first idle.
    peer_parameters: Option<Box<TransportParameters>>,
    peer_terms: Option<PeerTerms>,
    /// The peer's transport parameters are in use.
    parameters_in_use: bool,
    complete: bool,
    confirmed: bool,
}

impl IdleMemory for Handshake {
    /// Releases what only the handshake needs, and keys that can be derived again.
    fn release_idle_memory(&mut self) {
        let Self {
            side: _,
            negotiation: _,
            opening: _,
            session,
            primitives: _,
            initial_keys_cid: _,
            initial_version: _,
            other_initial: _,
            write_level: _,
            streams,
            protection,
            peer_parameters,
            peer_terms: _,
            parameters_in_use: _,
            complete: _,
            confirmed,
        } = self;
        if *confirmed {
            *peer_parameters = None;
            if let Some(session) = session {
                session.release_idle_memory();
                if session.can_remake_keys() {
                    protection.release_idle_memory();
                }
            }
        }
        for stream in streams.iter_mut().flatten() {
            stream.release_idle_memory();
        }
    }
}

/// What is asked of the peer's transport parameters for packet after packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerTerms {
    pub(crate) max_ack_delay: Duration,
    pub(crate) ack_delay_exponent: u8,
    pub(crate) grease_quic_bit: bool,
    pub(crate) disable_active_migration: bool,
}

impl PeerTerms {
    fn of(parameters: &TransportParameters) -> Self {
        Self {
            max_ack_delay: parameters.max_ack_delay,
            ack_delay_exponent: parameters.ack_delay_exponent,
            grease_quic_bit: parameters.grease_quic_bit,
            disable_active_migration: parameters.disable_active_migration,
        }
    }
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
    /// `session` is that of a client; a server starts its own. `initial` are the Initial keys and the connection
    /// ID from which they are derived.
    pub(crate) fn new(
        side: Side,
        version: u32,
        opening: Opening,
        session: Option<Box<dyn Session>>,
        primitives: Arc<dyn Primitives>,
        initial: (ConnectionId, Keys),
    ) -> Self {
        let (initial_keys_cid, initial_keys) = initial;
        Self {
            side,
            negotiation: Negotiation::new(opening.versions.clone(), version),
            opening: Some(Box::new(opening)),
            session,
            primitives,
            initial_keys_cid,
            initial_version: version,
            other_initial: None,
            write_level: EncryptionLevel::Initial,
            streams: Default::default(),
            protection: Protection::new(initial_keys),
            peer_parameters: None,
            peer_terms: None,
            parameters_in_use: false,
            complete: false,
            confirmed: false,
        }
    }

    /// Which keys there are, and their state.
    pub(crate) fn keys(&self) -> &Protection {
        &self.protection
    }

    /// The same, to be changed.
    pub(crate) fn keys_mut(&mut self) -> &mut Protection {
        &mut self.protection
    }

    /// The keys, ready to open and to protect packets: those that were released are derived again.
    ///
    /// # Errors
    ///
    /// The session can't derive them.
    #[inline]
    pub(crate) fn active_keys(&mut self) -> Result<ActiveKeys<'_>, KeysUnavailable> {
        if self.protection.are_released() {
            self.restore_keys()?;
        }
        ActiveKeys::new(&mut self.protection)
    }

    #[cold]
    fn restore_keys(&mut self) -> Result<(), KeysUnavailable> {
        let session = self.session.as_deref();
        let keys = session.and_then(Session::remake_keys);
        self.protection.restore(keys.ok_or(KeysUnavailable)?);
        Ok(())
    }

    /// Keeps a token for the next connection, if there is a place for it.
    pub(crate) fn keep_token(&mut self, token: &[u8]) -> bool {
        (self.session.as_mut()).is_some_and(|session| session.keep_token(token))
    }

    /// The TLS session, for what the application may ask of it, once there is one.
    pub(crate) fn session(&self) -> Option<&dyn Session> {
        self.session.as_deref()
    }

    /// The peer's transport parameters, once its flight has arrived, and until the connection is first idle
    /// after the handshake.
    pub(crate) fn peer_parameters(&self) -> Option<&TransportParameters> {
        self.peer_parameters.as_deref()
    }

    /// What matters of them as long as the connection lasts.
    pub(crate) fn peer_terms(&self) -> Option<&PeerTerms> {
        self.peer_terms.as_ref()
    }

    /// True once the peer's transport parameters are in use.
    pub(crate) fn are_parameters_in_use(&self) -> bool {
        self.parameters_in_use
    }

    /// The peer's transport parameters are in use from now on.
    pub(crate) fn set_parameters_in_use(&mut self) {
        self.parameters_in_use = true;
    }

    /// True if 1-RTT packets can be opened by the peer, or soon will be: a client waits for the handshake, a
    /// server may send as soon as it has the keys (RFC 9001, section 5.7).
    pub(crate) fn may_send_one_rtt(&self) -> bool {
        self.complete || (self.side.is_server() && self.parameters_in_use)
    }

    /// The server's transport parameters in the session whose early data this end offers; `None` if there
    /// are none or they make no sense any more.
    pub(crate) fn resumed_parameters(&self) -> Option<TransportParameters> {
        let bytes = self.session.as_ref()?.resumed_parameters()?;
        TransportParameters::decode(bytes, !self.side).ok()
    }

    /// True once TLS is complete (RFC 9001, section 4.1.1).
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// True once the handshake is confirmed (RFC 9001, section 4.1.2).
    pub(crate) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// True if application data are sent in 0-RTT packets now: only by a client, until the handshake is
    /// complete.
    pub(crate) fn may_send_early_data(&self) -> bool {
        self.side.is_client() && !self.complete && self.protection.has(EncryptionLevel::ZeroRtt)
    }

    /// The delay that an ACK frame in `level` states, as far as it counts: at most `longest` once the
    /// handshake is confirmed (RFC 9002, section 5.3).
    pub(crate) fn ack_delay(
        &self,
        level: EncryptionLevel,
        coded: u64,
        longest: Duration,
    ) -> Duration {
        if level == EncryptionLevel::Initial {
            return Duration::ZERO;
        }
        let terms = self.peer_terms();
        let exponent = terms.map_or(3, |terms| terms.ack_delay_exponent);
        let delay = Duration::from_micros(coded.saturating_mul(1 << exponent));
        if self.confirmed {
            delay.min(longest)
        } else {
            delay
        }
    }

    /// Marks the handshake confirmed.
    pub(crate) fn confirm(&mut self) {
        self.confirmed = true;
        if let Some(session) = &mut self.session {
            session.settle();
        }
    }

    /// Lets the session write its first flight (client).
    pub(crate) fn start(&mut self) -> Result<Progress, TransportError> {
        self.advance()
    }

    /// Takes a CRYPTO frame (RFC 9000, section 19.6).
    pub(crate) fn on_crypto(
        &mut self,
        level: EncryptionLevel,
        offset: u64,
        data: &[u8],
    ) -> Result<Progress, TransportError> {
        let repeated = !self.stream(level).receive(offset, data)?;
        if !self.is_open()? {
            return Ok(Progress {
                repeated,
                ..Progress::default()
            });
        }
        let mut progressed = false;
        while let Some(stream) = &mut self.streams[level as usize] {
            let readable = stream.readable();
            if readable.is_empty() {
                break;
            }
            let len = readable.len();
            if let Some(session) = &mut self.session {
                session.read_handshake(level, readable)?;
            }
            stream.consume(len);
            progressed = true;
        }
        if progressed {
            self.advance()
        } else {
            Ok(Progress {
                repeated,
                ..Progress::default()
            })
        }
    }

    /// True if there is a session to read handshake bytes. A server starts it in the version that it
    /// chooses as soon as it has the whole of the client's first message (RFC 9368, section 2.3).
    fn is_open(&mut self) -> Result<bool, TransportError> {
        if self.session.is_some() {
            // A client that gets handshake bytes has the server's choice from their packet.
            let current = self.negotiation.current();
            self.negotiation.settle(current);
            return Ok(true);
        }
        let Some(opening) = &self.opening else {
            return Ok(false);
        };
        let first = self.streams[EncryptionLevel::Initial as usize].as_ref();
        let declared = match opening.hello(first.map_or(&[], |stream| stream.readable())) {
            Hello::Incomplete => return Ok(false),
            // What is wrong with them shows when the session has authenticated them.
            Hello::Parameters(bytes) => TransportParameters::decode(bytes, Side::Client).ok(),
            Hello::Opaque => None,
        };
        let declared = declared.and_then(|parameters| parameters.version_information);
        let version = self.negotiation.choose(declared.as_ref())?;
        self.session = Some(opening.start(version).map_err(no_session)?);
        self.opening = None;
        if version != self.version() {
            self.exchange_initial(version);
        }
        self.negotiation.settle(version);
        Ok(true)
    }

    /// Drains the session: bytes to send, new keys, the peer's parameters, completion.
    fn advance(&mut self) -> Result<Progress, TransportError> {
        let mut progress = Progress::default();
        let Some(session) = &mut self.session else {
            return Ok(progress);
        };
        loop {
            let stream = self.streams[self.write_level as usize].get_or_insert_default();
            let out = stream.outgoing();
            let before = out.len();
            let keys = session.write_handshake(out);
            let wrote = out.len() > before;
            stream.queue_written(before);
            match keys {
                Some(NewKeys { level, keys }) => {
                    let next = match level {
                        EncryptionLevel::OneRtt => session.next_packet_keys(),
                        _ => None,
                    };
                    self.protection.install(level, keys, next);
                    self.write_level = level;
                    progress.new_keys = true;
                }
                None if !wrote => break,
                None => {}
            }
        }
        if let Some(keys) = session.early_keys() {
            self.protection.install_early(keys);
            progress.early_keys = true;
        }
        let is_handshaking = session.is_handshaking();
        self.read_peer_parameters()?;
        if !self.complete && !is_handshaking {
            if self.peer_terms.is_none() {
                // TLS alert missing_extension (RFC 9001, section 8.2).
                return Err(TransportError::new(
                    ErrorCode::crypto(109),
                    "the peer sent no transport parameters",
                ));
            }
            self.complete = true;
            self.opening = None;
            progress.completed = true;
        }
        Ok(progress)
    }

    fn read_peer_parameters(&mut self) -> Result<(), TransportError> {
        if self.peer_terms.is_none()
            && let Some(session) = &self.session
            && let Some(bytes) = session.peer_transport_parameters()
        {
            let parameters = TransportParameters::decode(bytes, !self.side)?;
            if self.side.is_client() {
                let information = parameters.version_information.as_ref();
                self.negotiation.check_server(information)?;
            }
            self.peer_terms = Some(PeerTerms::of(&parameters));
            self.peer_parameters = Some(Box::new(parameters));
        }
        Ok(())
    }

    /// Moves the 1-RTT keys to the next phase. Returns the number of key updates so far.
    ///
    /// # Errors
    ///
    /// Keys that were released can't be derived again.
    pub(crate) fn update_keys(&mut self, cause: UpdateCause<'_>) -> Result<u64, KeysUnavailable> {
        // Keys that were released are derived from secrets that the session discards with the next step.
        self.active_keys()?;
        let next = (self.session.as_mut()).and_then(|session| session.next_packet_keys());
        self.protection.update(next, cause);
        Ok(self.protection.generation())
    }

    /// Keying material for the application.
    pub(crate) fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), CryptoError> {
        self.session
            .as_ref()
            .ok_or(CryptoError)?
            .export_keying_material(out, label, context)
    }

    /// True if handshake bytes wait to be sent in `level`.
    pub(crate) fn has_pending(&self, level: EncryptionLevel) -> bool {
        let stream = self.streams.get(level as usize).and_then(Option::as_ref);
        stream.is_some_and(|stream| stream.has_pending())
    }

    /// Writes CRYPTO frames.
    pub(crate) fn fill(&mut self, level: EncryptionLevel, writer: &mut FrameWriter<'_, '_>) {
        if let Some(stream) = &mut self.streams[level as usize] {
            stream.fill(writer);
        }
    }

    /// The packet that carried these bytes was acknowledged or lost.
    pub(crate) fn on_frame_fate(
        &mut self,
        level: EncryptionLevel,
        offset: u64,
        len: u32,
        fate: Fate,
    ) {
        if let Some(stream) = &mut self.streams[level as usize] {
            stream.on_frame_fate(offset, len, fate);
        }
    }

    /// Discards the keys and bytes of `level` (RFC 9001, section 4.9).
    pub(crate) fn discard(&mut self, level: EncryptionLevel) {
        self.protection.discard(level);
        if level == EncryptionLevel::Initial {
            self.other_initial = None;
        }
        self.streams[level as usize] = None;
    }

    /// The bytes of `level`.
    fn stream(&mut self, level: EncryptionLevel) -> &mut CryptoStream {
        self.streams[level as usize].get_or_insert_default()
    }
}
