//! Messages and exit codes of failed requests.

use std::error::Error as StdError;
use std::io;

use http::StatusCode;
use rustls::{AlertDescription, CertificateError, InvalidMessage, PeerIncompatible};
use swiftwater::ConnectionError;
use swiftwater::tls::{certificate_error_text, error_text};
use swiftwater_http::client::{AttemptCause, AttemptError, AttemptTransport, Error, Phase};
use swiftwater_http::h3::BodyError;
use swiftwater_http::udp::ClientError;

use crate::exit::{Exit, Failure, plain_io_error};
use crate::tls_alert::{bad_certificate, describe};
use crate::transport::{connection_failure, lookup_failure, no_address};
use crate::url::Url;

/// Why a request to `url` failed, or the content of its response.
pub(crate) fn request_failure(error: &Error, url: &Url) -> Failure {
    let target = target(url);
    let lost = |text: &dyn std::fmt::Display| {
        Failure::new(
            Exit::Connection,
            format_args!("the request to {target} failed: {text}"),
        )
    };
    match error {
        Error::InvalidUri(_) | Error::Connect => Failure::new(Exit::Usage, error),
        Error::Resolve { host, source } => lookup_failure(host, source),
        Error::NoAddress(host) => no_address(host),
        Error::Unreachable(attempts) => unreachable(attempts, &target),
        Error::Http3(ClientError::Connection(error))
        | Error::Content(BodyError::ConnectionLost(error)) => connection_failure(error, &target),
        other => lost(other),
    }
}

/// Why content was incomplete.
pub(crate) fn content_failure(error: &(dyn StdError + 'static), url: &Url) -> Failure {
    let mut source = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<Error>() {
            return request_failure(error, url);
        }
        source = error.source();
    }
    Failure::new(
        Exit::Connection,
        format_args!("the content from {} broke off: {error}", target(url)),
    )
}

/// A response status that is a failure.
pub(crate) fn status_failure(url: &Url, status: StatusCode, more: &str) -> Failure {
    let reason = status.canonical_reason().unwrap_or_default();
    let status = status.as_u16();
    let more = if more.is_empty() {
        String::new()
    } else {
        format!(" ({more})")
    };
    Failure::new(
        Exit::Status,
        format_args!("{url}: the server answered {status} {reason}{more}"),
    )
}

/// `host:port`, for messages.
pub(super) fn target(url: &Url) -> String {
    let (host, port) = (url.host(), url.port());
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// The failure of all connection attempts: certificate errors first, then the last error of each
/// transport.
fn unreachable(attempts: &[AttemptError], target: &str) -> Failure {
    let all = attempts
        .iter()
        .map(|attempt| (attempt.transport, one(attempt, target)));
    let all: Vec<_> = all.collect();
    let certificate =
        |(_, failure): &&(AttemptTransport, Failure)| failure.exit == Exit::Certificate;
    if let Some((_, failure)) = all.iter().find(certificate) {
        return failure.clone();
    }
    let last = |wanted| all.iter().rev().find(|(transport, _)| *transport == wanted);
    match (last(AttemptTransport::Quic), last(AttemptTransport::Tcp)) {
        (Some((_, quic)), Some((_, tcp))) => Failure::new(
            Exit::Connection,
            format_args!("over QUIC: {}; over TCP: {}", quic.message(), tcp.message()),
        ),
        (Some((_, failure)), None) | (None, Some((_, failure))) => failure.clone(),
        (None, None) => Failure::new(Exit::Connection, format_args!("no connection to {target}")),
    }
}

fn one(attempt: &AttemptError, target: &str) -> Failure {
    match &attempt.cause {
        AttemptCause::Quic(error) => connection_failure(error, target),
        AttemptCause::Timeout(Phase::Quic) => {
            connection_failure(&ConnectionError::HandshakeTimedOut, target)
        }
        AttemptCause::Io(error) if attempt.transport == AttemptTransport::Quic => Failure::new(
            Exit::Connection,
            format_args!(
                "cannot connect to {target}: {}",
                match error.kind() {
                    io::ErrorKind::ConnectionRefused => "the UDP port is unreachable".to_owned(),
                    _ => plain_io_error(error),
                }
            ),
        ),
        AttemptCause::Io(error) => io_failure(error, target),
        other => Failure::new(
            Exit::Connection,
            format_args!("cannot connect to {target}: {other}"),
        ),
    }
}

/// Errors of TLS over TCP.
fn tls_text(error: &rustls::Error, target: &str) -> String {
    match error {
        rustls::Error::InvalidCertificate(reason) => {
            let untrusted = matches!(
                reason,
                CertificateError::UnknownIssuer | CertificateError::Other(_)
            );
            let reason = certificate_error_text(reason);
            bad_certificate(target, &reason, untrusted)
        }
        rustls::Error::AlertReceived(AlertDescription::ProtocolVersion)
        | rustls::Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => format!(
            "TLS with {target} failed: the server accepts neither TLS 1.3 nor TLS 1.2, and get speaks \
             nothing older"
        ),
        rustls::Error::AlertReceived(alert) => {
            let alert = describe(u8::from(*alert));
            format!("{target} refused the TLS handshake: {alert}")
        }
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            format!("{target} does not speak TLS (is it http://?)")
        }
        other => format!("TLS with {target} failed: {}", error_text(other)),
    }
}

/// Errors of TCP, or of TLS over it.
fn io_failure(error: &io::Error, target: &str) -> Failure {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref());
    match tls {
        Some(error) => Failure::new(Exit::Certificate, tls_text(error, target)),
        None => Failure::new(
            Exit::Connection,
            format_args!("cannot connect to {target}: {}", plain_io_error(error)),
        ),
    }
}
