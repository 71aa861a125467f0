//! The connection to the proxy that a client has, of whatever version of HTTP.

use std::sync::Arc;
use std::time::Duration;

use http::Version;
use swiftwater_http::udp::SendRequest;
use swiftwater_http::web::body::BoxError;
use tokio::time::timeout;

use super::tcp_link::TcpLink;
use super::tunnel_client::Connect;

/// Which versions of HTTP a client uses to the proxy.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum HttpVersions {
    /// HTTP/3.
    #[default]
    Http3,
    /// HTTP/3; the others if that has no connection within this time. Each new connection tries HTTP/3 first.
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

impl Link {
    pub(super) async fn open(connector: &dyn Connect) -> Result<Self, BoxError> {
        match connector.versions() {
            HttpVersions::Http3 => Ok(Self::Http3(connector.connect().await?)),
            HttpVersions::Tcp => Self::open_tcp(connector).await,
            HttpVersions::Http3OrTcp(patience) => {
                let connected = timeout(patience, connector.connect()).await;
                let why = match connected {
                    Ok(Ok(connection)) => return Ok(Self::Http3(connection)),
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => format!("no QUIC connection in {patience:?}"),
                };
                tracing::debug!(why, "the proxy is tried over TCP");
                let link = Self::open_tcp(connector).await;
                link.map_err(|error| both(&why, &error.to_string()).into())
            }
        }
    }

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
