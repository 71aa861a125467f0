//! Transfers of given sizes at given times, each on a separate connection.
//!
//! A transfer is one stream. It starts with the transfer's number, 8 bytes in network order; the
//! rest is the pattern of that number, so that the receiver can check it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use swiftwater_quic::{ClientConfig, ConnectionHandle, Event, ReadOutcome, StreamEvent};
use swiftwater_units::{Dir, Instant, StreamId};

use super::stream::{Sink, Source};
use crate::application::{Application, HostContext};
use crate::pattern::Pattern;

/// Length of the number.
const HEAD_LEN: usize = 8;

/// A planned transfer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Transfer {
    /// Its number, which identifies it to the receiver.
    pub number: u64,
    /// When the handshake starts.
    pub start: Instant,
    /// Destination.
    pub remote: SocketAddr,
    /// Size; those below 8 bytes are sent with 8.
    pub bytes: u64,
}

/// A transfer in progress.
#[derive(Debug)]
struct Sending {
    transfer: Transfer,
    source: Source,
}

/// Makes transfers as planned. Each connection is closed once all its data are acknowledged.
#[derive(Debug)]
pub struct TransferSender {
    config: ClientConfig,
    plan: Vec<Transfer>,
    /// Started transfers of the plan.
    begun: usize,
    sending: BTreeMap<ConnectionHandle, Sending>,
    acknowledged: u64,
    failed: Vec<u64>,
}

impl TransferSender {
    /// Makes the transfers of `plan`, which is in the order of their start.
    pub fn new(config: ClientConfig, plan: Vec<Transfer>) -> Self {
        Self {
            config,
            plan,
            begun: 0,
            sending: BTreeMap::new(),
            acknowledged: 0,
            failed: Vec::new(),
        }
    }

    /// Started transfers.
    pub fn begun(&self) -> usize {
        self.begun
    }

    /// Transfers whose data are all acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Numbers of the transfers whose connection was lost.
    pub fn failed(&self) -> &[u64] {
        &self.failed
    }

    fn await_next(&self, host: &mut HostContext<'_>) {
        if let Some(next) = self.plan.get(self.begun) {
            host.set_timer(next.start, 0);
        }
    }

    fn begin(&mut self, host: &mut HostContext<'_>, transfer: Transfer) {
        let total = transfer.bytes.max(HEAD_LEN as u64);
        let pattern = Pattern::new(transfer.number);
        let source = Source::new(pattern, Some(total)).skip(HEAD_LEN as u64);
        match host.connect_to_server(&self.config, transfer.remote) {
            Some(handle) => {
                self.sending.insert(handle, Sending { transfer, source });
            }
            None => self.failed.push(transfer.number),
        }
    }
}

impl Application for TransferSender {
    fn on_start(&mut self, host: &mut HostContext<'_>) {
        self.await_next(host);
    }

    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        let now = host.now();
        let (Some(sending), Some(connection)) =
            (self.sending.get_mut(&handle), host.connection(handle))
        else {
            return;
        };
        match event {
            Event::Connected => {
                if let Some(id) = connection.open(Dir::Uni) {
                    let head = sending.transfer.number.to_be_bytes();
                    // The windows of a new stream have room for a header; an error means that the
                    // connection is closed, which is reported by an event.
                    let _ = connection.send_stream(id).write(&head);
                    let _ = sending.source.pump(connection, id);
                }
            }
            Event::Stream(StreamEvent::Writable { id }) => {
                let _ = sending.source.pump(connection, id);
            }
            Event::Stream(StreamEvent::Finished { .. }) => {
                connection.close(now, 0, b"done");
                self.acknowledged += 1;
                self.sending.remove(&handle);
            }
            Event::Closed { .. } => {
                self.failed.push(sending.transfer.number);
                self.sending.remove(&handle);
            }
            _ => {}
        }
    }

    fn on_timer(&mut self, host: &mut HostContext<'_>, _token: u64) {
        while let Some(&transfer) = self.plan.get(self.begun)
            && transfer.start <= host.now()
        {
            self.begun += 1;
            self.begin(host, transfer);
        }
        self.await_next(host);
    }
}

/// A completely received transfer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrival {
    /// Its number.
    pub number: u64,
    /// Bytes.
    pub bytes: u64,
    /// When the end was read.
    pub finish: Instant,
}

/// A transfer that is being received.
#[derive(Debug, Default)]
struct Receiving {
    head: Vec<u8>,
    /// With a complete header.
    body: Option<(u64, Sink)>,
}

impl Receiving {
    fn bytes(&self) -> u64 {
        let head = self.head.len() as u64;
        self.body.as_ref().map_or(head, |(_, sink)| sink.received())
    }

    /// Reads the number; true once it is complete.
    fn read_head(&mut self, connection: &mut swiftwater_quic::Connection, id: StreamId) -> bool {
        while self.body.is_none() {
            let mut rest = [0; HEAD_LEN];
            let missing = HEAD_LEN - self.head.len();
            match connection.recv_stream(id).read(&mut rest[..missing]) {
                Ok(ReadOutcome::Data(len)) => self.head.extend_from_slice(&rest[..len]),
                _ => return false,
            }
            if let Ok(head) = self.head.as_slice().try_into() {
                let number = u64::from_be_bytes(head);
                let sink = Sink::new(Pattern::new(number)).skip(HEAD_LEN as u64);
                self.body = Some((number, sink));
            }
        }
        true
    }
}

/// Receives transfers and checks them.
#[derive(Debug, Default)]
pub struct TransferReceiver {
    receiving: BTreeMap<(ConnectionHandle, StreamId), Receiving>,
    arrivals: Vec<Arrival>,
    bytes: u64,
    damaged: u64,
}

impl TransferReceiver {
    /// A receiver.
    pub fn new() -> Self {
        Self::default()
    }

    /// The completely received transfers, in the order of completion.
    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// Bytes read, in order, of all transfers.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// False if a byte differed from the sent one.
    pub fn is_intact(&self) -> bool {
        self.damaged == 0
    }

    fn read(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, id: StreamId) {
        let now = host.now();
        let Some(connection) = host.connection(handle) else {
            return;
        };
        let receiving = self.receiving.entry((handle, id)).or_default();
        let before = receiving.bytes();
        if receiving.read_head(connection, id)
            && let Some((_, sink)) = &mut receiving.body
        {
            // A reset or a lost connection leaves the transfer incomplete, which is visible in the
            // results.
            let _ = sink.drain(connection, id);
        }
        self.bytes += receiving.bytes() - before;
        if let Some((number, sink)) = receiving
            .body
            .as_ref()
            .filter(|(_, sink)| sink.is_finished())
        {
            self.damaged += u64::from(!sink.is_intact());
            self.arrivals.push(Arrival {
                number: *number,
                bytes: sink.received(),
                finish: now,
            });
            self.receiving.remove(&(handle, id));
        }
    }

    /// The connection no longer exists.
    fn discard(&mut self, handle: ConnectionHandle) {
        let mut damaged = 0;
        self.receiving.retain(|(of, _), receiving| {
            let body = receiving.body.as_ref().filter(|_| *of == handle);
            damaged += u64::from(body.is_some_and(|(_, sink)| !sink.is_intact()));
            *of != handle
        });
        self.damaged += damaged;
    }
}

impl Application for TransferReceiver {
    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        match event {
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = host.accept(handle, dir) {
                    self.read(host, handle, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(host, handle, id),
            Event::Closed { .. } => self.discard(handle),
            _ => {}
        }
    }
}
