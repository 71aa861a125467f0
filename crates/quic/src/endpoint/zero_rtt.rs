//! 0-RTT packets that arrive before the Initial that starts their connection (RFC 9000, section 5.2.2).
//!
//! Before that Initial comes they can't be authenticated, so few are kept, and briefly.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use swiftwater_units::Instant;
use swiftwater_wire::ConnectionId;

use crate::transmit::DatagramMeta;

/// Datagrams kept at once, the oldest give way; 96 KB at most.
const MAX_KEPT: usize = 64;

/// Of these, for one client: an initial window of RFC 9002 is 10.
const MAX_PER_CLIENT: usize = 10;

/// Longest datagram kept, bytes.
const MAX_SIZE: usize = 1500;

/// How long they are kept: reordering doesn't take longer, a repeated Initial does.
const LIFETIME: Duration = Duration::from_millis(500);

#[derive(Debug)]
struct BufferedDatagram {
    arrived: Instant,
    first_dst: ConnectionId,
    meta: DatagramMeta,
    datagram: Vec<u8>,
}

/// 0-RTT datagrams without a connection.
#[derive(Debug, Default)]
pub(super) struct ZeroRttPackets {
    kept: VecDeque<BufferedDatagram>,
}

impl ZeroRttPackets {
    /// Keeps a copy of `datagram`; false if its sender has used up its share.
    pub(super) fn keep(
        &mut self,
        now: Instant,
        meta: &DatagramMeta,
        first_dst: &ConnectionId,
        datagram: &[u8],
    ) -> bool {
        self.expire(now);
        let of_client = |kept: &&BufferedDatagram| kept.meta.remote == meta.remote;
        let share = self.kept.iter().filter(of_client).count();
        if share >= MAX_PER_CLIENT || datagram.len() > MAX_SIZE {
            return false;
        }
        if self.kept.len() >= MAX_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(BufferedDatagram {
            arrived: now,
            first_dst: *first_dst,
            meta: *meta,
            datagram: datagram.to_vec(),
        });
        true
    }

    /// What came from `remote` for the connection that an Initial to `first_dst` starts.
    pub(super) fn take(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        first_dst: &ConnectionId,
    ) -> Vec<(DatagramMeta, Vec<u8>)> {
        self.expire(now);
        let mut taken = Vec::new();
        self.kept.retain_mut(|kept| {
            let wanted = kept.meta.remote == remote && kept.first_dst == *first_dst;
            if wanted {
                taken.push((kept.meta, std::mem::take(&mut kept.datagram)));
            }
            !wanted
        });
        taken
    }

    fn expire(&mut self, now: Instant) {
        while let Some(front) = self.kept.front()
            && front.arrived + LIFETIME <= now
        {
            self.kept.pop_front();
        }
    }
}
