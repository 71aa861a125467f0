//! TLS alerts (RFC 8446, section 6), which QUIC carries as error codes (RFC 9001, section 4.8).

use swiftwater::quic::wire::ErrorCode;

/// The alert of an error code, if it is one.
pub fn alert_of(code: ErrorCode) -> Option<u8> {
    u8::try_from(code.0.checked_sub(ErrorCode::crypto(0).0)?).ok()
}

/// `no_application_protocol` (RFC 7301, section 3.2).
pub const NO_APPLICATION_PROTOCOL: u8 = 120;

/// True if the alert is about a certificate.
pub const fn is_about_certificates(alert: u8) -> bool {
    matches!(alert, 42..=46 | 48)
}

/// True if trusting the certificate would help: `unknown_ca`, and `certificate_unknown`, which is
/// sent if an authority's certificate is presented as the server's.
pub const fn is_untrusted(alert: u8) -> bool {
    matches!(alert, 46 | 48)
}

/// The message about a certificate of `target` that is rejected for `reason`. `untrusted` if trusting it
/// would help.
pub fn bad_certificate(target: &str, reason: &str, untrusted: bool) -> String {
    let hint = if untrusted {
        "trust its certificate with --ca FILE, or skip the check with --insecure"
    } else {
        "--insecure skips the check"
    };
    format!("bad certificate of {target}: {reason} ({hint})")
}

/// The alert's name, with its number.
pub fn describe(alert: u8) -> String {
    let name = match alert {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        22 => "record_overflow",
        40 => "handshake_failure",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        49 => "access_denied",
        50 => "decode_error",
        51 => "decrypt_error",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        90 => "user_canceled",
        109 => "missing_extension",
        110 => "unsupported_extension",
        112 => "unrecognized_name",
        113 => "bad_certificate_status_response",
        115 => "unknown_psk_identity",
        116 => "certificate_required",
        120 => "no_application_protocol",
        _ => return format!("alert {alert}"),
    };
    format!("alert {alert}, {name}")
}
