//! The tests of `swiftwater-congestion`: one program, so that generic code and helpers are compiled and linked once.
//! Each topic is a module: `cargo test -p swiftwater-congestion --test all TOPIC::` runs one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/direct.rs"]
mod direct;
#[path = "support/feed.rs"]
mod feed;
mod support;

mod bbr1;
mod bbr3;
mod bbr3_bounds;
mod bbr_loss;
mod bbr_model;
mod catalogue;
mod classic_hystart;
mod copa;
mod coupling;
mod cubic;
mod cubic_plus_competition;
mod cubic_plus_drains;
mod cubic_plus_losses;
mod cubic_plus_overflow;
mod cubic_plus_spare_capacity;
mod follow_external;
mod hystart;
mod known_bugs;
mod live;
mod newreno;
mod prague;
mod properties;
mod prr;
mod rate_law;
