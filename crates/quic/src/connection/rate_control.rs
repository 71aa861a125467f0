//! What applications see of a path's rate, and what they say about it: views of rate and queue,
//! parameters of the running congestion controllers, rates that were measured elsewhere.

use swiftwater_congestion::{ExternalRate, ParameterError};
use swiftwater_units::{Instant, PathId};

use crate::policy::RateView;

use super::Connection;

impl Connection {
    /// Rate, queue and round-trip time of a path; `None` if there is no such path. Allocates nothing,
    /// so that it can be read for every video frame.
    pub fn path_rate(&self, now: Instant, path: PathId) -> Option<RateView> {
        Some(RateView::new(&self.paths.get(path)?.view(now)))
    }

    /// Changes parameters of the running congestion controllers of all paths, as
    /// `name=value,name=value`; on an error nothing changes.
    pub fn configure_controller(
        &mut self,
        now: Instant,
        settings: &str,
    ) -> Result<(), ParameterError> {
        // All paths have the same algorithm: what the first one refuses, each would.
        for path in self.paths.iter_mut() {
            path.recovery.configure_controller(now, settings)?;
        }
        Ok(())
    }

    /// Gives the congestion controller of `path` a rate that was measured elsewhere; most algorithms
    /// ignore it. False if there is no such path.
    pub fn on_external_rate(
        &mut self,
        now: Instant,
        path: PathId,
        external: &ExternalRate,
    ) -> bool {
        let rng = &mut self.identity.random.generator;
        let Some(path) = self.paths.get_mut(path) else {
            return false;
        };
        path.recovery.on_external_rate(now, external, rng);
        true
    }
}
