//! One TLS handshake driven through rustls (RFC 9001, section 4).

use std::any::Any;
use std::fmt;

use rustls::quic::{Connection, KeyChange, Secrets};
use swiftwater_quic::crypto::{CryptoError, Epoch, KeyPair, NewKeys, PacketKey, Session, TlsError};
use swiftwater_wire::ErrorCode;

use crate::checks::check_epoch;
use crate::cipher_suite::CipherSuite;
use crate::outbox::Outbox;
use crate::rustls_keys;

/// The alert `decode_error` (RFC 8446, section 6).
const DECODE_ERROR: u8 = 50;

/// A TLS session of rustls, client or server.
///
/// rustls doesn't ask in which epoch bytes arrived; this type knows which epoch TLS reads from at
/// each moment and refuses bytes of any other.
pub struct RustlsSession {
    connection: Connection,
    /// From which the packet keys of the next key phase come.
    secrets: Option<Secrets>,
    /// Where the peer's next handshake bytes have to arrive.
    read_epoch: Epoch,
    outbox: Outbox,
    /// The name that a client asked for; a server's is inside the connection.
    asked_name: Option<String>,
}

impl RustlsSession {
    pub(crate) fn new(connection: Connection, asked_name: Option<String>) -> Self {
        let mut session = Self {
            connection,
            secrets: None,
            read_epoch: Epoch::Initial,
            outbox: Outbox::default(),
            asked_name,
        };
        session.collect();
        session
    }

    /// The suite that was negotiated, once known.
    pub fn cipher_suite(&self) -> Option<CipherSuite> {
        self.connection
            .negotiated_cipher_suite()
            .and_then(CipherSuite::from_rustls)
    }

    /// Takes over what rustls made of its input at once, so that `read_epoch` is right before the
    /// next input.
    fn collect(&mut self) {
        loop {
            let mut bytes = Vec::new();
            let change = self.connection.write_hs(&mut bytes);
            if bytes.is_empty() && change.is_none() {
                break;
            }
            let keys = change.map(|change| self.install(change));
            self.outbox.push(bytes, keys);
        }
        // A server has 1-RTT keys before it has read the client's last Handshake bytes.
        if !self.connection.is_handshaking() {
            self.read_epoch = Epoch::OneRtt;
        }
    }

    fn install(&mut self, change: KeyChange) -> NewKeys {
        match change {
            KeyChange::Handshake { keys } => {
                self.read_epoch = Epoch::Handshake;
                NewKeys {
                    epoch: Epoch::Handshake,
                    keys: rustls_keys::keys(keys),
                }
            }
            KeyChange::OneRtt { keys, next } => {
                self.secrets = Some(next);
                NewKeys {
                    epoch: Epoch::OneRtt,
                    keys: rustls_keys::keys(keys),
                }
            }
        }
    }

    fn error(&self, error: &rustls::Error) -> TlsError {
        let code = match (self.connection.alert(), error) {
            (Some(alert), _) => ErrorCode::crypto(alert.into()),
            (None, rustls::Error::InvalidMessage(_)) => ErrorCode::crypto(DECODE_ERROR),
            (None, _) => ErrorCode::PROTOCOL_VIOLATION,
        };
        TlsError {
            code,
            reason: error.to_string(),
        }
    }
}

impl fmt::Debug for RustlsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RustlsSession")
            .field("handshaking", &self.is_handshaking())
            .field("read_epoch", &self.read_epoch)
            .finish_non_exhaustive()
    }
}

impl Session for RustlsSession {
    fn read_handshake(&mut self, epoch: Epoch, data: &[u8]) -> Result<(), TlsError> {
        check_epoch(self.read_epoch, epoch)?;
        self.connection
            .read_hs(data)
            .map_err(|error| self.error(&error))?;
        self.collect();
        Ok(())
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<NewKeys> {
        self.outbox.take(out)
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        self.connection.quic_transport_parameters()
    }

    fn next_packet_keys(&mut self) -> Option<KeyPair<dyn PacketKey>> {
        self.secrets
            .as_mut()
            .map(|secrets| rustls_keys::packet_keys(secrets.next_packet_keys()))
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    fn server_name(&self) -> Option<&str> {
        match &self.connection {
            Connection::Client(_) => self.asked_name.as_deref(),
            Connection::Server(server) => server.server_name(),
        }
    }

    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        self.connection
            .peer_certificates()
            .unwrap_or_default()
            .iter()
            .map(|certificate| certificate.to_vec())
            .collect()
    }

    fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), CryptoError> {
        self.connection
            .export_keying_material(out, label, Some(context))
            .map(|_| ())
            .map_err(|_| CryptoError)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
