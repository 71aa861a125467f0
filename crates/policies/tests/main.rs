//! The tests of `swiftwater-policies`: one program, so that generic code and helpers are compiled and linked once.
//! Each topic is a module: `cargo test -p swiftwater-policies --test all TOPIC::` runs one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod art;
mod autorec;
mod autorec_model;
mod autorec_plus;
mod autorec_queue;
mod chorus_feedback;
mod chorus_plus;
mod chorus_reinjector;
mod chorus_scheduler;
mod congestion_guard;
mod loss_judges;
mod player_feedback;
mod registry;
mod scheduler_decisions;
mod scheduler_losses;
mod scheduler_properties;
mod scheduler_transfers;
mod schedulers;
mod single_path;
mod tail_copies;
mod tecc;
mod xlink_decisions;
mod xlink_properties;
