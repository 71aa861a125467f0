//! `tunnel connect`: the client.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::args::ConnectArgs;
use super::ip_end::IpEnd;
use super::local_end::WantedEnd;
use super::report::{End, Reached, name_of};
use crate::commands::get::trust;
use crate::exit::Failure;
use crate::proxies::{ChainSettings, Extension, ProxyChain, ProxyHop, read_identity, read_token};
use crate::runtime::StopRequests;

pub(super) async fn run(args: ConnectArgs) -> Result<(), Failure> {
    let wanted = WantedEnd::all(&args)?;
    let chain = chain(&args)?;
    // Before anything is connected: most often it is permission that is missing.
    let mut interface = IpEnd::open(&args, &chain).await?;
    let mut stops = StopRequests::new()?;
    let tunnels = chain.tunnels();
    // A proxy that can't be reached is better known now than at the first datagram.
    let reached = Reached {
        http: name_of(chain.connected().await?),
        proxy: chain.last(),
        via: chain.before(),
    };
    let mut ends = Vec::new();
    for wanted in wanted {
        let end = Arc::new(wanted.bind(tunnels, &args).await?);
        let local = end.local_addr().map_err(Failure::from)?.to_string();
        ends.push((wanted, local, end));
    }
    for (wanted, local, _) in &ends {
        described(wanted, local, wanted.target().as_deref()).listening(&reached, args.json)?;
    }
    if let Some(interface) = &mut interface {
        interface.begin(tunnels, &args, &reached).await?;
    }
    let mut running = JoinSet::new();
    for (_, _, end) in &ends {
        let end = Arc::clone(end);
        running.spawn(async move { end.run().await });
    }
    let outcome = tokio::select! {
        Some(Ok(error)) = running.join_next() => Err(Failure::from(error).context("a local address")),
        failure = IpEnd::run(interface.as_mut(), tunnels, &args, &reached) => Err(failure),
        stopped = stops.next() => stopped,
    };
    running.shutdown().await;
    // Before anything is printed, which may fail. The connection's last packets leave while the way to the proxy is kept
    // out of the tunnel.
    chain.hang_up().await;
    let closed = match interface {
        Some(interface) => Some(interface.close().await),
        None => None,
    };
    for (wanted, local, end) in &ends {
        let target = wanted.target();
        described(wanted, local, target.as_deref()).ended(&end.stats(), args.json)?;
    }
    if let Some(closed) = closed {
        closed.print(args.json)?;
    }
    outcome
}

/// The proxies that the flags name.
fn chain(args: &ConnectArgs) -> Result<ProxyChain, Failure> {
    let trust = trust(&args.trust)?;
    let before = args.via.iter().map(|hop| hop.read(&trust));
    let before = before.collect::<Result<Vec<_>, _>>()?;
    let last = ProxyHop {
        template: args.proxy.clone(),
        version: args.http_version,
        token: args.token_file.as_deref().map(read_token).transpose()?,
        trust,
        identity: read_identity(args.cert.as_deref(), args.key.as_deref())?,
        extension: match args.forwarding {
            Some(transform) => Extension::Forwarding(transform),
            None if args.repair => Extension::Repair,
            None => Extension::None,
        },
    };
    let settings = ChainSettings {
        time_limit: args.trust.connect_timeout,
        tuning: &args.tuning,
        paths: &args.paths,
    };
    ProxyChain::new(&before, &last, &settings)
}

fn described<'a>(wanted: &WantedEnd<'_>, local: &'a str, target: Option<&'a str>) -> End<'a> {
    let kind = wanted.kind();
    End {
        kind,
        local,
        target,
    }
}
