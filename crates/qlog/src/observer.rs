//! Converts observations to events.

use std::io::Write;

use serde::Serialize;
use swiftwater_quic::PathAddress;
use swiftwater_quic::observe::{
    Observation, Observer, Owner, PathStage, Payload, Purpose, SentFrame,
};
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, PacketNumber, PathId, Side, StreamId};

use crate::close::ConnectionClosed;
use crate::connectivity::{
    AlpnInformation, ConnectionIdUpdated, ConnectionStarted, ConnectionState, MigrationState,
    ParametersSet, PathAbandoned, PathOpened, PathStatusUpdated, TupleAssigned, VersionInformation,
    initiator, versions,
};
use crate::frames::{Frames, MAX_FRAMES};
use crate::header::TraceInfo;
use crate::log::{Limits, Log};
use crate::metrics::{Memory, Metrics};
use crate::names::{self, Name};
use crate::packets::{Missed, Packet, PacketDropped, PacketHeader};
use crate::repair::{DataLost, DataRecovered, Range, RedundancyLevel, ReplicaSent, copy};
use crate::state::{
    CongestionState, DataBlocked, DatagramFateKnown, EarlyData, EcnUpdated, Key, MtuUpdated,
    RecoveryParameters, StreamState, TimerUpdated,
};
use crate::text::{Hex, Version, millis};

/// Exponent of ACK delays in packets before 1-RTT, and without the parameter (RFC 9000, section 18.2).
const DEFAULT_EXPONENT: u8 = 3;

/// Writes the log of one connection.
///
/// One observation gives one event, with few exceptions: keys have one event for each direction,
/// streams one for each half, a packet with replicas is followed by a `swiftwater:replica_sent` for
/// each, and the metrics that qvis draws are also written under their old name. A record is at most
/// about 64 KiB.
#[derive(Debug)]
pub struct QlogObserver {
    log: Log,
    side: Side,
    metrics: Memory,
    /// Of this end and of the peer.
    ack_delay_exponents: [u8; 2],
}

impl QlogObserver {
    /// Writes to `sink`, which need not buffer.
    pub fn new(sink: impl Write + Send + 'static, info: &TraceInfo, limits: Limits) -> Self {
        Self::boxed(Box::new(sink), info, limits)
    }

    pub(crate) fn boxed(sink: Box<dyn Write + Send>, info: &TraceInfo, limits: Limits) -> Self {
        Self {
            log: Log::new(sink, info, limits),
            side: info.side,
            metrics: Memory::default(),
            ack_delay_exponents: [DEFAULT_EXPONENT; 2],
        }
    }

    /// Appends an event that belongs to no path.
    fn event(&mut self, now: Instant, name: Name, data: impl Serialize) {
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
                self.log.event(now, path, names::REPLICA_SENT, data);
            }
        }
    }

    /// The frames of a packet sent by `owner`.
    fn frames<'a>(
        &self,
        owner: Owner,
        early: bool,
        payload: Payload<'a>,
        sent: &'a [SentFrame],
    ) -> Frames<'a> {
        Frames {
            payload,
            sent,
            ack_delay_exponent: if early {
                DEFAULT_EXPONENT
            } else {
                self.ack_delay_exponents[owner as usize]
            },
        }
    }

    /// The version of the client's first packet, and those that this end supports.
    fn first_version(&mut self, now: Instant, version: u32, ours: &[u32]) {
        let mut data = VersionInformation {
            chosen_version: Some(Version(version)),
            ..VersionInformation::default()
        };
        match self.side {
            Side::Client => data.client_versions = versions(ours),
            Side::Server => data.server_versions = versions(ours),
        }
        self.event(now, names::VERSION, data);
    }

    /// Events of connection establishment and negotiation.
    fn start(&mut self, now: Instant, observation: &Observation<'_>) {
        match *observation {
            Observation::Started {
                ref path,
                ref local_cid,
                ref remote_cid,
                version,
                versions: ours,
                ..
            } => {
                let data = ConnectionStarted::new(path, local_cid, remote_cid);
                self.event(now, names::CONNECTION_STARTED, data);
                let new = "attempted";
                self.event(now, names::CONNECTION_STATE, ConnectionState { new });
                self.first_version(now, version, ours);
            }
            Observation::Parameters { owner, parameters } => {
                self.ack_delay_exponents[owner as usize] = parameters.ack_delay_exponent;
                let data = ParametersSet::new(owner, parameters);
                self.event(now, names::PARAMETERS, data);
            }
            Observation::Alpn { protocol } => {
                self.event(now, names::ALPN, AlpnInformation::new(protocol));
            }
            Observation::HandshakeProgress { stage } => {
                if let Some(data) = ConnectionState::new(stage) {
                    self.event(now, names::CONNECTION_STATE, data);
                }
            }
            Observation::VersionTried { version } | Observation::VersionChosen { version, .. } => {
                let data = VersionInformation {
                    chosen_version: Some(Version(version)),
                    ..VersionInformation::default()
                };
                self.event(now, names::VERSION, data);
            }
            Observation::VersionsOffered { versions: offered } => {
                let data = VersionInformation {
                    server_versions: versions(offered),
                    ..VersionInformation::default()
                };
                self.event(now, names::VERSION, data);
            }
            Observation::DatagramFate { key, fate } => {
                if let Some(data) = DatagramFateKnown::new(key, fate) {
                    self.event(now, names::DATAGRAM_FATE, data);
                }
            }
            Observation::EarlyData { outcome } => {
                self.event(now, names::EARLY_DATA, EarlyData::from(outcome));
            }
            Observation::Retry { size, ref src_cid } => {
                let data = Packet::bare(PacketHeader::retry(src_cid), size);
                self.event(now, names::PACKET_RECEIVED, data);
            }
            _ => self.keys(now, observation),
        }
    }

    fn keys(&mut self, now: Instant, observation: &Observation<'_>) {
        match *observation {
            Observation::KeysInstalled { level } => {
                for key in Key::of_level(level) {
                    self.event(now, names::KEY_UPDATED, key);
                }
            }
            Observation::KeysDiscarded { level } => {
                for key in Key::of_level(level) {
                    self.event(now, names::KEY_DISCARDED, key);
                }
            }
            Observation::KeyUpdated {
                generation,
                initiator,
            } => {
                for key in Key::of_phase(generation, initiator) {
                    self.event(now, names::KEY_UPDATED, key);
                }
            }
            _ => self.paths(now, observation),
        }
    }

    fn packet(&mut self, now: Instant, observation: &Observation<'_>) {
        match *observation {
            Observation::PacketSent {
                path,
                level,
                number,
                size,
                frames,
                payload,
                mtu_probe,
                ..
            } => {
                let header = PacketHeader::new(level, number);
                let early = header.is_early();
                let listed = self.frames(Owner::Local, early, payload, frames);
                let mut data = Packet::new(header, size, listed);
                data.is_mtu_probe_packet = mtu_probe;
                self.log.event(now, path, names::PACKET_SENT, data);
                self.replicas(now, path, number, frames);
            }
            Observation::PacketReceived {
                path,
                level,
                number,
                size,
                payload,
            } => {
                let header = PacketHeader::new(level, number);
                let early = header.is_early();
                let listed = self.frames(Owner::Remote, early, payload, &[]);
                let data = Packet::new(header, size, listed);
                self.log.event(now, path, names::PACKET_RECEIVED, data);
            }
            Observation::PacketLost {
                path,
                level,
                number,
                size,
                trigger,
            } => {
                let data = Missed::lost(level, number, size, trigger);
                self.log.event(now, path, names::PACKET_LOST, data);
            }
            Observation::PacketBuffered { level, size } => {
                let data = Missed::buffered(level, size);
                self.event(now, names::PACKET_BUFFERED, data);
            }
            Observation::PacketDropped {
                reason,
                size,
                packet_type,
            } => {
                let data = PacketDropped::new(reason, size, packet_type);
                self.event(now, names::PACKET_DROPPED, data);
            }
            _ => {}
        }
    }

    /// A path of several came to another stage.
    fn path_progress(&mut self, now: Instant, id: PathId, address: &PathAddress, stage: PathStage) {
        match stage {
            PathStage::Opened => {
                let data = PathOpened::new(id, address);
                self.log.event(now, id, names::PATH_OPENED, data);
            }
            PathStage::Active => {
                let data = TupleAssigned::of(id, address);
                self.log.event(now, id, names::TUPLE, data);
            }
            PathStage::Abandoned { error, by_peer } => {
                let owner = if by_peer { Owner::Remote } else { Owner::Local };
                let data = PathAbandoned {
                    path_id: id.get(),
                    initiator: initiator(owner),
                    error_code: error.0,
                };
                self.log.event(now, id, names::PATH_ABANDONED, data);
            }
            _ => {}
        }
    }

    /// Events of paths and their properties.
    fn paths(&mut self, now: Instant, observation: &Observation<'_>) {
        let migration = |new, path| MigrationState::new(new, path);
        match observation {
            Observation::PathProbed { path } => {
                self.event(now, names::MIGRATION, migration("probing_started", path));
            }
            Observation::PathValidated { path, .. } => {
                self.event(now, names::MIGRATION, migration("probing_successful", path));
            }
            Observation::PathFailed { path } => {
                self.event(now, names::MIGRATION, migration("probing_abandoned", path));
            }
            Observation::PathChanged { to, .. } => {
                self.event(now, names::MIGRATION, migration("migration_complete", to));
                self.event(now, names::TUPLE, TupleAssigned::new(to));
            }
            Observation::PathProgress {
                path,
                address,
                stage,
            } => self.path_progress(now, *path, address, *stage),
            Observation::PathStatusDeclared {
                path,
                owner,
                backup,
            } => {
                let data = PathStatusUpdated {
                    path_id: path.get(),
                    initiator: initiator(*owner),
                    status: if *backup { "backup" } else { "available" },
                };
                self.log.event(now, *path, names::PATH_STATUS, data);
            }
            Observation::ConnectionIdUsed { before, cid } => {
                let data = ConnectionIdUpdated::new(before, cid);
                self.event(now, names::CONNECTION_ID, data);
            }
            Observation::MtuUpdated {
                path,
                before,
                size,
                done,
                black_hole,
            } => {
                let data = MtuUpdated {
                    old: *before,
                    new: *size,
                    done: *done,
                    black_hole: *black_hole,
                };
                self.log.event(now, *path, names::MTU, data);
            }
            Observation::EcnUpdated { path, state } => {
                let data = EcnUpdated::from(*state);
                self.log.event(now, *path, names::ECN_STATE, data);
            }
            _ => self.streams(now, observation),
        }
    }

    fn streams(&mut self, now: Instant, observation: &Observation<'_>) {
        match *observation {
            Observation::StreamOpened { id } => self.stream(now, id, "open"),
            Observation::StreamClosed { id } => self.stream(now, id, "closed"),
            Observation::StreamReset { id, cause, .. } => {
                self.event(now, names::STREAM_STATE, StreamState::reset(id, cause));
            }
            Observation::FlowBlocked { blocked } => {
                self.event(now, names::DATA_BLOCKED, DataBlocked::new(blocked));
            }
            _ => self.recovery(now, observation),
        }
    }

    /// A state of both parts of a stream, or of its only one.
    fn stream(&mut self, now: Instant, id: StreamId, new: &'static str) {
        let ours = id.initiator() == self.side;
        for (side, there) in [("sending", ours), ("receiving", !ours)] {
            if there || id.dir() == Dir::Bi {
                let data = StreamState::new(id, new, side);
                self.event(now, names::STREAM_STATE, data);
            }
        }
    }

    fn recovery(&mut self, now: Instant, observation: &Observation<'_>) {
        match *observation {
            Observation::RecoveryParameters {
                path,
                controller,
                packet_threshold,
                initial_rtt,
                max_datagram_size,
                initial_window,
            } => {
                let data = RecoveryParameters {
                    reordering_threshold: packet_threshold,
                    timer_granularity: 1,
                    initial_rtt: millis(initial_rtt),
                    max_datagram_size,
                    initial_congestion_window: initial_window.get(),
                    congestion_controller: controller,
                };
                self.log.event(now, path, names::RECOVERY_PARAMETERS, data);
            }
            Observation::Metrics { .. } => self.metrics(now, observation),
            Observation::CongestionState {
                path,
                before,
                state,
            } => {
                let (old, new) = (before, state);
                let data = CongestionState { old, new };
                self.log.event(now, path, names::CONGESTION_STATE, data);
            }
            Observation::LossTimer {
                path,
                timer,
                level,
                change,
            } => {
                if let Some(data) = TimerUpdated::new(timer, level, change) {
                    self.log.event(now, path, names::TIMER, data);
                }
            }
            Observation::ProbeTimeout { path, level, count } => {
                let data = TimerUpdated::probe(level, count);
                self.log.event(now, path, names::TIMER, data);
            }
            _ => self.repair(now, observation),
        }
    }

    fn metrics(&mut self, now: Instant, observation: &Observation<'_>) {
        if let Observation::Metrics {
            path,
            smoothed_rtt,
            latest_rtt,
            min_rtt,
            rtt_var,
            cwnd,
            ssthresh,
            pacing_rate,
            bytes_in_flight,
            pto_count,
        } = *observation
        {
            let metrics = Metrics {
                min_rtt,
                smoothed_rtt,
                latest_rtt,
                rtt_variance: rtt_var,
                pto_count,
                congestion_window: cwnd.get(),
                bytes_in_flight: bytes_in_flight.get(),
                ssthresh: ssthresh.map(ByteCount::get),
                pacing_rate: pacing_rate.map(Bandwidth::as_bps),
            };
            if let Some(data) = self.metrics.update(path, metrics) {
                self.log.event(now, path, names::METRICS, &data);
                self.log.event(now, path, names::METRICS_OF_OLD, &data);
            }
        }
    }

    fn repair(&mut self, now: Instant, observation: &Observation<'_>) {
        match *observation {
            Observation::DataLost {
                range,
                detection_time,
                cause,
            } => {
                let data = DataLost::new(range, detection_time, cause);
                self.event(now, names::DATA_LOST, data);
            }
            Observation::DataRecovered {
                range,
                by,
                recovery_latency,
                detection_time,
                retransmissions,
                replicas,
            } => {
                let (by, round) = copy(by);
                let data = DataRecovered {
                    range: range.into(),
                    by,
                    round,
                    recovery_latency: millis(recovery_latency),
                    detection_time: millis(detection_time),
                    retransmissions,
                    replicas,
                };
                self.event(now, names::DATA_RECOVERED, data);
            }
            Observation::Redundancy { report } => {
                let data = RedundancyLevel::from(report);
                self.event(now, names::REDUNDANCY_LEVEL, data);
            }
            _ => {}
        }
    }
}

impl Observer for QlogObserver {
    fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        if self.log.is_fresh() {
            if let Observation::Started {
                original_dst_cid, ..
            } = observation
            {
                let odcid = Hex::new(original_dst_cid.as_bytes()).to_string();
                self.log.begin(Some(&odcid));
            } else {
                // An observation of another source; a log starts with it nevertheless.
                let data = ConnectionStarted::default();
                self.event(now, names::CONNECTION_STARTED, data);
            }
        }
        match *observation {
            Observation::PacketSent { .. }
            | Observation::PacketReceived { .. }
            | Observation::PacketLost { .. }
            | Observation::PacketBuffered { .. }
            | Observation::PacketDropped { .. } => self.packet(now, observation),
            Observation::Metrics { .. } => self.metrics(now, observation),
            Observation::Closed { reason } => {
                self.event(now, names::CONNECTION_CLOSED, ConnectionClosed::new(reason));
                let new = "closed";
                self.event(now, names::CONNECTION_STATE, ConnectionState { new });
                self.log.hurry();
            }
            _ => self.start(now, observation),
        }
    }
}
