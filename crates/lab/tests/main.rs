//! The tests of `swiftwater-lab`: one program, so that generic code and helpers are compiled and linked once.
//! Each topic is a module: `cargo test -p swiftwater-lab --test all TOPIC::` runs one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod experiments;
mod report_support;
mod support;
mod texts;

mod claim_errors;
mod claim_groups;
mod claims;
mod documents;
mod execute;
mod measured_tables;
mod own_controller;
mod report;
mod report_stored;
mod scenario;
mod scenario_errors;
mod scenario_streaming;
mod sheet;
mod store;
mod world_applications;
mod world_dumbbell;
mod world_paths;
mod world_repair;
mod world_session;
mod world_streaming;
mod world_topology;
mod world_transfers;
mod world_tunnel;
mod world_video;
mod world_web;
