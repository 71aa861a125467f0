//! From names to addresses, and to what the DNS says of HTTP/3.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

/// What is known of a host.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// Its addresses, in order of preference (RFC 6724). Address hints of records may be among them.
    pub addresses: Vec<IpAddr>,
    /// What its HTTPS record says, if the resolver asks for such records and there is one.
    pub https: Option<HttpsRecord>,
}

/// What matters here of an HTTPS record in service mode (RFC 9460).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HttpsRecord {
    /// ALPN names of the service, `h3` among them if it speaks HTTP/3.
    pub alpn: Vec<Vec<u8>>,
    /// Its port; `None` for that of the URI.
    pub port: Option<u16>,
}

impl HttpsRecord {
    /// True if the service speaks HTTP/3.
    pub fn has_http3(&self) -> bool {
        self.alpn.iter().any(|name| name == b"h3")
    }
}

/// A lookup under way.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Resolved>> + Send + 'a>>;

/// Looks up hosts. Called once for each connection that is needed; caching is the resolver's.
pub trait Resolver: Send + Sync + fmt::Debug {
    /// Looks up `host`, a name. `port` is that of the URI: HTTPS records depend on it (RFC 9460,
    /// section 9.1).
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolving<'a>;
}

/// The operating system's resolver. It knows no HTTPS records.
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
