//! What a server prints: where it listens, and a line for each request.

use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;
use swiftwater::Server;

use crate::exit::{Failure, one_line};
use crate::identity::Identity;
use crate::output;
use crate::table;

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Listening {
        address: SocketAddr,
        certificate: &'a str,
        sha256: String,
    },
    Served {
        client: SocketAddr,
        protocol: &'a str,
        method: &'a str,
        path: &'a str,
        /// None over hq-interop, which has none.
        status: Option<u16>,
        bytes: u64,
        seconds: f64,
        error: Option<String>,
    },
    Metrics {
        address: SocketAddr,
    },
    Reloaded {
        /// Settings that changed in the file but not in this process.
        needs_restart: Vec<&'static str>,
    },
    ReloadFailed {
        error: String,
    },
}

/// Says that the configuration was read again.
pub(super) fn announce_reload(needs_restart: &[&'static str], json: bool) {
    if json {
        let needs_restart = needs_restart.to_vec();
        return tell(&Event::Reloaded { needs_restart });
    }
    output::note("configuration and certificates were read again");
    if !needs_restart.is_empty() {
        let names = needs_restart.join(", ");
        output::note(&format!("these changes need a restart: {names}"));
    }
}

/// Says that it could not be read, and that nothing changed.
pub(super) fn announce_failed_reload(failure: &Failure, json: bool) {
    output::note(&format!("the old configuration stays: {failure}"));
    if json {
        let error = failure.to_string();
        tell(&Event::ReloadFailed { error });
    }
}

fn tell(event: &Event<'_>) {
    if let Err(failure) = output::json(event) {
        tracing::warn!(%failure, "an event is lost");
    }
}

/// Says which other versions are spoken.
pub(super) fn announce_tcp(address: SocketAddr, json: bool) -> Result<(), Failure> {
    if json {
        return Ok(());
    }
    output::line(&format!(
        "HTTP/3 on UDP, HTTP/2 and HTTP/1.1 on TCP: https://{address}/"
    ))
}

/// Says which certificates there are beside the first.
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

/// Says where the counts are.
pub(super) fn announce_metrics(address: SocketAddr, json: bool) -> Result<(), Failure> {
    if json {
        return output::json(&Event::Metrics { address });
    }
    output::line(&format!("metrics: http://{address}/metrics"))
}

/// One request that is over.
pub(super) struct Line<'a> {
    pub(super) client: SocketAddr,
    pub(super) protocol: &'a str,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) status: Option<u16>,
    pub(super) bytes: u64,
    pub(super) elapsed: Duration,
    pub(super) error: Option<String>,
}

/// Says where the server listens and how to trust it.
pub(crate) fn announce(
    server: &Server,
    identity: &Identity,
    what: &str,
    json: bool,
) -> Result<(), Failure> {
    let address = server.local_addr();
    let certificate = identity.certificate_path.display().to_string();
    if json {
        let sha256 = identity.fingerprint_text();
        return output::json(&Event::Listening {
            address,
            certificate: &certificate,
            sha256,
        });
    }
    output::line(&format!("{what} on UDP {address}"))?;
    if identity.development {
        let made = if identity.created {
            ", made just now"
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

/// Tells about one request. Failing to do so must not disturb the serving.
pub(super) fn report(line: &Line<'_>, json: bool) {
    let path = one_line(line.path);
    let printed = if json {
        output::json(&Event::Served {
            client: line.client,
            protocol: line.protocol,
            method: line.method,
            path: &path,
            status: line.status,
            bytes: line.bytes,
            seconds: line.elapsed.as_secs_f64(),
            error: line.error.clone(),
        })
    } else {
        let size = table::bytes(line.bytes);
        let time = table::time(line.elapsed);
        let (client, protocol, method) = (line.client, line.protocol, one_line(line.method));
        let status = line
            .status
            .map_or_else(String::new, |status| format!(" {status},"));
        output::line(&match &line.error {
            None => format!("{client} {protocol} {method} {path}:{status} {size} in {time}"),
            Some(error) => {
                format!(
                    "{client} {protocol} {method} {path}:{status} {}",
                    one_line(error)
                )
            }
        })
    };
    if let Err(failure) = printed {
        tracing::warn!(%failure, "log line lost");
    }
}
