//! Lookups: from host names to addresses and HTTPS records.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

/// Result of a lookup.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// Its addresses, in order of preference (RFC 6724). Address hints of records may be among them.
    pub addresses: Vec<IpAddr>,
    /// The content of its HTTPS record, if the resolver queries such records and there is one.
    pub https: Option<HttpsRecord>,
}

/// The parts of an HTTPS record in service mode (RFC 9460) that the client uses.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HttpsRecord {
    /// ALPN names of the service, `h3` among them if it offers HTTP/3.
    pub alpn: Vec<Vec<u8>>,
    /// Its port; `None` for the URI's port.
    pub port: Option<u16>,
}

impl HttpsRecord {
    /// True if the service offers HTTP/3.
    pub fn has_http3(&self) -> bool {
        self.alpn.iter().any(|name| name == b"h3")
    }
}

/// A lookup in progress.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Resolved>> + Send + 'a>>;

/// Looks up hosts. Called once for each new connection; caching is left to the resolver.
pub trait Resolver: Send + Sync + fmt::Debug {
    /// Looks up `host`, a name. `port` is that of the URI: HTTPS records depend on it (RFC 9460,
    /// section 9.1).
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolving<'a>;
}

/// The operating system's resolver. It does not query HTTPS records.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolving<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, port)).await?;
            Ok(Resolved {
                addresses: found.map(|address| address.ip()).collect(),
                https: None,
            })
        })
    }
}
