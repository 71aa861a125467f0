//! Results of one system and one size.

use std::time::Duration;

use serde::Serialize;

use super::flows::Measured;
use super::plan::{Plan, System};
use crate::demo::web::row::quantile;
use crate::exit::{Exit, Failure};
use crate::table::{self, Table};

/// What the columns mean.
pub const MEANING: &str = "\
fct: from the request to the last byte of an object, on a connection that is open. 99 %: with less than 100 objects, the \
longest. repeated: bytes that arrived more than once, of all that the server sent. queue: how long what arrives at the \
proxy waits there for what came before; 95 % wait no longer.";

/// The results of one system and one size. Values that were not measured are `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TunnelRow {
    /// The system.
    pub system: System,
    /// Bytes of an object.
    pub flow_bytes: u64,
    /// Objects that were complete.
    pub flows: usize,
    /// From the request to the last byte: mean.
    pub fct_mean_ms: Option<f64>,
    /// Median.
    pub fct_p50_ms: Option<f64>,
    /// 99 % took no longer.
    pub fct_p99_ms: Option<f64>,
    /// Bytes that arrived at the client more than once, of those that the server sent for the first time.
    pub duplicate_share: Option<f64>,
    /// How long datagrams wait at the proxy: 95 % no longer.
    pub queue_p95_ms: Option<f64>,
    /// Whether all content was as the server has it.
    pub sha256_ok: bool,
    /// The first failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl TunnelRow {
    /// Of measurements so far.
    pub(super) fn new(system: System, flow_bytes: u64, measured: &Measured) -> Self {
        let times = &measured.completion;
        let of_flows = |share| quantile(times.iter().copied(), share).map(milliseconds);
        let repeated = measured.arrived_bytes.saturating_sub(measured.new_bytes);
        Self {
            system,
            flow_bytes,
            flows: times.len(),
            fct_mean_ms: (!times.is_empty())
                .then(|| milliseconds(times.iter().sum::<Duration>()) / times.len() as f64),
            fct_p50_ms: of_flows(0.5),
            fct_p99_ms: of_flows(0.99),
            duplicate_share: (measured.new_bytes > 0)
                .then(|| repeated as f64 / measured.new_bytes as f64),
            queue_p95_ms: quantile(measured.queue.iter().copied(), 0.95).map(milliseconds),
            sha256_ok: measured.differ == 0 && measured.error.is_none() && !times.is_empty(),
            error: measured.error.clone(),
        }
    }
}

/// All results as a table.
pub(super) fn table(rows: &[TunnelRow]) -> String {
    let mut table = Table::new([
        "size",
        "system",
        "fct mean",
        "50 %",
        "99 %",
        "repeated",
        "queue 95 %",
        "objects",
    ])
    .left(1);
    for row in rows {
        table.row([
            table::bytes(row.flow_bytes),
            row.system.to_string(),
            time(row.fct_mean_ms),
            time(row.fct_p50_ms),
            time(row.fct_p99_ms),
            row.duplicate_share.map_or_else(absent, table::percent),
            time(row.queue_p95_ms),
            row.flows.to_string(),
        ]);
    }
    table.render()
}

/// TECC against the plain tunnel: changes of the mean.
pub(super) fn conclusions(plan: &Plan, rows: &[TunnelRow]) -> Vec<String> {
    let mean = |system, size| {
        let mut found = rows.iter();
        found
            .find(|row| row.system == system && row.flow_bytes == size)?
            .fct_mean_ms
    };
    let lines = plan.sizes.iter().filter_map(|&size| {
        let plain = mean(System::Masque, size)?;
        let tecc = mean(System::Tecc, size)?;
        let change = 100.0 * (tecc / plain - 1.0);
        Some(format!(
            "{}: TECC changes the mean by {change:+.0} % against a plain tunnel",
            table::bytes(size)
        ))
    });
    lines.collect()
}

/// Success if all objects of all systems arrived as they were sent.
pub fn verdict(rows: &[TunnelRow]) -> Result<(), Failure> {
    let Some(bad) = rows.iter().find(|row| !row.sha256_ok) else {
        return Ok(());
    };
    let why = bad.error.as_deref().unwrap_or("an object differs");
    Err(Failure::new(
        Exit::Differs,
        format_args!("{}, {}: {why}", bad.system, table::bytes(bad.flow_bytes)),
    ))
}

pub(super) fn time(ms: Option<f64>) -> String {
    ms.and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok())
        .map_or_else(absent, table::time)
}

fn absent() -> String {
    "-".to_owned()
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
