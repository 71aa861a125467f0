//! Configuration of the proxy.

use std::time::Duration;

use http::uri::Authority;

use super::upstream::UpstreamTls;

/// How requests are forwarded.
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// Whether the client's host is sent to the upstream, instead of the upstream's own. Default:
    /// no.
    pub preserve_host: bool,
    /// The host that is sent to the upstream, whatever the client's and its own are. Default: none.
    pub host: Option<Authority>,
    /// TLS to the upstream: without it those with `https://` can't be reached. Default: none.
    pub tls: Option<UpstreamTls>,
    /// Whether the proxy is one of several routes that are chosen by the path: then paths are rejected
    /// that an upstream might resolve to below another route, with a segment `.` or `..`, also before a
    /// `;`, with a backslash, or with an encoded slash or backslash. Default: no.
    pub behind_route: bool,
    /// Whether `Forwarded` and `X-Forwarded-…` of requests are trusted and extended, as required
    /// behind another proxy. Otherwise they are replaced, and `X-Real-IP`, `X-Original-URL` and
    /// `X-Rewrite-URL` are removed. The last address in `X-Forwarded-For` then is the client's, as
    /// [`in_flight`](Self::in_flight) counts it. Default: no.
    pub trust_forwarded: bool,
    /// The name of this proxy in `Via`, a token (RFC 9110, section 7.6.3). Default: `swiftwater`.
    pub pseudonym: String,
    /// Time to connect. Default: 5 s.
    pub connect_timeout: Duration,
    /// Time for the head of the response, counted from the last piece of the request. Default:
    /// 60 s.
    pub head_timeout: Duration,
    /// The longest gap between pieces of the response. Default: 120 s.
    pub body_gap: Duration,
    /// Whether WebSocket is forwarded (RFC 6455), from clients of every version of HTTP. Default: yes.
    pub websocket: bool,
    /// How long a WebSocket connection may be without a byte either way; at most 10 s once the client has ended it.
    /// Default: 10 minutes.
    pub websocket_timeout: Duration,
    /// How long a body waits for the upstream's 100 (Continue), if the client expects it, before it
    /// is sent anyway (RFC 9110, section 10.1.1). Default: 1 s.
    pub continue_timeout: Duration,
    /// Idle connections in the pool. Default: 64.
    pub idle_connections: usize,
    /// How long they stay in the pool. Default: 60 s.
    pub idle_timeout: Duration,
    /// Concurrent requests; further ones are answered with 503, and so are those of a client that has
    /// more in progress than are free ([`SharedLimit`](crate::web::shared_limit::SharedLimit)). At least
    /// 1. Default: 4096.
    pub in_flight: usize,
    /// Bytes of the head of a response, at least 8192. Default: 64 KiB.
    pub header_size: usize,
}

impl Default for ProxyOptions {
    fn default() -> Self {
        Self {
            preserve_host: false,
            host: None,
            tls: None,
            behind_route: false,
            trust_forwarded: false,
            pseudonym: "swiftwater".to_owned(),
            connect_timeout: Duration::from_secs(5),
            head_timeout: Duration::from_secs(60),
            body_gap: Duration::from_secs(120),
            websocket: true,
            websocket_timeout: Duration::from_secs(600),
            continue_timeout: Duration::from_secs(1),
            idle_connections: 64,
            idle_timeout: Duration::from_secs(60),
            in_flight: 4096,
            header_size: 64 * 1024,
        }
    }
}
