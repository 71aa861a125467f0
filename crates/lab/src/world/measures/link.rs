//! Measures of a link.

use std::time::Duration;

use swiftwater_link::Tally;

use super::Column;
use super::facts::{LinkFacts, ratio};

pub(super) const COLUMNS: &[Column<LinkFacts>] = &[
    ("utilisation", |link| {
        let bytes = link.counters.delivered.bytes + link.counters.dropped_random.bytes;
        ratio(bytes.get() as f64, link.capacity?)
    }),
    ("queue_mean_bytes", |link| Some(link.queue.mean_bytes)),
    ("queue_mean_bdp", |link| {
        ratio(link.queue.mean_bytes, link.bdp?)
    }),
    ("queue_max_bytes", |link| {
        Some(link.queue.max_bytes.get() as f64)
    }),
    ("queue_delay_mean_ms", |link| {
        delay_ms(link, link.queue.delay.mean)
    }),
    ("queue_delay_p99_ms", |link| {
        delay_ms(link, link.queue.delay.p99)
    }),
    ("dropped_share", |link| {
        let full = of_offered(link, link.counters.dropped_queue)?;
        Some(full + of_offered(link, link.counters.dropped_aqm)?)
    }),
    ("random_lost_share", |link| {
        of_offered(link, link.counters.dropped_random)
    }),
    ("marked_share", |link| {
        of_offered(link, link.counters.ecn_marked)
    }),
];

fn of_offered(link: &LinkFacts, part: Tally) -> Option<f64> {
    let offered = link.counters.enqueued.packets.get();
    ratio(part.packets.get() as f64, offered as f64)
}

fn delay_ms(link: &LinkFacts, delay: Duration) -> Option<f64> {
    let waited = !link.queue.delay.packets.is_zero();
    waited.then_some(delay.as_secs_f64() * 1e3)
}
