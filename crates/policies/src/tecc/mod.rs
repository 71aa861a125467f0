//! TECC (NSDI 2024), both ends of the QUIC connection within a tunnel that repairs losses near the client and reports on
//! itself (`swiftwater-tecc`).
//!
//! - [`TeccClientFeedback`], at the client: passes the tunnel's reports on to the server, with what became of the
//!   packets that are missing.
//! - [`TeccFeedback`], at the server: gives rate and queue to the congestion controller `follow-external`, which paces
//!   by the law of the paper.
//! - [`TeccLossJudge`], at the server: does not send again what the tunnel will.
//!
//! The server never talks to the tunnel, and the tunnel reads nothing of the connection. Messages are FEEDBACK frames
//! ([`TeccMessage`]). Without them everything is as without this module.

mod client_feedback;
mod feedback;
mod loss_judge;
mod message;

pub use client_feedback::{TeccClientFeedback, TeccClientFeedbackConfig};
pub use feedback::{TeccFeedback, TeccFeedbackConfig};
pub use loss_judge::{TeccLossJudge, TeccLossJudgeConfig};
pub use message::TeccMessage;
pub use swiftwater_tecc::MAX_PAYLOAD_BESIDE_REPORT;
