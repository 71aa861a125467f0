//! A connection that has used every packet number (RFC 9000, section 12.3).

use swiftwater_units::{Instant, PacketNumber};

use super::toy::*;
use crate::config::RetryPolicy;
use crate::connection::Connection;
use crate::crypto::EncryptionLevel;
use crate::error::ConnectionError;
use crate::events::{EndpointEvent, Event};

const PING: u8 = 1;

fn now() -> Instant {
    Instant::from_millis(100_000)
}

/// A PING of the client, which the server acknowledges at once.
fn ping(connection: &mut Connection, number: u16) {
    let mut packet = numbered_initial(cid(&[1; 8]), cid(&[1, 0xee]), &[], 1200, number, PING);
    connection.handle_datagram(now(), &meta(1), &mut packet);
}

/// A server's connection whose next packet has this number.
fn about_to_send(number: PacketNumber) -> Box<Connection> {
    let mut server = server(RetryPolicy::Never);
    let first = numbered_initial(cid(&[1; 8]), cid(&[1, 0xee]), &[], 1200, 0, PING);
    let (_, mut connection) = accepted(route(&mut server, 1, &first));
    connection.start_numbers_at(EncryptionLevel::Initial, number);
    ping(&mut connection, 0);
    connection
}

fn sends(connection: &mut Connection) -> usize {
    let mut buf = [0; 1500];
    std::iter::from_fn(|| connection.poll_transmit(now(), 1, &mut buf)).count()
}

#[test]
fn nothing_is_sent_after_the_last_packet_number() {
    let last = PacketNumber::MAX;
    let mut connection = about_to_send(PacketNumber::new(last.get() - 1));
    assert_eq!(sends(&mut connection), 1);
    assert!(!connection.is_drained());
    ping(&mut connection, 1);
    // The packet with number 2^62 - 1; no close follows it.
    assert_eq!(sends(&mut connection), 1);
    assert!(connection.is_drained());
    let mut events = std::iter::from_fn(|| connection.poll_event());
    let reason = ConnectionError::PacketNumbersExhausted;
    assert!(events.any(|event| event
        == Event::Closed {
            reason: reason.clone()
        }));
    let mut told = std::iter::from_fn(|| connection.poll_endpoint_event());
    assert!(told.any(|event| matches!(event, EndpointEvent::Drained)));
    ping(&mut connection, 2);
    assert_eq!(sends(&mut connection), 0);
}

#[test]
fn a_close_takes_no_number_beyond_the_last() {
    let mut connection = about_to_send(PacketNumber::MAX);
    connection.close(now(), 7, b"");
    assert_eq!(sends(&mut connection), 1);
    assert!(connection.is_drained());
    // The close isn't repeated.
    ping(&mut connection, 1);
    assert_eq!(sends(&mut connection), 0);
}
