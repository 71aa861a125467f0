//! `play`: adaptive video from any HTTP server, in real time, without pictures.
//!
//! `load` fetches what [`swiftwater_media::presentation`] reads. `fetch` requests, `session` drives the player of
//! [`swiftwater_media::streaming`], `observer` is what watches it, `report` prints.

pub(crate) mod args;
mod fetch;
pub(crate) mod load;
pub(crate) mod observer;
pub(crate) mod report;
pub(crate) mod session;

use std::sync::Arc;

use swiftwater::units::Instant;
use swiftwater_media::streaming::{BufferConfig, ChunkedConfig, ChunkedPlayer, QoeWeights};

use self::args::PlayArgs;
use self::load::presentation;
use self::report::{Reporter, Setting};
use self::session::Session;
use crate::commands::get::args::Protocol;
use crate::commands::get::client::{ClientFlags, Clients};
use crate::exit::{Exit, Failure};
use crate::multipath::PathManagers;
use crate::runtime::{interrupted, stop_requested};

/// The feedback policy of a player whose connection has several paths.
const FEEDBACK: &str = "player";

/// Runs the command.
pub(crate) async fn run(args: PlayArgs) -> Result<(), Failure> {
    if args.protocol == Protocol::Hq {
        let text = "--protocol hq has no ranges and no statuses: choose another";
        return Err(Failure::new(Exit::Usage, text));
    }
    let over_tcp = matches!(args.protocol, Protocol::Tcp | Protocol::Http1);
    if args.paths.is_used() && over_tcp {
        let text =
            "--path, --scheduler and --multipath-version are for QUIC: choose another --protocol";
        return Err(Failure::new(Exit::Usage, text));
    }
    let clients = Clients::new(ClientFlags {
        trust: &args.trust,
        tuning: &args.tuning,
        paths: &args.paths,
        host: Some(args.url.host()),
        protocol: args.protocol,
        zero_rtt: false,
        limit_rate: None,
        feedback: has_several_paths(&args).then_some(FEEDBACK),
        no_state: args.no_state,
        selection: None,
        proxy: &args.proxy,
    })?;
    let mut stop = std::pin::pin!(stop_requested());
    let played = tokio::select! {
        played = play(&args, &clients) => played,
        stopped = &mut stop => stopped.and(Err(interrupted())),
    };
    clients.hang_up().await;
    played
}

/// Whether the connection to the server has. Through a proxy they are those of the connection to the proxy.
fn has_several_paths(args: &PlayArgs) -> bool {
    args.paths.is_used() && !args.proxy.is_used()
}

async fn play(args: &PlayArgs, clients: &Clients) -> Result<(), Failure> {
    let (video, levels) = presentation(&clients.http, &args.url).await?;
    let config = ChunkedConfig {
        buffer: BufferConfig {
            maximum: args.buffer,
            ..BufferConfig::default()
        },
        session: args.session,
        looped: args.looped,
        abandon: args.abandon,
        weights: QoeWeights {
            stall: args.stall_weight,
            switching: args.switch_weight,
        },
        ..ChunkedConfig::default()
    };
    let (adaptation, predictor) = (args.abr.build(), args.predictor.build());
    let video = Arc::new(video);
    let player = ChunkedPlayer::new(config, video, adaptation, predictor, Instant::ZERO);
    let quic = clients.quic.as_ref().filter(|_| has_several_paths(args));
    let mut session = Session {
        client: clients.http.clone(),
        player,
        levels,
        paths: quic.map(|quic| PathManagers::new(quic.endpoint().clone(), args.paths.policy())),
        max_failures: args.failures,
        observer: Reporter::new(args.json),
        started: tokio::time::Instant::now(),
    };
    let played = session.play().await;
    let protocol = match clients.http.pool_stats() {
        pool if pool.http3 > 0 => "HTTP/3",
        _ => "TCP",
    };
    let setting = Setting {
        protocol,
        adaptation: args.abr.name(),
        predictor: args.predictor.name(),
    };
    // What was played counts even if the end is missing.
    session.observer.results(&session.player, setting)?;
    played
}
