//! How validations are answered.

use instant_acme::{ChallengeHandle, ChallengeType};
use swiftwater_http::tcp::TlsAlpnChallenges;
use swiftwater_http::web::http_challenge::HttpChallenges;

use crate::error::AcmeError;
use crate::validation_certificate;

/// Who answers validations.
#[derive(Clone, Debug)]
pub enum Answers {
    /// A server over TLS, at port 443 of the names (TLS-ALPN-01, RFC 8737).
    TlsAlpn(TlsAlpnChallenges),
    /// A server without TLS, at port 80 of the names (HTTP-01, RFC 8555, section 8.3).
    Http(HttpChallenges),
}

/// A validation that is being answered, until it is dropped.
#[derive(Debug)]
pub(crate) enum Pending {
    TlsAlpn(TlsAlpnChallenges, String),
    Http(HttpChallenges, String),
}

impl Answers {
    pub(crate) fn kind(&self) -> ChallengeType {
        match self {
            Self::TlsAlpn(_) => ChallengeType::TlsAlpn01,
            Self::Http(_) => ChallengeType::Http01,
        }
    }

    pub(crate) fn kind_name(&self) -> &'static str {
        match self {
            Self::TlsAlpn(_) => "tls-alpn-01",
            Self::Http(_) => "http-01",
        }
    }

    /// Answers validations of `name` from now on.
    pub(crate) fn begin(
        &self,
        name: &str,
        challenge: &ChallengeHandle<'_>,
    ) -> Result<Pending, AcmeError> {
        let authorization = challenge.key_authorization();
        match self {
            Self::TlsAlpn(challenges) => {
                let digest = authorization.digest();
                let (certificate, key) = validation_certificate::of(name, digest.as_ref())?;
                challenges.set(name, certificate, key)?;
                Ok(Pending::TlsAlpn(challenges.clone(), name.to_owned()))
            }
            Self::Http(challenges) => {
                let token = challenge.token.clone();
                challenges.set(&token, authorization.as_str());
                Ok(Pending::Http(challenges.clone(), token))
            }
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        match self {
            Self::TlsAlpn(challenges, name) => challenges.remove(name),
            Self::Http(challenges, token) => challenges.remove(token),
        }
    }
}
