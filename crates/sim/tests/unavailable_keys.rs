//! A TLS session that does not derive keys again which an idle connection gave up: nothing leaves without
//! protection, and the connection ends.

use crate::support;

use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use swiftwater_quic::crypto::{
    ApplicationKeys, ClientCrypto, CryptoError, EncryptionLevel, KeyPair, NewKeys, PacketKey,
    Primitives, Session, SessionError, TlsError,
};
use swiftwater_quic::wire::ErrorCode;
use swiftwater_quic::{ConnectionError, Event};
use swiftwater_sim::{Cipher, Direction, Pair, Verdict};
use swiftwater_units::{Dir, Side};

use support::{count, millis, reason, secs};

/// What the application writes.
const SECRET: &[u8] = b"a line of text that must never appear on the wire as it is";

/// Whether sessions derive keys again, and how often they were asked to.
#[derive(Debug, Default)]
struct Derivation {
    fails: AtomicBool,
    asked: AtomicU32,
}

/// A client's TLS whose sessions stop deriving keys again on request.
#[derive(Debug)]
struct Forgetful {
    crypto: Arc<dyn ClientCrypto>,
    derivation: Arc<Derivation>,
}

impl ClientCrypto for Forgetful {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, SessionError> {
        let session = self
            .crypto
            .start_session(version, server_name, parameters)?;
        Ok(Box::new(ForgetfulSession {
            session,
            derivation: Arc::clone(&self.derivation),
        }))
    }

    fn primitives(&self) -> Arc<dyn Primitives> {
        self.crypto.primitives()
    }
}

struct ForgetfulSession {
    session: Box<dyn Session>,
    derivation: Arc<Derivation>,
}

impl Session for ForgetfulSession {
    fn remake_keys(&self) -> Option<ApplicationKeys> {
        self.derivation.asked.fetch_add(1, Ordering::Relaxed);
        let fails = self.derivation.fails.load(Ordering::Relaxed);
        self.session.remake_keys().filter(|_| !fails)
    }

    fn can_remake_keys(&self) -> bool {
        self.session.can_remake_keys()
    }

    fn read_handshake(&mut self, level: EncryptionLevel, data: &[u8]) -> Result<(), TlsError> {
        self.session.read_handshake(level, data)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<NewKeys> {
        self.session.write_handshake(out)
    }

    fn next_packet_keys(&mut self) -> Option<KeyPair<dyn PacketKey>> {
        self.session.next_packet_keys()
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
}

/// An idle connection whose client gave up its keys, and what its session does.
fn idle() -> (Pair, Arc<Derivation>) {
    let (client, server) = Cipher::Tls.crypto().unwrap();
    let derivation = Arc::new(Derivation::default());
    let client = Forgetful {
        crypto: client,
        derivation: Arc::clone(&derivation),
    };
    let mut pair = Pair::builder()
        .crypto(Arc::new(client), server)
        .link(support::link(10, 20))
        .build()
        .unwrap();
    assert!(pair.connect());
    pair.advance(secs(2));
    pair.client().release_idle_memory();
    (pair, derivation)
}

/// Bytes that the client sends from now on; none of them may be what the application wrote.
fn watch(pair: &mut Pair) -> Rc<Cell<usize>> {
    let sent = Rc::new(Cell::new(0));
    let total = Rc::clone(&sent);
    pair.tap(Direction::ToServer, move |datagram| {
        total.set(total.get() + datagram.data.len());
        let mut windows = datagram.data.windows(SECRET.len());
        assert!(!windows.any(|window| window == SECRET), "clear text");
        Verdict::Pass
    });
    sent
}

/// The client's connection ended with INTERNAL_ERROR, reported to its application once.
fn assert_internal_error(pair: &Pair) {
    let Some(ConnectionError::Transport(error)) = reason(pair, Side::Client) else {
        panic!("{:?}", reason(pair, Side::Client));
    };
    assert_eq!(error.code, ErrorCode::INTERNAL_ERROR, "{error:?}");
    let closed = |event: &Event| matches!(event, Event::Closed { .. });
    assert_eq!(count(pair, Side::Client, closed), 1);
}

fn write(pair: &mut Pair) {
    let id = pair.client().open(Dir::Uni).unwrap();
    let mut stream = pair.client().send_stream(id);
    assert_eq!(stream.write(SECRET).unwrap(), SECRET.len());
    stream.finish().unwrap();
}

#[test]
fn nothing_leaves_when_keys_are_not_derived_again() {
    let (mut pair, derivation) = idle();
    derivation.fails.store(true, Ordering::Relaxed);
    let sent = watch(&mut pair);
    write(&mut pair);
    pair.advance(secs(5));
    assert!(derivation.asked.load(Ordering::Relaxed) > 0);
    // Not even a close, which could not be protected either.
    assert_eq!(sent.get(), 0);
    assert_internal_error(&pair);
    // The peer's idle timeout ends its side.
    assert!(pair.run_until(|pair| reason(pair, Side::Server).is_some()));
    assert_eq!(reason(&pair, Side::Server), Some(ConnectionError::TimedOut));
}

#[test]
fn a_packet_that_arrives_finds_no_keys_and_ends_the_connection() {
    let (mut pair, derivation) = idle();
    derivation.fails.store(true, Ordering::Relaxed);
    watch(&mut pair);
    let before = pair.stats(Side::Client).packets_sent;
    pair.start_transfer(10_000, Direction::ToClient);
    pair.advance(secs(5));
    // Stateless resets at most, which are not of the connection.
    assert_eq!(pair.stats(Side::Client).packets_sent, before);
    assert_internal_error(&pair);
}

#[test]
fn a_key_update_without_keys_ends_the_connection() {
    let (mut pair, derivation) = idle();
    derivation.fails.store(true, Ordering::Relaxed);
    let sent = watch(&mut pair);
    pair.client().update_keys();
    write(&mut pair);
    pair.advance(secs(5));
    assert_eq!(sent.get(), 0);
    assert_internal_error(&pair);
}

#[test]
fn keys_that_are_derived_again_protect_as_before() {
    let (mut pair, derivation) = idle();
    let sent = watch(&mut pair);
    write(&mut pair);
    pair.advance(millis(100));
    assert!(derivation.asked.load(Ordering::Relaxed) > 0);
    assert!(sent.get() > SECRET.len());
    assert!(pair.server().accept(Dir::Uni).is_some());
    assert_eq!(reason(&pair, Side::Client), None);
}
