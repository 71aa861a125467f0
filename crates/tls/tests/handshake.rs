//! The TLS handshake through the session traits.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::iter;
use std::process::Command;
use std::sync::Arc;

use crate::sessions::{
    CLIENT_PARAMETERS, Peer, SERVER_PARAMETERS, assert_agree, assert_packets_agree,
    assert_phases_agree, converse, handshake, peers,
};
use proptest::prelude::*;
use swiftwater_quic::crypto::{ClientCrypto, EncryptionLevel, ServerCrypto};
use swiftwater_tls::{
    CipherSuite, ClientTls, DevCertificate, MemorySessionStore, RustlsSession, ServerId, ServerTls,
    SessionStore,
};
use swiftwater_wire::{ErrorCode, VERSION_1};

const NO_APPLICATION_PROTOCOL: ErrorCode = ErrorCode::crypto(120);
const MISSING_EXTENSION: ErrorCode = ErrorCode::crypto(109);
const DECODE_ERROR: ErrorCode = ErrorCode::crypto(50);
const UNEXPECTED_MESSAGE: ErrorCode = ErrorCode::crypto(10);

fn certificate() -> DevCertificate {
    DevCertificate::deterministic(["server.example"]).unwrap()
}

fn client() -> ClientTls {
    ClientTls::with_roots([certificate().certificate_der()])
        .unwrap()
        .alpn(["hq-interop", "h3"])
}

fn server() -> ServerTls {
    ServerTls::from_dev_certificate(&certificate())
        .unwrap()
        .alpn(["h3"])
}

#[test]
fn both_sides_have_what_was_negotiated() {
    let (client, server) = handshake(&client(), &server(), "server.example").unwrap();
    let (client, server) = (&client.session, &server.session);
    assert_eq!(client.alpn(), Some(b"h3".as_slice()));
    assert_eq!(server.alpn(), Some(b"h3".as_slice()));
    assert_eq!(client.server_name(), Some("server.example"));
    assert_eq!(server.server_name(), Some("server.example"));
    assert_eq!(client.peer_transport_parameters(), Some(SERVER_PARAMETERS));
    assert_eq!(server.peer_transport_parameters(), Some(CLIENT_PARAMETERS));
    let chain = vec![certificate().certificate_der().to_vec()];
    assert_eq!(client.peer_certificates(), chain);
    assert!(server.peer_certificates().is_empty());
}

#[test]
fn exported_keying_material_agrees_and_depends_on_label_and_context() {
    let (client, server) = handshake(&client(), &server(), "server.example").unwrap();
    let export = |peer: &Peer, label: &[u8], context: &[u8]| {
        let mut out = [0; 40];
        peer.session
            .export_keying_material(&mut out, label, context)
            .unwrap();
        out
    };
    let ours = export(&client, b"label", b"context");
    assert_eq!(ours, export(&server, b"label", b"context"));
    assert_ne!(ours, export(&server, b"other", b"context"));
    assert_ne!(ours, export(&server, b"label", b"other"));
}

#[test]
fn a_settled_server_answers_what_it_answered_before_and_ignores_further_tls() {
    for suite in CipherSuite::ALL {
        let client = client().with_cipher_suites(&[suite]).unwrap();
        let (mut client, mut server) = handshake(&client, &server(), "server.example").unwrap();
        let export = |peer: &Peer, label: &[u8], len: usize| {
            let mut out = vec![0; len];
            let exported = peer.session.export_keying_material(&mut out, label, b"why");
            exported.map(|()| out)
        };
        let before = [1, 32, 500].map(|len| export(&server, b"label", len));
        server.session.settle();
        assert_eq!(
            before,
            [1, 32, 500].map(|len| export(&server, b"label", len))
        );
        assert_eq!(export(&client, b"x", 48), export(&server, b"x", 48));
        for impossible in [0, 255 * 48 + 1] {
            assert!(export(&server, b"label", impossible).is_err());
        }
        let session = server.session.as_any().downcast_ref::<RustlsSession>();
        assert_eq!(session.unwrap().cipher_suite(), Some(suite));
        let session = &mut server.session;
        assert_eq!(session.alpn(), Some(b"h3".as_slice()));
        assert_eq!(session.server_name(), Some("server.example"));
        assert!(session.peer_certificates().is_empty());
        assert!(!session.is_handshaking() && !session.is_resumed());
        let finished = session.read_handshake(EncryptionLevel::OneRtt, &[20, 0, 0, 0]);
        assert_eq!(finished.unwrap_err().code, UNEXPECTED_MESSAGE);
        assert_phases_agree(&mut client, &mut server, 3);
    }
}

#[test]
fn a_settled_client_without_a_store_answers_what_it_answered_before() {
    for suite in CipherSuite::ALL {
        let client = client().with_cipher_suites(&[suite]).unwrap();
        let (mut client, mut server) = handshake(&client, &server(), "server.example").unwrap();
        let export = |peer: &Peer, len: usize| {
            let mut out = vec![0; len];
            let exported = peer.session.export_keying_material(&mut out, b"label", b"");
            exported.map(|()| out)
        };
        let before = [1, 32, 500].map(|len| export(&client, len).unwrap());
        client.session.settle();
        // A session that still has rustls would refuse such a ticket.
        let ticket = [4, 0, 0, 2, 9, 9];
        let read = client
            .session
            .read_handshake(EncryptionLevel::OneRtt, &ticket);
        read.unwrap();
        assert_eq!(
            before,
            [1, 32, 500].map(|len| export(&client, len).unwrap())
        );
        assert_eq!(before[2], export(&server, 500).unwrap());
        let session = client.session.as_any().downcast_ref::<RustlsSession>();
        assert_eq!(session.unwrap().cipher_suite(), Some(suite));
        let session = &mut client.session;
        assert_eq!(session.alpn(), Some(b"h3".as_slice()));
        assert_eq!(session.server_name(), Some("server.example"));
        let chain = vec![certificate().certificate_der().to_vec()];
        assert_eq!(session.peer_certificates(), chain);
        assert!(!session.is_handshaking() && !session.is_resumed());
        assert!(session.early_data_accepted().is_none() && session.resumed_alpn().is_none());
        assert!(!session.keep_token(b"token"));
        assert_phases_agree(&mut client, &mut server, 3);
    }
}

/// Wherever the bytes are divided, and wherever between them the session settles.
#[test]
fn a_settled_client_without_a_store_skips_tickets() {
    let (_, tickets) = client_of_tickets(&client());
    for at in 0..=tickets.len() {
        let (mut client, tickets) = client_of_tickets(&client());
        let read = |client: &mut Peer, data: &[u8]| {
            (client.session).read_handshake(EncryptionLevel::OneRtt, data)
        };
        let at = at.min(tickets.len());
        read(&mut client, &tickets[..at]).unwrap();
        client.session.settle();
        for byte in tickets[at..].chunks(1 + at % 7) {
            read(&mut client, byte).unwrap();
        }
        // Its content is none of a ticket: it is not looked at.
        read(&mut client, &[4, 0, 0, 2, 9, 9]).unwrap();
        read(&mut client, &[4, 0, 0, 0]).unwrap();
        let (refused, code) = match at % 3 {
            0 => ([24, 0, 0, 1, 0], UNEXPECTED_MESSAGE),
            1 => ([13, 0, 0, 1, 0], ErrorCode::PROTOCOL_VIOLATION),
            _ => ([4, 1, 0, 0, 0], DECODE_ERROR),
        };
        assert_eq!(read(&mut client, &refused).unwrap_err().code, code);
    }
}

#[test]
fn a_client_with_a_store_reads_tickets_after_it_settled_and_when_idle_if_there_were_none() {
    let store = Arc::new(MemorySessionStore::default());
    let (mut client, tickets) = client_of_tickets(&client().sessions(store.clone()));
    client.session.settle();
    client.session.release_idle_memory();
    let mut read = |data: &[u8]| (client.session).read_handshake(EncryptionLevel::OneRtt, data);
    read(&tickets).unwrap();
    assert_eq!(read(&[4, 0, 0, 2, 9, 9]).unwrap_err().code, DECODE_ERROR);
    assert_eq!(stored(&store), 2);
}

/// Wherever in the bytes after the first ticket the connection is idle.
#[test]
fn an_idle_client_with_a_store_skips_tickets_after_the_first() {
    let (_, tickets) = client_of_tickets(&client());
    let first = 4 + u32::from_be_bytes([0, tickets[1], tickets[2], tickets[3]]) as usize;
    for after_first in 0..=tickets.len() - first {
        let store = Arc::new(MemorySessionStore::default());
        let (mut client, tickets) = client_of_tickets(&client().sessions(store.clone()));
        client.session.settle();
        let (before, after) = tickets.split_at((first + after_first).min(tickets.len()));
        (client.session)
            .read_handshake(EncryptionLevel::OneRtt, before)
            .unwrap();
        let exported = |peer: &Peer| {
            let mut out = [0; 32];
            let exported = peer.session.export_keying_material(&mut out, b"label", b"");
            exported.map(|()| out).unwrap()
        };
        let material = exported(&client);
        client.session.release_idle_memory();
        assert_eq!(exported(&client), material);
        let session = &mut client.session;
        assert_eq!(session.server_name(), Some("server.example"));
        assert!(session.early_data_accepted().is_none());
        let mut read = |data: &[u8]| session.read_handshake(EncryptionLevel::OneRtt, data);
        read(after).unwrap();
        // Its content is none of a ticket: it is not looked at.
        read(&[4, 0, 0, 2, 9, 9]).unwrap();
        let error = read(&[24, 0, 0, 1, 0]).unwrap_err();
        assert_eq!(error.code, UNEXPECTED_MESSAGE);
        assert_eq!(stored(&store), if after.is_empty() { 2 } else { 1 });
        assert!(session.keep_token(b"token"));
        let server = server_id();
        assert_eq!(store.take_token(&server), Some(b"token".to_vec()));
    }
}

fn server_id() -> ServerId {
    ServerId {
        name: "server.example".to_owned(),
        version: VERSION_1,
    }
}

/// Takes all sessions out of `store`; returns how many.
fn stored(store: &MemorySessionStore) -> usize {
    iter::from_fn(|| store.take_session(&server_id())).count()
}

#[test]
fn a_session_does_not_settle_before_its_handshake_is_over() {
    let (mut client, mut server) = peers(&client(), &server(), "server.example");
    server.session.settle();
    client.session.settle();
    converse(&mut client, &mut server, &[7]).unwrap();
    assert!(!client.session.is_handshaking() && !server.session.is_handshaking());
    assert_eq!(server.session.alpn(), Some(b"h3".as_slice()));
}

#[test]
fn keying_material_before_the_handshake_is_an_error() {
    let (client, _) = peers(&client(), &server(), "server.example");
    let result = client
        .session
        .export_keying_material(&mut [0; 8], b"label", b"");
    assert!(result.is_err());
}

#[test]
fn keys_of_every_level_agree_and_three_updates_too() {
    for suite in CipherSuite::ALL {
        let client = client().with_cipher_suites(&[suite]).unwrap();
        let (mut client, mut server) = handshake(&client, &server(), "server.example").unwrap();
        let session = client.session.as_any().downcast_ref::<RustlsSession>();
        assert_eq!(session.unwrap().cipher_suite(), Some(suite));
        for level in [EncryptionLevel::Handshake, EncryptionLevel::OneRtt] {
            assert_agree(client.keys(level), server.keys(level));
            assert_agree(server.keys(level), client.keys(level));
        }
        assert_phases_agree(&mut client, &mut server, 3);
    }
}

#[test]
fn keys_made_once_more_agree_with_those_of_the_peer() {
    for suite in CipherSuite::ALL {
        let client = client().with_cipher_suites(&[suite]).unwrap();
        let (mut client, mut server) = handshake(&client, &server(), "server.example").unwrap();
        server.session.settle();
        for update in 0..3 {
            let ours = client.session.next_packet_keys().unwrap();
            let theirs = server.session.next_packet_keys().unwrap();
            assert!(client.session.can_remake_keys() && server.session.can_remake_keys());
            let client_again = client.session.remake_keys().unwrap();
            let server_again = server.session.remake_keys().unwrap();
            assert_agree(&client_again.current, &server_again.current);
            if update == 0 {
                // What rustls made.
                assert_agree(client.keys(EncryptionLevel::OneRtt), &server_again.current);
                assert_agree(&client_again.current, server.keys(EncryptionLevel::OneRtt));
            }
            let header = (&client_again.current.header, &server_again.current.header);
            let next = (client_again.next.unwrap(), server_again.next.unwrap());
            assert_packets_agree(&ours, &next.1, header.0, header.1);
            assert_packets_agree(&next.0, &theirs, header.0, header.1);
        }
    }
}

#[test]
fn keys_are_not_made_once_more_before_there_are_any() {
    let (client, server) = peers(&client(), &server(), "server.example");
    for session in [client.session, server.session] {
        assert!(!session.can_remake_keys() && session.remake_keys().is_none());
    }
}

#[test]
fn no_key_phase_before_one_rtt_keys() {
    let (mut client, mut server) = peers(&client(), &server(), "server.example");
    assert!(client.session.next_packet_keys().is_none());
    assert!(server.session.next_packet_keys().is_none());
}

#[test]
fn without_a_common_protocol_the_alert_is_no_application_protocol() {
    let refused = [
        (client(), server().alpn(["other"])),
        (client(), server().alpn([""; 0])),
        (client().alpn([""; 0]), server()),
    ];
    for (client, server) in refused {
        let error = handshake(&client, &server, "server.example").err().unwrap();
        assert_eq!(error.code, NO_APPLICATION_PROTOCOL);
    }
}

#[test]
fn without_a_common_suite_the_handshake_fails() {
    let client = client()
        .with_cipher_suites(&[CipherSuite::Aes256Gcm])
        .unwrap();
    let server = server()
        .with_cipher_suites(&[CipherSuite::Aes128Gcm])
        .unwrap();
    let error = handshake(&client, &server, "server.example").err().unwrap();
    assert_eq!(error.code, ErrorCode::crypto(40));
}

#[test]
fn a_client_without_transport_parameters_gets_the_error() {
    // A client for TLS over TCP doesn't send them.
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let config = rustls::ClientConfig::builder_with_provider(provider.into())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = "server.example".try_into().unwrap();
    let mut tcp = rustls::ClientConnection::new(config.into(), name).unwrap();
    let mut record = Vec::new();
    tcp.write_tls(&mut record).unwrap();

    let server = server().alpn([""; 0]);
    let mut session = server.start_session(VERSION_1, SERVER_PARAMETERS).unwrap();
    let error = session
        .read_handshake(EncryptionLevel::Initial, &record[5..])
        .unwrap_err();
    assert_eq!(error.code, MISSING_EXTENSION);
}

#[test]
fn bytes_in_the_wrong_level_are_a_protocol_violation() {
    for level in [EncryptionLevel::Handshake, EncryptionLevel::OneRtt] {
        let (client, mut server) = peers(&client(), &server(), "server.example");
        let hello = &client.said[EncryptionLevel::Initial as usize];
        let error = server.session.read_handshake(level, hello).unwrap_err();
        assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
    }

    // New bytes in an encryption level that has ended, on either side.
    let (mut client, mut server) = peers(&client(), &server(), "server.example");
    server.listen(&client, usize::MAX).unwrap();
    let error = server
        .session
        .read_handshake(EncryptionLevel::Initial, &[1])
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
    let hello = &server.said[EncryptionLevel::Initial as usize];
    client
        .session
        .read_handshake(EncryptionLevel::Initial, hello)
        .unwrap();
    let error = client
        .session
        .read_handshake(EncryptionLevel::Initial, &[8])
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn messages_of_the_next_level_in_the_same_bytes_are_refused() {
    let (mut client, mut server) = peers(&client(), &server(), "server.example");
    server.listen(&client, usize::MAX).unwrap();
    let mut joined = server.said[EncryptionLevel::Initial as usize].clone();
    joined.extend_from_slice(&server.said[EncryptionLevel::Handshake as usize]);
    let error = client
        .session
        .read_handshake(EncryptionLevel::Initial, &joined)
        .unwrap_err();
    assert_eq!(error.code, UNEXPECTED_MESSAGE);
}

#[test]
fn key_update_messages_of_tls_are_refused() {
    let (mut client, mut server) = handshake(&client(), &server(), "server.example").unwrap();
    for peer in [&mut client, &mut server] {
        let error = peer
            .session
            .read_handshake(EncryptionLevel::OneRtt, &[24, 0, 0, 1, 0])
            .unwrap_err();
        assert_eq!(error.code, UNEXPECTED_MESSAGE);
    }
}

/// RFC 9001, section 4.4: application data of many requests share a connection, so it would be
/// unclear for which of them the server requests a certificate.
#[test]
fn certificates_are_not_requested_after_the_handshake() {
    let (mut client, _) = handshake(&client(), &server(), "server.example").unwrap();
    // An empty context, and the one signature scheme ecdsa_secp256r1_sha256.
    let request = [13, 0, 0, 11, 0, 0, 8, 0, 13, 0, 4, 0, 2, 4, 3];
    let error = client
        .session
        .read_handshake(EncryptionLevel::OneRtt, &request)
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
}

/// RFC 9001, section 8.4: no mode for middleboxes that know TLS over TCP only.
#[test]
fn a_client_hello_has_no_legacy_session_id() {
    let session = client().start_session(VERSION_1, "server.example", CLIENT_PARAMETERS);
    let said = &Peer::new(session.unwrap()).said[0];
    // Type and length, version, random; then the length of the session ID.
    assert_eq!((said[0], said[4 + 2 + 32]), (1, 0));
}

/// The resumption tickets of other servers are fine, and unused.
#[test]
fn tickets_after_the_handshake_are_accepted() {
    let (mut client, tickets) = client_of_tickets(&client());
    client
        .session
        .read_handshake(EncryptionLevel::OneRtt, &tickets)
        .unwrap();
}

/// A client after its handshake with a server of rustls, and the two tickets that the server has sent.
fn client_of_tickets(tls: &ClientTls) -> (Peer, Vec<u8>) {
    let dev = certificate();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let mut config = rustls::ServerConfig::builder_with_provider(provider.into())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![dev.certificate_der()], dev.private_key_der())
        .unwrap();
    config.alpn_protocols = vec![b"h3".to_vec()];
    config.send_tls13_tickets = 2;
    let version = rustls::quic::Version::V1;
    let mut server = rustls::quic::ServerConnection::new(config.into(), version, vec![]).unwrap();
    let session = tls.start_session(VERSION_1, "server.example", b"");
    let mut client = Peer::new(session.unwrap());

    server.read_hs(&client.said[0]).unwrap();
    let (mut initial, mut rest, mut tickets) = (vec![], vec![], vec![]);
    assert!(server.write_hs(&mut initial).is_some());
    assert!(server.write_hs(&mut rest).is_some());
    client
        .session
        .read_handshake(EncryptionLevel::Initial, &initial)
        .unwrap();
    client.speak();
    client
        .session
        .read_handshake(EncryptionLevel::Handshake, &rest)
        .unwrap();
    client.speak();
    server.read_hs(&client.said[1]).unwrap();
    assert!(server.write_hs(&mut tickets).is_none());
    assert!(!tickets.is_empty());
    (client, tickets)
}

#[test]
fn unsupported_versions_and_bad_names_start_no_session() {
    assert!(client().start_session(2, "server.example", b"").is_err());
    assert!(server().start_session(2, b"").is_err());
    for name in ["", "no such name", "-"] {
        assert!(client().start_session(VERSION_1, name, b"").is_err());
    }
    for name in ["127.0.0.1", "::1", "localhost"] {
        assert!(client().start_session(VERSION_1, name, b"").is_ok());
    }
}

#[test]
fn key_log_file_gets_the_secrets() {
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/key-log-test.txt");
    let _ = std::fs::remove_file(path);
    // The variable can't be set safely inside a process with threads.
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "handshake::handshake_with_key_log"])
        .env("SSLKEYLOGFILE", path)
        .output()
        .unwrap()
        .status;
    assert!(status.success());
    let log = std::fs::read_to_string(path).unwrap();
    for label in [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_TRAFFIC_SECRET_0",
    ] {
        // Both sides log, and agree.
        let lines: Vec<_> = log.lines().filter(|line| line.starts_with(label)).collect();
        assert_eq!(lines.len(), 2, "{label}");
        assert_eq!(lines[0], lines[1]);
    }
}

#[test]
fn handshake_with_key_log() {
    let (client, server) = (client().key_log_file(), server().key_log_file());
    handshake(&client, &server, "server.example").unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn fragments_of_any_length_lead_to_the_same_end(
        fragments in prop::collection::vec(1_usize..400, 1..6)
    ) {
        let (mut client, mut server) = peers(&client(), &server(), "server.example");
        converse(&mut client, &mut server, &fragments).unwrap();
        prop_assert!(!client.session.is_handshaking() && !server.session.is_handshaking());
        assert_agree(client.keys(EncryptionLevel::OneRtt), server.keys(EncryptionLevel::OneRtt));
        assert_agree(server.keys(EncryptionLevel::OneRtt), client.keys(EncryptionLevel::OneRtt));
    }

    #[test]
    fn bytes_from_anywhere_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let (mut client, mut server) = peers(&client(), &server(), "server.example");
        let _ = client.session.read_handshake(EncryptionLevel::Initial, &bytes);
        let _ = server.session.read_handshake(EncryptionLevel::Initial, &bytes);
    }

    #[test]
    fn a_changed_hello_never_panics_and_never_completes(at in 0_usize..200, change in 1_u8..) {
        let (mut client, mut server) = peers(&client(), &server(), "server.example");
        client.said[0][at] ^= change;
        let _ = converse(&mut client, &mut server, &[usize::MAX]);
        prop_assert!(client.session.is_handshaking());
    }
}
