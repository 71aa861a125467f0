//! What a peer that violates no rule of the protocol can make the victim send and store with
//! small frames: each flood has a bound on memory, on datagrams and on frames, and another client is
//! served meanwhile.
//!
//! The bounds on memory are of the victim's heap, endpoint and connection together, beyond what they
//! held before the flood.

use std::time::Duration;

use swiftwater_quic::wire::frame;
use swiftwater_quic::wire::{ErrorCode, Frame};
use swiftwater_quic::{ReadError, TransportConfig};
use swiftwater_units::{ByteCount, Dir, Side, StreamId};

use crate::attack::{Attack, Setup, on_server};
use crate::cids::issue;
use crate::coding::{ack, encode, ranges};
use crate::peer::Opened;
use crate::persona::Persona;

/// Packets of a flood.
const PACKETS: u64 = 1500;
/// Bytes that a flood may leave behind, or occupy meanwhile: records of packets on their way, mostly.
const SMALL: i64 = 64 << 10;
/// Datagrams that the victim may send beyond one for each that it gets, and one for each 50: probes,
/// and packets that ask whether its acknowledgements arrive.
const PROBES: usize = 30;

/// What a flood came to.
#[derive(Debug)]
struct Flood {
    /// Datagrams of the attacker, acknowledgements included.
    received: usize,
    /// Datagrams of the victim.
    sent: usize,
    /// Bytes of heap at most, beyond those of before.
    grown: i64,
}

/// An attacker in an established connection, and another client of the same server.
fn begun(side: Side, setup: Setup) -> Attack {
    match side {
        Side::Client => crate::attack::on_client(setup),
        Side::Server => {
            let mut attack = on_server(setup);
            attack.invite();
            attack
        }
    }
}

/// Sends packets, one in a millisecond, until the victim closes. The bystander goes on.
fn flood(
    attack: &mut Attack,
    packets: u64,
    mut payload: impl FnMut(&mut Attack, u64) -> Vec<u8>,
) -> Flood {
    attack.victim.meter.restart();
    let (held, sent) = (attack.victim.meter.held(), attack.sent.len());
    let mut received = 0;
    for n in 0..packets {
        let payload = payload(attack, n);
        attack.send(&payload);
        received += 1;
        for datagram in attack.peer.answers() {
            attack.deliver(&datagram);
            received += 1;
        }
        if !attack.victim.reasons().is_empty() {
            break;
        }
        attack.wait(Duration::from_millis(1));
        if n % 100 == 0 {
            attack.talk();
        }
    }
    let flood = Flood {
        received,
        sent: attack.sent.len() - sent,
        grown: attack.victim.meter.peak() - held,
    };
    let probes = PROBES + flood.received / 50;
    assert!(flood.sent <= flood.received + probes, "{flood:?}");
    flood
}

/// Frames of the victim that say something: neither ACK nor PADDING nor PING.
fn statements(attack: &Attack) -> usize {
    attack.peer.count(|frame| {
        !matches!(
            frame,
            Frame::Ack(_) | Frame::Padding { .. } | Frame::Ping | Frame::ImmediateAck
        )
    })
}

fn limits(n: u64) -> Vec<Frame<'static>> {
    let id = StreamId::new(Side::Client, Dir::Bi, n % 100);
    vec![
        Frame::MaxData { limit: n },
        Frame::MaxStreamData { id, limit: n },
        Frame::MaxStreams {
            dir: Dir::Bi,
            count: n,
        },
        Frame::DataBlocked { limit: n },
        Frame::StreamDataBlocked { id, limit: n },
        Frame::StreamsBlocked {
            dir: Dir::Uni,
            limit: n,
        },
    ]
}

#[test]
fn frames_without_an_answer_cause_acknowledgements_only() {
    type Make = fn(u64) -> Vec<Frame<'static>>;
    let floods: [(&str, Make); 6] = [
        ("one PING", |_| vec![Frame::Ping]),
        ("PINGs", |_| vec![Frame::Ping; 200]),
        ("padding", |_| vec![Frame::Padding { length: 1000 }]),
        ("responses without a challenge", |n| {
            vec![
                Frame::PathResponse {
                    data: n.to_be_bytes()
                };
                50
            ]
        }),
        ("requests for acknowledgements", |n| {
            let wish = frame::AckFrequency {
                sequence: n,
                ack_eliciting_threshold: n % 3,
                max_ack_delay: 1000 + n,
                reordering_threshold: n % 5,
            };
            vec![Frame::AckFrequency(wish), Frame::ImmediateAck]
        }),
        ("ends of streams that are over", |n| {
            let id = StreamId::new(Side::Client, Dir::Uni, 0);
            let (error, final_size) = (0, 0);
            vec![
                Frame::ResetStream(frame::ResetStream {
                    id,
                    error,
                    final_size
                });
                (n % 20) as usize + 1
            ]
        }),
    ];
    for (name, frames) in floods {
        let mut attack = begun(Side::Server, Setup::default());
        let before = statements(&attack);
        let flood = flood(&mut attack, PACKETS, |_, n| encode(&frames(n)));
        assert!(flood.grown <= SMALL, "{name}: {flood:?}");
        let said = statements(&attack) - before;
        assert!(said <= 2, "{name}: {said} frames");
        attack.assert_open();
    }
}

#[test]
fn limits_that_change_without_end_are_taken_note_of() {
    let mut attack = begun(Side::Server, Setup::default());
    let before = statements(&attack);
    let flood = flood(&mut attack, PACKETS, |_, n| {
        let frames: Vec<_> = (0..10).flat_map(|k| limits(10 * n + k)).collect();
        encode(&frames)
    });
    // A hundred streams were named, which takes some state for each.
    assert!(flood.grown <= 2 * SMALL, "{flood:?}");
    assert!(statements(&attack) - before <= 2);
    attack.assert_open();
}

#[test]
fn challenges_are_answered_ten_times_in_a_round_trip() {
    let mut attack = begun(Side::Server, Setup::default());
    let paths = attack.victim.connection().stats().paths;
    let mut rtt = paths[0].smoothed_rtt;
    let started = attack.now;
    let flood = flood(&mut attack, PACKETS, |attack, n| {
        rtt = rtt.min(attack.victim.connection().stats().paths[0].smoothed_rtt);
        let frames: Vec<_> = (0..20_u64)
            .map(|k| Frame::PathChallenge {
                data: (20 * n + k).to_be_bytes(),
            })
            .collect();
        encode(&frames)
    });
    let rtt = rtt.max(Duration::from_millis(1)).as_millis();
    let rounds = usize::try_from((attack.now - started).as_millis() / rtt).unwrap() + 1;
    let echoes = attack
        .peer
        .count(|frame| matches!(frame, Frame::PathResponse { .. }));
    assert!((1..=10 * rounds).contains(&echoes), "{echoes}, {rounds}");
    assert!(flood.grown <= SMALL, "{flood:?}");
    attack.assert_open();
}

/// However many challenges there are, no more than this goes out without waiting for the window.
#[test]
fn tiny_challenges_do_not_draw_large_datagrams_without_end() {
    let mut attack = begun(Side::Server, Setup::default());
    attack.peer.acknowledges = false;
    let before: usize = attack.sent.iter().map(|(_, len)| len).sum();
    for n in 0..1000_u64 {
        attack.send_frames(&[Frame::PathChallenge {
            data: n.to_be_bytes(),
        }]);
    }
    // All at the same moment: ten echoes of 1200 bytes, and an acknowledgement for every packet at
    // most.
    let sent = attack.sent.iter().map(|(_, len)| len).sum::<usize>() - before;
    assert!(sent <= 10 * 1200 + 1000 * 50, "{sent}");
    attack.assert_open();
}

/// A retired ID is replaced, so that a round trip brings as many as the peer holds.
#[test]
fn connection_ids_are_replaced_no_faster_than_they_arrive() {
    let mut persona = Persona::default();
    persona.parameters.active_connection_id_limit = 1000;
    let setup = Setup {
        persona,
        ..Setup::default()
    };
    let mut attack = begun(Side::Server, setup);
    assert_eq!(attack.peer.issued().len(), 7);
    let mut told = 0;
    let flood = flood(&mut attack, PACKETS, |attack, n| {
        let issued = attack.peer.issued();
        let news = issued.len() - told;
        assert!(n == 0 || news <= 7, "{news} at once");
        let retired: Vec<_> = issued[told..]
            .iter()
            .filter(|new| new.1 != attack.peer.dst)
            .map(|&(sequence, ..)| Frame::RetireConnectionId {
                path: None,
                sequence,
            })
            .collect();
        told = issued.len();
        encode(&[&retired[..], &[Frame::Ping]].concat())
    });
    assert!(attack.peer.issued().len() > 1000);
    assert!(flood.grown <= SMALL, "{flood:?}");
    attack.assert_open();
}

/// At most eight retirements for each ID that the victim stores wait for acknowledgement.
#[test]
fn retirements_in_a_round_trip_are_counted() {
    let mut attack = begun(Side::Server, Setup::default());
    let flood = flood(&mut attack, PACKETS, |_, n| {
        encode(&[issue(n + 1, n + 1, &(n + 1).to_be_bytes())])
    });
    assert!(flood.grown <= SMALL, "{flood:?}");
    attack.assert_open();
    attack.peer.acknowledges = false;
    attack.victim.meter.restart();
    let held = attack.victim.meter.held();
    let before = attack
        .peer
        .count(|frame| matches!(frame, Frame::RetireConnectionId { .. }));
    let mut n = PACKETS + 1;
    while attack.victim.reasons().is_empty() {
        attack.send_frames(&[issue(n, n, &n.to_be_bytes())]);
        n += 1;
    }
    attack.assert_closed_with(ErrorCode::CONNECTION_ID_LIMIT_ERROR);
    let after = attack
        .peer
        .count(|frame| matches!(frame, Frame::RetireConnectionId { .. }));
    assert!(after - before <= 8 * 4, "{}", after - before);
    assert!(attack.victim.meter.peak() - held <= SMALL);
}

fn open_and_reset(index: u64) -> [Frame<'static>; 2] {
    let id = StreamId::new(Side::Client, Dir::Uni, index);
    let data = frame::Stream {
        id,
        offset: 0,
        fin: false,
        data: b"x",
    };
    let reset = frame::ResetStream {
        id,
        error: 3,
        final_size: 1,
    };
    [Frame::Stream(data), Frame::ResetStream(reset)]
}

/// "Rapid reset": streams that are reset as soon as they are opened.
#[test]
fn streams_reset_as_soon_as_opened_are_bound_by_the_limit_of_streams() {
    // An application that looks at each stream.
    let mut attack = begun(Side::Server, Setup::default());
    let (mut opened, mut accepted) = (0, 0);
    let limit = |attack: &Attack| {
        let frames = attack.peer.packets.iter().flat_map(Opened::frames);
        let raised = frames.filter_map(|(_, frame)| match frame {
            Frame::MaxStreams {
                dir: Dir::Uni,
                count,
            } => Some(count),
            _ => None,
        });
        raised.max().unwrap_or(100)
    };
    let flood_of_some = flood(&mut attack, PACKETS, |attack, _| {
        while let Some(id) = attack.victim.connection().accept(Dir::Uni) {
            accepted += 1;
            let mut buf = [0; 4];
            let read = attack.victim.connection().recv_stream(id).read(&mut buf);
            assert_eq!(read, Err(ReadError::Reset(3)));
        }
        let until = limit(attack).min(opened + 30);
        let frames: Vec<_> = (opened..until).flat_map(open_and_reset).collect();
        opened = until;
        encode(&[&frames[..], &[Frame::Ping]].concat())
    });
    assert!(opened > 10_000 && accepted > 10_000, "{opened} {accepted}");
    assert!(opened <= accepted + 200);
    // One frame carries the limit, however many streams are over.
    let said = attack
        .peer
        .count(|frame| matches!(frame, Frame::MaxStreams { .. }));
    assert!(said <= flood_of_some.sent, "{said}");
    assert!(flood_of_some.grown <= 2 * SMALL, "{flood_of_some:?}");
    attack.assert_open();
    // An application that looks at none: no stream is over, so the limit stays.
    let mut attack = begun(Side::Server, Setup::default());
    let flood_of_all = flood(&mut attack, 100, |_, n| encode(&open_and_reset(n)));
    assert!(flood_of_all.grown <= 2 * SMALL, "{flood_of_all:?}");
    attack.send_frames(&open_and_reset(100));
    attack.assert_closed_with(ErrorCode::STREAM_LIMIT_ERROR);
}

/// Without acknowledgements the victim could discard nothing that it sent.
#[test]
fn a_peer_that_acknowledges_nothing_is_not_answered_for_ever() {
    let mut attack = begun(Side::Server, Setup::default());
    attack.peer.acknowledges = false;
    attack.victim.connection().ping();
    let flood = flood(&mut attack, 50_000, |_, _| {
        encode(&[Frame::Ping, Frame::ImmediateAck])
    });
    attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, 0);
    // 4096 and those within three probe timeouts, 400 bytes each.
    assert!(flood.received <= 6_000, "{flood:?}");
    assert!(flood.grown <= 6_000 * 400, "{flood:?}");
}

/// Nor does one lose anything that acknowledges now and then, or only a part.
#[test]
fn peers_that_acknowledge_seldom_are_served() {
    let mut attack = begun(Side::Server, Setup::default());
    attack.peer.acknowledges = false;
    let flood = flood(&mut attack, 12_000, |attack, n| {
        let mut payload = encode(&[Frame::Ping, Frame::ImmediateAck]);
        if n % 1000 == 999 {
            let last = attack.peer.packets.last().unwrap().number;
            payload.extend(ack(&[last..=last], None));
        }
        payload
    });
    assert!(flood.grown <= 2_000 * 400, "{flood:?}");
    attack.assert_open();
}

#[test]
fn key_updates_must_wait_for_one_another() {
    // Two in a row without a packet of the victim between.
    let mut attack = begun(Side::Server, Setup::default());
    for _ in 0..2 {
        attack.peer.update_keys();
        let datagram = attack.peer.seal_payload(&encode(&[Frame::Ping]));
        attack.victim.receive(attack.now, attack.from, &datagram);
    }
    attack.collect();
    let reasons = attack.victim.reasons();
    assert_eq!(reasons.len(), 1);
    assert!(
        matches!(reasons[0], swiftwater_quic::ConnectionError::Transport(error)
            if error.code == ErrorCode::KEY_UPDATE_ERROR),
        "{reasons:?}"
    );
    // As fast as the victim's packets come: followed, at the price of one key each.
    let mut attack = begun(Side::Server, Setup::default());
    let flood = flood(&mut attack, 300, |attack, _| {
        attack.peer.update_keys();
        encode(&[Frame::Ping, Frame::ImmediateAck])
    });
    attack.assert_open();
    let updates = attack.victim.connection().stats().key_updates;
    assert_eq!(updates, 300);
    assert!(flood.grown <= SMALL, "{flood:?}");
}

#[test]
fn tokens_without_number_leave_nothing_with_a_client() {
    let mut attack = begun(Side::Client, Setup::default());
    let flood = flood(&mut attack, PACKETS, |attack, _| {
        attack.victim.discard_events();
        encode(&vec![
            Frame::NewToken {
                token: b"a token that is not used"
            };
            40
        ])
    });
    assert!(flood.grown <= SMALL, "{flood:?}");
    attack.victim.discard_events();
    attack.assert_open();
}

/// An ACK frame with hundreds of ranges, over and over.
#[test]
fn acknowledgements_in_hundreds_of_ranges_are_read_and_bounded() {
    let mut attack = begun(Side::Server, Setup::default());
    attack.peer.acknowledges = false;
    let first = attack.peer.packets.len();
    for _ in 0..800 {
        attack.send_frames(&[Frame::Ping, Frame::ImmediateAck]);
    }
    let numbers: Vec<u64> = attack.peer.packets[first..]
        .iter()
        .map(|packet| packet.number)
        .collect();
    assert!(numbers.len() >= 800);
    let every_second = numbers.iter().copied().step_by(2).collect();
    let payload = ack(&ranges(every_second), None);
    assert!(payload.len() > 800, "{}", payload.len());
    let flood = flood(&mut attack, PACKETS, |_, _| payload.clone());
    assert!(flood.grown <= SMALL, "{flood:?}");
    // Nothing but acknowledgements came, so there is nothing to answer.
    assert!(flood.sent <= PROBES, "{flood:?}");
    attack.assert_open();
}

/// A reader that does not read, and a peer that fills every window in the smallest pieces.
#[test]
fn unread_data_take_memory_in_proportion_to_the_windows() {
    let window = 64_000_u64;
    for piece in [1, 1000] {
        let transport = TransportConfig {
            receive_window: ByteCount::new(window),
            stream_receive_window: ByteCount::new(window),
            ..TransportConfig::default()
        };
        let mut attack = begun(
            Side::Server,
            Setup {
                transport,
                ..Setup::default()
            },
        );
        let data = vec![7; piece as usize];
        let mut written = 0;
        let flood = flood(&mut attack, window / 500 + 1, |_, _| {
            let mut payload = Vec::new();
            for _ in 0..500_u64.div_ceil(piece) {
                // Round about all streams, in order on each.
                let (index, offset) = (written / piece % 100, written / piece / 100 * piece);
                if written + piece <= window {
                    written += piece;
                    payload.extend(encode(&[Frame::Stream(frame::Stream {
                        id: StreamId::new(Side::Client, Dir::Uni, index),
                        offset,
                        fin: false,
                        data: &data,
                    })]));
                }
            }
            payload.extend(encode(&[Frame::Ping]));
            payload
        });
        let held = attack.victim.connection().stats().receive_buffered;
        assert_eq!(held, ByteCount::new(window));
        // Five times the window, and the state of a hundred streams.
        let bound = 5 * window.cast_signed() + 2 * SMALL;
        assert!(flood.grown <= bound, "{piece}: {flood:?}");
        attack.assert_open();
        let id = StreamId::new(Side::Client, Dir::Uni, 0);
        let offset = window.div_ceil(100 * piece) * piece;
        attack.send_frames(&[Frame::Stream(frame::Stream {
            id,
            offset,
            fin: false,
            data: b"x",
        })]);
        attack.assert_closed_with(ErrorCode::FLOW_CONTROL_ERROR);
    }
}

/// A peer that takes nothing: what the application writes stays within the peer's limits and ours.
#[test]
fn a_peer_that_never_raises_its_limits_is_sent_no_more() {
    let send_window = 100_000_u64;
    let transport = TransportConfig {
        send_window: ByteCount::new(send_window),
        ..TransportConfig::default()
    };
    let mut attack = begun(
        Side::Server,
        Setup {
            transport,
            ..Setup::default()
        },
    );
    attack.victim.meter.restart();
    let held = attack.victim.meter.held();
    let mut written = 0;
    let streams: Vec<_> = (0..10)
        .map(|_| attack.victim.connection().open(Dir::Uni).unwrap())
        .collect();
    attack.peer.acknowledges = false;
    for _ in 0..50 {
        for &id in &streams {
            let (victim, data) = (&mut attack.victim, [9; 10_000]);
            written += victim.write(id, &data);
        }
        attack.send_frames(&[Frame::Ping]);
        attack.wait(Duration::from_millis(20));
        attack.talk();
    }
    assert_eq!(written as u64, send_window);
    let grown = attack.victim.meter.peak() - held;
    // Send chunks have 64 KiB each.
    assert!(
        grown <= 2 * send_window.cast_signed() + 12 * 65_536,
        "{grown}"
    );
    assert!(attack.victim.reasons().is_empty());
}

/// Datagrams from elsewhere, without keys, change nothing for any connection.
#[test]
fn packets_injected_from_off_the_path_are_dropped() {
    let mut attack = begun(Side::Server, Setup::default());
    let known: Vec<_> = attack.peer.issued().iter().map(|new| new.1).collect();
    attack.victim.meter.restart();
    let (held, sent) = (attack.victim.meter.held(), attack.sent.len());
    for n in 0..3000_usize {
        // Addresses: the attacked client's, the bystander's, and others; IDs: the right ones, and
        // guesses.
        attack.from = match n % 3 {
            0 => crate::attack::home(),
            1 => crate::bystander::address(),
            _ => "198.51.100.3:53".parse().unwrap(),
        };
        let mut datagram = vec![n as u8; 20 + n % 1300];
        datagram[0] = [0x40, 0xc0, 0xe0, 0xf0][n % 4];
        if datagram[0] & 0x80 != 0 {
            datagram[1..6].copy_from_slice(&[0, 0, 0, 1, 8]);
        }
        let at = if datagram[0] & 0x80 == 0 { 1 } else { 6 };
        if n % 5 != 0 {
            datagram[at..at + 8].copy_from_slice(known[n % known.len()].as_bytes());
        }
        attack.deliver(&datagram);
        if n % 100 == 0 {
            attack.talk();
        }
    }
    let grown = attack.victim.meter.peak() - held;
    assert!(grown <= 4096, "{grown}");
    assert_eq!(attack.sent.len(), sent, "the connection answered a forgery");
    for answer in &attack.victim.answers {
        assert!(answer.len() <= 63, "{}", answer.len());
    }
    attack.from = crate::attack::home();
    attack.assert_open();
}

/// However the path treats them, tests of its size are few.
#[test]
fn a_peer_cannot_make_the_victim_test_the_path_without_end() {
    for acknowledges in [true, false] {
        let mut persona = Persona::default();
        persona.parameters.max_udp_payload_size = 65_527;
        let setup = Setup {
            persona,
            ..Setup::default()
        };
        let mut attack = begun(Side::Server, setup);
        let before = attack.sent.len();
        for _ in 0..600 {
            attack.peer.acknowledges = acknowledges;
            attack.send_frames(&[Frame::Ping]);
            // Small packets are acknowledged, large ones as the attacker chooses.
            let small = attack.peer.packets.last().unwrap().number;
            if !acknowledges && attack.sent.last().is_some_and(|(_, len)| *len < 1200) {
                attack.send(&ack(&[small..=small], None));
            }
            attack.pass(Duration::from_millis(50));
        }
        let large = attack.sent[before..].iter().filter(|(_, len)| *len > 1200);
        let large = large.count();
        assert!(large <= 40, "{acknowledges}: {large} in half a minute");
        attack.peer.acknowledges = true;
        attack.assert_open();
    }
}
