//! Logs to sinks supplied by the caller.

use std::fmt;
use std::io::Write;

use swiftwater_quic::observe::{Observer, ObserverFactory};
use swiftwater_units::Side;

use crate::header::TraceInfo;
use crate::log::Limits;
use crate::observer::QlogObserver;

/// Destination of a log.
pub type Sink = Box<dyn Write + Send>;

/// Creates a log for each connection for which a closure returns a sink.
pub struct SinkFactory<F> {
    open: F,
    limits: Limits,
}

impl<F> SinkFactory<F>
where
    F: Fn(Side) -> Option<(TraceInfo, Sink)> + Send + Sync,
{
    /// Calls `open` once for each connection; connections with `None` are not logged.
    pub fn new(open: F) -> Self {
        Self {
            open,
            limits: Limits::default(),
        }
    }

    /// Sets the limits of the logs.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

impl<F> ObserverFactory for SinkFactory<F>
where
    F: Fn(Side) -> Option<(TraceInfo, Sink)> + Send + Sync,
{
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        let (info, sink) = (self.open)(side)?;
        Some(Box::new(QlogObserver::boxed(sink, &info, self.limits)))
    }
}

impl<F> fmt::Debug for SinkFactory<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkFactory")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
