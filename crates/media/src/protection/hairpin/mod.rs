//! Hairpin (NSDI 2024): how many repair packets go with a frame, and with each batch of packets
//! resent later, so that the frame is complete by its deadline at the lowest cost.
//!
//! [`solver`](HairpinTable) solves the decision problem for a loss rate and a frame size;
//! [`HairpinPolicy`] looks answers up while a session runs. Detecting loss and resending are the
//! session's business.

mod policy;
mod solver;

pub use policy::{HairpinPolicy, PathTiming, WINDOW};
pub use solver::{
    HairpinTable, InvalidLambda, MAX_MISSING, MAX_ROUNDS, Solution, candidates, solve,
};
