//! Paths that a connection does not have: look-ups find nothing, and decisions for them are invalid.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use swiftwater_quic::policy::{Demand, PathDecision, PathView, PolicyFactory, Scheduler};
use swiftwater_quic::{ReadOutcome, RetryPolicy, TransportConfig};
use swiftwater_units::{ByteCount, Dir, Instant, PathId};

use support::{Wire, establish};

/// No path of a connection has this identifier.
const UNKNOWN: PathId = PathId::new(7);

/// Chooses a path that is not open, and notes which paths were used.
#[derive(Clone, Debug, Default)]
struct Astray(Arc<Mutex<Vec<PathId>>>);

impl Scheduler for Astray {
    fn next(&mut self, _: Instant, _: &[PathView], _: &Demand<'_>) -> PathDecision {
        PathDecision::batch(UNKNOWN)
    }

    fn on_sent(&mut self, _: Instant, path: PathId, _: ByteCount) {
        self.0.lock().unwrap().push(path);
    }
}

impl PolicyFactory for Astray {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }
}

#[test]
fn a_path_that_is_not_open_has_no_numbers() {
    let mut wire = Wire::new(false, RetryPolicy::Never);
    establish(&mut wire);
    for peer in [&mut wire.client, &mut wire.server] {
        let connection = peer.connection();
        assert!(connection.path_stats(PathId::ZERO).is_some());
        assert!(connection.smoothed_rtt(PathId::ZERO).is_some());
        assert!(connection.controller(PathId::ZERO).is_some());
        assert!(connection.path_stats(UNKNOWN).is_none());
        assert!(connection.smoothed_rtt(UNKNOWN).is_none());
        assert!(connection.controller(UNKNOWN).is_none());
    }
}

#[test]
fn a_decision_for_a_path_that_is_not_open_is_counted_and_the_primary_path_used() {
    let astray = Astray::default();
    let config = TransportConfig {
        policies: Arc::new(astray.clone()),
        ..TransportConfig::default()
    };
    let mut wire = Wire::with(false, RetryPolicy::Never, config);
    establish(&mut wire);
    let id = wire.client.connection().open(Dir::Uni).unwrap();
    let mut stream = wire.client.connection().send_stream(id);
    assert_eq!(stream.write(&[7; 5_000]).unwrap(), 5_000);
    for _ in 0..20 {
        wire.step(Duration::from_millis(100));
    }
    assert_eq!(wire.server.connection().accept(Dir::Uni), Some(id));
    let (mut read, mut buffer) = (0, [0; 1_000]);
    while let ReadOutcome::Data(n) = wire
        .server
        .connection()
        .recv_stream(id)
        .read(&mut buffer)
        .unwrap()
    {
        read += n;
    }
    assert_eq!(read, 5_000);
    assert!(wire.client.connection().stats().invalid_decisions > 0);
    let used = astray.0.lock().unwrap();
    assert!(!used.is_empty() && used.iter().all(|path| *path == PathId::ZERO));
}
