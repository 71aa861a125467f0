//! The tests of `swiftwater-net`: one program, so that generic code and helpers are compiled and linked once.
//! Each topic is a module: `cargo test -p swiftwater-net --test all TOPIC::` runs one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod loopback;
#[path = "support/watchdog.rs"]
mod watchdog;

mod application;
mod back_pressure;
mod blocked_sockets;
mod connections;
mod datagram_options;
mod early_data;
mod endless_tasks;
mod endpoint_lock;
mod faults;
mod flood;
mod many_connections;
mod migration;
mod multipath;
mod overdue_timers;
mod relay;
mod streams;
#[cfg(target_os = "linux")]
mod tcp_statistics;
mod tun;
mod virtual_ids;
mod worker_order;
mod workers;
