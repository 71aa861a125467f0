//! What a case is made of, and how cases are drawn.
//!
//! A plan that failed is printed as it would be written in `regressions.rs`, except imports.

use std::time::Duration;

use swiftwater_quic::wire::MultipathVersion;
use swiftwater_quic::{MultipathVersions, Priority};
use swiftwater_sim::Direction;
use swiftwater_units::{Dir, Side};

/// What a path does to ECN marks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Marks {
    Kept,
    Cleared,
    AllCongested,
}

/// What a client meets that was there before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Early {
    /// It never was.
    Stranger,
    /// The server accepts early data.
    Accepted,
    /// The server doesn't.
    Rejected,
    /// The server's limits may be lower than they were.
    Lowered,
}

/// One direction of the path. What is random, except jitter and duplicates, ends when the network
/// heals.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) delay_ms: u64,
    pub(crate) jitter_ms: u64,
    pub(crate) rate_kbps: Option<u64>,
    /// Only with a rate.
    pub(crate) buffer_packets: Option<u64>,
    /// Percent.
    pub(crate) loss: u32,
    /// Percent.
    pub(crate) duplicate: u32,
    /// Percent.
    pub(crate) corrupt: u32,
    /// Percent that arrive `late_ms` later.
    pub(crate) late: u32,
    pub(crate) late_ms: u64,
    /// Queue length from which packets are marked.
    pub(crate) mark_above: Option<u64>,
    pub(crate) marks: Marks,
}

impl Default for Wire {
    fn default() -> Self {
        Self {
            delay_ms: 10,
            jitter_ms: 0,
            rate_kbps: None,
            buffer_packets: None,
            loss: 0,
            duplicate: 0,
            corrupt: 0,
            late: 0,
            late_ms: 0,
            mark_above: None,
            marks: Marks::Kept,
        }
    }
}

/// One end's configuration.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) bidi_streams: u64,
    pub(crate) uni_streams: u64,
    pub(crate) stream_window: u64,
    pub(crate) window: u64,
    /// The windows may grow to so many times their size.
    pub(crate) growth: u64,
    pub(crate) send_window: u64,
    pub(crate) idle_ms: Option<u64>,
    pub(crate) keep_alive_ms: Option<u64>,
    pub(crate) key_update_interval: u64,
    pub(crate) datagram_frames: Option<u64>,
    pub(crate) datagram_queue: u64,
    pub(crate) cid_limit: u64,
    pub(crate) ack_threshold: u64,
    pub(crate) max_ack_delay_ms: u64,
    pub(crate) packet_size: u16,
    /// Look for datagrams up to this size; both ends or none.
    pub(crate) search_up_to: Option<u16>,
    pub(crate) packet_threshold: u64,
    pub(crate) initial_rtt_ms: u64,
    pub(crate) initial_window: Option<u64>,
    pub(crate) pacing: bool,
    pub(crate) ecn: bool,
    pub(crate) newreno: bool,
    /// Recovery policies, as named by the catalogue.
    pub(crate) recovery: &'static str,
    /// Versions of QUIC, best first.
    pub(crate) versions: &'static [u32],
    /// Length of our connection IDs; 0 only for clients.
    pub(crate) cid_len: usize,
    /// Allows the peer to move.
    pub(crate) migration: bool,
    /// Asks for fewer acknowledgements.
    pub(crate) ack_frequency: bool,
    /// Largest UDP payload that the peer may send.
    pub(crate) largest: u16,
    /// Copies of handshake data on a probe timeout, and repetitions before one.
    pub(crate) handshake_copies: u8,
    pub(crate) receive_rate_kbps: Option<u64>,
    /// A server's application may send before the handshake is complete.
    pub(crate) half_rtt: bool,
    /// Several paths, in these versions of the extension.
    pub(crate) multipath: Option<MultipathVersions>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bidi_streams: 100,
            uni_streams: 100,
            stream_window: 1 << 20,
            window: 3 << 19,
            growth: 16,
            send_window: 16 << 20,
            idle_ms: None,
            keep_alive_ms: None,
            key_update_interval: 1 << 23,
            datagram_frames: Some(65_535),
            datagram_queue: 1 << 20,
            cid_limit: 4,
            ack_threshold: 2,
            max_ack_delay_ms: 25,
            packet_size: 1200,
            search_up_to: None,
            packet_threshold: 3,
            initial_rtt_ms: 333,
            initial_window: None,
            pacing: true,
            ecn: true,
            newreno: false,
            recovery: "arq",
            versions: &[1],
            cid_len: 8,
            migration: true,
            ack_frequency: false,
            largest: 65_527,
            handshake_copies: 2,
            receive_rate_kbps: None,
            half_rtt: false,
            multipath: None,
        }
    }
}

impl Settings {
    pub(crate) fn idle(&self) -> Option<Duration> {
        self.idle_ms.map(Duration::from_millis)
    }
}

/// One operation. Streams are chosen among those of the side, in rotation.
#[allow(dead_code, reason = "the fuzz target draws paths, the tests do not")]
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Open(Side, Dir),
    Accept(Side, Dir),
    Write(Side, usize, usize),
    Finish(Side, usize),
    Reset(Side, usize, u64),
    ResetAt(Side, usize, u64, u64),
    Stop(Side, usize, u64),
    Priority(Side, usize, Priority),
    /// Milliseconds from now.
    Deadline(Side, usize, u64),
    /// Data not acknowledged within so many milliseconds are dropped, except for the first bytes.
    Expire(Side, usize, u64, u64),
    Read(Side, usize, usize),
    SendDatagram(Side, usize),
    ReadDatagrams(Side),
    /// Milliseconds.
    Advance(u64),
    /// Lets so many events happen.
    Step(u32),
    DropNext(Direction, u32),
    CorruptNext(Direction, u32),
    /// The client's NAT gives it another port, or another address.
    Rebind {
        ip: bool,
    },
    /// The path carries UDP payloads up to this size from now on, if both ends look for sizes.
    Shrink(Direction, usize),
    /// The client moves: to its second address or back, by a probe or at once.
    Migrate {
        away: bool,
        at_once: bool,
    },
    /// The client opens a path, from its second address or the first, if that is possible.
    OpenPath {
        away: bool,
    },
    /// A side abandons one of its open paths, if it has two.
    AbandonPath(Side, usize),
    /// A side makes one of its open paths a backup, or not any more.
    PathStatus(Side, usize, bool),
    UpdateKeys(Side),
    Rotate(Side),
    Ping(Side),
    /// kbit/s, or no limit.
    ReceiveRate(Side, Option<u64>),
    /// Changes the redundancy that the recovery policy may cause, percent, if it has a bound.
    Redundancy(Side, u32),
    Close(Side),
    /// A captured datagram arrives again.
    Replay {
        to: Direction,
        index: usize,
        /// With a bit flipped.
        damaged: bool,
        /// From an unassigned address.
        stranger: bool,
    },
    /// Random bytes arrive, after the start of a captured datagram.
    Garbage {
        to: Direction,
        index: usize,
        keep: usize,
        len: usize,
    },
}

/// A case.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// To the server, to the client.
    pub(crate) wires: [Wire; 2],
    /// Client, server.
    pub(crate) ends: [Settings; 2],
    pub(crate) retry: bool,
    pub(crate) early: Early,
    /// The server sends a preferred address to its clients.
    pub(crate) preferred: bool,
    /// Most datagrams in a batch.
    pub(crate) segments: usize,
    /// Every stream is ended when the network heals.
    pub(crate) finish_all: bool,
    pub(crate) ops: Vec<Op>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            seed: 1,
            wires: [Wire::default(), Wire::default()],
            ends: [Settings::default(), Settings::default()],
            retry: false,
            early: Early::Stranger,
            preferred: false,
            segments: 10,
            finish_all: true,
            ops: Vec::new(),
        }
    }
}

impl Plan {
    /// Both ends permit several paths in a version that they share.
    pub(crate) fn has_several_paths(&self) -> bool {
        let [client, server] = self.ends.each_ref().map(|end| end.multipath);
        let versions = [MultipathVersion::Rfc10069, MultipathVersion::Draft10];
        client.zip(server).is_some_and(|(client, server)| {
            let is_shared =
                |version: &MultipathVersion| client.includes(*version) && server.includes(*version);
            versions.iter().any(is_shared)
        })
    }
}
