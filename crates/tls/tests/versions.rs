//! Sessions of both versions of QUIC, sessions that change their version, and the inspection of a
//! client's first message by which a server chooses the version.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::sync::Arc;

use crate::sessions::{
    CLIENT_PARAMETERS, Peer, SERVER_PARAMETERS, assert_agree, assert_phases_agree, converse, open,
    seal,
};
use proptest::prelude::*;
use swiftwater_quic::crypto::{ClientCrypto, EncryptionLevel, Hello, ServerCrypto};
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_tls::{CipherSuite, ClientTls, DevCertificate, ServerTls};
use swiftwater_wire::{VERSION_1, VERSION_2};

const NAME: &str = "server.example";

/// A client and a server of the null cipher, and with TLS one of each cipher suite.
fn all() -> Vec<(Arc<dyn ClientCrypto>, Arc<dyn ServerCrypto>)> {
    let certificate = DevCertificate::generate([NAME]).unwrap();
    let null: (Arc<dyn ClientCrypto>, Arc<dyn ServerCrypto>) = (
        Arc::new(NullClient::new(["test"])),
        Arc::new(NullServer::new(["test"])),
    );
    let mut all = vec![null];
    for suite in CipherSuite::ALL {
        let client = ClientTls::with_roots([certificate.certificate_der()])
            .unwrap()
            .with_cipher_suites(&[suite])
            .unwrap();
        let server = ServerTls::from_dev_certificate(&certificate).unwrap();
        all.push((
            Arc::new(client.alpn(["test"])),
            Arc::new(server.alpn(["test"])),
        ));
    }
    all
}

/// Both ends of a handshake: the client starts in `original` and continues in `client`, the server
/// supports `server`.
fn ends(
    crypto: &(Arc<dyn ClientCrypto>, Arc<dyn ServerCrypto>),
    original: u32,
    client: u32,
    server: u32,
) -> (Peer, Peer) {
    let mut session = crypto
        .0
        .start_session(original, NAME, CLIENT_PARAMETERS)
        .unwrap();
    if client != original {
        session.set_version(client).unwrap();
    }
    let server = crypto.1.start_session(server, SERVER_PARAMETERS).unwrap();
    let (mut client, mut server) = (Peer::new(session), Peer::new(server));
    converse(&mut client, &mut server, &[usize::MAX]).unwrap();
    assert!(!client.session.is_handshaking() && !server.session.is_handshaking());
    (client, server)
}

#[test]
fn keys_agree_in_each_version_and_after_a_change() {
    for crypto in all() {
        for (original, version) in [
            (VERSION_2, VERSION_2),
            (VERSION_1, VERSION_2),
            (VERSION_2, VERSION_1),
        ] {
            let (mut client, mut server) = ends(&crypto, original, version, version);
            for level in [EncryptionLevel::Handshake, EncryptionLevel::OneRtt] {
                assert_agree(client.keys(level), server.keys(level));
                assert_agree(server.keys(level), client.keys(level));
            }
            assert_phases_agree(&mut client, &mut server, 3);
        }
    }
}

#[test]
fn limits_are_those_of_the_suite_after_a_change_too() {
    for crypto in all() {
        let (plain, _) = ends(&crypto, VERSION_2, VERSION_2, VERSION_2);
        let (changed, _) = ends(&crypto, VERSION_1, VERSION_2, VERSION_2);
        let limits = |peer: &Peer| {
            let keys = peer.keys(EncryptionLevel::OneRtt);
            let key = &keys.packet.local;
            (
                key.tag_len(),
                key.confidentiality_limit(),
                key.integrity_limit(),
                keys.header.remote.sample_len(),
            )
        };
        assert_eq!(limits(&plain), limits(&changed));
    }
}

#[test]
fn keys_of_another_version_open_nothing() {
    for crypto in all() {
        for client in [VERSION_1, VERSION_2] {
            let (one, other) = ends(&crypto, VERSION_1, client, VERSION_1 + VERSION_2 - client);
            for level in [EncryptionLevel::Handshake, EncryptionLevel::OneRtt] {
                let (from, to) = (one.keys(level), other.keys(level));
                let packet = seal(&*from.packet.local, &*from.header.local, 0, 5, b"payload");
                assert!(open(&*to.packet.remote, &*to.header.remote, 0, packet).is_err());
            }
        }
    }
}

#[test]
fn short_packets_are_refused_after_a_change() {
    for crypto in all() {
        let (client, _) = ends(&crypto, VERSION_1, VERSION_2, VERSION_2);
        let keys = client.keys(EncryptionLevel::OneRtt);
        for len in 1..40 {
            let mut packet = vec![0x43; len];
            keys.header.remote.decrypt(1, &mut packet[..len.min(20)]);
            let number = swiftwater_units::PacketNumber::ZERO;
            let opened = keys.packet.remote.decrypt(
                swiftwater_units::PathId::ZERO,
                number,
                &[0x43],
                &mut packet,
            );
            assert!(opened.is_err());
        }
    }
}

#[test]
fn a_version_cannot_change_late_nor_to_an_unknown_one() {
    for crypto in all() {
        let start = || crypto.0.start_session(VERSION_1, NAME, b"").unwrap();
        assert!(start().set_version(7).is_err());
        assert!(start().set_version(VERSION_2).is_ok());
        let (mut client, mut server) = ends(&crypto, VERSION_1, VERSION_1, VERSION_1);
        assert!(client.session.set_version(VERSION_2).is_err());
        assert!(server.session.set_version(VERSION_2).is_err());
    }
}

#[test]
fn a_look_into_the_first_message_finds_the_parameters() {
    for (client, server) in all() {
        let mut hello = Vec::new();
        let parameters = vec![0x5a; 300];
        let mut session = client.start_session(VERSION_1, NAME, &parameters).unwrap();
        assert!(session.write_handshake(&mut hello).is_none());
        for end in 0..hello.len() {
            assert_eq!(server.hello(&hello[..end]), Hello::Incomplete, "{end}");
        }
        assert_eq!(server.hello(&hello), Hello::Parameters(&parameters));
        let mut longer = hello.clone();
        longer.extend([1, 2, 3]);
        assert_eq!(server.hello(&longer), Hello::Parameters(&parameters));
        // Another message, and a length that no message has.
        hello[0] = 2;
        assert_eq!(server.hello(&hello), Hello::Opaque);
        assert_eq!(server.hello(&[1, 0xff, 0, 0, 0]), Hello::Opaque);
        assert_eq!(server.hello(&[1, 0, 0, 2, 3, 3]), Hello::Opaque);
    }
}

proptest! {
    #[test]
    fn a_look_never_panics(
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
        cut in any::<prop::sample::Index>(),
        noise in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        for (client, server) in all().into_iter().take(2) {
            let mut hello = Vec::new();
            let mut session = client.start_session(VERSION_1, NAME, CLIENT_PARAMETERS).unwrap();
            let _ = session.write_handshake(&mut hello);
            let at = at.index(hello.len());
            hello[at] = value;
            let _ = server.hello(&hello);
            let _ = server.hello(&hello[..cut.index(hello.len())]);
            let _ = server.hello(&noise);
        }
    }
}
