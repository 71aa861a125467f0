//! Jobs over HTTP/3, with the h3 crate.

pub(crate) mod client;
pub(crate) mod server;
