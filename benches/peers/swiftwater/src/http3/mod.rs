//! Jobs over HTTP/3 with the interface that applications use: a tower service on the web server, and the HTTP client with
//! its pool of connections.

pub(crate) mod client;
mod content;
pub(crate) mod server;
