//! Sends requests to one upstream, over the protocol that it speaks.

use std::sync::atomic::{AtomicBool, Ordering};

use http::uri::Scheme;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::connector::Connector;
use super::error::ProxyError;
use super::http2::{Failure, Http2};
use super::link::{ALPN_HTTP2, ALPN_HTTP11};
use super::options::ProxyOptions;
use super::upload::Upload;
use super::upstream::{Speaks, Upstream};

/// hyper's smallest buffer for the head of a response.
const MIN_HEADER_BUFFER: usize = 8192;

/// Connections to one upstream.
#[derive(Debug)]
pub(super) struct Sender {
    speaks: Speaks,
    http1: Client<Connector, Upload>,
    /// Of `http1`.
    connector: Connector,
    http2: Option<Http2>,
    /// The upstream chose HTTP/1.1 over TLS.
    refuses_http2: AtomicBool,
}

impl Sender {
    pub(super) fn new(upstream: &Upstream, options: &ProxyOptions) -> Self {
        let header_size = options.header_size.max(MIN_HEADER_BUFFER);
        let connector = Connector::new(upstream, options, &[ALPN_HTTP11]);
        let http1 = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(options.idle_timeout)
            .pool_max_idle_per_host(options.idle_connections)
            .http1_max_buf_size(header_size)
            .build(connector.clone());
        let http2 = |scheme| {
            let connector = Connector::new(upstream, options, &[ALPN_HTTP2, ALPN_HTTP11]);
            Http2::new(connector, scheme, options.connect_timeout, header_size)
        };
        Self {
            speaks: upstream.speaks,
            http1,
            connector,
            http2: match upstream.speaks {
                Speaks::Http1 => None,
                Speaks::Http2 => Some(http2(Scheme::HTTP)),
                Speaks::Tls => Some(http2(Scheme::HTTPS)),
            },
            refuses_http2: AtomicBool::new(false),
        }
    }

    /// Whether upgrades are extended CONNECT of HTTP/2: only where the upstream speaks nothing else.
    pub(super) fn upgrades_over_http2(&self) -> bool {
        self.speaks == Speaks::Http2
    }

    /// Whether requests are sent over HTTP/1.1, as far as it is known.
    pub(super) fn is_http1(&self) -> bool {
        self.http2.is_none() || self.refuses_http2.load(Ordering::Relaxed)
    }

    /// Sends `request`, a request of HTTP/1.1; over that version if it is an `upgrade`, unless it is one
    /// [over HTTP/2](Self::upgrades_over_http2).
    pub(super) async fn send(
        &self,
        mut request: Request<Upload>,
        upgrade: bool,
    ) -> Result<Response<Incoming>, ProxyError> {
        if let Some(http2) = &self.http2
            && (!upgrade || self.upgrades_over_http2())
            && !self.refuses_http2.load(Ordering::Relaxed)
        {
            match http2.send(request).await {
                Ok(response) => return Ok(response),
                Err(Failure::Connect(error)) => return Err(ProxyError::connect(error)),
                Err(Failure::NoExtendedConnect) => return Err(ProxyError::NoExtendedConnect),
                Err(Failure::Request(error)) => return Err(ProxyError::Upstream(error.into())),
                Err(Failure::NotHttp2(unsent)) => {
                    let (unsent, link) = *unsent;
                    self.refuses_http2.store(true, Ordering::Relaxed);
                    self.connector.put_back(link);
                    request = unsent;
                }
            }
        }
        Ok(self.http1.request(request).await?)
    }
}
