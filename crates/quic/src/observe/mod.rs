//! Observers: receivers of a connection's events, which affect nothing.

mod states;

pub use states::{DatagramFate, EarlyDataOutcome, EcnState, PathStage, Purpose, ResetCause};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount, Instant, PacketNumber, PathId, Side, StreamId};
use swiftwater_wire::frame::FrameIter;
use swiftwater_wire::{ConnectionId, Frame, PacketType, TransportParameters};

use crate::crypto::EncryptionLevel;
use crate::error::ConnectionError;
use crate::policy::{Copied, DataRange, ReinjectorReport, RepairCause};
use crate::transmit::PathAddress;

/// Something that happened on a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Observation<'a> {
    /// The connection began; the first of its observations.
    Started {
        /// The role of this end.
        side: Side,
        /// Both ends of the path of the handshake.
        path: PathAddress,
        /// Destination of the client's first Initial packet. A client that begins again in another
        /// version, or follows a Retry, takes another one.
        original_dst_cid: ConnectionId,
        /// The first local connection ID.
        local_cid: ConnectionId,
        /// The connection ID that the first packet of this end goes to.
        remote_cid: ConnectionId,
        /// Version of the client's first packet.
        version: u32,
        /// The versions that this end supports, best first.
        versions: &'a [u32],
    },
    /// Transport parameters are known: the local ones from the start, the peer's from the handshake.
    Parameters {
        /// Whose.
        owner: Owner,
        /// All of them, defaults included; this end's without the version information.
        parameters: &'a TransportParameters,
    },
    /// The application protocol was negotiated (ALPN).
    Alpn {
        /// Its identifier.
        protocol: &'a [u8],
    },
    /// The handshake came to a new stage.
    HandshakeProgress {
        /// Which.
        stage: HandshakeStage,
    },
    /// The server asks for proof of the client's address (client).
    Retry {
        /// Bytes of the packet.
        size: usize,
        /// The connection ID that it chose.
        src_cid: ConnectionId,
    },
    /// The server doesn't support the version of the first packet (client).
    VersionsOffered {
        /// The versions that it supports.
        versions: &'a [u32],
    },
    /// A packet left.
    PacketSent {
        /// Path it left on.
        path: PathId,
        /// Encryption level.
        level: EncryptionLevel,
        /// Packet number.
        number: PacketNumber,
        /// Bytes on the wire.
        size: usize,
        /// True if the peer must acknowledge it.
        ack_eliciting: bool,
        /// What it carried, as far as the sender keeps account of it.
        frames: &'a [SentFrame],
        /// All that it carried, as it stands on the wire before encryption.
        payload: Payload<'a>,
        /// It looks for the largest datagram that the path carries.
        mtu_probe: bool,
    },
    /// A packet was authenticated.
    PacketReceived {
        /// Path it arrived on.
        path: PathId,
        /// Encryption level.
        level: EncryptionLevel,
        /// Packet number.
        number: PacketNumber,
        /// Bytes on the wire.
        size: usize,
        /// What it carries, as it came; it has not been looked at yet and may break rules.
        payload: Payload<'a>,
    },
    /// A packet was put aside, since its keys are yet to come.
    PacketBuffered {
        /// Encryption level.
        level: EncryptionLevel,
        /// Bytes on the wire.
        size: usize,
    },
    /// A packet was thrown away.
    PacketDropped {
        /// Why.
        reason: &'static str,
        /// Bytes of the packet, or of the rest of its datagram where packets can't be separated.
        size: usize,
        /// Its header; `None` if that can't be read.
        packet_type: Option<PacketType>,
    },
    /// A packet is considered lost.
    PacketLost {
        /// Path it left on.
        path: PathId,
        /// Encryption level.
        level: EncryptionLevel,
        /// Packet number.
        number: PacketNumber,
        /// Bytes on the wire.
        size: usize,
        /// What shows that it is lost.
        trigger: LossTrigger,
    },
    /// What recovery of a path begins with.
    RecoveryParameters {
        /// The path.
        path: PathId,
        /// Name of the congestion controller.
        controller: &'static str,
        /// `kPacketThreshold`.
        packet_threshold: u64,
        /// Round-trip time that is assumed before the first sample.
        initial_rtt: Duration,
        /// UDP payload of full datagrams.
        max_datagram_size: u16,
        /// Congestion window.
        initial_window: ByteCount,
    },
    /// State of recovery after an ACK, a loss or a timeout.
    Metrics {
        /// The path.
        path: PathId,
        /// `smoothed_rtt`.
        smoothed_rtt: Duration,
        /// Last sample.
        latest_rtt: Duration,
        /// Smallest sample.
        min_rtt: Duration,
        /// `rttvar`.
        rtt_var: Duration,
        /// Congestion window.
        cwnd: ByteCount,
        /// Slow-start threshold, if one is set.
        ssthresh: Option<ByteCount>,
        /// Rate of the pacer; `None` if pacing is off.
        pacing_rate: Option<Bandwidth>,
        /// Bytes in flight.
        bytes_in_flight: ByteCount,
        /// Probe timeouts in a row.
        pto_count: u32,
    },
    /// A probe timeout expired.
    ProbeTimeout {
        /// The path.
        path: PathId,
        /// Encryption level in which it expired first.
        level: EncryptionLevel,
        /// Expirations in a row.
        count: u32,
    },
    /// The congestion controller of a path is in another state.
    CongestionState {
        /// The path.
        path: PathId,
        /// The state left; `None` at first.
        before: Option<&'static str>,
        /// The state entered, in the words of the algorithm.
        state: &'static str,
    },
    /// The timer of loss detection runs to another end (RFC 9002, appendix A.8). Reported when all that
    /// can be sent was sent, not for each packet; expirations of a probe timeout are
    /// [`Observation::ProbeTimeout`].
    LossTimer {
        /// The path.
        path: PathId,
        /// What it waits for.
        timer: LossTimer,
        /// Encryption level of the packets that it runs for.
        level: EncryptionLevel,
        /// What happened to it.
        change: TimerChange,
    },
    /// The peer's flow control began to hold stream data back, or no longer does.
    FlowBlocked {
        /// True if it does now.
        blocked: bool,
    },
    /// Full datagrams of a path have another size from now on.
    MtuUpdated {
        /// The path.
        path: PathId,
        /// UDP payload until now.
        before: u16,
        /// UDP payload from now on.
        size: u16,
        /// True if no search for a larger one goes on.
        done: bool,
        /// True if large packets vanished and the smallest size is taken for a while.
        black_hole: bool,
    },
    /// It shows what a path does with ECN marks.
    EcnUpdated {
        /// The path.
        path: PathId,
        /// What is known now.
        state: EcnState,
    },
    /// A stream came into being.
    StreamOpened {
        /// The stream.
        id: StreamId,
    },
    /// A stream is over in every direction, and its state is discarded.
    StreamClosed {
        /// The stream.
        id: StreamId,
    },
    /// The fate of a DATAGRAM frame's data (RFC 9221): of those with a key, and of all that were dropped
    /// unsent.
    DatagramFate {
        /// The application's key.
        key: Option<u64>,
        /// What became of the datagram.
        fate: DatagramFate,
    },
    /// Stream data was declared lost for the first time.
    DataLost {
        /// Which data.
        range: DataRange,
        /// Time from its first transmission until now.
        detection_time: Duration,
        /// Why it counts as lost.
        cause: RepairCause,
    },
    /// Data under repair arrived: a copy was acknowledged.
    DataRecovered {
        /// Which data.
        range: DataRange,
        /// The copy that was acknowledged first.
        by: Copied,
        /// From its first retransmission to the sending of that copy; zero if that was the first
        /// retransmission or the original (AutoRec, section III-C).
        recovery_latency: Duration,
        /// From its first transmission to its first retransmission (`T_unit` of this data range).
        detection_time: Duration,
        /// Retransmissions that it took.
        retransmissions: u32,
        /// Replicas that were sent of it.
        replicas: u32,
    },
    /// The sending of a stream was abandoned, here or by the peer.
    StreamReset {
        /// The stream.
        id: StreamId,
        /// Which end abandoned it, and why.
        cause: ResetCause,
        /// The application's code.
        code: u64,
        /// Final size, bytes.
        final_size: u64,
        /// Bytes from the start that are delivered all the same; 0 for a plain `RESET_STREAM`.
        reliable_size: u64,
    },
    /// A re-injector changed how much it repeats.
    Redundancy {
        /// Its present estimates.
        report: &'a ReinjectorReport,
    },
    /// Early data were offered, and this became of them.
    EarlyData {
        /// What.
        outcome: EarlyDataOutcome,
    },
    /// A client begins again, since the server doesn't support the version of its first packets.
    VersionTried {
        /// The version that it begins with now.
        version: u32,
    },
    /// The version of the connection is known. A client has yet to see it confirmed by the handshake.
    VersionChosen {
        /// That of the client's first packets.
        original: u32,
        /// That of the connection; another one if the server chose so (RFC 9368).
        version: u32,
    },
    /// A path besides the one in use is being probed, by either end.
    PathProbed {
        /// Its ends.
        path: PathAddress,
    },
    /// The peer answered on a path: its address there is validated (RFC 9000, section 8.2).
    PathValidated {
        /// Its ends.
        path: PathAddress,
        /// Time between challenge and response.
        rtt: Duration,
    },
    /// A path did not answer before the timeout, or had to be abandoned.
    PathFailed {
        /// Its ends.
        path: PathAddress,
    },
    /// Another path is in use from now on, because either end moved.
    PathChanged {
        /// The path left.
        from: PathAddress,
        /// The path in use.
        to: PathAddress,
    },
    /// A path of a connection with several came to another stage of its life.
    PathProgress {
        /// The path.
        path: PathId,
        /// Its ends.
        address: PathAddress,
        /// The stage that it came to.
        stage: PathStage,
    },
    /// An end declared how it means to use a path (`PATH_STATUS_AVAILABLE`, `PATH_STATUS_BACKUP`).
    PathStatusDeclared {
        /// The path.
        path: PathId,
        /// Which end.
        owner: Owner,
        /// True for backup.
        backup: bool,
    },
    /// A connection ID of the peer came into use in the place of another.
    ConnectionIdUsed {
        /// The one left.
        before: ConnectionId,
        /// The one in use.
        cid: ConnectionId,
    },
    /// The handshake gave keys of an encryption level, for both directions where it has two.
    KeysInstalled {
        /// Encryption level.
        level: EncryptionLevel,
    },
    /// Keys of an encryption level are gone.
    KeysDiscarded {
        /// Encryption level.
        level: EncryptionLevel,
    },
    /// The 1-RTT keys of either end changed phase.
    KeyUpdated {
        /// Number of updates so far.
        generation: u64,
        /// Who began it.
        initiator: Owner,
    },
    /// The connection ended.
    Closed {
        /// Why.
        reason: &'a ConnectionError,
    },
}

/// One end of the connection, as seen from here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Owner {
    /// This end.
    Local,
    /// The peer.
    Remote,
}

/// How far the handshake is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum HandshakeStage {
    /// There are Handshake keys.
    Started,
    /// Both ends have proven to know the same secrets (RFC 9001, section 4.1.1).
    Complete,
    /// The peer's handshake is complete too (RFC 9001, section 4.1.2).
    Confirmed,
}

/// What shows that a packet is lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LossTrigger {
    /// Enough later packets were acknowledged (RFC 9002, section 6.1.1).
    PacketThreshold,
    /// A later packet was acknowledged and it is old enough (RFC 9002, section 6.1.2).
    TimeThreshold,
    /// It was a probe of a larger datagram size and its time is over; no sign of congestion.
    MtuProbe,
}

/// What the timer of loss detection waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LossTimer {
    /// A packet becomes lost by its age.
    TimeThreshold,
    /// The probe timeout.
    Probe,
}

/// What happened to a timer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TimerChange {
    /// It ends after this time.
    Set(Duration),
    /// It ended.
    Expired,
    /// It no longer runs.
    Cancelled,
}

/// The frames of a packet, as bytes that are read when asked for.
#[derive(Clone, Copy, Default)]
pub struct Payload<'a>(&'a [u8]);

impl<'a> Payload<'a> {
    /// The frames that `bytes` encode.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The frames in order, up to the first one that is malformed.
    pub fn frames(self) -> impl Iterator<Item = Frame<'a>> {
        FrameIter::new(self.0)
            .map_while(Result::ok)
            .map(|(_, frame)| frame)
    }

    /// Bytes of all frames.
    pub fn size(self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for Payload<'_> {
    /// Says nothing of the bytes, which are the application's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}

/// A frame of a packet that was sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SentFrame {
    /// ACK.
    Ack {
        /// Largest packet number that it acknowledges.
        largest: PacketNumber,
    },
    /// CRYPTO.
    Crypto {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u32,
    },
    /// STREAM.
    Stream {
        /// The stream.
        id: StreamId,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u32,
        /// True if the stream ends with it.
        fin: bool,
        /// Why it was sent.
        purpose: Purpose,
    },
    /// A frame that carries a small value, such as MAX_DATA.
    Control,
}

/// Receives every [`Observation`]; affects nothing.
pub trait Observer: Send {
    /// Something happened at `now`.
    fn observe(&mut self, now: Instant, observation: &Observation<'_>);
}

/// Makes an observer for each new connection.
pub trait ObserverFactory: Send + Sync + fmt::Debug {
    /// The observer of a connection, or `None` to leave it alone.
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>>;
}

/// Two factories whose observers both receive everything, the first one's first.
#[derive(Clone, Debug)]
pub struct Both(pub Arc<dyn ObserverFactory>, pub Arc<dyn ObserverFactory>);

impl ObserverFactory for Both {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        match (self.0.observer(side), self.1.observer(side)) {
            (Some(first), Some(second)) => Some(Box::new(Pair(first, second))),
            (one, other) => one.or(other),
        }
    }
}

struct Pair(Box<dyn Observer>, Box<dyn Observer>);

impl Observer for Pair {
    fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        self.0.observe(now, observation);
        self.1.observe(now, observation);
    }
}
