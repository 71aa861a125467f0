//! Measurements of one protocol on one network, over all loads.

use std::time::Duration;

use serde::Serialize;

use super::emulated_link::LinkKind;
use super::plan::WebProtocol;
use super::visit::Visit;
use crate::demo::presets::Preset;
use crate::demo::tcp_controller;
use crate::exit::Failure;
use crate::table::{self, Table};

/// The results of one protocol on one network: medians over the loads; calls of all loads are pooled.
/// Times of the page count from its request, the handshake included. Values that were not measured are
/// `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VisitRow {
    /// The network.
    pub preset: Preset,
    /// The protocol.
    pub protocol: WebProtocol,
    /// How packets traversed it.
    pub way: LinkKind,
    /// Congestion controller of the server: Swiftwater's for HTTP/3, the kernel's for HTTP/2.
    pub controller: Option<String>,
    /// Bytes of the page, without fields and calls.
    pub page_bytes: u64,
    /// Loads that completed, every byte correct.
    pub loads: usize,
    /// Loads that failed.
    pub failed: usize,
    /// Until the connection was ready for requests.
    pub handshake_ms: Option<f64>,
    /// Until the head of the page's HTML.
    pub first_byte_ms: Option<f64>,
    /// Until all objects were complete that are needed to show the page.
    pub critical_ms: Option<f64>,
    /// Until all objects were complete.
    pub page_ms: Option<f64>,
    /// Calls of the API that were answered.
    pub calls: usize,
    /// From the time that a call was due to the end of its response: median.
    pub call_p50_ms: Option<f64>,
    /// 95 % of the calls took no longer.
    pub call_p95_ms: Option<f64>,
    /// 99 % of the calls took no longer.
    pub call_p99_ms: Option<f64>,
    /// Bytes put on the link, both ways, with IP headers.
    pub wire_bytes: Option<u64>,
    /// Share of the packets of all loads that the link dropped.
    pub dropped: Option<f64>,
    /// Why the protocol was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// The first failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl VisitRow {
    /// No measurements yet.
    pub fn empty(preset: Preset, protocol: WebProtocol, way: LinkKind) -> Self {
        Self {
            preset,
            protocol,
            way,
            controller: None,
            page_bytes: 0,
            loads: 0,
            failed: 0,
            handshake_ms: None,
            first_byte_ms: None,
            critical_ms: None,
            page_ms: None,
            calls: 0,
            call_p50_ms: None,
            call_p95_ms: None,
            call_p99_ms: None,
            wire_bytes: None,
            dropped: None,
            skipped: None,
            error: None,
        }
    }

    /// Fills in the results of `visits`.
    pub fn measured(&mut self, visits: &[Result<Visit, Failure>]) {
        let good: Vec<&Visit> = visits
            .iter()
            .filter_map(|visit| visit.as_ref().ok())
            .collect();
        self.loads = good.len();
        self.failed = visits.len() - good.len();
        let first = visits.iter().find_map(|visit| visit.as_ref().err());
        self.error = first.map(ToString::to_string);
        let median = |of: fn(&Visit) -> Duration| {
            quantile(good.iter().map(|visit| of(visit)), 0.5).map(milliseconds)
        };
        self.handshake_ms = median(|visit| visit.seen.handshake);
        self.first_byte_ms = median(|visit| visit.seen.first_byte);
        self.critical_ms = median(|visit| visit.seen.critical);
        self.page_ms = median(|visit| visit.seen.page);
        let calls = || {
            good.iter()
                .flat_map(|visit| visit.seen.calls.iter().copied())
        };
        self.calls = calls().count();
        let of_calls = |share| quantile(calls(), share).map(milliseconds);
        self.call_p50_ms = of_calls(0.5);
        self.call_p95_ms = of_calls(0.95);
        self.call_p99_ms = of_calls(0.99);
        self.wire_bytes = quantile(good.iter().map(|visit| visit.wire_bytes), 0.5);
        let packets: u64 = good.iter().map(|visit| visit.packets).sum();
        let dropped: u64 = good.iter().map(|visit| visit.dropped).sum();
        self.dropped = (packets > 0).then(|| dropped as f64 / packets as f64);
    }
}

/// The value that a share of `values` doesn't exceed (nearest rank); `None` if there are none.
pub fn quantile<T: Ord + Copy>(values: impl Iterator<Item = T>, share: f64) -> Option<T> {
    let mut sorted: Vec<T> = values.collect();
    sorted.sort_unstable();
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// All results as a table. The faster page of each network is marked.
pub fn table(rows: &[VisitRow]) -> String {
    let mut table = Table::new([
        "network",
        "protocol",
        "congestion",
        "handshake",
        "first byte",
        "critical",
        "page",
        "call 50 %",
        "95 %",
        "99 %",
        "on the wire",
        "dropped",
        "loads",
    ])
    .left(2);
    for row in rows.iter().filter(|row| row.skipped.is_none()) {
        table.row([
            row.preset.to_string(),
            row.protocol.to_string(),
            row.controller.clone().unwrap_or_else(absent),
            time(row.handshake_ms),
            time(row.first_byte_ms),
            time(row.critical_ms),
            time(row.page_ms),
            time(row.call_p50_ms),
            time(row.call_p95_ms),
            time(row.call_p99_ms),
            row.wire_bytes.map_or_else(absent, table::bytes),
            row.dropped.map_or_else(absent, table::percent),
            match row.failed {
                0 => row.loads.to_string(),
                failed => format!("{} ({failed} failed)", row.loads),
            },
        ]);
    }
    table.render()
}

/// One line for each network on which both protocols loaded the page: the faster one.
pub fn conclusions(rows: &[VisitRow]) -> Vec<String> {
    let of = |preset, protocol| {
        let mut found = rows.iter();
        found.find(|row| row.preset == preset && row.protocol == protocol)
    };
    let compared = rows.iter().filter(|row| row.protocol == WebProtocol::Http3);
    let lines = compared.filter_map(|h3| {
        let h2 = of(h3.preset, WebProtocol::Http2)?;
        let page = compare("page", h3.page_ms?, h2.page_ms?);
        let critical = compare("critical part", h3.critical_ms?, h2.critical_ms?);
        let calls = compare("slowest calls (99 %)", h3.call_p99_ms?, h2.call_p99_ms?);
        Some(format!("{}: {page}; {critical}; {calls}", h3.preset))
    });
    lines.collect()
}

/// How to get a comparison with equal congestion controllers, if they differ.
pub fn hint(rows: &[VisitRow]) -> Option<String> {
    let controller = |protocol| {
        let mut found = rows.iter().filter(move |row| row.protocol == protocol);
        found.find_map(|row| row.controller.as_deref())
    };
    let (quic, tcp) = controller(WebProtocol::Http3).zip(controller(WebProtocol::Http2))?;
    tcp_controller::difference(quic, tcp)
}

fn compare(what: &str, h3: f64, h2: f64) -> String {
    let (faster, slower, less, more) = if h3 <= h2 {
        (WebProtocol::Http3, WebProtocol::Http2, h3, h2)
    } else {
        (WebProtocol::Http2, WebProtocol::Http3, h2, h3)
    };
    let shorter = (1.0 - less / more.max(f64::MIN_POSITIVE)) * 100.0;
    if shorter < 0.5 {
        return format!("{what} alike");
    }
    format!("{what} {shorter:.0} % shorter over {faster} than over {slower}")
}

fn time(ms: Option<f64>) -> String {
    ms.and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok())
        .map_or_else(absent, table::time)
}

fn absent() -> String {
    "-".to_owned()
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
