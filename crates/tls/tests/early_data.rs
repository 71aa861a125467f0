//! Early data as TLS sees them: offers, their end, and permissions in tickets (RFC 9001, sections
//! 4.6.1, 5.6 and 8.3).

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::sync::Arc;

use crate::sessions::{Peer, converse, handshake};
use swiftwater_quic::crypto::{ClientCrypto, EncryptionLevel, ServerCrypto};
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_tls::{ClientTls, DevCertificate, MemorySessionStore, ServerTls, Tickets};
use swiftwater_units::Side;
use swiftwater_wire::{ErrorCode, TransportParameters, VERSION_1};

const NAME: &str = "server.example";

/// Types of TLS messages (RFC 8446, section 4).
const NEW_SESSION_TICKET: u8 = 4;
const END_OF_EARLY_DATA: u8 = 5;
const FINISHED: u8 = 20;

fn certificate() -> DevCertificate {
    DevCertificate::deterministic([NAME]).unwrap()
}

/// A client that resumes, and says nothing about early data.
fn client() -> ClientTls {
    ClientTls::with_roots([certificate().certificate_der()])
        .unwrap()
        .alpn(["h3"])
        .sessions(Arc::new(MemorySessionStore::default()))
}

fn server() -> ServerTls {
    ServerTls::from_dev_certificate(&certificate())
        .unwrap()
        .alpn(["h3"])
        .tickets(Tickets::SingleUse { capacity: 100 })
        .unwrap()
}

fn null_client() -> NullClient {
    NullClient::new(["h3"]).with_sessions(Arc::new(MemorySessionStore::default()))
}

fn null_server() -> NullServer {
    NullServer::new(["h3"]).with_ticket(true)
}

fn begin(client: &dyn ClientCrypto, server: &dyn ServerCrypto) -> (Peer, Peer) {
    let encoded = |side| {
        let mut bytes = Vec::new();
        TransportParameters::default().encode(side, &mut bytes, None);
        bytes
    };
    let client = client
        .start_session(VERSION_1, NAME, &encoded(Side::Client))
        .unwrap();
    let server = server
        .start_session(VERSION_1, &encoded(Side::Server))
        .unwrap();
    (Peer::new(client), Peer::new(server))
}

fn visit(client: &dyn ClientCrypto, server: &dyn ServerCrypto) {
    let (mut client, mut server) = begin(client, server);
    converse(&mut client, &mut server, &[usize::MAX]).unwrap();
}

/// Both ends, and whether the client offers early data when it comes again.
type Case = (Arc<dyn ClientCrypto>, Arc<dyn ServerCrypto>, bool);

#[test]
fn early_data_are_for_those_that_ask() {
    let pairs: [Case; 6] = [
        (Arc::new(client()), Arc::new(server()), false),
        (
            Arc::new(client()),
            Arc::new(server().early_data(true)),
            false,
        ),
        (
            Arc::new(client().early_data(true)),
            Arc::new(server()),
            false,
        ),
        (
            Arc::new(client().early_data(true)),
            Arc::new(server().early_data(true)),
            true,
        ),
        (
            Arc::new(null_client()),
            Arc::new(null_server().with_early_data(true)),
            false,
        ),
        (
            Arc::new(null_client().with_early_data(true)),
            Arc::new(null_server()),
            false,
        ),
    ];
    for (n, (client, server, offers)) in pairs.into_iter().enumerate() {
        visit(&*client, &*server);
        let (mut client, mut server) = begin(&*client, &*server);
        assert_eq!(client.session.early_keys().is_some(), offers, "{n}");
        converse(&mut client, &mut server, &[usize::MAX]).unwrap();
        assert!(client.session.is_resumed(), "{n}");
        assert_eq!(server.session.early_keys().is_some(), offers, "{n}");
    }
}

/// The types of whole TLS messages.
fn types(mut messages: &[u8]) -> Vec<u8> {
    let mut types = Vec::new();
    while let [kind, a, b, c, rest @ ..] = messages {
        let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        types.push(*kind);
        messages = &rest[len..];
    }
    types
}

#[test]
fn early_data_end_without_a_message() {
    let (client, server) = (client().early_data(true), server().early_data(true));
    visit(&client, &server);
    let (mut client, mut other) = begin(&client, &server);
    assert!(client.session.early_keys().is_some());
    converse(&mut client, &mut other, &[usize::MAX]).unwrap();
    assert_eq!(client.session.early_data_accepted(), Some(true));
    assert_eq!(
        types(&client.said[EncryptionLevel::Handshake as usize]),
        [FINISHED]
    );
}

#[test]
fn servers_take_no_message_that_ends_early_data() {
    let (client, server) = (client().early_data(true), server().early_data(true));
    visit(&client, &server);
    let (client, mut server) = begin(&client, &server);
    server.listen(&client, usize::MAX).unwrap();
    assert!(server.session.early_keys().is_some());
    let message = [END_OF_EARLY_DATA, 0, 0, 0];
    let error = server
        .session
        .read_handshake(EncryptionLevel::Handshake, &message);
    assert!(error.is_err());
}

/// A ticket that permits this much early data.
fn ticket(early_data: u32) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(3600_u32.to_be_bytes());
    body.extend([1, 2, 3, 4]);
    // A nonce of one byte, a ticket of four, extensions of eight: early_data.
    body.extend([1, 9]);
    body.extend([0, 4, 1, 1, 1, 1]);
    body.extend([0, 8, 0, 42, 0, 4]);
    body.extend(early_data.to_be_bytes());
    let mut message = vec![NEW_SESSION_TICKET, 0, 0, body.len() as u8];
    message.extend(body);
    message
}

#[test]
fn tickets_with_another_amount_of_early_data_are_refused() {
    for (amount, taken) in [(u32::MAX, true), (u32::MAX - 1, false), (16_384, false)] {
        let (mut client, _) = handshake(&client().early_data(true), &server(), NAME).unwrap();
        let read = client
            .session
            .read_handshake(EncryptionLevel::OneRtt, &ticket(amount));
        let code = read.err().map(|error| error.code);
        let expected = (!taken).then_some(ErrorCode::PROTOCOL_VIOLATION);
        assert_eq!(code, expected, "{amount}");
    }
}
