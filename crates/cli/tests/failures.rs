//! Messages about failed connections and names.

use std::io;

use swiftwater::ConnectionError;
use swiftwater::quic::TransportError;
use swiftwater::quic::wire::ErrorCode;
use swiftwater_cli::exit::Exit;
use swiftwater_cli::transport::{connection_failure, lookup_failure};

fn ours(code: ErrorCode) -> (Exit, String) {
    let error = ConnectionError::Transport(TransportError::new(code, "because"));
    let failure = connection_failure(&error, "host:1");
    (failure.exit, failure.message().to_owned())
}

fn theirs(alert: u8) -> (Exit, String) {
    let error = TransportError::new(ErrorCode::crypto(alert), "");
    let failure = connection_failure(&ConnectionError::PeerTransport(error), "host:1");
    (failure.exit, failure.message().to_owned())
}

#[test]
fn only_alerts_about_certificates_blame_the_certificate() {
    for alert in 0..=255 {
        let (exit, text) = ours(ErrorCode::crypto(alert));
        let certificate = [42, 43, 44, 45, 46, 48].contains(&alert);
        assert_eq!(exit, Exit::Certificate, "{text}");
        assert_eq!(
            text.contains("bad certificate"),
            certificate,
            "{alert}: {text}"
        );
        assert_eq!(text.contains("--insecure"), certificate, "{alert}: {text}");
        // Trusting it helps only if that is what it lacks.
        let untrusted = [46, 48].contains(&alert);
        assert_eq!(text.contains("--ca"), untrusted, "{alert}: {text}");
        if !certificate && alert != 120 {
            assert!(text.contains(&format!("alert {alert}")), "{text}");
            assert!(text.contains("because"), "{text}");
        }
    }
}

#[test]
fn other_alerts_are_named() {
    let (_, text) = ours(ErrorCode::crypto(109));
    assert_eq!(
        text,
        "TLS with host:1 failed: because (alert 109, missing_extension)"
    );
    let (_, text) = theirs(40);
    assert_eq!(
        text,
        "host:1 refused the TLS handshake: alert 40, handshake_failure"
    );
}

#[test]
fn a_missing_protocol_is_the_same_error_everywhere() {
    assert_eq!(ours(ErrorCode::crypto(120)), theirs(120));
    assert!(theirs(120).1.contains("ALPN"));
}

#[test]
fn codes_that_are_no_alerts_are_no_matter_of_tls() {
    for code in [
        ErrorCode::PROTOCOL_VIOLATION,
        ErrorCode(0xff),
        ErrorCode(0x200),
    ] {
        let (exit, text) = ours(code);
        assert_eq!(exit, Exit::Connection, "{text}");
        assert!(!text.contains("TLS"), "{text}");
    }
}

#[test]
fn a_resolver_that_fails_is_no_unknown_name() {
    let said = |words: &str| {
        let text = format!("failed to lookup address information: {words}");
        let failure = lookup_failure("host", &io::Error::other(text));
        assert_eq!(failure.exit, Exit::UnknownHost);
        failure.message().to_owned()
    };
    for words in [
        "Name or service not known",
        "No address associated with hostname",
        "Name does not resolve",
        "nodename nor servname provided, or not known",
    ] {
        assert_eq!(said(words), "unknown host 'host': the name has no address");
    }
    for words in ["Temporary failure in name resolution", "Try again"] {
        let text = said(words);
        assert!(text.contains("now") && text.contains(words), "{text}");
        assert!(!text.contains("no address"), "{text}");
    }
}
