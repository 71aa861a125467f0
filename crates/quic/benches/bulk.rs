//! Bulk transfer over a perfect wire: what the protocol logic and the cipher cost per byte, without
//! sockets. One iteration moves a megabyte from client to server, both ends in one thread.

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

#[path = "../tests/support/mod.rs"]
mod support;
#[path = "support/bulk.rs"]
mod transfer;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

use transfer::{Bulk, MEGABYTE, of_video};

fn bulk(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("bulk_1MB");
    group.throughput(Throughput::Bytes(MEGABYTE as u64));
    for (name, real_tls) in [("aes128gcm", true), ("null_cipher", false)] {
        let mut bulk = Bulk::new(real_tls);
        group.bench_function(name, |bencher| bencher.iter(|| bulk.megabyte()));
    }
    group.finish();
}

/// The same with each recovery policy on: nothing is lost, so this is what watching costs.
fn policies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("policies_1MB");
    group.throughput(Throughput::Bytes(MEGABYTE as u64));
    for name in ["arq", "autorec-paper", "autorec", "autorec+", "art"] {
        let Ok(policies) = swiftwater_policies::by_name(name) else {
            continue;
        };
        let mut bulk = Bulk::with_policies(false, policies);
        group.bench_function(name, |bencher| bencher.iter(|| bulk.megabyte()));
    }
    group.finish();
}

/// The same over several paths.
fn paths(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("paths_1MB");
    group.throughput(Throughput::Bytes(MEGABYTE as u64));
    for count in [1, 2, 4] {
        let mut bulk = Bulk::with_paths(false, count);
        group.bench_function(count.to_string(), |bencher| {
            bencher.iter(|| bulk.megabyte());
        });
    }
    group.finish();
}

/// The policies for video over two paths: each megabyte is a response.
fn video(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("video_1MB");
    group.throughput(Throughput::Bytes(MEGABYTE as u64));
    let policies = ["xlink", "xlink-paper", "chorus", "chorus+"];
    for (name, policies) in policies.map(|name| (name, of_video(name))) {
        let Some(policies) = policies else {
            continue;
        };
        let mut bulk = Bulk::with_policies_and_paths(false, 2, policies).with_responses();
        group.bench_function(name, |bencher| bencher.iter(|| bulk.megabyte()));
    }
    group.finish();
}

criterion_group!(benches, bulk, policies, paths, video);
criterion_main!(benches);
