//! Events that the engine reports to its driver.

use bytes::Bytes;
use http::{request, response};
use swiftwater_quic::{ConnectionError, DatagramFate};
use swiftwater_units::{Dir, StreamId};

use super::code::Code;
use super::priority::Priority;
use super::settings::Settings;

/// Something that happened on an HTTP/3 connection. For a request, no event follows
/// [`Event::Reset`] or the completion of both directions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Requests can be sent (client only). Reported once, as early as resumption permits.
    Ready,
    /// The peer's settings were received. Reported once.
    Settings(Settings),
    /// A request's head was received (server only).
    Request {
        /// Its stream.
        id: StreamId,
        /// Method, URI and fields; [`ConnectProtocol`](super::ConnectProtocol) in its extensions if it is an
        /// extended CONNECT.
        head: Box<request::Parts>,
        /// It was received as early data and may be a replay (RFC 8470).
        early: bool,
        /// All of the content, if the message arrived as a whole with at most 4 KiB of it, and without trailers; else
        /// empty.
        content: Bytes,
        /// True if there is nothing to read beyond `content`.
        end: bool,
    },
    /// A final response's head was received (client only).
    Response {
        /// Its stream.
        id: StreamId,
        /// Status and fields.
        head: Box<response::Parts>,
        /// All of the content, if the message arrived as a whole with at most 4 KiB of it, and without trailers; else
        /// empty.
        content: Bytes,
        /// True if there is nothing to read beyond `content`.
        end: bool,
    },
    /// An informational response (1xx) was received; others follow (client only).
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
    /// Content can be written after a write was blocked.
    Writable {
        /// The stream.
        id: StreamId,
    },
    /// The peer has acknowledged all of this end's message, including its end.
    Finished {
        /// The stream.
        id: StreamId,
    },
    /// The peer sent STOP_SENDING; its own message may still be read.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The error code.
        code: Code,
    },
    /// The request ended early: the peer reset it, it was malformed, or a GOAWAY excluded it.
    /// Further writes have no effect.
    Reset {
        /// The stream.
        id: StreamId,
        /// The cause.
        code: Code,
        /// True if the server did not process the request, so that it can be sent again on another
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
    /// The peer sent GOAWAY: on a client, requests of stream `id` and above were not and will not be
    /// processed (RFC 9114, section 5.2).
    GoAway {
        /// The first excluded stream; on a server a push ID, which has no effect.
        id: u64,
    },
    /// An HTTP datagram of a request was received (RFC 9297).
    Datagram {
        /// The request's stream.
        id: StreamId,
        /// Its payload.
        payload: Bytes,
    },
    /// Datagrams can be sent again after the queue was full.
    DatagramsUnblocked,
    /// What became of a datagram that was sent with a key; once for each.
    DatagramFate {
        /// The request's stream.
        id: StreamId,
        /// The application's key ([`DatagramOptions::key`](swiftwater_quic::DatagramOptions::key)).
        key: u64,
        /// What became of it. A datagram that was declared lost may have been received all the same.
        fate: DatagramFate,
    },
    /// The client opened a stream of a WebTransport session (server only). The stream belongs to the
    /// application from here on.
    SessionStream {
        /// The session: the stream of its CONNECT request.
        session: StreamId,
        /// The new stream.
        id: StreamId,
        /// Bidirectional or unidirectional.
        dir: Dir,
    },
    /// After [`Connection::shutdown`](super::Connection::shutdown): the last request is complete
    /// and the connection closes.
    ShutdownComplete,
    /// The connection and all its requests are closed. The last event.
    Closed {
        /// The cause.
        reason: ConnectionError,
    },
}
