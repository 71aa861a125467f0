//! TcpLimits of one server on its clients.

use std::time::Duration;

use crate::web::response_budget::ResponseBudget;
#[cfg(doc)]
use crate::web::shared_limit::SharedLimit;
use crate::web::timed_body::Pace;

/// TcpLimits of a [`TcpServer`](super::TcpServer) on all state that clients can cause, and on every
/// wait.
#[derive(Debug, Clone)]
pub struct TcpLimits {
    /// Simultaneous connections, at least 1. Further ones wait in the backlog of the operating
    /// system. Default: 10 000.
    pub connections: usize,
    /// Clients share `connections` by their addresses ([`SharedLimit`]): beyond a client's share its new
    /// connections are closed at once. Not suitable behind a proxy, where all clients have the proxy's
    /// address. Default: false; servers of the façade crate enable it.
    pub share_by_address: bool,
    /// Time for the TLS handshake. Default: 10 s.
    pub handshake_timeout: Duration,
    /// Bytes of the head of a request, at least 8192, which is hyper's minimum. HTTP/1.1 counts the
    /// text, HTTP/2 as its SETTINGS_MAX_HEADER_LIST_SIZE does (RFC 9113, section 6.5.2). Default:
    /// 32 KiB.
    pub header_size: u32,
    /// Fields in the head of a request; more are answered with 431. Default: 100.
    pub header_count: usize,
    /// Time for the head of an HTTP/1.1 request, counted from the end of the previous one: it also
    /// bounds idle connections. Default: 15 s.
    pub header_timeout: Duration,
    /// Minimum rate of request bodies while the service reads them. Default: a gap of at most 30 s,
    /// and 500 bytes per second after 10 s.
    pub body_pace: Pace,
    /// How long a connection may be without a request: before its first, between requests. Then it
    /// is closed gracefully. Default: 60 s.
    pub idle_timeout: Duration,
    /// How long a client may leave a response unread, whatever else it does. Then the response is aborted,
    /// at the latest after 1.5 times this: HTTP/2 resets the stream, HTTP/1.1 ends the connection; HTTP/2
    /// also ends it if the end of the response was already written. Default: 30 s.
    pub send_timeout: Duration,
    /// Concurrent HTTP/2 streams per connection. Default: 128.
    pub concurrent_streams: u32,
    /// Receive window of an HTTP/2 connection for request bodies, bytes, at least 65 535 (RFC 9113,
    /// section 6.9.2). Default: 1 MiB.
    pub connection_window: u32,
    /// Bytes of response that are buffered per HTTP/2 stream. Default: 64 KiB.
    pub send_buffer: usize,
    /// Memory of all responses for content that clients have not read yet: a budget that several
    /// servers can share. Default: one of [256
    /// MiB](crate::web::response_budget::ResponseBudget::DEFAULT_BYTES) for each server.
    pub response_budget: ResponseBudget,
    /// How long a request may continue after its response is complete, if the service did not read its
    /// body to the end. The rest is discarded, so that a client that is still sending can read the
    /// response. Then HTTP/2 resets the stream (RFC 9113, section 8.1), HTTP/1.1 ends the connection.
    /// Zero: at once. Default: 2 s.
    pub linger_time: Duration,
    /// Most bytes of such a body that are discarded; beyond it the body is not read, and flow control stops
    /// the client. Default: 16 MiB.
    pub linger_bytes: usize,
    /// HTTP/2 sends PING after this time without a frame of the client, and closes the connection if no answer
    /// arrives within the same time again. Default: 20 s.
    pub ping_interval: Duration,
    /// HTTP/2 streams that a client may reset before they were processed. One more ends the
    /// connection with ENHANCE_YOUR_CALM. Default: 20.
    pub pending_resets: usize,
    /// Requests that a client may abandon within [`abandon_window`](Self::abandon_window): by
    /// resetting streams in progress. One more ends the connection. Default: 200.
    pub abandoned: u32,
    /// The period over which abandoned requests are counted. Default: 10 s.
    pub abandon_window: Duration,
}

impl Default for TcpLimits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            share_by_address: false,
            handshake_timeout: Duration::from_secs(10),
            header_size: 32 * 1024,
            header_count: 100,
            header_timeout: Duration::from_secs(15),
            body_pace: Pace {
                gap: Duration::from_secs(30),
                minimum_rate: 500,
                grace: Duration::from_secs(10),
            },
            idle_timeout: Duration::from_secs(60),
            send_timeout: Duration::from_secs(30),
            concurrent_streams: 128,
            connection_window: 1024 * 1024,
            send_buffer: 64 * 1024,
            response_budget: ResponseBudget::default(),
            linger_time: Duration::from_secs(2),
            linger_bytes: 16 * 1024 * 1024,
            ping_interval: Duration::from_secs(20),
            pending_resets: 20,
            abandoned: 200,
            abandon_window: Duration::from_secs(10),
        }
    }
}
