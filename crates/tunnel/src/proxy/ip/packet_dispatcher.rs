//! Packets of the device to tunnels, by their destination.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinHandle;

use super::address_pool::AddressPool;
use crate::device::PacketDevice;
use crate::ip::{IpHeader, MAX_PACKET};
use crate::proxy::stats::{Counters, Dropped};

/// Packets that wait for a tunnel.
const WAITING: usize = 256;

/// The device, and which tunnel has which address.
pub(in crate::proxy) struct PacketDispatcher {
    device: Arc<dyn PacketDevice>,
    own: Vec<IpAddr>,
    assignments: Arc<Mutex<Assignments>>,
    /// Reads the device, from the first tunnel on.
    reading: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Assignments {
    pools: Vec<AddressPool>,
    queues: HashMap<IpAddr, TunnelQueue>,
    has_device_failed: bool,
}

/// Where the packets for an address go.
#[derive(Clone, Debug)]
struct TunnelQueue {
    packets: Sender<Bytes>,
    counters: Arc<Counters>,
}

/// The addresses of one tunnel, free again when it is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    addresses: Vec<IpAddr>,
    assignments: Arc<Mutex<Assignments>>,
}

/// A tunnel that is registered: its addresses and the packets for them.
#[derive(Debug)]
pub(super) struct Registration {
    pub(super) lease: Lease,
    /// Packets for its addresses; `None` when the device failed.
    pub(super) packets: Receiver<Bytes>,
}

impl PacketDispatcher {
    pub(super) fn new(device: Arc<dyn PacketDevice>, pools: Vec<AddressPool>) -> Self {
        let own = pools.iter().map(AddressPool::own).collect();
        let assignments = Assignments {
            pools,
            queues: HashMap::new(),
            has_device_failed: false,
        };
        Self {
            device,
            own,
            assignments: Arc::new(Mutex::new(assignments)),
            reading: Mutex::default(),
        }
    }

    /// An address of each version that is wanted and left; `None` if there is none at all. What is dropped for want of
    /// room is counted in `counters`. Fails if the device has failed.
    pub(super) fn register(
        &self,
        ipv4: bool,
        ipv6: bool,
        counters: &Arc<Counters>,
    ) -> io::Result<Option<Registration>> {
        self.read_device();
        let mut assignments = lock(&self.assignments);
        if assignments.has_device_failed {
            return Err(io::Error::other("the device for packets failed"));
        }
        let wanted = assignments.pools.iter_mut();
        let wanted = wanted.filter(|pool| if pool.is_ipv4() { ipv4 } else { ipv6 });
        let addresses: Vec<IpAddr> = wanted.filter_map(AddressPool::take).collect();
        if addresses.is_empty() {
            return Ok(None);
        }
        let (sender, packets) = mpsc::channel(WAITING);
        for &address in &addresses {
            let queue = TunnelQueue {
                packets: sender.clone(),
                counters: Arc::clone(counters),
            };
            assignments.queues.insert(address, queue);
        }
        drop(assignments);
        let lease = Lease {
            addresses,
            assignments: Arc::clone(&self.assignments),
        };
        Ok(Some(Registration { lease, packets }))
    }

    /// Whether the network has one of the versions that are wanted.
    pub(super) fn has_version(&self, ipv4: bool, ipv6: bool) -> bool {
        let mut own = self.own.iter();
        own.any(|address| if address.is_ipv4() { ipv4 } else { ipv6 })
    }

    /// Sends a packet of a tunnel.
    pub(super) fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.device.send(packet)
    }

    /// The proxy's own addresses.
    pub(super) fn own_addresses(&self) -> &[IpAddr] {
        &self.own
    }

    /// The proxy's own address of the version of `other`.
    pub(super) fn own_address(&self, other: IpAddr) -> Option<IpAddr> {
        let mut own = self.own.iter().copied();
        own.find(|address| address.is_ipv4() == other.is_ipv4())
    }

    fn read_device(&self) {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        reading.get_or_insert_with(|| {
            let device = Arc::clone(&self.device);
            let assignments = Arc::clone(&self.assignments);
            tokio::spawn(async move {
                let error = read(&*device, &assignments).await;
                tracing::error!(%error, "the device for packets of tunnels failed");
                let mut assignments = lock(&assignments);
                assignments.has_device_failed = true;
                assignments.queues.clear();
            })
        });
    }
}

/// Hands packets to tunnels until the device fails.
async fn read(device: &dyn PacketDevice, assignments: &Mutex<Assignments>) -> io::Error {
    let mut buffer = vec![0; MAX_PACKET];
    loop {
        let received = poll_fn(|cx| device.poll_receive(cx, &mut buffer)).await;
        let packet = match received {
            Ok(len) => &buffer[..len.min(MAX_PACKET)],
            Err(error) => return error,
        };
        let Ok(header) = IpHeader::parse(packet) else {
            continue;
        };
        let queue = lock(assignments).queues.get(&header.destination).cloned();
        let Some(queue) = queue else {
            // For an address of no tunnel.
            continue;
        };
        if queue
            .packets
            .try_send(Bytes::copy_from_slice(packet))
            .is_err()
        {
            queue.counters.on_drop(Dropped::Full, 1);
        }
    }
}

impl Lease {
    pub(super) fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut assignments = lock(&self.assignments);
        for &address in &self.addresses {
            assignments.queues.remove(&address);
            let mut pools = assignments.pools.iter_mut();
            if let Some(pool) = pools.find(|pool| pool.is_ipv4() == address.is_ipv4()) {
                pool.give_back(address);
            }
        }
    }
}

impl Drop for PacketDispatcher {
    fn drop(&mut self) {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = reading.take() {
            task.abort();
        }
    }
}

fn lock(assignments: &Mutex<Assignments>) -> MutexGuard<'_, Assignments> {
    assignments.lock().unwrap_or_else(PoisonError::into_inner)
}
