//! Conversion between messages and field lines (RFC 9114, sections 4.1.2, 4.2 and 4.3; RFC 9220;
//! syntax: RFC 9110, sections 5.1 and 5.5).
//!
//! Received messages are checked line by line and as a whole; each violation makes the message
//! malformed. Field compression is in [`qpack`](crate::qpack).

mod receive;
mod request;
mod response;
mod send;

pub(crate) use receive::trailers_from_fields;
pub(crate) use request::{request_from_fields, request_to_fields};
pub(crate) use response::{response_from_fields, response_to_fields};
pub(crate) use send::{section_size, trailers_to_fields};

/// The protocol of an extended CONNECT request: the value of `:protocol` (RFC 9220, section 3), such
/// as `websocket`. Stored in the extensions of [`http::request::Parts`].
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ConnectProtocol(String);

impl ConnectProtocol {
    /// The protocol of this name; `None` if the name is not a token (RFC 9110, section 5.6.2).
    pub fn new(name: &str) -> Option<Self> {
        // Method names have the same syntax and are validated already.
        http::Method::from_bytes(name.as_bytes()).ok()?;
        Some(Self(name.to_owned()))
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
