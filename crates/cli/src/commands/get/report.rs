//! The report of each URL, and the totals.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use swiftwater_http::client::{ArmChoice, Measurements, Protocol, Snapshot};

use super::fetch::{Ending, Outcome, Trace};
use super::plan::Place;
use crate::exit::{Exit, Failure, one_line};
use crate::output;
use crate::progress::Progress;
use crate::stats::PathRow;
use crate::table;

#[derive(Serialize)]
struct Row<'a> {
    url: String,
    /// The final URL after redirects.
    led_to: Option<String>,
    file: Option<&'a Path>,
    /// Status of the last response.
    status: Option<u16>,
    protocol: Option<&'static str>,
    /// The reason for the protocol.
    why: Option<String>,
    /// With `--select`: the arm of the request and the reason.
    selection: Option<&'a ArmChoice>,
    /// The connection had carried requests before.
    reused: Option<bool>,
    early_data: Option<bool>,
    /// Content received in this run.
    bytes: u64,
    /// Of these, bytes discarded because the content had to be fetched again.
    discarded_bytes: u64,
    /// Bytes that existed before; null if it started from the beginning.
    continued_at: Option<u64>,
    /// Repeated requests, without redirects.
    further_tries: u32,
    /// From the first request to the renaming of the file.
    seconds: f64,
    /// Without the discarded bytes.
    goodput_bps: f64,
    /// Times of the last request.
    timings_ms: Timings,
    /// Round-trip time.
    rtt_ms: Option<f64>,
    /// Share of the sent stream bytes that were retransmitted; null over TCP.
    retransmitted: Option<f64>,
    /// Share of the server's packets that did not come; null over TCP, and if no more than three packets came.
    missing: Option<f64>,
    /// Share of the received segments that came ahead of a gap; null over QUIC.
    out_of_order: Option<f64>,
    /// The paths of the QUIC connection; empty over TCP.
    paths: &'a [PathRow],
    error: Option<&'a str>,
}

/// Milliseconds. `dns`, `connect` and `handshake` are durations, null if they were not needed; the
/// others count from the start of the request.
#[derive(Serialize)]
struct Timings {
    dns: Option<f64>,
    connect: Option<f64>,
    handshake: Option<f64>,
    request_sent: Option<f64>,
    first_byte: Option<f64>,
    total: Option<f64>,
}

#[derive(Serialize)]
struct TotalRow {
    files: u64,
    failed: u64,
    bytes: u64,
    connections: u64,
    seconds: f64,
    goodput_bps: f64,
}

/// Reports each URL and accumulates the totals.
pub(super) struct Summary {
    json: bool,
    /// Standard output is used for content and heads.
    silent: bool,
    progress: Progress,
    files: u64,
    failed: u64,
    bytes: u64,
    first_failure: Option<Exit>,
    /// Messages about whole servers, printed once and not for each file.
    said: BTreeSet<String>,
}

impl Summary {
    pub(super) fn new(json: bool, silent: bool, progress: Progress) -> Self {
        Self {
            json,
            silent,
            progress,
            files: 0,
            failed: 0,
            bytes: 0,
            first_failure: None,
            said: BTreeSet::new(),
        }
    }

    pub(super) fn add(&mut self, outcome: &Outcome) -> Result<(), Failure> {
        self.bytes += outcome.trace.received - outcome.trace.discarded;
        match &outcome.result {
            Ok(_) => self.files += 1,
            Err(failure) => self.fail(failure),
        }
        if self.json {
            return output::json(&row(outcome));
        }
        match (&outcome.result, file_of(outcome)) {
            (Ok(ending), Some(file)) if !self.silent => {
                let text = line(file, *ending, outcome);
                self.progress.suspended(|| output::line(&text))
            }
            _ => Ok(()),
        }
    }

    fn fail(&mut self, failure: &Failure) {
        // A closed pipe is not a failure.
        if failure.exit != Exit::Success {
            self.failed += 1;
        }
        self.first_failure.get_or_insert(failure.exit);
        let text = format!("error: {failure}");
        if !failure.message().is_empty() && self.said.insert(text.clone()) {
            self.progress.note(&text);
        }
    }

    pub(super) fn finish(self, elapsed: Duration, connections: u64) -> Result<(), Failure> {
        let Self {
            files,
            failed,
            bytes,
            ..
        } = self;
        let goodput_bps = table::bits_per_second(bytes, elapsed);
        if self.json {
            output::json(&TotalRow {
                files,
                failed,
                bytes,
                connections,
                seconds: elapsed.as_secs_f64(),
                goodput_bps,
            })?;
        } else if files + failed > 1 && !self.silent {
            let failures = if failed > 0 {
                format!(", {failed} failed")
            } else {
                String::new()
            };
            output::line(&format!(
                "{files} files{failures}, {}",
                amount(bytes, elapsed)
            ))?;
        }
        match self.first_failure {
            None => Ok(()),
            Some(exit) => Err(Failure::reported(exit)),
        }
    }
}

fn file_of(outcome: &Outcome) -> Option<&Path> {
    match &outcome.item.place {
        Place::File(path) | Place::Device(path) => Some(path),
        Place::Stdout | Place::Nowhere => None,
    }
}

fn line(file: &Path, ending: Ending, outcome: &Outcome) -> String {
    let name = one_line(&file.display().to_string());
    if ending == Ending::Existed {
        return format!("{name}: exists already");
    }
    let Trace {
        chosen,
        received,
        discarded,
        continued_at,
        ..
    } = &outcome.trace;
    let mut text = format!("{name}: {}", amount(received - discarded, outcome.elapsed));
    if let Some(chosen) = chosen {
        text = format!("{text}, {}", chosen.protocol);
        if chosen.early {
            text.push_str(", 0-RTT");
        }
    }
    if *discarded > 0 {
        let discarded = table::bytes(*discarded);
        text = format!("{text}, fetched again ({discarded} discarded)");
    }
    if let Some(offset) = continued_at {
        text = format!("{text}, continued at {}", table::bytes(*offset));
    }
    text
}

/// An amount of bytes and a duration, with the rate if there is one.
fn amount(bytes: u64, elapsed: Duration) -> String {
    let (size, time) = (table::bytes(bytes), table::time(elapsed));
    if bytes == 0 {
        return format!("{size} in {time}");
    }
    let rate = table::rate(table::bits_per_second(bytes, elapsed));
    format!("{size} in {time} ({rate})")
}

fn row(outcome: &Outcome) -> Row<'_> {
    let Outcome {
        item,
        result,
        trace,
        elapsed,
    } = outcome;
    let measured = trace.measurements.as_ref();
    let measured = measured.map_or_else(Snapshot::default, Measurements::snapshot);
    let chosen = trace.chosen.as_ref();
    Row {
        url: item.url.to_string(),
        led_to: trace.led_to.as_ref().map(ToString::to_string),
        file: file_of(outcome).filter(|_| result.is_ok()),
        status: trace.status.map(|status| status.as_u16()),
        protocol: chosen.map(|chosen| protocol_name(chosen.protocol)),
        why: chosen.map(|chosen| chosen.why.to_string()),
        selection: trace.selection.as_ref(),
        reused: chosen.map(|chosen| chosen.reused),
        early_data: chosen.map(|chosen| chosen.early),
        bytes: trace.received,
        discarded_bytes: trace.discarded,
        continued_at: trace.continued_at,
        further_tries: trace.further_tries,
        seconds: elapsed.as_secs_f64(),
        goodput_bps: table::bits_per_second(trace.received - trace.discarded, *elapsed),
        timings_ms: Timings {
            dns: measured.resolve.map(milliseconds),
            connect: measured.connect.map(milliseconds),
            handshake: measured.handshake.map(milliseconds),
            request_sent: measured.sent.map(milliseconds),
            first_byte: measured.first_byte.map(milliseconds),
            total: measured.completion.map(milliseconds),
        },
        rtt_ms: measured.rtt.map(milliseconds),
        retransmitted: measured.retransmitted,
        missing: measured.missing,
        out_of_order: measured.out_of_order,
        paths: &trace.paths,
        error: result.as_ref().err().map(Failure::message),
    }
}

/// As in ALPN.
fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Http1 => "http/1.1",
        Protocol::Http2 => "h2",
        Protocol::Http3 => "h3",
        _ => "other",
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
