//! The result of a measurement, as JSON and as text.

use std::time::Duration;

use serde::Serialize;
use swiftwater::ConnectionStats;

use crate::cpu::seconds_per_gigabyte;
use crate::stats::StatsRow;
use crate::table;

/// A measurement of `perf client` or `perf loopback`. Values that the load doesn't have are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measurement {
    /// `upload`, `download`, `requests` or `handshakes`.
    pub load: &'static str,
    /// `perf`, `h3`, `h2` or `h1`.
    pub protocol: &'static str,
    /// Connections that the load was made on.
    pub connections: u32,
    /// From the first request, or handshake, to the last response.
    pub seconds: f64,
    /// Bytes moved, both ways, without headers of the protocol.
    pub bytes: u64,
    /// Those bytes in bits per second.
    pub goodput_bps: f64,
    /// Requests, or handshakes, completed.
    pub completed: u64,
    /// Those per second.
    pub per_second: f64,
    /// Duration of one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<Latency>,
    /// Duration of the handshake (QUIC; not for `handshakes`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake_ms: Option<f64>,
    /// The client's smoothed round-trip time at the end (of the only QUIC connection).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub srtt_ms: Option<f64>,
    /// Retransmitted share of the stream bytes that this end sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmitted_share: Option<f64>,
    /// CPU time of this end, seconds.
    pub cpu_s: Option<f64>,
    /// CPU time of this end per 10^9 bytes.
    pub cpu_s_per_gb: Option<f64>,
    /// CPU time of this end for each request, or handshake, microseconds.
    pub cpu_us_each: Option<f64>,
    /// CPU time of the server (`loopback` only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_s: Option<f64>,
    /// CPU time of the server per 10^9 bytes (`loopback` only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_s_per_gb: Option<f64>,
    /// CPU time of the server for each request, or handshake, microseconds (`loopback` only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_us_each: Option<f64>,
    /// Statistics of the client's QUIC connection, if there was exactly one (not for `handshakes`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<StatsRow>,
}

/// Distribution of durations, milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Longest.
    pub max: f64,
}

impl Latency {
    /// Summarises `samples`; `None` if there are none.
    pub fn of(mut samples: Vec<Duration>) -> Option<Self> {
        samples.sort_unstable();
        let last = samples.len().checked_sub(1)?;
        let ms = |sample: Duration| sample.as_secs_f64() * 1e3;
        let at = |share: f64| ms(samples[(last as f64 * share).round() as usize]);
        let sum: Duration = samples.iter().sum();
        Some(Self {
            mean: ms(sum) / samples.len() as f64,
            p50: at(0.5),
            p99: at(0.99),
            max: at(1.0),
        })
    }
}

impl Measurement {
    /// Fills in the rates.
    pub fn finish(&mut self, elapsed: Duration) {
        self.seconds = elapsed.as_secs_f64();
        self.goodput_bps = table::bits_per_second(self.bytes, elapsed);
        self.per_second = if self.seconds > 0.0 {
            self.completed as f64 / self.seconds
        } else {
            0.0
        };
    }

    /// Fills in the statistics of the connection.
    pub fn connection(&mut self, stats: &ConnectionStats) {
        self.handshake_ms = stats
            .handshake_duration
            .map(|time| time.as_secs_f64() * 1e3);
        self.srtt_ms = stats
            .paths
            .first()
            .map(|path| path.smoothed_rtt.as_secs_f64() * 1e3);
        self.retransmitted_share = Some(retransmitted_share(stats));
        self.stats = Some(stats.into());
        tracing::info!(%stats, "statistics of the connection");
    }

    /// Fills in the CPU time of this end.
    pub fn cpu(&mut self, cpu: Option<Duration>) {
        self.cpu_s = cpu.map(|cpu| cpu.as_secs_f64());
        self.cpu_s_per_gb = seconds_per_gigabyte(cpu, self.bytes);
        self.cpu_us_each = self.microseconds_each(cpu);
    }

    /// Fills in the CPU time of the other end.
    pub fn server_cpu(&mut self, cpu: Option<Duration>) {
        self.server_cpu_s = cpu.map(|cpu| cpu.as_secs_f64());
        self.server_cpu_s_per_gb = seconds_per_gigabyte(cpu, self.bytes);
        self.server_cpu_us_each = self.microseconds_each(cpu);
    }

    fn microseconds_each(&self, cpu: Option<Duration>) -> Option<f64> {
        let cpu = cpu?.as_secs_f64() * 1e6;
        (self.completed > 0).then(|| cpu / self.completed as f64)
    }

    /// The measurement as text.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        let load = match self.protocol {
            "" | "perf" => self.load.to_owned(),
            protocol => format!("{} over {protocol}", self.load),
        };
        if self.bytes > 0 {
            lines.push(format!(
                "{load}: {} in {:.2} s, {}",
                table::bytes(self.bytes),
                self.seconds,
                table::rate(self.goodput_bps)
            ));
        }
        if let Some(latency) = &self.latency_ms {
            lines.push(format!(
                "{load}: {} in {:.2} s, {:.0} per second; each {:.2} ms (median {:.2}, 99 % {:.2}, \
                 longest {:.2})",
                self.completed,
                self.seconds,
                self.per_second,
                latency.mean,
                latency.p50,
                latency.p99,
                latency.max
            ));
        }
        if let (Some(handshake), Some(srtt)) = (self.handshake_ms, self.srtt_ms) {
            let again = table::percent(self.retransmitted_share.unwrap_or(0.0));
            lines.push(format!(
                "handshake {handshake:.2} ms, smoothed RTT {srtt:.2} ms, retransmitted {again}"
            ));
        }
        // A transfer has few requests, whose mean is not meaningful.
        let is_many = self.latency_ms.is_some();
        let cpu = |who, seconds: Option<f64>, per_gigabyte: Option<f64>, each: Option<f64>| {
            Some(cpu_text(
                who,
                seconds?,
                per_gigabyte,
                each.filter(|_| is_many),
            ))
        };
        lines.extend(cpu(
            "client",
            self.cpu_s,
            self.cpu_s_per_gb,
            self.cpu_us_each,
        ));
        lines.extend(cpu(
            "server",
            self.server_cpu_s,
            self.server_cpu_s_per_gb,
            self.server_cpu_us_each,
        ));
        lines.join("\n")
    }
}

fn cpu_text(who: &str, seconds: f64, per_gigabyte: Option<f64>, each: Option<f64>) -> String {
    let more = match (each, per_gigabyte) {
        (Some(each), _) => format!(", {each:.1} µs each"),
        (None, Some(per_gigabyte)) => format!(", {per_gigabyte:.3} s per GB"),
        (None, None) => String::new(),
    };
    format!("{who}: {seconds:.2} s of CPU time{more}")
}

/// Retransmitted share of all stream bytes sent.
pub fn retransmitted_share(stats: &ConnectionStats) -> f64 {
    let sent = stats.stream_bytes_sent.get();
    if sent == 0 {
        return 0.0;
    }
    stats.stream_bytes_retransmitted.get() as f64 / sent as f64
}
