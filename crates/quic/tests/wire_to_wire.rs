//! Two endpoints joined by a perfect wire. Everything with delay, loss or hostility is tested on
//! `swiftwater-sim`.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod support;

use std::time::Duration;

use swiftwater_quic::{ConnectionError, Event, ReadOutcome, RetryPolicy, StreamEvent};
use swiftwater_units::Dir;

use support::{ALPN, Wire, establish};

/// Sends `len` bytes on one stream and returns what arrived.
fn transfer(wire: &mut Wire, len: usize) -> Vec<u8> {
    let data: Vec<u8> = (0..len).map(|i| (i * 31 % 251) as u8).collect();
    let id = wire.client.connection().open(Dir::Bi).unwrap();
    let (mut written, mut got) = (0, Vec::new());
    let mut accepted = false;
    for _ in 0..100_000 {
        if written < len {
            let stream = &mut wire.client.connection().send_stream(id);
            written += stream.write(&data[written..]).unwrap();
            if written == len {
                stream.finish().unwrap();
            }
        }
        wire.step(Duration::from_secs(1));
        accepted |= wire
            .server
            .connection()
            .accept(Dir::Bi)
            .is_some_and(|have| have == id);
        let mut buf = [0; 4096];
        if !accepted {
            continue;
        }
        loop {
            match wire
                .server
                .connection()
                .recv_stream(id)
                .read(&mut buf)
                .unwrap()
            {
                ReadOutcome::Data(n) => got.extend_from_slice(&buf[..n]),
                ReadOutcome::Blocked => break,
                ReadOutcome::Finished => {
                    assert!(got == data, "wrong bytes");
                    return got;
                }
            }
        }
    }
    panic!("{} of {len} bytes arrived, {written} written", got.len());
}

#[test]
fn a_connection_that_rested_goes_on_as_before() {
    let mut wire = Wire::new(false, RetryPolicy::Never);
    establish(&mut wire);
    let open = wire.client.connection().open(Dir::Bi).unwrap();
    wire.client
        .connection()
        .send_stream(open)
        .write(b"first ")
        .unwrap();
    for len in [1, 5000, 300_000] {
        // In the midst of it, too: something is on its way.
        wire.client.connection().release_idle_memory();
        wire.server.connection().release_idle_memory();
        assert_eq!(transfer(&mut wire, len).len(), len);
        wire.client.connection().release_idle_memory();
        wire.server.connection().release_idle_memory();
    }
    let mut stream = wire.client.connection().send_stream(open);
    stream.write(b"second").unwrap();
    for _ in 0..10 {
        wire.step(Duration::from_secs(1));
        wire.server.connection().release_idle_memory();
    }
    let mut buf = [0; 100];
    let outcome = wire.server.connection().recv_stream(open).read(&mut buf);
    assert_eq!(outcome, Ok(ReadOutcome::Data(12)));
    assert_eq!(buf[..12], *b"first second");
    let stats = wire.server.connection().stats();
    assert!(stats.frames_sent.total() > 0 && stats.packets_dropped.get() == 0);
}

#[test]
fn null_handshake_and_transfer() {
    let mut wire = Wire::new(false, RetryPolicy::Never);
    establish(&mut wire);
    assert_eq!(transfer(&mut wire, 5_000_000).len(), 5_000_000);
}

#[test]
fn real_handshake_and_transfer() {
    let mut wire = Wire::new(true, RetryPolicy::Never);
    establish(&mut wire);
    assert_eq!(wire.client.connection().alpn(), Some(ALPN.as_bytes()));
    assert_eq!(wire.server.connection().alpn(), Some(ALPN.as_bytes()));
    assert_eq!(transfer(&mut wire, 5_000_000).len(), 5_000_000);
    wire.step(Duration::from_secs(1));
    let finished = |event: &Event| matches!(event, Event::Stream(StreamEvent::Finished { .. }));
    assert!(wire.client.events.iter().any(finished));
}

#[test]
fn handshake_through_retry() {
    let mut wire = Wire::new(true, RetryPolicy::Always);
    establish(&mut wire);
    assert_eq!(transfer(&mut wire, 10_000).len(), 10_000);
}

#[test]
fn the_peer_receives_why_the_application_closed() {
    let mut wire = Wire::new(true, RetryPolicy::Never);
    establish(&mut wire);
    let now = wire.now;
    wire.client.connection().close(now, 42, b"done");
    while wire.step(Duration::from_secs(60)) {}
    let reason = swiftwater_quic::ConnectionError::PeerApplication {
        code: 42,
        reason: b"done".to_vec(),
    };
    assert!(wire.server.events.contains(&Event::Closed { reason }));
    assert!(wire.server.connection().is_drained());
    assert!(wire.client.connection().is_drained());
}

/// A connection that has sent a little when its process is stopped.
fn paused_for(pause: Duration) -> Wire {
    let mut wire = Wire::new(false, RetryPolicy::Never);
    establish(&mut wire);
    transfer(&mut wire, 10_000);
    let id = wire.client.connection().open(Dir::Uni).unwrap();
    let connection = wire.client.connection();
    connection.send_stream(id).write(&[7; 5000]).unwrap();
    wire.client_pauses(pause);
    wire
}

/// The time that acknowledgements lay about while the process was stopped is no round-trip time: it
/// would make every later timeout wait for minutes.
#[test]
fn a_pause_of_the_process_is_no_round_trip() {
    for seconds in [2, 10, 25] {
        let mut wire = paused_for(Duration::from_secs(seconds));
        wire.step(Duration::ZERO);
        let stats = wire.client.connection().stats();
        assert!(stats.paths[0].smoothed_rtt < Duration::from_millis(100));
        assert!(stats.paths[0].rtt_var < Duration::from_millis(100));
        // The next sample counts again.
        transfer(&mut wire, 10_000);
        assert!(wire.client.connection().close_reason().is_none());
    }
}

/// Packets that came before the idle timeout, but are processed after it, don't keep the connection.
#[test]
fn packets_after_the_idle_timeout_are_too_late() {
    let mut wire = paused_for(Duration::from_secs(31));
    wire.step(Duration::ZERO);
    let reason = wire.client.connection().close_reason().cloned();
    assert_eq!(reason, Some(ConnectionError::TimedOut));
}
