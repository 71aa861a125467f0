//! The threads that read the devices.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tun_rs::{InterruptEvent, SyncDevice};

use super::MTU;
use super::device::Ends;
use super::frame::IpFrame;
use super::packet;
use super::policer::Policers;
use crate::relay::shaper::{Direction, Shaper};

/// Packets read before they are put on a link.
const BATCH: usize = 64;

/// Puts what one device sends on its link, until `stop` is triggered.
pub(super) fn run(
    ends: &Arc<Ends>,
    direction: Direction,
    shaper: &Shaper<IpFrame>,
    policers: &Policers,
    refused: &AtomicU64,
    stop: &InterruptEvent,
) -> io::Result<()> {
    let device = ends.source(direction);
    let mut batch = Batch::new();
    while !stop.is_trigger() {
        match device.wait_readable_intr(stop) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        batch.fill(device)?;
        let mut others = 0;
        let now = shaper.clock.now();
        let admitted = |packet: &&mut [u8]| policers.admits(direction, packet, now);
        let packets = batch.packets().filter(admitted).filter_map(|packet| {
            let ecn = packet::ecn(packet);
            others += u64::from(ecn.is_none());
            Some((Arc::clone(ends), ecn?, packet))
        });
        shaper.enqueue(direction, packets);
        refused.fetch_add(others, Ordering::Relaxed);
    }
    Ok(())
}

/// Packets that were read together.
struct Batch {
    buffers: Vec<Vec<u8>>,
    /// Of the first so many packets.
    lengths: Vec<usize>,
}

impl Batch {
    fn new() -> Self {
        Self {
            buffers: vec![vec![0; usize::from(MTU)]; BATCH],
            lengths: Vec::with_capacity(BATCH),
        }
    }

    /// Reads what is there.
    fn fill(&mut self, device: &SyncDevice) -> io::Result<()> {
        self.lengths.clear();
        for buffer in &mut self.buffers {
            match device.recv(buffer) {
                Ok(length) => self.lengths.push(length),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn packets(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let buffers = self.buffers.iter_mut().zip(&self.lengths);
        buffers.map(|(buffer, length)| &mut buffer[..*length])
    }
}
