//! A request for another protocol, as services find it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::stream::UpgradedStream;
use crate::web::body::Body;

/// How the request asks.
#[derive(Clone, Debug)]
enum Form {
    /// `Upgrade` of HTTP/1.1: the protocols in it, in the client's order of preference.
    Upgrade(Arc<[String]>),
    /// Extended CONNECT: the protocol.
    Extended(Arc<str>),
    /// CONNECT, which names none.
    Connect,
}

/// In the extensions of a request for another protocol, whose body is empty. Clones share the request.
///
/// A service that accepts gets the client's bytes from [`accept`](Self::accept) as a stream, or from
/// [`incoming`](Self::incoming) as a body, and answers with [`accepting`](Self::accepting), whose body then are the
/// bytes for the client. They have no time limit but that for a client that leaves bytes unread; the service
/// needs its own. Any other status refuses: the response is an ordinary one.
#[derive(Clone)]
pub struct UpgradeRequest {
    form: Form,
    incoming: Arc<Mutex<Option<Body>>>,
}

impl UpgradeRequest {
    /// A request of HTTP/1.1 with these fields.
    pub(crate) fn upgrade(headers: &HeaderMap, incoming: Body) -> Self {
        let values = headers.get_all(UPGRADE).iter();
        let names = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty());
        Self::new(Form::Upgrade(names.collect()), incoming)
    }

    /// CONNECT, extended by `protocol` if it names one.
    pub(crate) fn connect(protocol: Option<&str>, incoming: Body) -> Self {
        let form = protocol.map_or(Form::Connect, |name| Form::Extended(name.into()));
        Self::new(form, incoming)
    }

    fn new(form: Form, incoming: Body) -> Self {
        Self {
            form,
            incoming: Arc::new(Mutex::new(Some(incoming))),
        }
    }

    /// The protocol that the client prefers; `None` for CONNECT without one.
    pub fn protocol(&self) -> Option<&str> {
        match &self.form {
            Form::Upgrade(names) => names.first().map(String::as_str),
            Form::Extended(name) => Some(name),
            Form::Connect => None,
        }
    }

    /// Whether `protocol` is among those that the client asks for, in any case of letters.
    pub fn asks_for(&self, protocol: &str) -> bool {
        match &self.form {
            Form::Upgrade(names) => names.iter().any(|name| name.eq_ignore_ascii_case(protocol)),
            Form::Extended(name) => name.eq_ignore_ascii_case(protocol),
            Form::Connect => false,
        }
    }

    /// Whether the request is CONNECT or extended CONNECT, not `Upgrade` of HTTP/1.1.
    pub fn is_connect(&self) -> bool {
        !matches!(self.form, Form::Upgrade(_))
    }

    /// The bytes of the client, once the request is accepted; only to the first call. Dropped, no more are read.
    pub fn incoming(&self) -> Option<Body> {
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        incoming.take()
    }

    /// The response that accepts the request for `protocol`, with the bytes for the client.
    pub fn accepting(&self, protocol: &str, outgoing: Body) -> Response<Body> {
        let mut response = Response::new(outgoing);
        if !self.is_connect() {
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            let headers = response.headers_mut();
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            if let Ok(name) = HeaderValue::from_str(protocol) {
                headers.insert(UPGRADE, name);
            }
        }
        response
    }

    /// Accepts the request for `protocol`: the response to be returned, and the byte stream. `None` if the bytes
    /// were taken already.
    pub fn accept(&self, protocol: &str) -> Option<(Response<Body>, UpgradedStream)> {
        let (stream, outgoing) = UpgradedStream::new(self.incoming()?);
        Some((self.accepting(protocol, outgoing), stream))
    }

    /// Whether a response with `status` accepts the request.
    pub(crate) fn is_accepted_by(&self, status: StatusCode) -> bool {
        if self.is_connect() {
            status.is_success()
        } else {
            status == StatusCode::SWITCHING_PROTOCOLS
        }
    }
}

impl fmt::Debug for UpgradeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpgradeRequest")
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}
