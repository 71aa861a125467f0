//! Messages for transport failures, with hints.

use std::io::{self, ErrorKind};
use std::path::Path;

use swiftwater::quic::TransportError;
use swiftwater::quic::wire::ErrorCode;
use swiftwater::{BindError, BuildError, ClientError, ConnectionError};

use crate::exit::{Exit, Failure, plain_io_error};
use crate::tls_alert::{
    NO_APPLICATION_PROTOCOL, alert_of, bad_certificate, describe, is_about_certificates,
    is_untrusted,
};

/// Why a client or server could not be created, with a hint.
pub fn build_failure(error: &BuildError) -> Failure {
    let exit = match error {
        BuildError::Bind(error) => return bind_failure(error),
        BuildError::Tls(_) | BuildError::NoCertificate => Exit::Certificate,
        BuildError::File { .. } => Exit::LocalFile,
        BuildError::Platform(_) => {
            let hint = "trust the server with --ca FILE";
            return Failure::new(Exit::Certificate, format_args!("{error} ({hint})"));
        }
        BuildError::Qlog { path, source } => return qlog_failure(path, source),
        BuildError::Congestion(_) | BuildError::Recovery(_) | BuildError::Version(_) => Exit::Usage,
        _ => Exit::Failure,
    };
    Failure::new(exit, error)
}

/// The directory for logs can't be used.
pub fn qlog_failure(directory: &Path, error: &io::Error) -> Failure {
    let why = plain_io_error(error);
    Failure::new(
        Exit::LocalFile,
        format_args!("cannot write qlog to {}: {why}", directory.display()),
    )
}

/// A failure to bind, with a hint.
pub fn bind_failure(error: &BindError) -> Failure {
    let BindError::Address { address, source } = error else {
        return Failure::new(Exit::Failure, error);
    };
    let why = match source.kind() {
        ErrorKind::AddrInUse => "the port is taken by another program".to_owned(),
        ErrorKind::PermissionDenied => {
            "permission denied (ports below 1024 often need privileges)".to_owned()
        }
        ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        _ => plain_io_error(source),
    };
    Failure::new(
        Exit::Listen,
        format_args!("cannot listen on UDP {address}: {why}"),
    )
}

/// What resolvers say of a name that has no address (`EAI_NONAME`, `EAI_NODATA` and the like): glibc,
/// glibc, musl, BSD and macOS, Windows. Only the text distinguishes it from other errors.
const NO_SUCH_NAME: [&str; 5] = [
    "not known",
    "No address associated",
    "does not resolve",
    "nodename nor servname",
    "No such host",
];

/// Why a name could not be looked up: it has no address, or the resolver failed.
pub fn lookup_failure(host: &str, error: &io::Error) -> Failure {
    let text = plain_io_error(error);
    if NO_SUCH_NAME.iter().any(|words| text.contains(words)) {
        return no_address(host);
    }
    let said = text.rsplit(": ").next().unwrap_or(&text);
    Failure::new(
        Exit::UnknownHost,
        format_args!("cannot look up host '{host}' now: {said}; is the network up?"),
    )
}

/// A name without an address.
pub fn no_address(host: &str) -> Failure {
    Failure::new(
        Exit::UnknownHost,
        format_args!("unknown host '{host}': the name has no address"),
    )
}

/// Why no connection was established, with a hint.
pub fn client_failure(error: &ClientError, target: &str) -> Failure {
    match error {
        ClientError::Connection(error) => connection_failure(error, target),
        other => Failure::new(
            Exit::Connection,
            format_args!("cannot connect to {target}: {other}"),
        ),
    }
}

/// Why a connection to `target` failed or was lost, with a hint.
pub fn connection_failure(error: &ConnectionError, target: &str) -> Failure {
    if let ConnectionError::Transport(error) | ConnectionError::PeerTransport(error) = error
        && error.code == ErrorCode::crypto(NO_APPLICATION_PROTOCOL)
    {
        return Failure::new(
            Exit::Certificate,
            format_args!("{target} does not support the requested protocol (ALPN)"),
        );
    }
    let (exit, text) = match error {
        ConnectionError::HandshakeTimedOut => (
            Exit::Connection,
            format!(
                "no answer from {target}: no QUIC server is there, or UDP is blocked on the way"
            ),
        ),
        ConnectionError::TimedOut => (
            Exit::Connection,
            format!("connection to {target} lost: idle timeout"),
        ),
        ConnectionError::Transport(error) if alert_of(error.code).is_some() => {
            (Exit::Certificate, tls_text(error, target))
        }
        ConnectionError::PeerTransport(error) if alert_of(error.code).is_some() => {
            let number = alert_of(error.code);
            let alert = number.map_or_else(String::new, describe);
            let said = if error.reason.is_empty() {
                alert
            } else {
                format!("{} ({alert})", error.reason)
            };
            (
                Exit::Certificate,
                if number.is_some_and(is_about_certificates) {
                    format!("{target} does not accept the certificate of this client: {said}")
                } else {
                    format!("{target} refused the TLS handshake: {said}")
                },
            )
        }
        ConnectionError::PeerTransport(error) if error.code == ErrorCode::CONNECTION_REFUSED => (
            Exit::Connection,
            format!("{target} refuses connections now"),
        ),
        other => (
            Exit::Connection,
            format!("connection to {target} lost: {other}"),
        ),
    };
    Failure::new(exit, text)
}

/// Errors of the local TLS.
fn tls_text(error: &TransportError, target: &str) -> String {
    let reason = &error.reason;
    match alert_of(error.code) {
        Some(alert) if is_about_certificates(alert) => {
            bad_certificate(target, reason, is_untrusted(alert))
        }
        alert => {
            let alert = alert.map_or_else(String::new, describe);
            format!("TLS with {target} failed: {reason} ({alert})")
        }
    }
}
