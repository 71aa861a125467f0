//! Paths: `PathState` owns what belongs to one path, `PathSet` owns the paths and all packet number
//! spaces (RFC 9000, sections 5.1, 8, 9 and 12.3).
//!
//! Round-trip times, windows and pacing of a path are in `recovery`.

mod acked_datagram_size;
mod amplification;
mod candidate_paths;
mod cids;
mod connection_ids;
mod ecn;
mod further;
mod large_packet_loss;
mod loss_detection;
mod mtu;
mod network_path;
mod path_response_limit;
mod path_responses;
mod sending;
mod set;
mod spin;
mod state;
mod switch;
mod validation;

pub(crate) use acked_datagram_size::AckedDatagramSize;
pub(crate) use amplification::Amplification;
pub(crate) use candidate_paths::{CandidatePath, CandidatePaths, Kept, Role};
pub(crate) use cids::{DECLARED_LIMITS, IssuedCid, LocalCids, PathCids, RemoteCids};
pub(crate) use ecn::Ecn;
pub(crate) use further::{OtherPaths, UnopenedPath};
pub(crate) use loss_detection::{AckContext, LossDetection, LossFacts, NeverSent};
pub(crate) use mtu::Mtu;
pub use mtu::MtuState;
pub(crate) use network_path::NetworkPath;
pub(crate) use path_response_limit::PathResponseLimit;
pub(crate) use path_responses::PathResponses;
pub(crate) use set::{PathSet, discard_space};
pub(crate) use spin::Spin;
pub(crate) use state::{NewPath, PathState};
pub(crate) use switch::Switch;
pub(crate) use validation::{Answered, Validation};

pub(crate) use crate::transmit::PathAddress as Address;
