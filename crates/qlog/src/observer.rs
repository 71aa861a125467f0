//! From observations to events.

use std::io::Write;

use serde::Serialize;
use swiftwater_quic::observe::{Observation, Observer, Purpose, SentFrame};
use swiftwater_units::{Instant, PacketNumber, PathId};

use crate::close::ConnectionClosed;
use crate::frames::{Frames, MAX_FRAMES, Raw};
use crate::header::TraceInfo;
use crate::log::{Limits, Log};
use crate::metrics::{Memory, Metrics};
use crate::packets::{KeyUpdated, Packet, PacketDropped, PacketHeader, PacketSent, ProbeTimeout};
use crate::repair::{DataLost, DataRecovered, Range, RedundancyLevel, ReplicaSent, copy};
use crate::text::millis;

/// Writes the log of one connection.
///
/// One observation makes one event, but for two: a packet with replicas is followed by a
/// `swiftwater:replica_sent` for each, and a key update is told for each direction. A record is at
/// most about 32 KiB.
#[derive(Debug)]
pub struct QlogObserver {
    log: Log,
    metrics: Memory,
}

/// The data of `quic:connection_started`: both ends, of which nothing is observed.
#[derive(Serialize)]
struct ConnectionStarted {
    local: Endpoint,
    remote: Endpoint,
}

#[derive(Serialize)]
struct Endpoint {}

impl QlogObserver {
    /// Writes to `sink`, which need not buffer.
    pub fn new(sink: impl Write + Send + 'static, info: &TraceInfo, limits: Limits) -> Self {
        Self::boxed(Box::new(sink), info, limits)
    }

    pub(crate) fn boxed(sink: Box<dyn Write + Send>, info: &TraceInfo, limits: Limits) -> Self {
        Self {
            log: Log::new(sink, info, limits),
            metrics: Memory::default(),
        }
    }

    /// Appends an event that belongs to no path.
    fn event(&mut self, now: Instant, name: &'static str, data: impl Serialize) {
        self.log.event(now, PathId::ZERO, name, data);
    }

    fn replicas(&mut self, now: Instant, path: PathId, number: PacketNumber, frames: &[SentFrame]) {
        for frame in frames.iter().take(MAX_FRAMES) {
            if let SentFrame::Stream {
                id,
                offset,
                len,
                purpose: Purpose::Replica,
                ..
            } = *frame
            {
                let data = ReplicaSent {
                    packet_number: number.get(),
                    range: Range::new(id.get(), offset, len),
                };
                self.log.event(now, path, "swiftwater:replica_sent", data);
            }
        }
    }

    fn packet(&mut self, now: Instant, observation: &Observation<'_>) {
        match *observation {
            Observation::PacketSent {
                path,
                epoch,
                number,
                size,
                frames,
                ..
            } => {
                let data = PacketSent {
                    header: PacketHeader::new(epoch, number),
                    frames: Frames(frames),
                    raw: raw(size),
                    frames_omitted: frames.len().saturating_sub(MAX_FRAMES),
                };
                self.log.event(now, path, "quic:packet_sent", data);
                self.replicas(now, path, number, frames);
            }
            Observation::PacketReceived {
                path,
                epoch,
                number,
                size,
            } => {
                let data = Packet {
                    header: PacketHeader::new(epoch, number),
                    raw: raw(size),
                };
                self.log.event(now, path, "quic:packet_received", data);
            }
            Observation::PacketLost {
                path,
                epoch,
                number,
                size,
            } => {
                let data = Packet {
                    header: PacketHeader::new(epoch, number),
                    raw: raw(size),
                };
                self.log.event(now, path, "quic:packet_lost", data);
            }
            Observation::PacketDropped { reason } => {
                self.event(now, "quic:packet_dropped", PacketDropped::new(reason));
            }
            _ => {}
        }
    }

    fn recovery(&mut self, now: Instant, observation: &Observation<'_>) {
        match *observation {
            Observation::Metrics {
                path,
                smoothed_rtt,
                latest_rtt,
                min_rtt,
                cwnd,
                bytes_in_flight,
                pto_count,
            } => {
                let metrics = Metrics {
                    min_rtt,
                    smoothed_rtt,
                    latest_rtt,
                    pto_count,
                    congestion_window: cwnd.get(),
                    bytes_in_flight: bytes_in_flight.get(),
                };
                if let Some(data) = self.metrics.update(path, metrics) {
                    self.log
                        .event(now, path, "quic:recovery_metrics_updated", data);
                }
            }
            Observation::ProbeTimeout { path, count } => {
                let data = ProbeTimeout::new(count);
                self.log.event(now, path, "quic:timer_updated", data);
            }
            Observation::DataLost {
                datum,
                detection_time,
                cause,
            } => {
                let data = DataLost::new(datum, detection_time, cause);
                self.event(now, "swiftwater:data_lost", data);
            }
            Observation::DataRecovered {
                datum,
                by,
                recovery_latency,
                detection_time,
                retransmissions,
                replicas,
            } => {
                let (by, round) = copy(by);
                let data = DataRecovered {
                    range: datum.into(),
                    by,
                    round,
                    recovery_latency: millis(recovery_latency),
                    detection_time: millis(detection_time),
                    retransmissions,
                    replicas,
                };
                self.event(now, "swiftwater:data_recovered", data);
            }
            Observation::Redundancy { report } => {
                let data = RedundancyLevel::from(report);
                self.event(now, "swiftwater:redundancy_level", data);
            }
            _ => {}
        }
    }
}

impl Observer for QlogObserver {
    fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        if self.log.is_fresh() {
            let data = ConnectionStarted {
                local: Endpoint {},
                remote: Endpoint {},
            };
            self.event(now, "quic:connection_started", data);
        }
        match *observation {
            Observation::PacketSent { .. }
            | Observation::PacketReceived { .. }
            | Observation::PacketLost { .. }
            | Observation::PacketDropped { .. } => self.packet(now, observation),
            Observation::KeyUpdated { generation } => {
                for key_type in ["client_1rtt_secret", "server_1rtt_secret"] {
                    let data = KeyUpdated {
                        key_type,
                        key_phase: generation,
                    };
                    self.event(now, "quic:key_updated", data);
                }
            }
            Observation::Closed { reason } => {
                self.event(now, "quic:connection_closed", ConnectionClosed::new(reason));
                self.log.hurry();
            }
            _ => self.recovery(now, observation),
        }
    }
}

/// A size without the bytes.
fn raw(size: usize) -> Raw {
    Raw {
        length: size as u64,
    }
}
