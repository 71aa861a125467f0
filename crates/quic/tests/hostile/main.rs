//! Peers that break the rules on purpose: the victim must answer as the RFCs say, and survive what
//! it can ignore.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod attack;
mod cids;
mod dbg;
mod frames;
mod packets;
mod parameters;
mod peer;
mod stateless;
mod streams;
mod unreliable;
