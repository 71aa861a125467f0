//! `hq-interop`: HTTP/0.9 on QUIC streams. A request is `GET /path` and a line end; the answer is the
//! file and the end of the stream.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

/// The protocol's name in ALPN.
pub const ALPN: &[u8] = b"hq-interop";

/// Longest request line that the server reads, bytes.
pub const MAX_REQUEST: usize = 4096;

/// Stream error code for requests that can't be served.
pub const NOT_FOUND: u32 = 404;

/// The requested file in `root`; `None` if it isn't a request or leaves `root`.
#[must_use]
pub fn requested_file(root: &Path, request: &[u8]) -> Option<PathBuf> {
    let line = std::str::from_utf8(request)
        .ok()?
        .trim_end_matches(['\r', '\n']);
    let path = Path::new(line.strip_prefix("GET /")?);
    let inside = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    inside.then(|| root.join(path))
}

/// `https://host:port/path`, parsed.
#[derive(Clone, Debug)]
pub struct Url {
    /// Name or address, for the certificate.
    pub host: String,
    /// UDP port.
    pub port: u16,
    /// With the leading slash.
    pub path: String,
}

/// Why a URL can't be used.
#[derive(Clone, Copy, Debug, Error)]
pub enum UrlError {
    /// Another form than the one understood here.
    #[error("expected https://host:port/path")]
    Form,
}

impl std::str::FromStr for Url {
    type Err = UrlError;

    fn from_str(url: &str) -> Result<Self, UrlError> {
        let rest = url.strip_prefix("https://").ok_or(UrlError::Form)?;
        let (authority, path) = rest.split_once('/').ok_or(UrlError::Form)?;
        let (host, port) = authority.rsplit_once(':').ok_or(UrlError::Form)?;
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let port = port.parse().map_err(|_| UrlError::Form)?;
        Ok(Self {
            host,
            port,
            path: format!("/{path}"),
        })
    }
}

impl Url {
    /// The first address of the host's name.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        let mut addresses = (self.host.as_str(), self.port).to_socket_addrs()?;
        addresses
            .next()
            .ok_or_else(|| std::io::ErrorKind::AddrNotAvailable.into())
    }

    /// The last part of the path, under which the answer is stored.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}
