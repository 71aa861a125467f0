//! The tests of `swiftwater-tunnel`: one program, so that generic code and helpers are compiled and linked once.
//! Each topic is a module: `cargo test -p swiftwater-tunnel --test all TOPIC::` runs one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod network;
mod packets;
mod stage;

mod address_ranges;
mod client_versions;
mod contexts;
mod endpoint;
mod fairness;
mod forwarding;
mod forwarding_codecs;
mod forwarding_runs;
mod forwarding_silence;
mod hop_recovery;
mod http_connect;
mod ip_capsules;
mod ip_enforcement;
mod ip_packets;
mod ip_scope;
mod ip_tunnels;
mod ip_versions;
mod limits;
mod local_forward;
mod origins;
mod proxy;
mod repair;
mod socks;
mod socks_messages;
mod target_policy;
mod targets;
mod tcp;
mod usage;
mod user_certificates;
mod versions;
