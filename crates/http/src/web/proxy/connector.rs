//! Opens connections to the upstream.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tower::{Service, ServiceExt};

use super::link::{Link, Wire};
use super::options::ProxyOptions;
use super::upstream::Upstream;
use crate::web::body::BoxError;

/// How long a connection that was put back may wait for its use.
const SPARE_FOR: Duration = Duration::from_secs(1);

/// Why there can be no connection, whatever the upstream does.
#[derive(Debug, Error)]
enum Unreachable {
    #[error("there is no configuration of TLS for an upstream")]
    NoTls,
    #[error("the upstream's host is neither a name nor an address")]
    Name,
}

/// Opens connections to one upstream with one list of protocols.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    place: Place,
    tls: Option<Result<Tls, Arc<Unreachable>>>,
    timeout: Duration,
    /// A connection that turned out to speak another protocol than was hoped for.
    spare: Arc<Mutex<Option<(Link, Instant)>>>,
}

#[derive(Debug, Clone)]
enum Place {
    Network(HttpConnector, Uri),
    #[cfg(unix)]
    Socket(Arc<std::path::Path>),
}

#[derive(Clone)]
struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Connector {
    /// To `upstream`; over TLS, `protocols` are offered (RFC 7301).
    pub(super) fn new(upstream: &Upstream, options: &ProxyOptions, protocols: &[&[u8]]) -> Self {
        let tls = upstream
            .is_secure()
            .then(|| tls(upstream, options, protocols).map_err(Arc::new));
        Self {
            place: Place::new(upstream, options.connect_timeout),
            tls,
            timeout: options.connect_timeout,
            spare: Arc::default(),
        }
    }

    /// Ends connections over TCP whose peer acknowledges nothing for `time`, on systems that can do it.
    pub(super) fn give_up_after(mut self, time: Duration) -> Self {
        #[cfg(any(target_os = "android", target_os = "linux"))]
        if let Place::Network(http, _) = &mut self.place {
            http.set_tcp_user_timeout(Some(time));
        }
        #[cfg(not(any(target_os = "android", target_os = "linux")))]
        let _ = (&mut self, time);
        self
    }

    /// The next connection is `link`.
    pub(super) fn put_back(&self, link: Link) {
        let spare = Some((link, Instant::now()));
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = spare;
    }

    /// A connection.
    pub(super) async fn connect(self) -> Result<Link, BoxError> {
        let spare = {
            let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
            spare.take()
        };
        // An older one may be closed by now.
        if let Some((link, since)) = spare
            && since.elapsed() < SPARE_FOR
        {
            return Ok(link);
        }
        let connected = timeout(self.timeout, async {
            let wire = self.place.connect().await?;
            let Some(tls) = self.tls else {
                return Ok(Link::new(wire));
            };
            let Tls { connector, name } = tls?;
            let stream = connector.connect(name, wire).await?;
            Ok(Link::secure(stream))
        });
        let connected = connected.await;
        connected.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
    }
}

impl Place {
    fn new(upstream: &Upstream, timeout: Duration) -> Self {
        #[cfg(unix)]
        if let Some(socket) = &upstream.socket {
            return Self::Socket(socket.as_path().into());
        }
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        http.set_connect_timeout(Some(timeout));
        let host = upstream.authority.host();
        // The host was parsed as a part of a URI.
        let uri = format!("http://{host}:{}/", upstream.port()).parse();
        Self::Network(http, uri.unwrap_or_default())
    }

    async fn connect(self) -> Result<Wire, BoxError> {
        match self {
            Self::Network(http, uri) => {
                let connected = http.oneshot(uri).await?;
                Ok(Wire::Tcp(connected.into_inner()))
            }
            #[cfg(unix)]
            Self::Socket(path) => Ok(Wire::Unix(tokio::net::UnixStream::connect(path).await?)),
        }
    }
}

fn tls(
    upstream: &Upstream,
    options: &ProxyOptions,
    protocols: &[&[u8]],
) -> Result<Tls, Unreachable> {
    let tls = options.tls.as_ref().ok_or(Unreachable::NoTls)?;
    let name = tls.name.clone().or_else(|| upstream.server_name());
    let mut config = ClientConfig::clone(&tls.config);
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(Tls {
        connector: TlsConnector::from(Arc::new(config)),
        name: name.ok_or(Unreachable::Name)?,
    })
}

/// For the pool of connections: the URI only tells upstreams apart.
impl Service<Uri> for Connector {
    type Response = Link;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Link, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}
