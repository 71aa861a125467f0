//! What a web server does above the versions of HTTP, as tower services and layers: each takes
//! `http::Request` and gives `http::Response`, whichever version carries them.
//!
//! - [`files`]: a directory, with conditional requests and ranges.
//! - [`request_path`]: what a path means, to whoever routes or answers it.
//! - [`proxy`]: one upstream behind this server.
//! - [`compression`], [`alt_svc`], [`early_data`]: layers that change messages.
//! - [`access_log`], [`metrics`]: layers that watch them.
//! - [`body`], [`timed_body`], [`observed_body`]: bodies of unknown type, an end to bodies that come
//!   too slowly, bodies that tell what became of them.
//! - [`service`]: what servers take. [`shared_limit`]: what its clients share. [`response_budget`]: the memory
//!   that responses on their way take. [`descriptors`]: when there are none left.
//! - [`connection_info`], [`host`](mod@host): what is known of the connection that a request came by, and
//!   which host it is for.
//!
//! Connections, TLS and the syntax of HTTP live elsewhere: [`crate::tcp`], [`crate::h3`].

pub mod access_log;
pub mod alt_svc;
pub mod body;
pub mod compression;
pub mod connection_info;
pub mod descriptors;
pub mod early_data;
pub mod files;
pub mod host;
pub mod metrics;
pub mod observed_body;
pub mod proxy;
pub mod request_path;
pub mod response_budget;
pub mod service;
pub mod shared_limit;
pub mod timed_body;
