//! A client of the UDP relay, and its datagrams on the links.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use swiftwater_link::{Ecn, Payload, flow_key};
use swiftwater_quic::EcnCodepoint;
use swiftwater_units::Instant;

use super::shaper::{Carried, Direction};
use crate::socket::{Parcel, Socket};

/// A client, and how to reach it and the server on its behalf.
pub(super) struct Flow {
    client: SocketAddr,
    /// The address that the client sends to.
    local_ip: Option<IpAddr>,
    listener: Arc<Socket>,
    upstream: Mutex<Arc<Socket>>,
    server: SocketAddr,
    /// Stands for the flow where queues separate flows.
    key: u64,
    /// When something last passed, in nanoseconds of the relay's clock.
    active: AtomicU64,
}

impl Flow {
    pub(super) fn new(
        client: SocketAddr,
        local_ip: Option<IpAddr>,
        listener: Arc<Socket>,
        upstream: Arc<Socket>,
        server: SocketAddr,
    ) -> Self {
        Self {
            client,
            local_ip,
            listener,
            upstream: Mutex::new(upstream),
            server,
            key: flow_key(client, server),
            active: AtomicU64::new(0),
        }
    }

    /// From now on the server sees the client at this socket.
    pub(super) fn set_upstream(&self, socket: Arc<Socket>) {
        *self.upstream() = socket;
    }

    fn upstream(&self) -> MutexGuard<'_, Arc<Socket>> {
        self.upstream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something passes now.
    pub(super) fn touch(&self, now: Instant) {
        self.active.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// When something last passed.
    pub(super) fn active(&self) -> Instant {
        Instant::from_nanos(self.active.load(Ordering::Relaxed))
    }
}

/// A datagram on a link.
pub(super) struct Frame {
    flow: Arc<Flow>,
    direction: Direction,
    data: Vec<u8>,
}

impl Payload for Frame {
    fn len(&self) -> usize {
        self.data.len()
    }

    fn corrupt(&mut self, at: usize, mask: u8) {
        self.data.corrupt(at, mask);
    }

    fn flow(&self) -> u64 {
        self.flow.key
    }

    fn duplicate(&self) -> Self {
        Self {
            flow: Arc::clone(&self.flow),
            direction: self.direction,
            data: self.data.clone(),
        }
    }
}

impl Carried for Frame {
    type Owner = Arc<Flow>;

    fn new(flow: Arc<Flow>, direction: Direction, data: Vec<u8>) -> Self {
        Self {
            flow,
            direction,
            data,
        }
    }

    fn deliver(&mut self, ecn: Ecn) -> bool {
        let ecn = match ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(EcnCodepoint::Ect0),
            Ecn::Ect1 => Some(EcnCodepoint::Ect1),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        };
        let (destination, source_ip) = match self.direction {
            Direction::Up => (self.flow.server, None),
            Direction::Down => (self.flow.client, self.flow.local_ip),
        };
        let parcel = Parcel {
            destination,
            source_ip,
            ecn,
            contents: &self.data,
            segment_size: None,
        };
        let sent = match self.direction {
            Direction::Up => self.flow.upstream().try_send(&parcel),
            Direction::Down => self.flow.listener.try_send(&parcel),
        };
        if let Err(error) = &sent {
            tracing::debug!(%error, to = %destination, "relayed datagram refused");
        }
        sent.is_ok()
    }

    fn direction(&self) -> Direction {
        self.direction
    }

    fn into_data(self) -> Vec<u8> {
        self.data
    }
}

/// As links number it.
pub(super) fn link_ecn(ecn: Option<EcnCodepoint>) -> Ecn {
    match ecn {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}
