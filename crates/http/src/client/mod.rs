//! HTTP client over HTTP/3, HTTP/2 and HTTP/1.1 with a connection pool and a choice of protocol for
//! each request.
//!
//! - [`HttpClient`], [`Builder`]: send requests and return responses, with the types of crate
//!   `http`.
//! - [`ResponseExt`]: the content of a response as bytes, text or JSON.
//! - [`Policy`], [`Chosen`], [`Why`]: the protocols that may be used, the one that was used, and
//!   the reason.
//! - [`Select`], [`ArmChoice`]: the choice of TCP or QUIC request by request, with the types of [`select`].
//! - [`Measurements`]: times, round trips and losses of each request.
//! - [`Resolver`]: lookups, including HTTPS records (RFC 9460).
//! - [`Proxies`], [`Timeouts`], [`BackOff`], [`Network`]: environment and limits.
//!
//! QUIC and TCP race as in RFC 8305, QUIC first. Alt-Svc (RFC 7838) is cached, and failures of QUIC are
//! recorded. The modules that decide (`policy`, `race`, `alt_svc`, `quic_failures`, `retry`) do no I/O and
//! take the time as an argument. Single connections are implemented by [`crate::udp`] and by hyper.

mod alt_svc;
mod attempt;
mod body;
mod builder;
mod connect;
mod connect_locks;
mod content;
mod error;
mod exchange;
mod http_client;
mod measurements;
mod origin;
mod policy;
mod pool;
mod protocol_choice;
mod proxy;
mod quic;
mod quic_failures;
mod race;
mod request_content;
mod requests;
mod resolver;
mod retry;
mod route;
mod selection;
mod stagger;
mod state;
mod tcp;
mod tcp_share;
mod timeouts;
mod udp_probe;

pub use body::ClientBody;
pub use builder::{BuildError, Builder};
pub use content::{ContentError, DEFAULT_CONTENT_LIMIT, ResponseExt};
pub use error::{AttemptCause, AttemptError, Error};
pub use http_client::HttpClient;
pub use measurements::{End, Measurements, Snapshot};
pub use origin::Origin;
pub use policy::Policy;
pub use pool::PoolStats;
pub use protocol_choice::{Chosen, Hint, Protocol, Why};
pub use proxy::{Proxies, ProxyAddressError};
pub use quic_failures::{BackOff, KnownFailure, Network};
pub use race::AttemptTransport;
pub use resolver::{HttpsRecord, Resolved, Resolver, Resolving, SystemResolver};
pub use selection::{ArmChoice, ReplaySafe, Select, SelectError, SelectionSnapshot};
pub use swiftwater_select as select;
pub use timeouts::{Phase, Timeouts};
