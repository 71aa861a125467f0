//! Protocols that run on a connection inside its worker: they see events where they arise, under the
//! connection's lock, without a task or a channel in between.
//!
//! What they are made of is theirs; here is only how they are called.

use std::task::Waker;

use swiftwater_quic::{Connection, Event};
use swiftwater_units::Instant;

/// A protocol on top of a connection, such as HTTP/3. Given to
/// [`Connection::host`](crate::Connection::host).
///
/// All methods are called under the connection's lock: they must not block, and must not use any
/// handle of the same connection. Tasks to be woken go into `wakers`, and are woken when the lock is
/// free.
pub trait Application: Send + Sync {
    /// Something happened on the connection: streams, datagrams, stages of the handshake, the end.
    /// Stream and datagram events are delivered nowhere else.
    fn on_event(
        &self,
        now: Instant,
        connection: &mut Connection,
        event: &Event,
        wakers: &mut Vec<Waker>,
    );

    /// When [`Application::on_timeout`] is to be called. Read after each call of another method, and after
    /// [`Connection::with_core`](crate::Connection::with_core).
    fn next_timeout(&self) -> Option<Instant> {
        None
    }

    /// The time of [`Application::next_timeout`] has come.
    fn on_timeout(&self, now: Instant, connection: &mut Connection, wakers: &mut Vec<Waker>) {
        let _ = (now, connection, wakers);
    }
}
