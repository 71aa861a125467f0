//! Addresses that are not validated get three times what they sent, to the byte (RFC 9000, sections
//! 8.1, 8.2 and 9.3).

use std::net::SocketAddr;
use std::time::Duration;

use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::wire::Frame;
use swiftwater_quic::wire::frame;
use swiftwater_quic::{Event, RetryPolicy, TransportConfig};
use swiftwater_units::{Dir, PathId, Side};

use crate::attack::{Attack, Setup, home, on, on_server, server_victim};
use crate::coding::encode;
use crate::peer::Packet;

fn elsewhere() -> SocketAddr {
    "198.51.100.7:7777".parse().unwrap()
}

/// A server whose certificate chain needs far more than three datagrams.
fn talkative() -> Attack {
    server_victim(Setup {
        chain_len: 20_000,
        ..Setup::default()
    })
}

/// The client's first flight in a datagram of `size` bytes.
fn hello(attack: &mut Attack, size: usize) -> Vec<u8> {
    let data = attack.peer.take_crypto(EncryptionLevel::Initial);
    let payload = encode(&[Frame::Crypto(frame::Crypto {
        offset: 0,
        data: &data,
    })]);
    attack.peer.seal_initial(&payload, size)
}

#[test]
fn clients_without_an_answer_get_three_times_what_they_sent() {
    for size in [1200, 1201, 1234, 1350, 1472] {
        let mut attack = talkative();
        let first = hello(&mut attack, size);
        assert_eq!(first.len(), size);
        attack.deliver(&first);
        attack.wait(Duration::from_secs(60));
        let sent = attack.bytes_to(home());
        assert!(sent <= 3 * size, "{sent} bytes for {size}");
        // All that it may, except for what is too little for a packet.
        assert!(sent > 3 * size - 64, "{sent} bytes for {size}");
        // The handshake timed out, without a CONNECTION_CLOSE that could not be read.
        assert!(attack.victim.connection().is_drained());
        assert_eq!(attack.victim.endpoint.connections(), 0);
    }
}

#[test]
fn the_limit_holds_at_every_moment() {
    let mut attack = talkative();
    let first = hello(&mut attack, 1200);
    let mut received = 0;
    for datagram in [first.clone(), first.clone(), vec![0xaa; 700], first] {
        // Copies, and noise for the connection, count as received too (section 8.1).
        let mut datagram = datagram;
        if datagram[0] == 0xaa {
            datagram[0] = 0x40;
            datagram[1..9].copy_from_slice(attack.peer.dst.as_bytes());
        }
        received += datagram.len();
        attack.deliver(&datagram);
        assert!(attack.bytes_to(home()) <= 3 * received);
        attack.wait(Duration::from_millis(700));
        let sent = attack.bytes_to(home());
        assert!(sent <= 3 * received, "{sent} bytes for {received}");
        assert!(sent > 3 * received - 1200, "{sent} bytes for {received}");
    }
}

#[test]
fn coalesced_packets_count_once() {
    let mut attack = talkative();
    let data = attack.peer.take_crypto(EncryptionLevel::Initial);
    let (a, b) = data.split_at(100);
    let crypto = |offset, data| encode(&[Frame::Crypto(frame::Crypto { offset, data })]);
    let first = attack
        .peer
        .seal(&Packet::new(EncryptionLevel::Initial, &crypto(0, a)));
    let second = attack
        .peer
        .seal_initial(&crypto(100, b), 1200 - first.len());
    let datagram = [first, second].concat();
    assert_eq!(datagram.len(), 1200);
    attack.deliver(&datagram);
    attack.wait(Duration::from_secs(60));
    let sent = attack.bytes_to(home());
    assert!(sent <= 3600 && sent > 3500, "{sent} bytes");
}

#[test]
fn closes_are_bound_by_the_limit() {
    let mut attack = talkative();
    let first = hello(&mut attack, 1200);
    attack.deliver(&first);
    let spent = attack.bytes_to(home());
    assert!((3537..=3600).contains(&spent));
    // Small Initial datagrams are dropped but counted; a Handshake packet would validate.
    attack
        .victim
        .connection()
        .close(attack.now, 1, b"a reason of some length");
    attack.collect();
    assert!(attack.bytes_to(home()) <= 3600);
    for size in [20, 21, 30, 100, 50] {
        let mut noise = vec![0x40; size];
        noise[1..9].copy_from_slice(attack.peer.dst.as_bytes());
        attack.deliver(&noise);
    }
    attack.wait(Duration::from_secs(10));
    assert!(attack.bytes_to(home()) <= 3 * (1200 + 221));
}

#[test]
fn a_handshake_packet_validates_the_address() {
    let mut attack = talkative();
    let first = hello(&mut attack, 1200);
    attack.deliver(&first);
    assert!((3537..=3600).contains(&attack.bytes_to(home())));
    let before = attack.sent.len();
    // An acknowledgement is enough.
    let numbers = attack.peer.numbers(EncryptionLevel::Handshake);
    let payload = crate::coding::ack(&crate::coding::ranges(numbers), None);
    let datagram = attack
        .peer
        .seal(&Packet::new(EncryptionLevel::Handshake, &payload));
    assert!(datagram.len() < 100);
    attack.deliver(&datagram);
    attack.wait(Duration::from_millis(500));
    let more: usize = attack.sent[before..].iter().map(|(_, len)| len).sum();
    assert!(more > 3600, "{more} bytes for {}", datagram.len());
    attack.establish();
}

#[test]
fn an_acknowledged_initial_does_not_validate_the_address() {
    let mut attack = talkative();
    let first = hello(&mut attack, 1200);
    attack.deliver(&first);
    assert!((3537..=3600).contains(&attack.bytes_to(home())));
    let numbers = attack.peer.numbers(EncryptionLevel::Initial);
    let payload = crate::coding::ack(&crate::coding::ranges(numbers), None);
    let datagram = attack.peer.seal_initial(&payload, 1200);
    attack.deliver(&datagram);
    attack.wait(Duration::from_secs(60));
    assert!(attack.bytes_to(home()) <= 7200);
}

#[test]
fn a_token_of_a_retry_validates_the_address() {
    let mut attack = server_victim(Setup {
        chain_len: 20_000,
        retry: RetryPolicy::Always,
        ..Setup::default()
    });
    let data = attack.peer.take_crypto(EncryptionLevel::Initial);
    let payload = encode(&[Frame::Crypto(frame::Crypto {
        offset: 0,
        data: &data,
    })]);
    let first = attack.peer.seal_initial(&payload, 1200);
    attack.deliver(&first);
    let retry = attack.victim.answers.pop().unwrap();
    assert!(retry.len() < first.len());
    attack.peer.follow_retry(&retry);
    let second = attack.peer.seal_initial(&payload, 1200);
    attack.deliver(&second);
    attack.wait(Duration::from_millis(900));
    assert!(attack.bytes_to(home()) > 3 * 2400);
    attack.establish();
}

#[test]
fn a_blocked_server_is_freed_by_the_clients_probes() {
    // The client's acknowledgement is lost, and all that it has left to say is nothing. The server
    // may send nothing, so only the client's probe timeout can help (RFC 9002, section 6.2.2.1).
    let certificate_wait = Duration::from_millis(200);
    let mut server = talkative();
    let first = hello(&mut server, 1200);
    server.deliver(&first);
    server.wait(certificate_wait);
    assert!((3537..=3600).contains(&server.bytes_to(home())));
    assert!(!server.peer.is_complete());
    // Probes as a client sends them: a padded Initial, a PING in Handshake.
    server.peer.acknowledges = false;
    let probe = server.peer.seal_initial(&encode(&[Frame::Ping]), 1200);
    server.deliver(&probe);
    assert!(server.bytes_to(home()) > 3600);
    assert!(server.bytes_to(home()) <= 7200);
    server.send_packet(&Packet::new(
        EncryptionLevel::Handshake,
        &encode(&[Frame::Ping]),
    ));
    server.peer.acknowledges = true;
    server.establish();
}

#[test]
fn a_blocked_server_does_not_use_up_its_back_off() {
    // What can't be sent must not be timed (RFC 9002, section 6.2.2.1).
    for size in [1200, 1300] {
        let mut attack = talkative();
        let first = hello(&mut attack, size);
        attack.deliver(&first);
        attack.wait(Duration::from_secs(9));
        assert_eq!(attack.victim.connection().stats().paths[0].pto_count, 0);
    }
}

#[test]
fn clients_probe_until_the_server_is_sure_of_their_address() {
    // The client's first Initial was acknowledged and nothing else came: nothing is in flight.
    let lone = crate::attack::client_victim(Setup::default());
    let mut attack = lone.meet_server();
    let hello = attack.peer.take_crypto(EncryptionLevel::Initial);
    let payload = [
        crate::coding::ack(&[0..=0], None),
        encode(&[Frame::Crypto(frame::Crypto {
            offset: 0,
            data: &hello,
        })]),
    ]
    .concat();
    let datagram = attack.peer.seal_initial(&payload, 1200);
    attack.deliver(&datagram);
    attack.peer.acknowledges = false;
    let before = attack.peer.numbers(EncryptionLevel::Handshake).len();
    let mut last = attack.sent.len();
    for _ in 0..3 {
        attack.wait(Duration::from_secs(2));
        assert!(attack.sent.len() > last, "the client waits for ever");
        last = attack.sent.len();
    }
    assert!(attack.peer.numbers(EncryptionLevel::Handshake).len() > before);
    attack.peer.acknowledges = true;
    attack.establish();
}

/// A server with much to say, whose client then sends from elsewhere.
fn busy_server() -> Attack {
    let mut attack = on_server(Setup {
        transport: TransportConfig {
            max_idle_timeout: None,
            ..TransportConfig::default()
        },
        ..Setup::default()
    });
    let id = attack.victim.connection().open(Dir::Uni).unwrap();
    let _ = attack
        .victim
        .connection()
        .send_stream(id)
        .write(&vec![1; 200_000]);
    attack.peer.acknowledges = false;
    attack
}

#[test]
fn a_new_address_gets_three_times_what_it_sent() {
    for size in [50, 100, 1000] {
        let mut attack = busy_server();
        attack.from = elsewhere();
        let mut payload = encode(&[Frame::Ping]);
        payload.resize(size, 0);
        let datagram = attack.peer.seal_payload(&payload);
        attack.deliver(&datagram);
        attack.wait(Duration::from_secs(20));
        let sent = attack.bytes_to(elsewhere());
        assert!(sent > 0, "the new address is challenged");
        assert!(sent <= 3 * datagram.len(), "{sent} for {}", datagram.len());
    }
}

#[test]
fn a_new_address_without_room_keeps_no_timer_busy() {
    // Acknowledgements fall due that the limit doesn't let out: nothing to wake for. `wait` fails
    // if the victim's timers never rest.
    for size in 1..60 {
        let mut attack = on(Side::Server);
        attack.peer.acknowledges = false;
        attack.from = elsewhere();
        let mut received = 0;
        for n in 1..8 {
            let mut payload = encode(&[Frame::Ping]);
            payload.resize(size * n % 60 + 1, 0);
            let datagram = attack.peer.seal_payload(&payload);
            received += datagram.len();
            attack.deliver(&datagram);
            attack.wait(Duration::from_millis(30));
            assert!(attack.bytes_to(elsewhere()) <= 3 * received);
        }
    }
}

#[test]
fn a_new_address_is_unlimited_once_validated() {
    let mut attack = busy_server();
    attack.from = elsewhere();
    attack.send_frames(&[Frame::Ping]);
    let challenge = attack.peer.packets.iter().find_map(|packet| {
        packet.frames().find_map(|(_, frame)| match frame {
            Frame::PathChallenge { data } => Some(data),
            _ => None,
        })
    });
    // An echo of something else validates nothing.
    attack.send_frames(&[Frame::PathResponse { data: [0; 8] }]);
    let before = attack.bytes_to(elsewhere());
    assert!(before < 300, "{before}");
    assert!(challenge.is_some());
    let moved = Event::PeerMoved {
        path: PathId::ZERO,
        remote: elsewhere(),
    };
    assert!(!attack.victim.events.contains(&moved));
    let challenges: Vec<[u8; 8]> = attack
        .peer
        .packets
        .iter()
        .flat_map(|packet| {
            packet.frames().filter_map(|(_, frame)| match frame {
                Frame::PathChallenge { data } => Some(data),
                _ => None,
            })
        })
        .collect();
    // One of them went to the old address; here both are answered from the new one.
    for data in challenges {
        attack.send_frames(&[Frame::PathResponse { data }]);
    }
    attack.peer.acknowledges = true;
    attack.pass(Duration::from_secs(5));
    assert!(
        attack.victim.events.contains(&moved),
        "{:?}",
        attack.victim.events
    );
    assert!(attack.bytes_to(elsewhere()) > 100_000);
}

#[test]
fn probes_from_elsewhere_get_no_more_than_three_times_their_size() {
    // Only probing frames: the connection does not move, the echo goes where the probe came from.
    for challenges in [1, 2, 3, 10] {
        for padding in [0, 100, 400, 1100] {
            let mut attack = on(Side::Server);
            attack.from = elsewhere();
            let frames: Vec<Frame<'_>> = (0..challenges)
                .map(|n| Frame::PathChallenge { data: [n; 8] })
                .collect();
            let mut payload = encode(&frames);
            payload.resize(payload.len() + padding, 0);
            let datagram = attack.peer.seal_payload(&payload);
            attack.deliver(&datagram);
            attack.wait(Duration::from_secs(5));
            let sent = attack.bytes_to(elsewhere());
            assert!(sent <= 3 * datagram.len(), "{sent} for {}", datagram.len());
            if padding > 0 {
                assert!(sent > 0, "the probe is answered");
            }
            attack.from = home();
            attack.assert_open();
        }
    }
}

#[test]
fn many_probes_from_many_places_stay_within_their_limits() {
    let mut attack = on(Side::Server);
    for n in 0..50_u8 {
        attack.from = SocketAddr::from(([198, 51, 100, n], 7777));
        let mut payload = encode(&[Frame::PathChallenge { data: [n; 8] }]);
        payload.resize(100, 0);
        let datagram = attack.peer.seal_payload(&payload);
        attack.deliver(&datagram);
        let (from, len) = (attack.from, datagram.len());
        assert!(attack.bytes_to(from) <= 3 * len);
    }
    attack.from = home();
    attack.assert_open();
}

#[test]
fn clients_do_not_follow_a_server_that_moves() {
    let mut attack = on(Side::Client);
    attack.from = elsewhere();
    let number = attack.peer.next_number(EncryptionLevel::OneRtt);
    attack.send_frames(&[Frame::Ping]);
    attack.from = home();
    attack.assert_open();
    assert!(!attack.peer.is_acked(EncryptionLevel::OneRtt, number));
    assert_eq!(attack.bytes_to(elsewhere()), 0);
}

#[test]
fn no_migration_before_the_handshake_is_confirmed() {
    let mut attack = server_victim(Setup::default());
    let first = hello(&mut attack, 1200);
    attack.deliver(&first);
    attack.from = elsewhere();
    let probe = attack.peer.seal(&Packet::new(
        EncryptionLevel::Handshake,
        &encode(&[Frame::Ping]),
    ));
    attack.deliver(&probe);
    assert_eq!(attack.bytes_to(elsewhere()), 0);
    attack.from = home();
    attack.establish();
}
