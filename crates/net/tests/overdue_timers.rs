//! A deadline that stays in the past costs its worker a look now and then, not all its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use crate::loopback::{Pair, guard};
use swiftwater_net::Application;
use swiftwater_net::quic::{Connection as Core, Event};
use swiftwater_units::Instant;

/// Has its timeout at a time that has passed, whatever is done about it.
#[derive(Debug, Default)]
struct Overdue {
    timeouts: AtomicU64,
}

impl Application for Overdue {
    fn on_event(&self, _: Instant, _: &mut Core, _: &Event, _: &mut Vec<Waker>) {}

    fn next_timeout(&self) -> Option<Instant> {
        Some(Instant::ZERO)
    }

    fn on_timeout(&self, _: Instant, _: &mut Core, _: &mut Vec<Waker>) {
        self.timeouts.fetch_add(1, Ordering::Relaxed);
    }
}

/// The clock stands still while tasks run, and moves by what is asked for.
#[tokio::test]
async fn a_deadline_that_stays_in_the_past_does_not_spin() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        client.handshake_confirmed().await.unwrap();
        server.handshake_confirmed().await.unwrap();
        tokio::time::pause();
        let overdue = Arc::new(Overdue::default());
        client.host(Arc::clone(&overdue) as Arc<dyn Application>);
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        let at_once = overdue.timeouts.load(Ordering::Relaxed);
        assert!((1..=4).contains(&at_once), "{at_once} without a pause");
        // Afterwards it is asked again, at most once a millisecond.
        let woken = pair.client.stats().wakeups;
        for _ in 0..100 {
            tokio::time::advance(Duration::from_millis(1)).await;
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        }
        let later = overdue.timeouts.load(Ordering::Relaxed) - at_once;
        assert!((1..=100).contains(&later), "{later} in 100 ms");
        let woken = pair.client.stats().wakeups - woken;
        assert!(woken < 400, "{woken} wake-ups in 100 ms");
        tokio::time::resume();
    })
    .await;
}
