//! The last migration that the application asked for (RFC 9000, section 9).

use swiftwater_quic::{MigrateError, PathAddress, SocketId};

/// A request to migrate, and its outcome.
#[derive(Default)]
pub(crate) struct MigrationRequest {
    /// Requests so far.
    pub(crate) asked: u64,
    /// The socket to migrate to, while that is not decided.
    pub(crate) to: Option<SocketId>,
    /// The outcome.
    pub(crate) outcome: Option<Result<PathAddress, MigrateError>>,
}

impl MigrationRequest {
    /// A new request replaces the last one; returns its number.
    pub(crate) fn begin(&mut self, socket: Option<SocketId>) -> u64 {
        self.asked += 1;
        self.to = socket;
        self.outcome = None;
        self.asked
    }

    /// A migration to `socket` was decided; true if it is the one that was asked for.
    pub(crate) fn decide(
        &mut self,
        socket: SocketId,
        outcome: Result<PathAddress, MigrateError>,
    ) -> bool {
        let is_asked_for = self.to == Some(socket);
        if is_asked_for {
            self.to = None;
            self.outcome = Some(outcome);
        }
        is_asked_for
    }
}
