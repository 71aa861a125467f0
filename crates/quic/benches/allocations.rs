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

use transfer::Bulk;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

fn main() {
    for (name, real_tls) in [("aes128gcm", true), ("null cipher", false)] {
        let mut bulk = Bulk::new(real_tls);
        let profiler = dhat::Profiler::builder().testing().build();
        let before = bulk.packets();
        let blocks = dhat::HeapStats::get().total_blocks;
        for _ in 0..16 {
            bulk.megabyte();
        }
        let blocks = dhat::HeapStats::get().total_blocks - blocks;
        let after = bulk.packets();
        drop(profiler);
        let packets = after.0 + after.1 - before.0 - before.1;
        println!(
            "{name}: {blocks} allocations for {packets} packets ({:.4} per packet)",
            blocks as f64 / packets as f64
        );
    }
}
