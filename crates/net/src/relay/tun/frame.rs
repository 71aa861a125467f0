//! An IP packet on a link.

use std::sync::Arc;

use swiftwater_link::{Ecn, Payload};

use super::device::Ends;
use super::packet;
use crate::relay::shaper::{Carried, Direction};

pub(super) struct IpFrame {
    ends: Arc<Ends>,
    direction: Direction,
    data: Vec<u8>,
    /// As it was sent.
    ecn: Option<Ecn>,
    flow: u64,
}

impl Payload for IpFrame {
    fn len(&self) -> usize {
        self.data.len()
    }

    fn corrupt(&mut self, at: usize, mask: u8) {
        self.data.corrupt(at, mask);
    }

    fn flow(&self) -> u64 {
        self.flow
    }

    fn duplicate(&self) -> Self {
        Self {
            ends: Arc::clone(&self.ends),
            data: self.data.clone(),
            ..*self
        }
    }
}

impl Carried for IpFrame {
    type Owner = Arc<Ends>;

    fn new(ends: Arc<Ends>, direction: Direction, data: Vec<u8>) -> Self {
        Self {
            ends,
            direction,
            ecn: packet::ecn(&data),
            flow: packet::flow(&data),
            data,
        }
    }

    fn deliver(&mut self, ecn: Ecn) -> bool {
        // Not compared with the packet itself, which may be corrupted by now.
        if self.ecn.is_some_and(|sent| sent != ecn) {
            packet::set_ecn(&mut self.data, ecn);
        }
        let sent = self.ends.send(self.direction, &self.data);
        if let Err(error) = &sent {
            tracing::debug!(%error, "relayed packet refused");
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
