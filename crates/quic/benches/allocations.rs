//! Heap allocations per packet in steady state, counted by a counting allocator.
//!
//! Prints the number for the sender's and the receiver's side together; both ends and the driver run
//! in one thread, and the driver itself allocates nothing.

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

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

fn main() {
    let ciphers = [("aes128gcm", true), ("null cipher", false)]
        .map(|(name, real_tls)| (name.to_owned(), Bulk::new(real_tls)));
    // Nothing is lost here: this is what a policy costs those who don't need it.
    let policies = swiftwater_policies::names().into_iter().map(|name| {
        let policies = swiftwater_policies::by_name(&name).unwrap();
        let bulk = Bulk::with_policies(false, policies);
        (format!("null cipher, {name}"), bulk)
    });
    let paths = [2, 4].map(|paths| {
        let name = format!("null cipher, {paths} paths");
        (name, Bulk::with_paths(false, paths))
    });
    let video = ["xlink", "xlink-paper", "chorus", "chorus+"].map(|name| {
        let policies = of_video(name).unwrap();
        let bulk = Bulk::with_policies_and_paths(false, 2, policies).with_responses();
        (format!("null cipher, 2 paths, video, {name}"), bulk)
    });
    let all = (ciphers.into_iter().chain(paths).chain(policies)).chain(video);
    for (name, mut bulk) in all {
        let profiler = dhat::Profiler::builder().testing().build();
        let before = packets(&mut bulk);
        let blocks = dhat::HeapStats::get().total_blocks;
        for _ in 0..16 {
            bulk.megabyte();
        }
        let blocks = dhat::HeapStats::get().total_blocks - blocks;
        let after = packets(&mut bulk);
        drop(profiler);
        let packets = after - before;
        println!(
            "{name}: {blocks} allocations for {packets} packets ({:.4} per packet)",
            blocks as f64 / packets as f64
        );
    }
}

/// Packets sent by both ends so far.
fn packets(bulk: &mut Bulk) -> u64 {
    let sent = |stats: swiftwater_quic::ConnectionStats| stats.packets_sent.get();
    let client = sent(bulk.wire.client.connection().stats());
    client + sent(bulk.wire.server.connection().stats())
}
