//! `serve`: the files of a directory over `hq-interop`.

use std::net::SocketAddr;
use std::sync::Arc;

use serde::Serialize;
use swiftwater::{EarlyData, RetryPolicy, Server};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Duration, timeout};

use crate::cli::{IdentityArgs, ServeArgs, ZeroRtt};
use crate::exit::{Exit, Failure, one_line, plain_io_error};
use crate::hq;
use crate::hq::service::{ServeError, Served, serve_connection};
use crate::identity::{Identity, default_state_dir};
use crate::output;
use crate::runtime::{interrupted, stop_requested};
use crate::site::Site;
use crate::table;
use crate::transport::{farewell, listen, server};

pub(crate) async fn run(args: ServeArgs) -> Result<(), Failure> {
    let site = Site::new(&args.directory).map_err(|error| {
        let why = plain_io_error(&error);
        Failure::new(
            Exit::LocalFile,
            format_args!("cannot serve {}: {why}", args.directory.display()),
        )
    })?;
    let identity = identity(&args.identity)?;
    let mut builder = server(&identity, hq::ALPN, &args.tuning)
        .transport(|transport| transport.handshake_timeout = args.handshake_timeout)
        .workers(args.workers);
    for &address in &args.preferred_address {
        builder = builder.preferred_address(address);
    }
    if args.retry {
        builder = builder.retry(RetryPolicy::Always);
    }
    builder = builder.early_data(match args.zero_rtt {
        ZeroRtt::Accept => EarlyData::Accept,
        ZeroRtt::Reject => EarlyData::Reject,
    });
    let server = listen(&builder, args.listen)?;
    announce(
        &server,
        &identity,
        &format!("serving {}", site.root().display()),
        args.json,
    )?;

    let (drain, draining) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop_requested());
    loop {
        tokio::select! {
            connection = server.accept() => {
                let Some(connection) = connection else { break };
                let client = connection.remote_address();
                let json = args.json;
                let log = move |served| report(client, &served, json);
                let site = Arc::new(site.clone());
                connections.spawn(serve_connection(connection, site, draining.clone(), log));
            }
            Some(_) = connections.join_next() => {}
            stopped = &mut stop => {
                stopped?;
                break;
            }
        }
    }
    server.endpoint().set_server_config(None);
    drain.send_replace(true);
    let outcome = finish(&mut connections, args.grace).await;
    farewell(&server).await;
    outcome
}

/// Waits for the downloads in progress.
async fn finish(connections: &mut JoinSet<()>, grace: Duration) -> Result<(), Failure> {
    if connections.is_empty() {
        return Ok(());
    }
    output::note("stopping: running downloads may end (Ctrl-C again stops at once)");
    let all = async { while connections.join_next().await.is_some() {} };
    tokio::select! {
        ended = timeout(grace, all) => ended.map_err(|_| {
            Failure::new(Exit::Interrupted, "stopped before all downloads had ended")
        }),
        stopped = stop_requested() => {
            stopped?;
            Err(interrupted())
        }
    }
}

/// The certificate that the flags ask for.
pub(crate) fn identity(args: &IdentityArgs) -> Result<Identity, Failure> {
    if let (Some(cert), Some(key)) = (&args.cert, &args.key) {
        return Identity::from_files(cert, key);
    }
    let state_dir = match &args.state_dir {
        Some(directory) => directory.clone(),
        None => default_state_dir()?,
    };
    Identity::development(&state_dir, &args.names)
}

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
        path: &'a str,
        bytes: u64,
        seconds: f64,
        error: Option<String>,
    },
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
fn report(client: SocketAddr, served: &Served, json: bool) {
    let error = served.outcome.as_ref().err().map(ServeError::to_string);
    let path = one_line(&served.path);
    let seconds = served.elapsed.as_secs_f64();
    let printed = if json {
        let bytes = served.bytes;
        output::json(&Event::Served {
            client,
            path: &path,
            bytes,
            seconds,
            error,
        })
    } else {
        let size = table::bytes(served.bytes);
        let time = table::time(served.elapsed);
        output::line(&match error {
            None => format!("{client} GET {path}: {size} in {time}"),
            Some(error) => format!("{client} GET {path}: {}", one_line(&error)),
        })
    };
    if let Err(failure) = printed {
        tracing::warn!(%failure, "log line lost");
    }
}
