//! Streams of the wrong kind or number, and critical streams that end (RFC 9114, section 6).

use swiftwater_http::h3::{Code, Config, Limits, Settings};
use swiftwater_units::Dir;
use swiftwater_units::Side::{Client, Server};
use swiftwater_units::StreamId;

use crate::support::peer::{CONTROL, Duel, get};

/// The engine's own streams, as far as received.
fn streams_of_the_engine(duel: &mut Duel) -> Vec<Vec<u8>> {
    let mut streams: Vec<(StreamId, Vec<u8>)> = Vec::new();
    assert!(duel.run(|duel| {
        while let Some(id) = duel.quic().accept(Dir::Uni) {
            streams.push((id, Vec::new()));
        }
        for (id, bytes) in &mut streams {
            bytes.extend(duel.read(*id).0);
        }
        let control = streams.iter().find(|(_, bytes)| bytes.starts_with(&[0x00]));
        control.is_some_and(|(_, bytes)| bytes.len() > 2) && streams.len() == 3
    }));
    streams.into_iter().map(|(_, bytes)| bytes).collect()
}

#[test]
fn settings_are_sent_first_and_before_anything_came() {
    for engine in [Client, Server] {
        let mut duel = Duel::new(engine, Config::default());
        let streams = streams_of_the_engine(&mut duel);
        let control = streams.iter().find(|bytes| bytes[0] == 0x00).unwrap();
        // SETTINGS, with a length of one byte.
        assert_eq!(control[1], 0x04);
        let len = usize::from(control[2]);
        assert!(len < 0x40);
        let settings = Settings::from_bytes(&control[3..3 + len]).expect("no fault to be found");
        assert!(settings.max_field_section_size.is_some());
    }
}

#[test]
fn three_unidirectional_streams_are_permitted_at_least() {
    for engine in [Client, Server] {
        let mut duel = Duel::new(engine, Config::default());
        let quic = duel.world.pair.connection(engine).unwrap();
        assert!(quic.permitted_streams(Dir::Uni) >= 3);
        for bytes in [CONTROL, &[0x02], &[0x03]] {
            duel.uni(bytes);
        }
        duel.survives();
    }
}

#[test]
fn unknown_codes_mean_no_error() {
    let mut duel = Duel::ready(Server, Config::default());
    for code in [0x0, 0x21, 0x1ff, 0x1234_5678] {
        let id = duel.bidi(&get(), false);
        assert!(duel.run(|duel| duel.world.server.messages.contains_key(&id)));
        duel.quic().send_stream(id).reset(code).unwrap();
        duel.quic().recv_stream(id).stop(code).unwrap();
        assert!(duel.run(|duel| {
            let message = &duel.world.server.messages[&id];
            message.reset == Some((Code(code), false)) || message.stopped == Some(Code(code))
        }));
        duel.survives();
    }
}

#[test]
fn control_and_qpack_streams_come_once() {
    for engine in [Client, Server] {
        for bytes in [CONTROL, &[0x02], &[0x03]] {
            let mut duel = Duel::new(engine, Config::default());
            duel.uni(bytes);
            duel.uni(bytes);
            let code = duel.closed_with();
            assert_eq!(code, Code::STREAM_CREATION_ERROR, "{bytes:x?}");
        }
    }
}

#[test]
fn critical_streams_must_not_end() {
    for engine in [Client, Server] {
        for bytes in [CONTROL, &[0x02], &[0x03]] {
            for reset in [false, true] {
                let mut duel = Duel::new(engine, Config::default());
                let id = duel.uni(bytes);
                duel.survives();
                let mut stream = duel.quic().send_stream(id);
                if reset {
                    stream.reset(0x100).unwrap();
                } else {
                    stream.finish().unwrap();
                }
                let code = duel.closed_with();
                assert_eq!(code, Code::CLOSED_CRITICAL_STREAM, "{bytes:x?}");
            }
        }
    }
}

#[test]
fn our_critical_streams_must_not_be_stopped() {
    for engine in [Client, Server] {
        for nth in 0..3 {
            let mut duel = Duel::new(engine, Config::default());
            let mut streams = Vec::new();
            assert!(duel.run(|duel| {
                while let Some(id) = duel.quic().accept(Dir::Uni) {
                    streams.push(id);
                }
                streams.len() == 3
            }));
            duel.quic().recv_stream(streams[nth]).stop(0x100).unwrap();
            assert_eq!(duel.closed_with(), Code::CLOSED_CRITICAL_STREAM);
        }
    }
}

#[test]
fn pushes_are_not_permitted() {
    let mut duel = Duel::ready(Client, Config::default());
    duel.uni(&[0x01, 0x00]);
    assert_eq!(duel.closed_with(), Code::ID_ERROR);
    let mut duel = Duel::ready(Server, Config::default());
    duel.uni(&[0x01, 0x00]);
    assert_eq!(duel.closed_with(), Code::STREAM_CREATION_ERROR);
}

#[test]
fn servers_open_no_bidirectional_streams() {
    let mut duel = Duel::ready(Client, Config::default());
    duel.bidi(&get(), false);
    assert_eq!(duel.closed_with(), Code::STREAM_CREATION_ERROR);
}

#[test]
fn unknown_streams_are_stopped_and_harmless() {
    for engine in [Client, Server] {
        let mut duel = Duel::ready(engine, Config::default());
        for value in [
            &[0x21][..],
            &[0x40, 0x54],
            &[0xc0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        ] {
            let id = duel.uni(value);
            assert_eq!(duel.stopped_with(id), Code::STREAM_CREATION_ERROR);
        }
        // One that ends before it says what it is.
        let id = duel.uni(&[0x40]);
        duel.quic().send_stream(id).finish().unwrap();
        let id = duel.uni(&[]);
        duel.quic().send_stream(id).reset(7).unwrap();
        duel.survives();
    }
}

#[test]
fn too_many_unknown_streams_are_too_much() {
    let limits = Limits {
        max_unknown_streams: 5,
        ..Limits::default()
    };
    let config = Config {
        limits,
        ..Config::default()
    };
    let mut duel = Duel::ready(Server, config);
    for _ in 0..5 {
        duel.uni(&[0x21]);
    }
    duel.survives();
    for _ in 0..5 {
        duel.uni(&[0x21]);
    }
    assert_eq!(duel.closed_with(), Code::EXCESSIVE_LOAD);
}

#[test]
fn instructions_that_cannot_be_carried_out_close_the_connection() {
    // A capacity beyond ours, and an acknowledgement of nothing.
    let table: [(&[u8], Code); 2] = [
        (
            &[0x02, 0x3f, 0xe1, 0xff, 0x7f],
            Code::QPACK_ENCODER_STREAM_ERROR,
        ),
        (&[0x03, 0x80], Code::QPACK_DECODER_STREAM_ERROR),
    ];
    for (bytes, code) in table {
        let mut duel = Duel::ready(Server, Config::default());
        duel.uni(bytes);
        assert_eq!(duel.closed_with(), code);
    }
}
