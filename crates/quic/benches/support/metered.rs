//! A server's TLS with a clock at each call, to measure its share of a handshake.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant as Clock;

use swiftwater_quic::crypto::{
    CryptoError, EarlyKeys, EncryptionLevel, Hello, KeyPair, Keys, NewKeys, PacketKey, Primitives,
    ServerCrypto, Session, SessionError, TlsError,
};
use swiftwater_units::Side;
use swiftwater_wire::ConnectionId;

/// Nanoseconds spent in TLS since the last look.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    session: AtomicU64,
    initial_keys: AtomicU64,
}

impl Meter {
    /// Nanoseconds in sessions, and in making Initial keys.
    pub(crate) fn take(&self) -> (u64, u64) {
        let take = |nanos: &AtomicU64| nanos.swap(0, Ordering::Relaxed);
        (take(&self.session), take(&self.initial_keys))
    }
}

fn timed<T>(nanos: &AtomicU64, call: impl FnOnce() -> T) -> T {
    let started = Clock::now();
    let result = call();
    let spent = started.elapsed().as_nanos() as u64;
    nanos.fetch_add(spent, Ordering::Relaxed);
    result
}

/// Any server crypto, metered.
pub(crate) struct Metered {
    pub(crate) crypto: Arc<dyn ServerCrypto>,
    pub(crate) meter: Arc<Meter>,
}

impl fmt::Debug for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metered(..)")
    }
}

impl ServerCrypto for Metered {
    fn start_session(
        &self,
        version: u32,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, SessionError> {
        let start = || self.crypto.start_session(version, parameters);
        Ok(Box::new(MeteredSession {
            session: timed(&self.meter.session, start)?,
            meter: Arc::clone(&self.meter),
        }))
    }

    fn hello<'a>(&self, bytes: &'a [u8]) -> Hello<'a> {
        self.crypto.hello(bytes)
    }

    fn primitives(&self) -> Arc<dyn Primitives> {
        Arc::new(MeteredPrimitives {
            primitives: self.crypto.primitives(),
            meter: Arc::clone(&self.meter),
        })
    }
}

#[derive(Debug)]
struct MeteredPrimitives {
    primitives: Arc<dyn Primitives>,
    meter: Arc<Meter>,
}

impl Primitives for MeteredPrimitives {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId, side: Side) -> Keys {
        timed(&self.meter.initial_keys, || {
            self.primitives.initial_keys(version, dst_cid, side)
        })
    }

    fn retry_tag(&self, version: u32, original_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.primitives.retry_tag(version, original_dst_cid, packet)
    }
}

struct MeteredSession {
    session: Box<dyn Session>,
    meter: Arc<Meter>,
}

impl Session for MeteredSession {
    fn read_handshake(&mut self, level: EncryptionLevel, data: &[u8]) -> Result<(), TlsError> {
        timed(&self.meter.session, || {
            self.session.read_handshake(level, data)
        })
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<NewKeys> {
        timed(&self.meter.session, || self.session.write_handshake(out))
    }

    fn next_packet_keys(&mut self) -> Option<KeyPair<dyn PacketKey>> {
        timed(&self.meter.session, || self.session.next_packet_keys())
    }

    fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        self.session.peer_transport_parameters()
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.session.alpn()
    }

    fn server_name(&self) -> Option<&str> {
        self.session.server_name()
    }

    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        self.session.peer_certificates()
    }

    fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), CryptoError> {
        self.session.export_keying_material(out, label, context)
    }

    fn as_any(&self) -> &dyn Any {
        self.session.as_any()
    }

    fn early_keys(&mut self) -> Option<EarlyKeys> {
        self.session.early_keys()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.session.early_data_accepted()
    }

    fn is_resumed(&self) -> bool {
        self.session.is_resumed()
    }

    fn reject_early_data(&mut self) {
        self.session.reject_early_data();
    }
}
