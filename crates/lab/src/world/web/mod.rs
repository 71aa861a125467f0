//! A user who browses over QUIC and TCP while a selector chooses between them.
//!
//! - `browser`: the application of the user's host, with the selector of `swiftwater_select`.
//! - `received`: what that host knows of round trips and of the server's losses.
//! - `walk`, `policer`: what the network does.
//!
//! The server is that of `swiftwater_sim::apps`. User and server have one link each way.

mod browser;
mod policer;
mod received;
mod walk;

use std::net::SocketAddr;
use std::sync::Arc as Shared;
use std::time::Duration;

use swiftwater_quic::{ClientConfig, ServerConfig};
use swiftwater_select::{Arm, Config, Model, Models, Selector, Strategy, Transport};
use swiftwater_sim::apps::{HttpsConfig, WebClient, WebServer};
use swiftwater_sim::{HostConfig, Network};
use swiftwater_units::Instant;

use super::measures::{self, FeatureRow, GroupFacts, RunFacts, Visit};
use super::topology::referred;
use super::{RunError, RunOutcome, transport};
use crate::scenario::{App, FlowSpec, Setup, WebChoice, WebModels, WebSpec};
use browser::{Browser, PATIENCE};
use walk::Walk;

pub use walk::{LOSSES_PER_MILLE, RATES_KBPS, RTTS_MS};

/// The browsing of `setup`, if its flow is that.
pub(super) fn of(setup: &Setup) -> Option<(&FlowSpec, &WebSpec)> {
    setup.flows.iter().find_map(|flow| match &flow.app {
        App::Web(spec) => Some((flow, &**spec)),
        _ => None,
    })
}

/// Runs the browsing of `setup` over its only link.
pub(super) fn run(
    setup: &Setup,
    (flow, spec): (&FlowSpec, &WebSpec),
    seed: u64,
) -> Result<RunOutcome, RunError> {
    let (visit, tasks) = match &spec.choice {
        WebChoice::Selector(strategy) => browse(
            setup,
            (flow, spec),
            &User::new(strategy.clone(), seed),
            seed,
        )?,
        WebChoice::Ideal => ideal(setup, flow, spec, seed)?,
    };
    let facts = RunFacts {
        groups: vec![GroupFacts {
            web: Some(visit),
            ..GroupFacts::default()
        }],
        links: Vec::new(),
        measured: setup.duration,
        fairness: Vec::new(),
    };
    Ok(RunOutcome {
        measures: measures::values(setup, &facts),
        simulated_s: setup.duration.as_secs_f64(),
        tasks,
        ..RunOutcome::default()
    })
}

/// The features of a user's requests over the fixed protocol of `setup`, and their mean completion time, ms; requests that failed are
/// part of the mean. Rows that models are trained with.
pub fn web_features(setup: &Setup, seed: u64) -> Result<(Vec<FeatureRow>, f64), RunError> {
    let Some((flow, spec)) = of(setup) else {
        return Err(RunError::out_of_range("the application", "`web`"));
    };
    let WebChoice::Selector(strategy @ Strategy::Fixed(_)) = &spec.choice else {
        return Err(RunError::out_of_range("the strategy", "`h2` or `h3`"));
    };
    let user = User::new(strategy.clone(), seed);
    let (visit, _) = browse(setup, (flow, spec), &user, seed)?;
    let times = visit.times();
    let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
    Ok((visit.rows, mean))
}

fn selector(spec: &WebSpec, strategy: &Strategy, seed: u64) -> Result<Selector, RunError> {
    let mut config = Config::new(vec![Arm::h2(), Arm::h3()], strategy.clone());
    let changes = [
        (
            "experiment_size",
            spec.experiment_size.map(|size| size as f64),
        ),
        ("score_threshold", spec.score_threshold),
        ("stall_factor", spec.stall_factor),
        ("stall_factor_min", spec.stall_factor_min),
        ("plus_spread", spec.plus_spread),
        (
            "hedge_floor",
            spec.hedge_floor.map(|floor| floor.as_secs_f64()),
        ),
    ];
    for (name, value) in changes {
        if let Some(value) = value {
            let set = config.parameters.set(name, value);
            set.map_err(|_| {
                RunError::out_of_range("a parameter of the selector", "see its table")
            })?;
        }
    }
    let selector = Selector::new(config, models(spec.models)?, seed);
    selector.map_err(|_| RunError::out_of_range("the selector", "a valid configuration"))
}

fn models(which: WebModels) -> Result<Models, RunError> {
    let fault = |_| RunError::out_of_range("a model", "one that can be read");
    Ok(match which {
        WebModels::None => Models::none(),
        WebModels::Shipped => Models::shipped().map_err(fault)?,
        WebModels::Single => {
            let model = Shared::new(Model::read(SINGLE).map_err(fault)?);
            Models {
                tcp: Some(Shared::clone(&model)),
                quic: Some(model),
            }
        }
    })
}

/// Trained with the requests of both protocols (`training/`).
const SINGLE: &[u8] = include_bytes!("single.ubj");

/// A user.
struct User {
    strategy: Strategy,
    /// The protocol of each condition, in place of the strategy's choice, and how long a condition lasts.
    planned: Option<(Vec<Transport>, Duration)>,
    /// Of clicks, and of the packets that are lost.
    seed: u64,
}

impl User {
    fn new(strategy: Strategy, seed: u64) -> Self {
        Self {
            strategy,
            planned: None,
            seed,
        }
    }
}

/// Users with a fixed protocol who find out, for each protocol, what it is worth in each condition.
const SCOUTS: u64 = 8;

/// Browses with the protocol that has the lesser mean in each condition. The means are those of other users in the same
/// conditions: what happens to this user by chance is not known to it.
fn ideal(
    setup: &Setup,
    flow: &FlowSpec,
    spec: &WebSpec,
    seed: u64,
) -> Result<(Visit, u64), RunError> {
    let (conditions, step) = (seed, spec.walk.unwrap_or(setup.duration));
    let mut events = 0;
    let mut scout = |arm: Arm| -> Result<Visit, RunError> {
        let mut together = Visit::default();
        for number in 1..=SCOUTS {
            // Seeds of repeats are in a row.
            let seed = seed ^ (number << 32);
            let user = User::new(Strategy::Fixed(arm.clone()), seed);
            let (visit, tasks) = browse(setup, (flow, spec), &user, conditions)?;
            events += tasks;
            together.requests.extend(visit.requests);
        }
        Ok(together)
    };
    let (tcp, quic) = (scout(Arm::h2())?, scout(Arm::h3())?);
    let user = User {
        planned: Some((Visit::quicker(&tcp, &quic, step), step)),
        ..User::new(Strategy::Race, seed)
    };
    let (visit, tasks) = browse(setup, (flow, spec), &user, seed)?;
    Ok((visit, events + tasks))
}

/// Browses until the end of `setup`; what was begun by then is waited for. The conditions follow from `conditions`.
fn browse(
    setup: &Setup,
    (flow, spec): (&FlowSpec, &WebSpec),
    user: &User,
    conditions: u64,
) -> Result<(Visit, u64), RunError> {
    let [link] = setup.links.as_slice() else {
        return Err(RunError::out_of_range("browsing", "one link"));
    };
    let (client_crypto, server_crypto) = setup.cipher.crypto()?;
    let transport = Shared::new(transport::config(setup, flow));
    let mut network = Network::new(user.seed);
    let browser = network.add_host(HostConfig::default());
    let server = network.add_host(HostConfig {
        server: Some(Shared::new(ServerConfig::new(
            server_crypto,
            Shared::clone(&transport),
        ))),
        ..HostConfig::default()
    });
    let mut links = [&link.forward, &link.backward].map(|link| referred(link, setup.rtt));
    let end = setup.duration + PATIENCE;
    if let Some(step) = spec.walk {
        let walk = Walk::new(conditions, step, end)?;
        links = links.map(|link| walk.link(&link));
    }
    let [forward, backward] = links;
    // Responses go forward.
    let (here, there) = (network.node(browser), network.node(server));
    let down = network.add_link(there, here, forward)?;
    let up = network.add_link(here, there, backward)?;
    let remote = SocketAddr::from(([10, 0, 0, 2], 443));
    network.add_interface(browser, ([10, 0, 0, 1], 49_152).into(), up, down)?;
    network.add_interface(server, remote, down, up)?;
    policer::install(&mut network, [up, down], spec.policer, spec.tcp_delay);
    // The default of HTTP/3 and HTTP/2 (RFC 9218).
    let https = HttpsConfig {
        in_order: true,
        ..HttpsConfig::default()
    };
    network.set_tcp_server(server, Some(https.tcp.clone()));
    network.install(server, WebServer::new(https.clone()));
    let quic = ClientConfig {
        crypto: client_crypto,
        transport,
    };
    let client = WebClient::new(quic, https, remote, Vec::new());
    let stop = Instant::ZERO + setup.duration;
    let selector = selector(spec, &user.strategy, user.seed)?;
    let planned = user.planned.clone();
    let session = Browser::new(client, selector, spec, user.seed, stop);
    network.install(browser, session.planned(planned));
    let is_over = |network: &Network| {
        let browser = network.application::<Browser>(browser);
        browser.is_none_or(|browser| browser.is_over(network.now()))
    };
    while !is_over(&network) && network.now() < Instant::ZERO + end {
        network.run_for(Duration::from_millis(100));
    }
    let browser = network.application::<Browser>(browser);
    let visit = browser.map(Browser::visit).unwrap_or_default();
    Ok((visit, network.stats().tasks))
}
