//! `tunnel connect`: the client.

use std::sync::Arc;

use swiftwater_tunnel::client::TunnelClient;
use tokio::task::JoinSet;

use super::args::ConnectArgs;
use super::ip_end::IpEnd;
use super::local_end::Asked;
use super::report::End;
use crate::commands::get::trust;
use crate::exit::{Exit, Failure};
use crate::proxy_connector::{ProxyConnector, ProxyTrust, read_identity, read_token};
use crate::runtime::StopRequests;
use crate::transport::{CloseReason, hang_up};

pub(super) async fn run(args: ConnectArgs) -> Result<(), Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::new(Exit::Usage, error);
    let asked = Asked::all(&args)?;
    let token = args.token_file.as_deref().map(read_token).transpose()?;
    let (host, port) = args.proxy.proxy().map_err(|error| usage(&error))?;
    let proxy = format!("{host}:{port}");
    // Before anything is connected: most often it is permission that is missing.
    let mut interface = IpEnd::open(&args, &host, port).await?;
    let connector = ProxyConnector::new(
        &args.proxy,
        args.http_version,
        &ProxyTrust {
            trust: trust(&args.trust)?,
            identity: read_identity(args.cert.as_deref(), args.key.as_deref())?,
        },
        args.trust.connect_timeout,
        &args.tuning,
        &args.paths,
    )?;
    let quic = connector.quic.clone();
    let mut stops = StopRequests::new()?;
    let (template, token) = (args.proxy.clone(), token.as_ref());
    let tunnels = if args.repair {
        TunnelClient::with_repair(template, token, connector)
    } else {
        TunnelClient::new(template, token, connector)
    };
    // A proxy that can't be reached is better known now than at the first datagram.
    let connected = tunnels.connected().await;
    let version = connected.map_err(|error| Failure::new(Exit::Connection, error))?;
    let mut ends = Vec::new();
    for asked in asked {
        let end = Arc::new(asked.bind(&tunnels, &args).await?);
        let local = end.local_addr().map_err(Failure::from)?.to_string();
        ends.push((asked, local, end));
    }
    for (asked, local, _) in &ends {
        described(asked, local, asked.target().as_deref()).listening(&proxy, version, args.json)?;
    }
    if let Some(interface) = &mut interface {
        let begun = interface.begin(&tunnels, &args, (&proxy, version));
        begun.await?;
    }
    let mut running = JoinSet::new();
    for (_, _, end) in &ends {
        let end = Arc::clone(end);
        running.spawn(async move { end.run().await });
    }
    let outcome = tokio::select! {
        Some(Ok(error)) = running.join_next() => Err(Failure::from(error).context("a local address")),
        failure = IpEnd::run(interface.as_mut()) => Err(failure),
        stopped = stops.next() => stopped,
    };
    running.shutdown().await;
    for (asked, local, end) in &ends {
        let target = asked.target();
        described(asked, local, target.as_deref()).ended(&end.stats(), args.json)?;
    }
    if let Some(interface) = interface {
        interface.ended(args.json).await?;
    }
    tunnels.close().await;
    hang_up(&quic, CloseReason::Done).await;
    outcome
}

fn described<'a>(asked: &Asked<'_>, local: &'a str, target: Option<&'a str>) -> End<'a> {
    let kind = asked.kind();
    End {
        kind,
        local,
        target,
    }
}
