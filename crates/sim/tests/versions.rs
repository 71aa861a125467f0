//! Version negotiation between whole stacks, over links that lose, delay and forge packets (RFC 9368,
//! RFC 9369).

use std::sync::{Arc, Mutex};

use swiftwater_quic::observe::{Observation, Observer, ObserverFactory};
use swiftwater_quic::wire::{ErrorCode, PacketType, PartialHeader, VERSION_1, VERSION_2};
use swiftwater_quic::{ConnectionError, Event, RetryPolicy};
use swiftwater_sim::{Cipher, Direction, Pair, PairBuilder};
use swiftwater_units::{Instant, Side};

use crate::support::{BOTH, CID_LEN, SIDES, drop_if, link, millis, negotiation, reason, secs};

const CIPHERS: [Cipher; 2] = [Cipher::Null, Cipher::Tls];

/// A pair whose client and server support these versions, in order of preference.
fn pair_of(client: &[u32], server: &[u32]) -> PairBuilder {
    let (client, server) = (client.to_vec(), server.to_vec());
    Pair::builder()
        .link(link(10, 10))
        .endpoint(Side::Client, move |config| config.versions = client)
        .endpoint(Side::Server, move |config| config.versions = server)
}

/// Connects and moves a little both ways; true if all went well.
fn works(pair: &mut Pair) -> bool {
    if !pair.connect() {
        return false;
    }
    for direction in BOTH {
        pair.start_transfer(4_000, direction);
    }
    pair.finish_transfers()
}

fn versions(pair: &Pair) -> [u32; 2] {
    SIDES.map(|side| pair.stats(side).version)
}

/// The types and versions of a datagram's packets with long headers.
fn long_packets(mut data: &[u8]) -> Vec<(PacketType, u32)> {
    let mut found = Vec::new();
    while !data.is_empty() {
        let Ok(header) = PartialHeader::parse(data, CID_LEN) else {
            break;
        };
        if header.packet_type != PacketType::OneRtt {
            found.push((header.packet_type, header.version));
        }
        data = &data[header.packet_len..];
    }
    found
}

#[test]
fn servers_choose_among_compatible_versions_without_a_round_trip() {
    for cipher in CIPHERS {
        for (client, server, expected) in [
            (
                vec![VERSION_1, VERSION_2],
                vec![VERSION_2, VERSION_1],
                VERSION_2,
            ),
            (
                vec![VERSION_2, VERSION_1],
                vec![VERSION_1, VERSION_2],
                VERSION_1,
            ),
            (
                vec![VERSION_1, VERSION_2],
                vec![VERSION_1, VERSION_2],
                VERSION_1,
            ),
            (
                vec![VERSION_2, VERSION_1],
                vec![VERSION_2, VERSION_1],
                VERSION_2,
            ),
            (vec![VERSION_2], vec![VERSION_1, VERSION_2], VERSION_2),
            (vec![VERSION_1], vec![VERSION_2, VERSION_1], VERSION_1),
        ] {
            let what = format!("{cipher:?} {client:x?} {server:x?}");
            let original = client[0];
            let mut pair = pair_of(&client, &server).cipher(cipher).build().unwrap();
            let recordings = BOTH.map(|direction| pair.record(direction));
            assert!(works(&mut pair), "{what}");
            assert_eq!(versions(&pair), [expected; 2], "{what}");
            let took = pair.stats(Side::Client).handshake_duration.unwrap();
            assert!(took < millis(30), "{what}: {took:?}");

            // RFC 9369, section 4.1: all CRYPTO frames of the server, and everything after the client's
            // first flight, are of the negotiated version.
            let [to_server, to_client] = recordings.map(|recording| recording.datagrams());
            let of = |datagrams: &[swiftwater_sim::Captured]| -> Vec<(PacketType, u32)> {
                datagrams
                    .iter()
                    .flat_map(|each| long_packets(&each.data))
                    .collect()
            };
            assert_eq!(of(&to_server[..1]), [(PacketType::Initial, original)]);
            for (_, version) in of(&to_server[1..]).into_iter().chain(of(&to_client)) {
                assert_eq!(version, expected, "{what}");
            }
        }
    }
}

#[test]
fn a_client_that_begins_in_another_version_than_its_preferred_one() {
    for cipher in CIPHERS {
        for (server, expected, negotiated) in [
            (vec![VERSION_2, VERSION_1], VERSION_2, 0),
            (vec![VERSION_1, VERSION_2], VERSION_1, 0),
            (vec![VERSION_1], VERSION_1, 0),
            (vec![VERSION_2], VERSION_2, 1),
        ] {
            let what = format!("{cipher:?} {server:x?}");
            let mut pair = pair_of(&[VERSION_2, VERSION_1], &server)
                .endpoint(Side::Client, |config| {
                    config.first_version = Some(VERSION_1);
                })
                .cipher(cipher)
                .build()
                .unwrap();
            let recording = pair.record(Direction::ToServer);
            assert!(works(&mut pair), "{what}");
            assert_eq!(versions(&pair), [expected; 2], "{what}");
            let first = &recording.datagrams()[0];
            assert_eq!(
                long_packets(&first.data)[..1],
                [(PacketType::Initial, VERSION_1)],
                "{what}"
            );
            let host = pair.host(Side::Server);
            let stats = pair.network().endpoint_stats(host);
            assert_eq!(stats.versions_negotiated, negotiated, "{what}");
        }
    }
}

#[test]
fn a_client_falls_back_when_the_server_lacks_its_version() {
    for cipher in CIPHERS {
        for (client, server, expected) in [
            (vec![VERSION_2, VERSION_1], vec![VERSION_1], VERSION_1),
            (vec![VERSION_1, VERSION_2], vec![VERSION_2], VERSION_2),
        ] {
            let mut pair = pair_of(&client, &server).cipher(cipher).build().unwrap();
            assert!(works(&mut pair), "{cipher:?}");
            assert_eq!(versions(&pair), [expected; 2]);
            // One round trip for Version Negotiation, one for the handshake.
            let took = pair.stats(Side::Client).handshake_duration.unwrap();
            assert!((millis(40)..millis(55)).contains(&took), "{took:?}");
            let host = pair.host(Side::Server);
            let stats = pair.network().endpoint_stats(host);
            assert_eq!((stats.versions_negotiated, stats.accepted), (1, 1));
            assert_eq!(
                pair.events(Side::Client)
                    .iter()
                    .filter(|e| **e == Event::Connected)
                    .count(),
                1
            );
        }
    }
}

#[test]
fn both_kinds_of_negotiation_survive_loss() {
    for cipher in CIPHERS {
        for (client, server, expected) in [
            (
                vec![VERSION_1, VERSION_2],
                vec![VERSION_2, VERSION_1],
                VERSION_2,
            ),
            (vec![VERSION_2, VERSION_1], vec![VERSION_1], VERSION_1),
        ] {
            // Every set of lost datagrams among the first three each way.
            for lost in 0..64_u64 {
                let mut pair = pair_of(&client, &server).cipher(cipher).build().unwrap();
                for (direction, lost) in [
                    (Direction::ToServer, lost & 7),
                    (Direction::ToClient, lost >> 3),
                ] {
                    drop_if(&mut pair, direction, move |datagram| {
                        datagram.index < 3 && lost >> datagram.index & 1 == 1
                    });
                }
                assert!(works(&mut pair), "{cipher:?} {client:x?} {lost:b}");
                assert_eq!(versions(&pair), [expected; 2]);
            }
        }
    }
}

#[test]
fn a_change_of_version_survives_reordering() {
    // The server's Handshake packets overtake its Initial ones: they wait until the version is known.
    for cipher in CIPHERS {
        let mut pair = pair_of(&[VERSION_1, VERSION_2], &[VERSION_2, VERSION_1])
            .cipher(cipher)
            .build()
            .unwrap();
        pair.tap(Direction::ToClient, |datagram| {
            let packets = long_packets(datagram.data);
            if datagram.index == 0 && packets.iter().any(|(kind, _)| *kind == PacketType::Initial) {
                return swiftwater_sim::Verdict::Delay(millis(7));
            }
            swiftwater_sim::Verdict::Pass
        });
        assert!(works(&mut pair), "{cipher:?}");
        assert_eq!(versions(&pair), [VERSION_2; 2]);
        let took = pair.stats(Side::Client).handshake_duration.unwrap();
        assert!(took < millis(35), "{took:?}");
    }
}

#[test]
fn retry_comes_before_either_kind_of_negotiation() {
    for cipher in CIPHERS {
        for (client, server, expected) in [
            (
                vec![VERSION_1, VERSION_2],
                vec![VERSION_2, VERSION_1],
                VERSION_2,
            ),
            (
                vec![VERSION_2, VERSION_1],
                vec![VERSION_1, VERSION_2],
                VERSION_1,
            ),
            (vec![VERSION_2], vec![VERSION_2], VERSION_2),
            (vec![VERSION_1, VERSION_2], vec![VERSION_2], VERSION_2),
        ] {
            let first = if server.contains(&client[0]) {
                client[0]
            } else {
                expected
            };
            let mut pair = pair_of(&client, &server)
                .cipher(cipher)
                .retry(RetryPolicy::Always)
                .build()
                .unwrap();
            let recording = pair.record(Direction::ToClient);
            assert!(works(&mut pair), "{cipher:?} {client:x?} {server:x?}");
            assert_eq!(versions(&pair), [expected; 2]);
            let datagrams = recording.datagrams();
            let retries: Vec<u32> = datagrams
                .iter()
                .flat_map(|each| long_packets(&each.data))
                .filter(|(kind, _)| *kind == PacketType::Retry)
                .map(|(_, version)| version)
                .collect();
            assert_eq!(retries, [first], "a Retry has the original version");
        }
    }
}

#[test]
fn keys_are_updated_in_either_version() {
    for cipher in CIPHERS {
        for client in [vec![VERSION_2], vec![VERSION_1, VERSION_2]] {
            let mut pair = pair_of(&client, &[VERSION_2, VERSION_1])
                .cipher(cipher)
                .build()
                .unwrap();
            assert!(pair.connect());
            for direction in BOTH {
                pair.start_transfer(300_000, direction);
            }
            for nth in 0..4 {
                pair.advance(millis(60));
                pair.connection(SIDES[nth % 2]).unwrap().update_keys();
            }
            assert!(pair.finish_transfers());
            pair.advance(secs(1));
            assert_eq!(versions(&pair), [VERSION_2; 2]);
            for side in SIDES {
                let stats = pair.stats(side);
                assert!(stats.key_updates >= 2, "{}", stats.key_updates);
                assert_eq!(stats.packets_dropped.get(), 0, "{cipher:?} {side:?}");
            }
        }
    }
}

#[test]
fn a_downgrade_by_forged_version_negotiation_is_found_out() {
    for cipher in CIPHERS {
        let mut pair = pair_of(&[VERSION_2, VERSION_1], &[VERSION_2, VERSION_1])
            .cipher(cipher)
            .build()
            .unwrap();
        let sent = pair.record(Direction::ToServer);
        pair.start().unwrap();
        pair.advance(millis(1));
        let first = sent.datagrams()[0].data.clone();
        pair.inject(
            Direction::ToClient,
            &negotiation(&first, &[VERSION_1]),
            None,
        );
        assert!(!pair.connect());
        let Some(ConnectionError::Transport(error)) = reason(&pair, Side::Client) else {
            panic!("{:?}", reason(&pair, Side::Client));
        };
        assert_eq!(error.code, ErrorCode::VERSION_NEGOTIATION_ERROR);
    }
}

#[test]
fn a_downgrade_by_rewritten_initial_packets_is_found_out() {
    // An attacker who turns the client's first packet into one of version 1 is detected by TLS: the
    // client's version information is authenticated. Here the server detects it.
    let mut pair = pair_of(&[VERSION_2, VERSION_1], &[VERSION_2, VERSION_1])
        .cipher(Cipher::Tls)
        .build()
        .unwrap();
    pair.tap(Direction::ToServer, |datagram| {
        if datagram.index == 0 {
            rewrite_as_version_1(datagram.data);
        }
        swiftwater_sim::Verdict::Pass
    });
    pair.start().unwrap();
    pair.run_until(|pair| reason(pair, Side::Server).is_some());
    let Some(ConnectionError::Transport(error)) = reason(&pair, Side::Server) else {
        panic!("{:?}", reason(&pair, Side::Server));
    };
    assert_eq!(error.code, ErrorCode::VERSION_NEGOTIATION_ERROR);
}

/// Opens a client's Initial of version 2, as any host can, and seals it again as one of version 1.
fn rewrite_as_version_1(packet: &mut [u8]) {
    use swiftwater_quic::crypto::Primitives;
    use swiftwater_quic::wire::PlainFirstByte;
    use swiftwater_units::{PacketNumber, PathId};

    let primitives = swiftwater_tls::RustlsPrimitives::new();
    let header = PartialHeader::parse(packet, CID_LEN).unwrap();
    assert_eq!(header.packet_len, packet.len());
    let keys = primitives.initial_keys(VERSION_2, &header.dst_cid, Side::Server);
    keys.header.remote.decrypt(header.pn_offset, packet);
    let pn_len = PlainFirstByte(packet[0]).packet_number_len();
    let header_len = header.pn_offset + pn_len;
    let number = packet[header.pn_offset..header_len]
        .iter()
        .fold(0, |number, &byte| number << 8 | u64::from(byte));
    let number = PacketNumber::new(number);
    let (head, payload) = packet.split_at_mut(header_len);
    keys.packet
        .remote
        .decrypt(PathId::ZERO, number, head, payload)
        .unwrap();
    packet[0] &= 0xcf;
    packet[1..5].copy_from_slice(&VERSION_1.to_be_bytes());
    let keys = primitives.initial_keys(VERSION_1, &header.dst_cid, Side::Client);
    keys.packet
        .local
        .encrypt(PathId::ZERO, number, header_len, packet);
    keys.header.local.encrypt(header.pn_offset, packet);
}

/// Version events at an observer.
#[derive(Clone, Debug, Default)]
struct Ears(Arc<Mutex<Vec<(Side, String)>>>);

struct Ear(Side, Ears);

impl ObserverFactory for Ears {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        Some(Box::new(Ear(side, self.clone())))
    }
}

impl Observer for Ear {
    fn observe(&mut self, _: Instant, observation: &Observation<'_>) {
        let heard = match *observation {
            Observation::VersionTried { version } => format!("tried {version:x}"),
            Observation::VersionChosen { original, version } => {
                format!("chosen {original:x} {version:x}")
            }
            _ => return,
        };
        self.1.0.lock().unwrap().push((self.0, heard));
    }
}

#[test]
fn observers_receive_the_version() {
    for (client, server, expected) in [
        (
            vec![VERSION_1],
            vec![VERSION_1],
            vec![(Side::Server, "chosen 1 1"), (Side::Client, "chosen 1 1")],
        ),
        (
            vec![VERSION_1, VERSION_2],
            vec![VERSION_2, VERSION_1],
            vec![
                (Side::Server, "chosen 1 6b3343cf"),
                (Side::Client, "chosen 1 6b3343cf"),
            ],
        ),
        (
            vec![VERSION_2, VERSION_1],
            vec![VERSION_1],
            vec![
                (Side::Client, "tried 1"),
                (Side::Server, "chosen 1 1"),
                (Side::Client, "chosen 1 1"),
            ],
        ),
    ] {
        let ears = Ears::default();
        let factory = ears.clone();
        let mut pair = pair_of(&client, &server)
            .both_configs(move |config| config.observer = Some(Arc::new(factory.clone())))
            .build()
            .unwrap();
        assert!(works(&mut pair));
        let heard = ears.0.lock().unwrap();
        let heard: Vec<(Side, &str)> = heard
            .iter()
            .map(|(side, what)| (*side, &what[..]))
            .collect();
        assert_eq!(heard, expected);
    }
}

#[test]
fn tokens_are_good_for_the_version_that_gave_them() {
    let mut pair = pair_of(&[VERSION_1, VERSION_2], &[VERSION_2, VERSION_1])
        .build()
        .unwrap();
    assert!(works(&mut pair));
    pair.advance(secs(1));
    let given = pair
        .events(Side::Client)
        .iter()
        .any(|event| matches!(event, Event::NewToken { .. }));
    assert!(
        given,
        "the server gives a token after a change of version too"
    );
}
