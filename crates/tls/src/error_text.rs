//! Messages for rustls's errors. Its own texts contain names of Rust types and variants.

use std::net::IpAddr;

use rustls::{CertificateError, Error, InvalidMessage, PeerIncompatible};
use rustls_pki_types::UnixTime;

const SECONDS_A_DAY: u64 = 24 * 60 * 60;

/// Most names of a certificate that a message lists; there may be thousands.
const NAMES: usize = 8;

/// The message for `error`, as the rest of a sentence. Parts of it come from the peer.
pub fn error_text(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => certificate_error_text(error),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the received data are not TLS".to_owned()
        }
        Error::InvalidMessage(_) => "a malformed message was received".to_owned(),
        Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => "the server chose a version of TLS that this end doesn't support".to_owned(),
        Error::PeerIncompatible(_) => {
            "the peer requires a feature that this end doesn't support".to_owned()
        }
        Error::PeerMisbehaved(_) => "the peer violates the protocol".to_owned(),
        Error::AlertReceived(alert) => format!("the peer sent alert {}", u8::from(*alert)),
        Error::NoCertificatesPresented => "the peer presented no certificate".to_owned(),
        Error::DecryptError => "a record could not be decrypted".to_owned(),
        Error::PeerSentOversizedRecord => "a record was too long".to_owned(),
        Error::NoApplicationProtocol => "no common application protocol (ALPN)".to_owned(),
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            "a message was received that is not allowed at this point".to_owned()
        }
        other => other.to_string(),
    }
}

/// The message for a certificate error, as the rest of a sentence. Parts of it come from the peer.
pub fn certificate_error_text(error: &CertificateError) -> String {
    let text = match error {
        CertificateError::BadEncoding => "it is malformed",
        CertificateError::Expired => "it has expired",
        CertificateError::ExpiredContext { time, not_after } => {
            return format!("it has expired{}", days(*not_after, *time, "ago"));
        }
        CertificateError::NotValidYet => "it is not valid yet",
        CertificateError::NotValidYetContext { time, not_before } => {
            let when = days(*time, *not_before, "from now");
            return format!("it is not valid yet; it will be{when}");
        }
        CertificateError::Revoked => "it was revoked",
        CertificateError::UnknownIssuer => "its issuer is not trusted",
        CertificateError::BadSignature => "its issuer did not sign it",
        CertificateError::NotValidForName => "it is for another name",
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => return name_text(&expected.to_str(), presented),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "it is not meant for this end of a connection (extended key usage)"
        }
        CertificateError::UnhandledCriticalExtension => {
            "it has a critical extension that is not supported"
        }
        CertificateError::UnknownRevocationStatus
        | CertificateError::ExpiredRevocationList
        | CertificateError::ExpiredRevocationListContext { .. } => {
            "its revocation status is unknown"
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "its signature algorithm is not supported"
        }
        CertificateError::ApplicationVerificationFailure => "it was rejected",
        CertificateError::Other(other) => match other.0.downcast_ref::<webpki::Error>() {
            Some(webpki::Error::CaUsedAsEndEntity) => {
                "it is an authority's, and is not itself trusted"
            }
            Some(_) => "it does not conform to the profile of certificates (RFC 5280)",
            None => return other.0.to_string(),
        },
        _ => "it can't be verified",
    };
    text.to_owned()
}

/// ` 3 days ago`, or nothing for less than a day.
fn days(from: UnixTime, to: UnixTime, direction: &str) -> String {
    match to.as_secs().saturating_sub(from.as_secs()) / SECONDS_A_DAY {
        0 if direction == "ago" => String::new(),
        0 => " within a day".to_owned(),
        1 => format!(" 1 day {direction}"),
        count => format!(" {count} days {direction}"),
    }
}

fn name_text(expected: &str, presented: &[String]) -> String {
    // In rustls's format: `DnsName("a.example")`, `IpAddress(...)`.
    let plain = |name: &String| {
        let inner = name.split_once('(').map_or(name.as_str(), |(_, rest)| rest);
        let inner = inner.trim_end_matches(')').trim_matches('"');
        // Addresses come in an uncommon notation.
        let address = inner.parse::<IpAddr>();
        address.map_or_else(|_| inner.to_owned(), |address| address.to_string())
    };
    let mut names: Vec<String> = presented.iter().take(NAMES).map(plain).collect();
    if presented.len() > NAMES {
        names.push(format!("{} more", presented.len() - NAMES));
    }
    if names.is_empty() {
        return format!("it names no server, and {expected} was requested");
    }
    format!("it is for {}, not for {expected}", names.join(", "))
}
