//! The connection to the proxy that a client has, of whatever version of HTTP.

use std::sync::Arc;
use std::time::Duration;

use http::Version;
use swiftwater_http::udp::SendRequest;
use swiftwater_http::web::body::BoxError;
use tokio::time::{Instant, timeout};

use super::tcp_link::TcpLink;
use super::tunnel_client::Connect;

/// For so long HTTP/3 is not tried after it failed where TCP worked: what Chromium takes for alternative services.
const AVOIDED_FOR: Duration = Duration::from_secs(300);

/// Which versions of HTTP a client uses to the proxy.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum HttpVersions {
    /// HTTP/3.
    #[default]
    Http3,
    /// HTTP/3; the others if that has no connection within this time. New connections of the next five minutes then go over
    /// TCP at once, and try HTTP/3 only if that fails.
    Http3OrTcp(Duration),
    /// HTTP/2 or HTTP/1.1.
    Tcp,
}

/// A connection, or for HTTP/1.1 the means to make one for each tunnel.
#[derive(Clone)]
pub(super) enum Link {
    Http3(SendRequest),
    Tcp(Arc<TcpLink>),
}

/// The connection of a client, and what is known of the ways to the proxy.
#[derive(Default)]
pub(super) struct LinkSlot {
    link: Option<Link>,
    /// Until then HTTP/3 is not tried, because it failed where TCP worked.
    avoids_http3_until: Option<Instant>,
    /// The last attempt, if it failed.
    failure: Option<Failure>,
}

/// A failed attempt.
struct Failure {
    ended: Instant,
    why: Arc<str>,
}

impl LinkSlot {
    /// The connection in use, or a new one for who `asked` then: the attempt that this waited for may have failed since.
    pub(super) async fn get(
        &mut self,
        connector: &dyn Connect,
        asked: Instant,
    ) -> Result<Link, BoxError> {
        if let Some(link) = self.link.as_ref().filter(|link| !link.is_closed()) {
            return Ok(link.clone());
        }
        if let Some(failure) = self.failure.as_ref().filter(|it| it.ended > asked) {
            return Err(failure.why.to_string().into());
        }
        match self.open(connector).await {
            Ok(link) => {
                self.link = Some(link.clone());
                self.failure = None;
                Ok(link)
            }
            Err(error) => {
                self.failure = Some(Failure {
                    ended: Instant::now(),
                    why: error.to_string().into(),
                });
                Err(error)
            }
        }
    }

    /// Takes the connection out of use.
    pub(super) fn take(&mut self) -> Option<Link> {
        self.link.take()
    }

    async fn open(&mut self, connector: &dyn Connect) -> Result<Link, BoxError> {
        let patience = match connector.versions() {
            HttpVersions::Http3 => return Ok(Link::Http3(connector.connect().await?)),
            HttpVersions::Tcp => return Link::open_tcp(connector).await,
            HttpVersions::Http3OrTcp(patience) => patience,
        };
        let avoids_http3 = self.avoids_http3_until.take();
        let avoids_http3 = avoids_http3.filter(|&until| Instant::now() < until);
        let mut over_tcp = None;
        if avoids_http3.is_some() {
            match Link::open_tcp(connector).await {
                Ok(link) => {
                    self.avoids_http3_until = avoids_http3;
                    return Ok(link);
                }
                Err(error) => over_tcp = Some(error),
            }
        }
        let why = match timeout(patience, connector.connect()).await {
            Ok(Ok(connection)) => return Ok(Link::Http3(connection)),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no QUIC connection in {patience:?}"),
        };
        let error = if let Some(error) = over_tcp {
            error
        } else {
            tracing::debug!(why, "the proxy is tried over TCP");
            match Link::open_tcp(connector).await {
                Ok(link) => {
                    self.avoids_http3_until = Some(Instant::now() + AVOIDED_FOR);
                    return Ok(link);
                }
                Err(error) => error,
            }
        };
        Err(both(&why, &error.to_string()).into())
    }
}

impl Link {
    async fn open_tcp(connector: &dyn Connect) -> Result<Self, BoxError> {
        let connection = connector.connect_tcp().await?;
        Ok(Self::Tcp(Arc::new(TcpLink::begin(connection).await?)))
    }

    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Http3(connection) => connection.is_closed(),
            Self::Tcp(link) => link.is_closed(),
        }
    }

    pub(super) fn version(&self) -> Version {
        match self {
            Self::Http3(_) => Version::HTTP_3,
            Self::Tcp(link) => link.version(),
        }
    }
}

/// Why there is a connection neither over QUIC nor over TCP.
fn both(quic: &str, tcp: &str) -> String {
    if quic == tcp {
        // Such as a name that is not resolved.
        return tcp.to_owned();
    }
    format!("{quic}; over TCP: {tcp}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_alike_is_said_once() {
        assert_eq!(both("no such name", "no such name"), "no such name");
        assert_eq!(both("timeout", "reset"), "timeout; over TCP: reset");
    }
}
