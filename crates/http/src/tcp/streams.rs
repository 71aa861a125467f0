//! The tasks of HTTP/2 streams: each writes one response, and can be ended without the others.

use std::future::Future;
use std::sync::Arc;

use super::activity::Activity;

/// Spawns the tasks of one connection's streams. hyper spawns the task of a request right after it has
/// called the service with it.
#[derive(Debug, Clone)]
pub(super) struct StreamExecutor(pub(super) Arc<Activity>);

impl<F> hyper::rt::Executor<F> for StreamExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        match self.0.take_begun() {
            Some(exchange) => tokio::spawn(exchange.run(future)),
            None => tokio::spawn(future),
        };
    }
}
