//! Sessions over simulated links in virtual time.
//!
//! [`simulate`] runs a sender and a receiver of [`crate::session`] over two
//! [`swiftwater_link::Link`]s and evaluates the received frames with the models of
//! [`crate::player`].

mod report;
mod simulate;
mod stepped_loss;

pub use report::{Latencies, SessionReport};
pub use simulate::{SessionSpec, SimulateError, simulate};
pub use stepped_loss::{SteppedLoss, SteppedLossError};
