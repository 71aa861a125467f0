//! Migration of a viewer's connection away from a path that is silent.

use swiftwater_policies::tolerated_silence;
use swiftwater_quic::{Connection, LocalAddress};
use swiftwater_units::Instant;

/// The local addresses of a viewer with one path at a time, which are taken in turn.
#[derive(Debug)]
pub(super) struct Migration {
    addresses: Vec<LocalAddress>,
    /// The one in use, or being validated.
    present: usize,
    /// When data arrived last, or the connection migrated, or data were last asked for.
    since: Instant,
}

impl Migration {
    /// `None` without a second address.
    pub(super) fn new(addresses: Vec<LocalAddress>) -> Option<Self> {
        (addresses.len() > 1).then_some(Self {
            addresses,
            present: 0,
            since: Instant::ZERO,
        })
    }

    /// Data arrived, or the first of them are awaited from now on.
    pub(super) fn restart(&mut self, now: Instant) {
        self.since = now;
    }

    /// Migrates to the next address if awaited data have been missing for longer than is tolerated.
    pub(super) fn check(&mut self, now: Instant, connection: &mut Connection) {
        let path = connection.open_paths().next();
        let Some(stats) = path.and_then(|path| connection.path_stats(path)) else {
            return;
        };
        if now.saturating_since(self.since) < tolerated_silence(&stats) {
            return;
        }
        let next = (self.present + 1) % self.addresses.len();
        // Without a connection ID it is tried again at the next check.
        if connection.migrate(now, self.addresses[next]).is_ok() {
            self.present = next;
            self.since = now;
        }
    }
}
