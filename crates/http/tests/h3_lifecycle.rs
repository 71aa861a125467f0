//! How requests and connections end: cancellation, GOAWAY, limits, early data (RFC 9114, sections
//! 4.1.1, 5 and 10.5).

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod support;

#[path = "h3_lifecycle/cancel.rs"]
mod cancel;
#[path = "h3_lifecycle/closing.rs"]
mod closing;
#[path = "h3_lifecycle/early_data.rs"]
mod early_data;
#[path = "h3_lifecycle/goaway.rs"]
mod goaway;
#[path = "h3_lifecycle/keep_alive.rs"]
mod keep_alive;
#[path = "h3_lifecycle/limits.rs"]
mod limits;
