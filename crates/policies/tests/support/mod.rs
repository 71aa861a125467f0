//! A re-injector of this crate, driven by hand.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "each test binary uses a part of it"
)]

use std::time::Duration;

use swiftwater_policies::reinjector_by_name;
pub use swiftwater_policies::testkit::{ReinjectorDriver, data_range};
use swiftwater_quic::policy::{DataRange, PathView, Reinjection};
use swiftwater_units::Instant;

pub const SRTT: Duration = Duration::from_millis(60);

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

pub fn view() -> PathView {
    drive("arq").path
}

/// A driver of what a specification describes.
pub fn drive(specification: &str) -> ReinjectorDriver {
    ReinjectorDriver::new(reinjector_by_name(specification).expect("a specification"))
}

/// The data range of a request.
pub fn named(copy: &Reinjection) -> DataRange {
    copy.data_range()
}
