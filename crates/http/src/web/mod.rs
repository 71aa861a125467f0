//! Version-independent parts of a web server as tower services and layers: each takes
//! `http::Request` and returns `http::Response`.
//!
//! - [`files`]: a directory, with conditional requests and ranges.
//! - [`request_path`]: decoding of paths, for routing and for services.
//! - [`proxy`]: one upstream behind this server. [`balancer`]: several.
//! - [`redirect`]: other addresses instead of content. [`http_challenge`]: answers to a certificate authority.
//! - [`upgrade`]: other protocols in the place of messages: WebSocket, tunnels.
//! - [`compression`], [`alt_svc`], [`early_data`], [`response_fields`]: layers that modify messages.
//! - [`access_log`], [`metrics`]: layers that record them.
//! - [`body`], [`timed_body`], [`observed_body`]: bodies of erased type, with a minimum rate, and
//!   with a report of their end.
//! - [`service`]: the service type of servers. [`shared_limit`]: limits shared by clients.
//!   [`response_budget`]: memory of responses in progress. [`descriptors`]: exhaustion of file descriptors.
//! - [`connection_info`], [`host`](mod@host): the connection that a request was received on, and its
//!   host.
//!
//! Connections, TLS and the syntax of HTTP are elsewhere: [`crate::tcp`], [`crate::h3`].

pub mod access_log;
pub mod alt_svc;
pub mod balancer;
pub mod body;
pub mod compression;
pub mod connection_info;
pub mod descriptors;
pub mod early_data;
pub mod files;
pub mod host;
pub mod http_challenge;
pub mod metrics;
pub mod observed_body;
pub mod proxy;
pub mod redirect;
pub mod request_path;
pub mod response_budget;
pub mod response_fields;
pub mod service;
pub mod shared_limit;
pub mod timed_body;
pub mod upgrade;
