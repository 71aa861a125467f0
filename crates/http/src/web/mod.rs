//! What a web server does above the versions of HTTP, as tower services and layers: each takes
//! `http::Request` and gives `http::Response`, whichever version carries them.
//!
//! - [`files`]: a directory, with conditional requests and ranges.
//! - [`body`]: bodies of unknown type, short answers.
//! - [`connection_info`]: what is known of the connection that a request came by.
//! - [`timed_body`]: an end to bodies that come too slowly.
//!
//! Connections, TLS and the syntax of HTTP live elsewhere: [`crate::tcp`], [`crate::h3`].

pub mod body;
pub mod connection_info;
pub mod early_data;
pub mod files;
pub mod timed_body;
