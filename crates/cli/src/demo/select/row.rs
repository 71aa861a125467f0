//! Results of a strategy on a course.

use std::time::Duration;

use serde::Serialize;

use super::course::Course;
use super::record::{End, Record};
use super::strategy::Strategy;
use crate::demo::web::row::quantile;
use crate::exit::{Exit, Failure};

/// What the user got. Times are from the sending of a request to the last byte of its response, of those that were
/// answered, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SelectRow {
    /// What happened to the network.
    pub course: Course,
    /// How protocols were chosen.
    pub strategy: Strategy,
    /// The congestion controllers.
    #[serde(flatten)]
    pub controllers: Controllers,
    /// Requests that were sent.
    pub requests: usize,
    /// Those without a whole and correct response, or that had none by the end of the demonstration.
    pub failed: usize,
    /// Those that the user's program sent once more, because the response broke off or did not come.
    pub repeated: usize,
    /// Mean; null without responses.
    pub mean_ms: Option<f64>,
    /// Median.
    pub p50_ms: Option<f64>,
    /// 99 % of the requests took no longer.
    pub p99_ms: Option<f64>,
    /// Share of the responses that came over QUIC.
    pub quic_share: Option<f64>,
    /// Share of the requests that were sent in order to learn.
    pub probes_share: f64,
    /// Changes of the selected arm, those undone and those upon failures included. Without a selection: changes of the
    /// protocol from one request to the next.
    pub switches: u64,
    /// No response was another than was requested (SHA-256).
    pub sha256_ok: bool,
    /// The first failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Congestion controllers of the servers.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Controllers {
    /// Of QUIC.
    #[serde(rename = "quic_controller")]
    pub quic: String,
    /// Of the kernel's TCP; null before the server runs, and if the system does not give its name.
    #[serde(rename = "tcp_controller")]
    pub tcp: Option<String>,
}

impl SelectRow {
    /// Of the requests so far. `switches` are those of the selection, if there is one.
    pub fn of(
        course: Course,
        strategy: Strategy,
        controllers: Controllers,
        records: &[Record],
        switches: Option<u64>,
    ) -> Self {
        let answered = || records.iter().filter_map(Record::answered);
        let count = answered().count();
        let times = || answered().map(|(took, _)| took);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let mean = (count > 0).then(|| times().map(ms).sum::<f64>() / count as f64);
        let over_quic = answered().filter(|(_, over)| is_quic(over.protocol));
        let over_quic = over_quic.count();
        let probes = answered().filter(|(_, over)| over.is_probe).count();
        let ended = records.iter().filter(|record| record.end.is_some()).count();
        let differs =
            |record: &&Record| matches!(record.end, Some(End::Complete { intact: false, .. }));
        let error = records.iter().find_map(|record| match &record.end {
            Some(End::Failed { why, .. }) => Some(why.clone()),
            _ => None,
        });
        Self {
            course,
            strategy,
            controllers,
            requests: records.len(),
            failed: ended - count,
            repeated: records.iter().filter(|record| record.repeated).count(),
            mean_ms: mean,
            p50_ms: quantile(times(), 0.5).map(ms),
            p99_ms: quantile(times(), 0.99).map(ms),
            quic_share: (count > 0).then(|| over_quic as f64 / count as f64),
            probes_share: probes as f64 / records.len().max(1) as f64,
            switches: switches.unwrap_or_else(|| changes(records)),
            sha256_ok: records.iter().filter(differs).count() == 0,
            error,
        }
    }
}

fn is_quic(protocol: swiftwater_http::client::Protocol) -> bool {
    protocol == swiftwater_http::client::Protocol::Http3
}

/// Changes of the protocol between requests, in the order of their sending.
fn changes(records: &[Record]) -> u64 {
    let answered = records.iter().filter_map(Record::answered);
    let protocols: Vec<_> = answered.map(|(_, over)| is_quic(over.protocol)).collect();
    protocols.windows(2).filter(|two| two[0] != two[1]).count() as u64
}

/// The failure of the program after all reports: something that arrived differs, or a request failed although there
/// was another protocol to use. That requests fail with one protocol only is what the demo shows.
pub fn verdict(rows: &[SelectRow]) -> Result<(), Failure> {
    for row in rows {
        let (course, strategy) = (row.course, row.strategy);
        if !row.sha256_ok {
            let text =
                format_args!("{course}, {strategy}: a response differs from what was requested");
            return Err(Failure::new(Exit::Differs, text));
        }
        if row.failed > 0 && strategy.has_both() {
            let why = row.error.as_deref().unwrap_or("unknown");
            let text = format_args!(
                "{course}, {strategy}: {} of {} requests failed, the first: {why}",
                row.failed, row.requests
            );
            return Err(Failure::new(Exit::Connection, text));
        }
    }
    Ok(())
}
