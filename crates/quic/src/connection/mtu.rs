//! Datagram sizes: probes out, and the consequences of a new size (RFC 9000, section 14).
//!
//! Which sizes to try and what their fates mean is in `path::mtu`.

use swiftwater_units::{Instant, PacketNumber, PathId};

use crate::observe::{LossTrigger, Observation};
use crate::path::MtuState;
use crate::space::SpaceId;

use super::Connection;
use crate::events::Event;

impl Connection {
    /// The socket refused a datagram of `size` bytes, sent on `path` of this connection
    /// ([`Transmit::path`](crate::Transmit::path)), because it is larger than what the interface takes
    /// (`EMSGSIZE`). Larger ones than the refused are not sent again on the path; what was in the datagram
    /// is declared lost later.
    ///
    /// Only for what the own system says of its own: an ICMP message may come from anywhere.
    pub fn on_datagram_too_large(&mut self, now: Instant, path: PathId, size: usize) {
        if !self.lifecycle.is_open() {
            return;
        }
        let size = u16::try_from(size).unwrap_or(u16::MAX);
        let Some(path) = self.paths.get_mut(path) else {
            return;
        };
        let (id, refused) = (path.id, path.network.mtu.on_refused(now, size));
        if let Some(number) = refused {
            self.abandon_mtu_probe(now, id, number);
        }
        self.sync_mtu(now, id);
    }

    /// An MTU probe counts as lost.
    pub(super) fn abandon_mtu_probe(&mut self, now: Instant, id: PathId, number: PacketNumber) {
        let rng = &mut self.identity.random.generator;
        let path = self.paths.get_mut(id);
        if let Some(record) = path.and_then(|path| path.abandon_mtu_probe(now, number, rng)) {
            let (mut fates, _) = self.fates(now);
            fates.observe_loss(SpaceId::Data(id), &record, LossTrigger::MtuProbe);
        }
    }

    /// Puts the datagram size of a path to use if it has changed.
    pub(super) fn sync_mtu(&mut self, now: Instant, id: PathId) {
        let rng = &mut self.identity.random.generator;
        let path = self.paths.get_mut(id);
        let Some(change) = path.and_then(|path| path.sync_mtu(rng)) else {
            return;
        };
        if change.size < change.before {
            let room = self.paths.data_room(&self.handshake);
            let count = self.datagrams.drop_too_large(room);
            if count > 0 {
                let max = self.max_datagram_size().unwrap_or(0);
                self.outbox.event(Event::DatagramsTooLarge { count, max });
            }
        }
        let observation = Observation::MtuUpdated {
            path: id,
            before: change.before,
            size: change.size,
            done: change.state != MtuState::Searching,
            black_hole: change.state == MtuState::BlackHole,
        };
        self.monitor.observe(now, &observation);
    }
}
