//! Output of a server: its addresses, and a line for each request.

use std::net::SocketAddr;
use std::time::{Duration, UNIX_EPOCH};

use httpdate::fmt_http_date;
use serde::Serialize;
use swiftwater::Server;
use swiftwater_acme::{AcmeError, Certificate};

use super::reports::Reports;
use crate::exit::{Failure, one_line};
use crate::identity::Identity;
use crate::output;
use crate::table;

/// An event in machine-readable form.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event<'a> {
    Listening {
        address: SocketAddr,
        certificate: &'a str,
        sha256: String,
        /// Of the public key, as browsers pin it.
        spki_sha256: String,
    },
    Served {
        client: SocketAddr,
        protocol: &'a str,
        method: &'a str,
        path: &'a str,
        /// `None` if there was no response.
        status: Option<u16>,
        bytes: u64,
        seconds: f64,
        error: Option<&'a str>,
    },
    Metrics {
        address: SocketAddr,
    },
    /// HTTP without TLS, redirected.
    Redirections {
        address: SocketAddr,
    },
    Reloaded {
        /// Settings that changed in the file but not in this process.
        needs_restart: &'a [&'static str],
    },
    ReloadFailed {
        error: String,
    },
    /// The authority has issued a certificate.
    CertificateObtained {
        names: &'a [String],
        /// Seconds since 1970.
        not_after: u64,
    },
    CertificateFailed {
        error: String,
        /// Seconds until the next attempt.
        again_in: u64,
    },
}

impl Event<'_> {
    /// The event as a line of JSON.
    pub(super) fn to_text(&self) -> String {
        // All values can be represented in JSON.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Reports that the configuration was reloaded.
pub(super) fn announce_reload(needs_restart: &[&'static str], reports: &Reports, json: bool) {
    reports.event(&Event::Reloaded { needs_restart });
    if json {
        return;
    }
    output::note("configuration and certificates were reloaded");
    if !needs_restart.is_empty() {
        let names = needs_restart.join(", ");
        output::note(&format!("these changes need a restart: {names}"));
    }
}

/// Reports that it could not be reloaded, and that nothing changed.
pub(super) fn announce_failed_reload(failure: &Failure, reports: &Reports) {
    output::note(&format!("the old configuration stays in use: {failure}"));
    let error = failure.to_string();
    reports.event(&Event::ReloadFailed { error });
}

/// Reports that the authority has issued a certificate, which is in use now.
pub(super) fn announce_obtained(certificate: &Certificate, reports: &Reports, json: bool) {
    let expires = certificate.not_after();
    let not_after = expires.duration_since(UNIX_EPOCH).unwrap_or_default();
    reports.event(&Event::CertificateObtained {
        names: certificate.names(),
        not_after: not_after.as_secs(),
    });
    if json {
        return;
    }
    let (names, date) = (certificate.names().join(", "), fmt_http_date(expires));
    output::note(&format!("new certificate for {names}, valid until {date}"));
}

/// Reports that there is no new certificate.
pub(super) fn announce_failed_certificate(
    error: &AcmeError,
    again_in: Duration,
    reports: &Reports,
) {
    let error = one_line(&error.to_string());
    let minutes = again_in.as_secs().div_ceil(60);
    output::note(&format!(
        "no new certificate: {error}; the next attempt is in {minutes} min"
    ));
    reports.event(&Event::CertificateFailed {
        error,
        again_in: again_in.as_secs(),
    });
}

/// Reports by which HTTP versions the server is reached.
pub(super) fn announce_protocols(
    address: SocketAddr,
    tcp: bool,
    json: bool,
) -> Result<(), Failure> {
    if json {
        return Ok(());
    }
    let url = url(address);
    output::line(&if tcp {
        format!("  {url} (HTTP/3 on UDP, HTTP/2 and HTTP/1.1 on TCP)")
    } else {
        format!("  {url} (HTTP/3 on UDP)")
    })
}

/// Browser flags for HTTP/3 with an untrusted certificate.
pub(super) fn announce_browser(
    address: SocketAddr,
    identity: &Identity,
    json: bool,
) -> Result<(), Failure> {
    if json || !identity.development || identity.certificate_path.as_os_str().is_empty() {
        return Ok(());
    }
    let (url, authority) = (url(address), authority(address));
    let spki = identity.spki_text();
    output::line(&format!(
        "  Chromium uses HTTP/3 with --origin-to-force-quic-on={authority} \\\n    \
         --ignore-certificate-errors-spki-list={spki} --user-data-dir=/tmp/swiftwater-chromium {url}"
    ))
}

/// The authority for clients on this machine: `localhost` for a wildcard address.
fn authority(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("localhost:{}", address.port())
    } else {
        address.to_string()
    }
}

fn url(address: SocketAddr) -> String {
    format!("https://{}/", authority(address))
}

/// Lists the certificates after the first.
pub(super) fn announce_others(others: &[Identity], json: bool) -> Result<(), Failure> {
    if json {
        return Ok(());
    }
    for identity in others {
        let path = identity.certificate_path.display();
        output::line(&format!("certificate: {path}"))?;
        output::line(&format!("  SHA-256 {}", identity.fingerprint_text()))?;
    }
    Ok(())
}

/// Reports the address of the metrics.
pub(super) fn announce_metrics(address: SocketAddr, json: bool) -> Result<(), Failure> {
    if json {
        return output::json(&Event::Metrics { address });
    }
    output::line(&format!("metrics: http://{address}/metrics"))
}

/// Reports the address of redirections to HTTPS.
pub(super) fn announce_redirections(address: SocketAddr, json: bool) -> Result<(), Failure> {
    if json {
        return output::json(&Event::Redirections { address });
    }
    output::line(&format!("http://{address} is redirected to https"))
}

/// A completed request.
pub(super) struct LogLine<'a> {
    pub(super) client: SocketAddr,
    pub(super) protocol: &'a str,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) status: Option<u16>,
    pub(super) bytes: u64,
    pub(super) elapsed: Duration,
    pub(super) error: Option<String>,
}

/// Reports the content, the addresses, and how to trust the certificate.
pub(crate) fn announce(
    server: &Server,
    identity: &Identity,
    what: &str,
    json: bool,
) -> Result<(), Failure> {
    let address = server.local_addr();
    let certificate = identity.certificate_path.display().to_string();
    if json {
        return output::json(&Event::Listening {
            address,
            certificate: &certificate,
            sha256: identity.fingerprint_text(),
            spki_sha256: identity.spki_text(),
        });
    }
    output::line(&format!("{what}, port {address}"))?;
    if identity.certificate_path.as_os_str().is_empty() {
        return output::line("temporary certificate, until an authority has issued one");
    }
    if identity.development {
        let made = if identity.created {
            ", created just now"
        } else {
            ""
        };
        output::line(&format!("development certificate{made}: {certificate}"))?;
        output::line(&format!("  clients trust it with --ca {certificate}"))?;
    } else {
        output::line(&format!("certificate: {certificate}"))?;
    }
    output::line(&format!("  SHA-256 {}", identity.fingerprint_text()))
}

impl LogLine<'_> {
    /// Machine-readable form.
    pub(super) fn to_json(&self) -> String {
        let event = Event::Served {
            client: self.client,
            protocol: self.protocol,
            method: self.method,
            path: &one_line(self.path),
            status: self.status,
            bytes: self.bytes,
            seconds: self.elapsed.as_secs_f64(),
            error: self.error.as_deref(),
        };
        event.to_text()
    }

    /// Human-readable form.
    pub(super) fn to_text(&self) -> String {
        let (client, protocol, method) = (self.client, self.protocol, one_line(self.method));
        let path = one_line(self.path);
        let status = self
            .status
            .map_or_else(String::new, |status| format!(" {status},"));
        match &self.error {
            None => {
                let size = table::bytes(self.bytes);
                let time = table::time(self.elapsed);
                format!("{client} {protocol} {method} {path}:{status} {size} in {time}")
            }
            Some(error) => {
                let error = one_line(error);
                format!("{client} {protocol} {method} {path}:{status} {error}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::url;

    #[test]
    fn addresses_are_shown_as_they_can_be_opened() {
        for (address, expected) in [
            ("[::]:4433", "https://localhost:4433/"),
            ("0.0.0.0:443", "https://localhost:443/"),
            ("192.0.2.7:4433", "https://192.0.2.7:4433/"),
            ("[2001:db8::7]:4433", "https://[2001:db8::7]:4433/"),
        ] {
            assert_eq!(address.parse().map(url).as_deref(), Ok(expected));
        }
    }
}
