//! Failures.

use std::io;
use std::path::PathBuf;

use swiftwater_http::tcp::CertificateError;
use thiserror::Error;

/// Why there is no certificate.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AcmeError {
    /// The authority refused, or can't be reached.
    #[error("{0}")]
    Authority(#[from] instant_acme::Error),
    /// It does not offer the kind of validation that was chosen.
    #[error("the authority does not validate {name} by {kind}")]
    NoChallenge {
        /// The name.
        name: String,
        /// The kind, as in RFC 8555.
        kind: &'static str,
    },
    /// It tried to validate a name, and failed.
    #[error("the authority could not validate the names: {0}")]
    Validation(String),
    /// The certificate of a validation could not be made.
    #[error("the certificate for a validation: {0}")]
    Made(#[from] rcgen::Error),
    /// What came from the authority or a file can't be used as a certificate.
    #[error("the certificate can't be used: {0}")]
    Unusable(#[from] CertificateError),
    /// It is none.
    #[error("not a certificate: {0}")]
    Syntax(String),
    /// It is for other names.
    #[error("the certificate is for {0}, not for the names that were asked for")]
    Names(String),
    /// A file.
    #[error("{path}: {error}", path = .path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What failed.
        error: io::Error,
    },
    /// The file of the account is damaged.
    #[error("{path}: not an account of ACME; without the file a new one is made", path = .path.display())]
    Account {
        /// Its path.
        path: PathBuf,
    },
}

impl AcmeError {
    /// Whether the authority refused a request because of its nonce only (RFC 8555, section 6.5).
    pub(crate) fn is_refused_nonce(&self) -> bool {
        match self {
            Self::Authority(instant_acme::Error::Api(problem)) => {
                problem.r#type.as_deref() == Some("urn:ietf:params:acme:error:badNonce")
            }
            _ => false,
        }
    }
}
