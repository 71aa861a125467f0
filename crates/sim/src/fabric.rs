//! Owner of everything between hosts: nodes, links, addresses, routes, taps, event queue and packet
//! log.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use swiftwater_link::{Dropped, Link, Packet};
use swiftwater_quic::Transmit;
use swiftwater_units::Instant;

use crate::datagram::{Datagram, OutgoingDatagram, Parcel, Pool, ecn_to_link};
use crate::event_queue::{EventQueue, Task};
use crate::log::{LogEntry, LogFate, PacketLog};
use crate::routes::{Edge, Routes};
use crate::tap::{Tap, TapDatagram, Verdict};

/// Space for one batch of datagrams.
const BUFFER_LEN: usize = 1 << 16;

/// A host or a router.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeId(pub(crate) u32);

/// A link, one way.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LinkId(pub(crate) u32);

/// Interface of a host: an address and a link in each direction.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct InterfaceId(pub(crate) u32);

/// Counters of datagrams outside links.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FabricStats {
    /// Tasks done: arrivals at the end of a link, timers.
    pub tasks: u64,
    /// Datagrams to unassigned addresses, or without a route.
    pub unroutable: u64,
    /// Datagrams that arrived at a host which no longer had the address.
    pub misdelivered: u64,
}

#[derive(Debug)]
pub(crate) struct LinkState {
    pub(crate) link: Link<Parcel>,
    edge: Edge,
    taps: Vec<Tap>,
    offered: u64,
    /// When the event queue visits the link next.
    scheduled: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) host: u32,
    /// The host's own address.
    pub(crate) inner: SocketAddr,
    /// The address seen by other hosts.
    pub(crate) outer: SocketAddr,
    uplink: u32,
    downlink: u32,
    /// What the node at the start of the downlink sends here takes the downlink, whatever the sender's
    /// interface.
    direct: bool,
    /// Datagrams to it are for the application.
    pub(crate) raw: bool,
    /// Cache of the last destination of a datagram from here, and its interface: most go to the
    /// same one.
    recent: Option<(SocketAddr, u32)>,
}

/// What a node is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    Host(u32),
    Router,
}

/// Datagrams at the end of a link, by receiver.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) host: u32,
    pub(crate) packet: Packet<Parcel>,
}

#[derive(Debug, Default)]
pub(crate) struct Fabric {
    pub(crate) now: Instant,
    pub(crate) event_queue: EventQueue,
    pub(crate) pool: Pool,
    pub(crate) log: Option<PacketLog>,
    pub(crate) stats: FabricStats,
    /// Hosts with pending work, in order of arrival.
    pub(crate) busy: VecDeque<u32>,
    nodes: Vec<Node>,
    links: Vec<LinkState>,
    interfaces: Vec<Interface>,
    addresses: BTreeMap<SocketAddr, u32>,
    /// `None` after a change of topology, until needed again.
    routes: Option<Routes>,
    /// Datagrams delayed by taps, and free places among them.
    held: Vec<Option<(u32, Packet<Parcel>)>>,
    free_held: Vec<u32>,
    /// Buffer for the datagrams that connections send.
    buffer: Vec<u8>,
}

impl Fabric {
    pub(crate) fn add_node(&mut self, node: Node) -> u32 {
        self.routes = None;
        self.nodes.push(node);
        (self.nodes.len() - 1) as u32
    }

    pub(crate) fn links(&self) -> usize {
        self.links.len()
    }

    pub(crate) fn add_link(&mut self, mut link: Link<Parcel>, from: u32, to: u32) -> u32 {
        self.routes = None;
        link.keep_dropped(true);
        self.links.push(LinkState {
            link,
            edge: Edge { from, to },
            taps: Vec::new(),
            offered: 0,
            scheduled: None,
        });
        (self.links.len() - 1) as u32
    }

    pub(crate) fn edge(&self, link: u32) -> Edge {
        self.links[link as usize].edge
    }

    pub(crate) fn link(&self, link: u32) -> &LinkState {
        &self.links[link as usize]
    }

    pub(crate) fn link_mut(&mut self, link: u32) -> &mut LinkState {
        &mut self.links[link as usize]
    }

    /// `None` if the address is taken.
    pub(crate) fn add_interface(
        &mut self,
        host: u32,
        address: SocketAddr,
        uplink: u32,
        downlink: u32,
    ) -> Option<u32> {
        let id = self.interfaces.len() as u32;
        if self.addresses.contains_key(&address) {
            return None;
        }
        self.routes = None;
        self.addresses.insert(address, id);
        self.interfaces.push(Interface {
            host,
            inner: address,
            outer: address,
            uplink,
            downlink,
            direct: false,
            raw: false,
            recent: None,
        });
        Some(id)
    }

    /// Datagrams to the interface take its downlink where that begins.
    pub(crate) fn set_direct(&mut self, id: u32) {
        self.interfaces[id as usize].direct = true;
    }

    /// Datagrams to the interface are for the application of its host.
    pub(crate) fn set_raw(&mut self, id: u32) {
        self.interfaces[id as usize].raw = true;
    }

    pub(crate) fn interface(&self, id: u32) -> &Interface {
        &self.interfaces[id as usize]
    }

    /// Changes the outer address of an interface; false if it is taken.
    pub(crate) fn rebind(&mut self, id: u32, address: SocketAddr, keep_old: bool) -> bool {
        match self.addresses.get(&address) {
            Some(&owner) if owner != id => return false,
            _ => {}
        }
        for interface in &mut self.interfaces {
            interface.recent = None;
        }
        let interface = &mut self.interfaces[id as usize];
        if !keep_old && interface.outer != address {
            self.addresses.remove(&interface.outer);
        }
        interface.outer = address;
        self.addresses.insert(address, id);
        true
    }

    /// The interface that owns `address` now.
    pub(crate) fn owner(&self, address: SocketAddr) -> Option<u32> {
        self.addresses.get(&address).copied()
    }

    /// As [`Fabric::owner`], for a datagram from the interface `from`.
    fn owner_for(&mut self, from: u32, address: SocketAddr) -> Option<u32> {
        let recent = self.interfaces[from as usize].recent;
        if let Some((_, owner)) = recent.filter(|(recent, _)| *recent == address) {
            return Some(owner);
        }
        let owner = self.owner(address)?;
        self.interfaces[from as usize].recent = Some((address, owner));
        Some(owner)
    }

    /// Whether `address` belongs to the interface `id`.
    pub(crate) fn belongs(&self, address: SocketAddr, id: u32) -> bool {
        // An interface always has its outer address, and may keep older ones.
        self.interface(id).outer == address || self.owner(address) == Some(id)
    }

    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        let mut buffer = std::mem::take(&mut self.buffer);
        if buffer.is_empty() {
            buffer.resize(BUFFER_LEN, 0);
        }
        buffer
    }

    pub(crate) fn return_buffer(&mut self, buffer: Vec<u8>) {
        self.buffer = buffer;
    }

    /// Sends the datagrams of `transmit`, stored in `buffer`, from one of `interfaces`.
    pub(crate) fn transmit(&mut self, interfaces: &[u32], transmit: &Transmit, buffer: &[u8]) {
        let batch = &buffer[..transmit.size];
        let segment = transmit.segment_size.unwrap_or(batch.len()).max(1);
        let from = Self::pick_interface(interfaces, transmit);
        let to = from.and_then(|from| self.owner_for(from, transmit.destination));
        let (Some(from), Some(to)) = (from, to) else {
            self.stats.unroutable += batch.chunks(segment).len() as u64;
            return;
        };
        let outer = self.interfaces[from as usize].outer;
        let link = self.first_link(from, to);
        for data in batch.chunks(segment) {
            let parcel = self.pool.parcel(outer, transmit.destination, to, data);
            let packet = Packet::with_ecn(parcel, ecn_to_link(transmit.ecn));
            self.offer(link, packet);
        }
    }

    /// Sends a TCP segment from an interface.
    pub(crate) fn transmit_tcp(
        &mut self,
        from: u32,
        destination: SocketAddr,
        port: u16,
        data: &[u8],
    ) {
        let Some(to) = self.owner_for(from, destination) else {
            self.stats.unroutable += 1;
            return;
        };
        let outer = self.interfaces[from as usize].outer;
        let link = self.first_link(from, to);
        let mut parcel = self.pool.parcel(outer, destination, to, data);
        parcel.0.tcp_port = Some(port);
        self.offer(link, Packet::new(parcel));
    }

    /// Sends a datagram of an application from one of `interfaces`.
    pub(crate) fn transmit_raw(&mut self, interfaces: &[u32], datagram: &OutgoingDatagram) {
        let from = interfaces.get(usize::from(datagram.socket.0)).copied();
        let to = from.and_then(|from| self.owner_for(from, datagram.destination));
        let (Some(from), Some(to)) = (from, to) else {
            self.stats.unroutable += 1;
            return;
        };
        let outer = self.interfaces[from as usize].outer;
        let link = self.first_link(from, to);
        let mut parcel = self
            .pool
            .parcel(outer, datagram.destination, to, &datagram.data);
        parcel.0.note = datagram.note;
        self.offer(link, Packet::with_ecn(parcel, ecn_to_link(datagram.ecn)));
    }

    /// The link that a datagram from one interface to another takes first.
    fn first_link(&self, from: u32, to: u32) -> u32 {
        let uplink = self.interfaces[from as usize].uplink;
        let Interface {
            direct, downlink, ..
        } = self.interfaces[to as usize];
        let is_neighbour = || self.edge(downlink).from == self.edge(uplink).from;
        if direct && is_neighbour() {
            downlink
        } else {
            uplink
        }
    }

    /// The interface of a socket; the interfaces of a host are numbered in the order of creation.
    fn pick_interface(interfaces: &[u32], transmit: &Transmit) -> Option<u32> {
        interfaces.get(usize::from(transmit.socket.0)).copied()
    }

    /// Passes a datagram to the taps of a link, then to the link.
    pub(crate) fn offer(&mut self, link: u32, mut packet: Packet<Parcel>) {
        let state = &mut self.links[link as usize];
        let index = state.offered;
        state.offered += 1;
        let mut delay = None;
        for Tap(tap) in &mut state.taps {
            let Datagram {
                source,
                destination,
                tcp_port,
                data,
                ..
            } = &mut *packet.payload.0;
            let verdict = tap(&mut TapDatagram {
                now: self.now,
                index,
                source: *source,
                destination: *destination,
                tcp_port: *tcp_port,
                ecn: &mut packet.ecn,
                data,
            });
            match verdict {
                Verdict::Pass => {}
                Verdict::Drop => {
                    self.note(link, &packet, LogFate::Tapped);
                    self.pool.recycle(packet);
                    return;
                }
                Verdict::Delay(by) => {
                    delay = Some(by);
                    break;
                }
            }
        }
        match delay {
            None => self.enter(link, packet),
            Some(by) => self.hold(link, packet, self.now + by),
        }
    }

    fn hold(&mut self, link: u32, packet: Packet<Parcel>, until: Instant) {
        let place = self.free_held.pop().unwrap_or_else(|| {
            self.held.push(None);
            (self.held.len() - 1) as u32
        });
        self.held[place as usize] = Some((link, packet));
        self.event_queue.push(until, Task::Release(place));
    }

    /// Sends a datagram that a tap delayed.
    pub(crate) fn release(&mut self, place: u32) {
        if let Some((link, packet)) = self.held[place as usize].take() {
            self.free_held.push(place);
            self.enter(link, packet);
        }
    }

    fn enter(&mut self, link: u32, packet: Packet<Parcel>) {
        let now = self.now;
        let state = &mut self.links[link as usize];
        let dropped = if let Some(log) = &mut self.log {
            let (size, ecn) = (packet.payload.0.data.len() as u32, packet.ecn);
            // Recorded before, because the link may corrupt it.
            log.add_content(&packet.payload.0.data);
            let dropped = state.link.enqueue(now, packet);
            let reason = dropped.as_ref().map(|dropped| dropped.reason);
            log.add(LogEntry {
                at: now,
                link: LinkId(link),
                size,
                ecn,
                fate: reason.map_or(LogFate::Accepted, LogFate::Dropped),
            });
            dropped
        } else {
            state.link.enqueue(now, packet)
        };
        let has_dropped = state.link.has_dropped();
        if let Some(Dropped { packet, .. }) = dropped {
            self.pool.recycle(packet);
        }
        if has_dropped {
            self.collect_dropped(link);
        }
        self.schedule(link);
    }

    /// Records the datagrams that the link's queue dropped after it had accepted them.
    fn collect_dropped(&mut self, link: u32) {
        while let Some(Dropped { packet, reason }) = self.link_mut(link).link.take_dropped() {
            self.note(link, &packet, LogFate::Dropped(reason));
            self.pool.recycle(packet);
        }
    }

    /// Schedules a visit of the link when its next datagram arrives or its transmission of the next
    /// one starts.
    fn schedule(&mut self, link: u32) {
        let state = &mut self.links[link as usize];
        if let Some(next) = state.link.next_event()
            && state.scheduled.is_none_or(|at| next < at)
        {
            state.scheduled = Some(next);
            self.event_queue.push(next.max(self.now), Task::Link(link));
        }
    }

    /// The next datagram at the end of a link that is for a host; those for routers are forwarded.
    /// Must be called until `None`.
    pub(crate) fn arrival(&mut self, link: u32) -> Option<Arrival> {
        let now = self.now;
        loop {
            let state = &mut self.links[link as usize];
            // Checked first: usually there is one datagram, and a second look-up is avoided.
            let is_due = state.link.next_event().is_some_and(|at| at <= now);
            let packet = if is_due { state.link.poll(now) } else { None };
            let Some(packet) = packet else {
                if state.scheduled.is_some_and(|at| at <= now) {
                    state.scheduled = None;
                }
                if state.link.has_dropped() {
                    self.collect_dropped(link);
                }
                self.schedule(link);
                return None;
            };
            let to = state.edge.to;
            self.note(link, &packet, LogFate::Arrived);
            match self.nodes[to as usize] {
                Node::Host(host) => return Some(Arrival { host, packet }),
                Node::Router => self.forward(to, packet),
            }
        }
    }

    fn forward(&mut self, router: u32, packet: Packet<Parcel>) {
        let interface = packet.payload.0.interface;
        if let Some(link) = self.routes().next(router, interface) {
            self.offer(link, packet);
        } else {
            self.stats.unroutable += 1;
            self.pool.recycle(packet);
        }
    }

    fn routes(&mut self) -> &Routes {
        let (nodes, links, interfaces) = (&self.nodes, &self.links, &self.interfaces);
        self.routes.get_or_insert_with(|| {
            let forwards: Vec<_> = nodes
                .iter()
                .map(|node| matches!(node, Node::Router))
                .collect();
            let edges: Vec<_> = links.iter().map(|state| state.edge).collect();
            let downlinks: Vec<_> = interfaces.iter().map(|each| each.downlink).collect();
            Routes::new(&forwards, &edges, &downlinks)
        })
    }

    fn note(&mut self, link: u32, packet: &Packet<Parcel>, fate: LogFate) {
        if let Some(log) = &mut self.log {
            let data = &packet.payload.0.data;
            log.add_content(data);
            log.add(LogEntry {
                at: self.now,
                link: LinkId(link),
                size: data.len() as u32,
                ecn: packet.ecn,
                fate,
            });
        }
    }

    pub(crate) fn add_tap(&mut self, link: u32, tap: Tap) {
        self.links[link as usize].taps.push(tap);
    }

    pub(crate) fn offered(&self, link: u32) -> u64 {
        self.links[link as usize].offered
    }
}
