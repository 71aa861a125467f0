//! The null handshake and cipher: shaped like the real ones, deterministic, and alert to damage.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use crate::sessions::{
    CLIENT_PARAMETERS, Peer, SERVER_PARAMETERS, assert_agree, assert_phases_agree, converse,
    handshake, open, peers, seal,
};
use proptest::prelude::*;
use swiftwater_quic::crypto::{
    ClientCrypto, CryptoError, EncryptionLevel, Primitives, ServerCrypto,
};
use swiftwater_tls::null::{NullClient, NullPrimitives, NullServer};
use swiftwater_tls::{ClientTls, DevCertificate, ServerTls};
use swiftwater_units::Side;
use swiftwater_wire::{ConnectionId, ErrorCode, VERSION_1};

fn client() -> NullClient {
    NullClient::new(["hq-interop", "h3"])
}

fn server() -> NullServer {
    NullServer::new(["h3"])
}

fn lengths(peer: &Peer) -> [usize; 3] {
    [0, 1, 2].map(|level| peer.said[level].len())
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
}

#[test]
fn keys_of_every_level_agree_and_three_updates_too() {
    let (mut client, mut server) = handshake(&client(), &server(), "server.example").unwrap();
    for level in [EncryptionLevel::Handshake, EncryptionLevel::OneRtt] {
        assert_agree(client.keys(level), server.keys(level));
        assert_agree(server.keys(level), client.keys(level));
    }
    assert_phases_agree(&mut client, &mut server, 3);
}

#[test]
fn levels_directions_and_connections_do_not_open_each_other() {
    let (client, server) = handshake(&client(), &server(), "server.example").unwrap();
    let hs = client.keys(EncryptionLevel::Handshake);
    let app = client.keys(EncryptionLevel::OneRtt);
    let peer = server.keys(EncryptionLevel::OneRtt);
    let packet = seal(&*app.packet.local, &*app.header.local, 0, 1, b"frames");
    let refused = |keys: &swiftwater_quic::crypto::Keys| {
        open(
            &*keys.packet.remote,
            &*keys.header.remote,
            0,
            packet.clone(),
        ) == Err(CryptoError)
    };
    assert!(!refused(peer));
    assert!(refused(app), "the other direction");
    assert!(refused(hs) && refused(server.keys(EncryptionLevel::Handshake)));

    let client = self::client();
    let session = client.start_session(VERSION_1, "server.example", b"other parameters");
    let mut other_client = Peer::new(session.unwrap());
    let session = self::server().start_session(VERSION_1, SERVER_PARAMETERS);
    let mut other_server = Peer::new(session.unwrap());
    converse(&mut other_client, &mut other_server, &[usize::MAX]).unwrap();
    assert!(refused(other_server.keys(EncryptionLevel::OneRtt)));
}

#[test]
fn a_changed_byte_anywhere_in_a_packet_is_noticed() {
    let (client, server) = handshake(&client(), &server(), "server.example").unwrap();
    let (from, to) = (
        client.keys(EncryptionLevel::OneRtt),
        server.keys(EncryptionLevel::OneRtt),
    );
    for len in [4, 31, 64, 200, 1200] {
        let payload: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let packet = seal(&*from.packet.local, &*from.header.local, 0, 77, &payload);
        assert_eq!(packet.len(), 1 + 8 + 2 + len + 16);
        for at in 0..packet.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut packet = packet.clone();
                packet[at] ^= change;
                let opened = open(&*to.packet.remote, &*to.header.remote, 0, packet);
                assert_eq!(opened, Err(CryptoError), "byte {at} of {len}");
            }
        }
    }
}

#[test]
fn sizes_and_limits_are_those_of_an_aead() {
    let cid = ConnectionId::new(b"12345678").unwrap();
    let real = swiftwater_tls::RustlsPrimitives::new().initial_keys(VERSION_1, &cid, Side::Client);
    let null = NullPrimitives.initial_keys(VERSION_1, &cid, Side::Client);
    assert_eq!(null.packet.local.tag_len(), real.packet.local.tag_len());
    assert_eq!(
        null.header.local.sample_len(),
        real.header.local.sample_len()
    );
    let limits = |keys: &swiftwater_quic::crypto::Keys| {
        let key = &keys.packet.remote;
        (key.confidentiality_limit(), key.integrity_limit())
    };
    assert_eq!(limits(&null), limits(&real));
}

/// A simulation gives the same result with either cipher.
#[test]
fn flights_are_as_long_as_those_of_tls() {
    let dev = DevCertificate::deterministic(["server.example", "a.example", "10.0.0.1"]).unwrap();
    let cases = [
        ("server.example", vec!["hq-interop"]),
        ("a.example", vec!["h3", "hq-interop"]),
        ("10.0.0.1", vec!["h3"]),
        ("server.example", vec![]),
    ];
    for (name, alpn) in cases {
        let client = ClientTls::with_roots([dev.certificate_der()]).unwrap();
        let server = ServerTls::from_dev_certificate(&dev).unwrap();
        let (client, server) = (client.alpn(alpn.clone()), server.alpn(alpn.clone()));
        let (client, server) = handshake(&client, &server, name).unwrap();
        let real = (lengths(&client), lengths(&server));

        let client = NullClient::new(alpn.clone());
        let server = NullServer::new(alpn.clone()).with_chain_len(dev.certificate_der().len());
        let (client, server) = handshake(&client, &server, name).unwrap();
        assert_eq!(
            (lengths(&client), lengths(&server)),
            real,
            "{name} {alpn:?}"
        );
    }
}

#[test]
fn the_default_chain_makes_a_server_flight_of_about_a_kilobyte() {
    let (_, server) = handshake(&client(), &server(), "server.example").unwrap();
    let [initial, handshake, one_rtt] = lengths(&server);
    assert_eq!(initial, 90);
    assert!((900..1000).contains(&(handshake - SERVER_PARAMETERS.len())));
    assert_eq!(one_rtt, 0);
}

#[test]
fn longer_chains_and_tickets_cost_what_they_should() {
    let plain = handshake(&client(), &server(), "server.example").unwrap().1;
    let server = server().with_chain_len(3000).with_ticket(true);
    let (_, long) = handshake(&client(), &server, "server.example").unwrap();
    assert_eq!(lengths(&long)[1], lengths(&plain)[1] + 2200);
    assert!(lengths(&long)[2] > 100);
    let (_, huge) = handshake(
        &client(),
        &server.with_chain_len(usize::MAX),
        "server.example",
    )
    .unwrap();
    assert!(lengths(&huge)[1] > 65_000);
}

#[test]
fn two_runs_give_identical_bytes() {
    let run = || {
        let (mut client, server) = handshake(&client(), &server(), "server.example").unwrap();
        let packet = |keys: &swiftwater_quic::crypto::Keys| {
            seal(&*keys.packet.local, &*keys.header.local, 3, 5, b"frames")
        };
        let packets = [&client, &server].map(|peer| packet(peer.keys(EncryptionLevel::OneRtt)));
        let next = client.session.next_packet_keys().unwrap();
        let header = &client.keys(EncryptionLevel::OneRtt).header;
        let updated = seal(&*next.local, &*header.local, 3, 5, b"frames");
        (client.said, server.said, packets, updated)
    };
    assert_eq!(run(), run());
}

#[test]
fn without_a_common_protocol_the_alert_is_no_application_protocol() {
    let none = || NullClient::new([""; 0]);
    let refused = [
        (client(), NullServer::new(["other"])),
        (client(), NullServer::new([""; 0])),
        (none(), server()),
    ];
    for (client, server) in refused {
        let error = handshake(&client, &server, "server.example").err().unwrap();
        assert_eq!(error.code, ErrorCode::crypto(120));
    }
    let (client, _) = handshake(&none(), &NullServer::new([""; 0]), "a").unwrap();
    assert_eq!(client.session.alpn(), None);
}

#[test]
fn bytes_in_the_wrong_level_are_a_protocol_violation() {
    let (mut client, mut server) = peers(&client(), &server(), "server.example");
    let error = server
        .session
        .read_handshake(EncryptionLevel::Handshake, &client.said[0])
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
    server.listen(&client, usize::MAX).unwrap();
    client.listen(&server, usize::MAX).unwrap();
    for peer in [&mut client, &mut server] {
        let error = peer
            .session
            .read_handshake(EncryptionLevel::Initial, &[8])
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
    }
}

#[test]
fn bytes_behind_a_change_of_keys_are_refused() {
    for extra in [1, 3, 50, 500] {
        let (mut client, mut server) = peers(&client(), &server(), "server.example");
        server.listen(&client, usize::MAX).unwrap();
        let mut joined = server.said[0].clone();
        joined.extend_from_slice(&server.said[1][..extra]);
        let error = client
            .session
            .read_handshake(EncryptionLevel::Initial, &joined)
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::crypto(10));
    }
}

#[test]
fn messages_out_of_place_are_unexpected() {
    let (mut client, mut server) = handshake(&client(), &server(), "server.example").unwrap();
    for peer in [&mut client, &mut server] {
        let error = peer
            .session
            .read_handshake(EncryptionLevel::OneRtt, &[24, 0, 0, 1, 0])
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::crypto(10));
    }
    // Tickets go to clients only.
    let error = server
        .session
        .read_handshake(EncryptionLevel::OneRtt, &[4, 0, 0, 1, 0])
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::crypto(10));
}

#[test]
fn a_message_of_absurd_length_is_refused_at_its_header() {
    let mut server = server().start_session(VERSION_1, b"").unwrap();
    let error = server
        .read_handshake(EncryptionLevel::Initial, &[1, 1, 0, 0])
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::crypto(50));
}

#[test]
fn parts_that_do_not_fit_start_no_session() {
    let long = vec![0; 70_000];
    assert!(client().start_session(VERSION_1, "a", &long).is_err());
    assert!(server().start_session(VERSION_1, &long).is_err());
    let name = "a".repeat(256);
    assert!(client().start_session(VERSION_1, &name, b"").is_err());
    let client = NullClient::new([name]);
    assert!(client.start_session(VERSION_1, "a", b"").is_err());
    assert!(self::client().start_session(2, "a", b"").is_err());
}

#[test]
fn addresses_are_not_sent_as_names() {
    let (client, server) = handshake(&client(), &server(), "10.0.0.1").unwrap();
    assert_eq!(client.session.server_name(), Some("10.0.0.1"));
    assert_eq!(server.session.server_name(), None);
}

#[test]
fn exported_keying_material_agrees() {
    let (client, server) = handshake(&client(), &server(), "server.example").unwrap();
    let export = |peer: &Peer, label: &[u8], context: &[u8]| {
        let mut out = [0; 21];
        let session = &peer.session;
        session
            .export_keying_material(&mut out, label, context)
            .unwrap();
        out
    };
    assert_eq!(export(&client, b"l", b"c"), export(&server, b"l", b"c"));
    assert_ne!(export(&client, b"l", b"c"), export(&server, b"l", b"d"));
    assert_ne!(export(&client, b"l", b"c"), export(&server, b"m", b"c"));
    let (early, _) = peers(&self::client(), &self::server(), "server.example");
    let result = early
        .session
        .export_keying_material(&mut [0; 8], b"l", b"c");
    assert_eq!(result, Err(CryptoError));
}

#[test]
fn initial_keys_and_retry_tags_depend_on_the_connection_id() {
    let [one, two] = [b"12345678", b"12345679"].map(|cid| ConnectionId::new(cid).unwrap());
    let client = NullPrimitives.initial_keys(VERSION_1, &one, Side::Client);
    let server = NullPrimitives.initial_keys(VERSION_1, &one, Side::Server);
    assert_agree(&client, &server);
    assert_agree(&server, &client);
    let other = NullPrimitives.initial_keys(VERSION_1, &two, Side::Server);
    let packet = seal(
        &*client.packet.local,
        &*client.header.local,
        0,
        1,
        b"frames",
    );
    let opened = open(&*other.packet.remote, &*other.header.remote, 0, packet);
    assert_eq!(opened, Err(CryptoError));

    let tag = |cid, packet| NullPrimitives.retry_tag(VERSION_1, cid, packet);
    assert_eq!(tag(&one, b"retry"), tag(&one, b"retry"));
    assert_ne!(tag(&one, b"retry"), tag(&two, b"retry"));
    assert_ne!(tag(&one, b"retry"), tag(&one, b"retrz"));
}

proptest! {
    #[test]
    fn fragments_of_any_length_lead_to_the_same_end(
        fragments in prop::collection::vec(1_usize..400, 1..6)
    ) {
        let (mut client, mut server) = peers(&client(), &server(), "server.example");
        converse(&mut client, &mut server, &fragments).unwrap();
        prop_assert!(!client.session.is_handshaking() && !server.session.is_handshaking());
        assert_agree(client.keys(EncryptionLevel::OneRtt), server.keys(EncryptionLevel::OneRtt));
    }

    #[test]
    fn bytes_from_anywhere_never_panic(
        kind in prop::sample::select(vec![1_u8, 2, 8, 20, 99]),
        body in prop::collection::vec(any::<u8>(), 0..100),
        told in 0_u8..120,
    ) {
        let mut message = vec![kind, 0, 0, told];
        message.extend(body);
        let (mut client, mut server) = peers(&client(), &server(), "server.example");
        let _ = client.session.read_handshake(EncryptionLevel::Initial, &message);
        let _ = server.session.read_handshake(EncryptionLevel::Initial, &message);
    }

    #[test]
    fn a_changed_byte_of_a_flight_never_completes_on_both_sides(
        by_client: bool, at: prop::sample::Index, change in 1_u8..
    ) {
        let (mut client, mut server) = peers(&client(), &server(), "server.example");
        if by_client {
            let at = at.index(client.said[0].len());
            client.said[0][at] ^= change;
        } else {
            server.listen(&client, usize::MAX).unwrap();
            let at = at.index(server.said[1].len());
            server.said[1][at] ^= change;
        }
        let _ = converse(&mut client, &mut server, &[usize::MAX]);
        prop_assert!(client.session.is_handshaking());
    }

    #[test]
    fn several_changed_bits_of_a_packet_are_noticed(
        payload in prop::collection::vec(any::<u8>(), 4..600),
        flips in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
    ) {
        let (client, server) = handshake(&client(), &server(), "server.example").unwrap();
        let (from, to) = (client.keys(EncryptionLevel::OneRtt), server.keys(EncryptionLevel::OneRtt));
        let mut packet = seal(&*from.packet.local, &*from.header.local, 0, 77, &payload);
        let before = packet.clone();
        for flip in flips {
            let bit = flip.index(packet.len() * 8);
            packet[bit / 8] ^= 1 << (bit % 8);
        }
        let opened = open(&*to.packet.remote, &*to.header.remote, 0, packet.clone());
        prop_assert!(packet == before || opened == Err(CryptoError));
    }
}
