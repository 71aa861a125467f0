//! `tunnel connect`: the client.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use swiftwater::Client;
use swiftwater_http::h3;
use swiftwater_http::udp::{ALPN_HTTP3, SendRequest};
use swiftwater_tunnel::client::{Connect, Connecting, ForwardStats, LocalForward, TunnelClient};
use swiftwater_tunnel::proxy::Token;
use swiftwater_tunnel::transport::for_client;
use tokio::task::JoinSet;

use super::args::ConnectArgs;
use super::forward::Forward;
use crate::commands::get::trust;
use crate::exit::{Exit, Failure, plain_io_error};
use crate::files::read_limited;
use crate::output;
use crate::runtime::StopRequests;
use crate::transport::{CloseReason, build_failure, client, connect, hang_up};

/// The largest file with a token, bytes.
const MAX_TOKEN_FILE: u64 = 64 << 10;

pub(super) async fn run(args: ConnectArgs) -> Result<(), Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::new(Exit::Usage, error);
    let token = args.token_file.as_deref().map(read_token).transpose()?;
    let (host, port) = args.proxy.proxy().map_err(|error| usage(&error))?;
    let quic = client(&trust(&args.trust)?, ALPN_HTTP3, &args.tuning)
        .transport(|transport| {
            for_client(transport);
            transport.handshake_timeout = args.trust.connect_timeout;
        })
        .build()
        .map_err(|error| build_failure(&error))?;
    let proxy = format!("{host}:{port}");
    let connector = Connector {
        client: quic.clone(),
        host,
        port,
    };
    let mut stops = StopRequests::new()?;
    let (template, token) = (args.proxy.clone(), token.as_ref());
    let tunnels = if args.repair {
        TunnelClient::with_repair(template, token, connector)
    } else {
        TunnelClient::new(template, token, connector)
    };
    // A proxy that can't be reached is better known now than at the first datagram.
    tunnels
        .connection()
        .await
        .map_err(|error| Failure::new(Exit::Connection, error))?;
    let mut forwards = Vec::new();
    for forward in &args.forwards {
        forwards.push((forward, bind(forward, &tunnels, &args).await?));
    }
    for (forward, bound) in &forwards {
        let local = bound.local_addr().map_err(Failure::from)?.to_string();
        let target = forward.target.to_string();
        if args.json {
            output::json(&Event::Listening {
                local,
                target,
                proxy: &proxy,
            })?;
        } else {
            output::line(&format!("UDP {local} leads to {target} through {proxy}"))?;
        }
    }
    let mut running = JoinSet::new();
    for (_, forward) in &forwards {
        let forward = Arc::clone(forward);
        running.spawn(async move { forward.run().await });
    }
    let outcome = tokio::select! {
        Some(Ok(error)) = running.join_next() => Err(Failure::from(error).context("a local address")),
        stopped = stops.next() => stopped,
    };
    running.shutdown().await;
    for (forward, bound) in &forwards {
        let target = forward.target.to_string();
        report(&target, &bound.stats(), args.json)?;
    }
    tunnels.close().await;
    hang_up(&quic, CloseReason::Done).await;
    outcome
}

async fn bind(
    forward: &Forward,
    tunnels: &TunnelClient,
    args: &ConnectArgs,
) -> Result<Arc<LocalForward>, Failure> {
    let target = forward.target.clone();
    let bound = LocalForward::bind(forward.local, tunnels.clone(), target, args.idle_timeout);
    bound.await.map(Arc::new).map_err(|error| {
        let (local, why) = (forward.local, plain_io_error(&error));
        Failure::new(
            Exit::Listen,
            format_args!("cannot listen on UDP {local}: {why}"),
        )
    })
}

/// What is printed with `--json`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Event<'a> {
    Listening {
        local: String,
        target: String,
        proxy: &'a str,
    },
    Ended {
        target: &'a str,
        tunnels: u64,
        failed: u64,
        datagrams_sent: u64,
        datagrams_received: u64,
        datagrams_dropped: u64,
    },
}

fn report(target: &str, stats: &ForwardStats, json: bool) -> Result<(), Failure> {
    if json {
        return output::json(&Event::Ended {
            target,
            tunnels: stats.opened,
            failed: stats.failed,
            datagrams_sent: stats.sent,
            datagrams_received: stats.received,
            datagrams_dropped: stats.dropped,
        });
    }
    output::line(&format!(
        "{target}: {} tunnels ({} failed), {} datagrams sent, {} received, {} dropped",
        stats.opened, stats.failed, stats.sent, stats.received, stats.dropped
    ))
}

/// The token in the first line of a file, which may follow the name of the user.
fn read_token(file: &Path) -> Result<Token, Failure> {
    let failure = |why: String| {
        Failure::new(
            Exit::LocalFile,
            format_args!("token {}: {why}", file.display()),
        )
    };
    let bytes =
        read_limited(file, MAX_TOKEN_FILE).map_err(|error| failure(plain_io_error(&error)))?;
    let text = String::from_utf8(bytes).map_err(|_| failure("it is not UTF-8".to_owned()))?;
    let line = text.lines().next().unwrap_or_default().trim();
    let (user, secret) = line.split_once(char::is_whitespace).unwrap_or(("", line));
    Token::new(user, secret.trim_start()).map_err(|error| failure(error.to_string()))
}

/// Connects to the proxy.
struct Connector {
    client: Client,
    host: String,
    port: u16,
}

impl Connect for Connector {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let connected = connect(&self.client, &self.host, self.port).await;
            let connection = connected.map_err(|failure| failure.to_string())?;
            Ok(SendRequest::new(connection, h3::Config::default()))
        })
    }
}
