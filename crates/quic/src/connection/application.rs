//! The connection's interface for applications: events, streams, datagrams, statistics.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use swiftwater_congestion::Snapshot;
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, PacketCount, PathId, Side, StreamId};

use crate::crypto::CryptoError;
use crate::datagrams::{DatagramOptions, ReceivedDatagram};
use crate::error::{ConnectionError, ReadError, SendDatagramError, WriteError};
use crate::lifecycle::Termination;
use crate::path::PathState;
use crate::policy::{ConfigureError, Hints, Occasion, PathPreference};
use crate::streams::{Expiry, Priority, RangeHints, ReadChunk, ReadOutcome, Streams};
use crate::transmit::PathAddress;

use super::Connection;
use crate::events::{CidCollision, EndpointEvent, Event};
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
        SendStream {
            id,
            streams: &mut self.streams,
            closed: self.lifecycle.reason(),
        }
    }

    /// The receiving part of stream `id`.
    pub fn recv_stream(&mut self, id: StreamId) -> RecvStream<'_> {
        RecvStream {
            id,
            streams: &mut self.streams,
            closed: self.lifecycle.reason(),
        }
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
        if let Some(reason) = self.lifecycle.reason() {
            return Err(reason.clone().into());
        }
        let room = self.paths.primary().data_room(&self.handshake);
        self.datagrams.send(data, options, room)
    }

    /// The oldest unread datagram.
    pub fn recv_datagram(&mut self) -> Option<Bytes> {
        Some(self.recv_datagram_with_packet()?.data)
    }

    /// The oldest unread datagram, with the number of the packet that carried it.
    pub fn recv_datagram_with_packet(&mut self) -> Option<ReceivedDatagram> {
        self.datagrams.recv()
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
        let room = self.paths.primary().data_room(&self.handshake);
        self.datagrams.max_size(room)
    }

    /// Closes with the application's `code` (below 2^62) and `reason`, which is cut to what fits in
    /// a packet.
    pub fn close(&mut self, now: Instant, code: u64, reason: &[u8]) {
        self.terminate(
            now,
            Termination::application(code.min((1 << 62) - 1), reason),
        );
    }

    /// Sets what schedulers see as status and cost of `path`; false if it is not open.
    pub fn set_path_preference(&mut self, path: PathId, preference: PathPreference) -> bool {
        let path = self.paths.get_mut(path);
        path.map(|path| path.preference = preference).is_some()
    }

    /// Gives policies new hints.
    pub fn set_hints(&mut self, now: Instant, hints: Hints) {
        *self.policies.hints.need() = hints;
        if let Some(feedback) = &mut self.policies.feedback {
            feedback.on_hints();
        }
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
        self.paths
            .primary_mut()
            .recovery
            .set_timer_granularity(now, granularity);
    }

    /// Updates the 1-RTT keys as soon as RFC 9001, section 6.1 permits.
    pub fn update_keys(&mut self) {
        self.handshake.keys_mut().request_update();
    }

    /// Asks the peer to use fresh connection IDs, and uses a fresh one of the peer's.
    pub fn rotate_connection_ids(&mut self) {
        if !self.handshake.is_complete() || !self.lifecycle.is_open() {
            return;
        }
        let path = self.paths.primary().id;
        self.connection_ids().rotate(path);
    }

    /// Handles what [`Endpoint::handle_event`](crate::Endpoint::handle_event) returned: issues another ID in
    /// the place of one that a different connection has. An ID that was sent already is retired along with the
    /// others of its path. If hardly any IDs of the length are left, the peer gets fewer.
    ///
    /// Further events for the endpoint may follow.
    pub fn handle_cid_collision(&mut self, collision: &CidCollision) {
        self.connection_ids().on_collision(collision);
    }

    /// Sends a PING.
    pub fn ping(&mut self) {
        self.paths.primary_mut().space.ping = true;
    }

    /// The idle timeout that both ends agreed on, once the handshake is complete; `None` if there is none
    /// (RFC 9000, section 10.1).
    pub fn idle_timeout(&self) -> Option<Duration> {
        self.lifecycle.idle_timeout()
    }

    /// Sends a PING when nothing was sent or received for `interval` (in whole milliseconds), so that the connection outlives its idle
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
        self.paths.primary().link.address.remote
    }

    /// Both ends of the path in use.
    pub fn path_address(&self) -> PathAddress {
        self.paths.primary().link.address
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
        let mut stats = self.monitor.stats.snapshot(self.lifecycle.started_at());
        let streams = self.streams.stats();
        stats.stream_bytes_sent = streams.sent_bytes.into();
        stats.stream_bytes_retransmitted = streams.retransmitted_bytes.into();
        stats.stream_bytes_received = streams.received_bytes.into();
        stats.send_buffered = streams.send_buffered.into();
        stats.receive_buffered = streams.receive_buffered.into();
        stats.streams_reset = streams.resets_sent;
        stats.streams_reset_by_peer = streams.resets_received;
        stats.streams_expired = streams.expired_streams;
        stats.expired_bytes = streams.expired_bytes.into();
        stats.streams_open = streams.open;
        stats.streams_opened = streams.opened;
        stats.streams_opened_by_peer = streams.opened_by_peer;
        stats.flow_blocked = self.monitor.flow_blocked(self.lifecycle.last_packet_at);
        stats.frames_sent = self.workspace.frames_sent.totals();
        let spaces = self.paths.spaces();
        let awaiting = spaces
            .map(|(_, space)| space.ledger.eliciting_in_flight())
            .sum();
        stats.packets_awaiting_acks = PacketCount::new(awaiting);
        let datagrams = self.datagrams.totals();
        stats.datagrams_dropped = datagrams.dropped_unread;
        stats.datagrams_too_large = datagrams.too_large;
        stats.datagrams_expired = datagrams.expired;
        stats.datagrams_unsent = self.datagrams.unsent();
        stats.datagram_bytes_unsent = self.datagrams.unsent_bytes().into();
        stats.repair = self.streams.repair_stats();
        stats.reinjector = self.policies.reinjector.report();
        stats.version = self.handshake.version();
        stats.peer_max_ack_delay = self.peer_max_ack_delay();
        stats.key_updates = self.handshake.keys().generation();
        stats.resumed = self.is_resumed();
        stats.early_data = self.establishment.early_data.outcome();
        stats.paths = self.paths.iter().map(path_stats).collect();
        stats
    }

    /// State and totals of one path, `None` if there is no such path. Cheap enough to be sampled
    /// every round trip or more often: it costs what [`Controller::snapshot`] does, one small
    /// allocation.
    ///
    /// [`Controller::snapshot`]: swiftwater_congestion::Controller::snapshot
    pub fn path_stats(&self, path: PathId) -> Option<PathStats> {
        self.path_entry(path).map(path_stats)
    }

    /// `smoothed_rtt` of a path, `None` before its first sample. Cheaper than
    /// [`Connection::path_stats`].
    pub fn smoothed_rtt(&self, path: PathId) -> Option<Duration> {
        let rtt = self.path_entry(path)?.recovery.rtt();
        rtt.has_sample.then_some(rtt.smoothed)
    }

    /// What the congestion controller of `path` shows of itself: window, threshold, state and named
    /// values; `None` if there is no such path.
    pub fn controller(&self, path: PathId) -> Option<Snapshot> {
        self.path_entry(path)
            .map(|entry| entry.recovery.controller().snapshot())
    }

    fn path_entry(&self, path: PathId) -> Option<&PathState> {
        self.paths.get(path)
    }
}

fn path_stats(path: &PathState) -> PathStats {
    let recovery = &path.recovery;
    let (rtt, totals) = (recovery.rtt(), recovery.stats());
    let snapshot = recovery.controller().snapshot();
    PathStats {
        id: path.id,
        remote: path.link.address.remote,
        local: path.link.address.local,
        validated: path.link.amplification.is_validated(),
        controller: recovery.controller().name(),
        congestion_state: snapshot.state,
        smoothed_rtt: rtt.smoothed,
        rtt_var: rtt.var,
        latest_rtt: rtt.latest,
        min_rtt: if rtt.has_sample {
            rtt.min
        } else {
            std::time::Duration::ZERO
        },
        mean_rtt: recovery.mean_rtt(),
        cwnd: snapshot.cwnd,
        ssthresh: snapshot.ssthresh,
        bytes_in_flight: recovery.bytes_in_flight(),
        pacing_rate: recovery.pacing_rate(),
        delivery_rate: recovery.delivery_rate(),
        app_limited: recovery.is_app_limited(),
        sent_bytes: totals.sent,
        sent_packets: totals.sent_packets,
        retransmitted: totals.retransmitted,
        delivered: totals.delivered,
        lost_packets: totals.lost_packets,
        lost_bytes: totals.lost_bytes,
        spurious_losses: totals.spurious_packets,
        congestion_events: totals.congestion_events,
        spurious_events: totals.spurious_events,
        pto_count: totals.pto_count,
        ecn: path.link.ecn.is_usable(),
        ecn_state: path.link.ecn.state(),
        ecn_ce: path.link.ecn.ce_total().into(),
        max_datagram_size: path.link.mtu.current(),
        mtu_state: path.link.mtu.state(),
        mtu_probes_sent: path.link.mtu.totals().probes_sent,
        mtu_probes_lost: path.link.mtu.totals().probes_lost,
        mtu_black_holes: path.link.mtu.totals().black_holes,
    }
}

/// The sending part of a stream, borrowed from its connection.
#[derive(Debug)]
pub struct SendStream<'a> {
    id: StreamId,
    streams: &'a mut Streams,
    closed: Option<&'a ConnectionError>,
}

impl SendStream<'_> {
    /// The stream.
    pub fn id(&self) -> StreamId {
        self.id
    }

    fn check(&self) -> Result<(), WriteError> {
        self.closed
            .map_or(Ok(()), |reason| Err(reason.clone().into()))
    }

    /// Copies from `data` into the stream and returns how many bytes were taken; zero means blocked,
    /// and [`StreamEvent::Writable`](crate::StreamEvent::Writable) follows.
    pub fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        self.check()?;
        self.streams.write(self.id, data)
    }

    /// Like [`SendStream::write`] without a copy: takes bytes off the front of `data`.
    pub fn write_chunk(&mut self, data: &mut Bytes) -> Result<usize, WriteError> {
        self.check()?;
        self.streams.write_chunk(self.id, data)
    }

    /// How many bytes the peer's limit on this stream (`MAX_STREAM_DATA`) lets be written; zero while it is
    /// the peer that holds this very stream back.
    pub fn credit(&self) -> Result<u64, WriteError> {
        self.check()?;
        self.streams.stream_credit(self.id)
    }

    /// How many bytes [`SendStream::write`] would take now: what flow control and the send window leave.
    pub fn room(&self) -> Result<usize, WriteError> {
        self.check()?;
        self.streams.room(self.id)
    }

    /// Ends the stream after what was written.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        self.check()?;
        self.streams.finish(self.id)
    }

    /// Abandons the stream with the application's `code`.
    pub fn reset(&mut self, code: u64) -> Result<(), WriteError> {
        self.check()?;
        self.streams.reset(self.id, code)
    }

    /// Abandons the stream with the application's `code`, but for its first `reliable_size` bytes,
    /// which are still delivered before the peer's reader learns of the reset. More than was written
    /// counts as all that was written. Can be called again to lower that number, also to nothing with
    /// [`SendStream::reset`]; a larger one changes nothing, and the first code stays.
    ///
    /// Fails with [`WriteError::ResetAtUnsupported`] if the peer does not support
    /// draft-ietf-quic-reliable-stream-reset; then only [`SendStream::reset`] is possible.
    pub fn reset_at(&mut self, code: u64, reliable_size: u64) -> Result<(), WriteError> {
        self.check()?;
        self.streams.reset_at(self.id, code, reliable_size)
    }

    /// Sets when the data of the stream is given up if the peer has not acknowledged all of it, the
    /// end included; `None` (the default) never.
    /// [`StreamEvent::Expired`](crate::StreamEvent::Expired) reports it.
    pub fn set_expiry(&mut self, expiry: Option<Expiry>) -> Result<(), WriteError> {
        self.check()?;
        self.streams.set_expiry(self.id, expiry)
    }

    /// Bytes written to the stream that were not sent yet, not even once.
    pub fn unsent_bytes(&self) -> Result<ByteCount, WriteError> {
        self.check()?;
        Ok(self.streams.unsent_bytes(self.id)?.into())
    }

    /// As [`SendStream::write`], with hints about the bytes that are taken.
    pub fn write_with(&mut self, data: &[u8], hints: RangeHints) -> Result<usize, WriteError> {
        self.check()?;
        self.streams.write_with(self.id, data, hints)
    }

    /// Sets hints about a range of the stream, in bytes from its start, written or to be written;
    /// default hints remove earlier ones. They are kept until the range is acknowledged, and shown to
    /// schedulers and re-injectors together with the range; nothing is dropped or sent earlier for them.
    pub fn set_range_hints(
        &mut self,
        range: Range<u64>,
        hints: RangeHints,
    ) -> Result<(), WriteError> {
        self.check()?;
        self.streams.set_range_hints(self.id, range, hints)
    }

    /// The priority of the stream's data.
    pub fn priority(&self) -> Result<Priority, WriteError> {
        self.check()?;
        self.streams.priority(self.id)
    }

    /// Sets how urgent the stream's data is among that of other streams.
    pub fn set_priority(&mut self, priority: Priority) -> Result<(), WriteError> {
        self.check()?;
        self.streams.set_priority(self.id, priority)
    }

    /// Sets when the receiver has no use for the stream's data any more, for re-injectors; by default
    /// never. Nothing is dropped or sent earlier for it; see [`SendStream::set_expiry`].
    pub fn set_deadline(&mut self, deadline: Option<Instant>) -> Result<(), WriteError> {
        self.check()?;
        self.streams.set_deadline(self.id, deadline)
    }
}

/// The receiving part of a stream, borrowed from its connection.
#[derive(Debug)]
pub struct RecvStream<'a> {
    id: StreamId,
    streams: &'a mut Streams,
    closed: Option<&'a ConnectionError>,
}

impl RecvStream<'_> {
    /// The stream.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// True if some of what arrived on the stream were early data, which an attacker may have recorded
    /// and sent again (RFC 9001, section 9.2). Once the handshake is complete
    /// ([`Connection::is_handshaking`]), they are known to be the client's own. To be asked before the
    /// end was read.
    pub fn is_early_data(&self) -> bool {
        self.streams.is_early_data(self.id)
    }

    /// Reads in order into `buf`. What arrived before the connection closed can still be read.
    pub fn read(&mut self, buf: &mut [u8]) -> Result<ReadOutcome, ReadError> {
        match (self.streams.read(self.id, buf), self.closed) {
            (Ok(ReadOutcome::Blocked), Some(reason)) => Err(reason.clone().into()),
            (outcome, _) => outcome,
        }
    }

    /// Like [`RecvStream::read`] without a copy: lends the next bytes in place.
    pub fn read_chunk(&mut self) -> Result<ReadChunk<'_>, ReadError> {
        match (self.streams.read_chunk(self.id)?, self.closed) {
            (ReadChunk::Blocked, Some(reason)) => Err(reason.clone().into()),
            (chunk, _) => Ok(chunk),
        }
    }

    /// Stops reading: asks the peer with the application's `code` to stop sending.
    pub fn stop(&mut self, code: u64) -> Result<(), ReadError> {
        if let Some(reason) = self.closed {
            return Err(reason.clone().into());
        }
        self.streams.stop(self.id, code)
    }
}
