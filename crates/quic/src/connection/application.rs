//! The connection's interface for applications: events, streams, datagrams, statistics.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use swiftwater_congestion::Snapshot;
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, PathId, Side, StreamId};

use crate::crypto::CryptoError;
use crate::datagrams::{DatagramOptions, ReceivedDatagram};
use crate::error::{ConnectionError, SendDatagramError};
use crate::lifecycle::Termination;
use crate::path::PathState;
use crate::policy::{ConfigureError, Hints, Occasion};
use crate::space::Arrivals;
use crate::statistics::{Statistics, path_stats};
use crate::streams::{RecvStream, SendStream};
use crate::transmit::PathAddress;

use super::Connection;
use crate::events::{EndpointEvent, Event};
use crate::stats::{ConnectionStats, PathStats};

impl Connection {
    /// The next event, `None` if there is none.
    pub fn poll_event(&mut self) -> Option<Event> {
        let events = &mut self.outbox.events;
        if events.front().is_some_and(|event| !event.is_final()) {
            return events.pop_front();
        }
        if !self.outbox.end_polled {
            // Stream events come before the end of the connection, none after it.
            if let Some(event) = self.streams.poll_event() {
                return Some(Event::Stream(event));
            }
            if let Some((key, fate)) = self.datagrams.poll_fate() {
                return Some(Event::DatagramFate { key, fate });
            }
            if self.datagrams.take_unblocked() {
                return Some(Event::DatagramsUnblocked);
            }
        }
        let last = self.outbox.events.pop_front();
        self.outbox.end_polled |= last.is_some();
        last
    }

    /// True if [`Connection::poll_event`] has more stream events.
    pub fn has_stream_events(&self) -> bool {
        !self.outbox.end_polled && self.streams.has_events()
    }

    /// The next event for [`Endpoint::handle_event`](crate::Endpoint::handle_event), `None` if there
    /// is none.
    pub fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        self.outbox.endpoint_events.pop_front()
    }

    /// Opens a stream; `None` while the peer permits no more of that kind
    /// ([`StreamEvent::Available`](crate::StreamEvent::Available) follows).
    pub fn open(&mut self, dir: Dir) -> Option<StreamId> {
        if !self.lifecycle.is_open() {
            return None;
        }
        self.streams.open(dir)
    }

    /// The next stream that the peer opened; `None` if there is none
    /// ([`StreamEvent::Opened`](crate::StreamEvent::Opened) follows).
    pub fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        self.streams.accept(dir)
    }

    /// How many streams of a kind the peer was permitted to open in all, the ones that are over
    /// included (MAX_STREAMS, RFC 9000, section 19.11): no stream can have this index or a higher one.
    pub fn permitted_streams(&self, dir: Dir) -> u64 {
        self.streams.permitted(dir)
    }

    /// The sending part of stream `id`.
    pub fn send_stream(&mut self, id: StreamId) -> SendStream<'_> {
        SendStream::new(id, &mut self.streams, self.lifecycle.reason())
    }

    /// The receiving part of stream `id`.
    pub fn recv_stream(&mut self, id: StreamId) -> RecvStream<'_> {
        RecvStream::new(id, &mut self.streams, self.lifecycle.reason())
    }

    /// Queues an unreliable datagram (RFC 9221), with default options.
    pub fn send_datagram(&mut self, data: Bytes) -> Result<(), SendDatagramError> {
        self.send_datagram_with(data, DatagramOptions::default())
    }

    /// Queues an unreliable datagram (RFC 9221). [`DatagramOptions::urgency`] is its place among
    /// streams; [`Event::DatagramFate`] reports its fate if it has a key.
    pub fn send_datagram_with(
        &mut self,
        data: Bytes,
        options: DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        let (options, room) = self.prepare_datagram(options)?;
        self.datagrams.send(data, options, room)
    }

    /// The same for a datagram that is given in parts, which are copied: to memory of the connection that is used again
    /// and again, so that many datagrams need no allocation each.
    pub fn send_datagram_parts(
        &mut self,
        parts: &[&[u8]],
        options: DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        let (options, room) = self.prepare_datagram(options)?;
        self.datagrams.send_parts(parts, options, room)
    }

    /// The options of a datagram as far as they can be met, and the room for frames in packets that may carry it.
    fn prepare_datagram(
        &self,
        options: DatagramOptions,
    ) -> Result<(DatagramOptions, usize), SendDatagramError> {
        if let Some(reason) = self.lifecycle.reason() {
            return Err(reason.clone().into());
        }
        let works = |path: &PathState| path.carries_data() && path.recovery.pto_count() == 0;
        let path = options.path;
        let path = path.filter(|path| self.paths.get(*path).is_some_and(works));
        let options = DatagramOptions { path, ..options };
        Ok((options, self.paths.data_room(&self.handshake)))
    }

    /// The oldest unread datagram.
    pub fn recv_datagram(&mut self) -> Option<Bytes> {
        Some(self.recv_datagram_with_packet()?.data)
    }

    /// The oldest unread datagram, with the number of the packet that carried it.
    pub fn recv_datagram_with_packet(&mut self) -> Option<ReceivedDatagram> {
        let shared = self.datagrams.recv()?;
        let data = Bytes::copy_from_slice(&shared.data);
        Some(ReceivedDatagram { data, ..shared })
    }

    /// The oldest unread datagram, for those who are soon done with it: it takes no allocation, but shares 4 KiB of
    /// memory with others, which are used again once none of them is left.
    pub fn recv_shared_datagram(&mut self) -> Option<Bytes> {
        Some(self.datagrams.recv()?.data)
    }

    /// Datagrams that wait to be sent.
    pub fn unsent_datagrams(&self) -> usize {
        self.datagrams.unsent()
    }

    /// Payload bytes of datagrams that wait to be sent.
    pub fn unsent_datagram_bytes(&self) -> ByteCount {
        self.datagrams.unsent_bytes().into()
    }

    /// Largest payload that [`Connection::send_datagram`] accepts now; `None` if the peer accepts no
    /// datagrams or the handshake is not complete.
    pub fn max_datagram_size(&self) -> Option<usize> {
        let room = self.paths.data_room(&self.handshake);
        self.datagrams.max_size(room)
    }

    /// Searches the largest size of packets soon, if that is not known: otherwise the search waits for data that fill
    /// packets, or for a datagram that does not fit. For applications whose datagrams have a size that they can't choose, and
    /// would be lost meanwhile.
    pub fn seek_larger_datagrams(&mut self) {
        self.datagrams.seek_larger_packets();
    }

    /// Closes with the application's `code` (below 2^62) and `reason`, which is cut to what fits in
    /// a packet.
    pub fn close(&mut self, now: Instant, code: u64, reason: &[u8]) {
        self.terminate(
            now,
            Termination::application(code.min((1 << 62) - 1), reason),
        );
    }

    /// Changes the hints for policies.
    pub fn update_hints(&mut self, now: Instant, change: impl FnOnce(&mut Hints)) {
        self.policies.update_hints(now, change);
        self.consult_reinjector(now, Occasion::Hints);
    }

    /// Changes parameters of the running re-injector, as `name=value,name=value`; on an error nothing
    /// changes.
    pub fn configure_reinjector(
        &mut self,
        now: Instant,
        settings: &str,
    ) -> Result<(), ConfigureError> {
        self.policies.reinjector.configure(settings)?;
        self.consult_reinjector(now, Occasion::Hints);
        Ok(())
    }

    /// Lets the peer send stream data no faster than `rate` on average; `None` and zero for no limit.
    /// Replaces [`TransportConfig::receive_rate`](crate::TransportConfig).
    ///
    /// The peer is held back by flow control: its credit for the connection grows at this rate, in
    /// steps of 10 ms or of a packet, whichever is longer. Retransmissions and packet headers are not
    /// counted. Credit that the peer has already may still be used at once; up to one second's worth
    /// of it is made up for afterwards.
    pub fn set_receive_rate(&mut self, now: Instant, rate: Option<Bandwidth>) {
        self.streams.set_receive_rate(now, rate);
        self.streams.drain_control(&mut self.control);
    }

    /// True if stream bytes, or ends of streams, wait to be sent and the peer's limits permit it.
    pub fn has_stream_data(&self) -> bool {
        self.streams.can_send()
    }

    /// Sets by how much the driver's timers may be late; zero at first. Packets that the pacer would let go
    /// within that time leave at once, up to 64 of them: waiting for a timer would send the same burst, only
    /// later.
    pub fn set_timer_granularity(&mut self, now: Instant, granularity: Duration) {
        for path in self.paths.iter_mut() {
            path.recovery.set_timer_granularity(now, granularity);
        }
    }

    /// Updates the 1-RTT keys as soon as RFC 9001, section 6.1 permits.
    pub fn update_keys(&mut self) {
        self.handshake.keys_mut().request_update();
    }

    /// Sends a PING, on the path that is most likely to reach the peer.
    pub fn ping(&mut self) {
        let path = self.paths.most_reliable().id;
        self.ping_path(path);
    }

    /// Sends a PING on a path; false if it is not open.
    pub fn ping_path(&mut self, path: PathId) -> bool {
        let path = self.paths.get_mut(path);
        let Some(path) = path.filter(|path| !path.is_closing()) else {
            return false;
        };
        path.space.ping = true;
        true
    }

    /// The idle timeout that both ends agreed on, once the handshake is complete; `None` if there is none
    /// (RFC 9000, section 10.1).
    pub fn idle_timeout(&self) -> Option<Duration> {
        self.lifecycle.idle_timeout()
    }

    /// Sends a PING when nothing was sent or received for `interval` (in whole milliseconds), on each path of
    /// several, so that the connection outlives its idle
    /// timeout for as long as the peer answers; `None`, as at first, and zero leave that to
    /// [`TransportConfig::keep_alive_interval`](crate::TransportConfig). For protocols that wait for the
    /// peer's answer: switch it off when nothing is waited for any more, so that idle connections still
    /// end. A peer that is gone is found out as always: PINGs that are not answered don't put the idle
    /// timeout off.
    pub fn set_keep_alive(&mut self, interval: Option<Duration>) {
        self.lifecycle.set_keep_alive(interval);
    }

    /// Which end this is.
    pub fn side(&self) -> Side {
        self.identity.side
    }

    /// The peer's address on the first path.
    pub fn remote(&self) -> SocketAddr {
        self.paths.primary().network.address.remote
    }

    /// Both ends of the path in use.
    pub fn path_address(&self) -> PathAddress {
        self.paths.primary().network.address
    }

    /// The path in use, if it is known to lead to the peer: its address is validated (RFC 9000, section 8) and the
    /// handshake is complete.
    pub fn validated_path(&self) -> Option<PathAddress> {
        let network = &self.paths.primary().network;
        let is_validated =
            !self.is_handshaking() && !self.is_closed() && network.amplification.is_validated();
        is_validated.then_some(network.address)
    }

    /// The negotiated application protocol, once known.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.handshake.session()?.alpn()
    }

    /// The server name that the client asks for, once it has arrived.
    pub fn server_name(&self) -> Option<&str> {
        self.handshake.session()?.server_name()
    }

    /// The peer's certificate chain, DER, end-entity first; empty if it sent none.
    pub fn peer_certificates(&self) -> Vec<Vec<u8>> {
        self.handshake
            .session()
            .map(crate::crypto::Session::peer_certificates)
            .unwrap_or_default()
    }

    /// Keying material for the application (RFC 8446, section 7.5). Fails before the handshake is
    /// complete.
    pub fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), CryptoError> {
        self.handshake.export_keying_material(out, label, context)
    }

    /// When the last packet was sent or received; the connection's start before the first.
    pub fn last_packet_at(&self) -> Instant {
        self.lifecycle.last_packet_at
    }

    /// True until the TLS handshake is complete.
    pub fn is_handshaking(&self) -> bool {
        !self.handshake.is_complete()
    }

    /// True once the connection is closing, draining or gone.
    pub fn is_closed(&self) -> bool {
        !self.lifecycle.is_open()
    }

    /// True once the connection can be dropped.
    pub fn is_drained(&self) -> bool {
        self.lifecycle.is_drained()
    }

    /// Why the connection closed, if it did.
    pub fn close_reason(&self) -> Option<&ConnectionError> {
        self.lifecycle.reason()
    }

    /// Counters and measurements. Costs one small allocation.
    pub fn stats(&self) -> ConnectionStats {
        let statistics = Statistics {
            monitor: &self.monitor,
            frames_sent: &self.workspace.frames_sent,
            lifecycle: &self.lifecycle,
            handshake: &self.handshake,
            early_data: self.establishment.early_data.outcome(),
            resumed: self.is_resumed(),
            streams: &self.streams,
            datagrams: &self.datagrams,
            paths: &self.paths,
            policies: &self.policies,
            peer_max_ack_delay: self.peer_max_ack_delay(),
            ended_paths: (self.multipath.as_deref()).map_or(&[], |multipath| &multipath.ended),
        };
        statistics.gather()
    }

    /// Bytes of stream data that were sent, and how many of them were sent again: as in
    /// [`Connection::stats`], cheap enough for each request.
    pub fn stream_bytes_sent(&self) -> (ByteCount, ByteCount) {
        let streams = self.streams.stats();
        (
            streams.sent_bytes.into(),
            streams.retransmitted_bytes.into(),
        )
    }

    /// Packets of the peer that should have come, and those that have not: the sum over all paths, of those that are over
    /// the last 16. Cheap enough for each request.
    pub fn arrivals(&self) -> Arrivals {
        let mut sum = Arrivals::default();
        for path in self.paths.iter() {
            sum += path.space.received.arrivals();
        }
        for path in self.multipath.iter().flat_map(|it| &it.ended) {
            sum += path.arrivals;
        }
        sum
    }

    /// State and totals of one path, `None` if there is no such path. Cheap enough to be sampled
    /// every round trip or more often: it costs what [`Controller::snapshot`] does, one small
    /// allocation.
    ///
    /// [`Controller::snapshot`]: swiftwater_congestion::Controller::snapshot
    pub fn path_stats(&self, path: PathId) -> Option<PathStats> {
        self.paths.get(path).map(path_stats)
    }

    /// `smoothed_rtt` of a path, `None` before its first sample. Cheaper than
    /// [`Connection::path_stats`].
    pub fn smoothed_rtt(&self, path: PathId) -> Option<Duration> {
        let rtt = self.paths.get(path)?.recovery.rtt();
        rtt.has_sample.then_some(rtt.smoothed)
    }

    /// What the congestion controller of `path` shows of itself: window, threshold, state and named
    /// values; `None` if there is no such path.
    pub fn controller(&self, path: PathId) -> Option<Snapshot> {
        let path = self.paths.get(path)?;
        Some(path.recovery.controller().snapshot())
    }
}
