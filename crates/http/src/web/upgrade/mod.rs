//! Requests for another protocol in the place of HTTP messages, and the byte stream that follows an accepted one:
//! `Upgrade` of HTTP/1.1 (RFC 9110, section 7.8), CONNECT (section 9.3.6), and extended CONNECT of HTTP/2
//! (RFC 8441) and HTTP/3 (RFC 9220). WebTransport has its own requests: [`crate::udp::webtransport`].
//!
//! - [`UpgradeRequest`]: in the extensions of such a request, whatever the version of HTTP.
//! - [`UpgradedStream`]: the byte stream for services; [`ChunkReader`]: pieces of a byte stream for bodies.
//!
//! ```no_run
//! use http::{Request, Response, StatusCode};
//! use swiftwater_http::web::body::Body;
//! use swiftwater_http::web::upgrade::UpgradeRequest;
//! use tokio::io::AsyncWriteExt;
//!
//! /// Sends the bytes of each client that asks for the protocol `echo` back.
//! async fn service(request: Request<Body>) -> Response<Body> {
//!     let asked = request.extensions().get::<UpgradeRequest>();
//!     let accepted = asked
//!         .filter(|asked| asked.asks_for("echo"))
//!         .and_then(|asked| asked.accept("echo"));
//!     let Some((response, stream)) = accepted else {
//!         let mut response = Response::new(Body::empty());
//!         *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
//!         return response;
//!     };
//!     tokio::spawn(async move {
//!         let (mut reader, mut writer) = tokio::io::split(stream);
//!         tokio::io::copy(&mut reader, &mut writer).await?;
//!         writer.shutdown().await
//!     });
//!     response
//! }
//! ```

mod chunks;
mod request;
mod stream;

pub use chunks::ChunkReader;
pub use request::UpgradeRequest;
pub use stream::UpgradedStream;
