//! The choice between TCP and QUIC request by request, with the selector of `swiftwater-select`.
//!
//! - [`Select`]: configuration. [`ArmChoice`], [`SelectionSnapshot`]: what was chosen and why, counters.
//! - `arms`: the connections of each arm. `chooser`: which arms an origin offers, decisions and outcomes.
//!   `exchange`: a request over the chosen arm, and over TCP as well where it may be sent twice.
//!   `metrics`: counters for Prometheus. `upkeep`: what is due without a request. `state_file`: what is kept between runs.
//!
//! How to choose is the selector's. The race of `connect` finds out about new origins.

mod arms;
mod choice;
mod chooser;
mod error;
mod exchange;
mod metrics;
mod select;
mod state_file;
mod ticket;
mod upkeep;

pub use choice::{ArmChoice, ReplaySafe, SelectionSnapshot};
pub use error::SelectError;
pub use select::Select;

pub(super) use chooser::Selection;
