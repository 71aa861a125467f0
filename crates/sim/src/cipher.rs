//! Packet protection of simulations.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_quic::crypto::{ClientCrypto, ServerCrypto};
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_tls::{CipherSuite, ClientTls, DevCertificate, ServerTls};

use crate::error::SimError;

/// The name of simulated servers.
pub const SERVER_NAME: &str = "server.test";

/// Application protocol of all simulated connections.
const ALPN: &str = "sim";

/// A time at which the deterministic certificate is valid: 2025-01-01.
const TODAY: Duration = Duration::from_secs(1_735_689_600);

/// Packet protection of a simulation. Packets have the same sizes with both.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Cipher {
    /// None: fast, and the same bytes for the same seed.
    #[default]
    Null,
    /// TLS 1.3 with AES-128-GCM: real handshakes, real encryption.
    Tls,
}

impl Cipher {
    /// The configurations of both ends, with a fixed certificate.
    #[allow(
        clippy::type_complexity,
        reason = "a pair of trait objects, destructured at once"
    )]
    pub fn crypto(self) -> Result<(Arc<dyn ClientCrypto>, Arc<dyn ServerCrypto>), SimError> {
        let certificate = DevCertificate::deterministic([SERVER_NAME])?;
        match self {
            Self::Null => {
                let chain_len = certificate.certificate_der().len();
                let server = NullServer::new([ALPN]).with_chain_len(chain_len);
                Ok((Arc::new(NullClient::new([ALPN])), Arc::new(server)))
            }
            Self::Tls => {
                let suites = [CipherSuite::Aes128Gcm];
                let client = ClientTls::with_roots([certificate.certificate_der()])?
                    .with_cipher_suites(&suites)?
                    .alpn([ALPN])
                    .at_unix_time(TODAY);
                let server = ServerTls::from_dev_certificate(&certificate)?
                    .with_cipher_suites(&suites)?
                    .alpn([ALPN]);
                Ok((Arc::new(client), Arc::new(server)))
            }
        }
    }
}
