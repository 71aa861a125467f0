//! Plans that failed once, as small as they could be made.

use swiftwater_quic::MultipathVersions;
use swiftwater_sim::Direction;
use swiftwater_units::{Dir, Side};

use super::plan::{Op, Plan, Settings, Wire};
use super::run::run;

/// Little room for anything, and no pacing: the end that shrinking arrives at.
fn tight() -> Settings {
    Settings {
        bidi_streams: 0,
        uni_streams: 0,
        stream_window: 50,
        window: 50,
        growth: 1,
        datagram_frames: None,
        cid_limit: 2,
        ack_threshold: 1,
        max_ack_delay_ms: 0,
        pacing: false,
        ecn: false,
        ..Settings::default()
    }
}

fn far(delay_ms: u64) -> Wire {
    Wire {
        delay_ms,
        ..Wire::default()
    }
}

/// A NEW_CONNECTION_ID frame that came a second time brought back an ID that was retired meanwhile,
/// and with it one more than permitted.
#[test]
fn a_connection_id_announced_twice_stays_retired() {
    let slow = Wire {
        rate_kbps: Some(200),
        ..far(47)
    };
    run(&Plan {
        seed: 0,
        segments: 1,
        wires: [far(0), slow],
        ends: [tight(), tight()],
        ops: vec![
            Op::Advance(152),
            Op::DropNext(Direction::ToServer, 3),
            Op::Rotate(Side::Server),
            Op::Advance(52),
            Op::Rotate(Side::Client),
        ],
        ..Plan::default()
    });
}

/// A request for fresh connection IDs before the last one was answered made the peer retire more
/// than we accept.
#[test]
fn rotating_without_waiting_is_no_offence() {
    let mut ops = vec![Op::Advance(500)];
    ops.extend((0..40).map(|nth| Op::Rotate([Side::Client, Side::Server][nth % 2])));
    run(&Plan {
        ends: [tight(), tight()],
        ops,
        ..Plan::default()
    });
}

/// Events of streams came after the last event of the connection.
#[test]
fn nothing_but_the_end_follows_the_end() {
    let reader = Settings {
        uni_streams: 100,
        ..tight()
    };
    run(&Plan {
        wires: [far(0), far(0)],
        ends: [tight(), reader],
        ops: vec![
            Op::Advance(0),
            Op::Open(Side::Client, Dir::Uni),
            Op::Write(Side::Client, 0, 1),
            Op::Advance(0),
            Op::Close(Side::Server),
        ],
        ..Plan::default()
    });
}

/// The time for an answer from a new address came from the assumed round-trip time alone, although
/// the real one was known to be longer: validation failed forever.
#[test]
fn a_new_address_that_is_slow_to_answer_is_validated() {
    let settings = Settings {
        initial_rtt_ms: 1,
        ..Settings::default()
    };
    run(&Plan {
        wires: [far(100), far(92)],
        ends: [settings.clone(), settings],
        ops: vec![
            Op::Advance(3_000),
            Op::Open(Side::Client, Dir::Bi),
            Op::Write(Side::Client, 0, 20_000),
            Op::Rebind { ip: true },
            Op::Advance(6_000),
            Op::Accept(Side::Server, Dir::Bi),
            Op::Write(Side::Server, 0, 20_000),
        ],
        ..Plan::default()
    });
}

/// The client's Finished was lost and found the window full of 1-RTT data, for which no timer runs
/// before the handshake is confirmed: no packet was ever sent again.
#[test]
fn lost_handshake_bytes_get_past_a_full_window() {
    let lossy = Wire { loss: 7, ..far(18) };
    let noisy = Wire {
        corrupt: 14,
        ..far(237)
    };
    let server = Settings {
        datagram_frames: Some(65_535),
        ..tight()
    };
    run(&Plan {
        seed: 16_903_027_253_745_634_724,
        segments: 1,
        retry: true,
        finish_all: false,
        wires: [lossy, noisy],
        ends: [tight(), server],
        ops: vec![
            Op::Step(10),
            Op::DropNext(Direction::ToServer, 7),
            Op::Advance(234),
            Op::Step(8),
            Op::SendDatagram(Side::Client, 1_089),
            Op::Open(Side::Client, Dir::Bi),
        ],
        ..Plan::default()
    });
}

/// An endpoint with a max_ack_delay below its min_ack_delay sent both parameters, and rejected the
/// latter.
#[test]
fn asking_for_the_shortest_delay_that_was_declared_is_no_offence() {
    let asking = Settings {
        ack_frequency: true,
        ..tight()
    };
    run(&Plan {
        wires: [far(0), far(0)],
        ends: [tight(), asking],
        ops: vec![Op::Advance(0), Op::Open(Side::Client, Dir::Bi)],
        ..Plan::default()
    });
}

/// The client's last packet was an acknowledgement padded because it shared a datagram with an Initial
/// packet: in flight forever, and rightly so. The end of the case waited for it.
#[test]
fn a_padded_acknowledgement_may_stay_in_flight() {
    let to_server = Wire {
        rate_kbps: Some(763),
        buffer_packets: Some(19),
        loss: 2,
        mark_above: Some(1),
        ..far(10)
    };
    let to_client = Wire {
        jitter_ms: 9,
        rate_kbps: Some(1_055),
        buffer_packets: Some(20),
        late: 22,
        late_ms: 18,
        mark_above: Some(12),
        ..far(0)
    };
    let client = Settings {
        growth: 3,
        send_window: 5_220,
        key_update_interval: 39,
        search_up_to: Some(1_472),
        initial_rtt_ms: 49,
        initial_window: Some(20_232),
        pacing: true,
        newreno: true,
        datagram_frames: Some(65_535),
        cid_len: 0,
        ack_frequency: true,
        handshake_copies: 3,
        ..tight()
    };
    let server = Settings {
        bidi_streams: 5,
        uni_streams: 8,
        window: 182,
        growth: 11,
        send_window: 604,
        key_update_interval: 20,
        search_up_to: Some(1_472),
        initial_rtt_ms: 2,
        initial_window: Some(75_046),
        pacing: true,
        newreno: true,
        datagram_frames: Some(65_535),
        cid_limit: 4,
        cid_len: 11,
        ack_threshold: 2,
        max_ack_delay_ms: 25,
        handshake_copies: 0,
        half_rtt: true,
        ..tight()
    };
    run(&Plan {
        seed: 65,
        segments: 5,
        preferred: true,
        finish_all: false,
        wires: [to_server, to_client],
        ends: [client, server],
        ops: vec![
            Op::Advance(0),
            Op::Open(Side::Server, Dir::Bi),
            Op::Replay {
                to: Direction::ToClient,
                index: 240,
                damaged: false,
                stranger: false,
            },
            Op::Step(1),
            Op::SendDatagram(Side::Server, 1_307),
            Op::Migrate {
                away: true,
                at_once: true,
            },
            Op::Open(Side::Client, Dir::Bi),
            Op::Garbage {
                to: Direction::ToClient,
                index: 34,
                keep: 18,
                len: 513,
            },
            Op::Open(Side::Server, Dir::Uni),
            Op::Rotate(Side::Client),
            Op::Open(Side::Client, Dir::Bi),
            Op::Replay {
                to: Direction::ToServer,
                index: 252,
                damaged: false,
                stranger: false,
            },
        ],
        ..Plan::default()
    });
}

/// The client moved at once, while the server's preferred address was still being probed, to a server that
/// asks its clients not to move.
#[test]
fn a_move_to_the_preferred_address_and_away_at_once_ends() {
    let server = Settings {
        bidi_streams: 2,
        uni_streams: 0,
        key_update_interval: 6,
        cid_limit: 2,
        search_up_to: Some(1472),
        initial_rtt_ms: 1,
        initial_window: Some(38_460),
        cid_len: 4,
        migration: false,
        handshake_copies: 0,
        ..Settings::default()
    };
    let client = Settings {
        bidi_streams: 0,
        uni_streams: 0,
        search_up_to: Some(1472),
        ..Settings::default()
    };
    let duplicating = Wire {
        duplicate: 9,
        ..far(10)
    };
    let late = Wire {
        late: 30,
        late_ms: 0,
        ..far(194)
    };
    run(&Plan {
        seed: 234,
        wires: [duplicating, late],
        ends: [client, server],
        retry: true,
        preferred: true,
        finish_all: false,
        ops: vec![
            Op::Advance(500),
            Op::Step(10),
            Op::Migrate {
                away: true,
                at_once: true,
            },
        ],
        ..Plan::default()
    });
}

/// Room for nothing, and several paths.
fn tight_on_several_paths() -> Settings {
    Settings {
        send_window: 50,
        datagram_queue: 1,
        handshake_copies: 0,
        multipath: Some(MultipathVersions::Rfc10069),
        ..tight()
    }
}

/// A NAT rebinding moved a path while it was being opened, to an address that had answered before: the path was never
/// regarded as open, and with the next rebinding it stayed in flight for good.
#[test]
fn a_path_that_moves_while_it_is_opened_is_opened() {
    let server = Settings {
        cid_limit: 3,
        ack_threshold: 3,
        max_ack_delay_ms: 42,
        ..tight_on_several_paths()
    };
    let slow = Wire {
        rate_kbps: Some(200),
        ..far(0)
    };
    run(&Plan {
        seed: 1,
        segments: 1,
        finish_all: false,
        wires: [far(8), slow],
        ends: [tight_on_several_paths(), server],
        ops: vec![
            Op::Advance(500),
            Op::OpenPath { away: true },
            Op::OpenPath { away: false },
            Op::Rebind { ip: false },
            Op::OpenPath { away: false },
            Op::Advance(272),
            Op::Migrate {
                away: true,
                at_once: false,
            },
            Op::Advance(227),
            Op::Step(7),
            Op::Rebind { ip: false },
            Op::Advance(7),
        ],
        ..Plan::default()
    });
}
