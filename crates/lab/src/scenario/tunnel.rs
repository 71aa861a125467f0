//! The keys of a flow's tunnel.

use std::sync::Arc;

use swiftwater_policies::Policies;
use swiftwater_sim::apps::{Carriage, TunnelConfig};
use swiftwater_tecc::REPORT_ROOM;

use super::error::{Read, known_names};
use super::flows::{ARQ, World};
use super::reader::Reader;
use super::setup::{App, TunnelSpec};

/// The keys.
pub(super) const KEYS: [&str; 6] = [
    "tunnel",
    "tunnel_at",
    "tunnel_cc",
    "tunnel_recovery",
    "report_loss",
    "report_room",
];

/// No tunnel.
const NONE: &str = "none";

/// The most by which packets may be larger than their payloads need, bytes.
const MOST_ROOM: u16 = 200;

/// The kinds of tunnels: name, carriage, repair, reports.
const KINDS: [(&str, Carriage, bool, bool); 5] = [
    ("datagrams", Carriage::Datagrams, false, false),
    ("stream", Carriage::Stream, false, false),
    ("forwarded", Carriage::Forwarded, false, false),
    ("repair", Carriage::Datagrams, true, false),
    ("tecc", Carriage::Datagrams, true, true),
];

/// Reads the keys; `None` without a tunnel.
pub(super) fn read(
    row: &Reader<'_>,
    app: &App,
    (enter, exit): (usize, usize),
    world: &World<'_>,
) -> Read<Option<TunnelSpec>> {
    let name = row.string("tunnel")?.unwrap_or(NONE);
    if name == NONE {
        return Ok(None);
    }
    let kind = KINDS.iter().find(|(kind, ..)| *kind == name);
    let Some((_, carriage, repair, reports)) = kind else {
        let names = KINDS.iter().map(|(name, ..)| *name).chain([NONE]);
        return Err(row.fault("tunnel", known_names(name, names)));
    };
    if !matches!(app, App::Requests { .. } | App::Live { .. } | App::Video(_)) {
        let why = "its client must be at the exit: `requests`, `live` or `video`";
        return Err(row.fault("tunnel", why));
    }
    if world.is_parallel || enter >= exit {
        let why = "a tunnel needs a chain of [[link]]s, and an exit behind the entry";
        return Err(row.fault("tunnel", why));
    }
    let between = enter as u64..=exit as u64 - 1;
    let router = row.whole("tunnel_at", between)?.unwrap_or(exit as u64 - 1);
    let text = match row.string("tunnel_cc")? {
        Some(text) => text,
        None => row.string("cc")?.unwrap_or_default(),
    };
    let controller = world.options.catalogue.get(text);
    let recovery = row.string("tunnel_recovery")?;
    if recovery.is_some() && *carriage != Carriage::Stream {
        let why = "only the tunnel `stream` has data that a recovery policy sends again";
        return Err(row.fault("tunnel_recovery", why));
    }
    let reinjector = (world.options.policies)
        .get(recovery.unwrap_or(ARQ))
        .map_err(|error| row.fault("tunnel_recovery", error.to_string()))?;
    let report_loss = row.number("report_loss", 0.0..=1.0)?.unwrap_or(0.0);
    if report_loss > 0.0 && !reports {
        let why = "only the tunnel `tecc` reports";
        return Err(row.fault("report_loss", why));
    }
    let most_room = u64::from(MOST_ROOM);
    let report_room = row.whole("report_room", 0..=most_room)?;
    let report_room = report_room.and_then(|room| u16::try_from(room).ok());
    Ok(Some(TunnelSpec {
        router: router as usize,
        config: TunnelConfig {
            carriage: *carriage,
            repair: repair.then(Default::default),
            reports: *reports,
            report_loss,
        },
        report_room: report_room.unwrap_or(REPORT_ROOM),
        controller: controller.map_err(|error| row.fault("tunnel_cc", error.to_string()))?,
        recovery: Arc::new(Policies::default().with_reinjector(reinjector)),
    }))
}
