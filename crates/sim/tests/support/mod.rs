//! What the network tests share: links, taps, and an application that is driven by hand.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

pub mod hands;
pub mod paths;
pub mod rebinding;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use swiftwater_link::LinkConfig;
use swiftwater_quic::observe::{Observation, Observer, ObserverFactory};
use swiftwater_quic::wire::{PacketType, PartialHeader};
use swiftwater_quic::{Connection, ConnectionError, Event, PathStats};
use swiftwater_sim::{Direction, HostId, LinkId, Network, Pair, TapDatagram, Verdict};
use swiftwater_units::{Bandwidth, Instant, Side};

pub const BOTH: [Direction; 2] = [Direction::ToServer, Direction::ToClient];
pub const SIDES: [Side; 2] = [Side::Client, Side::Server];

/// Length of the connection IDs that the simulated endpoints issue.
pub const CID_LEN: usize = 8;

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A link of this rate and one-way delay.
pub fn link(mbps: u64, delay_ms: u64) -> LinkConfig {
    LinkConfig::default()
        .rate(Bandwidth::from_mbps(mbps))
        .delay(millis(delay_ms))
}

/// Joins two hosts by a link each way; the links, up and down, and the address of the server.
pub fn join(
    network: &mut Network,
    client: HostId,
    server: HostId,
    (up, down): (LinkConfig, LinkConfig),
) -> (LinkId, LinkId, SocketAddr) {
    let (here, there) = (network.node(client), network.node(server));
    let up = network.add_link(here, there, up).unwrap();
    let down = network.add_link(there, here, down).unwrap();
    let local: SocketAddr = ([10, 0, 0, 1], 49_152).into();
    let remote: SocketAddr = ([10, 0, 0, 2], 443).into();
    network.add_interface(client, local, up, down).unwrap();
    network.add_interface(server, remote, down, up).unwrap();
    (up, down, remote)
}

/// A Version Negotiation packet in answer to `first` that lists `versions`.
pub fn negotiation(first: &[u8], versions: &[u32]) -> Vec<u8> {
    let header = PartialHeader::parse(first, CID_LEN).unwrap();
    let mut packet = vec![0xc0, 0, 0, 0, 0];
    for cid in [header.src_cid, header.dst_cid] {
        packet.push(cid.len() as u8);
        packet.extend_from_slice(cid.as_bytes());
    }
    for version in versions {
        packet.extend_from_slice(&version.to_be_bytes());
    }
    packet
}

/// The first path's numbers on a side.
pub fn path(pair: &Pair, side: Side) -> PathStats {
    pair.stats(side)
        .paths
        .first()
        .cloned()
        .expect("the side has a connection")
}

/// Why a side's connection ended.
pub fn reason(pair: &Pair, side: Side) -> Option<ConnectionError> {
    pair.view(side)?.close_reason().cloned()
}

/// Runs until a side's connection closes; the time then.
pub fn run_to_close(pair: &mut Pair, side: Side) -> Instant {
    assert!(
        pair.run_until(|pair| pair.view(side).is_some_and(Connection::is_closed)),
        "{side:?} never closed"
    );
    pair.now()
}

pub fn count(pair: &Pair, side: Side, wanted: impl Fn(&Event) -> bool) -> usize {
    pair.events(side)
        .iter()
        .filter(|event| wanted(event))
        .count()
}

/// Drops what `which` says of a direction, and counts it.
pub fn drop_if(
    pair: &mut Pair,
    direction: Direction,
    mut which: impl FnMut(&TapDatagram<'_>) -> bool + 'static,
) -> Rc<RefCell<u64>> {
    let dropped = Rc::new(RefCell::new(0));
    let count = Rc::clone(&dropped);
    pair.tap(direction, move |datagram| {
        if which(datagram) {
            *count.borrow_mut() += 1;
            return Verdict::Drop;
        }
        Verdict::Pass
    });
    dropped
}

/// Nothing passes in either direction from `from` on, for `time`.
pub fn black_out(pair: &mut Pair, from: Instant, time: Duration) {
    for direction in BOTH {
        drop_if(pair, direction, move |datagram| {
            datagram.now >= from && datagram.now < from + time
        });
    }
}

/// The types of a datagram's packets.
pub fn packet_types(mut data: &[u8]) -> Vec<PacketType> {
    let mut types = Vec::new();
    while !data.is_empty() {
        let Ok(header) = PartialHeader::parse(data, CID_LEN) else {
            break;
        };
        types.push(header.packet_type);
        data = &data[header.packet_len..];
    }
    types
}

/// An attacker's address.
pub fn stranger() -> SocketAddr {
    ([203, 0, 113, 66], 6_666).into()
}

/// An observer's record of one connection's packets.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// Time and whether the packet was ack-eliciting.
    pub sent: Vec<(Instant, bool)>,
    pub probe_timeouts: Vec<(Instant, u32)>,
    pub key_updates: Vec<(Instant, u64)>,
    pub lost: Vec<(Instant, u64)>,
    /// Congestion window in bytes.
    pub cwnd: Vec<(Instant, u64)>,
}

/// Observes the connections of one side.
#[derive(Clone, Debug)]
pub struct Watch {
    side: Side,
    notes: Arc<Mutex<Notes>>,
}

impl Watch {
    pub fn new(side: Side) -> Self {
        Self {
            side,
            notes: Arc::default(),
        }
    }

    pub fn notes(&self) -> Notes {
        self.notes.lock().unwrap().clone()
    }

    pub fn factory(&self) -> Arc<dyn ObserverFactory> {
        Arc::new(self.clone())
    }
}

impl ObserverFactory for Watch {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        (side == self.side).then(|| Box::new(self.clone()) as Box<dyn Observer>)
    }
}

impl Observer for Watch {
    fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        let mut notes = self.notes.lock().unwrap();
        match *observation {
            Observation::PacketSent { ack_eliciting, .. } => notes.sent.push((now, ack_eliciting)),
            Observation::ProbeTimeout { count, .. } => notes.probe_timeouts.push((now, count)),
            Observation::KeyUpdated { generation, .. } => notes.key_updates.push((now, generation)),
            Observation::PacketLost { number, .. } => notes.lost.push((now, number.get())),
            Observation::Metrics { cwnd, .. } => notes.cwnd.push((now, cwnd.get())),
            _ => {}
        }
    }
}
