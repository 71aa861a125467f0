//! Peers that break the rules on purpose: the victim must answer as the RFCs say, and survive what
//! it can ignore.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod ack_frequency;
mod amplification;
mod attack;
mod bystander;
mod cids;
mod coding;
mod conformance;
mod early_data;
mod feedback;
mod floods;
mod frames;
mod handshake;
mod keys;
mod meter;
mod migration;
mod multipath;
mod multipath_versions;
mod packets;
mod parameters;
mod partial_resets;
mod path_floods;
mod peer;
mod persona;
mod small_frames;
mod stateless;
mod streams;
mod unreliable;
mod versions;
