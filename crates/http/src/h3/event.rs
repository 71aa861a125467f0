//! What the engine tells its driver.

use bytes::Bytes;
use http::{request, response};
use swiftwater_quic::ConnectionError;
use swiftwater_units::{Dir, StreamId};

use super::code::Code;
use super::priority::Priority;
use super::settings::Settings;

/// Something that happened on an HTTP/3 connection. Of a request, nothing is told any more after
/// [`Event::Reset`] or once both its directions are over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Requests can be sent (client only). Told once, as early as resumption permits.
    Ready,
    /// The peer's settings came, once.
    Settings(Settings),
    /// A request came (server only).
    Request {
        /// Its stream.
        id: StreamId,
        /// Method, URI and fields; [`Protocol`](super::Protocol) in its extensions if it is an
        /// extended CONNECT.
        head: Box<request::Parts>,
        /// It came as early data and may be a replay (RFC 8470).
        early: bool,
        /// True if it is known to have neither content nor trailers.
        end: bool,
    },
    /// A final response came (client only).
    Response {
        /// Its stream.
        id: StreamId,
        /// Status and fields.
        head: Box<response::Parts>,
        /// True if it is known to have neither content nor trailers.
        end: bool,
    },
    /// An informational response (1xx) came; others follow (client only).
    Informational {
        /// Its stream.
        id: StreamId,
        /// Status and fields.
        head: Box<response::Parts>,
    },
    /// Content, trailers or the end can be read after a read had to wait.
    Readable {
        /// The stream.
        id: StreamId,
    },
    /// There is room to write after a write had to wait.
    Writable {
        /// The stream.
        id: StreamId,
    },
    /// The peer has received all that we sent of the message, the end included.
    Finished {
        /// The stream.
        id: StreamId,
    },
    /// The peer wants no more of what we send; what it sends may still be read.
    Stopped {
        /// The stream.
        id: StreamId,
        /// Why.
        code: Code,
    },
    /// The request is over before its time: the peer reset it, it was at fault, or a GOAWAY left it
    /// out. What is still to be written goes nowhere.
    Reset {
        /// The stream.
        id: StreamId,
        /// Why.
        code: Code,
        /// True if the server did nothing with the request, so that it can be sent again, on another
        /// connection (RFC 9114, sections 4.1.1 and 5.2). Always false on a server.
        unprocessed: bool,
    },
    /// More requests can be sent after one was refused with
    /// [`RequestError::Blocked`](super::RequestError::Blocked) (client only).
    RequestsAvailable,
    /// The client gave a request another priority (RFC 9218, section 7); already applied, unless the
    /// server has chosen one.
    Priority {
        /// The request's stream.
        id: StreamId,
        /// The new priority.
        priority: Priority,
    },
    /// The peer takes or sends no more requests: on a client, none of stream `id` or above was or will
    /// be processed (RFC 9114, section 5.2).
    GoAway {
        /// The first stream left out; on a server a push ID, without meaning here.
        id: u64,
    },
    /// A datagram of a request came (RFC 9297).
    Datagram {
        /// The request's stream.
        id: StreamId,
        /// Its payload.
        payload: Bytes,
    },
    /// There is room for datagrams again.
    DatagramsUnblocked,
    /// The client opened a stream of a WebTransport session (server only). From here on the stream is
    /// the application's.
    SessionStream {
        /// The session: the stream of its CONNECT request.
        session: StreamId,
        /// The new stream.
        id: StreamId,
        /// Bidirectional, or from the peer only.
        dir: Dir,
    },
    /// After [`Connection::shutdown`](super::Connection::shutdown) the last request is over; the
    /// connection closes.
    ShutdownComplete,
    /// The connection is over, and all requests with it. The last event.
    Closed {
        /// Why.
        reason: ConnectionError,
    },
}
