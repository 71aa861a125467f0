//! WebTransport sessions for applications (draft-ietf-webtrans-http3): streams and datagrams of a
//! session, at either end of an HTTP/3 connection.
//!
//! - [`SessionRequest`]: in the extensions of a request for a session. Answering with 2xx accepts it.
//! - [`SendRequest::open_session`](super::SendRequest::open_session): requests one at a client.
//! - [`Session`], [`SendStream`], [`RecvStream`]: the handles at both ends.
//!
//! ```no_run
//! use http::{Request, Response, StatusCode};
//! use swiftwater_http::udp::webtransport::SessionRequest;
//! use swiftwater_http::web::body::Body;
//!
//! /// Sends the first stream of each session back.
//! async fn service(request: Request<Body>) -> Response<Body> {
//!     let mut response = Response::new(Body::empty());
//!     match request.extensions().get::<SessionRequest>().cloned() {
//!         Some(asked) => {
//!             tokio::spawn(async move {
//!                 let session = asked.session().await?;
//!                 let (mut send, mut recv) = session.accept_bi().await?;
//!                 tokio::io::copy(&mut recv, &mut send).await?;
//!                 send.finish()?;
//!                 session.closed().await;
//!                 Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
//!             });
//!         }
//!         None => *response.status_mut() = StatusCode::NOT_FOUND,
//!     }
//!     response
//! }
//! ```
//!
//! The engine ([`h3`](crate::h3)) associates streams with sessions, and limits sessions and the streams
//! received before them; [`SessionLimits`] limits what is buffered for the application.

mod client;
mod drive;
mod error;
mod limits;
mod recv;
mod request;
mod send;
mod session;
mod session_state;
mod table;

pub use error::{
    OpenSessionError, ReadError, ReadToEndError, SessionEnd, SessionRefused, WriteError,
};
pub use limits::SessionLimits;
pub use recv::RecvStream;
pub use request::SessionRequest;
pub use send::SendStream;
pub use session::Session;

pub(super) use request::{Asked, establish};
pub(super) use table::Table;
