//! Moves bulk data over the perfect wire for a profiler to watch: `callgrind` counts the instructions of each part.
//!
//! ```sh
//! cargo bench -p swiftwater-quic --bench budget --no-run
//! benches/peers/budget --instructions BINARY null
//! ```
//!
//! Arguments: `aes` or `null`, how many megabytes, `2-paths` for several paths, and `policies=xlink`, `xlink-paper`, `chorus`
//! or `chorus+` for other policies on these, with each megabyte announced as a response to a player. Prints how many packets each end sent, to divide by.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark"
)]

#[path = "../tests/support/mod.rs"]
mod support;
#[path = "support/bulk.rs"]
mod transfer;

use transfer::{Bulk, of_video};

/// What a profiler looks at: everything before is preparation.
struct Measured<'a>(&'a mut Bulk);

impl Measured<'_> {
    #[inline(never)]
    fn run(&mut self, megabytes: u32) {
        for _ in 0..megabytes {
            self.0.megabyte();
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let real_tls = arguments.iter().any(|argument| argument == "aes");
    let megabytes = arguments.iter().find_map(|argument| argument.parse().ok());
    let paths = arguments.iter().find_map(|argument| {
        let count = argument.strip_suffix("-paths")?;
        count.parse().ok()
    });
    let policies = (arguments.iter()).find_map(|argument| argument.strip_prefix("policies="));
    let mut bulk = match (policies, paths) {
        (Some(name), _) => {
            let policies = of_video(name).unwrap();
            Bulk::with_policies_and_paths(real_tls, paths.unwrap_or(2), policies).with_responses()
        }
        (None, Some(paths)) => Bulk::with_paths(real_tls, paths),
        (None, None) => Bulk::new(real_tls),
    };
    let sent = |bulk: &mut Bulk| {
        let client = bulk.wire.client.connection().stats().packets_sent.get();
        let server = bulk.wire.server.connection().stats().packets_sent.get();
        (client, server)
    };
    let before = sent(&mut bulk);
    Measured(&mut bulk).run(megabytes.unwrap_or(16));
    let after = sent(&mut bulk);
    println!(
        "{} packets from the sender, {} from the receiver",
        after.0 - before.0,
        after.1 - before.1
    );
}
