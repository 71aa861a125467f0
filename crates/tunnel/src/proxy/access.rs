//! Authentication of the proxy's users (RFC 9298, section 7) by bearer tokens (RFC 6750; RFC 9110, section 11.7) and by
//! certificates that TLS verified.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use http::header::{AUTHORIZATION, PROXY_AUTHORIZATION};
use http::{HeaderValue, request};
use subtle::ConstantTimeEq;
use swiftwater_http::web::connection_info::ConnectionInfo;
use thiserror::Error;
use tokio_rustls::rustls::pki_types::UnixTime;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::distinguished_name::distinguished_name;
use super::refusal::Refusal;

/// The shortest token, bytes: 96 bits in base64.
const SHORTEST: usize = 16;

/// Who may use a proxy.
#[derive(Clone, Debug)]
pub enum Access {
    /// Whoever reaches it. An open proxy is abused within hours: only for closed networks and tests.
    Anyone,
    /// Who sends one of these tokens, in Proxy-Authorization or Authorization.
    Tokens(Arc<[Token]>),
    /// Who has a certificate, or else sends one of these tokens, of which there may be none. A user is the subject of the
    /// certificate, as `CN=alice, O=Example`, with `\` before characters of values that separate others (RFC 4514,
    /// section 2.4); those without a subject are no users. The server's TLS decides which
    /// certificates are accepted
    /// ([`ConnectionInfo::client_chain`](swiftwater_http::web::connection_info::ConnectionInfo::client_chain)).
    Certificates {
        /// What checks the certificate again for each tunnel: connections may last longer than certificates.
        authorities: Arc<dyn ClientCertVerifier>,
        /// The subjects that are users; `None`: all that the authorities issue certificates for.
        subjects: Option<Arc<BTreeSet<String>>>,
        /// The tokens of further users.
        tokens: Arc<[Token]>,
    },
}

/// A secret of one user.
#[derive(Clone)]
pub struct Token {
    user: Arc<str>,
    secret: Arc<str>,
}

/// A secret that can't be a bearer token.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum TokenError {
    /// It is too short.
    #[error("a token needs at least {SHORTEST} characters")]
    Short,
    /// It has characters that can't be in a field.
    #[error("a token consists of letters, digits and -._~+/=")]
    Character,
}

impl Token {
    /// The token `secret` of the user of this name.
    pub fn new(user: &str, secret: &str) -> Result<Self, TokenError> {
        if secret.len() < SHORTEST {
            return Err(TokenError::Short);
        }
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        if !secret.bytes().all(is_allowed) {
            return Err(TokenError::Character);
        }
        Ok(Self {
            user: user.into(),
            secret: secret.into(),
        })
    }

    /// The name of the user.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The value of the field that presents the token.
    pub fn credentials(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.secret)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Access {
    /// The user of a request; `None` for one without a name.
    pub(super) fn check(&self, head: &request::Parts) -> Result<Option<Arc<str>>, Refusal> {
        let (tokens, refusal) = match self {
            Self::Anyone => return Ok(None),
            Self::Tokens(tokens) => (tokens, Refusal::Unauthenticated),
            Self::Certificates {
                authorities,
                subjects,
                tokens,
            } => match subject(head, &**authorities) {
                Some(subject) if subjects.as_ref().is_none_or(|it| it.contains(&*subject)) => {
                    return Ok(Some(subject));
                }
                Some(_) => (tokens, Refusal::UnknownSubject),
                None => (tokens, Refusal::Unidentified),
            },
        };
        let headers = &head.headers;
        let presented = [PROXY_AUTHORIZATION, AUTHORIZATION]
            .iter()
            .find_map(|name| bearer(headers.get(name)?));
        let Some(presented) = presented else {
            return Err(refusal);
        };
        // All are compared, each in constant time: how long it takes shows neither which one matches nor how
        // much of it.
        let mut user = None;
        for token in tokens.iter() {
            if bool::from(token.secret.as_bytes().ct_eq(presented.as_bytes())) {
                user = Some(Arc::clone(&token.user));
            }
        }
        user.map(Some).ok_or(refusal)
    }
}

/// The subject of the client's certificate, if it has one that is valid now.
fn subject(head: &request::Parts, authorities: &dyn ClientCertVerifier) -> Option<Arc<str>> {
    let connection = head.extensions.get::<ConnectionInfo>()?;
    let (certificate, rest) = connection.client_chain.as_ref()?.split_first()?;
    let now = UnixTime::now();
    if let Err(error) = authorities.verify_client_cert(certificate, rest, now) {
        tracing::debug!(%error, "the certificate of a connection is no longer accepted");
        return None;
    }
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = distinguished_name(certificate.subject())?;
    (!subject.is_empty()).then(|| subject.into())
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim_start_matches(' '))
}
