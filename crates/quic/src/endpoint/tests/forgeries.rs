//! Packets that fail authentication end a connection in the long run (RFC 9001, section 6.6).

use swiftwater_units::Instant;
use swiftwater_wire::ErrorCode;

use super::toy::*;
use crate::config::RetryPolicy;
use crate::error::ConnectionError;
use crate::events::Event;

const PING: u8 = 1;

#[test]
fn too_many_forgeries_close_a_connection() {
    let mut server = server(RetryPolicy::Never);
    let first = numbered_initial(cid(&[1; 8]), cid(&[1, 0xee]), &[], 1200, 0, PING);
    let (_, mut connection) = accepted(route(&mut server, 1, &first));
    let now = Instant::from_millis(100_000);
    let mut closed = Vec::new();
    for number in 1..=INTEGRITY_LIMIT {
        assert!(closed.is_empty(), "before {number}");
        let number = number as u16;
        let mut forged = numbered_initial(cid(&[1; 8]), cid(&[1, 0xee]), &[], 1200, number, PING);
        forged[1199] ^= 1;
        connection.handle_datagram(now, &meta(1), &mut forged);
        closed = std::iter::from_fn(|| connection.poll_event())
            .filter(|event| matches!(event, Event::Closed { .. }))
            .collect();
    }
    assert!(
        matches!(&closed[..], [Event::Closed { reason: ConnectionError::Transport(error) }]
            if error.code == ErrorCode::AEAD_LIMIT_REACHED),
        "{closed:?}"
    );
}
