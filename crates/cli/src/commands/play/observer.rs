//! What watches a session.

use swiftwater::units::Instant;
use swiftwater_media::presentation::Resource;
use swiftwater_media::streaming::ChunkedPlayer;

use crate::exit::Failure;

/// Watches a session: prints or records. An error ends the session.
pub(crate) trait SessionObserver {
    /// The player's time has advanced to `now`; it may have events.
    fn on_time(&mut self, now: Instant, player: &mut ChunkedPlayer) -> Result<(), Failure>;

    /// The request for a segment ended: there may be a further record.
    fn on_segment(&mut self, player: &ChunkedPlayer) -> Result<(), Failure>;

    /// A request failed.
    fn on_failure(&mut self, failure: &Failure) -> Result<(), Failure>;

    /// `resource` is requested.
    fn on_request(&mut self, _resource: &Resource) {}

    /// The next bytes of it arrived.
    fn on_data(&mut self, _data: &[u8]) {}

    /// It is complete.
    fn on_complete(&mut self, _resource: &Resource) {}
}
