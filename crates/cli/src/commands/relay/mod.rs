//! `relay`: emulated links between real UDP programs: one, or several for the paths of a connection.

pub mod change;
pub mod leg;
mod record;
mod report;

use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::task::Poll;
use std::time::{Duration, Instant};

use swiftwater::net::relay::{Relay, RelayConfig, RelayError};
use tokio::time::{MissedTickBehavior, interval_at, sleep_until};

use self::change::{ChangeArg, LegCondition};
use self::leg::LegArg;
use self::record::Record;
use self::report::{Reports, describe};
use crate::cli::RelayArgs;
use crate::exit::{Exit, Failure};
use crate::runtime::stop_requested;
use crate::transport::{bind_failure, resolve};

/// Interval of counters that are not requested: practically infinite.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Where a leg listens to which no client sends.
const UNUSED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Interval at which recorded deliveries are written.
const WRITE: Duration = Duration::from_millis(500);

/// One emulated network.
struct Leg {
    /// None if it is the only one and has no name.
    name: Option<String>,
    relay: Relay,
    /// Clients send to it, and not to another.
    listens: bool,
    condition: LegCondition,
}

pub(crate) async fn run(args: RelayArgs) -> Result<(), Failure> {
    let reports = Reports { json: args.json };
    let mut changes = args.changes.clone();
    changes.sort_by_key(|change| change.at);
    let mut legs = start_all(&args, &reports).await?;
    check(&changes, &legs)?;
    let mut record = args.record.as_deref().map(Record::create).transpose()?;
    if record.is_some() {
        for leg in &legs {
            leg.relay.record_deliveries();
        }
    }
    let start = Instant::now();
    let mut ticks = ticks(args.stats.unwrap_or(NEVER));
    let mut writes = ticks_of(record.is_some());
    let mut stop = std::pin::pin!(stop_requested());
    let mut first = None;
    let mut changes = changes.into_iter().peekable();
    loop {
        let next = first
            .zip(changes.peek())
            .map(|(first, change)| first + change.at);
        tokio::select! {
            _ = ticks.tick() => reports.all(&legs, start.elapsed())?,
            _ = writes.tick() => write(record.as_mut(), &legs, first)?,
            () = first_datagram(&legs), if first.is_none() => first = Some(Instant::now()),
            () = sleep_until(next.unwrap_or(start).into()), if next.is_some() => {
                if let Some(change) = changes.next() {
                    apply(&change, &mut legs, &reports)?;
                }
            }
            stopped = &mut stop => {
                stopped?;
                break;
            }
        }
    }
    write(record.as_mut(), &legs, first)?;
    for leg in legs {
        let counters = leg.relay.stop();
        reports.counters(leg.name.as_deref(), &counters, start.elapsed())?;
    }
    Ok(())
}

fn ticks(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval_at(tokio::time::Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// When recorded deliveries are written.
fn ticks_of(is_recorded: bool) -> tokio::time::Interval {
    ticks(if is_recorded { WRITE } else { NEVER })
}

/// Starts the legs and announces them.
async fn start_all(args: &RelayArgs, reports: &Reports) -> Result<Vec<Leg>, Failure> {
    let mut legs = Vec::new();
    if let Some(listen) = args.listen {
        let only = LegArg {
            name: None,
            listen: Some(listen),
            from: None,
            to: None,
            link: args.links.clone(),
        };
        legs.push(start(args, None, &only, 0, None, reports).await?);
        return Ok(legs);
    }
    let names = leg::names(&args.legs)?;
    for (place, (arg, name)) in (0..).zip(args.legs.iter().zip(names)) {
        let arg = LegArg {
            link: arg.link.or(&args.links),
            ..arg.clone()
        };
        let before = legs.iter().rev().find(|leg: &&Leg| leg.listens);
        legs.push(start(args, Some(name), &arg, place, before, reports).await?);
    }
    Ok(legs)
}

async fn start(
    args: &RelayArgs,
    name: Option<String>,
    arg: &LegArg,
    place: u64,
    before: Option<&Leg>,
    reports: &Reports,
) -> Result<Leg, Failure> {
    let links = arg.link.links()?;
    let to = target(arg.to.as_deref().unwrap_or(&args.to)).await?;
    let description = format!(
        "up: {}; down: {}",
        describe(&links.up),
        describe(&links.down)
    );
    let config = RelayConfig {
        up: links.up,
        down: links.down,
        // The first leg is what a relay of one leg is with the same seed.
        seed: args.seed ^ (place << 32),
        ..RelayConfig::new(arg.listen.unwrap_or(UNUSED), to)
    };
    let relay = Relay::start(config).map_err(|error| relay_failure(&error))?;
    let mut listen = relay.local_addr();
    if let Some(from) = arg.from {
        let before = before.ok_or_else(|| {
            let text = format_args!("--leg from={from}: no leg before it listens");
            Failure::new(Exit::Usage, text)
        })?;
        let diverted = before.relay.divert(from, &relay);
        diverted.map_err(|error| relay_failure(&error))?;
        listen = before.relay.local_addr();
    }
    reports.listening(name.as_deref(), listen, arg.from, to, &description)?;
    Ok(Leg {
        name,
        relay,
        listens: arg.listen.is_some(),
        condition: LegCondition::default(),
    })
}

/// Every change is of a leg that exists.
fn check(changes: &[ChangeArg], legs: &[Leg]) -> Result<(), Failure> {
    for change in changes {
        if change.leg.is_some() && !legs.iter().any(|leg| leg.name == change.leg) {
            let names: Vec<_> = legs.iter().filter_map(|leg| leg.name.as_deref()).collect();
            let name = change.leg.as_deref().unwrap_or_default();
            let known = names.join(", ");
            return Err(Failure::new(
                Exit::Usage,
                format_args!("--change {name}: no leg has that name; there are: {known}"),
            ));
        }
    }
    Ok(())
}

/// Returns with the first datagram of a client on any leg.
async fn first_datagram(legs: &[Leg]) {
    let used = legs.iter().map(|leg| Box::pin(leg.relay.in_use()));
    let mut used: Vec<_> = used.collect();
    poll_fn(|cx| {
        // A relay stops only with this program.
        let any = used.iter_mut().any(|leg| leg.as_mut().poll(cx).is_ready());
        if any { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

fn apply(change: &ChangeArg, legs: &mut [Leg], reports: &Reports) -> Result<(), Failure> {
    for leg in legs {
        if change.leg.is_some() && change.leg != leg.name {
            continue;
        }
        leg.condition = leg.condition.after(change.fault);
        let LegCondition { up, down } = leg.condition;
        let set = leg.relay.set_conditions(up, down);
        set.map_err(|error| relay_failure(&error))?;
        reports.changed(leg.name.as_deref(), change)?;
    }
    Ok(())
}

fn write(record: Option<&mut Record>, legs: &[Leg], first: Option<Instant>) -> Result<(), Failure> {
    let (Some(record), Some(first)) = (record, first) else {
        return Ok(());
    };
    for leg in legs {
        record.write(leg.name.as_deref(), &leg.relay.take_deliveries(), first)?;
    }
    record.flush()
}

/// The address of a `host:port`.
async fn target(text: &str) -> Result<SocketAddr, Failure> {
    let (host, port) = host_and_port(text)?;
    let addresses = resolve(&host, port).await?;
    // The relay uses one address; with names in test set-ups, usually IPv4 is intended.
    let v4 = addresses.iter().find(|address| address.is_ipv4());
    v4.or(addresses.first())
        .copied()
        .ok_or_else(|| Failure::new(Exit::UnknownHost, format_args!("unknown host '{host}'")))
}

/// Splits `host:port`, `[v6]:port`.
pub(crate) fn host_and_port(text: &str) -> Result<(String, u16), Failure> {
    let fail = || Failure::new(Exit::Usage, format_args!("'{text}' is not host:port"));
    let (host, port) = text.rsplit_once(':').ok_or_else(fail)?;
    let port: u16 = port
        .parse()
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(fail)?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').ok_or_else(fail)?,
        None if host.contains(':') => return Err(fail()),
        None => host,
    };
    if host.is_empty() {
        Err(fail())
    } else {
        Ok((host.to_owned(), port))
    }
}

fn relay_failure(error: &RelayError) -> Failure {
    match error {
        RelayError::Bind(error) => bind_failure(error),
        RelayError::Link { .. } => Failure::new(Exit::Usage, error),
        other => Failure::new(Exit::Failure, other),
    }
}
