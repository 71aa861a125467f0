//! Small requests over a perfect wire: what streams that live for a moment cost, without sockets. 100
//! bytes up and 1 KiB down on a stream each, 32 at a time, both ends in one thread.
//!
//! ```text
//! cargo bench -p swiftwater-quic --bench requests             # time, packets and allocations per request
//! cargo bench -p swiftwater-quic --bench requests -- 500 null # 500 rounds with the null cipher, no more
//! ```
//!
//! The second form is for counting instructions: two runs under `valgrind --tool=callgrind` with
//! different numbers of rounds, subtracted, leave out start and handshake.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark"
)]

#[path = "support/requests.rs"]
mod requests;
#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use requests::Requests;

/// Requests at a time.
const IN_FLIGHT: usize = 32;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().and_then(|first| first.parse::<u32>().ok());
    let Some(rounds) = rounds else {
        measure("AES-128-GCM", true);
        measure("null cipher", false);
        return;
    };
    let mut requests = Requests::new(arguments.next().is_none(), IN_FLIGHT);
    for _ in 0..rounds {
        requests.round();
    }
}

fn measure(name: &str, real_tls: bool) {
    let mut requests = Requests::new(real_tls, IN_FLIGHT);
    let packets = requests.packets();
    let counted = allocation_counter::measure(|| requests.round());
    let mut fastest = Duration::MAX;
    let rounds = 2000;
    for _ in 0..rounds {
        let start = Instant::now();
        requests.round();
        fastest = fastest.min(start.elapsed());
    }
    let [client, server] = requests.packets();
    let per_request = |n: u64| n as f64 / (f64::from(rounds + 1) * IN_FLIGHT as f64);
    println!(
        "{name}: {} ns, {:.2} packets up, {:.2} down, {:.2} allocations per request",
        fastest.as_nanos() / IN_FLIGHT as u128,
        per_request(client - packets[0]),
        per_request(server - packets[1]),
        counted.count_total as f64 / IN_FLIGHT as f64,
    );
}
