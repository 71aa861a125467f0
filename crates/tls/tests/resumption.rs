//! Sessions, tickets and early data through the session traits, with rustls and with the null cipher.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::sync::Arc;

use crate::sessions::{Peer, assert_packets_agree, converse, handshake, open, seal};
use swiftwater_quic::crypto::{ClientCrypto, EncryptionLevel, ServerCrypto};
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_tls::{
    CipherSuite, ClientTls, DevCertificate, MemorySessionStore, ServerId, ServerTls, SessionStore,
    Tickets,
};
use swiftwater_units::Side;
use swiftwater_wire::{TransportParameters, VERSION_1};

const NAME: &str = "server.example";
const SINGLE_USE: Tickets = Tickets::SingleUse { capacity: 100 };

fn certificate() -> DevCertificate {
    DevCertificate::deterministic([NAME]).unwrap()
}

fn client(store: &Arc<MemorySessionStore>) -> ClientTls {
    ClientTls::with_roots([certificate().certificate_der()])
        .unwrap()
        .alpn(["h3", "hq-interop"])
        .sessions(Arc::clone(store) as _)
        .early_data(true)
}

fn server(tickets: Tickets) -> ServerTls {
    ServerTls::from_dev_certificate(&certificate())
        .unwrap()
        .alpn(["h3"])
        .tickets(tickets)
        .unwrap()
        .early_data(true)
}

fn parameters(side: Side, max_data: u64) -> Vec<u8> {
    let parameters = TransportParameters {
        initial_max_data: max_data,
        ..TransportParameters::default()
    };
    let mut encoded = Vec::new();
    parameters.encode(side, &mut encoded, None);
    encoded
}

/// Both sides before they have talked; the server permits `max_data`.
fn begin(client: &dyn ClientCrypto, server: &dyn ServerCrypto, max_data: u64) -> (Peer, Peer) {
    let parameters_of_client = parameters(Side::Client, 5);
    let client = client
        .start_session(VERSION_1, NAME, &parameters_of_client)
        .unwrap();
    let server = server
        .start_session(VERSION_1, &parameters(Side::Server, max_data))
        .unwrap();
    (Peer::new(client), Peer::new(server))
}

/// A whole visit, after which the client has tickets.
fn visit(client: &dyn ClientCrypto, server: &dyn ServerCrypto, max_data: u64) -> (Peer, Peer) {
    let (mut client, mut server) = begin(client, server, max_data);
    converse(&mut client, &mut server, &[usize::MAX]).unwrap();
    assert!(!client.session.is_handshaking() && !server.session.is_handshaking());
    (client, server)
}

/// Both ciphers: a client, and a server whose tickets work once.
fn pairs() -> Vec<(Arc<dyn ClientCrypto>, Arc<dyn ServerCrypto>)> {
    let store = Arc::default();
    let null = NullClient::new(["h3"]).with_early_data(true);
    let null_server = NullServer::new(["h3"])
        .with_ticket(true)
        .with_early_data(true);
    vec![
        (Arc::new(client(&store)), Arc::new(server(SINGLE_USE))),
        (
            Arc::new(null.with_sessions(Arc::<MemorySessionStore>::default())),
            Arc::new(null_server),
        ),
    ]
}

#[test]
fn early_keys_agree_and_are_of_no_other_level() {
    for (client, server) in pairs() {
        let (mut first, _) = visit(&*client, &*server, 1000);
        assert!(first.session.early_keys().is_none());
        assert!(!first.session.is_resumed());
        let (mut client, mut server) = begin(&*client, &*server, 1000);
        assert_eq!(
            client.session.resumed_parameters().unwrap(),
            parameters(Side::Server, 1000)
        );
        assert_eq!(client.session.resumed_alpn(), Some(b"h3".as_slice()));
        assert!(client.session.peer_transport_parameters().is_none());
        let ours = client.session.early_keys().unwrap();
        assert!(client.session.early_keys().is_none(), "handed out once");
        server.listen(&client, usize::MAX).unwrap();
        let theirs = server.session.early_keys().unwrap();
        let packet = seal(&*ours.packet, &*ours.header, 0, 7, b"early data");
        let opened = open(&*theirs.packet, &*theirs.header, 0, packet.clone());
        assert_eq!(opened, Ok((7, b"early data".to_vec())));

        converse(&mut client, &mut server, &[usize::MAX]).unwrap();
        for session in [&client.session, &server.session] {
            assert_eq!(session.early_data_accepted(), Some(true));
            assert!(session.is_resumed());
        }
        let keys = server.keys(EncryptionLevel::OneRtt);
        assert!(open(&*keys.packet.remote, &*keys.header.remote, 0, packet).is_err());
        let (ours, theirs) = (
            client.keys(EncryptionLevel::OneRtt),
            server.keys(EncryptionLevel::OneRtt),
        );
        assert_packets_agree(&ours.packet, &theirs.packet, &ours.header, &theirs.header);
    }
}

#[test]
fn tickets_work_once() {
    for (client, server) in pairs() {
        visit(&*client, &*server, 1000);
        let (replayed, mut first) = begin(&*client, &*server, 1000);
        first.listen(&replayed, usize::MAX).unwrap();
        assert!(first.session.early_keys().is_some());
        let again = server.start_session(VERSION_1, &parameters(Side::Server, 1000));
        let mut again = Peer::new(again.unwrap());
        again.listen(&replayed, usize::MAX).unwrap();
        assert!(again.session.early_keys().is_none());
        assert!(!again.session.is_resumed());
    }
}

#[test]
fn servers_that_lowered_a_limit_take_no_early_data() {
    for (client, server) in pairs() {
        for (now, accepted) in [(999, false), (1000, true), (1001, true)] {
            visit(&*client, &*server, 1000);
            let (mut client, mut server) = begin(&*client, &*server, now);
            assert!(client.session.early_keys().is_some());
            converse(&mut client, &mut server, &[usize::MAX]).unwrap();
            assert_eq!(client.session.early_data_accepted(), Some(accepted));
            assert_eq!(
                client.session.peer_transport_parameters().unwrap(),
                parameters(Side::Server, now)
            );
            let is_resumed = client.session.is_resumed();
            client.session.settle();
            client.session.release_idle_memory();
            assert_eq!(client.session.early_data_accepted(), Some(accepted));
            assert_eq!(client.session.is_resumed(), is_resumed);
        }
    }
}

#[test]
fn servers_can_reject_early_data_and_resume_all_the_same() {
    for (client, server) in pairs() {
        visit(&*client, &*server, 1000);
        let (mut client, mut server) = begin(&*client, &*server, 1000);
        assert!(client.session.early_keys().is_some());
        server.session.reject_early_data();
        converse(&mut client, &mut server, &[usize::MAX]).unwrap();
        assert_eq!(client.session.early_data_accepted(), Some(false));
        assert!(server.session.early_keys().is_none());
        assert!(client.session.is_resumed());
    }
}

#[test]
fn stateless_tickets_resume_without_early_data() {
    let store = Arc::default();
    let (client, server) = (client(&store), server(Tickets::Stateless));
    visit(&client, &server, 1000);
    let (mut client, mut server) = begin(&client, &server, 1000);
    assert!(client.session.early_keys().is_none());
    converse(&mut client, &mut server, &[usize::MAX]).unwrap();
    assert!(client.session.is_resumed() && server.session.is_resumed());
}

#[test]
fn no_tickets_no_resumption() {
    let store = Arc::default();
    let (client, server) = (client(&store), server(Tickets::Off));
    visit(&client, &server, 1000);
    let (again, _) = visit(&client, &server, 1000);
    assert!(!again.session.is_resumed());
}

/// A session represents a verified certificate; another verifier must not use it.
#[test]
fn sessions_are_of_no_use_to_another_verifier() {
    let store = Arc::new(MemorySessionStore::default());
    let careless = ClientTls::dangerous_without_verification()
        .unwrap()
        .alpn(["h3"])
        .sessions(Arc::clone(&store) as _);
    let stranger = DevCertificate::generate([NAME]).unwrap();
    let impostor = ServerTls::from_dev_certificate(&stranger)
        .unwrap()
        .alpn(["h3"])
        .tickets(SINGLE_USE)
        .unwrap();
    visit(&careless, &impostor, 1000);
    let (again, _) = visit(&careless, &impostor, 1000);
    assert!(again.session.is_resumed());
    // The careful client shares the store, and still sees through the impostor.
    let error = handshake(&client(&store), &impostor, NAME).err().unwrap();
    assert!((0x100..0x200).contains(&error.code.0), "{error:?}");
}

#[test]
fn sessions_belong_to_one_server_and_its_protocol() {
    let store = Arc::new(MemorySessionStore::default());
    let (client, server) = (client(&store), server(SINGLE_USE));
    visit(&client, &server, 1000);
    let elsewhere = ServerId {
        name: "other.example".to_owned(),
        version: VERSION_1,
    };
    let other_version = ServerId {
        name: NAME.to_owned(),
        version: 0x6b33_43cf,
    };
    assert!(store.take_session(&elsewhere).is_none());
    assert!(store.take_session(&other_version).is_none());
    // A client that doesn't support the protocol any more starts over.
    let starts_with = |client: &ClientTls| {
        let session = client.start_session(VERSION_1, NAME, &parameters(Side::Client, 5));
        session.unwrap().resumed_alpn().map(<[u8]>::to_vec)
    };
    assert_eq!(starts_with(&client), Some(b"h3".to_vec()));
    assert_eq!(starts_with(&client.alpn(["hq-interop"])), None);
}

#[test]
fn another_cipher_suite_resumes_nothing_and_rejects_early_data() {
    let store = Arc::default();
    let suite = |suite| server(SINGLE_USE).with_cipher_suites(&[suite]).unwrap();
    let (client, server) = (client(&store), suite(CipherSuite::Aes128Gcm));
    visit(&client, &server, 1000);
    let server = server
        .with_cipher_suites(&[CipherSuite::ChaCha20Poly1305])
        .unwrap();
    let (mut client, mut server) = begin(&client, &server, 1000);
    assert!(client.session.early_keys().is_some());
    converse(&mut client, &mut server, &[usize::MAX]).unwrap();
    assert_eq!(client.session.early_data_accepted(), Some(false));
}

#[test]
fn stores_are_bounded_and_hand_out_each_thing_once() {
    let store = MemorySessionStore::new(3);
    let server = |n: usize| ServerId {
        name: format!("server-{n}"),
        version: VERSION_1,
    };
    for n in 0..10 {
        for token in 0..10_u8 {
            store.put_token(&server(n), vec![token]);
        }
    }
    for n in 0..7 {
        assert_eq!(store.take_token(&server(n)), None);
    }
    for n in 7..10 {
        let tokens: Vec<_> = std::iter::from_fn(|| store.take_token(&server(n))).collect();
        assert_eq!(tokens, [vec![9], vec![8], vec![7], vec![6]]);
    }
}

#[test]
fn servers_discard_the_oldest_tickets() {
    let store = Arc::default();
    let small = server(Tickets::SingleUse { capacity: 2 });
    let client = client(&store);
    // The client keeps four tickets; two connections give four, of which the server accepts the
    // last two.
    visit(&client, &small, 1000);
    visit(&client, &small, 1000);
    let resumed: Vec<bool> = (0..3)
        .map(|_| {
            let (mut client, mut server) = begin(&client, &small, 1000);
            // Not to the end: no new tickets.
            server.listen(&client, usize::MAX).unwrap();
            client.listen(&server, usize::MAX).unwrap();
            server.session.is_resumed()
        })
        .collect();
    assert_eq!(resumed, [true, true, false]);
}
