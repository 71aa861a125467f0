//! A client of HTTP/3, HTTP/2 and HTTP/1.1.

use swiftwater_http::client::{HttpClient, Proxies};
use swiftwater_http::udp::ALPN_HTTP3;

use crate::client::ClientBuilder;
use crate::error::BuildError;

impl ClientBuilder {
    /// A client of HTTP/3, HTTP/2 and HTTP/1.1 with the trust and transport set here: it races QUIC
    /// against TCP, pools connections, and uses the proxies of the environment (`HTTPS_PROXY` and
    /// so on, for TCP). Must be called inside a tokio runtime.
    ///
    /// For other choices see [`ClientBuilder::http`].
    pub fn build_http(self) -> Result<HttpClient, BuildError> {
        Ok(self.http()?.proxies(Proxies::from_env()?).build()?)
    }

    /// A builder with the same settings, for further configuration: policy, timeouts, early data,
    /// proxies (none by default).
    pub fn http(self) -> Result<swiftwater_http::client::Builder, BuildError> {
        let tls = self.tls_over_tcp()?;
        let early_data = self.offers_early_data();
        let quic = self.alpn([ALPN_HTTP3]).build()?;
        Ok(HttpClient::builder()
            .quic(quic.endpoint().clone(), quic.config().clone())
            .tls(tls)
            .early_data(early_data))
    }
}
