//! Hairpin (NSDI 2024): the number of repair packets for a frame, and for each batch of
//! retransmitted packets, so that the frame is complete by its deadline at the lowest cost.
//!
//! [`solver`](HairpinTable) solves the decision problem for a loss rate and a frame size;
//! [`HairpinPolicy`] looks solutions up during a session. Loss detection and retransmission are
//! implemented by the session.

mod policy;
mod solver;

pub use policy::{HairpinPolicy, PathTiming, WINDOW};
pub use solver::{
    HairpinTable, InvalidLambda, MAX_MISSING, MAX_ROUNDS, Solution, candidates, solve,
};
